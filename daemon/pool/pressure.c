/*
 * Trims by age without a time in each block: the least number of whole free bytes during a period
 * was needed by no request in it. The least is kept for each fourteenth of the age, for the current
 * part, and for the part that had begun before the period.
 */
#include "daemon/pool/pressure.h"
#include "daemon/pool/pool_int.h"

#define BUDGET_NS     UINT64_C(100000000) /* shortest time between questions to the source */
#define SECOND_NS     UINT64_C(1000000000)
#define SCARCE_SHARE  20u /* of the limit */
#define SCARCE_FASTER 4u

static void ask_budget(struct pool *p, uint64_t now_ns)
{
    struct trimming *t = &p->trimming;
    if (p->source.budget == NULL || now_ns - t->budget_ns < BUDGET_NS) {
        return;
    }
    uint64_t free_bytes;
    t->budget_ns = now_ns;
    bool known = p->source.budget(p->source.user, &free_bytes, NULL) == 0;
    t->budget = known ? free_bytes : UINT64_MAX;
}

/* Starts a new window for each part of the age that has passed. The least since the last tick may
 * have been at any time in between. */
static void turn_windows(struct pool *p, uint64_t now_ns, uint64_t age_ns)
{
    struct trimming *t = &p->trimming;
    uint64_t width = age_ns / (TRIM_WINDOWS - 2) + 1;
    uint64_t turns = (now_ns - t->window_ns) / width;
    uint64_t least = t->least[t->window];
    if (turns == 0) {
        return;
    }
    for (uint64_t n = 0; n < turns && n < TRIM_WINDOWS; n++) {
        t->window = (t->window + 1) % TRIM_WINDOWS;
        t->least[t->window] = least;
    }
    t->least[t->window] = p->whole_bytes;
    t->window_ns += turns * width;
}

static uint64_t idle_bytes(const struct pool *p)
{
    uint64_t least = p->whole_bytes;
    for (unsigned i = 0; i < TRIM_WINDOWS; i++) {
        least = p->trimming.least[i] < least ? p->trimming.least[i] : least;
    }
    uint64_t above = sat_sub(p->stats.size, p->trimming.keep);
    return least < above ? least : above;
}

/* Other calls reduce whole_bytes for moments, too: only allocations show a need. */
void pressure_note(struct pool *p)
{
    uint64_t *least = &p->trimming.least[p->trimming.window];
    *least = p->whole_bytes < *least ? p->whole_bytes : *least;
}

/* At most the rate of one second: a pause saves nothing up. */
static void save_up(struct trimming *t, uint64_t passed_ns)
{
    passed_ns = passed_ns < SECOND_NS ? passed_ns : SECOND_NS;
    double more = (double)t->rate * (double)passed_ns / (double)SECOND_NS;
    t->allowance = sat_add(t->allowance, (uint64_t)more);
    t->allowance = t->allowance < t->rate ? t->allowance : t->rate;
}

uint64_t pool_tick(struct pool *p, uint64_t now_ns)
{
    (void)warm_flush(p);
    late_sweep(p);
    late_room(p);
    struct trimming *t = &p->trimming;
    save_up(t, now_ns - t->now_ns);
    t->now_ns = now_ns;
    ask_budget(p, now_ns);
    if (t->age_ns == 0) {
        return 0;
    }
    bool scarce = t->budget < p->stats.limit / SCARCE_SHARE;
    turn_windows(p, now_ns, scarce ? t->age_ns / SCARCE_FASTER : t->age_ns);
    uint64_t idle = idle_bytes(p);
    idle = idle < t->allowance ? idle : t->allowance;
    if (idle < p->page) {
        return 0;
    }
    uint64_t given = backing_trim(p, p->whole_bytes - idle);
    p->stats.trimmed += given;
    t->allowance = sat_sub(t->allowance, given);
    if (given > 0) {
        event_add(p, POOL_EVENT_TRIM, (struct pool_event){.size = given});
    }
    return given;
}
