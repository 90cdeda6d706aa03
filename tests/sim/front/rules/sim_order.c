/* What a job must not go before, or beside, and where it may go, when the front sends it to a
 * worker. Of tenants that load devices (sim_load.h). */
#include <inttypes.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/predict.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/turns.h"
#include "tests/sim/front/rules/sim_shares.h"

#define KNOWN_OFF 1.1 /* what gpud expects of jobs of known times */
#define NEVER     (1e18)
#define LOOP_NS   (500e3) /* turns of the loop, and the way to a worker */

static const struct device *next_worker(const struct device *base, const struct device *d)
{
    return d == base ? base->domains : d->domain_next;
}

/* Jobs in flight on the device of a tenant and class. t NULL: of all tenants; class CLASS_COUNT: of
 * all classes but batch. */
static unsigned count(const struct device *base, const struct tenant *t, unsigned class)
{
    unsigned n = 0;
    for (const struct device *d = base; d != NULL; d = next_worker(base, d)) {
        for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
            unsigned own = job_rank_class(j);
            bool of_class = class == CLASS_COUNT ? own != CLASS_BATCH : own == class;
            n += of_class && (t == NULL || j->tenant == t);
        }
    }
    return n;
}

/* As many jobs as a tenant of unknown jobs may have beside others. */
static unsigned few(const struct device *d)
{
    unsigned streams = device_usual_streams(d);
    return streams > 1 ? streams - 1 : 1;
}

/* ---- where ----------------------------------------------------------------------------------- */

static void check_place(struct sim *s, const struct job *j, const struct load_client *t,
                        unsigned device)
{
    if (j->job_class < t->first_class) {
        sim_fail(s,
                 "order: job %" PRIu64 " of tenant %s has class %" PRIu64 ", its first one is %u",
                 j->id, j->tenant->name, j->job_class, t->first_class);
    }
    if ((t->devices >> device & 1) == 0) {
        sim_fail(s, "order: job %" PRIu64 " goes to device %u, which tenant %s may not use", j->id,
                 device, j->tenant->name);
    }
}

/* ---- before what ----------------------------------------------------------------------------- */

/* The worker could take the job now. */
static bool could_go(const struct sim *s, struct device *base, const struct job *j)
{
    bool may =
        j->device == NULL ? tenant_may_use(j->tenant, base->index) : device_base(j->device) == base;
    const struct device *d = may ? shares_goal(j, base) : NULL;
    return d != NULL && device_takes(d) && !d->exclusive && !d->stopped &&
           d->inflight_count < device_window(d, s->f->config.window) &&
           count(base, j->tenant, job_rank_class(j)) < few(d);
}

/* Realtime jobs go before interactive ones. */
static void check_earlier(struct sim *s, const struct job *j, struct device *base)
{
    for (const struct job *k = s->f->jobs; k != NULL; k = k->hh.next) {
        bool ready = k->state == JOB_QUEUED && k->sched.ready.in && k->wait == WAIT_WINDOW &&
                     k->tenant != NULL && job_rank_class(k) < job_rank_class(j) &&
                     k->tenant->limits.device_share == 0;
        if (ready && could_go(s, base, k)) {
            sim_fail(s,
                     "order: job %" PRIu64 " of class %u is sent, and job %" PRIu64
                     " of class %u is ready",
                     j->id, job_rank_class(j), k->id, job_rank_class(k));
        }
    }
}

/* ---- on which device ------------------------------------------------------------------------- */

static double time_on(const struct sim *s, const struct load_client *t, const struct job *j,
                      unsigned device)
{
    const struct sim_job *k = NULL;
    for (unsigned i = s->jobs; i > 0 && k == NULL; i--) {
        k = s->job[i - 1]->id == j->id && s->job[i - 1]->id_era == s->era ? s->job[i - 1] : NULL;
    }
    uint64_t ns = k != NULL && k->flow > 0 ? t->run_ns[k->kind] : 0;
    return (double)ns * s->load->slow[device];
}

/* How long the job takes on the device; 0: not known. */
static double known_on(const struct sim *s, const struct job *j, unsigned device)
{
    const struct load_client *t = j->tenant != NULL ? load_client_of(s, j->tenant->name) : NULL;
    return t != NULL && !t->wild ? time_on(s, t, j, device) : 0;
}

static bool is_there(const struct job *j, const struct device *base)
{
    bool flies = j->state != JOB_QUEUED && !job_ended(j) && j->device != NULL;
    return flies && device_base(j->device) == base;
}

/* What the device would have to do if it got all that is ready; NEVER: some is not known. */
static double all_on(const struct sim *s, const struct job *but, const struct device *base)
{
    double sum = 0;
    for (const struct job *k = s->f->jobs; k != NULL; k = k->hh.next) {
        if (k == but || (k->state != JOB_QUEUED && !is_there(k, base))) {
            continue;
        }
        double ns = known_on(s, k, base->index);
        if (ns == 0) {
            return NEVER;
        }
        sum += ns;
    }
    return sum;
}

static bool may_take(const struct device *base, const struct job *j, const struct load_client *t)
{
    return device_takes(base) && !base->exclusive && (t->devices >> base->index & 1) != 0 &&
           predict_cost(j, base).sure;
}

/* Any device may run it, and this one leaves it to another. */
static bool may_leave(const struct sim *s, const struct job *j, const struct device *d)
{
    return j->work.device < 0 && d->line.bound == 0 && predict_cost(j, d).sure &&
           job_rank_class(j) != CLASS_BATCH && !s->load->outliers && d->base == NULL &&
           d->domains == NULL;
}

/* A slow device leaves the last jobs to another one, which would have done all that is ready
 * before this job ends here. */
static void check_elsewhere(struct sim *s, const struct job *j, const struct load_client *t,
                            const struct device *d)
{
    double here = known_on(s, j, device_shown(d));
    for (unsigned i = 0; i < s->f->device_count && here > 0 && may_leave(s, j, d); i++) {
        const struct device *base = s->f->device[i];
        bool may = base != d && may_take(base, j, t);
        double there = may ? all_on(s, j, base) + known_on(s, j, i) : NEVER;
        if (KNOWN_OFF * there + LOOP_NS < here) {
            sim_fail(s,
                     "order: job %" PRIu64 " goes to device %u, where it takes %.0f us; device %u "
                     "would have done it and all that is ready in %.0f us",
                     j->id, device_shown(d), here / 1e3, i, there / 1e3);
        }
    }
}

/* ---- beside what ----------------------------------------------------------------------------- */

/* One is in flight beside jobs of other classes, and one more for each stream where batch jobs have
 * had less than their part. */
static void check_batch(struct sim *s, const struct job *j, const struct device *base)
{
    unsigned batch = count(base, NULL, CLASS_BATCH);
    if (batch > device_usual_streams(base) + 1 && count(base, NULL, CLASS_COUNT) > 0) {
        sim_fail(s,
                 "order: batch job %" PRIu64 " is sent beside %u others and jobs of other classes",
                 j->id, batch - 1);
    }
}

/* A tenant of whose jobs none has ended leaves a stream to others. */
static void check_unknown(struct sim *s, const struct job *j, unsigned client,
                          const struct device *base)
{
    unsigned class = job_rank_class(j);
    unsigned own = count(base, j->tenant, class);
    unsigned others = count(base, NULL, CLASS_BATCH) + count(base, NULL, CLASS_COUNT);
    others -= count(base, j->tenant, CLASS_BATCH) + count(base, j->tenant, CLASS_COUNT);
    if (shares_known(s, base->index, LOAD_FLOWS + client) == 0 && own > few(base) && others > 0) {
        sim_fail(s,
                 "order: tenant %s gets %u jobs on their way beside others, and none of its jobs "
                 "has ended",
                 j->tenant->name, own);
    }
}

/* Where workers take turns, one gets no more than keeps the device busy. */
static void check_full(struct sim *s, const struct job *j, const struct load_client *t,
                       const struct device *d)
{
    const struct device *base = d->base != NULL ? d->base : d;
    unsigned streams = device_usual_streams(d);
    unsigned waiting = d->inflight_count > streams + 1 ? d->inflight_count - streams - 1 : 0;
    uint64_t least = t->run_ns[0];
    for (unsigned i = 1; i < LOAD_KINDS; i++) {
        least = t->run_ns[i] < least ? t->run_ns[i] : least;
    }
    unsigned flow = load_flow(s, (unsigned)(t - s->load->client), job_rank_class(j));
    bool known = shares_known(s, base->index, flow) > 30;
    if (base->domains != NULL && d->owner != NULL && known && !t->wild && !s->load->outliers &&
        waiting * least / streams > 4 * TURN_LEAST_NS + 2 * least) {
        sim_fail(s,
                 "order: job %" PRIu64 " is sent behind %u others of worker %" PRIu64
                 ", which takes turns, and they take %" PRIu64 " us each",
                 j->id, d->inflight_count - 1, d->worker, least / NS_PER_US);
    }
}

void order_sent(struct sim *s, const struct device *d, uint64_t job)
{
    const struct job *j = s->book != NULL ? job_find(s->f->jobs, job) : NULL;
    const struct load_client *t =
        j != NULL && j->tenant != NULL ? load_client_of(s, j->tenant->name) : NULL;
    struct device *base = s->f->device[device_shown(d)];
    if (t == NULL || job_adopted(j) || memory_failed()) {
        return;
    }
    shares_sent(s, device_shown(d), (unsigned)(t - s->load->client));
    check_place(s, j, t, device_shown(d));
    if (job_rank_class(j) != CLASS_BATCH) {
        check_earlier(s, j, base);
    } else {
        check_batch(s, j, base);
    }
    check_unknown(s, j, (unsigned)(t - s->load->client), base);
    check_full(s, j, t, d);
    check_elsewhere(s, j, t, d);
}
