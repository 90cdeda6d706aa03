#include "tests/sim/front/sim_stall.h"

#include "common/saturate.h"
#include "daemon/front/model/wake.h"
#include "tests/sim/front/rules/sim_endings.h"
#include "tests/sim/front/sim.h"

#define LEAST_NS   (500 * NS_PER_MS) /* mostly such that the front knows */
#define MOST_NS    (8 * NS_PER_S)
#define SOON_NS    (300 * NS_PER_MS)
#define STALL_SALT 24u

/* slept_ns: for how long of that it would have slept anyway. */
static void stand_still(struct sim *s, uint64_t ns, uint64_t slept_ns, bool machine)
{
    struct sim_stall *x = &s->stalls.last[s->stalls.count++ % STALLS_MAX];
    x->ns = ns;
    x->missed_ns = sat_sub(ns, slept_ns);
    x->end_ns = s->stalled_ns = s->now_ns += ns;
    if (machine) {
        agenda_delay_workers(s, ns);
    }
    endings_sleep(s);
}

static void sleep_still(struct sim *s, uint64_t ns, bool machine)
{
    stand_still(s, ns, sat_sub(front_due_ns(s), s->now_ns), machine);
}

static void on_next(struct sim *s, const struct hap *h)
{
    if (!s->settling && s->f != NULL) {
        sleep_still(s, h->b, h->a != 0);
    }
}

/* The next work of the timer stands still behind what it looked at, and half of the times again
 * before the loop is there. */
static void plan_wake(struct sim *s, const struct course_event *e)
{
    struct chance r = chance_of(e->r, STALL_SALT);
    if (s->p.stalls != 0 && chance_one_in(&r, 3)) {
        struct sim_stalls *x = &s->stalls;
        x->behind_ns = chance_spread(&r, LEAST_NS, MOST_NS);
        x->before_ns = chance_one_in(&r, 2) ? chance_spread(&r, LEAST_NS, MOST_NS) : 0;
    }
}

bool stall_before_wake(struct sim *s)
{
    struct sim_stalls *x = &s->stalls;
    uint64_t ns = x->behind_ns == 0 && !s->settling ? x->before_ns : 0;
    if (ns != 0) {
        x->before_ns = 0;
        sleep_still(s, ns, false);
    }
    return ns != 0;
}

void stall_behind_wake(struct sim *s)
{
    uint64_t ns = s->stalls.behind_ns;
    if (ns != 0 && !s->settling) {
        s->stalls.behind_ns = 0;
        stand_still(s, ns, 0, false);
    }
}

/* What should have happened meanwhile comes late. */
void stall_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    bool machine = e->r % 10 < 3;
    plan_wake(s, e);
    sleep_still(s, chance_spread(r, NS_PER_MS, MOST_NS), machine);
    if (chance_percent(r, (unsigned)s->p.stalls)) {
        uint64_t at_ns = s->now_ns + chance_spread(r, NS_PER_US, SOON_NS);
        sim_at(s, at_ns, on_next, NULL, machine, chance_spread(r, NS_PER_MS, MOST_NS));
    }
}

uint64_t stall_passed_ns(const struct sim *s, uint64_t since_ns)
{
    uint64_t ns = s->now_ns - since_ns;
    for (unsigned i = 0; i < STALLS_MAX && i < s->stalls.count; i++) {
        const struct sim_stall *x = &s->stalls.last[i];
        bool known = x->missed_ns > STILL_NS;
        ns = sat_sub(ns, known && since_ns < x->end_ns ? x->ns : 0);
    }
    return ns;
}

struct sim_stall stall_last(const struct sim *s)
{
    return s->stalls.count > 0 ? s->stalls.last[(s->stalls.count - 1) % STALLS_MAX]
                               : (struct sim_stall){0};
}
