/* The limits of a tenant that hold its jobs back: they hold, what is held goes on, and EXPLAIN is
 * right about it. */
#include <inttypes.h>
#include <string.h>

#include "daemon/front/model/tenant.h"
#include "tests/sim/front/rules/sim_shares.h"

static void equal(struct sim *s, const char *what, uint64_t counted, uint64_t found)
{
    if (counted != found) {
        sim_fail(s, "gate: %s: %" PRIu64 " are counted, %" PRIu64 " are there", what, counted,
                 found);
    }
}

static void check_transfers(struct sim *s, const struct job *j)
{
    const struct job_gate *at = &j->await.gate;
    if (at->entry.in && at->line == GATE_TRANSFER && work_transfers(&j->work) == 0) {
        sim_fail(s, "gate: job %" PRIu64 " waits to transfer, and transfers nothing", j->id);
    }
}

/* Jobs that are held at the limits of their tenants: each is in a line, and something will let it
 * go. */
void rules_gate(struct sim *s, const struct tenant *t)
{
    const struct gate *g = &t->gate;
    unsigned flying = 0;
    unsigned offered[GATE_LINES] = {0};
    unsigned held[GATE_LINES] = {0};
    for (const struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        if (j->tenant != t) {
            continue;
        }
        const struct job_gate *at = &j->await.gate;
        flying += j->device_prev != NULL;
        offered[at->line] += at->offered;
        held[at->line] += at->entry.in;
        bool queued = j->state == JOB_QUEUED;
        if ((at->entry.in || at->offered) && (!queued || at->entry.in == j->sched.ready.in)) {
            sim_fail(s, "gate: job %" PRIu64 " is held, and %s", j->id, job_state_name(j->state));
        }
        check_transfers(s, j);
    }
    limits_check(s, t);
    equal(s, "jobs of a tenant in flight", g->flying, flying);
    equal(s, "jobs offered again", g->offered[GATE_FLIGHT], offered[GATE_FLIGHT]);
    equal(s, "transfers offered again", g->offered[GATE_TRANSFER], offered[GATE_TRANSFER]);
    equal(s, "held jobs", g->held_count, held[GATE_FLIGHT] + held[GATE_TRANSFER]);
    if (t->limits.in_flight > 0 && flying > t->limits.in_flight) {
        sim_fail(s, "gate: %u jobs of tenant %s are in flight", flying, t->name);
    }
    bool flight = held[GATE_FLIGHT] > 0 && flying + offered[GATE_FLIGHT] < t->limits.in_flight;
    bool transfer = held[GATE_TRANSFER] > 0 && offered[GATE_TRANSFER] == 0;
    if ((flight || transfer) && !g->due.in) {
        sim_fail(s, "gate: nothing will let the held jobs of tenant %s go", t->name);
    }
}

bool gate_explains(struct sim *s, const struct job *j, const char *why)
{
    const struct gate *g = j->tenant != NULL ? &j->tenant->gate : NULL;
    if (strncmp(why, "waits for jobs of its tenant", 28) == 0) {
        /* an end may have come in this turn */
        bool full =
            g->flying >= s->p.flight || s->f->kicked || g->offered[GATE_FLIGHT] > 0 || g->due.in;
        if (s->p.flight == 0 || !full) {
            sim_fail(s, "explain: \"%s\": its tenant may have more", why);
        }
        return true;
    }
    if (strncmp(why, "waits to transfer", 17) != 0) {
        return false;
    }
    const struct load_client *own = load_client_of(s, j->tenant->name);
    bool limited = s->p.rate_kib > 0 || (own != NULL && own->rate > 0);
    if (!limited || work_transfers(&j->work) == 0) {
        sim_fail(s, "explain: \"%s\": it transfers nothing, or there is no rate", why);
    }
    return true;
}
