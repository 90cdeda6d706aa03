/* A worker that is prepared (gpud-worker --prepared): what it does where that gains nothing. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/seqpacket.h"

#define ABSENT 69 /* status of a worker that cannot open its device */

/* With a device that is not there. Returns its status; `memory` is open then. */
static int run(const int memory[2])
{
    int channel[2];
    struct err e = ERR_INIT;
    ck_assert_msg(seqpacket_pair(channel, &e) == 0, "%s", e.text);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        int last = fcntl(memory[1], F_DUPFD, 16); /* 3 to 5 may be in use */
        (void)dup2(channel[1], 3);
        (void)dup2(last, 4);
        (void)dup2(last, 5);
        (void)close(last);
        (void)execl(GPUD_BIN_DIR "/gpud-worker", "gpud-worker", "--backend", "sim", "--device",
                    "99", "--options", "devices=1", "--prepared", (char *)NULL);
        _exit(127);
    }
    (void)close(channel[1]);
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    (void)close(channel[0]);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void begin(int memory[2])
{
    struct err e = ERR_INIT;
    ck_assert_msg(seqpacket_pair(memory, &e) == 0, "%s", e.text);
}

static int give_memory(int to)
{
    struct err e = ERR_INIT;
    struct frame_fds fds = {.fd = {open("/dev/null", O_RDWR), open("/dev/null", O_RDWR)},
                            .count = 2};
    int rc = seqpacket_send(to, "", 1, &fds, &e);
    frame_fds_close(&fds);
    return rc;
}

/* What would make a worker of it is refused from the moment on at which it decided to end: the
 * socket is open here, so its end alone refuses nothing. */
START_TEST(it_ends_where_it_gains_nothing)
{
    int memory[2];
    begin(memory);
    ck_assert_int_eq(run(memory), 0);
    ck_assert_int_lt(give_memory(memory[0]), 0);
    (void)close(memory[0]);
    (void)close(memory[1]);
}
END_TEST

/* The launcher may make a worker of it before it has ended: the front learns what is wrong. */
START_TEST(it_serves_if_it_has_become_a_worker)
{
    int memory[2];
    begin(memory);
    ck_assert_int_eq(give_memory(memory[0]), 0);
    ck_assert_int_eq(run(memory), ABSENT);
    (void)close(memory[0]);
    (void)close(memory[1]);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("prepared");
    TCase *t = tcase_create("prepared");
    tcase_add_test(t, it_ends_where_it_gains_nothing);
    tcase_add_test(t, it_serves_if_it_has_become_a_worker);
    tcase_set_timeout(t, 60);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
