/*
 * Housekeeping for jobs and pools: deadlines of queued jobs, statistics of pools, and another try
 * for jobs that wait for modules. pipeline.c calls it when the front's timer fires. Thread: the
 * loop's.
 */
#ifndef FRONT_HOUSEKEEPING_H
#define FRONT_HOUSEKEEPING_H

#include "daemon/front/model/front.h"

/* Ends queued jobs whose deadlines have passed, and sets the timer for the next deadline. */
void housekeeping_expire(struct front *f, uint64_t now_ns);
/* At most once a second: asks workers for statistics of pools that changed, and offers jobs again
 * that wait for modules. */
void housekeeping(struct front *f, uint64_t now_ns);

#endif
