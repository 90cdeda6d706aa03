/*
 * Turns the steps of a job into commands of its stream, and the end of the last command into the
 * end of the job. Nothing here waits. A job becomes a graph (graph.h) if it has large copies, which
 * go through the copy queues, or comes after something that is in no stream yet. Thread: the
 * loop's.
 */
#ifndef WORKER_RUN_EXECUTOR_H
#define WORKER_RUN_EXECUTOR_H

#include "daemon/worker/run/steps.h"

/* Writes up to this size that follow each other are enqueued together. */
#define EXECUTOR_SMALL_WRITE ((uint64_t)64 << 10)

/* Starts the jobs of the batch. ERR_DEVICE_LOST if that fails. */
int executor_start(struct executor *x, struct err *e);

/* Enqueues a started job; `frame` holds the bytes of msg. A failure on the way is kept in j->e, and
 * the job is over when the commands that were enqueued before have completed. A job whose graph
 * finds no memory has no commands: it stays JOB_STARTED. < 0: the device is lost. */
int executor_enqueue(struct executor *x, struct job *j, const struct msg_f_job *msg,
                     struct bytes frame, struct err *e);
/* Goes on with a JOB_GRAPH; < 0: the device is lost. */
int executor_resume(struct executor *x, struct job *j, struct err *e);

#endif
