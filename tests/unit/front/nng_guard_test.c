/* A peer that left is ECONNRESET to everything in the program, NNG included, and the listener goes
 * on accepting after peers that left before they were greeted. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/front/listener.h"
#include "daemon/front/nng_guard.h"

#define LEAVERS 200

START_TEST(peer_that_left_is_a_reset)
{
    int fd[2];
    nng_guard();
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, fd), 0);
    ck_assert_int_eq(close(fd[1]), 0);
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov, .msg_iovlen = 1};
    ck_assert_int_eq(sendmsg(fd[0], &message, MSG_NOSIGNAL), -1);
    ck_assert_int_eq(errno, ECONNRESET);
    ck_assert_int_eq(close(fd[0]), 0);
}
END_TEST

static int connect_to(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    ck_assert_uint_lt(strlen(path), sizeof address.sun_path);
    memcpy(address.sun_path, path, strlen(path) + 1);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void ignore_request(void *data, struct request *r)
{
    (void)data;
    request_destroy(r);
}

static void ignore_closed(void *data, uint32_t pipe)
{
    (void)data;
    (void)pipe;
}

static void note_done(void *data)
{
    *(bool *)data = true;
}

START_TEST(listener_outlives_peers_that_leave)
{
    static const struct listener_callbacks callbacks = {ignore_request, ignore_closed};
    struct listener_options options = {.contexts = 4,
                                       .connections_max = 64,
                                       .handshake_ns = UINT64_C(5000000000),
                                       .ipc_mode = 0600};
    char dir[] = "/tmp/gpud-guard.XXXXXX";
    ck_assert_ptr_nonnull(mkdtemp(dir));
    char path[64];
    char url[80];
    (void)snprintf(path, sizeof path, "%s/s", dir);
    (void)snprintf(url, sizeof url, "ipc://%s", path);
    uv_loop_t loop;
    struct listener *l = NULL;
    struct err e = ERR_INIT;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_msg(listener_create(&loop, &options, &callbacks, NULL, &l, &e) == 0, "%s", e.text);
    ck_assert_msg(listener_add(l, url, &e) == 0, "%s", e.text);
    for (int i = 0; i < LEAVERS; i++) {
        ck_assert_int_eq(close(connect_to(path)), 0);
    }
    /* one that stays is greeted with SP's header for REP */
    static const uint8_t hello[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const uint8_t greeting[] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    uint8_t got[sizeof greeting];
    int fd = connect_to(path);
    struct timeval patience = {.tv_sec = 20};
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(send(fd, hello, sizeof hello, MSG_NOSIGNAL), (int)sizeof hello);
    ck_assert_int_eq(recv(fd, got, sizeof got, MSG_WAITALL), (int)sizeof got);
    ck_assert_mem_eq(got, greeting, sizeof greeting);
    ck_assert_int_eq(close(fd), 0);
    bool done = false;
    listener_close(l, note_done, &done);
    while (!done) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    listener_destroy(l);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nng_guard");
    TCase *tcase = tcase_create("nng_guard");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, peer_that_left_is_a_reset);
    tcase_add_test(tcase, listener_outlives_peers_that_leave);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
