/*
 * Releases the buffers, arenas and modules of an ended job: seals that waited for the job start,
 * and what was freed meanwhile is destroyed. Thread: the loop's.
 */
#ifndef FRONT_MEMORY_SETTLE_H
#define FRONT_MEMORY_SETTLE_H

#include "daemon/front/model/front.h"

/* The hook job_left. The job still names what it used. */
void memory_job_left(struct front *f, struct job *j);

#endif
