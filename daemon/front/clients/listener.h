/*
 * The daemon's sockets: SP in the role REP, over NNG's byte streams, on ipc, tcp and tls+tcp. The
 * threads that receive messages decode and check them, and hand whole requests to the loop in
 * batches.
 *
 * Thread: the loop's, which also runs the callbacks. Only listener_create and listener_destroy
 * block.
 */
#ifndef FRONT_CLIENTS_LISTENER_H
#define FRONT_CLIENTS_LISTENER_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "common/bytes.h"
#include "common/err.h"
#include "proto/messages.h"

struct listener;
struct members;
struct listener_slot; /* an unanswered request, to which its answer is sent */
struct request;
struct tls_files;

#define LISTENER_REQUESTS_MAX 131072u

struct listener_callbacks {
    /* The receiver owns the request. It answers it once by listener_reply, or drops its slot by
     * listener_drop, and frees it by request_destroy, in any order. */
    void (*request)(void *data, struct request *r);
    /* a connection has ended after its HELLO was delivered */
    void (*closed)(void *data, uint32_t pipe);
    /* Has this turn of the loop room for another request or end of a connection? The rest of a
     * batch follows in later turns. `first`: a batch begins, or continues in this turn. NULL:
     * always. */
    bool (*more)(void *data, bool first);
};

struct listener_options {
    unsigned requests_max;         /* unanswered requests; more wait in their connections */
    unsigned connections_max;      /* connections with a place; requests of others are refused */
    unsigned connections_reserved; /* places beyond that, for keepers */
    uint64_t handshake_ns;         /* time for HELLO, after which a connection is closed */
    uint64_t stall_ns;             /* time for the rest of a message, then it is closed; 0: 60 s */
    uint32_t ipc_mode;             /* permissions of an ipc socket, 0660 */
    unsigned pipe_requests_max; /* unanswered requests of a connection; one more closes it; 0: half
                                   of requests_max */
    unsigned user_requests_max; /* unanswered requests of a user; one more closes its connection; 0:
                                   three quarters of requests_max */
    uint64_t unread_max;        /* bytes of answers that a connection did not read; more close it;
                                   0: 256 MiB */
};

struct listener_stats {
    uint64_t connections;     /* open now, with a place */
    uint64_t refused;         /* connections without a place, refused or closed */
    uint64_t displaced;       /* idle connections of keepers, closed for another keeper */
    uint64_t silent;          /* closed because no HELLO came in time */
    uint64_t stalled;         /* closed in the middle of a message */
    uint64_t crowded;         /* closed because it or its user had too many unanswered requests */
    uint64_t unread;          /* closed because it did not read its answers */
    uint64_t protocol_errors; /* messages that could not be decoded */
    uint64_t tls_errors;      /* handshakes of TLS that failed */
    uint64_t requests;
};

int listener_create(uv_loop_t *loop, const struct listener_options *options,
                    const struct listener_callbacks *callbacks, void *data,
                    struct listener **ret_listener, struct err *e);
/* Listens on one more URL: ipc:// (a stale socket file is replaced, a live one is ERR_EXISTS),
 * tcp:// on a loopback address (others are ERR_PERMISSION), or tls+tcp://, which is ERR_STATE
 * before listener_set_tls. */
int listener_add(struct listener *l, const char *url, struct err *e);
/* Listens on a path for one tenant (settings/tenant_socket.h): its connections have this number,
 * which is not 0, as peer.listener. A stale socket file is replaced. Others may connect once
 * listen_permit lets them. ERR_EXISTS: a live socket is there. */
int listener_add_tenant(struct listener *l, const char *path, uint32_t number, struct err *e);
/* Stops listening there, and removes the path; its connections stay. Waits for what is being
 * accepted. Nothing happens if there is none of that number. Not after listener_close. */
void listener_remove_tenant(struct listener *l, uint32_t number);
/* Has the address been added? */
bool listener_has(const struct listener *l, const char *url);
/* The certificate, key and CA for connections that tls+tcp addresses accept from now on. `files`
 * are copied. ERR_UNSUPPORTED: this NNG has no TLS. ERR_INVALID. ERR_NOMEM. */
int listener_set_tls(struct listener *l, const struct tls_files *files, struct err *e);
/* Closes sockets and connections. Unanswered slots are void afterwards. The loop must turn until
 * `done` is called. */
void listener_close(struct listener *l, void (*done)(void *data), void *data);
void listener_destroy(struct listener *l); /* after done; NULL is accepted */

/* Answers and frees the slot. The bytes are sent at once or copied. Nothing is sent to a connection
 * that has ended. */
void listener_reply(struct listener *l, struct listener_slot *slot, struct bytes message);
/* Frees the slot without an answer. */
void listener_drop(struct listener *l, struct listener_slot *slot);

/* Keepers are the members, root and the daemon's own user, unless they come by the socket of a
 * tenant. They have connections_reserved places
 * beyond connections_max. When these are in use as well, the keepers' connection that is idle
 * longest is closed for a new one. `keepers` is copied. */
void listener_set_keepers(struct listener *l, const struct members *keepers);
/* New limits (see listener_options). At most LISTENER_REQUESTS_MAX. */
void listener_set_limits(struct listener *l, unsigned requests_max, unsigned pipe_requests_max,
                         uint64_t unread_max);

/* The HELLO of the connection is accepted: handshake_ns ends. */
void listener_identified(struct listener *l, uint32_t pipe);
void listener_close_pipe(struct listener *l, uint32_t pipe);
/* Are only reserved descriptors left? Then no connection is accepted. */
bool listener_starved(struct listener *l);
void listener_stats(struct listener *l, struct listener_stats *ret_stats);

#endif
