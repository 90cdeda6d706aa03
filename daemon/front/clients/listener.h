/*
 * The daemon's sockets: SP in the role REP, over NNG's byte streams, on ipc and tcp. Messages are
 * decoded and checked on the threads that receive them; whole requests are handed to the loop in
 * batches.
 *
 * Thread: everything here is called from the loop's thread; the callbacks run there too. Nothing
 * blocks but listener_create and listener_destroy.
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
struct listener_slot; /* one unanswered request: where its answer goes */
struct request;

#define LISTENER_REQUESTS_MAX 131072u

struct listener_callbacks {
    /* The receiver owns the request: it answers it once by listener_reply (or drops its slot by
     * listener_drop) and frees it by request_destroy, in any order. */
    void (*request)(void *data, struct request *r);
    void (*closed)(void *data, uint32_t pipe); /* a connection that had said hello is gone */
    /* Has this turn of the loop room for another request, or end? The rest of a batch comes in the
     * next turns. `first`: a batch begins, or goes on. NULL: always. */
    bool (*more)(void *data, bool first);
};

struct listener_options {
    unsigned requests_max;      /* that may be unanswered at once; more wait in their connections */
    unsigned connections_max;   /* more are told so, and have no place */
    unsigned connections_spare; /* so many more of keepers are not */
    uint64_t handshake_ns;      /* a connection without HELLO for so long is closed */
    uint64_t stall_ns;          /* so is one that leaves a message half sent for so long; 0: 60 s */
    uint32_t ipc_mode;          /* permissions of an ipc socket, 0660 */
    unsigned pipe_requests_max; /* unanswered requests of one connection, more close it; 0: half of
                                   requests_max */
    unsigned user_requests_max; /* of all connections of one user, more close the one that sends;
                                   0: three quarters of requests_max */
    uint64_t unread_max;        /* bytes of answers that wait for one connection to read them, more
                                   close it; 0: 256 MiB */
};

struct listener_stats {
    uint64_t connections;     /* open now, with a place */
    uint64_t refused;         /* over the cap, told so or closed */
    uint64_t displaced;       /* idle ones of keepers, closed for another keeper */
    uint64_t silent;          /* closed by the handshake's time-out */
    uint64_t stalled;         /* closed in the middle of a message */
    uint64_t crowded;         /* closed for too many unanswered requests, of it or its user */
    uint64_t unread;          /* closed for answers that it does not read */
    uint64_t protocol_errors; /* messages that could not be decoded */
    uint64_t requests;
};

int listener_create(uv_loop_t *loop, const struct listener_options *options,
                    const struct listener_callbacks *callbacks, void *data,
                    struct listener **ret_listener, struct err *e);
/* Listens on one more URL: ipc:// (a stale socket file is taken over, a live one is ERR_EXISTS) or
 * tcp:// on a loopback address (others are ERR_PERMISSION: there is no TLS and no token yet). */
int listener_add(struct listener *l, const char *url, struct err *e);
/* Closes sockets and connections; unanswered slots are void afterwards. Must run before the loop's
 * end; the loop must still turn until `done` is called. */
void listener_close(struct listener *l, void (*done)(void *data), void *data);
void listener_destroy(struct listener *l); /* after done; NULL is accepted */

/* Answers and frees the slot. The bytes are sent at once or copied. To a connection that is gone it
 * does nothing. */
void listener_reply(struct listener *l, struct listener_slot *slot, struct bytes message);
void listener_drop(struct listener *l, struct listener_slot *slot); /* never answered */

/* Members have a place when all are taken, like root and the daemon's own user. When these places
 * are taken, too, the connection in them that is idle for longest makes room. Copied. */
void listener_set_keepers(struct listener *l, const struct members *keepers);
/* New limits (see listener_options). At most LISTENER_REQUESTS_MAX. */
void listener_set_limits(struct listener *l, unsigned requests_max, unsigned pipe_requests_max,
                         uint64_t unread_max);

void listener_identified(struct listener *l, uint32_t pipe); /* it said HELLO: no time-out */
void listener_close_pipe(struct listener *l, uint32_t pipe);
/* No descriptors are left but those kept back: no connection is accepted. */
bool listener_starved(struct listener *l);
void listener_stats(struct listener *l, struct listener_stats *ret_stats);

#endif
