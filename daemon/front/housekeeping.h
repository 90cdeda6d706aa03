/*
 * What the clock brings to jobs and pools: deadlines of queued jobs, statistics, another offer for
 * jobs that wait for kernels. pipeline.c calls it when the front's timer is due. Thread: the
 * loop's.
 */
#ifndef FRONT_HOUSEKEEPING_H
#define FRONT_HOUSEKEEPING_H

#include "daemon/front/model/front.h"

/* Ends queued jobs whose deadlines have passed; says when the next one does. */
void housekeeping_expire(struct front *f, uint64_t now_ns);
/* Once a second at most: asks for statistics, offers jobs again that wait for kernels. */
void housekeeping(struct front *f, uint64_t now_ns);

#endif
