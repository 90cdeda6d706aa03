/* Workers that are ended because their turn overran, and those that are not. */
#include <inttypes.h>
#include <string.h>

#include "daemon/front/model/flight.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/turns.h"
#include "tests/sim/front/rules/sim_shares.h"

#define LONG_NS   (2 * NS_PER_S)    /* for which the front stands still: it knows of that */
#define LATE_NS   (200 * NS_PER_MS) /* looks for a sign of life */
#define BESIDE_NS NS_PER_S          /* until others go on, after an event */

static const struct device *device_of(const struct sim *s, const struct sim_worker *x)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        if (d->worker == x->id) {
            return d;
        }
    }
    return NULL;
}

/* The job that has run for longest, as far as the front can know. */
static const struct sim_worker_job *first_of(const struct sim_worker *x)
{
    const struct sim_worker_job *first = NULL;
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        bool runs = j->state == WJOB_RUNS && !j->paused && j->said;
        first = runs && (first == NULL || j->began_ns < first->began_ns) ? j : first;
    }
    return first;
}

/* A client that had the answer before saves no kernel from the strike. */
static void note_answered(struct sim *s, const struct sim_worker_job *j, const char *ending)
{
    struct sim_job *k = j->job;
    bool apart = strstr(ending, "beside it") != NULL;
    if (k != NULL && !apart && k->outcome == OUTCOME_KNOWN && k->code == ERR_TIME_LIMIT &&
        !k->overran && (k->guilty || k->run_ns >= GUILT_LONG_NS) && j->id == k->id) {
        k->overran = true;
        strikes_count(s, k);
    }
}

/* The front ends the worker. */
void overrun_killed(struct sim *s, const struct sim_worker *x)
{
    static const char why[] = "a job ran for";
    const struct device *d = device_of(s, x);
    if (d == NULL || strncmp(d->ending, why, sizeof why - 1) != 0 || x->lied) {
        return;
    }
    uint64_t overrun_ns = s->f->config.turn_overrun_ms * NS_PER_MS;
    const struct turn *t = &s->f->device[device_shown(d)]->turn;
    const struct sim_worker_job *j = first_of(x);
    uint64_t away_ns = stall_last(s).ns > LONG_NS ? s->stalled_ns : 0;
    uint64_t since = j != NULL && j->began_ns > away_ns ? j->began_ns : away_ns;
    if (j == NULL || s->now_ns < since + overrun_ns) {
        sim_fail(s,
                 "overrun: worker %" PRIu64 " is ended for a turn that overran, and no job has run "
                 "there for %" PRIu64 " ms",
                 x->id, overrun_ns / NS_PER_MS);
    }
    uint64_t still_ns =
        s->stalled_ns > x->heard_ns ? stall_last(s).ns : 0; /* it could not look then */
    if (x->silent &&
        s->now_ns > x->heard_ns + turn_length_ns(t) + overrun_ns + LATE_NS + still_ns) {
        sim_fail(s,
                 "overrun: worker %" PRIu64 " is ended for a turn that overran, and has given no "
                 "sign of life for %" PRIu64 " ms",
                 x->id, (s->now_ns - x->heard_ns) / NS_PER_MS);
    }
    note_answered(s, j, d->ending);
}

/* ---- others beside it ------------------------------------------------------------------------ */

static struct device *next_worker(const struct device *base, const struct device *d)
{
    return d == base ? base->domains : d->domain_next;
}

/* Whether the worker has jobs of which others may have to wait for the end. */
static bool keeps_others(const struct device *d)
{
    const struct job *j = d->inflight;
    while (j != NULL && (j->wait == WAIT_MEMORY || turn_outstays(d, j))) {
        j = j->device_next;
    }
    return j != NULL;
}

/* The ready job of a worker that has none in flight, and may take one; NULL: none is. */
static const struct job *waiting(struct sim *s, struct device *base, struct device *d)
{
    bool takes = device_takes(d) && d->inflight_count == 0 && d->link != NULL && !d->exclusive &&
                 !d->stopped;
    base->shut = true;
    for (struct device *x = base->domains; takes && x != NULL; x = x->domain_next) {
        x->shut = true;
    }
    d->shut = false;
    return takes ? shares_head(s->f, base) : NULL;
}

/* While all that a device has in flight has outstayed its turn, it does not leave jobs of other
 * workers waiting. */
static void check_beside(struct sim *s, struct device *base)
{
    static uint64_t since[DEVICES_MAX]; /* 0: no such job waits */
    bool outstays = false;
    bool kept = memory_failed() || !turns_apply(s->f, base);
    for (struct device *d = base; d != NULL && !kept; d = next_worker(base, d)) {
        kept = keeps_others(d) || d->killed_ns != 0;
        outstays = outstays || d->inflight_count > 0;
    }
    const struct job *j = NULL;
    for (struct device *d = base; d != NULL && !kept && outstays && j == NULL;
         d = next_worker(base, d)) {
        j = waiting(s, base, d);
    }
    uint64_t *from = &since[base->index];
    *from = j == NULL ? 0 : *from == 0 ? s->now_ns : *from;
    if (j != NULL && s->now_ns > *from + BESIDE_NS && s->now_ns > s->stalled_ns + BESIDE_NS) {
        sim_fail(
            s,
            "overrun: all that device %u has in flight has outstayed its turn, and job %" PRIu64
            " of another worker waits for %" PRIu64 " ms",
            base->index, j->id, (s->now_ns - *from) / NS_PER_MS);
    }
}

/* Others wait for what a worker has in flight for as long as an overrun takes, also where a job of
 * another worker came before that, and went. */
static void check_patience(struct sim *s, const struct device *d)
{
    uint64_t overrun_ns = s->f->config.turn_overrun_ms * NS_PER_MS;
    const struct job *j = d->inflight;
    if (d->outstayed_ns == s->now_ns && j != NULL && s->now_ns < j->dispatched_ns + overrun_ns) {
        sim_fail(s,
                 "overrun: others no longer wait for job %" PRIu64
                 " of device %u, which went there "
                 "%" PRIu64 " us ago",
                 j->id, d->index, (s->now_ns - j->dispatched_ns) / NS_PER_US);
    }
}

/* Others do not go on beside a tenant's own worker whose job is seen to run: it is ended. They do
 * beside one that is already being ended. */
void overrun_step(struct sim *s)
{
    for (unsigned i = 0; i < s->f->device_count; i++) {
        check_beside(s, s->f->device[i]);
        for (struct device *d = s->f->device[i]; d != NULL; d = next_worker(s->f->device[i], d)) {
            check_patience(s, d);
        }
        for (const struct device *d = s->f->device[i]->domains; d != NULL; d = d->domain_next) {
            bool beside = d->outstayed_ns == s->now_ns && d->owner != NULL && d->killed_ns == 0;
            const struct sim_worker *x = beside ? worker_of_device(s, worker_slot_of(s, d)) : NULL;
            const struct sim_worker_job *j = x != NULL && !x->silent ? first_of(x) : NULL;
            if (j != NULL && s->now_ns > j->began_ns + NS_PER_MS && !x->lied &&
                x->id == d->worker) {
                sim_fail(s,
                         "overrun: others go on beside worker %" PRIu64 " of a tenant, whose job "
                         "%" PRIu64 " does not end",
                         x->id, j->id);
            }
        }
    }
}
