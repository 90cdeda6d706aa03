/*
 * Periodic work for jobs and pools: deadlines of queued jobs, statistics, and another offer for
 * jobs that wait for kernels. pipeline.c calls it when the front's timer fires. Thread: the loop's.
 */
#ifndef FRONT_HOUSEKEEPING_H
#define FRONT_HOUSEKEEPING_H

#include "daemon/front/model/front.h"

/* Ends queued jobs whose deadlines have passed, and sets the timer for the next deadline. */
void housekeeping_expire(struct front *f, uint64_t now_ns);
/* At most once a second: asks workers for statistics, and offers jobs again that wait for kernels.
 */
void housekeeping(struct front *f, uint64_t now_ns);

#endif
