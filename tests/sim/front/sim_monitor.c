/* The monitor, which reports the health of devices by a page of shared memory; and what must hold
 * of devices whose driver asks for a recovery. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "daemon/front/devices/monitor.h"
#include "proto/health.h"
#include "tests/sim/front/rules/sim_energy.h"
#include "tests/sim/front/rules/sim_said.h"
#include "tests/sim/front/sim.h"

#define START_NS  (20 * NS_PER_MS)
#define REAP_NS   (3 * NS_PER_MS)
#define STUCK_NS  (10 * NS_PER_S) /* in the driver, after it was killed */
#define ROUND_NS  (2 * NS_PER_S)
#define FIRST_NS  (60 * NS_PER_S)  /* patience with its first round */
#define CALL_NS   (5 * NS_PER_S)   /* with later calls of the driver */
#define PAUSE_NS  (10 * NS_PER_S)  /* with the time between rounds */
#define UNSURE_NS (120 * NS_PER_S) /* a hold outlasts reports */
#define LATE_NS   (3 * NS_PER_S)   /* the front looks at the page once a second */

enum plight { PLIGHT_NONE, PLIGHT_CALL, PLIGHT_PAUSE, PLIGHT_END, PLIGHTS };

static void unmap(struct sim_monitor *m)
{
    if (m->page != NULL) {
        (void)munmap(m->page, sizeof *m->page);
    }
    m->page = NULL;
    m->id = 0;
    m->killed = m->hangs = false;
}

void monitor_drop(struct sim *s)
{
    unmap(&s->monitor);
}

/* ---- the process ----------------------------------------------------------------------------- */

static void on_ended(struct sim *s, const struct hap *h)
{
    struct sim_monitor *m = &s->monitor;
    if (m->id != h->a || h->b != s->era) {
        return; /* its front has ended */
    }
    sim_log(s, "the monitor ends");
    unmap(m);
    if (front_alive(s)) {
        memory_inside();
        (void)monitor_ended(s->f, h->a);
        memory_outside();
    }
}

static void report(struct sim *s)
{
    struct sim_monitor *m = &s->monitor;
    struct health_report *r = calloc(1, sizeof *r);
    r->taken_ns = s->now_ns;
    r->device_count = (uint32_t)s->p.devices;
    for (unsigned i = 0; i < s->p.devices; i++) {
        struct health_value *v = &r->device[i].value[HEALTH_recovery];
        (void)snprintf(r->device[i].uuid, sizeof r->device[i].uuid,
                       s->p.divided != 0 ? "MIG-%04u" : "GPU-%04u", i);
        energy_tell(s, i, &r->device[i]);
        v->state = HEALTH_KNOWN;
        v->value = s->device[i].told = s->device[i].wants;
        s->device[i].held = s->device[i].held && s->device[i].told != 0;
        bool asks = s->device[i].told != 0 || m->fresh;
        s->device[i].free_ns = asks ? s->now_ns : s->device[i].free_ns;
    }
    health_write(m->page, r);
    free(r);
    atomic_store(&m->page->asking_ns, 0);
    m->report_ns = s->now_ns;
    m->first_ns = m->fresh ? s->now_ns : m->first_ns;
    m->fresh = false;
}

static void on_round(struct sim *s, const struct hap *h)
{
    struct sim_monitor *m = &s->monitor;
    if (m->id != h->a || h->b != s->era || m->hangs) {
        return;
    }
    enum plight plight = (enum plight)m->plight;
    m->plight = PLIGHT_NONE;
    if (plight == PLIGHT_END) {
        on_ended(s, h);
        return;
    }
    if (plight == PLIGHT_NONE) {
        report(s);
        sim_at(s, s->now_ns + ROUND_NS, on_round, NULL, h->a, h->b);
        return;
    }
    sim_log(s, "the monitor hangs");
    m->hangs = true;
    m->hangs_ns = s->now_ns;
    if (plight == PLIGHT_CALL) {
        atomic_store(&m->page->asking_ns, s->now_ns);
    }
}

static void on_started(struct sim *s, const struct hap *h)
{
    struct sim_monitor *m = &s->monitor;
    if (m->id != h->a || h->b != s->era || !front_alive(s)) {
        return;
    }
    bool fails = m->unstarted > 0 && !s->settling;
    m->unstarted -= fails;
    if (fails) {
        unmap(m);
    }
    memory_inside();
    (void)monitor_started(s->f, h->a, fails ? ERR_IO : 0, fails ? "no process can be made" : "");
    memory_outside();
    if (!fails) {
        on_round(s, h);
    }
}

int monitor_asked(struct sim *s, uint64_t id, int page)
{
    struct sim_monitor *m = &s->monitor;
    if (m->id != 0) {
        sim_fail(s, "monitor: a second one starts");
    }
    void *data = mmap(NULL, sizeof *m->page, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
    if (data == MAP_FAILED) {
        sim_fail(s, "monitor: cannot map its page");
    }
    m->id = id;
    m->page = data;
    m->fresh = true;
    sim_at(s, s->now_ns + START_NS, on_started, NULL, id, s->era);
    return 0;
}

/* Of those that are stuck in the driver, half are so because the launcher took no order. */
int monitor_kill(struct sim *s, uint64_t id, struct err *e)
{
    struct sim_monitor *m = &s->monitor;
    if (id != m->id) {
        return 0;
    }
    if (!m->hangs && s->now_ns > s->stalled_ns + LATE_NS && !drain_pauses(s)) {
        sim_fail(s, "monitor: the front ends a monitor that reports");
    }
    m->killed = true;
    uint64_t r = chance_mix(id ^ s->course->seed);
    bool stuck = r % 4 == 0;
    sim_at(s, s->now_ns + (stuck ? STUCK_NS : REAP_NS), on_ended, NULL, id, s->era);
    if (r % 8 != 0) {
        return 0;
    }
    said_refused();
    return err_set(e, ERR_CLOSED, "the launcher takes no orders");
}

/* ---- what a course does ---------------------------------------------------------------------- */

void monitor_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    struct sim_monitor *m = &s->monitor;
    if (e->kind == COURSE_BLIND) {
        m->plight = PLIGHT_NONE + 1 + (unsigned)chance_below(r, PLIGHTS - 1);
        m->unstarted = chance_percent(r, 30) ? 1 + (unsigned)chance_below(r, 3) : 0;
        return;
    }
    uint32_t *wants = &s->device[e->actor].wants;
    *wants = *wants == 0 ? 1 + (uint32_t)chance_below(r, 4) : 0;
    s->device[e->actor].wants_ns = s->now_ns;
    sim_log(s, "the driver of device %u asks for recovery %" PRIu32, e->actor, *wants);
}

void monitor_settle(struct sim *s)
{
    for (unsigned i = 0; i < s->p.devices; i++) {
        s->device[i].wants = 0;
    }
    s->monitor.plight = PLIGHT_NONE;
}

/* ---- rules ----------------------------------------------------------------------------------- */

/* A monitor that hangs is ended. */
static void check_hang(struct sim *s)
{
    const struct sim_monitor *m = &s->monitor;
    if (m->id == 0 || !m->hangs || m->killed) {
        return;
    }
    bool call = atomic_load(&m->page->asking_ns) != 0;
    uint64_t patience = !call ? PAUSE_NS : m->fresh ? FIRST_NS : CALL_NS;
    uint64_t since = m->hangs_ns > s->stalled_ns ? m->hangs_ns : s->stalled_ns;
    if (s->now_ns > since + patience + LATE_NS) {
        sim_fail(s, "monitor: it hangs for %" PRIu64 " ms, and is not ended",
                 (s->now_ns - m->hangs_ns) / NS_PER_MS);
    }
}

/* The front learns of what the driver asks. */
static void check_known(struct sim *s, const struct device *d)
{
    const struct sim_monitor *m = &s->monitor;
    uint64_t since = s->device[device_hardware(s, d)].wants_ns;
    since = since > s->accepts_ns ? since : s->accepts_ns;
    since = since > s->stalled_ns ? since : s->stalled_ns;
    since = since > d->started_ns ? since : d->started_ns;
    since = since > m->first_ns ? since : m->first_ns;
    bool reports = m->id != 0 && !m->hangs && !m->killed && !m->fresh && s->accepts;
    bool knows = s->device[device_hardware(s, d)].wants == 0 || d->recovery != 0;
    if (reports && !knows && d->state == DEVICE_READY && m->report_ns > since &&
        s->now_ns > since + ROUND_NS + LATE_NS) {
        sim_fail(s, "held: the driver of device %u asks for a recovery, and it is not held",
                 device_hardware(s, d));
    }
}

bool monitor_holds(const struct sim *s, unsigned number)
{
    const struct sim_monitor *m = &s->monitor;
    return s->p.special == WORLD_HELD &&
           (m->id == 0 || m->fresh || s->device[number].told != 0 ||
            s->now_ns < s->device[number].free_ns + ROUND_NS + LATE_NS);
}

void monitor_check(struct sim *s)
{
    if (s->p.special != WORLD_HELD) {
        return;
    }
    check_hang(s);
    energy_check(s);
    bool sure = s->now_ns < s->monitor.report_ns + UNSURE_NS;
    for (unsigned i = 0; i < s->f->device_count; i++) {
        const struct device *d = s->f->device[i];
        bool knows = d->recovery != 0 && s->device[device_hardware(s, d)].told != 0;
        s->device[device_hardware(s, d)].held =
            sure && (s->device[device_hardware(s, d)].held || knows);
        check_known(s, d);
    }
}

/* A hold lasts until the driver says that it asks no more, or has said nothing for long. Only the
 * front's own first job of a device begins. */
void monitor_check_job(struct sim *s, unsigned number, uint64_t job)
{
    const struct job *j = job_find(s->f->jobs, job);
    if (s->device[number].held && j != NULL && j->origin != ORIGIN_PROBE) {
        sim_fail(s, "held: job %" PRIu64 " is sent to device %u, whose driver asks for a recovery",
                 job, number);
    }
}
