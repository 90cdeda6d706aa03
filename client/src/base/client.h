/*
 * The struct of a client: its connection, session, ring lane, objects and jobs. The files of wire/
 * do not know it.
 *
 * Lock: one mutex per client. A function that takes a `struct gpud_client *` runs under the lock
 * unless its header says otherwise. The user's callbacks run without it.
 */
#ifndef CLIENT_BASE_CLIENT_H
#define CLIENT_BASE_CLIENT_H

#include <pthread.h>
#include <sys/types.h>

#include "client/include/gpud/gpud.h"
#include "client/src/wire/origin.h"
#include "client/src/wire/request.h"
#include "common/idmap.h"
#include "common/memfd.h"
#include "proto/lane.h"

/* ---- the session: see session.h ------------------------------------------------------------ */

/* Daemons of this minor version and later accept ranges of numbers (TAKEN) and cancel by number. */
#define MINOR_RANGES 3u

/*
 * Where a session is on its connection. state.c has the table of steps.
 *
 *   down → hello        a connection begins; HELLO waits for its answer
 *   hello → ready       the first WELCOME, or the same daemon again
 *   hello → restore     another daemon: the session's objects are made there again
 *   restore → ready     it has all of them; requests go out
 *   any → down          the connection is lost, or could not be made
 */
enum session_state { SESSION_DOWN, SESSION_HELLO, SESSION_RESTORE, SESSION_READY };

struct session {
    enum session_state state; /* changed by session_step alone */
    uint8_t client_id[PROTO_CLIENT_ID_BYTES];
    uint8_t daemon_id[PROTO_CLIENT_ID_BYTES];
    bool known; /* a daemon has answered HELLO before */
    char name[PROTO_NAME_MAX + 1];
    uint8_t token[PROTO_TOKEN_MAX];
    size_t token_size;
    char token_file[TLS_PATH]; /* from which `token` is read for each connection; "": none */

    /* fields of WELCOME */
    uint64_t major, minor;
    uint64_t max_message;
    uint64_t max_inflight;
    uint64_t max_arena;
    uint64_t max_requests, max_unacked, max_early, max_reorder;
    uint64_t max_buffers, max_arenas, max_modules, max_programs;
    uint64_t max_kept;
    uint64_t linger_ns;
    uint64_t number;
    uint64_t lineage;
    bool may_load;
    char build[PROTO_NAME_MAX + 1];
    char tenant[PROTO_NAME_MAX + 1];
    char shm[PROTO_SOCKET_MAX + 1]; /* the socket for descriptors, "": none */

    struct request hello;
    struct request wait;
    struct request taken_request; /* TAKEN */
    unsigned unreported;          /* answers over the socket since the last TAKEN */
    uint64_t unreported_bytes;    /* bytes of these answers */
    uint64_t events_seen;         /* number of the last EVENTS */
    uint64_t wait_ns;             /* when a refused WAIT is sent again; NS_NEVER: none */
    uint64_t again_ns; /* the first time at which a request that was not admitted is sent again;
                      NS_NEVER: no request waits */
    uint64_t reported_from; /* HELLO reported the answered numbers from here … */
    uint64_t reported_to;   /* … up to this one, which is not included */

    bool restoring; /* this daemon does not have all objects yet; remains set if the connection
                       breaks */
    bool anew;      /* a session before this one is over; until all objects are restored */
    int restore_stage;
    uint32_t restore_cursor; /* the first buffer that the daemon was not asked about */
    unsigned restores;       /* unanswered requests of restoring */
    uint64_t epoch;          /* grows when handles of the daemon change */

    uint64_t retry_ns; /* when to connect again */
    uint64_t backoff_ns;
    uint64_t attempt_ns; /* when an attempt without WELCOME fails; NS_NEVER: no attempt */
    uint64_t lost_ns;    /* when the connection was lost; NS_NEVER: connected */
    bool opening;        /* gpud_open waits for a daemon, which may not have started yet */
    struct err failure;  /* why the session is down; code 0: it is not */
};

/* ---- the ring lane: see lane.h -------------------------------------------------------------- */

enum lane_mode { LANE_AUTO, LANE_NEVER, LANE_ALWAYS };

/*
 * Where the lane is on its connection. state.c has the table of steps.
 *
 *   off → asking          RING_OPEN is sent
 *   asking → claiming     the daemon answered; its nonce is shown on the socket for descriptors
 *   claiming → up         the descriptors came; requests go through the rings
 *   any → refused         the daemon has no lane, or the lane broke; the client does not ask again
 *                         on this connection
 *   any → off             the connection is lost; or, in mode auto, the client asks again later
 */
enum lane_state { LANE_OFF, LANE_ASKING, LANE_CLAIMING, LANE_UP, LANE_REFUSED };

struct lane {
    enum lane_mode mode;
    enum lane_state state; /* changed by lane_step alone */
    struct request open;   /* RING_OPEN */
    unsigned pause;        /* sequenced requests until the client asks for a lane */
    int claim_fd;          /* owned: the socket for the descriptors; -1: none */
    struct memfd memory;   /* owned; its descriptor is closed */
    int daemon_bell;       /* owned: eventfd */
    int bell;              /* owned: doorbell of this client; watched by its edges */
    uint64_t spin_ns;      /* longest time of spinning, 0: no spinning */
    unsigned misses;       /* consecutive spins that found no answer */
    unsigned skip;         /* waits until the next spin */
    bool spinning;         /* a thread spins without the lock */
    struct memfd retired;  /* owned: memory on which a thread spins and that was released */
    struct ring_producer out;
    struct ring_consumer in;
    struct err failure; /* why it was refused */
};

/* ---- the client ---------------------------------------------------------------------------- */

struct waiter;
struct gpud_job;

#define JOB_BUCKETS 256

#define LOST_EARLY_MAX 64u

struct job_list {
    struct gpud_job *first;
    struct gpud_job *last;
};

/* An event for the user's callback. */
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

    /* waiting: one thread at a time watches the connection, the others wait for that thread */
    struct waiter *waiters;
    bool leading;
    struct waiter *leader; /* the thread that watches; NULL: none */
    unsigned glances;
    bool closing;

    /* objects: public handle → struct; see handles.h */
    struct idmap buffers;
    unsigned buffers_lost;               /* of those in `buffers` */
    unsigned buffers_coming;             /* calls that wait for a handle of the daemon */
    uint64_t lost_early[LOST_EARLY_MAX]; /* a ring: see buffer_lost_early */
    unsigned losts_early;
    struct idmap kernels;
    struct idmap modules;
    struct object *objects; /* all objects that a restarted daemon gets again */
    uint64_t given_up;      /* the least freed_seq of these objects; 0: none is freed */
    struct arena **arenas;  /* owned array; not owned: objects. By address. */
    unsigned arena_count;
    unsigned arena_room;
    uint64_t stage_after_ns; /* staging memory was refused: no request before this time */
    uint64_t stage_making;   /* bytes of staging memory that was requested */
    uint64_t stage_wish;     /* bytes of an array that found no staging memory; 0: none */

    struct gpud_program *programs; /* all that exist */
    struct gpud_job *jobs;         /* all that exist */
    uint64_t jobs_live;            /* not ended */
    uint64_t jobs_made;
    struct gpud_job *bucket[JOB_BUCKETS]; /* accepted jobs by the daemon's number */
    struct early *early;                  /* room for results that come before their ACCEPTED */
    struct job_list ended;                /* jobs whose done callback has not run */

    gpud_event_cb event_cb;
    void *event_user;
    struct event *event_first;
    struct event *event_last;
};

#endif
