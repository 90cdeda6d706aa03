/*
 * Turns a job's steps into commands of its stream. Nothing here waits: the job's last marker tells
 * when it is over. Thread: the loop's.
 */
#ifndef WORKER_EXECUTOR_H
#define WORKER_EXECUTOR_H

#include "daemon/worker/job.h"
#include "daemon/worker/ledger.h"

struct executor {
    struct job_scope scope;
    struct ledger *ledger; /* not owned */
};

/* Enqueues a job that was checked. What goes wrong on the way is kept in j->e, and the job is over
 * when that which was enqueued before has completed. < 0 only if that cannot be told any more: the
 * device is lost. */
int executor_enqueue(struct executor *x, struct job *j, const struct msg_f_job *msg, struct err *e);

#endif
