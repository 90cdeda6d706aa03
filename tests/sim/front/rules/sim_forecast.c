/* What gpud expects of jobs of known times (sim_load.h), against what they take. */
#include <inttypes.h>
#include <string.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/sched/predict.h"
#include "tests/sim/front/rules/sim_shares.h"

#define LEAST 0.5 /* of what such jobs take, of which one in some takes far longer */
#define MOST  1.8
#define STEP  1.3 /* that one job changes a known time by */

void forecast_ended(struct sim *s, const struct sim_job *k, unsigned device)
{
    s->load->client[k->client->index].kind[k->kind].ended[device]++;
}

/* A job that took far longer than others changes what is known of them little, though it may be
 * less certain then. */
static void check_step(struct sim *s, const struct sim_job *k, unsigned device,
                       const struct estimate *now)
{
    struct load_kind *x = &s->load->client[k->client->index].kind[k->kind];
    if (x->known_era != s->era) {
        memset(x->known_ns, 0, sizeof x->known_ns);
        x->known_era = s->era;
    }
    double ns = (double)now->ns;
    double most = x->known_ns[device];
    for (unsigned i = 0; i < x->ended[device] && most < ns; i++) {
        most *= STEP;
    }
    if (x->known_ns[device] > 0 && ns > most) {
        sim_fail(
            s,
            "forecast: jobs of client %u were sure to take %.0f us, %u of them ended, and they "
            "are to take %.0f now",
            k->client->index, x->known_ns[device] / 1e3, x->ended[device], ns / 1e3);
    }
    x->known_ns[device] = now->sure ? ns : 0;
    x->ended[device] = 0;
}

/* The front sends the job to the worker. */
void forecast_sent(struct sim *s, uint64_t worker, uint64_t job, const struct sim_job *k)
{
    const struct job *j =
        s->book != NULL && k != NULL && k->flow > 0 ? job_find(s->f->jobs, job) : NULL;
    const struct device *d = j != NULL ? j->device : NULL;
    if (d == NULL || d->worker != worker || j->tenant == NULL || memory_failed() ||
        s->load->client[k->client->index].wild) {
        return;
    }
    struct estimate x = predict_cost(j, d);
    const struct load_client *t = &s->load->client[k->client->index];
    double usual = (double)t->run_ns[k->kind] * s->load->slow[device_shown(d)];
    if (x.sure &&
        ((double)x.ns * (double)s->p.streams < LEAST * usual || (double)x.ns > MOST * usual)) {
        sim_fail(s,
                 "forecast: job %" PRIu64 " of client %u is sure to take %" PRIu64
                 " us, such jobs take %.0f",
                 job, k->client->index, x.ns / NS_PER_US, usual / 1e3);
    }
    check_step(s, k, device_shown(d), &x);
}

/* The tenant has a worker that serves on some device. */
static bool serves(const struct sim *s, const struct job *j)
{
    bool any = false;
    for (unsigned i = 0; i < s->f->device_count; i++) {
        const struct device *d = domain_of(j->tenant, s->f->device[i]);
        any = any || (d != NULL && device_serves(d));
    }
    return any;
}

/* Nothing is expected of jobs whose worker does not serve. */
void forecast_check(struct sim *s)
{
    for (const struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        if (j->state != JOB_QUEUED || j->tenant == NULL || j->device != NULL || serves(s, j)) {
            continue;
        }
        struct prediction p = predict_job(s->f, j);
        if (p.begin_ns != 0) {
            sim_fail(s,
                     "forecast: job %" PRIu64 " is to begin in %" PRIu64
                     " us, and its tenant has no worker that serves",
                     j->id, (p.begin_ns - s->now_ns) / NS_PER_US);
        }
        return; /* one is enough */
    }
}
