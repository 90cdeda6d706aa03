/*
 * A job: one submission of a program. job_state.h describes its states. The table front->jobs owns
 * it. An ended job remains there for a while (sched/history.h), so that clients can ask about it.
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_JOB_H
#define FRONT_MODEL_JOB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "common/clock.h"
#include "common/err.h"
#include "daemon/front/model/agenda.h"
#include "daemon/front/model/backlog.h"
#include "daemon/front/model/gate.h"
#include "daemon/front/model/job_state.h"
#include "daemon/front/model/work.h"
#include "proto/messages.h"

struct async_result;
struct buffer_use;
struct device;
struct hazard_group;
struct job;
struct op;
struct program;
struct request;
struct session;
struct stake;
struct tenant;

/* `succ` waits for `pred`, mostly because both use the same parts of arenas. An edge is in the
 * lists of both jobs. */
struct job_edge {
    struct job *pred;
    struct job *succ;
    struct job_edge *prev_succ, *next_succ; /* of pred */
    struct job_edge *prev_pred, *next_pred; /* of succ */
};

/* Work that hazard.c has postponed. Zeroed at the start; empty when no job is unfinished. */
struct hazards {
    struct hazard_group *unchecked; /* groups with members that may be free, or need a new rank */
    struct buffer_use *walk;        /* where conclude.c's leaving_walk is among the uses */
};

#define HAZARD_AFTER_MAX 32u /* limit of predecessors that a job is sent behind */

/* The direct predecessors of a job. */
struct hazard_preds {
    struct job *job[HAZARD_AFTER_MAX];
    unsigned count;
};

#define PRIORITY_MAX      16
#define PRIORITY_LEVEL_NS ((int64_t)NS_PER_S)
#define RANK_SPAN_NS      (60 * NS_PER_S)    /* a job without a deadline ranks as if it had this */
#define CLASS_RANKS       (INT64_C(1) << 60) /* ranks of a class */

struct timing {
    uint64_t step, begin_ns, end_ns;
    char by[16]; /* implementation that ran the operation; "": there is only one */
};

/* What its tenant was charged when it went to its device; sched/shares.c's. */
struct job_charge {
    struct stake *stake; /* NULL: it is not charged */
    unsigned class;
    bool owed; /* of class batch, and taken beside other classes */
    bool sure; /* `ns` was known by jobs of its kind */
    uint64_t ns;
    uint64_t served;      /* the same as virtual time */
    uint64_t ends_ns;     /* when it is expected to have ended; 0: unknown */
    uint64_t expected_ns; /* what it may well take */
    uint64_t portion;     /* of the line */
    uint64_t since_ns;
    struct {
        uint64_t ran_ns, portion, at_ns;
    } spent; /* when its stake last got what it took (spent_ns) */
};

/* The place of a job among ready jobs. queue.c changes it after admission. */
struct job_sched {
    int64_t rank;              /* smaller ones go first, then smaller ids */
    bool urgent;               /* of class realtime, or an urgent job waits for it */
    struct heap_entry ready;   /* among the jobs of its tenant (model/share.h) */
    uint64_t kind;             /* of its work (model/forecast.h) */
    struct backlog_place work; /* how much it is, among the ready jobs of its tenant */
    struct job_charge charge;
};

/* Where a job is that waits elsewhere. queue.c and gate.c change it. */
struct job_await {
    struct job_gate gate;    /* where its tenant is at a limit */
    struct job *prev, *next; /* in front->awaiting; prev NULL: not there */
    struct job *raise_next;  /* scratch of want_all */
};

/* The edges of a job to other jobs (hazard_parts.h). hazard_parts.c changes them. */
struct job_order {
    struct job_edge *preds;
    struct job_edge *succs;
    bool marked;            /* scratch of walks along edges and predecessors */
    struct job *freed_next; /* scratch of release_uses */
};

/* How long a job has run. job_set_state, job_pause, job_resume and flight.c change it. */
struct job_clock {
    uint64_t place;     /* among the jobs that the device is seen to run; 0: it is not one */
    uint64_t turned_ns; /* when its worker last reported that it runs or pauses */
    uint64_t clear_ns;  /* when the last job with a smaller place left or paused; 0: none did */
    uint64_t spent_ns;  /* part of its time limit that is used up, before `turned_ns` */
    uint64_t looked_ns; /* when the front looked at it last of these times */
    unsigned looks;     /* since its time is used up; two at most */
};

/* The first part is what a decision of the scheduler touches, side by side: with many jobs in line
 * each cache line of a job is a miss. */
struct job {
    /* identity: written once, before the job is in the table */
    uint64_t id;
    struct tenant *tenant; /* NULL: the daemon's own job */
    int64_t priority;      /* as requested */
    uint64_t job_class;    /* enum proto_class, not CLASS_USUAL */
    uint64_t submitted_ns;
    uint64_t deadline_ns; /* absolute; NS_NEVER: none */

    /* where it is: changed by job_set_state and job_set_wait */
    enum job_state state;
    enum job_wait wait;
    uint64_t dispatched_ns, started_ns, ended_ns; /* by job_set_state */

    /* on a device: dispatch.c, completion.c, flight.c */
    struct device *device; /* bound to it or sent to it; NULL: any */
    bool strays;           /* bound to one where its buffers are not, which it does not name */
    unsigned stream;
    bool in_stream;                        /* it has a part of the device; flight.c's */
    enum job_trust trust;                  /* job_trust_step changes it */
    struct job *device_prev, *device_next; /* in device->inflight; prev NULL: not in flight */

    struct job_sched sched; /* in the queue */
    struct job_clock clock; /* on a device */

    /* identity, as above */
    enum job_origin origin;
    bool detached;       /* outlives its session */
    uint64_t session_id; /* for people: the session that submitted it; 0: the daemon */
    uint64_t trace_id;
    uint64_t limit_ns;   /* of execution: then its client is answered */
    uint64_t ceiling_ns; /* of execution: then its worker is ended; counts as limit_ns if less */
    uint64_t charged;    /* its bytes in front->input_bytes, until it leaves */
    uint64_t to_device;  /* bytes that a run of it copies there, and back (work_moves) */
    uint64_t from_device;
    char label[PROTO_LABEL_MAX + 1];

    /* its client: valid until the end of the job, or of the session */
    struct session *session; /* has it in own_jobs; NULL: the daemon's own, or one of both ended */
    UT_hash_handle hh_seq;   /* in session->own_jobs */
    uint64_t seq;            /* number of its SUBMIT */
    bool async;              /* its result goes to EVENTS */
    struct async_result *result; /* memory for that, owned; NULL: none, or taken */
    struct op *op;               /* that it answers; NULL: asynchronous, or no client waits */

    /* what to do: valid until the hook job_left has run */
    struct program *program;
    struct request *request; /* owned, with the inline data; NULL: left, or not a client's job */
    struct work work;

    struct { /* changed by job_set_inputs */
        enum job_inputs state;
        uint64_t spoiler; /* job that should have written inputs that are not sound */
        int code;         /* error of that job */
    } inputs;
    bool cancelled;     /* its worker was asked to end it (job_cancel) */
    bool killed;        /* its worker is ended for it (job_kill) */
    uint64_t device_ns; /* what its tenant's account got for all its runs; charge.c's */
    bool counted;       /* an earlier front saw its end, and charged it */

    /* in the queue, as above */
    struct job_await await;
    struct job_order order;
    struct heap_entry expiry; /* in front->deadlines, by deadline_ns */

    /* on a device, as above */
    uint64_t epoch;    /* `epoch` of the worker that it was sent to */
    uint64_t record;   /* its entry in the device's adoption record; 0: none */
    uint32_t recorded; /* number of the recording that has it; 0: none */
    unsigned replays;
    unsigned external; /* how often it runs again after an external end of its worker */
    uint64_t input;    /* offset of its inputs in staging memory; RANGE_NONE: none */
    uint64_t output;   /* the same of its outputs */
    uint64_t late_ns;  /* when it was first seen to be late (JOB_LATE_NS); 0: it was not */

    /* its answer: completion.c, conclude.c, history.c */
    enum job_answer answer; /* job_answer_step changes it */
    struct err error;
    struct timing *timings; /* owned */
    unsigned timing_count;
    uint64_t ended_before;             /* jobs from this id on came after its end */
    struct job *ended_next;            /* in front->leaving, later in front->history */
    struct job *kept_prev, *kept_next; /* in tenant->kept */

    UT_hash_handle hh; /* in front->jobs */
};

/* The job of an entry of its tenant's ready jobs, without a look at the entry. */
static inline const struct job *job_of_ready(const struct heap_entry *x)
{
    return (const struct job *)(const void *)((const char *)x - offsetof(struct job, sched.ready));
}

/* A decision is going to touch the job: its cache lines come together, not one after the other. */
static inline void job_fetch(const struct job *j)
{
    for (const char *at = (const char *)j; at < (const char *)(&j->clock + 1); at += 64) {
        __builtin_prefetch(at);
    }
}

/* Adds a job with a new id to the table. false: no memory. */
bool job_put(struct job **table, struct job *j);
/* NULL: the table has no job of that id. */
struct job *job_find(struct job *table, uint64_t id);

/* Gives a job without a session to the session, which counts it. false: no memory. */
bool job_join(struct job *j, struct session *s);
/* Takes the job from its session, if it has one: the job ended, or no client waits for its answer.
 */
void job_part(struct job *j);
/* The session's unfinished job that the request `seq` submitted; NULL: none. */
struct job *job_of_request(const struct session *s, uint64_t seq);

bool job_ended(const struct job *j);
/* Whether it comes from a worker of an earlier front. */
bool job_adopted(const struct job *j);
/* The one place where a job's state changes: a step of its table (job_state.h). Stamps the time and
 * sets WAIT_NOTHING. */
void job_set_state(struct job *j, enum job_state state, uint64_t now_ns);
/* How long it ran on its device, at the end of its stay there. */
uint64_t job_ran_ns(const struct job *j, uint64_t now_ns);
/* The one place where a job begins to wait. A new state ends the wait. */
void job_set_wait(struct job *j, enum job_wait wait);
/* The one place where the state of its inputs changes. spoiler: the job that ended without having
 * written them; NULL for sound inputs. */
void job_set_inputs(struct job *j, enum job_inputs inputs, const struct job *spoiler);
/* Time after a deadline at which the front itself answers for a dispatched job that has not begun:
 * a busy worker may not report the deadline. */
#define JOB_LATE_NS (500 * NS_PER_MS)

/* How long it may run: limit_ns; once the client is answered, the greater of limit_ns and
 * ceiling_ns. */
uint64_t job_limit_ns(const struct job *j);
/* The worker sees none of the job's kernels run: the job waits for its copies, or behind another
 * job of its stream. The job's time limit stops, and the limits of other jobs no longer wait for
 * it. The state stays JOB_RUNNING, since the job may have had effects. Does nothing to a paused
 * job. */
void job_pause(struct job *j, uint64_t now_ns);
/* The worker sees one of its kernels run again. The job gets a place behind those that run now. */
void job_resume(struct job *j, uint64_t now_ns);
/* The front stood still for `away_ns`, until now: that time does not count against the time limit
 * of a job in flight, whose worker may have stood still, too. */
void job_stood_still(struct job *j, uint64_t now_ns, uint64_t away_ns);
/* When the job exceeds its time limit; NS_NEVER: not before another job leaves, or memory is free.
 * A job that is seen to run: its time counts from when all jobs that began before it have left the
 * device, because the device may have had no room for it. Until then the result is NS_NEVER, and
 * the limits of those jobs apply. Jobs that begin later add no time. A job that is not seen to run
 * has twice its limit and 1 s. That counts from when it was sent or paused, or from when the device
 * was done with earlier jobs, if that is later. The caller applies it only to the first job of a
 * stream, while no job runs. */
uint64_t job_overdue_ns(const struct job *j);
/* Its rank among the jobs of its tenant: by class, and then by deadline, at most RANK_SPAN_NS after
 * its arrival. Each level of priority is worth PRIORITY_LEVEL_NS of waiting, up to PRIORITY_MAX
 * levels. So jobs that are p levels above a job overtake it if they arrive less than p x
 * PRIORITY_LEVEL_NS later. */
int64_t job_rank(const struct job *j);
/* The class of its rank. Jobs that wait for others give them theirs. */
unsigned job_rank_class(const struct job *j);
/* Whether it can run again: it writes no buffer, and no part of an arena that it reads. Adopted
 * jobs cannot, as their steps are unknown. */
bool job_repeatable(const struct job *j);
/* Frees what it owns, not the struct. The job must be out of every list. */
void job_finish(struct job *j);
void job_destroy(struct job *j); /* also frees the struct; NULL is accepted */

/* Encodes the times of its steps as TIMING records. */
int job_timings(const struct job *j, struct capbuf *out, struct err *e);

#endif
