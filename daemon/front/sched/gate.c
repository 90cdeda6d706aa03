#include "daemon/front/sched/gate.h"

#include "daemon/front/model/wake.h"

#define OFFERED_MAX 8u /* jobs with transfers that are ready again at once */
#define PAY_MAX_NS  (3600 * NS_PER_S)

/* ---- limits ---------------------------------------------------------------------------------- */

static bool flight_full(const struct tenant *t)
{
    return t->limits.in_flight > 0 && t->gate.flying >= t->limits.in_flight;
}

uint64_t gate_unpaid_ns(const struct tenant *t, uint64_t now_ns)
{
    bool limited = t->limits.transfer_rate > 0;
    return limited && t->gate.paid_ns > now_ns ? t->gate.paid_ns - now_ns : 0;
}

enum job_wait gate_wait(struct front *f, const struct job *j)
{
    const struct tenant *t = j->tenant;
    if (t == NULL) {
        return WAIT_NOTHING;
    }
    if (flight_full(t)) {
        return WAIT_FLIGHT;
    }
    bool unpaid = t->limits.transfer_rate > 0 && gate_unpaid_ns(t, turn_now(f)) > 0;
    return unpaid && work_transfers(&j->work) > 0 ? WAIT_TRANSFER : WAIT_NOTHING;
}

static uint64_t price_ns(uint64_t bytes, uint64_t rate)
{
    double ns = (double)bytes * (double)NS_PER_S / (double)rate;
    return ns < (double)PAY_MAX_NS ? (uint64_t)ns : PAY_MAX_NS;
}

void gate_charge(struct front *f, struct job *j)
{
    struct tenant *t = j->tenant;
    if (t == NULL || t->limits.transfer_rate == 0) {
        return;
    }
    uint64_t bytes = work_transfers(&j->work);
    uint64_t now = turn_now(f);
    uint64_t from = now > GATE_BURST_NS ? now - GATE_BURST_NS : 0;
    from = t->gate.paid_ns > from ? t->gate.paid_ns : from;
    if (bytes > 0) {
        t->gate.paid_ns = ns_add(from, price_ns(bytes, t->limits.transfer_rate));
    }
}

/* ---- held jobs ------------------------------------------------------------------------------- */

static void put(struct job *j)
{
    j->tenant->gate.held_count += !j->await.gate.entry.in;
    uint64_t key = (uint64_t)j->sched.rank ^ (UINT64_C(1) << 63); /* sorts as the rank does */
    heap_put(&j->tenant->gate.held[j->await.gate.line], &j->await.gate.entry, key, j->id, j);
}

static void take(struct gate *g, struct job *j)
{
    g->held_count -= j->await.gate.entry.in;
    heap_drop(&g->held[j->await.gate.line], &j->await.gate.entry);
}

void gate_hold(struct front *f, struct job *j, enum job_wait wait)
{
    j->await.gate.line = wait == WAIT_FLIGHT ? GATE_FLIGHT : GATE_TRANSFER;
    job_set_wait(j, wait);
    put(j);
    gate_look(&f->gates, &j->tenant->gate, j->tenant);
    if (wait == WAIT_TRANSFER) { /* else the end of a job is the occasion */
        wake_at(f, j->tenant->gate.paid_ns);
    }
}

void gate_moved(struct job *j)
{
    if (j->await.gate.entry.in) {
        put(j);
    }
}

void gate_leave(struct front *f, struct job *j)
{
    struct job_gate *at = &j->await.gate;
    if (!at->entry.in && !at->offered) {
        return;
    }
    struct gate *g = &j->tenant->gate;
    take(g, j);
    g->offered[at->line] -= at->offered;
    at->offered = false;
    if (gate_holds(g)) {
        gate_look(&f->gates, g, j->tenant);
    } else {
        agenda_drop(&f->gates, &g->due);
    }
}

/* How many held jobs may be tried now. */
static unsigned room(const struct tenant *t, enum gate_line line, uint64_t now)
{
    unsigned taken = t->gate.offered[line];
    if (line == GATE_FLIGHT) {
        uint64_t most = t->limits.in_flight > 0 ? t->limits.in_flight : UINT32_MAX;
        taken += t->gate.flying;
        return taken < most ? (unsigned)(most - taken) : 0;
    }
    return gate_unpaid_ns(t, now) == 0 && taken < OFFERED_MAX ? OFFERED_MAX - taken : 0;
}

/* NULL: none of the line may go. */
static struct job *next_of(const struct tenant *t, enum gate_line line, uint64_t now)
{
    const struct heap_entry *first = t->gate.held[line].first;
    return first != NULL && room(t, line, now) > 0 ? first->what : NULL;
}

struct job *gate_next(struct front *f)
{
    struct tenant *t;
    uint64_t now = turn_now(f);
    while ((t = agenda_due(&f->gates, now)) != NULL) {
        struct job *j = next_of(t, GATE_FLIGHT, now);
        j = j != NULL ? j : next_of(t, GATE_TRANSFER, now);
        if (j != NULL && !turn_take(f, 1)) {
            return NULL;
        }
        if (j != NULL) {
            take(&t->gate, j);
            return j;
        }
        /* else an event is the occasion: a job leaves a worker, or the ready jobs */
        bool unpaid = t->gate.held[GATE_TRANSFER].first != NULL && gate_unpaid_ns(t, now) > 0;
        agenda_set(&f->gates, &t->gate.due, unpaid ? t->gate.paid_ns : NS_NEVER, t);
    }
    wake_at(f, agenda_next_ns(&f->gates)); /* of any tenant: the timer fired for the first only */
    return NULL;
}

void gate_offered(struct job *j)
{
    j->await.gate.offered = true;
    j->tenant->gate.offered[j->await.gate.line]++;
}

void gates_watch(struct front *f, uint64_t now_ns)
{
    uint64_t next = agenda_next_ns(&f->gates);
    if (next <= now_ns) {
        f->hooks.kick(f);
    } else {
        wake_at(f, next);
    }
}
