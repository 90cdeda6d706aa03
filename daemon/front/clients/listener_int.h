/*
 * Structs and functions shared by the files of the listener. One mutex guards the connections and
 * the requests for the loop. It is never held while NNG is called.
 *
 * One thread at a time reads a connection: NNG's in a callback, or the loop's while the connection
 * is parked. One thread at a time writes it (`writing`). Its state may become closing at any time.
 * A thread that uses a connection outside NNG's callbacks holds a visit. When a closing connection
 * has no visits, the closer's thread stops NNG's operations on it and frees them.
 */
#ifndef FRONT_CLIENTS_LISTENER_INT_H
#define FRONT_CLIENTS_LISTENER_INT_H

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>
#include <pthread.h>
#include <stdatomic.h>
#include <uthash.h>
#include <utlist.h>

#include "daemon/front/clients/listener.h"
#include "daemon/front/model/request.h"
#include "daemon/front/settings/listener_url.h"
#include "daemon/front/settings/members.h"
#include "proto/sp.h"

/* bytes of one receive; the rest of a long message goes straight to its memory */
#define INPUT_BYTES  4096u
#define OUTPUT_BYTES 4096u /* some fifty answers of jobs */

/* A user with connections. All connections over tcp count as one user, and so do all that come by
 * the socket of a tenant. Lives while `connections` or `outstanding` is above 0. */
struct user {
    uint64_t key;         /* listener << 32 | uid; 0 as uid where there is a listener */
    uint32_t uid;         /* of its first connection, for the log */
    unsigned connections; /* connections whose ends were not reported to the loop */
    unsigned outstanding; /* unanswered requests */
    unsigned turned_away; /* connections without a place */
    unsigned placed; /* connections with one, not closing; at most three quarters of all places */
    struct request *first;              /* owned: requests that the loop has not got */
    struct request **last;              /* valid while there are some */
    struct user *turn_prev, *turn_next; /* in l->turns, while there are some */
    UT_hash_handle hh;                  /* by key */
};

/*
 * Where a connection is. The table of steps is in connection.c.
 *
 *   new → greeting            it has a place, or room to be refused
 *   greeting → silent         its stream header came
 *   silent ↔ silent half      a message began, or came whole
 *   silent → open             the loop accepted its HELLO
 *   silent half → half        the same, while the next message comes
 *   open ↔ half               a message began, or came whole
 *   half → half               another message began
 *   any of these → closing    it broke, was too slow, or is closed; nothing is received from it or
 *                             sent to it any more
 *   closing → ended           NNG uses it no more
 *   ended → reported          the loop knows; it is freed with its last slot
 */
enum connection_state {
    CONNECTION_NEW,         /* in no list */
    CONNECTION_GREETING,    /* waits for its stream header */
    CONNECTION_SILENT,      /* waits for HELLO, between two messages */
    CONNECTION_SILENT_HALF, /* waits for HELLO, within a message */
    CONNECTION_OPEN,        /* between two messages */
    CONNECTION_HALF,        /* within a message */
    CONNECTION_CLOSING,
    CONNECTION_ENDED,
    CONNECTION_REPORTED,
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
    char from[64]; /* address of a client over TLS, for the log */
    struct user *user;
    bool keeper;                    /* may use the reserved places */
    bool stranger;                  /* over TLS, and no HELLO of it was accepted so far */
    bool crowded;                   /* has no place, so that each request is refused */
    bool said_hello;                /* a HELLO was handed to the loop */
    bool parked;                    /* its reader waits for a slot, in l->parked */
    bool writing;                   /* a thread sends */
    unsigned visits;                /* threads that use it outside NNG's callbacks */
    unsigned outstanding;           /* unanswered requests */
    atomic_uint undelivered;        /* requests that the loop has not got; its end comes after */
    unsigned waits;                 /* WAITs among them, which get no answer before an event */
    uint64_t deadline_ns;           /* when it is closed; valid in the lists slow and half */
    uint64_t active_ns;             /* when it was accepted, or its last request came */
    struct connection *prev, *next; /* in the list of its state */
    struct connection *parked_next, *parked_prev;
    UT_hash_handle hh; /* by peer.pipe */

    struct answer *first; /* owned */
    struct answer **last;
    size_t unread; /* bytes of unsent answers */

    /* used by the reader, then by the closer */
    nng_stream *stream;
    nng_aio *recv;
    nng_aio *send; /* for the writing thread */
    struct sp_reader reader;
    struct bytes rest;       /* part of `input` that was not read yet */
    struct request *pending; /* owned; waits for a slot; NULL: none */
    uint8_t *input;          /* owned, INPUT_BYTES */
    uint8_t *output;         /* owned, OUTPUT_BYTES, for the writing thread; NULL: not over TLS */
};

struct listener_slot {
    struct connection *connection;
    struct listener_slot *next; /* in the list of free slots */
    uint32_t id;                /* the client's id of the request */
    bool wait;                  /* the request is a WAIT */
};

/* Slots are allocated in blocks, and do not move. */
#define SLOT_BLOCK 64u
struct slot_block {
    struct slot_block *next;
    struct listener_slot slot[SLOT_BLOCK];
};

/* An address that the daemon listens on. */
struct door {
    struct listener *listener;
    struct door *next;
    nng_stream_listener *stream;
    nng_aio *accept;
    enum listen_kind kind;
    uint32_t number; /* of the tenant's socket that it is; 0: it is for all */
    char url[LISTEN_URL_MAX];
    nng_tls_config *tls; /* the listener's that `stream` has; not owned */
    uint64_t again_ns;   /* when it accepts again; 0: it accepts; NS_NEVER: no more */
    uint64_t pause_ns;   /* length of the last pause */
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
    struct request *batch;          /* (loop) owned: requests that are being delivered */
    struct connection *batch_ended; /* (loop) ends that are delivered after them */
    nng_aio *reply;                 /* (loop) sends what the system takes at once */
    pthread_t closer;
    bool closer_runs;

    pthread_mutex_t lock; /* guards all below */
    pthread_cond_t to_close;
    pthread_cond_t ended;
    struct door *doors;
    nng_tls_config *tls;        /* owned, for tls+tcp; NULL: none */
    nng_tls_config *tls_before; /* owned: a door may be about to use it still */
    uint64_t accept_ns;         /* when a paused door accepts again; NS_NEVER: none is paused */
    struct connection *connections;
    struct user *users;
    struct listener_slot *free_slots;
    struct slot_block *blocks;
    unsigned busy;           /* slots in use */
    unsigned connected;      /* connections with a place, not closing */
    unsigned turned_away;    /* connections without a place, not closing */
    unsigned strangers;      /* connections over TLS before their HELLO, not closing */
    unsigned alive;          /* connections that have not ended */
    uint32_t last_pipe;      /* number of the newest connection */
    struct connection *slow; /* greeting or silent, oldest first */
    struct connection *half;
    struct connection *closing_list;
    struct connection *ended_list;
    struct connection *parked;
    struct user *turns; /* users with requests for the loop */
    struct members keepers;
    uint64_t full_logged_ns; /* when the log last had a line that all places are in use; 0: never */
    uint64_t tls_logged_ns;  /* … that a handshake of TLS failed; 0: never */
    bool ending;             /* no connection is accepted any more */
    bool starved;            /* only reserved descriptors are left */
    bool starve_logged;      /* the log has the shortage, and not yet its end */
    uint64_t starve_log_ns;  /* the next shortage is logged from then on */
    bool waked;              /* a wake-up of the loop is under way */
    bool wake_pending;       /* listener_unlock is to wake the loop */
    struct listener_stats stats;
};

static inline void listener_lock(struct listener *l)
{
    (void)pthread_mutex_lock(&l->lock);
}

/* Wakes the loop if wake_pending is set. */
static inline void listener_unlock(struct listener *l)
{
    bool wake = l->wake_pending && !l->waked;
    l->wake_pending = false;
    l->waked = l->waked || wake;
    (void)pthread_mutex_unlock(&l->lock);
    if (wake) {
        (void)uv_async_send(&l->wake);
    }
}

/* ---- door.c: addresses --------------------------------------------------------------------- */

/* number: of a tenant's socket, which none but the daemon's user may connect to yet; 0: for all. */
int door_open(struct listener *l, const char *url, enum listen_kind kind, uint32_t number,
              struct err *e);
void door_close(struct listener *l, uint32_t number); /* (loop) blocks */
void doors_renew_tls(struct listener *l);             /* (loop) accepts anew, with l->tls */
void doors_retry(struct listener *l, uint64_t now);   /* (loop) */
void doors_close(struct listener *l);                 /* blocks */
/* Locked: notes and logs a shortage of descriptors, or its end. */
void doors_starve(struct listener *l, bool starved);

/* ---- places.c: admission of connections; all locked ------------------------------------------ */

/* Gives a connection its user and a place. Without a place it is crowded, if there is room for
 * connections that are only refused. false: no room, or no memory. */
bool place_take(struct listener *l, struct connection *c);
/* The refusal of a request of a crowded connection. */
int place_refusal(const struct listener *l, struct err *e);
/* May the connection have one more unanswered request? If not, that is logged. */

/* ---- slot.c: unanswered requests; all locked ------------------------------------------------- */

/* NULL: no memory, or as many requests of the connection or its user are unanswered as may be. */
struct listener_slot *slot_take(struct connection *c, uint32_t id, bool wait);
void slot_free(struct listener *l, struct listener_slot *slot);
void slots_destroy(struct listener *l);

/* ---- rounds.c: the order of requests; all locked --------------------------------------------- */

void rounds_put(struct connection *c, struct request *r); /* takes the request */
/* The next requests for the loop, a few of each user, in turn; NULL: there are none. */
struct request *rounds_take(struct listener *l);
/* Takes ended connections, all of whose requests the loop has got, out of ended_list. */
struct connection *rounds_ended(struct listener *l);

/* ---- connection.c: the states of a connection ------------------------------------------------ */

struct connection *connection_find(struct listener *l, uint32_t pipe); /* locked; NULL: reported */
/* Locked: the one way to change the state. false: the table lacks the step, and nothing changed.
 * Steps that come too late are normal: a connection may be closed at any time. */
bool connection_step(struct connection *c, enum connection_state to);
void connection_end(struct connection *c);   /* locked: closes it, if it is not closing yet */
void connection_visit(struct connection *c); /* locked */
void connection_leave(struct connection *c); /* locked: ends a visit */
/* (loop) Locked: the first of batch_ended is reported. Frees it, if no slot is left. */
void connection_reported(struct connection *c);
void connection_free(struct connection *c);
/* Locked: the count of connections that includes `c`. */
unsigned *place_count(struct listener *l, const struct connection *c);
void user_release(struct listener *l, struct user *u); /* locked: frees it, if its counts are 0 */

/* ---- admit.c: the begin of a connection ------------------------------------------------------ */

/* Takes the stream. (NNG's thread) */
void connection_admit(struct door *door, nng_stream *stream);

/* ---- closer.c: the end of a connection ------------------------------------------------------- */

/* Blocks until none of its callbacks runs. Frees all but the struct. */
void connection_finish(struct connection *c);
void *connections_closer(void *listener); /* a thread's main */

/* ---- tls.c: certificates of addresses -------------------------------------------------------- */

void tls_free(struct listener *l);

/* ---- reader.c -------------------------------------------------------------------------------- */

void reader_start(struct connection *c);
void reader_received(void *connection); /* NNG's callback */
/* (loop) Continues parked connections, as far as there are slots. */
void readers_resume(struct listener *l);

/* ---- writer.c -------------------------------------------------------------------------------- */

void writer_sent(void *connection); /* NNG's callback */
/* Copies a message and sends it as soon as possible. slot NULL: the bytes are sent as they are. */
void writer_post(struct connection *c, struct listener_slot *slot, struct bytes message);
/* (loop) The same, and sends it at once, if no answer waits before it. */
void writer_reply(struct listener *l, struct listener_slot *slot, struct bytes message);
void writer_drop(struct connection *c); /* locked: drops unsent answers with their slots */

#endif
