/*
 * One non-blocking connection that carries SP messages, with its timers and the descriptors that
 * stand for all of it: `wait_fd` (epoll: socket and timer) for the library's own waiting, and
 * `user_fd` (epoll: wait_fd and `ready_fd`) for the user's loop. Reconnecting replaces the socket
 * inside; the descriptors stay.
 *
 * Decides nothing: when to connect and what to say is the session's.
 * Thread: one at a time (under the client's lock), but waiting on wait_fd needs no lock.
 * Never blocks, never raises SIGPIPE.
 */
#ifndef CLIENT_WIRE_CONN_H
#define CLIENT_WIRE_CONN_H

#include <sys/socket.h>
#include <sys/un.h>

#include "proto/sp.h"

#define CONN_HEAD_MAX  48
#define CONN_ADDRESSES 8

struct address {
    enum sp_transport transport;
    unsigned count;
    struct {
        int family;
        socklen_t size;
        struct sockaddr_storage at;
    } item[CONN_ADDRESSES];
};

/* Takes a URL apart and resolves a host's name (which may block). ERR_INVALID, ERR_CONNECT. */
int address_parse(const char *url, struct address *ret_address, struct err *e);

/* A message on its way out; lies in its owner's struct until it was written or conn_drop. */
struct out {
    struct out *next;
    bool queued;
    uint8_t head[CONN_HEAD_MAX]; /* SP header and the message's first fields */
    size_t head_size;
    struct bytes body;
};

enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_GREETING, CONN_UP };

struct conn {
    enum conn_state state;
    int fd;       /* the socket, -1: none */
    int wait_fd;  /* owned */
    int timer_fd; /* owned */
    int ready_fd; /* owned; eventfd */
    int user_fd;  /* owned */
    const struct address *address;
    unsigned address_next;
    struct sp_reader reader;
    size_t limit;
    struct out *out_first; /* not owned */
    struct out *out_last;
    size_t out_done; /* bytes of out_first that were written */
    bool want_write; /* the socket is watched for room */
    bool ready;      /* ready_fd is readable */
    uint64_t timer_ns;
    uint8_t *input;    /* owned; what was received and not read yet is `rest` */
    struct bytes rest; /* in input */
    bool drained;      /* the last receive got less than there was room for */
    uint8_t hello[SP_HELLO_BYTES];
    struct out hello_out;
};

/* address: not owned, outlives the conn. limit: bytes of a received message. */
int conn_init(struct conn *c, const struct address *address, size_t limit, struct err *e);
void conn_finish(struct conn *c);

/* Begins to connect to the next of the addresses. CONN_CONNECTING afterwards. */
int conn_start(struct conn *c, struct err *e);
/* Closes the socket and forgets all that was queued. */
void conn_drop(struct conn *c);

/* Queues a message and writes as much as goes. Messages queued before CONN_UP wait. */
int conn_send(struct conn *c, struct out *out, struct err *e);
/*
 * Goes on with connecting, writing and reading. 1: *ret_message is the caller's, call again.
 * 0: nothing more now. Negative: the connection is unusable, drop it.
 */
int conn_step(struct conn *c, struct message **ret_message, struct err *e);

/* Another descriptor that wait_fd stands for: by its level, or by its edges. */
int conn_watch(struct conn *c, int fd, bool edge, struct err *e);
void conn_unwatch(struct conn *c, int fd); /* one that is not watched is fine */
/* Waits for so many ms (-1: for ever) until something is to be done. Is the socket, which was `fd`
 * when the lock was held, ready? Needs no lock. */
bool conn_wait(const struct conn *c, int fd, int timeout_ms);

/* The time (monotonic, ns; NS_NEVER: none) at which both descriptors become readable. */
void conn_timer_set(struct conn *c, uint64_t at_ns);
void conn_timer_clear(struct conn *c); /* reads an expired timer */
/* Makes user_fd readable until called with false. */
void conn_ready_set(struct conn *c, bool ready);

#endif
