#include "daemon/front/nng_guard.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/descriptors.h"

#if !defined(SO_PASSRIGHTS) && (defined(__x86_64__) || defined(__aarch64__))
#define SO_PASSRIGHTS 83 /* since Linux 6.16 */
#endif

static _Thread_local int asked; /* the last one that was asked about */

void nng_guard(void)
{
}

int nng_guard_descriptor(nng_pipe pipe)
{
    uint64_t pid;
    nng_sockaddr address;
    asked = -1;
    if (nng_pipe_get_uint64(pipe, NNG_OPT_IPC_PEER_PID, &pid) != 0) {
        (void)nng_pipe_get_addr(pipe, NNG_OPT_REMADDR, &address);
    }
    return asked;
}

__attribute__((visibility("default"))) int getsockopt(int fd, int level, int name, void *value,
                                                      socklen_t *size)
{
    asked = fd;
    return (int)syscall(SYS_getsockopt, fd, level, name, value, size);
}

__attribute__((visibility("default"))) int getpeername(int fd, __SOCKADDR_ARG address,
                                                       socklen_t *size)
{
    asked = fd;
    return (int)syscall(SYS_getpeername, fd, address.__sockaddr__, size);
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

/* Who connects has it from the listener. An older kernel does not know it, TCP has no descriptors.
 */
static void refuse_descriptors(int fd)
{
#ifdef SO_PASSRIGHTS
    const int off = 0;
    int before = errno;
    (void)setsockopt(fd, SOL_SOCKET, SO_PASSRIGHTS, &off, sizeof off);
    errno = before;
#else
    (void)fd;
#endif
}

__attribute__((visibility("default"))) int accept(int fd, __SOCKADDR_ARG address, socklen_t *size)
{
    refuse_descriptors(fd);
    int peer = (int)syscall(SYS_accept4, fd, address.__sockaddr__, size, 0);
    if (peer >= 0 && descriptors_kept(peer)) {
        (void)close(peer);
        errno = EMFILE;
        return -1;
    }
    return peer;
}
