/* The lines of devices (daemon/front/model/line.h): who stands in them, and that nothing waits in
 * them without a cause. */
#include <inttypes.h>

#include "daemon/front/model/tenant.h"
#include "tests/sim/front/rules/sim_shares.h"

#define REST_STEPS 4u /* between two looks */

/* ---- seats ----------------------------------------------------------------------------------- */

/* Seats that were given to someone, and not given back. */
static unsigned seats_taken(const struct tournament *t)
{
    unsigned taken = t->given;
    for (uint32_t at = t->vacant; at != 0 && taken > 0; at = (uint32_t)t->seat[at - 1].key) {
        taken--;
    }
    return taken;
}

/* Each seat is of a tenant that there is, and so is each contender. */
static void check_line(struct sim *s, const struct device *d, unsigned class)
{
    const struct tournament *line = &d->line.stakes[class];
    unsigned seats = 0;
    unsigned there = 0;
    for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
        const struct stake *k = t->share.stake[d->index];
        seats += k != NULL;
        there += k != NULL && line->seat[k->of[class].seat].what == k;
    }
    if (seats != seats_taken(line) || there != line->count) {
        sim_fail(s,
                 "lines: the line of device %u has %u seats and %u contenders, and tenants have %u "
                 "and %u of them",
                 d->index, seats_taken(line), line->count, seats, there);
    }
}

void lines_check(struct sim *s)
{
    for (unsigned i = 0; i < s->f->device_count; i++) {
        for (unsigned class = 0; class < CLASS_COUNT; class ++) {
            check_line(s, s->f->device[i], class);
        }
    }
}

/* ---- rest ------------------------------------------------------------------------------------ */

/* Jobs that the front has sent, and the first of them since the last look. */
static uint64_t sent;
static uint64_t first;
static bool first_beside; /* it went to a stream with jobs, where time says how many may wait */

void rest_sent(struct sim *s, const struct device *d, uint64_t job)
{
    const struct job *j = job_find(s->f->jobs, job);
    if (sent++ == 0) {
        first = job;
        first_beside = j == NULL || d->inflight_count > device_usual_streams(d) ||
                       d->stream_load[j->stream] > 1;
    }
}

/* The front ends a worker: others may go when it has ended. */
static bool ends_some(const struct front *f)
{
    const struct device *d = NULL;
    bool ends = false;
    for (unsigned at = 0; !ends && (d = front_next_device(f, &at)) != NULL;) {
        ends = d->killed_ns != 0;
    }
    return ends;
}

/* A front that is at rest has looked at all that happened: if it looks at its devices once more, no
 * job goes to a stream that had none. One that goes behind others may let more go. */
void rest_check(struct sim *s)
{
    if (s->f == NULL || (s->steps % REST_STEPS != 0 && !load_lean(s)) || !s->accepts ||
        s->f->kicked || s->f->pressed || front_due_ns(s) <= s->now_ns || memory_failed() ||
        front_life_stops(s->f->life) || ends_some(s->f)) {
        return;
    }
    uint64_t now_ns = s->now_ns;
    sent = 0;
    memory_inside();
    s->f->hooks.kick(s->f);
    memory_outside();
    front_settle(s);
    bool alone = s->now_ns == now_ns; /* else something else happened meanwhile */
    if (sent > 0 && !first_beside && alone) {
        sim_fail(s, "rest: job %" PRIu64 " goes to an idle stream as soon as the front looks again",
                 first);
    }
}
