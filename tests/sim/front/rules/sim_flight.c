#include "tests/sim/front/rules/sim_flight.h"

#include <inttypes.h>

#include "tests/sim/front/sim.h"

static bool has_none(const struct device *base)
{
    bool none = base->inflight_count == 0;
    for (const struct device *d = base->domains; d != NULL && none; d = d->domain_next) {
        none = d->inflight_count == 0;
    }
    return none;
}

/* A device that has nothing in flight is free now, whatever was expected of the jobs that it had.
 */
void flight_check(struct sim *s)
{
    for (unsigned i = 0; i < s->f->device_count; i++) {
        const struct device *base = s->f->device[i];
        if (base->line.until_ns > s->now_ns && has_none(base)) {
            sim_fail(s,
                     "flight: device %u has no job in flight, and its jobs are expected to end in "
                     "%" PRIu64 " us",
                     i, (base->line.until_ns - s->now_ns) / NS_PER_US);
        }
    }
}
