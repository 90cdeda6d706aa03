/*
 * The jobs that a device has in flight, listed in the order of dispatch. Thread: the loop's.
 */
#ifndef FRONT_MODEL_FLIGHT_H
#define FRONT_MODEL_FLIGHT_H

#include "daemon/front/model/job.h"

/* The job is the last in flight on its device. */
void job_join_device(struct job *j);
void job_leave_device(struct job *j); /* not in flight: nothing happens */
/* Pauses a job that runs (job_pause). It remains in flight, and the time of the jobs that run
 * behind it begins. */
void job_make_way(struct job *j);

#endif
