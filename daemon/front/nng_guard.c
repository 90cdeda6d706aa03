#include "daemon/front/nng_guard.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/descriptors.h"

void nng_guard(void)
{
}

__attribute__((visibility("default"))) ssize_t sendmsg(int fd, const struct msghdr *message,
                                                       int flags)
{
    ssize_t n = (ssize_t)syscall(SYS_sendmsg, fd, message, flags);
    if (n < 0 && errno == EPIPE) {
        errno = ECONNRESET;
    }
    return n;
}

__attribute__((visibility("default"))) int accept(int fd, __SOCKADDR_ARG address, socklen_t *size)
{
    int peer = (int)syscall(SYS_accept4, fd, address.__sockaddr__, size, 0);
    if (peer >= 0 && descriptors_kept(peer)) {
        (void)close(peer);
        errno = EMFILE;
        return -1;
    }
    return peer;
}
