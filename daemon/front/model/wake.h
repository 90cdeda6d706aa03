/*
 * The only timer of the front. There is no periodic tick: code that waits for a time calls wake_at,
 * and pipeline.c arms the timer for the earliest time. When the timer fires, each watcher calls
 * wake_at again for what it still waits for. A watcher may find nothing to do, as when a job ended
 * before its limit. Thread: the loop's.
 */
#ifndef FRONT_MODEL_WAKE_H
#define FRONT_MODEL_WAKE_H

#include "daemon/front/model/front.h"

#define STILL_NS NS_PER_S /* if the loop is later by this, the process stood still */

/* at_ns: absolute; NS_NEVER: nothing happens. O(1). */
void wake_at(struct front *f, uint64_t at_ns);
/* The statistics of the device's pool have changed: housekeeping reads them, at most once a
 * second. */
void wake_for_pool(struct front *f, struct device *d);
/* A job was queued: wakes for its deadline. housekeeping_expire ends it then if it is still
 * queued. */
void wake_for_job(struct front *f, struct job *j);
/* Ends the turn (turn_begin). The loop ran when the turn looked at the clock last. */
void turn_end(struct front *f);
/* For how long the process has stood still, as far as the timer's work does not count it yet. The
 * begin of a standstill is unknown, so it counts from the last time at which the loop ran. */
uint64_t wake_still_ns(const struct front *f, uint64_t now_ns);

#endif
