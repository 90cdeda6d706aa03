/*
 * A job's steps as commands of its stream, one by one: what may be enqueued, what the stream waits
 * for before, and the marks behind. For executor.c, which has a whole job at once, and graph.c.
 * Nothing here waits. Thread: the loop's.
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
    struct batch batch;    /* of jobs of few steps each has one mark */
};

/* What a job's steps come to, one after the other. */
struct executor_progress {
    const char *by;   /* what served the operation; static */
    uint64_t run;     /* steps that follow a library's call and run */
    uint64_t skipped; /* and those behind them, which do not */
    unsigned next;    /* launch of the job's list */
    unsigned launch;  /* the first one behind the last mark, */
    unsigned count;   /* how many are */
    bool served;      /* a library's call is there */
    bool scattered;   /* they are no neighbours */
};

/* Can the job be ordered by its stream alone: is all that it waits for in a stream, and nothing
 * there that takes long? */
bool executor_ready(const struct executor *x, const struct job *j);
/* Have all jobs that it comes after ended? */
bool executor_predecessors_over(const struct executor *x, const struct job *j);
int executor_wait_all(struct executor *x, struct job *j, struct err *e);
/* One step as a command of the job's stream; the error names it. */
int executor_step(struct executor *x, struct job *j, const struct proto_wstep *s,
                  struct executor_progress *p, struct err *e);
/* The commands of a step come before the mark in the making; any: those of others do, too. */
void executor_note(struct job_mark *mark, bool any, const struct proto_wstep *s,
                   struct executor_progress *p);
/* No more commands come before it. */
void executor_closed(struct job_mark *mark, const struct executor_progress *p);
int executor_mark(struct executor *x, struct job *j, struct job_mark mark, struct err *e);
int executor_step_failed(struct err *e, const struct proto_wstep *s, const char *what);
/* The end of what was enqueued, and the start of it. ERR_DEVICE_LOST when it cannot be marked. */
int executor_end(struct executor *x, struct job *j, struct job_mark mark, struct err *e);

#endif
