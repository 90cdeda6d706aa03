#include "daemon/front/devices/draining.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/descriptors.h"
#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/devices/drained.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/departing.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/evacuate.h"
#include "daemon/front/workers/keep.h"
#include "daemon/front/workers/places.h"
#include "daemon/front/workers/rest.h"
#include "daemon/front/workers/worker.h"

#define POLL_NS        (100 * NS_PER_MS) /* until jobs, workers and compilers are looked at again */
#define LOOK_NS        NS_PER_S          /* the same, for buffers, all of which are visited */
#define AGAIN_NS       (10 * NS_PER_S)   /* after a worker could not move its buffers */
#define BUFFERS_A_UNIT 16u

/* ---- words ----------------------------------------------------------------------------------- */

static void say_released(struct device *d)
{
    char what[96];
    (void)snprintf(what, sizeof what, "released: gpuctl resume --device %u opens it again",
                   d->index);
    drained_say(d, what);
}

/* ---- workers of a device --------------------------------------------------------------------- */

/* The shared one, then the domains. d NULL: the first; returns NULL after the last. */
static struct device *next_worker(struct device *base, const struct device *d)
{
    return d == NULL ? base : d == base ? base->domains : d->domain_next;
}

static unsigned unfinished(struct device *base)
{
    unsigned count = 0;
    for (struct device *d = base; d != NULL; d = next_worker(base, d)) {
        count += d->jobs;
    }
    return count;
}

/* May the worker rest, but for its buffers? A resting worker may. */
static bool is_calm(const struct device *d, enum drain_state drain)
{
    bool due = drain == DRAIN_FINISHES && d->jobs > 0;
    if (due || d->losing) {
        return false;
    }
    switch (d->state) {
    case DEVICE_READY:
        return d->killed_ns == 0 && d->link != NULL && d->inflight_count == 0 && d->restores == 0 &&
               !arrivals_any(d);
    case DEVICE_STARTING:
    case DEVICE_WAITING:
    case DEVICE_ABSENT:
        return d->worker == 0;
    default:
        return d->state == DEVICE_RESTING;
    }
}

/* The first worker that may not rest; NULL: all may. */
static const struct device *busy_of(struct device *base)
{
    const struct device *d = base;
    while (d != NULL && is_calm(d, base->drain.state)) {
        d = next_worker(base, d);
    }
    return d;
}

static const char *busy_with(const struct device *d)
{
    switch (d->state) {
    case DEVICE_READY:
        return "busy with its buffers";
    case DEVICE_STUCK:
        return "stuck: the driver hangs";
    case DEVICE_WAITING:
        return "to start again";
    default:
        return "starting";
    }
}

/* What the device waits for before its buffers can move. */
static void say_busy(struct device *base, const struct device *busy)
{
    char what[sizeof base->reason];
    unsigned flying = device_flying(base);
    unsigned jobs = base->drain.state == DRAIN_FINISHES ? unfinished(base) : 0;
    if (jobs > 0 && base->recovery != 0) {
        (void)snprintf(what, sizeof what,
                       "%u jobs wait, and its driver asks for a recovery: gpuctl drain --device %u "
                       "lets them wait",
                       jobs, base->index);
    } else if (jobs > 0) {
        (void)snprintf(what, sizeof what, "%u job%s first", jobs, jobs == 1 ? " runs" : "s run");
    } else if (flying > 0) {
        (void)snprintf(what, sizeof what, "%u job%s to end", flying,
                       flying == 1 ? " in flight has" : "s in flight have");
    } else {
        (void)snprintf(what, sizeof what, "%s is %s",
                       busy == base ? "its worker" : "a tenant's worker", busy_with(busy));
    }
    drained_say(base, what);
}

/* ---- buffers --------------------------------------------------------------------------------- */

/* What keeps the device: counts of buffers, and the first one of the kind that is named. */
struct keepers {
    unsigned exported, variables, asked;
    const struct buffer *first;
};

/* What all its workers have that do not rest yet. */
static void survey(struct front *f, const struct device *base, struct keepers *ret_keepers,
                   struct evacuation_load *ret_load)
{
    uint32_t cursor = 0;
    unsigned count = 0;
    struct keepers k = {.exported = 0};
    struct evacuation_load load = {.bytes = 0};
    for (const struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL; count++) {
        struct device *d = f->device[b->device];
        bool to_come = b->state == BUFFER_CREATING && d->worker == 0; /* refuse_new */
        if (device_base(d) != base || d->state == DEVICE_RESTING || to_come ||
            evacuate_count(b, &load)) {
            continue;
        }
        bool variable = (b->flags & BUFFER_FLAG_VARIABLE) != 0;
        bool exported = !variable && (b->flags & BUFFER_FLAG_EXPORT) != 0;
        bool first = exported ? k.exported == 0 : variable && k.exported + k.variables == 0;
        k.first = first || k.first == NULL ? b : k.first;
        k.exported += exported;
        k.variables += variable;
        k.asked += !variable && !exported;
    }
    turn_count(f, count / BUFFERS_A_UNIT);
    *ret_keepers = k;
    *ret_load = load;
}

static enum keeper keeper_of(const struct front *f, const struct keepers *k,
                             const struct evacuation_load *load)
{
    uint64_t copies = (uint64_t)load->buffers + load->copies;
    return k->exported > 0                      ? KEEPER_EXPORT
           : k->variables > 0                   ? KEEPER_VARIABLE
           : k->asked > 0                       ? KEEPER_REQUEST
           : load->bytes > evacuate_room(f)     ? KEEPER_HOST
           : copies > keep_room(f)              ? KEEPER_COPIES
           : copies > 0 && !descriptors_spare() ? KEEPER_COPIES
                                                : KEEPER_NONE;
}

/* Says what keeps the device, to the log once. */
static void say_kept(struct front *f, struct device *base, enum keeper keeper,
                     const struct keepers *k, const struct evacuation_load *load)
{
    char what[sizeof base->reason] = "";
    const char *owner = k->first != NULL ? k->first->tenant->name : "";
    switch (keeper) {
    case KEEPER_EXPORT:
        (void)snprintf(what, sizeof what,
                       "kept by %u exported buffer%s, the first of tenant %s: other processes may "
                       "have them mapped, so they have to be freed",
                       k->exported, k->exported == 1 ? "" : "s", owner);
        break;
    case KEEPER_VARIABLE:
        (void)snprintf(
            what, sizeof what,
            "kept by %u variable%s of modules, the first of tenant %s: to be freed by its "
            "client",
            k->variables, k->variables == 1 ? "" : "s", owner);
        break;
    case KEEPER_HOST:
        (void)snprintf(what, sizeof what,
                       "kept by buffers of %" PRIu64
                       " bytes, [domains] host_memory_max has %" PRIu64
                       " left: raise it, then gpuctl reload, or have some freed",
                       load->bytes, evacuate_room(f));
        break;
    case KEEPER_COPIES:
        (void)snprintf(
            what, sizeof what,
            "kept by %u buffers: the launcher keeps copies of %" PRIu64
            " more, as descriptors allow: raise LimitNOFILE= of both units, or have some "
            "freed",
            load->buffers + load->copies, keep_room(f));
        break;
    default:
        (void)snprintf(what, sizeof what, "%u buffers are being made, sealed or moved", k->asked);
    }
    bool news = base->drain.keeper != keeper && keeper != KEEPER_REQUEST;
    base->drain.keeper = keeper;
    drained_say(base, what);
    if (news) {
        log_about(LOG_DRAIN_KEPT, about_device(base), "device %u is not released: %s", base->index,
                  what);
    }
}

/* Its next worker would be asked for them when the device is resumed. */
static void refuse_new(struct front *f, const struct device *base)
{
    uint32_t cursor = 0;
    struct err e = ERR_INIT;
    (void)device_refuse_drained(base, &e);
    for (struct buffer *b; (b = idmap_next(&f->buffers, &cursor, NULL)) != NULL;) {
        const struct device *d = f->device[b->device];
        bool to_come = b->state == BUFFER_CREATING && (d->worker == 0 || !b->asked);
        if (to_come && (d == base || d->base == base)) {
            buffer_create_failed(f, b, &e);
        }
    }
}

/* ---- the way to the release ------------------------------------------------------------------ */

/* A domain for whose worker jobs or requests wait wants one back when the device is resumed. */
static void rest(struct front *f, struct device *d, const struct survey *s)
{
    rest_begin(f, d, "its device is drained");
    d->wanted = d->owner != NULL && survey_wants(f, s, d);
}

static void move(struct front *f, struct device *base, uint64_t now)
{
    struct keepers k;
    struct evacuation_load load;
    survey(f, base, &k, &load);
    enum keeper keeper = keeper_of(f, &k, &load);
    if (keeper != KEEPER_NONE) {
        base->drain.look_ns = ns_add(now, LOOK_NS);
        say_kept(f, base, keeper, &k, &load);
        return;
    }
    base->drain.keeper = KEEPER_NONE;
    base->drain.vacated = false;
    base->drain.look_ns = ns_add(now, AGAIN_NS);
    refuse_new(f, base);
    struct survey of_all;
    survey_make(f, &of_all);
    for (struct device *d = base; d != NULL; d = next_worker(base, d)) {
        if (d->state != DEVICE_RESTING) {
            rest(f, d, &of_all);
        }
    }
    drained_say(base, "its buffers go to the host");
}

static bool all_rest(struct device *base)
{
    bool all = true;
    for (const struct device *d = base; d != NULL && all; d = next_worker(base, d)) {
        all = d->state == DEVICE_RESTING;
    }
    return all;
}

/* The launcher ends processes that wait to replace a worker: they have loaded the driver. */
static bool vacated(struct front *f, struct device *base, uint64_t now)
{
    struct err e = ERR_INIT;
    if (!base->drain.vacated && now >= base->drain.ask_ns) {
        base->drain.ask_ns = ns_add(now, LOOK_NS);
        (void)worker_vacate(f, base, &e); /* it is asked again */
    }
    return base->drain.vacated;
}

/* What still has the device open, or its driver loaded; NULL: nothing. */
static const char *holder_of(struct front *f, struct device *base, uint64_t now)
{
    for (const struct device *d = base; d != NULL; d = next_worker(base, d)) {
        if (d->evacuation.state != EVACUATION_NONE) {
            return "its buffers go to the host";
        }
        if (d->worker != 0 || d->losing || departing_has(f, d)) {
            return "a worker has yet to end";
        }
    }
    return !vacated(f, base, now)     ? "gpud-prepared has yet to end"
           : !monitor_leaves(f, base) ? "gpud-monitor has yet to end"
           : building_runs(f, base)   ? "gpud-compile has yet to end"
                                      : NULL;
}

static void release(struct front *f, struct device *d)
{
    device_set_drain(d, DRAIN_RELEASED);
    d->pool = (struct msg_w_pool){.size = 0};
    say_released(d);
    log_about(LOG_DEVICE_DRAIN, about_device(d),
              "device %u is released: no process of gpud has it open, until gpuctl resume --device "
              "%u; %u jobs wait for it",
              d->index, d->index, unfinished(d));
    f->hooks.device_changed(f, d);
}

static void go_on(struct front *f, struct device *d, uint64_t now)
{
    const char *holder = NULL;
    if (rest_evacuates(d)) { /* domains_watch does so for domains */
        rest_go_on(f, d, now);
    }
    if (all_rest(d)) {
        holder = holder_of(f, d, now);
        if (holder == NULL) {
            release(f, d);
            return;
        }
        drained_say(d, holder);
    } else if (busy_of(d) != NULL) {
        say_busy(d, busy_of(d));
    } else if (now >= d->drain.look_ns) {
        move(f, d, now);
    }
    wake_at(f, ns_add(now, POLL_NS));
}

/* ---- begin and end --------------------------------------------------------------------------- */

/* Jobs of tenants that are apart, which name no device, run where the tenant has a worker: it gets
 * one elsewhere. Without room for that they wait. */
static void move_unbound(struct front *f, const struct device *base)
{
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        struct err e = ERR_INIT;
        if (domain_unbound(f, d->owner) > 0) {
            (void)domain_obtain_any(f, d->owner, &e);
        }
    }
}

static int find(struct front *f, uint64_t number, struct device **ret_device, struct err *e)
{
    if (number >= f->device_count) {
        return err_set(e, ERR_NOT_FOUND, "there is no device %" PRIu64 ": see gpuctl devices",
                       number);
    }
    *ret_device = f->device[number];
    return 0;
}

int draining_begin(struct front *f, uint64_t number, bool finish, const char *by, struct err *e)
{
    enum drain_state wish = finish ? DRAIN_FINISHES : DRAIN_HOLDS;
    struct device *d = NULL;
    int rc = find(f, number, &d, e);
    if (rc != 0 || d->drain.state == DRAIN_RELEASED || d->drain.state == wish) {
        return rc;
    }
    if (d->drain.state == DRAIN_NONE) {
        drained_by(d, by);
        d->drain.look_ns = 0;
        d->drain.keeper = KEEPER_NONE;
        d->drain.vacated = false;
        d->drain.ask_ns = 0;
    }
    device_set_drain(d, wish);
    drained_note(f, d);
    move_unbound(f, d);
    drained_say(d, "it takes no new jobs");
    log_about(LOG_DEVICE_DRAIN, about_device(d),
              "device %u is drained: it takes no new jobs, and %u jobs that are bound to it %s",
              d->index, unfinished(d), finish ? "run first" : "wait, but for those in flight");
    f->hooks.device_changed(f, d);
    f->hooks.kick(f);
    wake_at(f, front_now(f));
    return 0;
}

/* It starts again when its last worker has ended. A device that was drained when this front began
 * may have yet to rest: no worker of it was started (discover.c). */
static void resume(struct front *f, struct device *d)
{
    bool closed = d->state == DEVICE_RESTING || (d->state == DEVICE_STARTING && f->listed);
    if (closed && d->worker == 0 && !device_drains(d)) {
        d->restart_ns = front_now(f);
        d->absences = d->failures = 0;
        device_set_state(d, DEVICE_WAITING, "it is opened again");
        wake_at(f, d->restart_ns);
    }
}

int draining_end(struct front *f, uint64_t number, struct err *e)
{
    struct device *base = NULL;
    int rc = find(f, number, &base, e);
    if (rc != 0 || base->drain.state == DRAIN_NONE) {
        return rc;
    }
    device_set_drain(base, DRAIN_NONE);
    drained_forget(f, base);
    log_about(LOG_DEVICE_DRAIN, about_device(base), "device %u is not drained any more",
              base->index);
    if (base->recovery_ns != 0) {         /* else the hold file is read when it serves */
        base->recovery_ns = front_now(f); /* no monitor has asked the driver meanwhile */
    }
    base->line.joined = false; /* jobs for any device may run here again */
    base->reason[0] = '\0';
    for (struct device *d = base; d != NULL; d = next_worker(base, d)) {
        if (rest_evacuates(d)) {
            rest_stay(f, d);
        }
    }
    resume(f, base);
    f->hooks.device_changed(f, base);
    f->hooks.kick(f);
    wake_at(f, front_now(f));
    return 0;
}

/* ---- time ------------------------------------------------------------------------------------ */

/* The next back end took the device's place, or the device has told its UUID. */
static bool is_new(const struct device *d)
{
    return d->drain.state == DRAIN_NONE &&
           (d->state == DEVICE_READY || (d->state == DEVICE_WAITING && d->worker == 0));
}

void draining_watch(struct front *f, uint64_t now)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *d = f->device[i];
        if (is_new(d) && drained_recall(f, d)) {
            f->hooks.device_changed(f, d);
        }
        if (d->drain.state == DRAIN_NONE) {
            resume(f, d);
        } else if (d->drain.state != DRAIN_RELEASED) {
            go_on(f, d, now);
        }
    }
}

void draining_vacated(struct front *f, uint64_t id, uint64_t left)
{
    if (id < f->device_count) {
        struct device *d = f->device[id];
        d->drain.vacated = left == 0;
        d->drain.ask_ns = ns_add(front_now(f), POLL_NS);
        wake_at(f, front_now(f));
    }
}

unsigned draining_count(const struct front *f)
{
    unsigned count = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        count += device_drains(f->device[i]);
    }
    return count;
}
