/*
 * A job: one submission of a program. job_state.h has its states. The table of jobs owns it. An
 * ended job remains there for a while, so that clients can ask about it. Thread: the loop's.
 */
#ifndef FRONT_MODEL_JOB_H
#define FRONT_MODEL_JOB_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/front/model/agenda.h"
#include "daemon/front/model/job_state.h"
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

/* `succ` runs after `pred`, which uses the same parts of arenas. In both jobs' lists. */
struct job_edge {
    struct job *pred;
    struct job *succ;
    struct job_edge *prev_succ, *next_succ; /* of pred */
    struct job_edge *prev_pred, *next_pred; /* of succ */
};

/* What hazard.c has left to check. Zeroed at the start; empty when no job is unfinished. */
struct hazards {
    struct hazard_group *unchecked; /* groups whose members may be free to run, or rank earlier */
    struct buffer_use *walk;        /* position of the walk along the uses behind a job */
};

#define HAZARD_AFTER_MAX 32u /* predecessors that a worker is asked to wait for */

/* The direct predecessors of a job. */
struct hazard_preds {
    struct job *job[HAZARD_AFTER_MAX];
    unsigned count;
};

#define PRIORITY_MAX      16
#define PRIORITY_LEVEL_NS ((int64_t)NS_PER_S)

struct timing {
    uint64_t step, begin_ns, end_ns;
    char by[16]; /* implementation that ran the operation; "" where there is one only */
};

/* Its place among the jobs that are ready. queue.c changes it after admission. */
struct job_sched {
    int64_t rank;            /* smaller ones go first, then smaller ids */
    bool urgent;             /* of more than the usual priority, or an urgent job waits for it */
    struct heap_entry ready; /* in the queue of its device, or of any */
    struct job *module_prev, *module_next; /* in front->module_jobs; NULL: not there */
    struct job *raise_next;                /* scratch of want_all */
};

/* Its edges to other jobs, for parts of arenas. hazard_parts.c changes them. */
struct job_order {
    struct job_edge *preds;
    struct job_edge *succs;
    bool marked;            /* scratch of walks along edges and predecessors */
    struct job *freed_next; /* scratch of release_uses */
};

/* How long it has run. job_set_state, job_pause, job_resume and flight.c change it. */
struct job_clock {
    uint64_t place;     /* among the jobs that its device is seen to run, 0: it is not */
    uint64_t turned_ns; /* when its worker last reported it as running or as paused */
    uint64_t clear_ns;  /* when the last job with a smaller place left the device, 0: none did */
    uint64_t spent_ns;  /* of its time limit, before `turned_ns` */
};

struct job {
    /* identity: written once, before the job is in the table */
    uint64_t id;
    enum job_origin origin;
    uint64_t session_id;   /* of the session that submitted it, for people; 0: the daemon's own */
    struct tenant *tenant; /* NULL: the daemon's own */
    bool detached;         /* outlives its session */
    char label[PROTO_LABEL_MAX + 1];
    int64_t priority; /* as asked for */
    uint64_t trace_id;
    uint64_t submitted_ns;
    uint64_t deadline_ns; /* absolute, NS_NEVER */
    uint64_t limit_ns;    /* of execution: ends its answer */
    uint64_t ceiling_ns;  /* by the settings: ends its worker; less than limit_ns counts as that */
    uint64_t charged;     /* bytes of memory until its end, counted in the front */

    /* its client: until the end of the job, or of the session */
    struct session *session; /* counts the job; NULL: the daemon's own, its session or it ended */
    UT_hash_handle hh_seq;   /* in session->own_jobs */
    uint64_t seq;            /* of the request that submitted it */
    bool async;              /* its result goes to EVENTS */
    struct op *op;           /* whose answer it is; NULL: asynchronous, or no client waits */

    /* what to do: until it leaves */
    struct program *program;
    struct request *request; /* owned: has the inline data; NULL: left, or not a client's job */
    struct work work;

    /* where it is: job_set_state and job_set_inputs */
    enum job_state state;
    enum job_wait wait;
    struct {
        enum job_inputs state;
        uint64_t spoiler; /* inputs that are not sound: the job that should have written them */
        int code;         /* its error */
    } inputs;
    bool cancelled; /* its worker was asked to end it (job_cancel) */
    uint64_t dispatched_ns, started_ns, ended_ns;

    /* in the queue */
    struct job_sched sched;
    struct job_order order;
    struct heap_entry expiry; /* in front->deadlines, by deadline_ns */

    /* on a device: dispatch.c, completion.c, flight.c */
    struct device *device; /* bound or running there; NULL: any */
    uint64_t epoch;        /* of the device's worker that has it */
    uint64_t record;       /* its entry in the device's record, 0: none */
    unsigned stream;
    unsigned replays;
    unsigned external;    /* ends of its worker that were not its fault */
    enum job_trust trust; /* job_trust_step changes it */
    uint64_t input;       /* offset of its input in staging memory, RANGE_NONE */
    uint64_t output;      /* of its output */
    struct job_clock clock;
    struct job *device_prev, *device_next; /* in flight on the same device; NULL: on none */

    /* its answer: completion.c, conclude.c, history.c */
    enum job_answer answer; /* job_answer_step changes it */
    struct err error;
    struct timing *timings; /* owned */
    unsigned timing_count;
    struct job *ended_next;            /* in front->leaving, then in front->history */
    struct job *kept_prev, *kept_next; /* in tenant->kept */

    UT_hash_handle hh; /* in front->jobs */
};

/* Adds a job with a new id to the table. */
void job_put(struct job **table, struct job *j);
/* NULL: the table has no job of that id. */
struct job *job_find(struct job *table, uint64_t id);

/* The session counts the job, which belongs to none. */
void job_join(struct job *j, struct session *s);
/* The session, if any, counts the job no longer: the job ended, or its answer is not awaited. */
void job_part(struct job *j);
/* The session's unfinished job that the request `seq` submitted, or NULL. */
struct job *job_of_request(const struct session *s, uint64_t seq);

bool job_ended(const struct job *j);
/* Is it from a worker of an earlier front? */
bool job_adopted(const struct job *j);
/* The one place where a job's state changes: a step of its table (job_state.h). Stamps the time;
 * the job waits for nothing. */
void job_set_state(struct job *j, enum job_state state, uint64_t now_ns);
/* The one place where a job begins to wait; a new state ends that. */
void job_set_wait(struct job *j, enum job_wait wait);
/* The one place where the state of its inputs changes. spoiler: the job that ended without having
 * written them; NULL: they are sound. */
void job_set_inputs(struct job *j, enum job_inputs inputs, const struct job *spoiler);
/* Time after its deadline at which the front answers for a worker that has not reported the job's
 * begin: the worker may be held up. */
#define JOB_LATE_NS (500 * NS_PER_MS)

/* How long it may run: the client's limit, or the settings' once the client is answered. */
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
/* Its rank by its arrival and its priority: each level is worth PRIORITY_LEVEL_NS of waiting, up to
 * PRIORITY_MAX levels. So later jobs that are p levels above a job overtake it for
 * p x PRIORITY_LEVEL_NS and no longer. */
int64_t job_rank(const struct job *j);
/* Does it write nothing outside itself, so that it can run again? */
bool job_repeatable(const struct job *j);
/* Frees what it owns, not the struct. The job must be out of every list. */
void job_finish(struct job *j);
void job_destroy(struct job *j); /* frees the struct, too; NULL is accepted */

/* Encodes the times of its steps as TIMING records. */
int job_timings(const struct job *j, struct capbuf *out, struct err *e);

#endif
