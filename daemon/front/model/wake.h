/*
 * The front's one timer. There is no tick: code that waits for a time calls wake_at, and pipeline.c
 * arms the timer for the earliest. The timer may fire in vain (a job ended before its limit); then
 * each watcher calls wake_at again for what it still waits for. Thread: the loop's.
 */
#ifndef FRONT_MODEL_WAKE_H
#define FRONT_MODEL_WAKE_H

#include "daemon/front/model/front.h"

/* at_ns: absolute; NS_NEVER: nothing happens. O(1). */
void wake_at(struct front *f, uint64_t at_ns);
/* The statistics of the device's pool change; they are read once a second. */
void wake_for_pool(struct front *f, struct device *d);
/* A job was queued: wakes for its deadline, until it is given to a worker. */
void wake_for_job(struct front *f, struct job *j);

#endif
