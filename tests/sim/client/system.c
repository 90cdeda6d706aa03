/*
 * The system as libgpud sees it: sockets, epoll, timers, eventfds, the clock, random numbers. The
 * numbers of descriptors are real, so that none is used twice and one that is left is found.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/client/libsim.h"

#define FDS_MAX      1024
#define WATCHES_MAX  8u
#define PAUSE_NS     (100 * NS_PER_US) /* between two looks at a real descriptor */
#define PAUSE_MAX_NS (50 * NS_PER_MS)
#define SPINS_MAX    20000u
#define PEERS_MAX    256u /* connections for descriptors that the front has not accepted yet */
#define REAL         __attribute__((visibility("default")))

enum kind { KIND_NONE, KIND_SOCKET, KIND_EPOLL, KIND_TIMER, KIND_EVENT };

/* new → connecting → open → ended, or new → open; any → failed */
enum socket_state { SOCKET_NEW, SOCKET_CONNECTING, SOCKET_OPEN, SOCKET_ENDED, SOCKET_FAILED };

struct descriptor {
    enum kind kind;
    struct user *user;
    /* a socket */
    enum socket_state state;
    int error;
    struct wire *wire;
    uint8_t *in; /* owned; bytes that wait from `at` on */
    size_t size, at;
    /* an epoll */
    struct watch {
        int fd;
        uint32_t events;
        int bell; /* owned: a real epoll of a descriptor that is watched by its edges; -1 */
        bool rung;
    } watch[WATCHES_MAX];
    unsigned watches;
    unsigned spins;     /* waits that began at one time */
    uint64_t waited_ns; /* that time */
    uint64_t due_ns;    /* of a timer */
    uint64_t count;     /* of an eventfd */
};

static struct descriptor table[FDS_MAX];
static struct {
    struct peer_uid {
        uint32_t uid;
        uint64_t era;
    } of[PEERS_MAX]; /* a ring */
    unsigned first, end;
} peers;
static struct sim *world;

REAL uint64_t __wrap_clock_now_ns(void);
REAL ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags);
REAL int __wrap_socket(int domain, int type, int protocol);
REAL int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size);
REAL int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
int __real_getsockopt(int fd, int level, int name, void *value, socklen_t *size);
REAL int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                               void *arg);
REAL int __wrap_connect(int fd, const struct sockaddr *at, socklen_t size);
REAL ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
REAL ssize_t __wrap_recv(int fd, void *data, size_t room, int flags);
REAL int __wrap_poll(struct pollfd *p, nfds_t count, int timeout_ms);
REAL int __wrap_epoll_create1(int flags);
REAL int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event);
REAL int __wrap_epoll_wait(int epoll, struct epoll_event *event, int most, int timeout_ms);
REAL int __wrap_timerfd_create(clockid_t clock, int flags);
REAL int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
                                struct itimerspec *before);
REAL int __wrap_eventfd(unsigned count, int flags);
REAL ssize_t __wrap_read(int fd, void *data, size_t size);
REAL ssize_t __wrap_write(int fd, const void *data, size_t size);
REAL int __wrap_close(int fd);
REAL int __wrap_nanosleep(const struct timespec *time, struct timespec *left);

/* What follows is not libgpud's code until inside. */
static struct user *outside(void)
{
    memory_of(NULL);
    return user_now();
}

static void inside(struct user *u)
{
    memory_of(u);
}

/* NULL: a descriptor of the real system. */
static struct descriptor *find(int fd)
{
    return fd >= 0 && fd < FDS_MAX && table[fd].kind != KIND_NONE ? &table[fd] : NULL;
}

static struct descriptor *must(int fd, enum kind kind)
{
    struct descriptor *d = find(fd);
    if (d == NULL || d->kind != kind) {
        sim_fail(world, "system: descriptor %d of libgpud is not what it was, or is closed", fd);
    }
    return d;
}

static int make(enum kind kind)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0 || fd >= FDS_MAX) {
        sim_fail(world, "system: no descriptor is left");
    }
    table[fd] = (struct descriptor){.kind = kind, .user = user_now(), .due_ns = NS_NEVER};
    return fd;
}

void system_begin(struct sim *s)
{
    world = s;
    memset(table, 0, sizeof table);
    memset(&peers, 0, sizeof peers);
}

void system_end(struct sim *s)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        if (table[fd].kind != KIND_NONE) {
            sim_fail(s, "left: user %u has left descriptor %d open", table[fd].user->index, fd);
        }
    }
}

/* ---- the clock ------------------------------------------------------------------------------- */

uint64_t __wrap_clock_now_ns(void)
{
    return world->now_ns;
}

int __wrap_timerfd_create(clockid_t clock, int flags)
{
    (void)clock;
    (void)flags;
    return make(KIND_TIMER);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at,
                           struct itimerspec *before)
{
    (void)flags;
    (void)before;
    struct descriptor *d = must(fd, KIND_TIMER);
    uint64_t ns = (uint64_t)at->it_value.tv_sec * NS_PER_S + (uint64_t)at->it_value.tv_nsec;
    d->due_ns = ns > 0 ? ns : NS_NEVER;
    struct user *u = outside();
    d->user->timer_ns = d->due_ns; /* a client has one timer */
    user_wakes(d->user);
    inside(u);
    return 0;
}

int __wrap_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    uint64_t until = world->now_ns + (uint64_t)time->tv_sec * NS_PER_S + (uint64_t)time->tv_nsec;
    while (world->now_ns < until) {
        user_sleep(until);
    }
    return 0;
}

/* The id of a client, once for each life. */
ssize_t __wrap_getrandom(void *data, size_t size, unsigned flags)
{
    (void)flags;
    struct sim_client *c = user_now()->c;
    uint64_t half[2] = {chance_mix(c->index + 1), chance_mix(c->lives + world->course->seed)};
    if (size != sizeof half || size != sizeof c->id) {
        sim_fail(world, "system: %zu random bytes", size);
    }
    memcpy(data, half, size);
    memcpy(c->id, half, size);
    return (ssize_t)size;
}

/* The front finds no thread, so it does in its own what it would offload. */
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                          void *arg)
{
    (void)thread;
    (void)attr;
    (void)run;
    (void)arg;
    return EAGAIN;
}

/* ---- sockets --------------------------------------------------------------------------------- */

int __wrap_socket(int domain, int type, int protocol)
{
    return (type & SOCK_SEQPACKET) == SOCK_SEQPACKET ? socket(domain, type, protocol)
                                                     : make(KIND_SOCKET);
}

int __wrap_setsockopt(int fd, int level, int name, const void *value, socklen_t size)
{
    return find(fd) != NULL ? 0 : setsockopt(fd, level, name, value, size);
}

static int fail(int error)
{
    errno = error;
    return -1;
}

static uint64_t luck(const struct descriptor *d)
{
    return chance_mix(d->user->s->pipes ^ world->now_ns ^ world->course->seed);
}

static void on_connected(struct sim *s, const struct hap *h)
{
    (void)s;
    struct descriptor *d = find((int)h->a);
    if (d != NULL && d->kind == KIND_SOCKET && d->state == SOCKET_CONNECTING &&
        d->user == h->actor) {
        d->wire = wire_open(d->user, (int)h->a);
        d->state = d->wire != NULL ? SOCKET_OPEN : SOCKET_FAILED;
        d->error = d->wire != NULL ? 0 : ECONNREFUSED;
        user_poke(d->user);
    }
}

/* To the front's real socket for descriptors. Some users are in a container that does not have it.
 * Others do not reach it now and then, so a restarted front does not get their memory. */
static int connect_real(int fd, const struct sockaddr *at, socklen_t size)
{
    struct user *u = user_now();
    uint64_t often = chance_mix(world->course->seed ^ u->index) % 6;
    uint64_t now = chance_mix(world->course->seed ^ u->index ^ world->now_ns) % 24;
    if (often == 0 || now == 0) {
        u->lacks = true;
        return fail(often == 0 ? ENOENT : EACCES);
    }
    int rc = connect(fd, at, size);
    u->lacks = u->lacks || rc != 0;
    if (rc == 0) {
        peers.of[peers.end++ % PEERS_MAX] = (struct peer_uid){.uid = u->c->uid, .era = world->era};
    }
    return rc;
}

int __wrap_connect(int fd, const struct sockaddr *at, socklen_t size)
{
    struct descriptor *d = find(fd);
    if (d == NULL) {
        return connect_real(fd, at, size);
    }
    struct user *u = outside();
    if (luck(d) % 3 == 0) {
        d->state = SOCKET_CONNECTING;
        sim_at(world, world->now_ns + luck(d) % NS_PER_MS, on_connected, d->user, (uint64_t)fd, 0);
        inside(u);
        return fail(EINPROGRESS);
    }
    d->wire = wire_open(d->user, fd);
    inside(u);
    if (d->wire == NULL) {
        return fail(luck(d) % 2 == 0 ? ENOENT : ECONNREFUSED);
    }
    d->state = SOCKET_OPEN;
    return 0;
}

/* The front asks for the user of a connection for descriptors, in the order of their begins. */
static int peer_of(int fd, struct ucred *ret_peer, socklen_t *size)
{
    int rc = __real_getsockopt(fd, SOL_SOCKET, SO_PEERCRED, ret_peer, size);
    bool found = false;
    while (!found && !fiber_runs() && peers.first != peers.end) {
        const struct peer_uid *p = &peers.of[peers.first++ % PEERS_MAX];
        found = p->era == world->era; /* else its front has ended */
        ret_peer->uid = found ? p->uid : ret_peer->uid;
    }
    return rc;
}

int __wrap_getsockopt(int fd, int level, int name, void *value, socklen_t *size)
{
    struct descriptor *d = find(fd);
    if (d == NULL) {
        return level == SOL_SOCKET && name == SO_PEERCRED
                   ? peer_of(fd, value, size)
                   : __real_getsockopt(fd, level, name, value, size);
    }
    memcpy(value, &d->error, sizeof d->error);
    return 0;
}

static bool readable(const struct descriptor *d)
{
    return d->at < d->size || d->state >= SOCKET_ENDED;
}

static bool writable(const struct descriptor *d)
{
    return d->state >= SOCKET_OPEN;
}

/* Now and then the socket has little room. */
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags)
{
    struct descriptor *d = find(fd);
    if (d == NULL) {
        return sendmsg(fd, m, flags);
    }
    if (d->state != SOCKET_OPEN || d->user->dying) {
        return fail(EPIPE);
    }
    uint64_t r = chance_mix(luck(d) ^ d->wire->there_ns);
    size_t room = r % 16 == 0 ? 1 + r / 16 % 64 : SIZE_MAX;
    size_t sent = 0;
    struct user *u = outside();
    for (size_t i = 0; i < m->msg_iovlen && room > 0; i++) {
        const struct iovec *v = &m->msg_iov[i];
        size_t part = v->iov_len < room ? v->iov_len : room;
        if (part > 0) {
            wire_send(d->wire, bytes_of(v->iov_base, part));
        }
        room -= part;
        sent += part;
    }
    inside(u);
    return (ssize_t)sent;
}

ssize_t __wrap_recv(int fd, void *data, size_t room, int flags)
{
    struct descriptor *d = find(fd);
    if (d == NULL) {
        return recv(fd, data, room, flags);
    }
    size_t size = d->size - d->at;
    if (size == 0) {
        return d->state == SOCKET_ENDED    ? 0
               : d->state == SOCKET_FAILED ? fail(d->error)
                                           : fail(EAGAIN);
    }
    size = size < room ? size : room;
    uint64_t r = chance_mix(luck(d) ^ d->at ^ d->size);
    if (r % 16 == 0 && size > 1) { /* as if the rest came later */
        size = 1 + r / 16 % (size - 1);
    }
    memcpy(data, d->in + d->at, size);
    d->at += size;
    return (ssize_t)size;
}

void system_arrives(int fd, struct bytes data)
{
    struct descriptor *d = must(fd, KIND_SOCKET);
    size_t left = d->size - d->at;
    uint8_t *in = malloc(left + data.size);
    if (left > 0) {
        memcpy(in, d->in + d->at, left);
    }
    memcpy(in + left, data.data, data.size);
    free(d->in);
    d->in = in;
    d->size = left + data.size;
    d->at = 0;
    user_poke(d->user);
}

void system_ends(int fd, int error)
{
    struct descriptor *d = must(fd, KIND_SOCKET);
    d->state = error == 0 ? SOCKET_ENDED : SOCKET_FAILED;
    d->error = error;
    user_poke(d->user);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static uint32_t events_of(int fd);

static uint32_t events_at(struct watch *w)
{
    struct epoll_event event;
    if (w->bell >= 0) {
        w->rung = w->rung || epoll_wait(w->bell, &event, 1, 0) > 0;
        return w->rung ? w->events : 0;
    }
    return events_of(w->fd) & w->events;
}

static bool epoll_has(struct descriptor *d)
{
    for (unsigned i = 0; i < d->watches; i++) {
        if (events_at(&d->watch[i]) != 0) {
            return true;
        }
    }
    return false;
}

/* EPOLLIN and EPOLLOUT, as they are now. */
static uint32_t events_of(int fd)
{
    struct descriptor *d = find(fd);
    if (d == NULL) {
        struct pollfd p = {.fd = fd, .events = POLLIN};
        return poll(&p, 1, 0) > 0 ? EPOLLIN : 0;
    }
    switch (d->kind) {
    case KIND_SOCKET:
        return (readable(d) ? EPOLLIN : 0) | (writable(d) ? EPOLLOUT : 0);
    case KIND_EPOLL:
        return epoll_has(d) ? EPOLLIN : 0;
    case KIND_TIMER:
        return d->due_ns <= world->now_ns ? EPOLLIN : 0;
    default:
        return d->count > 0 ? EPOLLIN : 0;
    }
}

bool system_ready(int fd)
{
    return (events_of(fd) & EPOLLIN) != 0;
}

int __wrap_poll(struct pollfd *p, nfds_t count, int timeout_ms)
{
    struct descriptor *d = count == 1 ? find(p->fd) : NULL;
    if (d != NULL) {
        p->revents = writable(d) ? POLLOUT : 0;
        return p->revents != 0;
    }
    uint64_t until = ns_add(world->now_ns, (uint64_t)timeout_ms * NS_PER_MS);
    int ready = poll(p, count, 0);
    while (ready == 0 && world->now_ns < until) {
        user_sleep(world->now_ns + PAUSE_NS);
        ready = poll(p, count, 0);
    }
    return ready;
}

int __wrap_epoll_create1(int flags)
{
    (void)flags;
    return make(KIND_EPOLL);
}

/* A real descriptor that is watched by its edges: a bell of the front. */
static int bell_make(int fd)
{
    struct epoll_event event = {.events = EPOLLOUT | EPOLLET};
    int bell = epoll_create1(EPOLL_CLOEXEC);
    if (bell < 0 || epoll_ctl(bell, EPOLL_CTL_ADD, fd, &event) != 0) {
        sim_fail(world, "system: no bell");
    }
    return bell;
}

static void watch_drop(struct descriptor *d, unsigned i)
{
    if (d->watch[i].bell >= 0) {
        (void)close(d->watch[i].bell);
    }
    d->watch[i] = d->watch[--d->watches];
}

void system_rung(void)
{
    for (int fd = 0; fd < FDS_MAX; fd++) {
        struct descriptor *d = &table[fd];
        for (unsigned i = 0; d->kind == KIND_EPOLL && i < d->watches; i++) {
            if (d->watch[i].bell >= 0) {
                user_poke(d->user);
            }
        }
    }
}

static unsigned watch_find(const struct descriptor *d, int fd)
{
    unsigned i = 0;
    while (i < d->watches && d->watch[i].fd != fd) {
        i++;
    }
    return i;
}

/* The front has answered over a real socket, or will. */
static void on_look(struct sim *s, const struct hap *h)
{
    struct descriptor *d = h->actor;
    int fd = (int)h->a;
    if (d->kind != KIND_EPOLL || watch_find(d, fd) == d->watches || find(fd) != NULL) {
        return;
    }
    if ((events_of(fd) & EPOLLIN) != 0) {
        user_poke(d->user);
    } else {
        uint64_t pause_ns = h->b < PAUSE_MAX_NS ? 2 * h->b : h->b;
        sim_at(s, s->now_ns + pause_ns, on_look, d, h->a, pause_ns);
    }
}

int __wrap_epoll_ctl(int epoll, int op, int fd, struct epoll_event *event)
{
    struct descriptor *d = must(epoll, KIND_EPOLL);
    unsigned i = watch_find(d, fd);
    if (op == EPOLL_CTL_ADD) {
        if (i < d->watches || i == WATCHES_MAX) {
            return fail(i < d->watches ? EEXIST : ENOSPC);
        }
        d->watches++;
    } else if (i == d->watches) {
        return fail(ENOENT);
    }
    if (op == EPOLL_CTL_DEL) {
        watch_drop(d, i);
        return 0;
    }
    bool real = op == EPOLL_CTL_ADD && find(fd) == NULL;
    bool edges = (event->events & EPOLLET) != 0;
    if (op == EPOLL_CTL_ADD) {
        d->watch[i] = (struct watch){.bell = real && edges ? bell_make(fd) : -1};
    }
    d->watch[i].fd = fd;
    d->watch[i].events = event->events & (EPOLLIN | EPOLLOUT);
    if (real && !edges) {
        struct user *u = outside();
        sim_at(world, world->now_ns + PAUSE_NS, on_look, d, (uint64_t)fd, PAUSE_NS);
        inside(u);
    }
    return 0;
}

static int collect(struct descriptor *d, struct epoll_event *event, int most)
{
    int count = 0;
    for (unsigned i = 0; i < d->watches && count < most; i++) {
        uint32_t events = events_at(&d->watch[i]);
        d->watch[i].rung = false;
        if (events != 0) {
            event[count++] = (struct epoll_event){.events = events, .data.fd = d->watch[i].fd};
        }
    }
    return count;
}

int __wrap_epoll_wait(int epoll, struct epoll_event *event, int most, int timeout_ms)
{
    struct descriptor *d = must(epoll, KIND_EPOLL);
    uint64_t until =
        timeout_ms < 0 ? NS_NEVER : ns_add(world->now_ns, (uint64_t)timeout_ms * NS_PER_MS);
    int count = collect(d, event, most);
    d->spins = d->waited_ns == world->now_ns ? d->spins + 1 : 0;
    d->waited_ns = world->now_ns;
    if (d->spins > SPINS_MAX) {
        sim_fail(world, "loop: %s of user %u waits for what is ready, and does not take it",
                 d->user->call, d->user->index);
    }
    while (count == 0 && world->now_ns < until) {
        user_sleep(until);
        count = collect(d, event, most);
    }
    return count;
}

/* ---- eventfds, and the end of descriptors ---------------------------------------------------- */

int __wrap_eventfd(unsigned count, int flags)
{
    (void)flags;
    int fd = make(KIND_EVENT);
    table[fd].count = count;
    return fd;
}

ssize_t __wrap_read(int fd, void *data, size_t size)
{
    struct descriptor *d = find(fd);
    if (d == NULL) {
        return read(fd, data, size);
    }
    uint64_t count = 0;
    if (d->kind == KIND_TIMER && d->due_ns <= world->now_ns) {
        count = 1;
        d->due_ns = d->user->timer_ns = NS_NEVER;
    } else if (d->kind == KIND_EVENT) {
        count = d->count;
        d->count = 0;
    }
    if (count == 0) {
        return fail(EAGAIN);
    }
    memcpy(data, &count, sizeof count);
    return sizeof count;
}

ssize_t __wrap_write(int fd, const void *data, size_t size)
{
    struct descriptor *d = find(fd);
    uint64_t count = 0;
    if (d == NULL) {
        return write(fd, data, size);
    }
    memcpy(&count, data, sizeof count);
    must(fd, KIND_EVENT)->count += count;
    struct user *u = outside();
    user_poke(d->user);
    inside(u);
    return sizeof count;
}

/* As the system does it: an epoll forgets a descriptor that is closed. */
static void unwatch(int fd)
{
    for (int i = 0; i < FDS_MAX; i++) {
        unsigned at = table[i].kind == KIND_EPOLL ? watch_find(&table[i], fd) : 0;
        if (table[i].kind == KIND_EPOLL && at < table[i].watches) {
            watch_drop(&table[i], at);
        }
    }
}

int __wrap_close(int fd)
{
    struct descriptor *d = find(fd);
    unwatch(fd);
    if (d != NULL) {
        struct user *u = outside();
        if (d->wire != NULL) {
            wire_closed(d->wire);
        }
        if (d->kind == KIND_TIMER) {
            d->user->timer_ns = NS_NEVER;
        }
        while (d->watches > 0) {
            watch_drop(d, 0);
        }
        free(d->in);
        *d = (struct descriptor){.kind = KIND_NONE};
        inside(u);
    }
    return close(fd);
}
