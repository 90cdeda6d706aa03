/* A request to the metrics of a daemon under test. It fails the test rather than returning an
 * error. */
#ifndef TESTS_SYSTEM_HTTP_H
#define TESTS_SYSTEM_HTTP_H

#include <arpa/inet.h>
#include <check.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HTTP_ROOM (1u << 20)

/* Connects to 127.0.0.1:PORT and sends this. The caller owns the connection; -1: nothing listens
 * there. */
static inline int http_say(unsigned port, const char *text)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    if (connect(fd, (const struct sockaddr *)&a, sizeof a) != 0) {
        (void)close(fd);
        return -1;
    }
    ck_assert_int_eq(send(fd, text, strlen(text), MSG_NOSIGNAL), (ssize_t)strlen(text));
    return fd;
}

/* Asks 127.0.0.1:PORT. The body, in memory of HTTP_ROOM bytes. Returns the status; 0: nothing
 * listens there. */
static inline int http_get(unsigned port, const char *path, const char *accept, char *ret_body)
{
    char request[256];
    char *head = malloc(HTTP_ROOM);
    size_t used = 0;
    ssize_t n;
    int status = 0;
    ck_assert_ptr_nonnull(head);
    (void)snprintf(request, sizeof request,
                   "GET %s HTTP/1.1\r\nHost: x\r\nAccept: %s\r\nConnection: close\r\n\r\n", path,
                   accept);
    int fd = http_say(port, request);
    while (fd >= 0 && (n = read(fd, head + used, HTTP_ROOM - 1 - used)) > 0) {
        used += (size_t)n;
    }
    head[used] = '\0';
    if (fd >= 0) {
        const char *body = strstr(head, "\r\n\r\n");
        ck_assert_msg(body != NULL && sscanf(head, "HTTP/1.1 %d ", &status) == 1, "%s", head);
        memcpy(ret_body, body + 4, strlen(body + 4) + 1);
        (void)close(fd);
    }
    free(head);
    return status;
}

/* The value behind the name and its labels, as "gpud_sessions" or "a{b=\"c\"}"; -1: it is not
 * there. */
static inline double http_value(const char *text, const char *sample)
{
    size_t length = strlen(sample);
    for (const char *at = strstr(text, sample); at != NULL; at = strstr(at + 1, sample)) {
        if ((at == text || at[-1] == '\n') && at[length] == ' ') {
            return strtod(at + length, NULL);
        }
    }
    return -1;
}

#endif
