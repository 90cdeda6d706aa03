#include "tests/sim/front/rules/sim_sooner.h"

#include <inttypes.h>
#include <string.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/transit.h"
#include "tests/sim/front/rules/sim_told.h"
#include "tests/sim/front/sim.h"

#define LOAD_NS (50 * NS_PER_MS) /* that kernels take at least, as the front takes it */
#define KNOWN   8u               /* jobs, after which a time is known */
#define MOST    2.0              /* times what jobs take: as estimates may err */
#define SLACK   (10 * NS_PER_MS)

bool stray_is(const struct sim *s)
{
    return s->p.special == WORLD_DUE && s->p.devices > 1;
}

/* ---- what stays ------------------------------------------------------------------------------ */

static void check_buffers(struct sim *s, const struct job *j, const struct device *home)
{
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        if ((b->flags & (BUFFER_FLAG_STAY | BUFFER_FLAG_EXPORT)) != 0) {
            sim_fail(s,
                     "sooner: job %" PRIu64 " takes buffer %#" PRIx64
                     " from device %u, where it is to stay",
                     j->id, b->handle, home->index);
        }
    }
}

static void check_work(struct sim *s, const struct job *j)
{
    bool any = false;
    for (unsigned i = 0; i < j->work.step_count; i++) {
        any = any || j->work.steps[i].op == OP_LAUNCH;
    }
    if (!any) {
        sim_fail(s, "sooner: job %" PRIu64 " takes its buffers away, and runs no kernel", j->id);
    }
}

/* Another buffer was on its way before the job came. */
static void check_alone(struct sim *s, const struct job *j)
{
    uint32_t cursor = 0;
    for (const struct buffer *b;
         s->f->moving > 0 && (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        if (b->move != MOVE_NONE && b->move_ns < j->submitted_ns) {
            sim_fail(
                s, "sooner: job %" PRIu64 " takes its buffers away while buffer %#" PRIx64 " moves",
                j->id, b->handle);
        }
    }
}

/* Do jobs of its own device alone use the buffer before the job, which goes elsewhere? */
static bool used_at(const struct job *j, const struct work_use *u, unsigned home)
{
    const struct buffer_use *x = u->entry != NULL ? hazard_ahead(u->entry) : NULL;
    bool used = x != NULL && u->buffer->device == home && home != j->device->index &&
                u->buffer->move == MOVE_NONE;
    for (; x != NULL && used; x = hazard_ahead(x)) {
        used = x->job->device != NULL && x->job->device->index == home;
    }
    return used;
}

/* All of them are on one device, where other jobs use each of them; no job takes one elsewhere. One
 * that nothing uses may have had a job that was to take it away, and has ended. */
void sooner_check_used(struct sim *s, const struct job *j)
{
    bool named = j->request == NULL || j->request->kind != MSG_KIND_SUBMIT ||
                 j->request->msg.submit.device != 0;
    if (named || j->device == NULL || j->work.use_count == 0) {
        return;
    }
    unsigned home = j->work.uses[0].buffer->device;
    for (unsigned i = 0; i < j->work.use_count; i++) {
        if (!used_at(j, &j->work.uses[i], home)) {
            return;
        }
    }
    sim_fail(s,
             "sooner: job %" PRIu64 " takes its buffers from device %u, where jobs wait for them",
             j->id, home);
}

/* ---- what is worth it ------------------------------------------------------------------------ */

/* NULL: not known. */
static const struct sim_job *known_as(const struct sim *s, const struct job *j)
{
    const struct sim_job *found = NULL;
    for (unsigned i = s->jobs; i > 0 && found == NULL && j->session != NULL; i--) {
        const struct sim_job *k = s->job[i - 1];
        found = k->request->seq == j->seq && k->client->session == j->session->id &&
                        k->life == k->client->lives
                    ? k
                    : NULL;
    }
    return found;
}

/* Do both the same, as far as their clients know? */
static bool alike(const struct sim_job *a, const struct sim_job *b)
{
    bool same = a->client->tenant == b->client->tenant && a->steps == b->steps;
    for (unsigned i = 0; i < a->steps && same; i++) {
        same = a->step[i].op == b->step[i].op && a->step[i].inlined == b->step[i].inlined;
    }
    return same;
}

/* Jobs of its tenant like this one that workers have begun. */
static bool has_begun(const struct sim *s, const struct job *j)
{
    const struct sim_job *x = known_as(s, j);
    unsigned begun = 0;
    for (unsigned i = 0; x != NULL && i < s->jobs && begun < KNOWN; i++) {
        begun += s->job[i]->begun > 0 && alike(s->job[i], x);
    }
    return x == NULL || begun >= KNOWN;
}

/* Nobody knows how long the job takes. */
static bool is_unknown(const struct sim *s, const struct job *j)
{
    return job_adopted(j) || !has_begun(s, j);
}

/* A job in flight has been there for far longer than such jobs take. */
static bool is_late(const struct sim *s, const struct job *k)
{
    return k->state == JOB_RUNNING && k->started_ns > 0 &&
           s->now_ns > k->started_ns + 4 * s->p.run_us * NS_PER_US;
}

static void check_known(struct sim *s, const struct job *j, const struct device *d)
{
    for (const struct job *k = s->f->jobs; k != NULL; k = k->hh.next) {
        bool before = k != j && !job_ended(k) && k->device != NULL &&
                      device_shown(k->device) == device_shown(d) && k->id < j->id &&
                      (k->state != JOB_QUEUED || k->sched.ready.in) &&
                      (k->state != JOB_QUEUED || job_rank_class(k) <= job_rank_class(j));
        if (before && k->wait != WAIT_MEMORY && (is_unknown(s, k) || is_late(s, k))) {
            sim_fail(s,
                     "sooner: job %" PRIu64
                     " leaves its device for another or by its wait, and job "
                     "%" PRIu64 " on device %u takes nobody knows how long",
                     j->id, k->id, d->index);
        }
    }
}

static uint64_t since(const struct sim *s, const struct ready_sum *x)
{
    return x->weight > 0 ? s->now_ns - x->since_ns : 0;
}

/* At most, until the device would have begun the job: all that is there, by what such jobs take,
 * and what others may send meanwhile. */
static double most_wait(const struct sim *s, const struct job *j, struct device *home)
{
    unsigned class = job_rank_class(j);
    unsigned jobs = 0;
    for (const struct job *k = s->f->jobs; k != NULL; k = k->hh.next) {
        jobs += k != j && !job_ended(k) &&
                (k->device == NULL || device_shown(k->device) == device_shown(home));
    }
    double more =
        (double)since(s, &device_line(home)->ready[class]) + (double)since(s, &s->f->any[class]);
    return MOST * jobs * (double)s->p.run_us * (double)NS_PER_US + more;
}

static void check_worth(struct sim *s, const struct job *j, struct device *home)
{
    struct device *to = j->device;
    const struct sim_worker *x = worker_of_device(s, worker_slot_of(s, to));
    double price = 0;
    bool loaded = true;
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        price += (double)transit_cost(b, home, to).ns + (double)transit_cost(b, to, home).ns;
    }
    for (unsigned i = 0; i < j->work.module_count && x != NULL; i++) {
        bool has = false;
        for (unsigned k = 0; k < x->modules && !has; k++) {
            has = x->module[k] == j->work.modules[i]->id;
        }
        loaded = loaded && has;
    }
    price += loaded ? 0 : (double)LOAD_NS;
    double wait = most_wait(s, j, home);
    if (price > wait + (double)SLACK) {
        sim_fail(s,
                 "sooner: job %" PRIu64 " would have waited for %.3f ms at most on device %u, and "
                 "its way to device %u and back takes %.3f ms",
                 j->id, wait / 1e6, home->index, to->index, price / 1e6);
    }
}

/* ---- what comes back ------------------------------------------------------------------------- */

#define BACK_NS (100 * NS_PER_MS) /* until a job is back whose buffer finds no memory elsewhere */
#define AWAY    64u

/* Jobs that left their buffers by themselves, and are to come back if these cannot follow. */
static struct {
    uint64_t id, refused_ns;
    unsigned home;
} away[AWAY];
static unsigned leaves;
static uint64_t away_era;

static void note_away(const struct sim *s, const struct job *j, const struct device *home)
{
    if (away_era != s->era) {
        memset(away, 0, sizeof away);
        away_era = s->era;
    }
    away[leaves].id = j->id;
    away[leaves].refused_ns = 0;
    away[leaves].home = home->index;
    leaves = (leaves + 1) % AWAY;
}

void sooner_refused(const struct sim *s, uint64_t handle)
{
    for (unsigned i = 0; i < AWAY && away_era == s->era; i++) {
        const struct job *j = away[i].id != 0 ? job_find(s->f->jobs, away[i].id) : NULL;
        for (unsigned k = 0; j != NULL && k < j->work.use_count; k++) {
            const struct buffer_use *first = hazard_first(j->work.uses[k].buffer);
            bool its = j->work.uses[k].buffer->handle == handle && first != NULL && first->job == j;
            away[i].refused_ns = its ? s->now_ns : away[i].refused_ns;
        }
    }
}

static void check_back(struct sim *s, const struct job *j, unsigned home, uint64_t refused_ns)
{
    bool may = s->f->device[home] != NULL && device_takes(s->f->device[home]);
    if (j->state == JOB_FAILED && may && strstr(j->error.text, "cannot move from") != NULL) {
        sim_fail(s,
                 "sooner: job %" PRIu64 " left its buffers on device %u, and fails as they cannot "
                 "follow: %s",
                 j->id, home, j->error.text);
    }
    if (j->state == JOB_QUEUED && may && refused_ns != 0 && j->device->index != home &&
        s->now_ns > refused_ns + BACK_NS && s->now_ns > s->stalled_ns + BACK_NS) {
        sim_fail(s,
                 "sooner: job %" PRIu64 " waits for memory elsewhere, and its buffers are on "
                 "device %u",
                 j->id, home);
    }
}

void sooner_look(struct sim *s)
{
    static uint64_t looked_ns;
    away_era = s->now_ns < looked_ns || !stray_is(s) ? 0 : away_era; /* else of another world */
    looked_ns = s->now_ns;
    for (unsigned i = 0; i < AWAY && away_era == s->era; i++) {
        const struct job *j = away[i].id != 0 ? job_find(s->f->jobs, away[i].id) : NULL;
        if (j == NULL || j->state == JOB_DISPATCHED || j->state == JOB_RUNNING) {
            away[i].id = 0;
        } else if (!memory_failed()) {
            check_back(s, j, away[i].home, away[i].refused_ns);
        }
    }
}

void sooner_follow(const struct sim *s, const struct job *j)
{
    bool named = j->request == NULL || j->request->kind != MSG_KIND_SUBMIT ||
                 j->request->msg.submit.device != 0;
    bool one = !named && j->device != NULL && j->work.use_count > 0;
    const struct device *home = one ? s->f->device[j->work.uses[0].buffer->device] : NULL;
    for (unsigned i = 0; i < j->work.use_count && one; i++) {
        one = j->work.uses[i].buffer->device == home->index;
    }
    if (one && home != j->device && stray_is(s)) {
        note_away(s, j, home);
    }
}

void sooner_check(struct sim *s, const struct job *j, struct device *home)
{
    check_buffers(s, j, home);
    check_work(s, j);
    check_alone(s, j);
    if (told_on(s)) {
        told_stray(s, j, home);
    } else if (s->p.special == WORLD_DUE) {
        check_known(s, j, home);
        check_known(s, j, j->device);
        check_worth(s, j, home);
    }
}
