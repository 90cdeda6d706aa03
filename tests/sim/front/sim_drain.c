/* An operator drains devices, and resumes them; and what must hold meanwhile. */
#include <inttypes.h>

#include "common/saturate.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/modules/building.h"
#include "tests/sim/front/sim.h"
#include "tests/sim/front/sim_launches.h"

#define MUCH         12u /* requests of a client */
#define MUCH_CLIENTS 32u
#define RELEASE_NS   (60 * NS_PER_S) /* until a device is released that nothing keeps */

static struct device *device_at(const struct sim *s, unsigned number)
{
    for (unsigned i = 0; s->f != NULL && i < s->f->device_count; i++) {
        if (device_hardware(s, s->f->device[i]) == number) {
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
    s->device[device_hardware(s, d)].drained = false;
}

/* The front notes the devices that it knows then, for the next one. */
static void note_known(struct sim *s)
{
    for (unsigned i = 0; i < DEVICES_MAX; i++) {
        s->device[i].noted = false;
    }
    for (unsigned i = 0; i < s->f->device_count; i++) {
        const struct device *d = s->f->device[i];
        s->device[device_hardware(s, d)].noted = device_uuid(d) != NULL;
    }
}

static void begin(struct sim *s, struct device *d, bool finish)
{
    struct err why = ERR_INIT;
    if (!s->device[device_hardware(s, d)].drained) {
        s->device[device_hardware(s, d)].drained_ns = s->now_ns;
        s->device[device_hardware(s, d)].drain_jobs = jobs_of(d);
        s->device[device_hardware(s, d)].drain_era = s->era;
    }
    s->device[device_hardware(s, d)].drained = true;
    memory_inside();
    (void)draining_begin(s->f, d->index, finish, "uid:0", &why);
    memory_outside();
    note_known(s);
}

void drain_now(struct sim *s, struct device *d)
{
    if (may_ask(s)) {
        begin(s, d, false);
    }
}

static void on_drain(struct sim *s, const struct hap *h)
{
    struct device *d = may_ask(s) && !s->settling ? device_at(s, (unsigned)h->a) : NULL;
    if (d != NULL) {
        begin(s, d, h->b != 0);
    }
}

/* Some drains come when clients have just asked for much. */
static void ask_much(struct sim *s, struct chance *r)
{
    for (unsigned i = 0; i < s->clients && s->clients <= MUCH_CLIENTS; i++) {
        for (unsigned k = 0; k < MUCH; k++) {
            struct course_event e = {.kind = COURSE_ASK, .actor = i, .r = chance_next(r)};
            bool bare = s->p.special == WORLD_DOMAINS && chance_mix(e.r) % 2 == 0;
            e.kind = bare ? COURSE_BARE : e.kind; /* bound to no device */
            client_event(s, &e, r);
        }
    }
}

void drain_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    struct device *d = may_ask(s) ? device_at(s, e->actor) : NULL;
    if (d == NULL) {
        return;
    }
    if (e->kind == COURSE_RESUME) {
        resume(s, d);
        note_known(s);
        return;
    }
    bool finish = chance_percent(r, 40);
    if (chance_percent(r, 50)) {
        begin(s, d, finish);
        return;
    }
    ask_much(s, r);
    sim_at(s, s->now_ns + s->p.wire_us * NS_PER_US, on_drain, NULL, e->actor, finish);
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
        bool of_it = slot < DEVICES_MAX ? slot == device_hardware(s, base)
                                        : worker_hardware(s, slot) == device_hardware(s, base);
        const struct sim_worker *x = of_it ? worker_of_device(s, slot) : NULL;
        if (x != NULL) {
            sim_fail(s, "drain: device %u is released, and worker %" PRIu64 " has it",
                     device_hardware(s, base), x->id);
        }
    }
    launches_released(s, base->number);
    if (s->p.special == WORLD_HELD && s->monitor.id != 0) {
        sim_fail(s, "drain: device %u is released, and the monitor has it",
                 device_hardware(s, base));
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
    uint64_t *busy_ns = &s->device[device_hardware(s, base)].busy_ns;
    bool busy = s->f->life > FRONT_DRAINING || memory_failed() || building_runs(s->f, base) ||
                base->drain.keeper == KEEPER_HOST || base->drain.keeper == KEEPER_COPIES ||
                is_busy(s, base, base->drain.state);
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        busy = busy || is_busy(s, d, base->drain.state);
    }
    *busy_ns = busy ? s->now_ns : *busy_ns;
    uint64_t since = s->device[device_hardware(s, base)].drained_ns;
    since = since > *busy_ns ? since : *busy_ns;
    since = since > s->accepts_ns ? since : s->accepts_ns;
    since = since > s->stalled_ns ? since : s->stalled_ns;
    if (s->now_ns > since + RELEASE_NS) {
        sim_fail(s, "drain: device %u is not released, and nothing keeps it: %s",
                 device_hardware(s, base), base->reason);
    }
}

/* New jobs go elsewhere. Another front counts those that it has adopted. */
static void check_jobs(struct sim *s, const struct device *base)
{
    unsigned jobs = jobs_of(base);
    unsigned *most = &s->device[device_hardware(s, base)].drain_jobs;
    if (s->device[device_hardware(s, base)].drain_era != s->era) {
        s->device[device_hardware(s, base)].drain_era = s->era;
        *most = jobs;
    }
    if (jobs > *most) {
        sim_fail(s, "drain: device %u is drained, and has %u jobs more", device_hardware(s, base),
                 jobs - *most);
    }
    *most = jobs;
}

/* Nothing lists the devices beside a drained one: the next front has those that the former knew. */
static void check_siblings(struct sim *s)
{
    bool before = false; /* one was drained before this front began */
    for (unsigned i = 0; i < s->p.devices; i++) {
        before = before || (s->device[i].drained && s->device[i].drained_ns < s->opened_ns);
    }
    for (unsigned i = 0; before && s->p.divided != 0 && i < s->p.devices; i++) {
        if (s->device[i].noted && device_at(s, i) == NULL && !memory_failed() &&
            s->now_ns > s->accepts_ns + NS_PER_S) {
            sim_fail(s, "siblings: device %u was known, and the next front does not open it", i);
        }
    }
}

void drain_check(struct sim *s)
{
    if (s->accepts) {
        check_siblings(s);
    }
    for (unsigned i = 0; i < s->f->device_count && s->accepts; i++) {
        const struct device *d = s->f->device[i];
        bool drained = s->device[device_hardware(s, d)].drained;
        bool other = s->p.automatic != 0 && !d->proven; /* of the back end that is tried first */
        if (drained != device_drains(d) && !memory_failed() && !other) {
            sim_fail(s, "drain: device %u is %sdrained, and the front %s", device_hardware(s, d),
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
