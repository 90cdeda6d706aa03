#include "tests/sim/front/rules/sim_waits.h"

#include <inttypes.h>

#include "daemon/front/model/domain.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/sched/hazard.h"
#include "tests/sim/front/rules/sim_flight.h"
#include "tests/sim/front/sim.h"

#define OWED_NS    NS_PER_S
#define STAGING_NS (30 * NS_PER_MS)  /* until a job that found no memory is tried again */
#define START_NS   (300 * NS_PER_MS) /* until a worker is wanted that something waits for */
#define AWAIT_NS   (200 * NS_PER_MS) /* until a job goes on whose buffers have their content */

/* ---- a start --------------------------------------------------------------------------------- */

static struct {
    struct sim *s;
    void (*changed)(struct front *f, struct device *d); /* the front's own hook */
} start;

/* Also one whose worker has just ended: the next one follows at once. */
static bool is_opening(const struct device *d)
{
    bool on = d->state == DEVICE_STARTING || d->state == DEVICE_OPENED ||
              d->state == DEVICE_ADOPTING || d->state == DEVICE_PROBING ||
              d->state == DEVICE_REPLACED || d->state == DEVICE_WAITING;
    return on && d->absences == 0 && d->failures < 2;
}

/* A front is up when a device serves, or when none is left that may yet do so. */
static void check_up(struct sim *s, const struct front *f)
{
    bool serves = f->config.min_devices == 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        serves = serves || device_serves(f->device[i]);
    }
    for (unsigned i = 0; i < f->device_count && !serves; i++) {
        const struct device *d = f->device[i];
        if (is_opening(d) && !device_drains(d)) {
            sim_fail(s,
                     "up: the front says that it is up, none of its devices serves, and device "
                     "%u is being opened",
                     i);
        }
    }
}

/* It is judged when it says so: the worker that serves then may end in the same turn. */
static void on_device_changed(struct front *f, struct device *d)
{
    bool up = f->ready_reported;
    start.changed(f, d);
    if (!up && f->ready_reported) {
        check_up(start.s, f);
    }
}

void waits_follow(struct sim *s)
{
    start.s = s;
    start.changed = s->f->hooks.device_changed;
    s->f->hooks.device_changed = on_device_changed;
}

/* ---- jobs and clients ------------------------------------------------------------------------ */

/* Jobs do not wait for a device when none can come any more. */
static void check_hope(struct sim *s)
{
    struct front *f = s->f;
    bool hope = f->device_count == 0 || !f->listed;
    for (unsigned i = 0; i < f->device_count && !hope; i++) {
        hope = device_hopeful(f->device[i]);
    }
    for (const struct job *j = f->jobs; j != NULL && !hope; j = j->hh.next) {
        if (j->state == JOB_QUEUED && j->origin != ORIGIN_PROBE && j->device == NULL) {
            sim_fail(s, "hope: no device can come any more, and job %" PRIu64 " waits for one",
                     j->id);
        }
    }
}

/* A client that asks for results and notices gets them when they are there. */
static void check_owed(struct sim *s)
{
    bool owed = false;
    for (const struct session *x = s->f->sessions; x != NULL && !owed; x = x->hh.next) {
        owed = x->events.wait != NULL && (x->events.message.data != NULL ||
                                          x->events.results != NULL || x->events.notices != NULL);
    }
    s->owed_ns = !owed ? 0 : s->owed_ns == 0 ? s->now_ns : s->owed_ns;
    if (owed && s->now_ns - s->owed_ns > OWED_NS && s->now_ns - s->stalled_ns > OWED_NS) {
        sim_fail(s, "owed: a client asks for results, and those that are there are not sent");
    }
}

/* ---- content --------------------------------------------------------------------------------- */

/* Some may have to move to the job's device, or are wanted on another one first (sim_explain.c). */
static bool is_there(const struct job *j)
{
    bool there = true;
    for (unsigned i = 0; i < j->work.use_count; i++) {
        const struct buffer *b = j->work.uses[i].buffer;
        bool here = j->device == NULL || b->device == j->device->index;
        const struct buffer_use *first = hazard_first(b);
        here = here && (first == NULL || first->job->device == j->device);
        there = there && here && b->move == MOVE_NONE && buffer_state(b) == BUFFER_LIVE;
    }
    return there;
}

/* Jobs that wait for the content of buffers go on when it is there. */
static void check_content(struct sim *s)
{
    const struct job *late = NULL;
    for (const struct job *j = s->f->awaiting; j != NULL; j = j->await.next) {
        late = j->wait == WAIT_RESTORE && is_there(j) ? j : late;
    }
    s->awaited_ns = late == NULL ? 0 : s->awaited_ns == 0 ? s->now_ns : s->awaited_ns;
    if (late != NULL && s->now_ns > s->awaited_ns + AWAIT_NS &&
        s->now_ns > s->stalled_ns + AWAIT_NS && !memory_failed()) {
        sim_fail(s, "content: job %" PRIu64 " waits for the content of buffers, which is there",
                 late->id);
    }
}

/* ---- creations ------------------------------------------------------------------------------- */

static struct {
    uint64_t buffer; /* that waits; 0: none */
    uint64_t since_ns, era;
} unasked;

/* Its worker takes what comes, and has yet to hear of the buffer. */
static bool is_unasked(struct sim *s, const struct buffer *b)
{
    const struct device *d = s->f->device[b->device];
    bool pressed = s->device[worker_slot_of(s, d)].pressed_until_ns > s->now_ns;
    return b->state == BUFFER_CREATING && !b->asked && device_takes(d) && !pressed &&
           (b->flags & BUFFER_FLAG_VARIABLE) == 0;
}

static void check_creations(struct sim *s)
{
    const struct buffer *first = NULL;
    bool same = false;
    uint32_t cursor = 0;
    for (const struct buffer *b;
         !same && (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL;) {
        bool waits = is_unasked(s, b);
        same = waits && b->handle == unasked.buffer && unasked.era == s->era;
        first = waits && (first == NULL || same) ? b : first;
    }
    if (!same) {
        unasked.buffer = first != NULL ? first->handle : 0;
        unasked.since_ns = s->now_ns;
        unasked.era = s->era;
    }
    if (same && s->now_ns > unasked.since_ns + OWED_NS && s->now_ns > s->stalled_ns + OWED_NS &&
        !memory_failed()) {
        sim_fail(s, "creations: device %u takes what comes, and is not asked for buffer %#" PRIx64,
                 first->device, first->handle);
    }
}

/* ---- a worker that nobody starts ------------------------------------------------------------- */

static struct {
    const void *what; /* a device or a job; NULL: none */
    uint64_t since_ns, era;
} forgotten;

/* A seal of one of its buffers waits for nothing but its worker. */
static bool has_seal(const struct sim *s, const struct device *d)
{
    uint32_t cursor = 0;
    const struct buffer *b;
    bool any = false;
    while (!any && (b = idmap_next(&s->f->buffers, &cursor, NULL)) != NULL) {
        any = b->device == d->index && b->seal_wanted && b->writers == 0 && b->move == MOVE_NONE;
    }
    return any;
}

/* Something waits for its worker, and none is to come. A device that was drained when the front
 * began is "starting" until it rests, or is resumed. */
static bool is_forgotten(const struct sim *s, const struct device *d)
{
    if (device_drains(d) || d->worker != 0) {
        return false;
    }
    if (d->owner == NULL) {
        return d->state == DEVICE_STARTING && s->f->listed;
    }
    return d->state == DEVICE_RESTING && !d->wanted && (d->jobs > 0 || has_seal(s, d));
}

/* The job may run on any device, and its tenant, which is apart, has a worker on none. */
static bool is_homeless(const struct sim *s, const struct job *j)
{
    bool waits = j->state == JOB_QUEUED && j->origin != ORIGIN_PROBE && j->device == NULL;
    bool hope = false;
    for (unsigned i = 0; waits && j->tenant->apart && i < s->f->device_count; i++) {
        struct device *base = s->f->device[i];
        const struct device *d = domain_of(j->tenant, base);
        hope = hope || (device_serves(base) && !device_drains(base));
        waits = d == NULL || device_drains(d) || (d->state == DEVICE_RESTING && !d->wanted);
    }
    return waits && hope;
}

/* The first in the list that waits so, or the one that did so at the last look. */
static const void *find_forgotten(const struct sim *s, const void *last)
{
    const void *first = NULL;
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        first = is_forgotten(s, d) && (first == NULL || d == last) ? d : first;
    }
    for (const struct job *j = s->f->jobs; j != NULL; j = j->hh.next) {
        first = is_homeless(s, j) && (first == NULL || j == last) ? j : first;
    }
    return first;
}

static void check_starts(struct sim *s)
{
    const void *what = find_forgotten(s, forgotten.what);
    if (what == NULL || what != forgotten.what || forgotten.era != s->era) {
        forgotten.what = what;
        forgotten.since_ns = s->now_ns;
        forgotten.era = s->era;
        return;
    }
    if (s->now_ns > forgotten.since_ns + START_NS && s->now_ns > s->stalled_ns + START_NS &&
        s->f->life <= FRONT_DRAINING && !memory_failed()) {
        sim_fail(s, "starts: jobs or requests wait for a worker, and nobody starts one");
    }
}

void waits_check_all(struct sim *s)
{
    check_creations(s);
    check_starts(s);
}

/* ---- workers --------------------------------------------------------------------------------- */

bool waits_missed(struct sim *s, struct sim_worker *x, const struct schema *schema)
{
    bool ends = schema == &schema_msg_f_retire || schema == &schema_msg_f_buffer_free ||
                schema == &schema_msg_f_module_unload || schema == &schema_msg_f_arena_free;
    bool full = s->course->seed % 4 == 1 && s->device[x->number].pressed_until_ns > s->now_ns &&
                chance_mix(s->now_ns ^ x->id) % 8 == 0;
    if (!ends || !full || s->settling || x->state != WORKER_RUNS) {
        return false;
    }
    sim_log(s, "    worker %" PRIu64 " misses %s", x->id, schema->name);
    x->missed_era = s->era;
    return true;
}

/* A worker that missed such a frame is ended, as it keeps what nobody knows. No file but that of a
 * thread of a worker is kept of it; those of the simulation send others. */
static void check_workers(struct sim *s)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(s->f, &at)) != NULL;) {
        const struct sim_worker *x =
            d->worker != 0 ? worker_of_device(s, worker_slot_of(s, d)) : NULL;
        if (d->beater != NULL) {
            sim_fail(s, "beater: the front reads a file of worker %" PRIu64 " that is no thread's",
                     d->worker);
        }
        if (x != NULL && x->state == WORKER_RUNS && x->missed_era == s->era && !x->killed) {
            sim_fail(s,
                     "missed: worker %" PRIu64 " did not get what ends something in it, and goes "
                     "on",
                     x->id);
        }
    }
}

/* ---- staging memory -------------------------------------------------------------------------- */

/* Nothing of the device is in use: the end of no job will be the occasion for the next try. */
static bool is_unused(const struct device *base)
{
    bool unused = true;
    for (const struct device *d = base; d != NULL && unused;
         d = d == base ? base->domains : d->domain_next) {
        unused = d->inflight_count == 0 && d->input_range.used == 0 && d->output_range.used == 0;
    }
    return unused;
}

static bool may_have(const struct job *j, struct device *base)
{
    const struct device *d = j->device == NULL                ? domain_of(j->tenant, base)
                             : device_base(j->device) == base ? j->device
                                                              : NULL;
    return d != NULL && device_takes(d) && d->link != NULL && !d->exclusive;
}

/* One that waits for staging memory, although all is free. */
static const struct job *find_staging(const struct sim *s)
{
    const struct job *late = NULL;
    for (const struct job *j = s->f->jobs; j != NULL && late == NULL; j = j->hh.next) {
        bool waits = j->state == JOB_QUEUED && j->wait == WAIT_STAGING && j->tenant != NULL;
        for (unsigned i = 0; i < s->f->device_count && waits; i++) {
            struct device *base = s->f->device[i];
            late = may_have(j, base) && is_unused(base) ? j : late;
        }
    }
    return late;
}

/* A job does not wait for staging memory that is there, though there was no memory for its entry.
 */
static void check_staging(struct sim *s)
{
    const struct job *late = find_staging(s);
    unsigned fails = memory_fails_so_far();
    bool anew = late == NULL || s->staging.job != late->id || s->staging.fails != fails;
    s->staging.since_ns = anew ? s->now_ns : s->staging.since_ns;
    s->staging.job = late != NULL ? late->id : 0;
    s->staging.fails = fails;
    if (!anew && s->now_ns > s->staging.since_ns + STAGING_NS &&
        s->now_ns > s->stalled_ns + STAGING_NS) {
        sim_fail(s, "staging: job %" PRIu64 " waits for staging memory, and all of it is free",
                 late->id);
    }
}

void waits_check(struct sim *s)
{
    if (memory_failed()) {
        check_staging(s);
    }
    check_hope(s);
    check_owed(s);
    check_content(s);
    flight_check(s);
    check_workers(s);
}
