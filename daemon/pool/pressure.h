/*
 * Giving back what nobody needed for a while, and sooner where the device is short of memory.
 * Nothing here waits for the device. Thread: the pool's owner.
 */
#ifndef POOL_PRESSURE_H
#define POOL_PRESSURE_H

#include "daemon/pool/pool.h"

/* Call it now and then, at any distance. Asks the source for its budget (at most ten times a
 * second), and gives back memory that was free all the time during the last
 * pool_options.trim_age_ns, at most pool_options.trim_rate bytes a second and never below
 * pool_options.keep. A quarter of the age counts while the device has less than a twentieth of the
 * pool's limit left. Returns bytes given back. Clocks may stand still, and never go back. */
uint64_t pool_tick(struct pool *p, uint64_t now_ns);

#endif
