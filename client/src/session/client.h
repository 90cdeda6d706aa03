/*
 * What a client consists of: its connection, its session, its ring lane, its objects and jobs. The
 * files of session/ and api/ work on it; the files of wire/ do not know it.
 *
 * Lock: one mutex per client. A function of session/ and api/ that takes a `struct gpud_client *`
 * runs under it unless its header says otherwise; callbacks of the user never do.
 */
#ifndef CLIENT_SESSION_CLIENT_H
#define CLIENT_SESSION_CLIENT_H

#include <pthread.h>
#include <sys/types.h>

#include "client/include/gpud/gpud.h"
#include "client/src/wire/origin.h"
#include "client/src/wire/request.h"
#include "common/idmap.h"
#include "common/memfd.h"
#include "proto/lane.h"

/* ---- the session: see session.h ------------------------------------------------------------ */

/* The daemon's minor from which on it takes numbers as ranges (TAKEN), cancels by number. */
#define MINOR_RANGES 3u

enum session_state { SESSION_DOWN, SESSION_HELLO, SESSION_RESTORE, SESSION_READY };

struct session {
    enum session_state state;
    uint8_t client_id[PROTO_CLIENT_ID_BYTES];
    uint8_t daemon_id[PROTO_CLIENT_ID_BYTES];
    bool known; /* a daemon has welcomed us before */
    char name[PROTO_NAME_MAX + 1];
    uint8_t token[PROTO_TOKEN_MAX];
    size_t token_size;

    /* what WELCOME told */
    uint64_t major, minor;
    uint64_t max_message;
    uint64_t max_inflight;
    uint64_t max_arena;
    uint64_t max_requests, max_unacked, max_early, max_reorder;
    uint64_t max_buffers, max_arenas, max_modules, max_programs;
    uint64_t max_kept;
    uint64_t linger_ns;
    uint64_t number;
    bool may_load;
    char build[PROTO_NAME_MAX + 1];
    char tenant[PROTO_NAME_MAX + 1];
    char shm[PROTO_SOCKET_MAX + 1]; /* the socket for descriptors, "": none */

    struct request hello;
    struct request wait;
    struct request tell; /* TAKEN */
    unsigned untold;     /* answers over the socket since the last one, and their bytes */
    uint64_t untold_bytes;
    uint64_t taken;     /* number of the last EVENTS */
    uint64_t wait_ns;   /* when to ask again after WAIT was refused; NS_NEVER: not */
    uint64_t again_ns;  /* when a request that was not admitted is sent again; NS_NEVER: none */
    uint64_t told_from; /* HELLO told the fate of all numbers between these two */
    uint64_t told_to;

    bool restoring; /* what was made before is not all known to this daemon yet */
    int restore_stage;
    uint32_t restore_cursor; /* of the buffers: those from there on were not asked for */
    unsigned restores;       /* not answered yet */
    uint64_t epoch;          /* grows when handles of the daemon change */

    uint64_t retry_ns; /* when to connect again */
    uint64_t backoff_ns;
    uint64_t attempt_ns; /* when an attempt that got no WELCOME is given up; NS_NEVER: none */
    uint64_t lost_ns;    /* since when there is no connection; NS_NEVER: there is one */
    bool opening;        /* gpud_open waits; a daemon that is not there may come */
    struct err failure;  /* why it is down; code 0: not */
};

/* ---- the ring lane: see lane.h -------------------------------------------------------------- */

enum lane_mode { LANE_AUTO, LANE_NEVER, LANE_ALWAYS };

enum lane_state {
    LANE_OFF,      /* not asked for on this connection */
    LANE_ASKING,   /* RING_OPEN is on its way */
    LANE_CLAIMING, /* the nonce was shown */
    LANE_UP,
    LANE_REFUSED, /* there is none, as long as this connection lasts */
};

struct lane {
    enum lane_mode mode;
    enum lane_state state;
    struct request open;  /* RING_OPEN */
    unsigned pause;       /* sequenced requests until it is asked for (again) */
    int claim_fd;         /* owned: where the descriptors come, -1 */
    struct memfd memory;  /* owned; its descriptor is closed */
    int daemon_bell;      /* owned: eventfd */
    int bell;             /* owned: pipe; watched by its edges */
    unsigned unread;      /* bytes that may be in the pipe */
    uint64_t spin_ns;     /* how long to look at most, 0: not */
    unsigned misses;      /* looks in a row that found nothing */
    unsigned skip;        /* waits until the next look */
    bool spinning;        /* somebody looks, without the lock */
    struct memfd retired; /* owned: what is looked at was given up meanwhile */
    struct ring_producer out;
    struct ring_consumer in;
    struct err failure; /* why it was refused */
};

/* ---- the client ---------------------------------------------------------------------------- */

struct waiter;
struct gpud_job;

#define JOB_BUCKETS 256

struct job_list {
    struct gpud_job *first;
    struct gpud_job *last;
};

/* A notice that the user's callback has not seen yet. */
struct event {
    struct event *next;
    int kind;
    gpud_buffer buffer;
    char text[256];
};

struct gpud_client {
    pthread_mutex_t lock;
    struct origin origin; /* the process that opened it */
    struct address address;
    uint64_t timeout_ns;
    uint64_t reconnect_ns;

    struct conn conn;
    struct requests requests;
    struct session session;
    struct lane lane;

    /* waiting: one thread at a time watches the connection, the others wait for it */
    struct waiter *waiters;
    bool leading;
    struct waiter *leader; /* who does; NULL: nobody */
    unsigned glances;
    bool closing;

    /* objects: public handle → struct; see handles.h */
    struct idmap buffers;
    struct idmap kernels;
    struct idmap modules;
    struct object *objects; /* all that is restored after a restart */
    uint64_t given_up;      /* the least of these objects' freed_seq; 0: there is none */
    struct arena **arenas;  /* owned array; not owned: objects. By address. */
    unsigned arena_count;
    unsigned arena_room;
    uint64_t stage_after_ns; /* staging memory was refused: not asked for before */
    uint64_t stage_making;   /* bytes of staging memory that is under way */
    uint64_t stage_wish;     /* bytes of an array that found no staging memory; 0: none did */

    struct gpud_program *programs; /* all that exist */
    struct gpud_job *jobs;         /* all that exist */
    uint64_t jobs_live;            /* not ended */
    uint64_t jobs_made;
    struct gpud_job *bucket[JOB_BUCKETS]; /* accepted ones by the daemon's number */
    struct early *early;                  /* for results that come before their ACCEPTED */
    struct job_list ended;                /* whose done callback has not run */

    gpud_event_cb event_cb;
    void *event_user;
    struct event *event_first;
    struct event *event_last;
};

#endif
