#include "tests/sim/front/rules/sim_told.h"

#include <inttypes.h>
#include <string.h>

#include "common/saturate.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/job.h"
#include "daemon/front/model/session.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/outlook.h"
#include "tests/sim/front/rules/sim_sooner.h"
#include "tests/sim/front/sim.h"

#define MOST     256u             /* jobs of a burst */
#define LOAD_NS  (50 * NS_PER_MS) /* that kernels take, as the front takes it */
#define SLACK_NS NS_PER_MS
#define EXACT    (1.0 / 64) /* of what such jobs take */
#define PART     32u /* of the wait: the front knows the times of jobs by what such jobs took */

struct told_job {
    struct sim_job *job;
    uint64_t id; /* in the front; 0: not known yet */
    uint64_t late_ns, early_ns;
    bool unknown;               /* it waits for a job of unknown time */
    bool loose;                 /* no rule holds for its begin */
    uint64_t first_ns, last_ns; /* the earliest and the latest begin that was told; 0: none */
    uint64_t looked_ns;         /* when something was first told */
    bool begun;
    uint64_t begun_ns, usual_ns; /* usual: of such jobs */
};

static struct {
    bool on, calm; /* calm: the front knows all jobs of the burst */
    unsigned slow[DEVICES_MAX];
    struct told_job job[MOST];
    unsigned count;
} told;

bool told_on(const struct sim *s)
{
    return s->settling && told.on;
}

void told_begin(bool on)
{
    memset(&told, 0, sizeof told);
    told.on = on;
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        told.slow[i] = 1;
    }
}

void told_slow(unsigned device, unsigned times)
{
    told.slow[device] = times;
}

uint64_t told_run_ns(const struct sim_worker *x, const struct sim_job *j)
{
    unsigned slow = x->number < DEVICES_MAX ? told.slow[x->number] : 1;
    return j->run_ns * slow;
}

void told_anew(void)
{
    told.count = 0;
    told.calm = false;
}

unsigned told_times(unsigned device)
{
    return told.slow[device];
}

static struct told_job *add(struct sim *s, struct sim_job *j)
{
    if (told.count == MOST) {
        sim_fail(s, "told: too many jobs");
    }
    told.job[told.count] = (struct told_job){.job = j, .usual_ns = j->run_ns};
    return &told.job[told.count++];
}

void told_follow(struct sim *s, struct sim_job *j, uint64_t late_ns, uint64_t early_ns)
{
    struct told_job *x = add(s, j);
    x->late_ns = late_ns + SLACK_NS;
    x->early_ns = early_ns + SLACK_NS;
}

void told_beside(struct sim *s, struct sim_job *j)
{
    add(s, j)->loose = true;
}

void told_usual(struct sim *s, struct sim_job *j, uint64_t usual_ns)
{
    struct told_job *x = add(s, j);
    x->loose = true;
    x->usual_ns = usual_ns;
}

void told_unknown(struct sim *s, struct sim_job *j)
{
    add(s, j)->unknown = true;
}

/* NULL: it is not of the burst. */
static struct told_job *entry_of(const struct sim *s, const struct sim_job *j)
{
    struct told_job *x = NULL;
    for (unsigned i = 0; told_on(s) && i < told.count && x == NULL; i++) {
        x = told.job[i].job == j ? &told.job[i] : NULL;
    }
    return x;
}

static const struct job *find(const struct sim *s, struct told_job *x)
{
    const struct sim_client *c = x->job->client;
    if (x->id != 0) {
        return job_find(s->f->jobs, x->id);
    }
    for (const struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        if (j->session != NULL && j->session->id == c->session && j->seq == x->job->request->seq) {
            x->id = j->id;
            return j;
        }
    }
    return NULL;
}

static void note(struct sim *s, struct told_job *x, uint64_t begin_ns)
{
    uint64_t ns = begin_ns > s->now_ns ? begin_ns : s->now_ns;
    x->looked_ns = x->first_ns == 0 ? s->now_ns : x->looked_ns;
    x->first_ns = x->first_ns == 0 || ns < x->first_ns ? ns : x->first_ns;
    x->last_ns = ns > x->last_ns ? ns : x->last_ns;
}

/* Nobody knows how long a job before it takes, which is not in flight. */
static void check_known(struct sim *s, const struct told_job *x, const struct job *j,
                        const struct prediction *p)
{
    if (x->unknown && p->sure && !hazard_clear(j)) {
        sim_fail(s,
                 "told: job %" PRIu64 " is sure to begin in %" PRIu64
                 " us, and nobody knows how long a job before it takes",
                 x->id, sat_sub(p->begin_ns, s->now_ns) / NS_PER_US);
    }
}

void told_refused(struct sim *s, const struct sim_job *j, const char *text)
{
    const struct told_job *x = entry_of(s, j);
    if (x != NULL && x->unknown && strstr(text, "as it waits for jobs") != NULL) {
        sim_fail(s,
                 "told: request %" PRIu64
                 " is refused, and nobody knows how long a job before it takes: %s",
                 j->request->seq, text);
    }
}

/* Is what the front expects of the job what such jobs take? Other jobs of its kind, before the
 * bursts, may have taken another time. */
static bool is_exact(const struct told_job *x, const struct job *j)
{
    struct estimate cost = predict_cost(j, j->device);
    double ns = (double)x->usual_ns * told.slow[device_shown(j->device)];
    return job_ended(j) || x->unknown ||
           (cost.sure && (double)cost.ns < ns * (1 + EXACT) && (double)cost.ns > ns * (1 - EXACT));
}

/* Else nothing is looked at. */
static bool all_exact(const struct sim *s)
{
    bool all = true;
    for (unsigned i = 0; i < told.count && all; i++) {
        const struct job *j = find(s, &told.job[i]);
        all = j == NULL || j->device == NULL || is_exact(&told.job[i], j);
    }
    return all;
}

/* Returns whether the front has the job, or has answered it. */
static bool look_at(struct sim *s, struct told_job *x)
{
    const struct job *j = x->begun ? NULL : find(s, x);
    bool waits = told.calm && j != NULL && !job_ended(j) && !x->loose;
    struct prediction p = waits ? outlook_of(s->f, j) : (struct prediction){0};
    check_known(s, x, j, &p);
    if (p.sure && p.begin_ns > 0) {
        note(s, x, p.begin_ns);
    }
    return j != NULL || x->id != 0 || x->job->request->answered;
}

void told_look(struct sim *s)
{
    bool all = told_on(s) && told.count > 0;
    for (unsigned i = 0; told_on(s) && s->f != NULL && i < told.count; i++) {
        all = look_at(s, &told.job[i]) && all;
    }
    if (all && !told.calm && !all_exact(s)) {
        told.count = 0;
    }
    told.calm = all;
}

void told_begins(struct sim *s, const struct sim_job *j)
{
    struct told_job *x = entry_of(s, j);
    if (x == NULL || x->begun) {
        return;
    }
    x->begun = true;
    x->begun_ns = s->now_ns;
    if (x->first_ns == 0) {
        return;
    }
    uint64_t part = sat_sub(s->now_ns, x->looked_ns) / PART;
    if (s->now_ns > x->first_ns + part + x->late_ns) {
        sim_fail(s,
                 "told: job %" PRIu64 " begins %" PRIu64 " us later than its client may have heard "
                 "%" PRIu64 " us ago",
                 x->id, (s->now_ns - x->first_ns) / NS_PER_US,
                 (s->now_ns - x->looked_ns) / NS_PER_US);
    }
    if (x->last_ns > s->now_ns + part + x->early_ns) {
        sim_fail(s, "told: job %" PRIu64 " begins %" PRIu64 " us earlier than the front said",
                 x->id, (x->last_ns - s->now_ns) / NS_PER_US);
    }
}

/* ---- jobs that take their buffers away ------------------------------------------------------- */

/* A job that is in flight alone takes longer than such jobs take, so that nobody knows when the
 * device is done. The front does not see it any more when it has sent another job behind it. */
static void check_late(struct sim *s, const struct job *but, const struct device *d,
                       const struct job *late)
{
    if (d->inflight_count == 1) {
        sim_fail(s,
                 "told: job %" PRIu64 " leaves its device for another or by its wait, and job "
                 "%" PRIu64 " on device %u takes longer than such jobs take",
                 but->id, late->id, device_shown(d));
    }
}

/* What the device has yet to do of a job of the burst. -1: not known. */
static double rest_of(struct sim *s, const struct job *but, const struct device *d,
                      const struct job *j)
{
    struct told_job *x = NULL;
    for (unsigned i = 0; i < told.count && x == NULL; i++) {
        x = find(s, &told.job[i]) == j ? &told.job[i] : NULL;
    }
    if (x == NULL || !is_exact(x, j) || j->tenant != but->tenant) {
        return -1;
    }
    double ns = (double)x->usual_ns * told.slow[device_shown(d)];
    double ran = x->begun ? (double)(s->now_ns - x->begun_ns) : 0;
    if (ran > ns + (double)SLACK_NS) {
        check_late(s, but, d, j);
        return -1;
    }
    return ns > ran ? ns - ran : 0;
}

/* Of all jobs. */
static double work_of(struct sim *s, const struct job *but, const struct device *d)
{
    double sum = 0;
    for (const struct job *j = s->f->jobs; j != NULL && sum >= 0; j = j->hh.next) {
        bool there = j != but && !job_ended(j) && j->device != NULL &&
                     device_shown(j->device) == device_shown(d);
        double ns = there ? rest_of(s, but, d, j) : 0;
        sum = ns < 0 ? -1 : sum + ns;
    }
    return sum;
}

static bool is_loaded(const struct sim_worker *x, const struct job *j)
{
    bool all = true;
    for (unsigned i = 0; i < j->work.module_count && all; i++) {
        bool has = false;
        for (unsigned k = 0; k < x->modules && !has; k++) {
            has = x->module[k] == j->work.modules[i]->id;
        }
        all = has;
    }
    return all;
}

/* The way there and back, and what it takes to load kernels. */
static double price_of(struct sim *s, const struct job *j, const struct sim_worker *x)
{
    double ns = x == NULL || is_loaded(x, j) ? 0 : (double)LOAD_NS;
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct sim_buffer *b = model_find(s, j->work.uses[i].buffer->handle);
        bool host = b != NULL && b->sealed;
        ns += 2.0 * (double)(STRAY_COMES_NS + (host ? 0 : STRAY_LEAVES_NS));
    }
    return ns;
}

static void check_room(struct sim *s, const struct job *j, const struct sim_worker *x)
{
    uint64_t used = 0;
    uint64_t bytes = 0;
    for (unsigned i = 0; x != NULL && i < x->buffers; i++) {
        used += x->buffer[i].size;
    }
    for (unsigned i = 0; i < j->work.use_count; i++) {
        bytes += j->work.uses[i].buffer->bytes;
    }
    if (bytes > sat_sub(s->p.memory_kib * 1024, used) / 2) {
        sim_fail(s,
                 "told: job %" PRIu64 " takes %" PRIu64 " bytes to device %u, where %" PRIu64
                 " are free",
                 j->id, bytes, device_shown(j->device), sat_sub(s->p.memory_kib * 1024, used));
    }
}

void told_stray(struct sim *s, const struct job *j, const struct device *home)
{
    const struct device *to = j->device;
    const struct sim_worker *x = worker_of_device(s, worker_slot_of(s, to));
    struct estimate here = predict_cost(j, home);
    struct estimate there = predict_cost(j, to);
    if (s->device[device_hardware(s, home)].drained) {
        sim_fail(s, "told: job %" PRIu64 " takes its buffers from device %u, which is drained",
                 j->id, device_shown(home));
    }
    double wait = work_of(s, j, home);
    double other = work_of(s, j, to);
    check_room(s, j, x);
    double price =
        price_of(s, j, x) + (here.sure && there.sure ? (double)there.ns - (double)here.ns : 0);
    if (wait >= 0 && other >= 0 && other + price > wait * (1 + 1.0 / PART) + (double)SLACK_NS) {
        sim_fail(s,
                 "told: job %" PRIu64 " would wait for %.3f ms on device %u, and for %.3f ms on "
                 "device %u, to which it goes for %.3f ms",
                 j->id, wait / 1e6, device_shown(home), other / 1e6, device_shown(to), price / 1e6);
    }
}
