/* A worker that is prepared (gpud-worker --prepared): what it does where that gains nothing. */
#include <check.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/seqpacket.h"

#define ABSENT 69 /* status of a worker that cannot open its device */

/* With a device that is not there. Returns its status. */
static int run(const int channel[2])
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)dup2(channel[1], 3);
        (void)execl(GPUD_BIN_DIR "/gpud-worker", "gpud-worker", "--backend", "sim", "--device",
                    "99", "--options", "devices=1", "--prepared", (char *)NULL);
        _exit(127);
    }
    (void)close(channel[1]);
    int status = 0;
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void begin(int channel[2])
{
    struct err e = ERR_INIT;
    ck_assert_msg(seqpacket_pair(channel, &e) == 0, "%s", e.text);
}

START_TEST(it_ends_where_it_gains_nothing)
{
    int channel[2];
    begin(channel);
    ck_assert_int_eq(run(channel), 0);
    (void)close(channel[0]);
}
END_TEST

/* The launcher may make a worker of it before it has ended: the front learns what is wrong. */
START_TEST(it_serves_if_it_has_become_a_worker)
{
    int channel[2];
    struct err e = ERR_INIT;
    struct frame_fds memory = {.fd = {open("/dev/null", O_RDWR), open("/dev/null", O_RDWR)},
                               .count = 2};
    begin(channel);
    ck_assert_int_eq(seqpacket_send(channel[0], "", 1, &memory, &e), 0);
    ck_assert_int_eq(run(channel), ABSENT);
    (void)close(channel[0]);
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
