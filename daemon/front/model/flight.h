/*
 * The jobs that a device has in flight, listed in the order of dispatch. Thread: the loop's.
 */
#ifndef FRONT_MODEL_FLIGHT_H
#define FRONT_MODEL_FLIGHT_H

#include "daemon/front/model/job.h"

/* Appends the job to those in flight on its device. */
void job_join_device(struct job *j);
void job_leave_device(struct job *j); /* not in flight: nothing happens */
/* The job, which is dispatched, waits for memory or for a buffer's content, or does so no longer.
 * While it waits it has no part of the device. */
void job_await_memory(struct job *j, bool waits);
/* Whether others no longer wait for the end of the job, which is in flight on the worker
 * (sched/turns.h). */
bool turn_outstays(const struct device *d, const struct job *j);
/* Of the jobs that are seen to run the one that began first: it has the device. NULL: none is. */
struct job *job_first_running(const struct device *d);
/* Pauses a running job (job_pause). It remains in flight. For the jobs that began after it, time
 * limits count from now. */
void job_make_way(struct job *j);

#endif
