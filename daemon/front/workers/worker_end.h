/*
 * Ends a device's worker process. Apart from worker.c, because commands end a worker whose channel
 * fails. Thread: the loop's.
 */
#ifndef FRONT_WORKERS_WORKER_END_H
#define FRONT_WORKERS_WORKER_END_H

#include "daemon/front/model/front.h"

/* Asks the launcher to kill the worker. Its jobs are handled when its end is reported. culprit: the
 * job that is to blame; NULL: none, or the one that the worker named. Does nothing without a
 * worker, or if its end is under way. */
void worker_end(struct front *f, struct device *d, struct job *culprit, const char *why);
/* The same for a domain's worker that nothing wants: this is no fault. */
void worker_dismiss(struct front *f, struct device *d, const char *why);
/* The time from which a killed worker that has not ended counts as stuck in the driver. */
uint64_t worker_unkillable_at(const struct device *d);

#endif
