/*
 * One non-blocking connection that carries SP messages, with its timer and two descriptors:
 * `wait_fd` (epoll: socket and timer) for the library's own waiting, and `user_fd` (epoll: wait_fd
 * and `ready_fd`) for the user's loop. Reconnecting replaces the socket; the two descriptors
 * remain.
 *
 * The session decides when to connect and what to send.
 * Thread: one at a time (under the client's lock), but waiting on wait_fd needs no lock.
 * Blocks on the files of TLS alone, for a new connection. Never raises SIGPIPE.
 */
#ifndef CLIENT_WIRE_CONN_H
#define CLIENT_WIRE_CONN_H

#include <sys/socket.h>
#include <sys/un.h>

#include "client/src/wire/tls.h"
#include "proto/sp.h"

#define CONN_HEAD_MAX  48
#define CONN_ADDRESSES 8

struct address {
    enum sp_transport transport;
    bool tls;
    char host[TLS_NAME]; /* of tcp */
    unsigned count;
    struct {
        int family;
        socklen_t size;
        struct sockaddr_storage at;
    } item[CONN_ADDRESSES];
};

/* Parses a URL and resolves a host's name (which may block). What follows a '?' in a tls+tcp URL
 * (ca, cert, key, name) goes into `names`, which is untouched otherwise. ERR_INVALID, also for a
 * token in a URL, where others would see it; ERR_CONNECT. */
int address_parse(const char *url, struct address *ret_address, struct tls_names *names,
                  struct err *e);
/* Do all bytes to it stay on this host? */
bool address_is_here(const struct address *a);

/* A queued message: a member of its owner's struct, until it is written or conn_drop is called. */
struct out {
    struct out *next;
    bool queued;
    uint8_t head[CONN_HEAD_MAX]; /* SP header and the message's first fields */
    size_t head_size;
    struct bytes body;
};

/*
 * Where a connection is. conn.c has the table of steps; conn_step and conn_drop take them.
 *
 *   down → connecting        conn_start: the system connects
 *   connecting → securing    it is connected; the handshake of TLS is under way
 *   securing → greeting      the daemon's certificate is good
 *   connecting → greeting    it is connected, without TLS; the headers of both streams are on their
 *                            way
 *   greeting → up            the daemon's header came; queued messages go out
 *   any → down               conn_drop
 */
enum conn_state { CONN_DOWN, CONN_CONNECTING, CONN_SECURING, CONN_GREETING, CONN_UP };

struct conn {
    enum conn_state state;
    int fd;          /* the socket, -1: none */
    int wait_fd;     /* owned */
    int timer_fd;    /* owned */
    int ready_fd;    /* owned; eventfd */
    int user_fd;     /* owned */
    struct tls *tls; /* owned; NULL: plain */
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
    uint8_t *input;    /* owned; its unread bytes are `rest` */
    struct bytes rest; /* in input */
    bool drained;      /* the last receive did not fill its buffer */
    uint8_t hello[SP_HELLO_BYTES];
    struct out hello_out;
};

/* address: not owned, outlives the conn. tls: owned, also on failure; NULL: plain. limit: bytes of
 * a received message. */
int conn_init(struct conn *c, const struct address *address, struct tls *tls, size_t limit,
              struct err *e);
void conn_finish(struct conn *c);

/* Begins to connect to the next of the addresses. CONN_CONNECTING afterwards. */
int conn_start(struct conn *c, struct err *e);
/* Closes the socket and forgets all queued messages. */
void conn_drop(struct conn *c);

/* Queues a message and writes as much as the socket takes. Messages queued before CONN_UP wait. */
int conn_send(struct conn *c, struct out *out, struct err *e);
/*
 * Continues connecting, writing and reading. 1: *ret_message belongs to the caller, who calls
 * again. 0: nothing more to do now. Negative: the connection is unusable and has to be dropped.
 */
int conn_step(struct conn *c, struct message **ret_message, struct err *e);

/* Adds a descriptor to wait_fd, with these events of epoll. */
int conn_watch(struct conn *c, int fd, uint32_t events, struct err *e);
void conn_unwatch(struct conn *c, int fd); /* no effect on a descriptor that is not watched */
/* Waits at most timeout_ms (-1: without limit) until wait_fd is ready. true: the socket is; `fd` is
 * the socket at the time when the caller held the lock. Needs no lock. */
bool conn_wait(const struct conn *c, int fd, int timeout_ms);

/* The time (monotonic, ns; NS_NEVER: none) at which both descriptors become readable. */
void conn_timer_set(struct conn *c, uint64_t at_ns);
void conn_timer_by(struct conn *c, uint64_t at_ns); /* the same, unless it expires before */
void conn_timer_clear(struct conn *c);              /* reads an expired timer */
/* Makes user_fd readable until called with false. */
void conn_ready_set(struct conn *c, bool ready);

#endif
