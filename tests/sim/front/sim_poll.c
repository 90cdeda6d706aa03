/*
 * The loop of the front polls its descriptors several times in each step of a world, mostly for
 * nothing. All that can make one of them readable is done by this process: the calls below stand
 * before those of the C library, for libuv too, and note that. Without one since the last poll that
 * found nothing, a poll that would not wait finds nothing again: it spares its system call, a fifth
 * of what a world takes. Thread: any.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

static atomic_bool changed = true; /* since the last poll; set behind the change */

/* X(type, name, parameters, arguments) */
#define CALLS(X)                                                                                   \
    X(ssize_t, write, (int fd, const void *bytes, size_t count), (fd, bytes, count))               \
    X(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count))         \
    X(ssize_t, send, (int fd, const void *bytes, size_t count, int flags),                         \
      (fd, bytes, count, flags))                                                                   \
    X(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))   \
    X(int, connect, (int fd, const struct sockaddr *to, socklen_t bytes), (fd, to, bytes))         \
    X(int, shutdown, (int fd, int how), (fd, how))                                                 \
    X(int, close, (int fd), (fd))                                                                  \
    X(int, epoll_ctl, (int set, int what, int fd, struct epoll_event *event),                      \
      (set, what, fd, event))

#define REAL(type, name, params, args) type(*name) params;
static struct {
    CALLS(REAL)
    int (*epoll_wait)(int set, struct epoll_event *event, int most, int timeout_ms);
} real;

/* Libraries may use them before any constructor of the program runs. */
static void find_calls(void)
{
#define FIND(type, name, params, args) real.name = dlsym(RTLD_NEXT, #name);
    CALLS(FIND)
    real.epoll_wait = dlsym(RTLD_NEXT, "epoll_wait");
}

#pragma GCC visibility push(default)
#define STAND_BEFORE(type, name, params, args)                                                     \
    type name params                                                                               \
    {                                                                                              \
        if (real.name == NULL) {                                                                   \
            find_calls();                                                                          \
        }                                                                                          \
        type result = real.name args;                                                              \
        atomic_store(&changed, true);                                                              \
        return result;                                                                             \
    }
CALLS(STAND_BEFORE)

int epoll_wait(int set, struct epoll_event *event, int most, int timeout_ms)
{
    if (timeout_ms == 0 && !atomic_exchange(&changed, false)) {
        return 0;
    }
    if (real.epoll_wait == NULL) {
        find_calls();
    }
    int found = real.epoll_wait(set, event, most, timeout_ms);
    if (found != 0) { /* some may be left */
        atomic_store(&changed, true);
    }
    return found;
}
#pragma GCC visibility pop
