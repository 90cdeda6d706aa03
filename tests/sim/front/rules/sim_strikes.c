/* Strikes against kernels, and against tenants, as they follow from what clients were told. */
#include <inttypes.h>

#include "daemon/front/sched/conduct.h"
#include "tests/sim/front/sim.h"

#define TENANT_ITSELF 0u /* no kernel has this number */

static struct sim_strikes *find_strikes(struct sim *s, uint32_t tenant, unsigned kernel)
{
    unsigned i = 0;
    while (i < s->strikes && (s->strike[i].tenant != tenant || s->strike[i].kernel != kernel)) {
        i++;
    }
    return i < s->strikes ? &s->strike[i] : NULL;
}

static void strike(struct sim *s, uint32_t tenant, unsigned kernel)
{
    struct sim_strikes *k = find_strikes(s, tenant, kernel);
    if (k == NULL && s->strikes < sizeof s->strike / sizeof s->strike[0]) {
        k = &s->strike[s->strikes++];
        *k = (struct sim_strikes){.tenant = tenant, .kernel = kernel, .era = s->era};
    }
    if (k != NULL) {
        k->count = k->era == s->era ? k->count + 1 : 1; /* another front begins anew */
        k->era = s->era;
    }
}

/* Its job was sent then, and got it a strike. */
static void strike_tenant(struct sim *s, uint32_t tenant, uint64_t sent_ns)
{
    strike(s, tenant, TENANT_ITSELF);
    struct sim_strikes *k = find_strikes(s, tenant, TENANT_ITSELF);
    if (k != NULL) {
        k->first_ns = k->count == 1 ? sent_ns : k->first_ns;
        k->last_ns = k->count == 1 || sent_ns > k->last_ns ? sent_ns : k->last_ns;
    }
}

static bool named_before(const struct sim_job *j, unsigned step)
{
    for (unsigned i = 0; i < step; i++) {
        if (j->step[i].bad == j->step[step].bad) {
            return true;
        }
    }
    return false;
}

/* Each conviction is a strike, and so are the end of a suspect that does not run again and a turn
 * that overran. */
static bool struck(const struct sim *s, const struct sim_job *j)
{
    bool evades =
        j->suspect && j->internal == 1 && (j->code == ERR_CANCELLED || j->code == ERR_DEADLINE);
    bool counts = (j->code == ERR_KERNEL_FAULT && j->guilty) || evades || j->overran;
    return counts && !memory_failed() && !j->lied && !j->vague && j->request->sent_era == s->era;
}

/* A strike is one against each kernel of the job. Where tenants share workers, and for a turn, it
 * is one against its tenant as well. */
void strikes_count(struct sim *s, const struct sim_job *j)
{
    if (!struck(s, j)) {
        return;
    }
    bool own = s->p.special == WORLD_DOMAINS || s->p.special == WORLD_RIVALS ||
               s->p.special == WORLD_OVERRUNS;
    if (j->overran || !own) {
        strike_tenant(s, j->client->tenant, j->sent_ns);
    }
    for (unsigned i = 0; i < j->steps; i++) {
        if (j->step[i].bad != 0 && !named_before(j, i)) {
            strike(s, j->client->tenant, j->step[i].bad);
        }
    }
}

bool strikes_ban(const struct sim *s, uint32_t tenant, unsigned kernel)
{
    for (unsigned k = 0; k < s->strikes; k++) {
        const struct sim_strikes *x = &s->strike[k];
        if (x->tenant == tenant && x->kernel == kernel && x->era == s->era && x->count >= 3) {
            return true;
        }
    }
    return false;
}

bool rules_banned(const struct sim *s, const struct sim_job *j)
{
    for (unsigned i = 0; i < j->steps; i++) {
        if (j->step[i].bad != 0 && strikes_ban(s, j->client->tenant, j->step[i].bad)) {
            return true;
        }
    }
    return false;
}

uint64_t strikes_paused_ns(struct sim *s, uint32_t tenant)
{
    const struct sim_strikes *k = find_strikes(s, tenant, TENANT_ITSELF);
    bool enough = k != NULL && k->era == s->era && k->count >= CONDUCT_STRIKES &&
                  s->now_ns < k->first_ns + CONDUCT_FORGIVE_NS;
    return enough ? k->last_ns + CONDUCT_PAUSE_NS : 0;
}

bool strikes_may_pause(const struct sim *s, uint32_t tenant)
{
    unsigned most = 0;
    for (unsigned i = 0; i < s->jobs; i++) {
        const struct sim_job *j = s->job[i];
        bool lasts = j->guilty || j->stalled || j->blocked || j->run_ns >= GUILT_LONG_NS;
        most += j->client->tenant == tenant && j->begun > 0 && lasts;
    }
    return most >= CONDUCT_STRIKES;
}

/* Jobs that were queued before their kernel was convicted, or their tenant paused, do not run
 * either. */
void strikes_check_sent(struct sim *s, const struct sim_job *j)
{
    if (j != NULL && rules_banned(s, j) && !memory_failed() && !j->lied) {
        sim_fail(s,
                 "quarantine: request %" PRIu64 " of client %u has a kernel that ended its worker "
                 "three times, and is sent",
                 j->request->seq, j->client->index);
    }
    if (j != NULL && s->now_ns < strikes_paused_ns(s, j->client->tenant) && !memory_failed() &&
        !j->lied) {
        sim_fail(s,
                 "pause: request %" PRIu64 " of client %u, whose tenant is paused since, is sent",
                 j->request->seq, j->client->index);
    }
}

/* Jobs that are wrong, of a kernel in quarantine, or of a paused tenant do not run. */
void strikes_check_begins(struct sim *s, const struct sim_worker_job *j)
{
    const struct sim_job *k = j->job;
    if (k != NULL && k->wrong) {
        sim_fail(s,
                 "wrong: job %" PRIu64 " of client %u, request %" PRIu64
                 ", has wrong arguments, and runs",
                 j->id, k->client->index, k->request->seq);
    }
    if (k != NULL && k->banned && k->request->sent_era == s->era) {
        sim_fail(s,
                 "quarantine: job %" PRIu64 " of client %u, request %" PRIu64
                 ", has a kernel that ended its worker three times, and runs",
                 j->id, k->client->index, k->request->seq);
    }
    if (k != NULL && s->now_ns < k->paused_ns && k->request->sent_era == s->era) {
        sim_fail(
            s, "pause: job %" PRIu64 " of client %u, request %" PRIu64 ", of a paused tenant, runs",
            j->id, k->client->index, k->request->seq);
    }
}

static void on_evade(struct sim *s, const struct hap *h)
{
    struct sim_job *j = h->actor;
    if (j->client->state == CLIENT_ON && j->life == j->client->lives &&
        j->outcome == OUTCOME_OPEN) {
        ask_cancel_of(s, j, false);
    }
}

/* A job that may run again, and was alone in a worker that ended by itself. Its client may cancel
 * it, to save its kernel. */
void strikes_suspect(struct sim *s, const struct sim_worker *x)
{
    struct sim_job *only = NULL;
    unsigned count = 0;
    for (const struct sim_inbox *in = x->inbox; in != NULL; in = in->next) {
        count += in->schema == &schema_msg_f_job;
    }
    for (const struct sim_worker_job *j = x->job; j != NULL; j = j->next) {
        if (j->state != WJOB_ENDED || !j->reported) {
            only = j->job;
            count++;
        }
    }
    if (count == 1 && only != NULL && only->guilty && !only->writes && only->begun == 1 &&
        !only->lied && !only->cancelled && only->limit_ns == 0) {
        only->suspect = true;
        if (chance_mix(only->r) % 4 != 0 && !s->settling) {
            sim_at(s, s->now_ns + NS_PER_MS, on_evade, only, 0, 0);
        }
    }
}
