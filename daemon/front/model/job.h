/*
 * A job: one submission of a program. Its state changes in job_set_state only. It is owned by the
 * job table; ended ones stay there for a while, so that they can be asked about. Thread: the
 * loop's.
 */
#ifndef FRONT_MODEL_JOB_H
#define FRONT_MODEL_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/front/model/agenda.h"
#include "daemon/front/model/work.h"
#include "proto/messages.h"

struct buffer_use;
struct device;
struct hazard_group;
struct job;
struct op;
struct program;
struct request;
struct session;
struct tenant;

enum job_state {
    JOB_QUEUED,
    JOB_DISPATCHED, /* given to a worker */
    JOB_RUNNING,    /* the worker saw it run */
    JOB_DONE,
    JOB_FAILED,
    JOB_CANCELLED,
    JOB_LOST, /* its worker ended and it may have had effects */
    JOB_STATES,
};

/* Why a queued job is not dispatched. */
enum job_wait {
    WAIT_NOTHING,
    WAIT_HAZARD,  /* for jobs that use the same buffers */
    WAIT_WINDOW,  /* its turn: the device has enough in flight */
    WAIT_MODULE,  /* a kernel is being compiled or loaded */
    WAIT_STAGING, /* staging memory is taken */
    WAIT_ALONE,   /* it is to run alone and others still run */
    WAIT_MEMORY,  /* its worker has it, and the device no room for what it needs */
};

/* `succ` runs after `pred`, for parts of arenas. In both jobs' lists. */
struct job_edge {
    struct job *pred;
    struct job *succ;
    struct job_edge *prev_succ, *next_succ; /* of pred */
    struct job_edge *prev_pred, *next_pred; /* of succ */
};

/* What is left to look at (hazard.h). Zeroed at the start; empty when no job is unfinished. */
struct hazards {
    struct hazard_group *due; /* groups whose members may go on, or are to go sooner */
    struct buffer_use *walk;  /* where the walk along those behind a job stands */
};

#define HAZARD_AFTER_MAX 32u /* predecessors that a worker is asked to wait for */

/* Those directly before a job. */
struct hazard_preds {
    struct job *job[HAZARD_AFTER_MAX];
    unsigned count;
};

#define PRIORITY_MAX      16
#define PRIORITY_LEVEL_NS ((int64_t)NS_PER_S)

struct timing {
    uint64_t step, begin_ns, end_ns;
    char by[16]; /* what served the operation, "" where there was no choice */
};

struct job {
    uint64_t id;
    enum job_state state;
    enum job_wait wait;
    struct session *session; /* NULL: the daemon's own, its session ended, or the job has */
    bool joined;             /* counted there, and in session->own_jobs by hh_seq */
    UT_hash_handle hh_seq;
    uint64_t session_id;   /* of that session, for people; 0: the daemon's own */
    struct tenant *tenant; /* NULL: the daemon's own */
    struct op *op;         /* whose answer it is; NULL if asynchronous or nobody waits */
    uint64_t seq;          /* of the request that submitted it */
    bool async;
    bool detached; /* outlives its session */
    bool probe;    /* the first job of a device */
    char label[PROTO_LABEL_MAX + 1];
    int64_t priority; /* as asked for */
    int64_t rank;     /* its place among those that are ready: smaller ones first, then by id */
    bool urgent;      /* of more than the usual priority, or somebody urgent waits for it */
    uint64_t trace_id;

    struct program *program;
    struct request *request; /* inline data lies in it; gone once staged */
    struct work work;

    struct device *device; /* bound or running there; NULL: any */
    uint64_t epoch;        /* of the device's worker that has it */
    uint64_t record;       /* its entry in the device's record, 0: none */
    unsigned stream;
    unsigned replays;
    unsigned external; /* ends of its worker that were not its fault */
    bool alone;        /* runs with nothing beside it: it ended its worker, or one beside it did */
    bool suspect;      /* ended its worker, as it seems, and has not run again since */
    bool tainted;      /* what it read was undefined after all */
    bool cancelled;    /* asked for */
    bool adopted;      /* from a worker of an earlier front: no work, no replay */
    bool touches_arenas; /* adopted, and used arenas: which parts was not told */
    bool starved;        /* what it was to read was never written: it must not run */
    uint64_t spoiler;    /* tainted, starved: the job that should have written it */
    int spoiler_code;    /* and its error */
    bool retained;       /* the worker's ledger still has it, its answer was not taken */
    bool kept;           /* out of the history, and still retained */
    bool answered;       /* its client has its error, and the device is not done with it yet */
    bool taken;          /* and that answer was taken */

    uint64_t deadline_ns;     /* absolute, NS_NEVER */
    struct heap_entry expiry; /* in front->deadlines, by that time */
    uint64_t limit_ns;        /* of execution: ends its answer */
    uint64_t ceiling_ns; /* by the settings: ends its worker; less than limit_ns counts as that */
    uint64_t submitted_ns, dispatched_ns, started_ns, ended_ns;
    uint64_t start;     /* its place among those that its device is seen to run, 0: it is not */
    uint64_t turned_ns; /* when its worker last reported it as running or as paused */
    uint64_t alone_ns;  /* when the last that was seen to run before it left the device, 0: none */
    uint64_t spent_ns;  /* of its time limit, before `turned_ns` */
    uint64_t charged;   /* bytes of memory until its end, counted in the front */
    uint64_t input;     /* offsets of its staging ranges, RANGE_NONE */
    uint64_t output;

    struct job_edge *succs;
    struct job_edge *preds;
    bool marked;  /* while edges or predecessors are gone through */
    bool leaving; /* ended, and those behind it are not told yet */
    struct job *leaving_next;
    struct job *freed_next;                /* while one that it waited for leaves */
    struct heap_entry ready;               /* in the queue of its device or of any, queue.c's */
    struct job *raise_next;                /* while ranks are handed down */
    bool for_module;                       /* in front->module_jobs */
    struct job *module_prev, *module_next; /* there */
    struct job *device_prev, *device_next; /* in flight on the same device */

    struct err error;
    struct timing *timings; /* owned */
    unsigned timing_count;
    struct job *history_next;
    struct job *kept_prev, *kept_next; /* in tenant->kept */
    UT_hash_handle hh;
};

/* The table of jobs, by id: put in, which is new there; NULL: it has none of that id. */
void job_put(struct job **table, struct job *j);
struct job *job_find(struct job *table, uint64_t id);

/* A new job of the session; it is not of one yet. */
void job_join(struct job *j, struct session *s);
/* It is nobody's any more, or ended: the session does not count it. */
void job_part(struct job *j);
/* The session's unfinished job that the request `seq` submitted; NULL: there is none. */
struct job *job_of_request(const struct session *s, uint64_t seq);

bool job_ended(const struct job *j);
const char *job_state_name(enum job_state state);
const char *job_wait_name(enum job_wait wait);
/* The one place where a job's state changes. Asserts that the step is possible; stamps the time. */
void job_set_state(struct job *j, enum job_state state, uint64_t now_ns);
/* So long after its deadline the front answers by itself a job of which its worker, which may be
 * held up, has not said that it began. */
#define JOB_LATE_NS (500 * NS_PER_MS)

/* How long it may run: its client's limit, and the settings' once its client was answered. */
uint64_t job_limit_ns(const struct job *j);
/* The worker sees none of the job's kernels run: the job waits for its copies, or behind another
 * job of its stream. The job's time limit stops, and the job holds up no other job's limit. The
 * state stays JOB_RUNNING, since the job may have had effects. Does nothing to a job that is
 * paused. */
void job_pause(struct job *j, uint64_t now_ns);
/* The worker sees one of its kernels run again: the job comes after those that run now. */
void job_resume(struct job *j, uint64_t now_ns);
/* When the job has run too long. The limit of a job that runs begins when the worker has seen it
 * run and all jobs that ran before it have left the device, which may have had no room for it.
 * NS_NEVER while one of those is there: they have limits of their own. Jobs that begin later add no
 * time. A job that is not seen to run has twice its limit and a second, from when it was sent or
 * paused; if an earlier job was on the device then, from when the device was done with what ran
 * before. The caller applies that to the first job of a stream only, while nothing runs. */
uint64_t job_overdue_ns(const struct job *j);
/* Its rank by when it came and by its priority: each level is worth PRIORITY_LEVEL_NS of waiting,
 * up to PRIORITY_MAX levels. So whoever waits is overtaken by later jobs that are p levels above it
 * for p x PRIORITY_LEVEL_NS and no longer. */
int64_t job_rank(const struct job *j);
/* Does it write nothing outside itself, so that it can be run again? */
bool job_repeatable(const struct job *j);
/* Frees what it owns, not the struct; it must be out of every list. */
void job_finish(struct job *j);
void job_destroy(struct job *j); /* the struct, too; NULL is accepted */

/* Its steps' times as TIMING records. */
int job_timings(const struct job *j, struct capbuf *out, struct err *e);

#endif
