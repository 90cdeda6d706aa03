/*
 * Gives memory back to the source that no request needed for a while, and sooner if the device is
 * short of memory. Waits for no stream; calls the source. Thread: the pool's owner.
 */
#ifndef POOL_PRESSURE_H
#define POOL_PRESSURE_H

#include "daemon/pool/pool.h"

/* Call it from time to time, at any interval. It asks the source for its budget (at most ten times
 * a second) and gives back memory that was free throughout the last pool_options.trim_age_ns: at
 * most pool_options.trim_rate bytes a second, and never below pool_options.keep. While the device
 * has less than a twentieth of the pool's limit left, a quarter of the age is enough. Returns bytes
 * given back. `now_ns` may stand still, but never goes back. */
uint64_t pool_tick(struct pool *p, uint64_t now_ns);

#endif
