#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/torture/shim.h"

#define ENVIRONMENT_MAX 160

bool shim_interrupts(const char *call, int fd, int flags, const void *caller)
{
    static int (*next)(int, int, ...);
    if (next == NULL) {
        *(void **)&next = shim_next("fcntl");
    }
    int kept = errno;
    bool blocks = (flags & MSG_DONTWAIT) == 0 && (next(fd, F_GETFL) & O_NONBLOCK) == 0;
    errno = kept;
    return blocks && shim_fails(KIND_INTERRUPT, call, caller);
}

/* ---- sockets -------------------------------------------------------------------------------- */

STAND_IN(int, socket, KIND_SOCKET, -1, (int family, int type, int protocol),
         (family, type, protocol))
STAND_IN(int, socketpair, KIND_SOCKET, -1, (int family, int type, int protocol, int ends[2]),
         (family, type, protocol, ends))
STAND_IN(int, accept4, KIND_ACCEPT, -1,
         (int fd, struct sockaddr *restrict peer, socklen_t *restrict size, int flags),
         (fd, peer, size, flags))
STAND_IN(int, connect, KIND_PEER, -1, (int fd, const struct sockaddr *to, socklen_t size),
         (fd, to, size))
STAND_IN(int, bind, KIND_PEER, -1, (int fd, const struct sockaddr *to, socklen_t size),
         (fd, to, size))
STAND_IN(int, listen, KIND_PEER, -1, (int fd, int backlog), (fd, backlog))
STAND_IN(int, setsockopt, KIND_PEER, -1,
         (int fd, int level, int name, const void *value, socklen_t size),
         (fd, level, name, value, size))
STAND_IN(int, getsockopt, KIND_PEER, -1,
         (int fd, int level, int name, void *restrict value, socklen_t *restrict size),
         (fd, level, name, value, size))
STAND_IN(int, getsockname, KIND_PEER, -1,
         (int fd, struct sockaddr *restrict out, socklen_t *restrict size), (fd, out, size))

/* Calls that a signal interrupts only while they wait. */
#define STAND_IN_SOCKET(type, name, kind, params, args)                                            \
    SHIM type name params                                                                          \
    {                                                                                              \
        static type(*next) params;                                                                 \
        if (shim_interrupts(#name, fd, flags, __builtin_return_address(0)) ||                      \
            FAILS(kind, #name)) {                                                                  \
            return -1;                                                                             \
        }                                                                                          \
        if (next == NULL) {                                                                        \
            *(void **)&next = shim_next(#name);                                                    \
        }                                                                                          \
        return next args;                                                                          \
    }

STAND_IN_SOCKET(ssize_t, sendmsg, KIND_SEND, (int fd, const struct msghdr *m, int flags),
                (fd, m, flags))
STAND_IN_SOCKET(ssize_t, send, KIND_SEND, (int fd, const void *data, size_t size, int flags),
                (fd, data, size, flags))
STAND_IN_SOCKET(ssize_t, sendto, KIND_SEND,
                (int fd, const void *data, size_t size, int flags, const struct sockaddr *to,
                 socklen_t to_size),
                (fd, data, size, flags, to, to_size))
STAND_IN_SOCKET(ssize_t, recvmsg, KIND_RECV, (int fd, struct msghdr *m, int flags), (fd, m, flags))
STAND_IN_SOCKET(ssize_t, recv, KIND_RECV, (int fd, void *data, size_t size, int flags),
                (fd, data, size, flags))

/* ---- events --------------------------------------------------------------------------------- */

STAND_IN(int, eventfd, KIND_EVENT, -1, (unsigned count, int flags), (count, flags))
STAND_IN(int, epoll_create1, KIND_EVENT, -1, (int flags), (flags))
STAND_IN(int, timerfd_create, KIND_EVENT, -1, (int clock, int flags), (clock, flags))
STAND_IN(int, signalfd, KIND_EVENT, -1, (int fd, const sigset_t *set, int flags), (fd, set, flags))
STAND_IN(int, timerfd_settime, KIND_CONTROL, -1,
         (int fd, int flags, const struct itimerspec *value, struct itimerspec *before),
         (fd, flags, value, before))

SHIM int epoll_ctl(int fd, int operation, int target, struct epoll_event *event)
{
    static int (*next)(int, int, int, struct epoll_event *);
    if (operation == EPOLL_CTL_ADD && FAILS(KIND_CONTROL, "epoll_ctl")) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("epoll_ctl");
    }
    return next(fd, operation, target, event);
}

SHIM int poll(struct pollfd *list, nfds_t count, int timeout)
{
    static int (*next)(struct pollfd *, nfds_t, int);
    if (timeout != 0 && FAILS(KIND_INTERRUPT, "poll")) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("poll");
    }
    return next(list, count, timeout);
}

SHIM int epoll_wait(int fd, struct epoll_event *list, int count, int timeout)
{
    static int (*next)(int, struct epoll_event *, int, int);
    if (timeout != 0 && FAILS(KIND_INTERRUPT, "epoll_wait")) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("epoll_wait");
    }
    return next(fd, list, count, timeout);
}

SHIM pid_t waitpid(pid_t pid, int *status, int flags)
{
    static pid_t (*next)(pid_t, int *, int);
    if ((flags & WNOHANG) == 0 && FAILS(KIND_INTERRUPT, "waitpid")) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("waitpid");
    }
    return next(pid, status, flags);
}

STAND_IN(int, nanosleep, KIND_INTERRUPT, -1, (const struct timespec *time, struct timespec *left),
         (time, left))

/* ---- processes ------------------------------------------------------------------------------ */

STAND_IN(pid_t, fork, KIND_PROCESS, -1, (void), ())
STAND_IN(int, execv, KIND_PROCESS, -1, (const char *path, char *const argv[]), (path, argv))
STAND_IN(int, close_range, KIND_CONTROL, -1, (unsigned first, unsigned last, int flags),
         (first, last, flags))
STAND_IN(int, setrlimit, KIND_CONTROL, -1,
         (__rlimit_resource_t resource, const struct rlimit *limit), (resource, limit))

SHIM int posix_spawn(pid_t *restrict pid, const char *restrict path,
                     const posix_spawn_file_actions_t *restrict actions,
                     const posix_spawnattr_t *restrict attributes, char *const argv[restrict],
                     char *const env[restrict])
{
    static int (*next)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const *, char *const *);
    if (FAILS(KIND_PROCESS, "posix_spawn")) {
        return EAGAIN;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("posix_spawn");
    }
    return next(pid, path, actions, attributes, argv, env);
}

SHIM int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes,
                        void *(*work)(void *), void *restrict data)
{
    static int (*next)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    if (FAILS(KIND_THREAD, "pthread_create")) {
        return EAGAIN;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("pthread_create");
    }
    return next(thread, attributes, work, data);
}

/* The launcher gives its children few variables: with the shim and its page the worker and the
 * compiler are under torture, too. */
SHIM int fexecve(int fd, char *const argv[], char *const env[])
{
    static int (*next)(int, char *const *, char *const *);
    char preload[300];
    char page[300];
    char *all[ENVIRONMENT_MAX + 3];
    size_t count = 0;
    if (FAILS(KIND_PROCESS, "fexecve")) {
        return -1;
    }
    for (; env[count] != NULL && count < ENVIRONMENT_MAX; count++) {
        all[count] = env[count];
    }
    const char *path = getenv(TORTURE_PAGE);
    if (shim_path()[0] != '\0' && path != NULL) {
        (void)snprintf(preload, sizeof preload, "LD_PRELOAD=%s", shim_path());
        (void)snprintf(page, sizeof page, "%s=%s", TORTURE_PAGE, path);
        all[count++] = preload;
        all[count++] = page;
    }
    all[count] = NULL;
    if (next == NULL) {
        *(void **)&next = shim_next("fexecve");
    }
    return next(fd, argv, all);
}
