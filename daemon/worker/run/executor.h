/*
 * Turns a job's steps into commands of its stream. Nothing here waits: the job's last marker tells
 * when it is over. Large copies go through the queues of copies; a job that has some, or that must
 * wait for something that is not in a stream yet, becomes a graph (graph.h) that is carried on as
 * things come about. Thread: the loop's.
 */
#ifndef WORKER_RUN_EXECUTOR_H
#define WORKER_RUN_EXECUTOR_H

#include "daemon/worker/run/steps.h"

/* Writes up to this size that follow each other are enqueued together. */
#define EXECUTOR_SMALL_WRITE ((uint64_t)64 << 10)

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

#endif
