/*
 * A session: what the daemon keeps for a client. Its key is (client id, uid, socket), or (client
 * id, TOKEN_UID) with a token, and it survives broken connections. Its numbered requests are
 * admitted in order, each once. An answer is kept until the client acknowledges it. Thread: the
 * loop's.
 *
 * Where a session is:
 *
 *   lingering → connected   HELLO gives it a connection
 *   connected → lingering   the connection broke
 *   lingering → ending      the linger time is over, the client's process ended, BYE, or an
 *                           operator ended it; a connected session lingers first
 *   ending → … → ended      its resources are released step by step, in the order of the enum
 *
 * A new session lingers. If HELLO made it, it gets a connection at once. If the inventory of an
 * adopted worker named it, its client may come back.
 */
#ifndef FRONT_MODEL_SESSION_H
#define FRONT_MODEL_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/heap.h"
#include "common/idmap.h"
#include "common/token.h"
#include "daemon/front/model/ack_set.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/tenant.h"
#include "proto/messages.h"

#define MODULES_MAX  1024u
#define PROGRAMS_MAX 4096u

struct arena;
struct async_result;
struct buffer;
struct buffer_opening;
struct freelist;
struct job;
struct lane;
struct listener_slot;
struct module;
struct notice;
struct op;
struct program;
struct request;
struct tenant;

#define REMOTE_UID UINT32_MAX       /* stands for clients over tcp, whose users are unknown */
#define TOKEN_UID  (UINT32_MAX - 1) /* for those whose token names their tenant */

struct session_key {
    uint8_t client_id[PROTO_CLIENT_ID_BYTES];
    uint32_t uid;
    uint32_t listener; /* number of the tenant's socket by which it connects; 0: one for all */
};

enum session_state {
    SESSION_LINGERING, /* no connection; the session ends at lingers_until_ns */
    SESSION_CONNECTED,
    SESSION_ENDING_JOBS, /* from here on in front->ending, and in no table */
    SESSION_ENDING_PROGRAMS,
    SESSION_ENDING_MODULES,
    SESSION_ENDING_OPENINGS, /* of published buffers */
    SESSION_ENDING_BUFFERS,
    SESSION_ENDING_ARENAS,
    SESSION_ENDING_ANSWERS,
    SESSION_ENDED,
    SESSION_STATES,
};

/* The client's process and protocol, as of its last HELLO. */
struct session_client {
    bool local;     /* connected over ipc: the kernel vouches for uid, gid and pid */
    uint64_t minor; /* minor version of the client's protocol */
    bool by_token;  /* `token` named its tenant */
    struct token_hash token;
    uint32_t gid; /* primary group of a local client */
    pid_t pid;    /* 0: unknown */
    int pidfd;    /* owned; -1: unknown */
};

/* Which numbers of requests are settled. */
struct session_order {
    uint64_t expect; /* the next number to admit */
    uint64_t acked;  /* the client has the answers up to this number */
    bool fresh; /* no numbered request came yet: HELLO still says which answers the client has */
    uint64_t resumed;      /* HELLO said that the client has all answers to lower numbers */
    struct ack_set before; /* numbers from `expect` on, acknowledged to an earlier front */
    struct ack_set known;  /* numbers whose answers this front took over from workers */
};

/* Its unacknowledged requests; op.c's. */
struct op_table {
    struct op *all; /* uthash by number */
    unsigned count;
    struct op *open; /* pending ones, oldest first */
    unsigned open_count;
    struct op *in_ring;        /* those in the ring, oldest first */
    struct freelist *freelist; /* for the memory of ops; not owned; NULL: malloc */
    uint64_t last_seq;         /* the highest number of an op so far */
    uint64_t kept_bytes;       /* bytes of kept answers */
};

/* A walk over all ops, in slices, that forgets acknowledged ops; sweep.c's. */
struct op_sweep {
    enum sweep_state {
        SWEEP_OFF,
        SWEEP_ON,    /* under way; the session is in front->sweeping */
        SWEEP_AGAIN, /* under way, and more ops were acknowledged meanwhile: another walk follows */
    } state;
    struct op *at;
    struct request *request;     /* TAKEN to answer at the end; owned; NULL: none */
    struct ack_set acked;        /* numbers that TAKEN names */
    uint64_t below;              /* TAKEN counts for lower numbers only */
    uint64_t count;              /* ops that were forgotten for TAKEN */
    struct session *prev, *next; /* in front->sweeping */
};

/* Requests that came before their turn; early.c's. */
struct early_requests {
    struct request *first; /* owned; ascending numbers */
    unsigned count;
    uint64_t bytes;
    bool due;                    /* the session is in front->early_due */
    struct session *prev, *next; /* in that list */
};

/* A SUBMIT that waits for room: the next request of the session (parking.h). */
struct parked_request {
    bool waits;  /* the session is in the list of front->parked */
    bool common; /* its last try found no room that all sessions share */
    size_t bytes;
    uint64_t seq;                /* its number; stays while it is tried or sent again; 0: none */
    uint64_t since_ns;           /* when the request was tried first */
    struct heap_entry deadline;  /* in front->parked.deadlines, unless it has no deadline */
    struct session *prev, *next; /* in the list of front->parked */
};

/* Results and notices for the client; session_events.c's. */
struct session_events {
    struct listener_slot *wait; /* of the unanswered WAIT; NULL: none */
    uint64_t wait_until_ns;
    uint64_t number; /* of the last EVENTS */
    struct session_message {
        uint8_t *data;
        size_t size;
    } message;              /* the last EVENTS, owned, until it is acknowledged; NULL: none */
    struct notice *notices; /* oldest first */
    struct notice *notices_last;
    unsigned notice_count;
    struct async_result *results; /* ends of asynchronous jobs, in no EVENTS yet */
    struct async_result *results_last;
    struct async_result *sent; /* the results in `message` */
    uint64_t result_bytes;     /* of `results` and `sent`, as async_result_bytes counts */
};

struct session {
    /* identity */
    struct session_key key;
    uint64_t id;                   /* for status and logs */
    char name[PROTO_NAME_MAX + 1]; /* the client's own name for itself */
    struct tenant *tenant;
    struct session_client client;

    /* life */
    enum session_state state;  /* changed by session_step alone */
    uint32_t pipe;             /* connected: the connection; else 0 */
    uint64_t lingers_until_ns; /* lingering: when it ends */
    struct heap_entry timer;   /* in front->session_timers */
    bool cancels_detached;     /* its end also cancels detached jobs */
    struct session *ending_next;

    /* requests and answers */
    struct session_order order;
    struct early_requests early;
    struct parked_request parked;
    struct op_table ops;
    struct op_sweep sweep;
    uint64_t requests; /* admitted since it began */
    struct lane *lane; /* its ring lane; NULL: none */
    int lane_error;    /* error of its closed lane, after which it gets no other; 0: none */
    struct session_events events;

    /* resources */
    unsigned jobs;        /* unfinished */
    struct job *own_jobs; /* unfinished; uthash by seq, job.c's */
    unsigned buffers;
    unsigned opens;                  /* of published buffers */
    struct buffer_opening *openings; /* uthash by buffer, buffer.c's */
    struct buffer *owned;            /* buffers it made, by owned_prev and owned_next */
    uint32_t near[PLACES_MAX];       /* per device: buffers it made or opened that are not lost */
    unsigned arenas;
    uint64_t arena_bytes;
    unsigned modules;
    unsigned programs;
    struct arena *own_arenas; /* this list and the next two: by owned_prev and owned_next */
    struct module *own_modules;
    struct program *own_programs;
    uint64_t program_bytes;

    UT_hash_handle hh;      /* by key */
    UT_hash_handle hh_pipe; /* by pipe, while connected */
};

/* client_id: PROTO_CLIENT_ID_BYTES. user: listener << 32 | uid, as session_user makes it and
 * records keep it. */
struct session_key session_key(const uint8_t *client_id, uint64_t user);
static inline uint64_t session_user(const struct session_key *key)
{
    return (uint64_t)key->listener << 32 | key->uid;
}
/* NULL: the table has no session of that key. */
struct session *session_find(struct session *all, const struct session_key *key);
/* The one way to change the state. A step that the table lacks ends the process. */
void session_step(struct session *s, enum session_state to);

/* Counts bytes of messages that the front keeps (answers, results, early requests, programs), in
 * `part` (a counter of the session) and in its tenant. session_let_go takes them off again. */
static inline void session_keep(struct session *s, uint64_t *part, uint64_t bytes)
{
    *part += bytes;
    s->tenant->message_bytes += bytes;
}

static inline void session_let_go(struct session *s, uint64_t *part, uint64_t bytes)
{
    *part -= bytes;
    s->tenant->message_bytes -= bytes;
}

/* When the request `seq` was tried first; now_ns if this is its first try. */
static inline uint64_t session_first_try_ns(const struct session *s, uint64_t seq, uint64_t now_ns)
{
    return s->parked.seq == seq && seq != 0 ? s->parked.since_ns : now_ns;
}

/* Refuses a handle that names nothing of the session: ERR_STALE_HANDLE if the session freed it;
 * else ERR_BAD_HANDLE, whether another session has it or it never existed. */
int session_lacks(const struct session *s, const struct idmap *map, uint64_t handle,
                  const char *noun, struct err *e);

#endif
