/*
 * The steps of a job as commands of its stream, one by one: whether they may be enqueued, what the
 * stream waits for before them, and the marks behind them. For executor.c, which enqueues a whole
 * job at once, and for graph.c. Nothing here waits. Thread: the loop's.
 */
#ifndef WORKER_RUN_STEPS_H
#define WORKER_RUN_STEPS_H

#include "daemon/worker/copy/copies.h"
#include "daemon/worker/run/batch.h"
#include "daemon/worker/run/job.h"
#include "daemon/worker/run/ledger.h"

struct executor {
    struct job_scope scope;
    struct ledger *ledger; /* not owned */
    struct copies *copies; /* not owned */
    struct batch batch;    /* jobs of an open batch that are brief have one mark each */
};

/* What the steps of a job that were enqueued so far amount to. */
struct executor_progress {
    const char *by;   /* name of what serves the operation; static */
    uint64_t run;     /* steps behind a library's call that run next */
    uint64_t skipped; /* steps behind those that do not run: the library ran in their place */
    unsigned next;    /* index of the next launch in the job's list */
    unsigned launch;  /* index of the first launch behind the last mark */
    unsigned count;   /* launches behind the last mark */
    bool served;      /* a library's call is behind the last mark */
    bool scattered;   /* the launches behind the last mark are no neighbours in the list */
};

/* Is the order of streams enough for the job? All that it comes after is in streams, and no slow
 * job is ahead in its own. */
bool executor_ready(const struct executor *x, const struct job *j);
/* Have all jobs that it comes after ended? */
bool executor_predecessors_over(const struct executor *x, const struct job *j);
/* Lets its stream wait for all that it comes after. */
int executor_wait_all(struct executor *x, struct job *j, struct err *e);
/* Enqueues one step in the job's stream; the error names the step. */
int executor_step(struct executor *x, struct job *j, const struct proto_wstep *s,
                  struct executor_progress *p, struct err *e);
/* The commands of a step come before `mark`, the next one. any: other steps' commands do, too. */
void executor_note(struct job_mark *mark, bool any, const struct proto_wstep *s,
                   struct executor_progress *p);
/* No more commands come before `mark`. */
void executor_closed(struct job_mark *mark, const struct executor_progress *p);
/* Enqueues `mark` in the job's stream. */
int executor_mark(struct executor *x, struct job *j, struct job_mark mark, struct err *e);
/* Completes the error of a step. Returns its code. */
int executor_step_failed(struct err *e, const struct proto_wstep *s, const char *what);
/* Enqueues `mark` as the job's end and starts the job: JOB_ENQUEUED. ERR_DEVICE_LOST when the end
 * cannot be marked. */
int executor_end(struct executor *x, struct job *j, struct job_mark mark, struct err *e);

#endif
