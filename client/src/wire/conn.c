#include "client/src/wire/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/descriptors.h"
#include "common/steps.h"

#define INPUT_BYTES (64u * 1024u)
#define IOV_MAX_OUT 32
#define WAIT_EVENTS 4 /* socket, timer, bell, claim */

static int watch(int epoll, int op, int fd, uint32_t events)
{
    struct epoll_event ev = {.events = events, .data.fd = fd};
    return epoll_ctl(epoll, op, fd, &ev);
}

int conn_init(struct conn *c, const struct address *address, struct tls *tls, size_t limit,
              struct err *e)
{
    *c = (struct conn){
        .fd = -1, .address = address, .tls = tls, .limit = limit, .timer_ns = NS_NEVER};
    c->wait_fd = epoll_create1(EPOLL_CLOEXEC);
    c->user_fd = epoll_create1(EPOLL_CLOEXEC);
    c->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    c->ready_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    c->input = malloc(INPUT_BYTES);
    int rc = 0;
    if (c->input == NULL) {
        rc = err_set(e, ERR_NOMEM, "no memory for a receive buffer");
    } else if (c->wait_fd < 0 || c->user_fd < 0 || c->timer_fd < 0 || c->ready_fd < 0 ||
               watch(c->wait_fd, EPOLL_CTL_ADD, c->timer_fd, EPOLLIN) != 0 ||
               watch(c->user_fd, EPOLL_CTL_ADD, c->wait_fd, EPOLLIN) != 0 ||
               watch(c->user_fd, EPOLL_CTL_ADD, c->ready_fd, EPOLLIN) != 0) {
        rc = err_errno(e, ERR_IO, "making descriptors");
    }
    if (rc != 0) {
        conn_finish(c);
    }
    return rc;
}

int conn_watch(struct conn *c, int fd, uint32_t events, struct err *e)
{
    return watch(c->wait_fd, EPOLL_CTL_ADD, fd, events) == 0
               ? 0
               : err_errno(e, ERR_IO, "watching a descriptor");
}

void conn_unwatch(struct conn *c, int fd)
{
    (void)watch(c->wait_fd, EPOLL_CTL_DEL, fd, 0);
}

void conn_finish(struct conn *c)
{
    conn_drop(c);
    descriptor_close(&c->user_fd);
    descriptor_close(&c->wait_fd);
    descriptor_close(&c->timer_fd);
    descriptor_close(&c->ready_fd);
    tls_destroy(c->tls);
    c->tls = NULL;
    free(c->input);
    c->input = NULL;
}

static void out_push(struct conn *c, struct out *out)
{
    out->next = NULL;
    out->queued = true;
    if (c->out_last != NULL) {
        c->out_last->next = out;
    } else {
        c->out_first = out;
    }
    c->out_last = out;
}

static void out_pop(struct conn *c)
{
    struct out *out = c->out_first;
    c->out_first = out->next;
    if (c->out_first == NULL) {
        c->out_last = NULL;
    }
    out->queued = false;
    c->out_done = 0;
}

static const unsigned steps[] = {
    [CONN_DOWN] = STEP_TO(CONN_DOWN) | STEP_TO(CONN_CONNECTING),
    [CONN_CONNECTING] = STEP_TO(CONN_DOWN) | STEP_TO(CONN_SECURING) | STEP_TO(CONN_GREETING),
    [CONN_SECURING] = STEP_TO(CONN_DOWN) | STEP_TO(CONN_GREETING),
    [CONN_GREETING] = STEP_TO(CONN_DOWN) | STEP_TO(CONN_UP),
    [CONN_UP] = STEP_TO(CONN_DOWN),
};

/* The one place that changes the state. */
static void state_enter(struct conn *c, enum conn_state to)
{
    step_assert(steps, c->state, to);
    c->state = to;
}

void conn_drop(struct conn *c)
{
    while (c->out_first != NULL) {
        out_pop(c);
    }
    sp_reader_finish(&c->reader);
    descriptor_close(&c->fd);
    c->rest = (struct bytes){0};
    state_enter(c, CONN_DOWN);
}

static int refused(int error, struct err *e)
{
    if (error == EPROTOTYPE) {
        return err_set(e, ERR_CONNECT,
                       "connecting: this is a socket of another kind: clients connect to the one "
                       "that `listen` names, gpud.sock unless it was set");
    }
    int code = error == EACCES || error == EPERM ? ERR_PERMISSION : ERR_CONNECT;
    errno = error;
    return err_errno(e, code, "connecting");
}

int conn_start(struct conn *c, struct err *e)
{
    unsigned index = c->address_next % c->address->count;
    c->address_next = index + 1;
    int family = c->address->item[index].family;
    c->fd = socket(family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (c->fd < 0) {
        return err_errno(e, ERR_CONNECT, "making a socket");
    }
    int on = 1;
    if (c->address->transport == SP_TCP &&
        (setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on) != 0 ||
         setsockopt(c->fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on) != 0)) {
        return err_errno(e, ERR_IO, "setting up a socket");
    }
    const struct sockaddr *at = (const struct sockaddr *)&c->address->item[index].at;
    if (connect(c->fd, at, c->address->item[index].size) != 0 && errno != EINPROGRESS) {
        return refused(errno, e);
    }
    if (watch(c->wait_fd, EPOLL_CTL_ADD, c->fd, EPOLLIN | EPOLLOUT) != 0) {
        return err_errno(e, ERR_IO, "watching the socket");
    }
    c->want_write = true;
    c->drained = false;
    sp_reader_init(&c->reader, c->address->transport, SP_REP, c->limit);
    state_enter(c, CONN_CONNECTING);
    return 0;
}

static int want_write(struct conn *c, bool want, struct err *e)
{
    if (want == c->want_write) {
        return 0;
    }
    uint32_t events = want ? EPOLLIN | EPOLLOUT : EPOLLIN;
    if (watch(c->wait_fd, EPOLL_CTL_MOD, c->fd, events) != 0) {
        return err_errno(e, ERR_IO, "watching the socket");
    }
    c->want_write = want;
    return 0;
}

/* Fills iov with the next unwritten parts of the queue; returns their number. */
static size_t out_gather(const struct conn *c, struct iovec *iov)
{
    size_t n = 0;
    size_t skip = c->out_done;
    for (struct out *o = c->out_first; o != NULL && n + 2 <= IOV_MAX_OUT; o = o->next) {
        size_t head_skip = skip < o->head_size ? skip : o->head_size;
        size_t body_skip = skip - head_skip;
        skip = 0;
        if (head_skip < o->head_size) {
            iov[n++] = (struct iovec){o->head + head_skip, o->head_size - head_skip};
        }
        if (body_skip < o->body.size) {
            iov[n++] = (struct iovec){(void *)(uintptr_t)(o->body.data + body_skip),
                                      o->body.size - body_skip};
        }
    }
    return n;
}

static void out_written(struct conn *c, size_t size)
{
    c->out_done += size;
    while (c->out_first != NULL &&
           c->out_done >= c->out_first->head_size + c->out_first->body.size) {
        size_t left = c->out_done - c->out_first->head_size - c->out_first->body.size;
        out_pop(c);
        c->out_done = left;
    }
}

/* Sends what the socket takes of these bytes. *ret_size 0: nothing now. */
static int send_plain(struct conn *c, struct iovec *iov, size_t count, size_t *ret_size,
                      struct err *e)
{
    struct msghdr msg = {.msg_iov = iov, .msg_iovlen = count};
    ssize_t n;
    do {
        n = sendmsg(c->fd, &msg, MSG_NOSIGNAL);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) {
        return err_errno(e, ERR_CONNECT, "sending");
    }
    *ret_size = n > 0 ? (size_t)n : 0;
    return 0;
}

static int write_out(struct conn *c, struct err *e)
{
    while (c->out_first != NULL) {
        struct iovec iov[IOV_MAX_OUT];
        size_t count = out_gather(c, iov);
        size_t size = 0;
        enum tls_wait wait = TLS_DONE;
        int rc = c->tls != NULL ? tls_write(c->tls, iov, count, &size, &wait, e)
                                : send_plain(c, iov, count, &size, e);
        if (rc != 0) {
            return rc;
        }
        if (size == 0) {
            return want_write(c, true, e);
        }
        out_written(c, size);
    }
    return want_write(c, false, e);
}

int conn_send(struct conn *c, struct out *out, struct err *e)
{
    bool blocked = c->out_first != NULL;
    out_push(c, out);
    /* the rest is written when the socket has room */
    return c->state == CONN_UP && !blocked ? write_out(c, e) : 0;
}

/* The stream's header goes before the messages that were queued meanwhile. */
static void greet(struct conn *c)
{
    sp_hello(SP_REQ, c->hello);
    memcpy(c->hello_out.head, c->hello, sizeof c->hello);
    c->hello_out.head_size = sizeof c->hello;
    c->hello_out.body = (struct bytes){0};
    c->hello_out.next = c->out_first;
    c->hello_out.queued = true;
    c->out_first = &c->hello_out;
    if (c->out_last == NULL) {
        c->out_last = &c->hello_out;
    }
    state_enter(c, CONN_GREETING);
}

static int secured(struct conn *c, struct err *e)
{
    enum tls_wait wait = TLS_DONE;
    int rc = tls_handshake(c->tls, &wait, e);
    if (rc != 0) {
        return rc;
    }
    if (wait == TLS_DONE) {
        greet(c);
    }
    return want_write(c, wait != TLS_WAITS_READ, e); /* the greeting is to be written */
}

static int connected(struct conn *c, struct err *e)
{
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    if (poll(&p, 1, 0) <= 0) {
        return 0;
    }
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &size) != 0) {
        return err_errno(e, ERR_CONNECT, "connecting");
    }
    if (error != 0) {
        return refused(error, e);
    }
    if (c->tls == NULL) {
        greet(c);
        return 0;
    }
    state_enter(c, CONN_SECURING);
    return tls_begin(c->tls, c->fd, e);
}

static int receive_plain(struct conn *c, void *at, size_t room, size_t *ret_size, bool *ret_blocked,
                         struct err *e)
{
    ssize_t n = recv(c->fd, at, room, 0);
    *ret_blocked = n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR);
    if (n < 0 && !*ret_blocked) {
        return err_errno(e, ERR_CONNECT, "receiving");
    }
    *ret_size = n > 0 ? (size_t)n : 0;
    return 0;
}

static int receive_tls(struct conn *c, void *at, size_t room, size_t *ret_size, bool *ret_blocked,
                       struct err *e)
{
    enum tls_wait wait = TLS_DONE;
    int rc = tls_read(c->tls, at, room, ret_size, &wait, e);
    *ret_blocked = wait != TLS_DONE;
    return rc;
}

static int closed(const struct conn *c, struct err *e)
{
    bool plain = c->state == CONN_GREETING && c->address->transport == SP_TCP && c->tls == NULL;
    return err_set(e, ERR_CONNECT, "the daemon closed the connection%s",
                   plain ? " before it greeted: is this a port for tls+tcp://?" : "");
}

/* Receives once. 1: *ret_message was completed in place; 0: bytes are in `rest`, or the socket is
 * `drained`. */
static int receive(struct conn *c, struct message **ret_message, struct err *e)
{
    size_t room = 0;
    uint8_t *at = sp_direct(&c->reader, &room);
    bool direct = at != NULL && room >= INPUT_BYTES;
    if (!direct) {
        at = c->input;
        room = INPUT_BYTES;
    }
    size_t size = 0;
    bool blocked = false;
    int rc = c->tls != NULL ? receive_tls(c, at, room, &size, &blocked, e)
                            : receive_plain(c, at, room, &size, &blocked, e);
    if (rc != 0 || blocked) {
        c->drained = true;
        return rc;
    }
    if (size == 0) {
        return closed(c, e);
    }
    c->drained = c->tls == NULL && size < room; /* mbedtls may have more */
    if (direct) {
        return sp_direct_done(&c->reader, size, ret_message, e);
    }
    c->rest = bytes_of(c->input, size);
    return 0;
}

static int read_in(struct conn *c, struct message **ret_message, struct err *e)
{
    for (;;) {
        if (c->rest.size > 0) {
            int rc = sp_read(&c->reader, &c->rest, ret_message, e);
            if (c->state == CONN_GREETING && c->reader.greeted) {
                state_enter(c, CONN_UP);
            }
            if (rc != 0) {
                return rc;
            }
        }
        if (c->drained) {
            c->drained = false;
            return 0;
        }
        int rc = receive(c, ret_message, e);
        if (rc != 0) {
            return rc;
        }
    }
}

int conn_step(struct conn *c, struct message **ret_message, struct err *e)
{
    if (c->state == CONN_DOWN) {
        return 0;
    }
    if (c->state == CONN_CONNECTING) {
        int rc = connected(c, e);
        if (rc != 0 || c->state == CONN_CONNECTING) {
            return rc;
        }
    }
    if (c->state == CONN_SECURING) {
        int rc = secured(c, e);
        if (rc != 0 || c->state == CONN_SECURING) {
            return rc;
        }
    }
    int rc = c->want_write ? write_out(c, e) : 0;
    return rc != 0 ? rc : read_in(c, ret_message, e);
}

bool conn_wait(const struct conn *c, int fd, int timeout_ms)
{
    struct epoll_event event[WAIT_EVENTS];
    bool socket = false;
    int count = epoll_wait(c->wait_fd, event, WAIT_EVENTS, timeout_ms);
    for (int i = 0; i < count; i++) {
        socket = socket || event[i].data.fd == fd;
    }
    return socket;
}

void conn_timer_set(struct conn *c, uint64_t at_ns)
{
    if (at_ns == c->timer_ns) {
        return;
    }
    c->timer_ns = at_ns;
    struct itimerspec spec = {0};
    if (at_ns != NS_NEVER) {
        /* a time of 0 would disarm it */
        uint64_t ns = at_ns > 0 ? at_ns : 1;
        spec.it_value.tv_sec = (time_t)(ns / NS_PER_S);
        spec.it_value.tv_nsec = (long)(ns % NS_PER_S);
    }
    (void)timerfd_settime(c->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL);
}

void conn_timer_by(struct conn *c, uint64_t at_ns)
{
    if (at_ns < c->timer_ns) {
        conn_timer_set(c, at_ns);
    }
}

void conn_timer_clear(struct conn *c)
{
    if (c->timer_ns != NS_NEVER && clock_now_ns() >= c->timer_ns) {
        uint64_t count;
        (void)!read(c->timer_fd, &count, sizeof count);
        c->timer_ns = NS_NEVER;
    }
}

void conn_ready_set(struct conn *c, bool ready)
{
    if (ready == c->ready) {
        return;
    }
    c->ready = ready;
    uint64_t count = 1;
    if (ready) {
        (void)!write(c->ready_fd, &count, sizeof count);
    } else {
        (void)!read(c->ready_fd, &count, sizeof count);
    }
}
