#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/front/fake_launcher.h"
#include "tests/unit/front/scratch.h"

static int leaver = -1; /* a listening socket that closes each connection at once; -1: none */

int __real_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size)
{
    int rc = __real_connect(fd, address, size);
    if (rc == 0 && leaver >= 0) {
        (void)close(accept4(leaver, NULL, NULL, SOCK_CLOEXEC));
    }
    return rc;
}

static uv_loop_t loop;
static char dir[SCRATCH_PATH];
static struct launcher_link *near_end;
static int far_end;

static struct {
    bool started, ended, inventory, listed, lost;
    uint64_t id;
    pid_t pid;
    int fd;
    int code;
    char text[64];
    int status;
    bool timed_out;
    unsigned inventory_count;
    uint64_t count;
    struct err error;
} seen;

static void on_started(void *data, uint64_t id, pid_t pid, int fd, int code, const char *text)
{
    (void)data;
    seen.started = true;
    seen.id = id;
    seen.pid = pid;
    seen.fd = fd;
    seen.code = code;
    (void)strncpy(seen.text, text, sizeof seen.text - 1);
}

static void on_ended(void *data, uint64_t id, int status, bool timed_out)
{
    (void)data;
    seen.ended = true;
    seen.id = id;
    seen.status = status;
    seen.timed_out = timed_out;
}

static void on_inventory(void *data, const struct launcher_inventory *inventory)
{
    (void)data;
    seen.inventory = true;
    seen.id = inventory->id;
    seen.pid = inventory->pid;
    seen.inventory_count++;
    ck_assert(bytes_equal_str(inventory->device, "device"));
    (void)close(inventory->channel);
    for (unsigned i = 0; i < LAUNCHER_WORKER_FDS; i++) {
        (void)close(inventory->fd[i]);
    }
}

static void on_listed(void *data, uint64_t count)
{
    (void)data;
    seen.listed = true;
    seen.count = count;
}

static void on_lost(void *data, const struct err *e)
{
    (void)data;
    ck_assert(!seen.lost);
    seen.lost = true;
    seen.error = *e;
}

static const struct launcher_callbacks callbacks = {.started = on_started,
                                                    .ended = on_ended,
                                                    .inventory = on_inventory,
                                                    .listed = on_listed,
                                                    .lost = on_lost};

static void setup(void)
{
    scratch_make(dir);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    near_end = NULL;
    far_end = -1;
}

static void teardown(void)
{
    launcher_link_close(near_end);
    if (far_end >= 0) {
        (void)close(far_end);
    }
    loop_finish(&loop);
    scratch_remove(dir);
}

static void meet(void)
{
    struct err e = ERR_INIT;
    ck_assert_msg(
        fake_launcher_open(&loop, dir, FAKE_BUILD, &callbacks, NULL, &near_end, &far_end, &e) == 0,
        "%s", e.text);
}

START_TEST(a_launcher_of_another_build)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(
        fake_launcher_open(&loop, dir, "other", &callbacks, NULL, &near_end, &far_end, &e),
        ERR_VERSION);
    ck_assert_ptr_nonnull(strstr(e.text, "other"));
    ck_assert_ptr_nonnull(strstr(e.text, FAKE_BUILD));
}
END_TEST

START_TEST(a_launcher_that_hangs_up)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(fake_launcher_open(&loop, dir, "", &callbacks, NULL, &near_end, &far_end, &e),
                     ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(e.text, "another gpud"));
}
END_TEST

/* Before we have said hello. */
START_TEST(a_launcher_that_hangs_up_before_hello)
{
    struct err e = ERR_INIT;
    struct launcher_options options = {.runtime_dir = dir, .patience_ns = 1};
    ck_assert_int_eq(seqpacket_listen(scratch_path(dir, "launcher.sock"), &leaver, &e), 0);
    ck_assert_int_eq(
        launcher_link_open(&loop, &options, FAKE_BUILD, &callbacks, NULL, &near_end, &e), ERR_BUSY);
    ck_assert_msg(strstr(e.text, "another gpud") != NULL, "%s", e.text);
    (void)close(leaver);
    leaver = -1;
    (void)unlink(scratch_path(dir, "launcher.sock"));
}
END_TEST

/* It has not seen yet that the front before is gone. */
START_TEST(a_launcher_that_hangs_up_at_first)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(
        fake_launcher_busy(&loop, dir, FAKE_BUILD, 3, &callbacks, NULL, &near_end, &far_end, &e),
        0);
}
END_TEST

START_TEST(no_launcher_and_none_to_be_started)
{
    struct err e = ERR_INIT;
    struct launcher_options options = {.runtime_dir = dir, .start = false};
    ck_assert_int_eq(
        launcher_link_open(&loop, &options, FAKE_BUILD, &callbacks, NULL, &near_end, &e),
        ERR_CONNECT);
}
END_TEST

START_TEST(a_program_that_is_not_there)
{
    struct err e = ERR_INIT;
    struct launcher_options options = {.runtime_dir = dir, .start = true};
    options.program = scratch_path(dir, "absent");
    ck_assert_int_eq(
        launcher_link_open(&loop, &options, FAKE_BUILD, &callbacks, NULL, &near_end, &e),
        ERR_NOT_FOUND);
    ck_assert_ptr_nonnull(strstr(e.text, "absent"));
}
END_TEST

static const char *const args[] = {"--backend", "sim", NULL};

START_TEST(a_worker_is_asked_for_and_starts)
{
    struct err e = ERR_INIT;
    int ends[2];
    meet();
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    const struct worker_order start = {.id = 7,
                                       .args = args,
                                       .device = bytes_str("device"),
                                       .fd = {ends[0], ends[1], ends[1]},
                                       .prepare = true};
    ck_assert_int_eq(launcher_worker(near_end, &start, &e), 0);
    struct msg_l_worker asked;
    struct frame_fds fds;
    struct proto_word word;
    fake_recv(far_end, &schema_msg_l_worker, &asked, &fds);
    ck_assert_uint_eq(asked.id, 7);
    ck_assert_uint_eq(asked.args.count, 2);
    ck_assert(bytes_equal_str(asked.device, "device"));
    ck_assert_uint_eq(asked.prepare, 1);
    ck_assert_int_eq(fds.count, LAUNCHER_WORKER_FDS);
    struct proto_iter it = proto_iter_of(asked.args);
    ck_assert(proto_list_next(&it, &schema_word, &word));
    ck_assert(bytes_equal_str(word.text, "--backend"));
    ck_assert(proto_list_next(&it, &schema_word, &word));
    ck_assert(bytes_equal_str(word.text, "sim"));
    frame_fds_close(&fds);
    struct msg_l_started started = {.id = 7, .pid = 99};
    struct frame_fds channel = {.fd = {ends[0]}, .count = 1};
    fake_send(far_end, &schema_msg_l_started, &started, &channel);
    loop_until(&loop, &seen.started);
    ck_assert_uint_eq(seen.id, 7);
    ck_assert_int_eq(seen.pid, 99);
    ck_assert_int_eq(seen.code, 0);
    ck_assert_int_ge(fcntl(seen.fd, F_GETFD), 0);
    (void)close(seen.fd);
    struct msg_l_ended ended = {.id = 7, .pid = 99, .status = SIGSEGV};
    fake_send(far_end, &schema_msg_l_ended, &ended, NULL);
    loop_until(&loop, &seen.ended);
    ck_assert_int_eq(WTERMSIG(seen.status), SIGSEGV);
    (void)close(ends[0]);
    (void)close(ends[1]);
}
END_TEST

START_TEST(a_compiler_is_asked_for_and_fails)
{
    struct err e = ERR_INIT;
    struct launcher_limits limits = {.cpu_s = 3, .memory = 1 << 20, .wall_ns = 5};
    meet();
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(launcher_compiler(near_end, 8, args, &limits, fd, fd, &e), 0);
    struct msg_l_compiler asked;
    struct frame_fds fds;
    fake_recv(far_end, &schema_msg_l_compiler, &asked, &fds);
    ck_assert_uint_eq(asked.id, 8);
    ck_assert_uint_eq(asked.cpu_s, 3);
    ck_assert_uint_eq(asked.memory, 1 << 20);
    ck_assert_uint_eq(asked.wall_ns, 5);
    ck_assert_int_eq(fds.count, 2);
    frame_fds_close(&fds);
    struct msg_l_started failed = {.id = 8, .code = ERR_NOT_FOUND, .text = bytes_str("no program")};
    fake_send(far_end, &schema_msg_l_started, &failed, NULL);
    loop_until(&loop, &seen.started);
    ck_assert_int_eq(seen.code, ERR_NOT_FOUND);
    ck_assert_str_eq(seen.text, "no program");
    ck_assert_int_eq(seen.fd, -1);
    struct msg_l_ended ended = {.id = 8, .status = SIGKILL, .timed_out = 1};
    fake_send(far_end, &schema_msg_l_ended, &ended, NULL);
    loop_until(&loop, &seen.ended);
    ck_assert(seen.timed_out);
    (void)close(fd);
}
END_TEST

START_TEST(what_runs_already_is_listed)
{
    struct err e = ERR_INIT;
    meet();
    ck_assert_int_eq(launcher_list(near_end, &e), 0);
    struct msg_l_list list;
    fake_recv(far_end, &schema_msg_l_list, &list, NULL);
    int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct frame_fds fds = {.fd = {fd, fd, fd, fd}, .count = 4};
    for (uint64_t i = 1; i <= 3; i++) {
        struct msg_l_inventory inventory = {.id = i, .pid = 100 + i, .device = bytes_str("device")};
        fake_send(far_end, &schema_msg_l_inventory, &inventory, &fds);
    }
    struct msg_l_listed listed = {.count = 3};
    fake_send(far_end, &schema_msg_l_listed, &listed, NULL);
    loop_until(&loop, &seen.listed);
    ck_assert_uint_eq(seen.inventory_count, 3);
    ck_assert_uint_eq(seen.count, 3);
    ck_assert_uint_eq(seen.id, 3);
    ck_assert_int_eq(seen.pid, 103);
    (void)close(fd);
}
END_TEST

START_TEST(kill_and_quit)
{
    struct err e = ERR_INIT;
    struct msg_l_kill kill_msg;
    struct msg_l_quit quit;
    meet();
    ck_assert_int_eq(launcher_kill(near_end, 5, SIGKILL, &e), 0);
    fake_recv(far_end, &schema_msg_l_kill, &kill_msg, NULL);
    ck_assert_uint_eq(kill_msg.id, 5);
    ck_assert_uint_eq(kill_msg.signal, SIGKILL);
    ck_assert_int_eq(launcher_kill(near_end, 5, -1, &e), ERR_INVALID);
    ck_assert_int_eq(launcher_quit(near_end, &e), 0);
    fake_recv(far_end, &schema_msg_l_quit, &quit, NULL);
}
END_TEST

START_TEST(a_launcher_that_goes_is_lost)
{
    struct err e = ERR_INIT;
    meet();
    struct msg_l_ended ended = {.id = 7};
    fake_send(far_end, &schema_msg_l_ended, &ended, NULL);
    (void)close(far_end);
    far_end = -1;
    loop_until(&loop, &seen.lost);
    ck_assert(seen.ended);
    ck_assert_int_eq(seen.error.code, ERR_CLOSED);
    ck_assert_int_eq(launcher_list(near_end, &e), ERR_CLOSED);
}
END_TEST

START_TEST(a_launcher_that_talks_nonsense_is_lost)
{
    meet();
    int before = descriptors_open();
    struct frame_fds fds = {.fd = {far_end, far_end}, .count = 2};
    struct msg_ping ping = {.value = 1};
    struct msg_l_inventory inventory = {.id = 1};
    struct msg_l_ended ended = {.id = 1, .status = 1 << 20};
    struct msg_l_started started = {.id = 1, .code = 5};
    switch (_i) {
    case 0:
        fake_send(far_end, &schema_msg_ping, &ping, &fds);
        break;
    case 1:
        fake_send(far_end, &schema_msg_l_inventory, &inventory, &fds);
        break;
    case 2:
        fake_send(far_end, &schema_msg_l_ended, &ended, NULL);
        break;
    default:
        fake_send(far_end, &schema_msg_l_started, &started, &fds);
        break;
    }
    loop_until(&loop, &seen.lost);
    ck_assert_int_eq(seen.error.code, ERR_PROTOCOL);
    ck_assert(!seen.inventory && !seen.ended && !seen.started);
    ck_assert_int_eq(descriptors_open(), before - 1); /* only the channel itself is closed */
}
END_TEST

/* ---- one that is started --------------------------------------------------------------------- */

static void plain_send(int fd, const struct schema *schema, const void *msg)
{
    struct capbuf out;
    capbuf_init(&out, 1024);
    if (proto_encode(schema, msg, &out, NULL) != 0 ||
        seqpacket_send(fd, out.data, out.size, NULL, NULL) != 0) {
        _exit(1);
    }
    capbuf_finish(&out);
}

/* This program again, as the launcher: says hello and who it is, and stays until it hears more.
 * Check's assertions are for its tests only. */
static int be_launcher(const char *runtime_dir)
{
    char path[256];
    int listening = -1;
    (void)snprintf(path, sizeof path, "%s/launcher.sock", runtime_dir);
    if (seqpacket_listen(path, &listening, NULL) != 0) {
        return 1;
    }
    struct pollfd p = {.fd = listening, .events = POLLIN};
    (void)poll(&p, 1, -1);
    int fd = accept4(listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct msg_l_hello hello = {.build = bytes_str(FAKE_BUILD), .pid = (uint64_t)getpid()};
    struct msg_l_listed self = {.count = (uint64_t)getpid()};
    plain_send(fd, &schema_msg_l_hello, &hello);
    plain_send(fd, &schema_msg_l_listed, &self);
    for (unsigned frames = 0; frames < 2; frames++) { /* a hello, and that it is to quit */
        char frame[512];
        p.fd = fd;
        (void)poll(&p, 1, -1);
        (void)recv(fd, frame, sizeof frame, 0);
    }
    (void)close(fd);
    return 0;
}

START_TEST(one_is_started_and_detached)
{
    struct err e = ERR_INIT;
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    ck_assert_int_gt(n, 0);
    self[n] = '\0';
    /* a stale socket is in the way */
    int stale = -1;
    ck_assert_int_eq(seqpacket_listen(scratch_path(dir, "launcher.sock"), &stale, &e), 0);
    (void)close(stale);
    struct launcher_options options = {.runtime_dir = dir, .program = self, .start = true};
    int rc = launcher_link_open(&loop, &options, FAKE_BUILD, &callbacks, NULL, &near_end, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    loop_until(&loop, &seen.listed);
    pid_t pid = (pid_t)seen.count;
    ck_assert_int_eq(kill(pid, 0), 0);
    ck_assert_int_eq(getsid(pid), getsid(0)); /* one group of Linux's autogroups */
    ck_assert_int_ne(getpgid(pid), getpgid(0));
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_int_eq(launcher_quit(near_end, &e), 0);
    loop_until(&loop, &seen.lost);
}
END_TEST

/* It would be handed workers' memory, and say what they hold. */
START_TEST(a_launcher_of_another_user_is_refused)
{
    struct err e = ERR_INIT;
    struct launcher_options options = {.runtime_dir = dir, .start = false, .patience_ns = 1};
    int listening = -1;
    if (geteuid() != 0) {
        return; /* only root can become another user */
    }
    ck_assert_int_eq(chmod(dir, 0777), 0);
    ck_assert_int_eq(seteuid(65533), 0);
    int rc = seqpacket_listen(scratch_path(dir, "launcher.sock"), &listening, &e);
    ck_assert_int_eq(seteuid(0), 0);
    ck_assert_int_eq(rc, 0);
    rc = launcher_link_open(&loop, &options, FAKE_BUILD, &callbacks, NULL, &near_end, &e);
    ck_assert_int_eq(rc, ERR_PERMISSION);
    ck_assert_ptr_null(near_end);
    ck_assert_int_eq(close(listening), 0);
    ck_assert_int_eq(unlink(scratch_path(dir, "launcher.sock")), 0);
}
END_TEST

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--runtime-dir") == 0) {
        return be_launcher(argv[2]);
    }
    Suite *suite = suite_create("launcher_link");
    TCase *tc = tcase_create("launcher_link");
    tcase_set_timeout(tc, 30);
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_launcher_of_another_build);
    tcase_add_test(tc, a_launcher_of_another_user_is_refused);
    tcase_add_test(tc, a_launcher_that_hangs_up);
    tcase_add_test(tc, a_launcher_that_hangs_up_before_hello);
    tcase_add_test(tc, a_launcher_that_hangs_up_at_first);
    tcase_add_test(tc, no_launcher_and_none_to_be_started);
    tcase_add_test(tc, a_program_that_is_not_there);
    tcase_add_test(tc, a_worker_is_asked_for_and_starts);
    tcase_add_test(tc, a_compiler_is_asked_for_and_fails);
    tcase_add_test(tc, what_runs_already_is_listed);
    tcase_add_test(tc, kill_and_quit);
    tcase_add_test(tc, a_launcher_that_goes_is_lost);
    tcase_add_loop_test(tc, a_launcher_that_talks_nonsense_is_lost, 0, 4);
    tcase_add_test(tc, one_is_started_and_detached);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
