/*
 * What the listener's files share. One mutex guards the connections and what waits for the loop; it
 * is never held while NNG is called.
 *
 * A connection is read by one thread at a time (NNG's that runs its callback, or the loop's while
 * it is parked) and written by one (`writing`). Both may find it closed at any time: only the state
 * tells. A thread that works on it outside NNG's callbacks holds a visit. Once it is to be
 * closed and has no visits, the closer's thread stops what NNG still does for it, and frees that.
 */
#ifndef FRONT_CLIENTS_LISTENER_INT_H
#define FRONT_CLIENTS_LISTENER_INT_H

#define HASH_NONFATAL_OOM 1
#include <nng/nng.h>
#include <pthread.h>
#include <uthash.h>
#include <utlist.h>

#include "daemon/front/clients/listener.h"
#include "daemon/front/model/request.h"
#include "daemon/front/settings/listener_url.h"
#include "daemon/front/settings/members.h"
#include "proto/sp.h"

#define INPUT_BYTES 4096u /* what one receive takes, if it is not the rest of a long message */

/* All connections of one user; those over tcp share one. Lives while a count is above 0. */
struct user {
    uint32_t uid;
    unsigned connections; /* that the loop did not hear the end of */
    unsigned outstanding; /* slots */
    unsigned turned_away; /* connections without a place */
    UT_hash_handle hh;    /* by uid */
};

/* Where a connection is. The table of steps is in connection.c. */
enum connection_state {
    CONNECTION_NEW,      /* in no list */
    CONNECTION_GREETING, /* its stream header has not come whole */
    CONNECTION_SILENT,   /* it speaks SP, and has not said HELLO */
    CONNECTION_OPEN,     /* it said HELLO; between two messages */
    CONNECTION_HALF,     /* it said HELLO; a message came in part */
    CONNECTION_CLOSING,  /* nothing is taken from it or sent to it any more */
    CONNECTION_ENDED,    /* NNG has nothing of it any more; the loop hears of it */
    CONNECTION_STATES
};

/* Bytes on their way out. */
struct answer {
    struct answer *next;
    struct listener_slot *slot; /* freed once all is sent; NULL: the stream header */
    size_t size;
    size_t sent;
    uint8_t data[];
};

struct connection {
    struct listener *listener;
    enum connection_state state; /* changed by connection_step alone */
    struct peer peer;
    struct user *user;
    bool keeper;
    bool crowded;         /* has no place: each request is refused */
    bool said_hello;      /* a HELLO was handed to the loop */
    bool half;            /* the reader is within a message */
    bool parked;          /* its reader waits for a slot: in l->parked */
    bool told;            /* the loop heard of its end */
    bool writing;         /* somebody sends */
    unsigned visits;      /* threads that work on it, NNG's callbacks apart */
    unsigned outstanding; /* slots */
    unsigned waits;       /* of them WAITs, which are held for as long as nothing happens */
    uint64_t deadline_ns; /* of the list that it is in */
    uint64_t active_ns;   /* when its last request came, or itself */
    struct connection *prev, *next; /* in the list of its state */
    struct connection *parked_next, *parked_prev;
    UT_hash_handle hh; /* by peer.pipe */

    struct answer *first; /* owned */
    struct answer **last;
    size_t unread; /* bytes of them */

    /* from here on: the reader's, or the closer's */
    nng_stream *stream;
    nng_aio *recv;
    nng_aio *send; /* for the writing thread */
    struct sp_reader reader;
    struct bytes rest;       /* of input, not read yet */
    struct request *pending; /* owned; the one that waits for a slot */
    uint8_t *input;          /* owned, INPUT_BYTES */
};

struct listener_slot {
    struct connection *connection;
    struct listener_slot *next; /* free ones */
    uint32_t id;                /* of the request, as its client numbered it */
    bool wait;                  /* it is a WAIT */
};

/* Slots are made as they are needed, so many at a time, and do not move. */
#define SLOT_BLOCK 64u
struct slot_block {
    struct slot_block *next;
    struct listener_slot slot[SLOT_BLOCK];
};

/* One address that is listened on. */
struct door {
    struct listener *listener;
    struct door *next;
    nng_stream_listener *stream;
    nng_aio *accept;
    bool ipc;
    uint64_t again_ns; /* accepts again then; 0: it accepts, NS_NEVER: no more */
    uint64_t pause_ns; /* how long the last pause was */
};

struct listener {
    uv_loop_t *loop;
    struct listener_options options;
    struct listener_callbacks callbacks;
    void *data;
    uv_async_t wake;
    uv_timer_t timer;
    unsigned handles_open;
    uv_work_t closing_work;
    void (*closed)(void *data);
    void *closed_data;
    bool closing;                   /* (loop) */
    struct request *batch;          /* (loop) owned: what is being handed on */
    struct connection *batch_ended; /* (loop) and the ends behind it */
    nng_aio *reply;                 /* (loop) sends what fits at once */
    pthread_t closer;
    bool closer_runs;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t to_close;
    pthread_cond_t ended;
    struct door *doors;
    struct connection *connections;
    struct user *users;
    struct listener_slot *free_slots;
    struct slot_block *blocks;
    unsigned busy;           /* slots in use */
    unsigned connected;      /* with a place, not closing */
    unsigned turned_away;    /* without one, not closing */
    unsigned alive;          /* not ended */
    uint32_t last_pipe;      /* that was given out */
    struct connection *slow; /* greeting or silent, oldest first */
    struct connection *half;
    struct connection *closing_list;
    struct connection *ended_list;
    struct connection *parked;
    struct request *first;
    struct request **last;
    struct members keepers;
    uint64_t full_told_ns;   /* when the log said last that all places are taken, 0: never */
    bool ending;             /* nobody is let in any more */
    bool starved;            /* there are no descriptors but those kept back */
    bool starve_told;        /* the log heard of it, and not of its end */
    uint64_t starve_tell_ns; /* it may hear of the next shortage then */
    bool waked;              /* a wake-up of the loop is under way */
    bool wake_due;           /* listener_unlock wakes the loop */
    struct listener_stats stats;
};

/* ---- lock.c ---------------------------------------------------------------------------------- */

void listener_lock(struct listener *l);
void listener_unlock(struct listener *l); /* and wakes the loop, if that is due */

/* ---- door.c: addresses --------------------------------------------------------------------- */

int door_open(struct listener *l, const char *url, bool ipc, struct err *e);
void doors_retry(struct listener *l, uint64_t now); /* (loop) */
uint64_t doors_due(const struct listener *l);       /* locked; NS_NEVER: none waits */
void doors_close(struct listener *l);               /* blocks */
/* Locked: notes it; the log hears of it. */
void doors_starve(struct listener *l, bool starved);

/* ---- places.c: admission of connections; all locked ------------------------------------------ */

/* Gives a connection its user, and a place or, without one, room to be refused. false: neither. */
bool place_take(struct listener *l, struct connection *c);
/* Why no request of a connection without a place is taken. */
int place_refusal(const struct listener *l, struct err *e);
/* Whether one more request of it may be unanswered; else says so in the log. */
bool place_for_request(struct listener *l, const struct connection *c);

/* ---- slot.c: unanswered requests; all locked ------------------------------------------------- */

struct listener_slot *slot_take(struct connection *c, uint32_t id, bool wait); /* NULL: no memory */
void slot_free(struct listener *l, struct listener_slot *slot);
void slots_destroy(struct listener *l);

/* ---- connection.c: its states ---------------------------------------------------------------- */

struct connection *connection_find(struct listener *l, uint32_t pipe); /* locked; NULL: gone */
/* Locked: the one place that changes a state. false: there is no such step, and nothing changed. */
bool connection_step(struct connection *c, enum connection_state to);
void connection_end(struct connection *c);   /* locked: it is to be closed, whatever it does now */
void connection_visit(struct connection *c); /* locked */
void connection_leave(struct connection *c); /* locked: ends a visit */
void connection_told(
    struct connection *c); /* locked: the loop knows; frees it, if no slot is left */
void connection_free(struct connection *c);
/* Locked: which number of connections in `l` it is counted in. */
unsigned *place_count(struct listener *l, const struct connection *c);
void user_release(struct listener *l, struct user *u); /* locked: once it has less */

/* ---- admit.c: its begin ---------------------------------------------------------------------- */

/* Takes the stream. (NNG's thread) */
void connection_admit(struct door *door, nng_stream *stream);

/* ---- closer.c: its end ----------------------------------------------------------------------- */

/* Blocks until no callback of it runs; frees all but the struct. */
void connection_finish(struct connection *c);
void *connections_closer(void *listener); /* a thread's main */

/* ---- reader.c -------------------------------------------------------------------------------- */

void reader_start(struct connection *c);
void reader_received(void *connection); /* NNG's callback */
/* (loop) Goes on with those that waited for a slot. */
void readers_resume(struct listener *l);

/* ---- writer.c -------------------------------------------------------------------------------- */

void writer_sent(void *connection); /* NNG's callback */
/* Copies what is sent, and sends it as soon as it can. slot NULL: the bytes are sent as they are.
 */
void writer_post(struct connection *c, struct listener_slot *slot, struct bytes message);
/* (loop) The same, and sends it at once, if nothing waits before it. */
void writer_reply(struct listener *l, struct listener_slot *slot, struct bytes message);
void writer_drop(struct connection *c); /* locked: what waits is given up, with its slots */

#endif
