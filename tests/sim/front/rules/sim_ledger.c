/*
 * The place of a tenant in the line of a device follows from what it has had there: its virtual
 * time grows by that, divided by its weight (sched/shares.h). The simulation counts what it has had
 * (sim_shares.c), and compares the two for a tenant that always has ready jobs: one that had none
 * may be moved forward to where the line is. Jobs in flight are in no sum, as gpud only guesses
 * what they take.
 */
#include <inttypes.h>

#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/turns.h"
#include "tests/sim/front/rules/sim_shares.h"

#define OFF       0.15    /* streams that wait count as well: sched/shares.h */
#define LOOP_NS   (1e6)   /* turns of the loop */
#define SWITCH_NS (150e3) /* the same, and the pause before a job */
#define USUAL     ((double)TENANT_WEIGHT_USUAL)
#define JOBS      3.0 /* in flight: had, and not charged yet */
#define READY     2u  /* ready jobs at each look: some were there between them, too */
#define CUT_OFF   1.5 /* what gpud takes a switch for, at most */
#define LEARNS    24u /* switches until it knows */

/* Device time in ns, but for `served`. */
struct entry {
    bool waits;
    uint64_t served; /* as of the last look, without jobs in flight */
    uint64_t weight;
    struct share_sum at; /* what the simulation had counted then */
    struct share_sum had;
    double charged;
    double least, most; /* of what it was charged beyond what it had */
};

static struct entry entries[DEVICES_MAX][LOAD_FLOWS];

void ledger_anew(void)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        for (unsigned k = 0; k < LOAD_FLOWS; k++) {
            entries[i][k].waits = false;
        }
    }
}

/* What the tenant's jobs in flight on the worker were charged. *ret_others: some have buffers, and
 * are not of the flow. */
static uint64_t guessed(const struct device *d, const struct stake *k, unsigned class,
                        bool *ret_others)
{
    uint64_t sum = 0;
    for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
        const struct job_charge *c = &j->sched.charge;
        bool own = c->stake == k && c->class == class;
        sum += own ? c->served : 0;
        *ret_others = *ret_others || (own && j->work.use_count > 0);
    }
    return sum;
}

static uint64_t settled(const struct device *base, const struct stake *k, unsigned class,
                        bool *ret_others)
{
    uint64_t sum = guessed(base, k, class, ret_others);
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        sum += guessed(d, k, class, ret_others);
    }
    return k->of[class].served - sum;
}

static void check(struct sim *s, const struct tenant *t, unsigned device, unsigned flow,
                  struct entry *e)
{
    double price = 2 * CUT_OFF * (double)s->load->switch_ns;
    double least = (double)TURN_LEAST_NS / ((double)TURN_COSTS / 2);
    price = price > least ? price : least;
    double bound = JOBS * e->at.longest + LOOP_NS;
    double over = e->charged - (1 + OFF) * e->had.got - price * e->had.turns;
    double under = e->charged - (1 - OFF) * e->had.got;
    e->least = over < e->least ? over : e->least;
    e->most = under > e->most ? under : e->most;
    /* a cut is paid for before the device goes to the worker */
    if (over - e->least > bound + price || e->most - under > bound) {
        bool less = over - e->least <= bound + price;
        sim_fail(
            s,
            "ledger: tenant %s is charged %.3f ms %s in the line of device %u than its jobs of "
            "class %u had there, at most %.3f",
            t->name, (less ? e->most - under : over - e->least) / 1e6, less ? "less" : "more",
            device, flow % CLASS_COUNT, bound / 1e6);
    }
}

/* Since the last look. */
static void add(struct entry *e, const struct share_sum *now, uint64_t served)
{
    e->charged += (double)(int64_t)(served - e->served) * (double)e->weight / USUAL;
    e->had.got += now->got - e->at.got;
    e->had.turns += now->turns - e->at.turns;
}

static void look(struct sim *s, const struct tenant *t, const struct device *base, unsigned flow)
{
    struct entry *e = &entries[base->index][flow];
    const struct stake *k = t->share.stake[base->index];
    struct share_sum now = shares_sum(s, base->index, flow);
    unsigned class = flow % CLASS_COUNT;
    bool stands = k != NULL && tournament_has(&base->line.stakes[class], k->of[class].seat);
    /* Pauses between jobs are charged where workers take turns only. */
    bool paused = base->domains == NULL && s->load->gap_ns > NS_PER_US;
    if (!stands || k->away || paused || now.ready < READY) {
        e->waits = false;
        return;
    }
    bool others = false;
    uint64_t served = settled(base, k, class, &others);
    if (others) {
        e->waits = false;
        return;
    }
    if (!e->waits) {
        *e = (struct entry){.waits = true};
    } else if (e->weight == t->limits.weight) {
        add(e, &now, served);
    }
    e->served = served;
    e->weight = t->limits.weight;
    e->at = now;
    check(s, t, base->index, flow, e);
}

/* What gpud takes a switch for. */
static void check_switch(struct sim *s, const struct device *base)
{
    double is = (double)s->load->switch_ns;
    double taken = (double)base->turn.cost_ns;
    bool known = load_rivals(s) && s->load->context[base->index].switches > LEARNS;
    if (known && taken > CUT_OFF * is + SWITCH_NS) {
        sim_fail(s, "ledger: device %u goes to another worker in %.0f us, and is said to need %.0f",
                 base->index, is / 1e3, taken / 1e3);
    }
}

void ledger_check(struct sim *s)
{
    for (unsigned i = 0; i < s->f->device_count && i < s->p.devices; i++) {
        const struct device *base = s->f->device[i];
        for (const struct tenant *t = s->f->tenants; t != NULL; t = t->hh.next) {
            const struct load_client *own = load_client_of(s, t->name);
            for (unsigned class = 0; own != NULL && class < CLASS_COUNT; class ++) {
                look(s, t, base, load_flow(s, (unsigned)(own - s->load->client), class));
            }
        }
        check_switch(s, base);
    }
}
