/*
 * The steps of a job as commands of its stream, one by one: whether they may be enqueued, what the
 * stream waits for before them, and the marks behind them. Used by executor.c for whole jobs and by
 * graph.c. Nothing here waits. Thread: the loop's.
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
    struct batch batch;    /* in an open batch a brief job has one mark */
};

/* Where the executor is in the steps of a job. */
struct executor_progress {
    const char *by; /* name of the implementation that runs the operation; static */
    uint64_t run;   /* steps to come that belong to a library's call, and run */
    /* steps to skip behind those: a library ran in their place, or their call was not made */
    uint64_t skipped;
    unsigned next;   /* index of the next launch in the job's list */
    unsigned launch; /* index of the first launch behind the last mark */
    unsigned count;  /* launches behind the last mark */
    bool served;     /* a library's call is behind the last mark */
    bool scattered;  /* the launches behind the last mark are no neighbours in the list */
};

/* Is the order of streams enough for the job? Then all that it comes after is in streams, and no
 * slow job is ahead in its own stream. */
bool executor_ready(const struct executor *x, const struct job *j);
/* BUFFER_LOST if zeros or a copy for one of its buffers failed: it must not begin. */
int executor_whole(const struct job *j, struct err *e);
/* Have all jobs ended that it comes after? */
bool executor_predecessors_over(const struct executor *x, const struct job *j);
/* Makes its stream wait for all that it comes after. */
int executor_wait_all(struct executor *x, struct job *j, struct err *e);
/* Enqueues one step in the job's stream. On failure e names the step. */
int executor_step(struct executor *x, struct job *j, const struct proto_wstep *s,
                  struct executor_progress *p, struct err *e);
/* Adds a step to those before `mark`, the next mark. any: other steps' commands come before it,
 * too. */
void executor_note(struct job_mark *mark, bool any, const struct proto_wstep *s,
                   struct executor_progress *p);
/* Completes `mark`: no more commands come before it. */
void executor_closed(struct job_mark *mark, const struct executor_progress *p);
/* Enqueues `mark` in the job's stream. */
int executor_mark(struct executor *x, struct job *j, struct job_mark mark, struct err *e);
/* Adds the step to an error, and returns the error's code. */
int executor_step_failed(struct err *e, const struct proto_wstep *s, const char *what);
/* Enqueues `mark` as the job's end and starts the job: JOB_ENQUEUED. ERR_DEVICE_LOST if the end
 * cannot be marked. */
int executor_end(struct executor *x, struct job *j, struct job_mark mark, struct err *e);

#endif
