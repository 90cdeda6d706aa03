/*
 * How long the daemon's end waits for jobs, and for which. TimeoutStopSec of gpud.service is
 * DRAIN_MAX_NS and what the end itself takes. Thread: the loop's.
 */
#ifndef FRONT_SCHED_DRAIN_H
#define FRONT_SCHED_DRAIN_H

#include "daemon/front/model/front.h"

#define DRAIN_MIN_NS (30 * NS_PER_S)
#define DRAIN_MAX_NS (300 * NS_PER_S)

/* When waiting ends: each unfinished job may take as long as it may run, within the bounds above. A
 * queue that takes longer is cut. */
uint64_t drain_until(const struct front *f, uint64_t now_ns);
/* Queued detached jobs whose client is gone, as far as one can tell: nobody sends them to the next
 * front. They go before all others now. How many there are; and how many more that no device will
 * take soon: nobody waits for these. */
unsigned drain_orphans(struct front *f, unsigned *ret_stranded);

#endif
