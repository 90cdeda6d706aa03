/*
 * How short memory is, and giving back what nobody needed for a while. Nothing here waits for the
 * device. Thread: the pool's owner.
 */
#ifndef POOL_PRESSURE_H
#define POOL_PRESSURE_H

#include "daemon/pool/pool.h"

/* By the share of what the pool may have (its limit, or less if the device has less to give:
 * pool_source.budget) that is in use, in whole pages. */
enum pool_pressure {
    POOL_PRESSURE_NONE,
    POOL_PRESSURE_LOW,  /* from 80% on: nothing to do yet */
    POOL_PRESSURE_HIGH, /* from 92%: move cold pieces of who is above its soft limit elsewhere */
    POOL_PRESSURE_FULL, /* from 98%, or a request was refused since the last tick: of everybody */
};

enum pool_pressure pool_pressure(struct pool *p); /* O(1); asks nobody */
const char *pool_pressure_name(enum pool_pressure level);

/* Call it now and then, at any distance. Asks the source for its budget (at most ten times a
 * second), and gives back memory that was free all the time during the last
 * pool_options.trim_age_ns, at most pool_options.trim_rate bytes a second and never below
 * pool_options.keep. A quarter of the age counts while the device has less than a twentieth of the
 * pool's limit left. Returns bytes given back. Clocks may stand still, and never go back. */
uint64_t pool_tick(struct pool *p, uint64_t now_ns);

#endif
