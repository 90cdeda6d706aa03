/*
 * A session: a client's standing with the daemon. It is named by (client id, uid) and survives a
 * broken connection. Its requests are admitted in the order of their sequence numbers, each once;
 * an answer is kept until the client says that it has it. Thread: the loop's.
 */
#ifndef FRONT_MODEL_SESSION_H
#define FRONT_MODEL_SESSION_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <uthash.h>

#include "common/bytes.h"
#include "common/err.h"
#include "common/idmap.h"
#include "daemon/front/model/agenda.h"
#include "daemon/front/model/device.h"
#include "daemon/front/model/taken.h"
#include "proto/messages.h"

#define REORDER_MAX 256u   /* requests that may come before their turn */
#define OPS_MAX     16384u /* requests of a session whose answers it has not acknowledged */
#define OP_SMALL    64u    /* bytes of an answer that needs no memory of its own */
#define EARLY_BYTES (64u * 1024u * 1024u) /* of requests that came before their turn */

#define MODULES_MAX  1024u
#define PROGRAMS_MAX 4096u

struct arena;
struct lane;
struct buffer;
struct buffer_opening;
struct job;
struct listener_slot;
struct module;
struct program;
struct request;
struct session;
struct spare;
struct tenant;

/* One sequenced request: pending, then answered; the answer is kept until it is acknowledged. */
struct op {
    uint64_t seq; /* key */
    struct session *session;
    struct listener_slot *slot; /* where the answer goes; NULL: the connection broke, or answered */
    uint32_t ring_id;           /* or there: the request's id in the session's ring, 0: not */
    bool in_ring;               /* its answer is in the ring, up to lane_end, and not taken yet */
    uint32_t lane_end;
    struct op *ring_prev, *ring_next; /* in session->in_ring */
    struct op *open_prev, *open_next; /* in session->open: not answered */
    bool answered;
    uint8_t *reply; /* owned, or `small`; NULL: was not kept */
    size_t reply_size;
    uint8_t small[OP_SMALL];
    uint64_t job; /* the job it started, 0 if none */
    bool loose;   /* not sequenced: known to whoever will answer it only, gone when answered */
    UT_hash_handle hh;
};

struct session_key {
    uint8_t client_id[PROTO_CLIENT_ID_BYTES];
    uint32_t uid;
};

/* How far the end of a session has come: what it has is many things. */
enum session_end {
    END_JOBS,
    END_PROGRAMS,
    END_MODULES,
    END_OPENINGS,
    END_BUFFERS,
    END_ARENAS,
    END_ANSWERS,
    END_DONE,
};

/* A way through all of a session's ops, in slices: those whose answers were taken go. sweep.c's. */
struct op_sweep {
    bool on;    /* and the session in front->sweeping */
    bool again; /* more were taken meanwhile: once more from the start */
    struct op *at;
    struct request *request;     /* TAKEN, which is answered at the end; owned; NULL: an ack */
    struct taken taken;          /* what it says */
    uint64_t below;              /* no higher number was admitted when it came */
    uint64_t count;              /* of those that went for it */
    struct session *prev, *next; /* in front->sweeping */
};

struct notice {
    unsigned kind;
    uint64_t handle;
    struct notice *next;
};

/* Whose next job waits for room. Who waits for what all share stays in front of all that came
 * later; who waits for an end of its own, or its tenant's, goes behind the others when it was
 * tried. */
struct parking {
    struct session *first;  /* waits longest */
    struct session *turn;   /* is tried now: not in the list meanwhile */
    struct session *behind; /* the one in turn: where it goes if there is no room; NULL: the end */
    struct session *next;   /* is tried next; NULL: all were, since a job ended */
    unsigned common; /* so many wait for what all share: their room is not for who comes new, */
    uint64_t common_bytes;   /* nor is that of their requests */
    bool ended;              /* a job has, since they were tried */
    uint64_t bytes;          /* of all these jobs' requests: no more than staging.input_bytes */
    struct agenda deadlines; /* sessions, by the deadlines of their jobs */
};

struct session {
    struct session_key key;
    uint64_t id; /* for people: status and logs */
    char name[PROTO_NAME_MAX + 1];
    struct tenant *tenant;
    uint32_t pipe; /* 0: no connection */
    bool local;
    uint64_t minor;            /* of its client's protocol */
    uint32_t gid;              /* of a local client: its primary group */
    pid_t pid;                 /* of an ipc client, 0 unknown */
    int pidfd;                 /* -1 unknown; owned */
    uint64_t lingers_until_ns; /* NS_NEVER while connected */
    bool fresh; /* no numbered request came yet: HELLO says what the client has taken already */
    uint64_t expect; /* sequence number that is admitted next */
    uint64_t acked;  /* answers up to here were taken */
    struct op *ops;  /* uthash by seq: pending, or answered and not acknowledged */
    unsigned op_count;
    struct op *open;         /* of these, those that are not answered; oldest first */
    unsigned unanswered;     /* their number */
    struct op_sweep sweep;   /* answers that were taken are being forgotten */
    struct spare *spare_ops; /* where ops come from and go; not owned, NULL: malloc alone */
    uint64_t op_last;        /* no request has had a higher number */
    struct taken taken;      /* behind `expect`: answered by a front before this one */
    struct taken known;      /* numbers of answers that this front had when it began */
    uint64_t resumed;        /* HELLO said so: the client has all answers to numbers below */
    uint64_t kept_bytes;     /* of answers */
    struct request *early;   /* requests that came before their turn, sorted by seq */
    unsigned early_count;
    uint64_t early_bytes;
    bool parked; /* the first of them is a job that waits for room; in front->parked */
    bool common; /* what its job found no room in last is what all share */
    size_t parked_bytes;
    uint64_t parked_seq;          /* its number; also while it is tried again or sent again */
    uint64_t parked_since_ns;     /* when it was tried first */
    struct heap_entry parked_due; /* in front->parked.deadlines; not in it: no deadline */
    struct session *parked_prev, *parked_next;
    struct lane *lane;          /* its ring lane, NULL: none */
    struct op *in_ring;         /* whose answers are in it, oldest first */
    int lane_error;             /* why it gets no other lane, 0: it may */
    struct listener_slot *wait; /* a held WAIT */
    uint64_t wait_until_ns;
    struct heap_entry due; /* in front->standings */
    uint64_t event_number;
    struct bytes_owned {
        uint8_t *data;
        size_t size;
    } event; /* the last EVENTS, until it is taken */
    struct notice *notices;
    struct notice *notices_last;
    unsigned notice_count;
    struct async_result *results; /* completions of asynchronous jobs not told yet */
    struct async_result *results_last;
    struct async_result *told; /* those in `event` */
    uint64_t result_bytes;     /* of both, as async_result_bytes says */
    unsigned jobs;             /* unfinished */
    struct job *own_jobs;      /* these; uthash by seq, job.c's */
    unsigned buffers;
    unsigned opens;                  /* of published buffers */
    struct buffer_opening *openings; /* what it opened; uthash, buffer.c's */
    struct buffer *owned;            /* what it made, by owned_prev and owned_next */
    uint32_t near[DEVICES_MAX];      /* of both, those on each device that are not lost */
    unsigned arenas;
    uint64_t arena_bytes;
    unsigned modules;
    unsigned programs;
    struct arena *own_arenas; /* these, by owned_prev and owned_next, as those below */
    struct module *own_modules;
    struct program *own_programs;
    uint64_t program_bytes;
    uint64_t requests;    /* admitted since it began */
    enum session_end end; /* in front->ending */
    bool end_all;         /* and so do jobs that were to outlive it */
    struct session *ending_next;
    UT_hash_handle hh;      /* by key */
    UT_hash_handle hh_pipe; /* by pipe, while it is not 0 */
};

/* A completion that waits for the session's WAIT. */
struct async_result {
    struct async_result *next;
    uint64_t job;
    size_t size;
    uint8_t record[]; /* an encoded RESULT */
};

/* client_id: PROTO_CLIENT_ID_BYTES. */
struct session_key session_key(const uint8_t *client_id, uint32_t uid);
/* In a table of sessions; NULL: there is none. */
struct session *session_find(struct session *all, const struct session_key *key);
struct session *session_create(const struct session_key *key, struct tenant *tenant, uint64_t id);
/* Frees memory, that of requests in `early`, too; slots, buffers and jobs must have been dealt
 * with. */
void session_destroy(struct session *s);

/* NULL also for one whose answer was taken, and that is not forgotten yet. */
struct op *op_find(struct session *s, uint64_t seq);
struct op *op_create(struct session *s, uint64_t seq, struct listener_slot *slot);
struct op *op_create_loose(struct session *s, struct listener_slot *slot);
/* Keeps a copy of the answer. false: memory was out; the op is answered all the same. */
bool op_answer(struct op *o, struct bytes reply);
/* An ack has passed it: nobody will ask for its answer again. */
bool op_passed(const struct op *o);
/* HELLO said that the client has its answer, or is to have it from a front before this one. */
bool op_left(const struct op *o);
/* Its answer is not in the ring any more. */
void op_leave_ring(struct op *o);
void op_destroy(struct op *o);

/* Was its answer taken from a front before this one? Nobody waits for that number. */
bool session_took(const struct session *s, uint64_t seq);
/* The ops of a front that begins are all there: session_skip goes past their answers in ranges, not
 * one by one. Sorts them. */
void session_know(struct session *s);
/* Goes past numbers that need not come: those taken, and those known already; with `answered` only
 * those of them that are answered. How many ranges and ops it looked at. */
uint64_t session_skip(struct session *s, bool answered);

/* Puts a request that came early in its place; takes it. Of two with the same number one goes: the
 * caller's, or NULL: the older, but not one of the socket for one of a ring. ERR_BUSY over
 * `window`. */
int session_early_put(struct session *s, struct request *r, uint64_t seq, unsigned window,
                      struct request **ret_other, struct err *e);
struct request *session_early_find(struct session *s, uint64_t seq); /* stays there; or NULL */
struct request *session_early_take(struct session *s, uint64_t seq); /* the caller's; or NULL */
struct request *session_early_drop(struct session *s); /* any, the caller's; NULL: none is left */

/* The next of its requests waits for room: behind all others, or `again`, where it did before its
 * turn. until_ns: the job's deadline; NS_NEVER: none. */
void session_park(struct parking *p, struct session *s, size_t bytes, uint64_t until_ns,
                  bool again);
void session_unpark(struct parking *p, struct session *s); /* not any more */
/* Is its request `seq` tried now because it waited? */
bool session_in_turn(const struct parking *p, const struct session *s, uint64_t seq);
/* When that request had its turn first; `now_ns` if it has it now. */
uint64_t session_arrived(const struct session *s, uint64_t seq, uint64_t now_ns);

/* Its lane is gone: answers that were on their way there are asked for again. */
void session_lane_gone(struct session *s);

/* `usual`: so many of all its tenant's sessions at most, unless the tenant's section says. false:
 * it is dropped, for that limit, or the session's own, or without memory. */
bool session_notice(struct session *s, uint64_t usual, unsigned kind, uint64_t handle);
/* The oldest goes. */
void session_notice_drop(struct session *s);
bool session_result(struct session *s, uint64_t job, struct bytes record);
/* What it takes: not the record alone, which may be next to nothing. */
size_t async_result_bytes(const struct async_result *r);
/* What the front keeps of messages: answers, results, requests before their turn, programs. Counted
 * in `part`, a member of the session, and with its tenant. session_destroy lets go of the rest. */
void session_keep(struct session *s, uint64_t *part, uint64_t bytes);
void session_let_go(struct session *s, uint64_t *part, uint64_t bytes);

/* The refusal of a handle that names nothing of the session's: ERR_STALE_HANDLE if it had it once,
 * else ERR_BAD_HANDLE, whether it is another's or never was. */
int session_lacks(const struct session *s, const struct idmap *map, uint64_t handle,
                  const char *noun, struct err *e);

#endif
