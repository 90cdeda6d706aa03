/*
 * Turns the steps of a job into commands of its stream, and marks the end of the job behind the
 * last of them. A job becomes a graph (graph.h) if it has large copies, which go through the copy
 * queues, or comes after work that is in no stream yet. Nothing here waits. Thread: the loop's.
 */
#ifndef WORKER_RUN_EXECUTOR_H
#define WORKER_RUN_EXECUTOR_H

#include "daemon/worker/run/steps.h"

/* Consecutive writes of up to this size are enqueued together. */
#define EXECUTOR_SMALL_WRITE ((uint64_t)64 << 10)

/* Starts the jobs of the batch. ERR_DEVICE_LOST on failure. */
int executor_start(struct executor *x, struct err *e);

/* Enqueues a started job; `frame` holds the bytes of msg. The failure of a step is kept in j->e;
 * the job is over when the commands that were enqueued before have completed. If there is no
 * memory for a graph, the job has no commands and remains JOB_STARTED. < 0: the device is lost. */
int executor_enqueue(struct executor *x, struct job *j, const struct msg_f_job *msg,
                     struct bytes frame, struct err *e);
/* Continues a JOB_GRAPH. < 0: the device is lost. */
int executor_resume(struct executor *x, struct job *j, struct err *e);

#endif
