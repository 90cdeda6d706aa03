#include "tests/sim/front/rules/sim_flight.h"

#include <inttypes.h>

#include "daemon/front/sched/turns.h"
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

/* A worker that shares its device gets no job beyond its streams and one that waits behind them, as
 * long as what the device has in flight is expected to last: others wait for all of it. */
void flight_sent(struct sim *s, const struct device *d, uint64_t job)
{
    const struct job *j = job_find(s->f->jobs, job);
    const struct device *base = s->f->device[device_shown(d)];
    if (j == NULL || j->tenant == NULL || !turns_apply(s->f, base)) {
        return;
    }
    uint64_t before_ns = base->line.until_ns - j->sched.charge.ns; /* the job is in that sum */
    unsigned others = d->inflight_count - 1;
    if (others > device_usual_streams(d) && before_ns > s->now_ns + TURN_LEAST_NS) {
        sim_fail(s,
                 "flight: job %" PRIu64 " is sent behind %u others of worker %" PRIu64
                 ", which takes turns, and the device is expected to be busy for %" PRIu64 " us",
                 j->id, others, d->worker, (before_ns - s->now_ns) / NS_PER_US);
    }
}
