/* A peer that left is ECONNRESET to everything in the program, NNG included, and the listener goes
 * on accepting after peers that left before they were greeted. */
#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "daemon/front/listener.h"
#include "daemon/front/nng_guard.h"

#if !defined(SO_PASSRIGHTS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PASSRIGHTS 83
#endif

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

/* ---- a listener ----------------------------------------------------------------------------- */

static uv_loop_t loop;
static struct listener *listener;
static char dir[32];
static char path[64];
static bool hold;         /* requests stay unanswered; else their slots are freed */
static unsigned requests; /* that came */

static void on_request(void *data, struct request *r)
{
    (void)data;
    requests++;
    if (!hold) {
        listener_drop(listener, r->slot);
    }
    request_destroy(r);
}

static void on_closed(void *data, uint32_t pipe)
{
    (void)data;
    (void)pipe;
}

static void note_done(void *data)
{
    *(bool *)data = true;
}

static void begin(unsigned contexts, unsigned pipe_requests_max)
{
    static const struct listener_callbacks callbacks = {on_request, on_closed};
    struct listener_options options = {.contexts = contexts,
                                       .connections_max = 64,
                                       .handshake_ns = UINT64_C(60000000000),
                                       .ipc_mode = 0600,
                                       .pipe_requests_max = pipe_requests_max,
                                       .user_requests_max = contexts + 1};
    char url[80];
    struct err e = ERR_INIT;
    (void)snprintf(dir, sizeof dir, "/tmp/gpud-guard.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/s", dir);
    (void)snprintf(url, sizeof url, "ipc://%s", path);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_msg(listener_create(&loop, &options, &callbacks, NULL, &listener, &e) == 0, "%s",
                  e.text);
    ck_assert_msg(listener_add(listener, url, &e) == 0, "%s", e.text);
}

static void end(void)
{
    bool done = false;
    listener_close(listener, note_done, &done);
    while (!done) {
        (void)uv_run(&loop, UV_RUN_ONCE);
    }
    listener_destroy(listener);
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    (void)unlink(path);
    ck_assert_int_eq(rmdir(dir), 0);
}

/* A connection that was greeted with SP's header for REP. */
static int greeted(void)
{
    static const uint8_t hello[] = {0, 'S', 'P', 0, 0, 0x30, 0, 0};
    static const uint8_t greeting[] = {0, 'S', 'P', 0, 0, 0x31, 0, 0};
    uint8_t got[sizeof greeting];
    int fd = connect_to(path);
    struct timeval patience = {.tv_sec = 20};
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience), 0);
    ck_assert_int_eq(send(fd, hello, sizeof hello, MSG_NOSIGNAL), (int)sizeof hello);
    ck_assert_int_eq(recv(fd, got, sizeof got, MSG_WAITALL), (int)sizeof got);
    ck_assert_mem_eq(got, greeting, sizeof greeting);
    return fd;
}

START_TEST(listener_outlives_peers_that_leave)
{
    begin(4, 0);
    for (int i = 0; i < LEAVERS; i++) {
        ck_assert_int_eq(close(connect_to(path)), 0);
    }
    ck_assert_int_eq(close(greeted()), 0); /* one that stays */
    end();
}
END_TEST

/* ---- connections that never are quiet ------------------------------------------------------- */

struct flood {
    int fd;
    atomic_bool over;
};

/* PINGs without a pause, until the connection ends. */
static void *flood(void *data)
{
    /* on ipc: a type, a length, a request id, then [3] */
    static const uint8_t frame[] = {1, 0, 0, 0, 0, 0, 0, 0, 6, 0x80, 0, 0, 1, 0x91, 3};
    struct flood *f = data;
    while (send(f->fd, frame, sizeof frame, MSG_NOSIGNAL) > 0) {
    }
    (void)close(f->fd);
    atomic_store(&f->over, true);
    return NULL;
}

static void serve(void)
{
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    (void)usleep(1000);
}

START_TEST(one_that_goes_on_sending_is_closed_all_the_same)
{
    struct listener_stats stats;
    pthread_t thread;
    hold = true;
    begin(8, 3);
    struct flood f = {.fd = greeted()};
    ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
    while (!atomic_load(&f.over)) {
        serve();
    }
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    while (requests < 3) {
        serve();
    }
    listener_stats(listener, &stats);
    ck_assert_uint_eq(stats.crowded, 1);
    ck_assert_uint_eq(requests, 3);
    ck_assert_int_eq(close(greeted()), 0);
    end();
}
END_TEST

/* NNG 1.5.2 alone would not: it may be between a header and its body. */
START_TEST(the_socket_closes_though_one_goes_on_sending)
{
    pthread_t thread;
    hold = false;
    begin(64, 65);
    struct flood f = {.fd = greeted()};
    ck_assert_int_eq(pthread_create(&thread, NULL, flood, &f), 0);
    while (requests < 1000) {
        serve();
    }
    end();
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
}
END_TEST

/* Whoever gets one could be made to close it. */
START_TEST(descriptors_are_refused_by_the_kernel)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control = {{0}};
    const int given = STDERR_FILENO;
    struct iovec iov = {.iov_base = "x", .iov_len = 1};
    struct msghdr message = {.msg_iov = &iov,
                             .msg_iovlen = 1,
                             .msg_control = control.room,
                             .msg_controllen = sizeof control.room};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof given);
    memcpy(CMSG_DATA(head), &given, sizeof given);
    begin(4, 4);
    (void)close(greeted()); /* by then it accepts */
    int fd = connect_to(path);
    bool known = false;
#ifdef SO_PASSRIGHTS
    const int off = 0;
    known = setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off) == 0;
#endif
    ck_assert_int_eq(sendmsg(fd, &message, MSG_NOSIGNAL), known ? -1 : 1);
    ck_assert(!known || errno == EPERM);
    (void)close(fd);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("nng_guard");
    TCase *tcase = tcase_create("nng_guard");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, peer_that_left_is_a_reset);
    tcase_add_test(tcase, descriptors_are_refused_by_the_kernel);
    tcase_add_test(tcase, listener_outlives_peers_that_leave);
    tcase_add_test(tcase, one_that_goes_on_sending_is_closed_all_the_same);
    tcase_add_test(tcase, the_socket_closes_though_one_goes_on_sending);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
