/*
 * Draining: which jobs the end of the daemon waits for, and how long. TimeoutStopSec of
 * gpud.service is DRAIN_MAX_NS plus the time of the end itself. Thread: the loop's.
 */
#ifndef FRONT_SCHED_DRAIN_H
#define FRONT_SCHED_DRAIN_H

#include "daemon/front/model/front.h"

#define DRAIN_MIN_NS (30 * NS_PER_S)
#define DRAIN_MAX_NS (300 * NS_PER_S)

/* When waiting ends: after the longest time limit of an unfinished job, within the bounds above.
 * Jobs that are still queued then do not run. */
uint64_t drain_until(const struct front *f, uint64_t now_ns);
/* Puts orphans before all other jobs, and returns their number. An orphan is a queued detached job
 * without a connected session: no client would send it to the next front. *ret_stranded: number of
 * orphans that no device will run soon; they are not moved, and draining does not wait for them. */
unsigned drain_orphans(struct front *f, unsigned *ret_stranded);

#endif
