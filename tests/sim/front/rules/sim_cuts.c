/*
 * A turn ends at once for a job of an earlier class than all others that are ready, and for one of
 * a worker that had no job left, if its tenant has had the least (sched/turns.h): such a job waits
 * for what is in flight, and for the way to its worker. Worlds of sim_load.h with one device.
 */
#include <inttypes.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/turns.h"
#include "tests/sim/front/rules/sim_shares.h"

#define LOOP_NS (1e6) /* turns of the loop */

static uint64_t since[LOAD_CLIENTS]; /* when a job of the client had to be next; 0: it has not */

static const struct stake *stake_of(const struct sim *s, unsigned client)
{
    const struct tenant *t = s->f->tenants;
    while (t != NULL && load_client_of(s, t->name) != &s->load->client[client]) {
        t = t->hh.next;
    }
    return t != NULL ? t->share.stake[0] : NULL;
}

/* The first class in which the client has ready jobs; CLASS_COUNT: it has none. */
static unsigned first_of(const struct sim *s, unsigned client)
{
    unsigned class = 0;
    while (class < CLASS_COUNT && shares_sum(s, 0, load_flow(s, client, class)).ready == 0) {
        class ++;
    }
    return class;
}

/* The same, with those in flight: a turn goes on for the next job of that class. */
static unsigned first_beside(const struct sim *s, unsigned client, const struct stake *k)
{
    unsigned class = 0;
    while (class < CLASS_COUNT && k->of[class].flying == 0 &&
           shares_sum(s, 0, load_flow(s, client, class)).ready == 0) {
        class ++;
    }
    return class;
}

/* The tenant's own worker can take a job, and has none. */
static bool waits(struct sim *s, const struct stake *k)
{
    struct device *base = s->f->device[0];
    const struct device *d = k != NULL ? domain_of(k->tenant, base) : NULL;
    return d != NULL && d != base && device_takes(d) && d->inflight_count == 0 && !d->exclusive;
}

/* Whether the other client's jobs leave the one of `k` first: by their class, or by what it has
 * had. Batch jobs may be owed a part. */
static bool leaves_first(const struct sim *s, unsigned other, const struct stake *k, unsigned class,
                         bool by_class)
{
    const struct stake *x = stake_of(s, other);
    unsigned first = x != NULL ? first_beside(s, other, x) : CLASS_COUNT;
    bool owed = x != NULL && shares_sum(s, 0, load_flow(s, other, CLASS_BATCH)).ready > 0;
    bool behind = x != NULL && first == class && x->of[class].served > k->of[class].served;
    return !owed && (first > class || (!by_class && behind));
}

static bool is_next(struct sim *s, unsigned client)
{
    const struct stake *k = stake_of(s, client);
    unsigned class = first_of(s, client);
    bool earlier = true;
    bool least = shares_drained(s, 0, client);
    if (class >= CLASS_BATCH || !waits(s, k) || s->load->client[client].cap > 0) {
        return false;
    }
    for (unsigned i = 0; i < LOAD_CLIENTS && i < s->p.clients; i++) {
        earlier = earlier && (i == client || leaves_first(s, i, k, class, true));
        least = least && (i == client || leaves_first(s, i, k, class, false));
    }
    return earlier || least;
}

/* What is in flight, of the longest jobs, and the way to the worker. */
static double bound_of(const struct sim *s)
{
    double longest = 0;
    for (unsigned k = 0; k < LOAD_FLOWS; k++) {
        double ns = shares_sum(s, 0, k).longest;
        longest = ns > longest ? ns : longest;
    }
    double jobs = shares_most(s, 0) + 1;
    return longest * (jobs / (double)s->p.streams + 1) + 2 * (double)s->load->switch_ns + LOOP_NS;
}

void cuts_anew(void)
{
    for (unsigned i = 0; i < LOAD_CLIENTS; i++) {
        since[i] = 0;
    }
}

void cuts_check(struct sim *s)
{
    if (!load_rivals(s) || s->load->outliers || s->p.devices != 1 ||
        !turns_apply(s->f, s->f->device[0])) {
        cuts_anew();
        return;
    }
    for (unsigned i = 0; i < LOAD_CLIENTS && i < s->p.clients; i++) {
        bool next = !s->load->client[i].trusted && is_next(s, i);
        since[i] = !next ? 0 : since[i] == 0 ? s->now_ns : since[i];
        double bound = bound_of(s);
        if (next && (double)(s->now_ns - since[i]) > bound) {
            sim_fail(s,
                     "cuts: a job of client %u is next, and waits for %" PRIu64
                     " us, at most %.0f follow from what is in flight",
                     i, (s->now_ns - since[i]) / NS_PER_US, bound / 1e3);
        }
    }
}
