/*
 * The jobs that a device has in flight: they are listed in the order in which they were sent, and
 * counted. Thread: the loop's.
 */
#ifndef FRONT_MODEL_FLIGHT_H
#define FRONT_MODEL_FLIGHT_H

#include "daemon/front/model/job.h"

/* Into its device's window, as the last one, and out of it. Nothing happens if it is in none. */
void job_join_device(struct job *j);
void job_leave_device(struct job *j);
/* It is there and does not run for now (job_pause): the time of those that were seen to run after
 * it begins. Nothing happens if it does not run already. */
void job_make_way(struct job *j);

#endif
