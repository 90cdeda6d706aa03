/*
 * Turns a job's steps into commands of its stream. Nothing here waits: the job's last marker tells
 * when it is over. Large copies go through the queues of copies; a job that has some, or that must
 * wait for something that is not in a stream yet, becomes a graph (graph.h) that is carried on as
 * things come about. Thread: the loop's.
 */
#ifndef WORKER_RUN_EXECUTOR_H
#define WORKER_RUN_EXECUTOR_H

#include "daemon/worker/copy/copies.h"
#include "daemon/worker/run/batch.h"
#include "daemon/worker/run/job.h"
#include "daemon/worker/run/ledger.h"

/* Writes up to this size that follow each other are enqueued together. */
#define EXECUTOR_SMALL_WRITE ((uint64_t)64 << 10)

struct executor {
    struct job_scope scope;
    struct ledger *ledger; /* not owned */
    struct copies *copies; /* not owned */
    struct batch batch;    /* of jobs of few steps each has one mark */
};

/* Starts the jobs that came together. ERR_DEVICE_LOST if that fails. */
int executor_start(struct executor *x, struct err *e);

/* Enqueues a job that was checked; `frame` holds the bytes of msg. What goes wrong on the way is
 * kept in j->e, and the job is over when that which was enqueued before has completed. Of one that
 * cannot even be kept until it may begin nothing is enqueued: j->given_up. < 0 only if that cannot
 * be told any more: the device is lost. */
int executor_enqueue(struct executor *x, struct job *j, const struct msg_f_job *msg,
                     struct bytes frame, struct err *e);
/* Carries on a job that is not enqueued; as above. */
int executor_resume(struct executor *x, struct job *j, struct err *e);

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

/* ---- for graph.c --------------------------------------------------------------------------- */

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
