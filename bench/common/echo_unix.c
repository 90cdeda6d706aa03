/*
 * The floor of the operating system: a stream socket with blocking reads and writes. echo_unix goes
 * straight to the server; echo_relay goes like a job, through a process in between and back.
 */
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "bench/common/echo.h"

#define RETRIES 500u /* 10 ms each */

struct echo {
    int fd;
    uint8_t out[ECHO_BYTES];
};

static struct sockaddr_un address_of(const char *path)
{
    struct sockaddr_un at = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof at.sun_path) {
        bench_die("%s: too long for a socket", path);
    }
    memcpy(at.sun_path, path, strlen(path));
    return at;
}

static bool move_all(int fd, uint8_t *data, size_t size, bool reading)
{
    for (size_t at = 0; at < size;) {
        ssize_t n =
            reading ? read(fd, data + at, size - at) : send(fd, data + at, size - at, MSG_NOSIGNAL);
        if (n == 0 || (n < 0 && errno != EINTR)) {
            return false;
        }
        at += n > 0 ? (size_t)n : 0;
    }
    return true;
}

/* Answers messages, as many at a time as one read returns. */
static void answer(int fd)
{
    uint8_t data[ECHO_BYTES * ECHO_SLOTS];
    for (;;) {
        ssize_t n = read(fd, data, sizeof data);
        if (n <= 0) {
            return;
        }
        for (ssize_t at = 0; at < n;) {
            ssize_t m = send(fd, data + at, (size_t)(n - at), MSG_NOSIGNAL);
            if (m <= 0) {
                return;
            }
            at += m;
        }
    }
}

/* Passes each message to a second process, and its answer back, as a front does with a worker. */
static void relay(int fd)
{
    uint8_t data[ECHO_BYTES * ECHO_SLOTS];
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return;
    }
    pid_t end = fork();
    if (end == 0) {
        (void)close(fd);
        (void)close(pair[0]);
        answer(pair[1]);
        _Exit(EXIT_SUCCESS);
    }
    (void)close(pair[1]);
    ssize_t n = 1;
    while (end > 0 && n > 0 && (n = read(fd, data, sizeof data)) > 0) {
        if (!move_all(pair[0], data, (size_t)n, false) ||
            !move_all(pair[0], data, (size_t)n, true) || !move_all(fd, data, (size_t)n, false)) {
            break;
        }
    }
    (void)close(pair[0]); /* ends the other process */
}

static void serve_by(const char *address, void (*serve_one)(int fd))
{
    struct sockaddr_un at = address_of(address);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) != 0 || listen(fd, 64) != 0) {
        bench_die("%s: %s", address, strerror(errno));
    }
    for (;;) {
        int client = accept(fd, NULL, NULL);
        if (client >= 0 && fork() == 0) { /* a process for each client: all calls block */
            serve_one(client);
            _Exit(EXIT_SUCCESS);
        }
        (void)close(client);
    }
}

static void serve(const char *address)
{
    serve_by(address, answer);
}

static void serve_relay(const char *address)
{
    serve_by(address, relay);
}

static struct echo *open_client(const char *address, unsigned outstanding)
{
    struct sockaddr_un at = address_of(address);
    struct echo *c = calloc(1, sizeof *c);
    if (c == NULL) {
        bench_die("no memory");
    }
    (void)outstanding;
    memset(c->out, 0x5a, sizeof c->out);
    c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    for (unsigned i = 0; connect(c->fd, (struct sockaddr *)&at, sizeof at) != 0; i++) {
        const struct timespec pause = {.tv_nsec = 10000000};
        if (i == RETRIES) {
            bench_die("%s: %s", address, strerror(errno));
        }
        (void)nanosleep(&pause, NULL);
    }
    return c;
}

static void begin(struct echo *c, unsigned slot)
{
    c->out[0] = (uint8_t)slot;
    if (!move_all(c->fd, c->out, sizeof c->out, false)) {
        bench_die("unix socket: %s", strerror(errno));
    }
}

static void take(struct echo *c, unsigned slot)
{
    uint8_t in[ECHO_BYTES];
    if (!move_all(c->fd, in, sizeof in, true) || in[0] != (uint8_t)slot || in[1] != 0x5a) {
        bench_die("unix socket: a wrong answer");
    }
}

static void close_client(struct echo *c)
{
    (void)close(c->fd);
    free(c);
}

const struct echo_kind echo_unix = {
    .name = "unix",
    .what = "unix stream socket, 64 bytes, blocking",
    .serve = serve,
    .open = open_client,
    .send = begin,
    .take = take,
    .close = close_client,
};

const struct echo_kind echo_relay = {
    .name = "relay",
    .what = "the same, handed on by a process in between, there and back",
    .serve = serve_relay,
    .open = open_client,
    .send = begin,
    .take = take,
    .close = close_client,
};
