/* Answers of servers that are whole, cut off, refused, late or no answers at all. */
#include "gpuctl/base/http.h"

#include <gpud/gpud.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "tests/unit/common/suite.h"

#define SECOND UINT64_C(1000000000)

static char dir[] = "/tmp/gpud-http-XXXXXX";
static char path[64];
static char address[80];
static int listener;

static void setup(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/s", dir);
    (void)snprintf(address, sizeof address, "unix:%s", path);
    (void)snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listener, (const struct sockaddr *)&a, sizeof a), 0);
    ck_assert_int_eq(listen(listener, 4), 0);
}

static void teardown(void)
{
    (void)close(listener);
    (void)unlink(path);
    (void)rmdir(dir);
}

static void *serve(void *data)
{
    char request[1024];
    const char *answer = data;
    int fd = accept(listener, NULL, NULL);
    (void)!read(fd, request, sizeof request);
    (void)send(fd, answer, strlen(answer), MSG_NOSIGNAL);
    (void)close(fd);
    return NULL;
}

static int get(const char *answer, char **ret_body, size_t *ret_size, struct ctl_err *e)
{
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, serve, (void *)answer), 0);
    int rc = http_get(address, "/metrics", "text/plain", 60 * SECOND, ret_body, ret_size, e);
    (void)pthread_join(thread, NULL);
    return rc;
}

START_TEST(a_body_comes_alone)
{
    char *body = NULL;
    size_t size = 0;
    struct ctl_err e;
    ck_assert_int_eq(
        get("HTTP/1.1 200 OK\r\ncontent-length: 5\r\nX: y\r\n\r\na 1\n\n", &body, &size, &e), 0);
    ck_assert_uint_eq(size, 5);
    ck_assert_str_eq(body, "a 1\n\n");
    free(body);
}
END_TEST

START_TEST(other_answers_are_errors)
{
    static const struct {
        const char *answer, *says;
        int code;
    } bad[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\na 1\n", "cut off", GPUD_ERR_IO},
        {"HTTP/1.1 503 No\r\nContent-Length: 8\r\n\r\nno room\n", "no room", GPUD_ERR_IO},
        {"", "not gpud's answer", GPUD_ERR_PROTOCOL},
        {"220 smtp.example.org ESMTP\r\n", "not gpud's answer", GPUD_ERR_PROTOCOL},
        {"HTTP/1.1 200 OK\r\n\r\nContent-Length: 3", "not gpud's answer", GPUD_ERR_PROTOCOL}};
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char *body = NULL;
        size_t size = 0;
        struct ctl_err e;
        ck_assert_int_eq(get(bad[i].answer, &body, &size, &e), bad[i].code);
        ck_assert_msg(strstr(e.text, bad[i].says) != NULL, "%s", e.text);
        ck_assert_ptr_null(body);
    }
}
END_TEST

START_TEST(a_server_that_is_silent_is_given_up)
{
    char *body = NULL;
    size_t size = 0;
    struct ctl_err e; /* the backlog takes the connection, and nothing accepts it */
    ck_assert_int_eq(http_get(address, "/metrics", "text/plain", SECOND / 50, &body, &size, &e),
                     GPUD_ERR_TIMEOUT);
}
END_TEST

static void *trickle(void *data)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    (void)data;
    int fd = accept(listener, NULL, NULL);
    while (send(fd, "H", 1, MSG_NOSIGNAL) == 1) { /* until the reader gives up */
        (void)nanosleep(&pause, NULL);
    }
    (void)close(fd);
    return NULL;
}

START_TEST(an_answer_that_comes_byte_by_byte_is_given_up)
{
    char *body = NULL;
    size_t size = 0;
    struct ctl_err e;
    pthread_t thread;
    ck_assert_int_eq(pthread_create(&thread, NULL, trickle, NULL), 0);
    ck_assert_int_eq(http_get(address, "/metrics", "text/plain", SECOND / 50, &body, &size, &e),
                     GPUD_ERR_TIMEOUT);
    (void)pthread_join(thread, NULL);
}
END_TEST

START_TEST(a_server_without_room_for_connections_is_given_up)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd[16];
    unsigned count = 0;
    bool room = true;
    char *body = NULL;
    size_t size = 0;
    struct ctl_err e;
    (void)snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    while (room) {
        ck_assert_uint_lt(count, 16);
        fd[count] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        room = connect(fd[count++], (const struct sockaddr *)&a, sizeof a) == 0;
    }
    ck_assert_int_eq(http_get(address, "/metrics", "text/plain", SECOND / 50, &body, &size, &e),
                     GPUD_ERR_TIMEOUT);
    while (count > 0) {
        (void)close(fd[--count]);
    }
}
END_TEST

START_TEST(a_socket_of_other_users_is_no_server_that_is_down)
{
    uid_t root = geteuid();
    char *body = NULL;
    size_t size = 0;
    struct ctl_err e;
    ck_assert_int_eq(chmod(path, 0), 0);
    ck_assert_int_eq(root != 0 ? 0 : seteuid(65534), 0); /* root may use every socket */
    int rc = http_get(address, "/metrics", "text/plain", SECOND, &body, &size, &e);
    ck_assert_int_eq(root != 0 ? 0 : seteuid(root), 0);
    ck_assert_int_eq(rc, GPUD_ERR_PERMISSION);
}
END_TEST

START_TEST(addresses_without_a_server)
{
    static const char *const bad[] = {"127.0.0.1", "host.example:80", "[::1]x", ""};
    char *body = NULL;
    size_t size = 0;
    struct ctl_err e;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_assert_int_eq(http_get(bad[i], "/", "text/plain", SECOND, &body, &size, &e),
                         GPUD_ERR_INVALID);
    }
    ck_assert_int_eq(http_get("unix:/nowhere/s", "/", "text/plain", SECOND, &body, &size, &e),
                     GPUD_ERR_CONNECT);
    ck_assert_int_eq(http_get("[::1]:1", "/", "text/plain", SECOND, &body, &size, &e),
                     GPUD_ERR_CONNECT);
}
END_TEST

SUITE_MAIN_IN("http", setup, teardown, a_body_comes_alone, other_answers_are_errors,
              a_server_that_is_silent_is_given_up, an_answer_that_comes_byte_by_byte_is_given_up,
              a_server_without_room_for_connections_is_given_up,
              a_socket_of_other_users_is_no_server_that_is_down, addresses_without_a_server)
