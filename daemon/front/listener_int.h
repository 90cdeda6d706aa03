/*
 * What the listener's files share. One mutex guards the table of connections and what waits for the
 * loop; it is never held while NNG is called. Functions marked (nng) run on NNG's threads, (loop)
 * on the loop's.
 */
#ifndef FRONT_LISTENER_INT_H
#define FRONT_LISTENER_INT_H

#define HASH_NONFATAL_OOM 1
#include <nng/nng.h>
#include <pthread.h>
#include <stdatomic.h>
#include <uthash.h>
#include <utlist.h>

#include "daemon/front/listener.h"
#include "daemon/front/listener_url.h"
#include "daemon/front/rights.h"

/* Who may touch a slot is told by its state: NNG's callback while one is under way, else the loop.
 */
enum slot_state {
    SLOT_RECEIVING,
    SLOT_HELD,    /* the loop owns it */
    SLOT_SENDING, /* an answer is on its way */
    SLOT_DEAD,    /* its socket is closed */
};

/* All connections of one; who comes over tcp is one, too. Lives as long as one of the two is > 0.
 */
struct user {
    uint32_t uid;
    unsigned connections; /* in the table, those that are gone as well */
    unsigned outstanding; /* slots that hold requests or answers of theirs */
    unsigned turned_away; /* connections without a place */
    UT_hash_handle hh;    /* by uid */
};

struct listener_slot {
    struct listener *listener;
    nng_ctx ctx;
    nng_aio *aio;
    atomic_int state;  /* enum slot_state */
    uint32_t pipe;     /* whose request it holds, 0 = none */
    struct user *user; /* in whose, and that connection's, `outstanding` it is counted; NULL */
};

struct connection {
    struct peer peer;
    int fd; /* NNG's; -1: not known */
    struct user *user;
    unsigned outstanding;           /* slots that hold a request or an answer of it */
    bool crowded;                   /* has no place: it is told so, and nothing else */
    bool said_hello;                /* a HELLO was handed to the loop */
    bool identified;                /* no time-out any more: not in `silent` */
    bool gone;                      /* in `closed` */
    bool doomed;                    /* to be closed, and its requests are dropped */
    bool closing;                   /* doomed, not in that list any more: NNG was told */
    uint64_t deadline_ns;           /* silent: to say hello by; doomed: quiet from then on */
    struct connection *prev, *next; /* in `silent`, oldest first, in `doomed` if there
                                       is no descriptor, or in `closed` */
    UT_hash_handle hh;              /* by peer.pipe */
};

/* Slots are made as they are needed, so many at a time. */
#define SLOT_BLOCK  64u
#define SLOT_BLOCKS (LISTENER_CONTEXTS_MAX / SLOT_BLOCK)

struct listener {
    uv_loop_t *loop;
    struct listener_options options;
    struct listener_callbacks callbacks;
    void *data;
    uv_async_t wake;
    uv_timer_t handshake;
    unsigned handles_open;
    uv_work_t closing_work;
    void (*closed)(void *data);
    void *closed_data;
    bool closing; /* (loop) */

    nng_socket socket;
    struct listener_slot *block[SLOT_BLOCKS]; /* owned; slots do not move */
    unsigned slots_made;

    pthread_mutex_t lock; /* guards all below */
    struct connection *connections;
    struct user *users;
    unsigned connected;   /* in `connections` and not gone, with a place */
    unsigned turned_away; /* and without one */
    struct connection *silent;
    struct connection *doomed;
    struct connection *closed_list;
    struct request *first;
    struct request **last;
    struct members keepers;
    uint64_t full_told_ns; /* when the log was told last that all places are taken, 0: never */
    bool ending;           /* nobody is let in any more */
    bool waked;            /* a wake-up of the loop is under way */
    unsigned busy;         /* slots that do not receive */
    struct listener_stats stats;
};

/* listener_slot.c */
int slot_init(struct listener_slot *slot, struct listener *l, struct err *e);
void slot_receive(struct listener_slot *slot);
/* Sends a message and frees the slot; closes the connection if memory is out. */
void slot_send(struct listener_slot *slot, struct bytes message);
void slot_release(struct listener_slot *slot); /* receives again */

/* listener_pipe.c */
void connection_event(nng_pipe pipe, nng_pipe_ev event, void *data); /* (nng) */
/* (nng) Counts the slot to its connection and hands its request, if any, to the loop. false: the
 * connection is gone or has no place, or it or its user takes too many slots; the request is the
 * caller's still. */
bool connection_take(struct listener_slot *slot, struct request *r);
/* (nng) Why no request of its connection is taken: it has no place. 0: that is not so. */
int connection_crowded(const struct listener_slot *slot, struct err *e);
/* To be called with the lock, once it has a connection or a slot less. */
void user_release(struct listener *l, struct user *u);
void connection_answered(struct listener_slot *slot);
/* Ends it as if its peer had (see nng_guard.h). One whose descriptor is not known is closed as soon
 * as nothing has come from it for a while. */
void connection_close(struct listener *l, uint32_t pipe);
/* Ends all, and lets nobody in; false: some are not gone yet. */
bool connections_end(struct listener *l);
void handshake_arm(struct listener *l); /* (loop) */
void connections_free(struct listener *l);

#endif
