#include "gpuctl/base/http.h"

#include <errno.h>
#include <gpud/gpud.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define UNIX      "unix:"
#define ROOM      65536u
#define BYTES_MAX (256u * 1024u * 1024u)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_S  UINT64_C(1000000000)

struct answer {
    char *data; /* owned */
    size_t size, room;
};

static uint64_t now_ns(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

/* ---- the connection -------------------------------------------------------------------------- */

static int late(const char *address, struct ctl_err *e)
{
    return ctl_err_set(e, GPUD_ERR_TIMEOUT, "%s did not answer in time", address);
}

/* errno is of connect. */
static int unreachable(const char *address, struct ctl_err *e)
{
    if (errno == EAGAIN || errno == EINPROGRESS || errno == ETIMEDOUT) {
        return late(address, e);
    }
    return ctl_err_set(e, errno == EACCES ? GPUD_ERR_PERMISSION : GPUD_ERR_CONNECT, "%s: %s",
                       address, strerror(errno));
}

/* A server whose backlog is full leaves a connection waiting, so that has a limit, too. */
static int dial(const struct sockaddr *a, socklen_t size, const char *address, uint64_t ns,
                int *ret_fd, struct ctl_err *e)
{
    const struct timeval limit = {.tv_sec = (time_t)(ns / NS_PER_S),
                                  .tv_usec = (suseconds_t)(ns % NS_PER_S / 1000) + (ns < 1000)};
    int rc = 0;
    int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) {
        return ctl_err_errno(e, "a socket");
    }
    if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit) != 0) {
        rc = ctl_err_errno(e, "a limit for a socket");
    } else if (connect(fd, a, size) != 0) {
        rc = unreachable(address, e);
    }
    if (rc != 0) {
        (void)close(fd);
        return rc;
    }
    *ret_fd = fd;
    return 0;
}

static int dial_path(const char *address, uint64_t ns, int *ret_fd, struct ctl_err *e)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    const char *path = address + strlen(UNIX);
    if (strlen(path) >= sizeof a.sun_path) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s: the path is too long", address);
    }
    (void)snprintf(a.sun_path, sizeof a.sun_path, "%s", path);
    return dial((const struct sockaddr *)&a, sizeof a, address, ns, ret_fd, e);
}

static int dial_tcp(const char *address, uint64_t ns, int *ret_fd, struct ctl_err *e)
{
    char host[128];
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    const char *colon = strrchr(address, ':');
    size_t length = colon != NULL ? (size_t)(colon - address) : 0;
    const char *begin = address;
    if (length >= 2 && begin[0] == '[' && begin[length - 1] == ']') {
        begin++;
        length -= 2;
    }
    (void)snprintf(host, sizeof host, "%.*s", (int)length, begin);
    const char *name = strcmp(host, "localhost") == 0 ? "127.0.0.1" : host;
    if (colon == NULL || getaddrinfo(name, colon + 1, &hints, &found) != 0) {
        return ctl_err_set(e, GPUD_ERR_INVALID, "%s: no numeric address with a port", address);
    }
    int rc = dial(found->ai_addr, found->ai_addrlen, address, ns, ret_fd, e);
    freeaddrinfo(found);
    return rc;
}

/* ---- the answer ------------------------------------------------------------------------------ */

static int grow(struct answer *a, struct ctl_err *e)
{
    size_t room = a->room + (a->room < ROOM ? ROOM : a->room);
    char *data = room <= BYTES_MAX ? realloc(a->data, room) : NULL;
    if (data == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "no memory for an answer of %zu bytes", room);
    }
    a->data = data;
    a->room = room;
    return 0;
}

/* Reads until the server closes the connection. */
static int read_all(int fd, const char *address, uint64_t until, struct answer *a,
                    struct ctl_err *e)
{
    for (;;) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        uint64_t now = now_ns();
        int rc = a->size + 1 >= a->room ? grow(a, e) : 0;
        if (rc != 0) {
            return rc;
        }
        if (now >= until) {
            return late(address, e);
        }
        uint64_t ms = (until - now) / NS_PER_MS + 1;
        if (poll(&p, 1, ms > 60000 ? 60000 : (int)ms) <= 0) {
            continue;
        }
        ssize_t n = read(fd, a->data + a->size, a->room - a->size - 1);
        if (n < 0 && errno != EINTR) {
            return ctl_err_errno(e, "%s", address);
        }
        a->size += n > 0 ? (size_t)n : 0;
        a->data[a->size] = '\0';
        if (n == 0) {
            return 0;
        }
    }
}

/* Leaves the body alone in the answer. */
static int take_body(const char *address, struct answer *a, struct ctl_err *e)
{
    static const char version[] = "HTTP/1.1 ";
    char *body = strstr(a->data, "\r\n\r\n");
    const char *length = strcasestr(a->data, "\r\nContent-Length:");
    if (body == NULL || strncmp(a->data, version, sizeof version - 1) != 0 || length == NULL ||
        length > body) {
        return ctl_err_set(e, GPUD_ERR_PROTOCOL, "%s: this is not gpud's answer", address);
    }
    body += strlen("\r\n\r\n");
    size_t size = a->size - (size_t)(body - a->data);
    if (strtoull(length + strlen("\r\nContent-Length:"), NULL, 10) != size) {
        return ctl_err_set(e, GPUD_ERR_IO, "%s: the answer was cut off", address);
    }
    if (strtol(a->data + sizeof version - 1, NULL, 10) != 200) {
        return ctl_err_set(e, GPUD_ERR_IO, "%s: %.*s", address, (int)strcspn(body, "\n"), body);
    }
    memmove(a->data, body, size + 1);
    a->size = size;
    return 0;
}

int http_get(const char *address, const char *path, const char *accept, uint64_t ns,
             char **ret_body, size_t *ret_size, struct ctl_err *e)
{
    struct answer a = {.data = NULL};
    char request[512];
    int fd = -1;
    uint64_t now = now_ns();
    uint64_t until = ns < UINT64_MAX - now ? now + ns : UINT64_MAX;
    int size = snprintf(request, sizeof request,
                        "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: %s\r\n"
                        "Connection: close\r\n\r\n",
                        path, accept);
    int rc = strncmp(address, UNIX, strlen(UNIX)) == 0 ? dial_path(address, ns, &fd, e)
                                                       : dial_tcp(address, ns, &fd, e);
    if (rc == 0 && send(fd, request, (size_t)size, MSG_NOSIGNAL) != size) {
        rc = ctl_err_errno(e, "%s", address);
    }
    rc = rc == 0 ? read_all(fd, address, until, &a, e) : rc;
    rc = rc == 0 ? take_body(address, &a, e) : rc;
    if (fd >= 0) {
        (void)close(fd);
    }
    if (rc != 0) {
        free(a.data);
        return rc;
    }
    *ret_body = a.data;
    *ret_size = a.size;
    return 0;
}
