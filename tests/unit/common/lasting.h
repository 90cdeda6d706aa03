/* A descriptor whose last close takes an hour. */
#ifndef TEST_LASTING_H
#define TEST_LASTING_H

#include <check.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/* A connection full of unread bytes, which has to be drained before it is closed; *ret_reader ends
 * it. The caller owns both. */
static inline int lasting(int *ret_reader)
{
    static const char bytes[65536];
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    const struct linger linger = {.l_onoff = 1, .l_linger = 3600};
    int listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(listening, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(listening, 1), 0);
    ck_assert_int_eq(getsockname(listening, (struct sockaddr *)&at, &size), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&at, sizeof at), 0);
    *ret_reader = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
    ck_assert_int_ge(*ret_reader, 0);
    (void)close(listening);
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) {
    }
    return fd;
}

#endif
