/*
 * Draining: how long the daemon's end waits for jobs, and for which. TimeoutStopSec of gpud.service
 * is DRAIN_MAX_NS and the time of the end itself. Thread: the loop's.
 */
#ifndef FRONT_SCHED_DRAIN_H
#define FRONT_SCHED_DRAIN_H

#include "daemon/front/model/front.h"

#define DRAIN_MIN_NS (30 * NS_PER_S)
#define DRAIN_MAX_NS (300 * NS_PER_S)

/* When waiting ends: after the longest limit of an unfinished job, within the bounds above. Jobs
 * that are queued longer do not run. */
uint64_t drain_until(const struct front *f, uint64_t now_ns);
/* Queued detached jobs whose sessions have no connection go before all others from now on: no
 * client sends them to the next front. Returns their number. *ret_stranded: number of further such
 * jobs, which no device will run soon; draining does not wait for these. */
unsigned drain_orphans(struct front *f, unsigned *ret_stranded);

#endif
