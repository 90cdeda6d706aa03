/* An operator drains devices, and resumes them; and what must hold meanwhile. */
#include <inttypes.h>

#include "common/saturate.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/modules/building.h"
#include "tests/sim/front/sim.h"

#define RELEASE_NS (60 * NS_PER_S) /* until a device is released that nothing keeps */

static struct device *device_at(const struct sim *s, unsigned number)
{
    for (unsigned i = 0; s->f != NULL && i < s->f->device_count; i++) {
        if (s->f->device[i]->number == number) {
            return s->f->device[i];
        }
    }
    return NULL;
}

static bool may_ask(const struct sim *s)
{
    return s->f != NULL && s->accepts && s->f->life <= FRONT_DRAINING;
}

static unsigned jobs_of(const struct device *base)
{
    unsigned jobs = base->jobs;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        jobs += d->jobs;
    }
    return jobs;
}

/* ---- what a course does ---------------------------------------------------------------------- */

static void resume(struct sim *s, struct device *d)
{
    struct err e = ERR_INIT;
    memory_inside();
    (void)draining_end(s->f, d->index, &e);
    memory_outside();
    s->device[d->number].drained = false;
}

void drain_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    struct device *d = may_ask(s) ? device_at(s, e->actor) : NULL;
    struct err why = ERR_INIT;
    if (d == NULL) {
        return;
    }
    if (e->kind == COURSE_RESUME) {
        resume(s, d);
        return;
    }
    if (!s->device[d->number].drained) {
        s->device[d->number].drained_ns = s->now_ns;
        s->device[d->number].drain_jobs = jobs_of(d);
        s->device[d->number].drain_era = s->era;
    }
    s->device[d->number].drained = true;
    memory_inside();
    (void)draining_begin(s->f, d->index, chance_percent(r, 40), "uid:0", &why);
    memory_outside();
}

bool drain_any(const struct sim *s)
{
    bool any = false;
    for (unsigned i = 0; i < s->p.devices; i++) {
        any = any || s->device[i].drained;
    }
    return any;
}

void drain_settle(struct sim *s)
{
    for (unsigned i = 0; i < s->p.devices && may_ask(s); i++) {
        struct device *d = device_at(s, i);
        if (d != NULL && (s->device[i].drained || device_drains(d))) {
            resume(s, d);
        }
    }
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* Only the front's own first job of a device begins. */
void drain_check_job(struct sim *s, const struct device *d, uint64_t job)
{
    const struct device *base = d->base != NULL ? d->base : d;
    const struct job *j = job_find(s->f->jobs, job);
    bool holds = base->drain.state == DRAIN_HOLDS || base->drain.state == DRAIN_RELEASED;
    if (holds && j != NULL && j->origin != ORIGIN_PROBE) {
        sim_fail(s, "drain: job %" PRIu64 " is sent to device %u, which is drained", job,
                 base->index);
    }
}

void drain_check_start(struct sim *s, unsigned number)
{
    const struct device *d = device_at(s, number);
    bool holds = d != NULL && (d->drain.state == DRAIN_RELEASED || d->drain.state == DRAIN_HOLDS);
    if (holds) {
        sim_fail(s, "drain: device %u is drained, and gets a worker", number);
    }
}

bool drain_pauses(const struct sim *s)
{
    bool pauses = false;
    for (unsigned i = 0; s->f != NULL && i < s->f->device_count; i++) {
        const struct device *d = s->f->device[i];
        pauses = pauses || (device_drains(d) && d->state == DEVICE_RESTING);
    }
    return pauses;
}

/* No process has it open. */
static void check_released(struct sim *s, const struct device *base)
{
    for (unsigned slot = 0; slot < DEVICES_MAX + s->domains; slot++) {
        bool of_it =
            slot < DEVICES_MAX ? slot == base->number : worker_hardware(s, slot) == base->number;
        const struct sim_worker *x = of_it ? worker_of_device(s, slot) : NULL;
        if (x != NULL) {
            sim_fail(s, "drain: device %u is released, and worker %" PRIu64 " has it", base->number,
                     x->id);
        }
    }
    if (s->p.special == WORLD_HELD && s->monitor.id != 0) {
        sim_fail(s, "drain: device %u is released, and the monitor has it", base->number);
    }
}

/* What may keep a worker of the device. */
static bool is_busy(struct sim *s, const struct device *d, enum drain_state drain)
{
    const struct sim_worker *x = worker_of_device(s, worker_slot_of(s, d));
    bool hangs = x != NULL && (x->silent || x->cut || x->lied || x->killed);
    bool due = drain == DRAIN_FINISHES && d->jobs > 0;
    bool calm = d->state == DEVICE_READY || d->state == DEVICE_RESTING ||
                d->state == DEVICE_WAITING || d->state == DEVICE_ABSENT;
    return hangs || due || !calm || d->inflight_count > 0 || d->killed_ns != 0;
}

static void check_bounded(struct sim *s, const struct device *base)
{
    uint64_t *busy_ns = &s->device[base->number].busy_ns;
    bool busy = s->f->life > FRONT_DRAINING || memory_failed() || building_runs(s->f, base) ||
                base->drain.keeper == KEEPER_HOST || base->drain.keeper == KEEPER_COPIES ||
                is_busy(s, base, base->drain.state);
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        busy = busy || is_busy(s, d, base->drain.state);
    }
    *busy_ns = busy ? s->now_ns : *busy_ns;
    uint64_t since = s->device[base->number].drained_ns;
    since = since > *busy_ns ? since : *busy_ns;
    since = since > s->accepts_ns ? since : s->accepts_ns;
    since = since > s->stalled_ns ? since : s->stalled_ns;
    if (s->now_ns > since + RELEASE_NS) {
        sim_fail(s, "drain: device %u is not released, and nothing keeps it: %s", base->number,
                 base->reason);
    }
}

/* New jobs go elsewhere. Another front counts those that it has adopted. */
static void check_jobs(struct sim *s, const struct device *base)
{
    unsigned jobs = jobs_of(base);
    unsigned *most = &s->device[base->number].drain_jobs;
    if (s->device[base->number].drain_era != s->era) {
        s->device[base->number].drain_era = s->era;
        *most = jobs;
    }
    if (jobs > *most) {
        sim_fail(s, "drain: device %u is drained, and has %u jobs more", base->number,
                 jobs - *most);
    }
    *most = jobs;
}

void drain_check(struct sim *s)
{
    for (unsigned i = 0; i < s->f->device_count && s->accepts; i++) {
        const struct device *d = s->f->device[i];
        bool drained = s->device[d->number].drained;
        if (drained != device_drains(d) && !memory_failed()) {
            sim_fail(s, "drain: device %u is %sdrained, and the front %s", d->number,
                     drained ? "" : "not ", drained ? "has forgotten it" : "drains it");
        }
        if (!device_drains(d)) {
            continue;
        }
        check_jobs(s, d);
        if (d->drain.state == DRAIN_RELEASED) {
            check_released(s, d);
        } else {
            check_bounded(s, d);
        }
    }
}
