/*
 * What a job used, once nothing waits for the job any more: buffers are sealed that were to be, and
 * what was freed meanwhile goes. Thread: the loop's.
 */
#ifndef FRONT_MEMORY_SETTLE_H
#define FRONT_MEMORY_SETTLE_H

#include "daemon/front/model/front.h"

/* For hooks.job_left: the job still names what it used. */
void memory_job_left(struct front *f, struct job *j);

#endif
