#include "daemon/front/model/device.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/saturate.h"
#include "common/steps.h"

#define SPILL_MIN       (UINT64_C(1) << 20) /* bytes */
#define PAUSE_NS        (100 * NS_PER_MS)
#define PAUSE_UP_MAX_NS (500 * NS_PER_MS)
#define PATIENCE_MAX_NS (120 * NS_PER_S)
#define PAUSE_MAX_NS    (30 * NS_PER_S)

uint64_t device_patience_ns(uint64_t asked_ns)
{
    return asked_ns < PATIENCE_MAX_NS ? asked_ns : PATIENCE_MAX_NS;
}

/* States to which the end of a worker may lead. */
#define STEPS_OF_END (STEP_TO(DEVICE_WAITING) | STEP_TO(DEVICE_STUCK))

#define REST STEP_TO(DEVICE_RESTING)

static const unsigned steps[DEVICE_STATES] = {
    [DEVICE_STARTING] = STEP_TO(DEVICE_STARTING) | STEP_TO(DEVICE_ADOPTING) |
                        STEP_TO(DEVICE_OPENED) | STEP_TO(DEVICE_ABSENT) | STEP_TO(DEVICE_REPLACED) |
                        STEPS_OF_END | REST,
    [DEVICE_OPENED] = STEP_TO(DEVICE_PROBING) | STEP_TO(DEVICE_ABSENT) | STEPS_OF_END,
    [DEVICE_ADOPTING] = STEP_TO(DEVICE_OPENED) | STEPS_OF_END | REST,
    [DEVICE_PROBING] = STEP_TO(DEVICE_PROBING) | STEP_TO(DEVICE_READY) | STEP_TO(DEVICE_ABSENT) |
                       STEP_TO(DEVICE_REPLACED) | STEPS_OF_END,
    [DEVICE_READY] = STEPS_OF_END | REST,
    [DEVICE_WAITING] =
        STEP_TO(DEVICE_STARTING) | STEP_TO(DEVICE_ADOPTING) | STEP_TO(DEVICE_WAITING) | REST,
    [DEVICE_REPLACED] = STEPS_OF_END,
    [DEVICE_ABSENT] = STEP_TO(DEVICE_STARTING) | STEP_TO(DEVICE_ADOPTING) | STEP_TO(DEVICE_ABSENT) |
                      STEPS_OF_END | REST,
    [DEVICE_STUCK] = STEP_TO(DEVICE_WAITING),
    [DEVICE_RESTING] = STEP_TO(DEVICE_STARTING) | STEP_TO(DEVICE_ADOPTING) | STEP_TO(DEVICE_STUCK) |
                       STEP_TO(DEVICE_READY) | STEP_TO(DEVICE_WAITING) | REST,
};

static const unsigned drain_steps[DRAIN_STATES] = {
    [DRAIN_NONE] = STEP_TO(DRAIN_HOLDS) | STEP_TO(DRAIN_FINISHES),
    [DRAIN_HOLDS] = STEP_TO(DRAIN_FINISHES) | STEP_TO(DRAIN_RELEASED) | STEP_TO(DRAIN_NONE),
    [DRAIN_FINISHES] = STEP_TO(DRAIN_HOLDS) | STEP_TO(DRAIN_RELEASED) | STEP_TO(DRAIN_NONE),
    [DRAIN_RELEASED] = STEP_TO(DRAIN_NONE),
};

void device_set_state(struct device *d, enum device_state state, const char *reason)
{
    step_check(steps, d->state, state);
    d->state = state;
    if (reason != NULL) {
        (void)snprintf(d->reason, sizeof d->reason, "%s", reason);
    }
}

void device_set_drain(struct device *d, enum drain_state state)
{
    step_check(drain_steps, d->drain.state, state);
    d->drain.state = state;
}

static enum drain_state drain_of(const struct device *d)
{
    return d->base != NULL ? d->base->drain.state : d->drain.state;
}

bool device_drains(const struct device *d)
{
    return drain_of(d) != DRAIN_NONE;
}

int device_refuse_drained(const struct device *d, struct err *e)
{
    int rc = err_set(e, ERR_DRAINING,
                     "device %u is being drained: use another one, or wait for gpuctl resume "
                     "--device %u",
                     device_shown(d), device_shown(d));
    if (e != NULL) {
        e->retry_after_ns = NS_PER_S;
    }
    return rc;
}

unsigned device_usual_streams(const struct device *d)
{
    return d->streams > d->urgent + 1 ? d->streams - d->urgent : 1;
}

/* What the driver asks for counts for the hardware, whatever worker uses it. */
static uint32_t recovery_of(const struct device *d)
{
    return d->base != NULL ? d->base->recovery : d->recovery;
}

const char *device_state_name(const struct device *d)
{
    static const char *const names[] = {
        [DEVICE_STARTING] = "starting",  [DEVICE_ADOPTING] = "adopting",
        [DEVICE_PROBING] = "probing",    [DEVICE_READY] = "ready",
        [DEVICE_WAITING] = "restarting", [DEVICE_ABSENT] = "absent",
        [DEVICE_OPENED] = "starting",    [DEVICE_REPLACED] = "restarting",
        [DEVICE_STUCK] = "stuck",        [DEVICE_RESTING] = "resting",
    };
    bool rests = d->base != NULL && d->state == DEVICE_RESTING;
    if (device_drains(d) && !rests) {
        return d->drain.state == DRAIN_RELEASED ? "drained" : "draining";
    }
    return d->state == DEVICE_READY && recovery_of(d) != 0 ? "held"
           : device_yields(d)                              ? "yielding"
           : device_absent(d)                              ? names[DEVICE_ABSENT]
                                                           : names[d->state];
}

bool device_absent(const struct device *d)
{
    bool may_come_back = d->state == DEVICE_STARTING || d->state == DEVICE_OPENED ||
                         d->state == DEVICE_WAITING || d->state == DEVICE_REPLACED;
    return d->state == DEVICE_ABSENT || (may_come_back && d->absences > 0);
}

bool device_listed(const struct device *d, const char *list)
{
    bool found = false;
    for (const char *c = list; *c != '\0' && !found;) {
        char *end = NULL;
        found = strtoul(c, &end, 10) == d->index;
        c = *end == ',' ? end + 1 : end;
    }
    return found;
}

const char *device_uuid(const struct device *d)
{
    size_t prefix = strlen(UUID_OPTION);
    return strncmp(d->pin, UUID_OPTION, prefix) == 0 ? d->pin + prefix : NULL;
}

bool device_chosen(const char *devices, const char *options)
{
    return devices[0] != '\0' || strstr(options, UUID_OPTION) != NULL;
}

uint64_t device_window(const struct device *d, uint64_t setting)
{
    return setting != 0 ? setting : window_size(&d->window);
}

const char *restart_reason_name(enum restart_reason reason)
{
    static const char *const names[RESTART_REASONS] = {"job", "ended", "killed", "crashed"};
    return names[reason];
}

bool device_takes(const struct device *d)
{
    enum drain_state drain = drain_of(d);
    bool may = drain == DRAIN_NONE || drain == DRAIN_FINISHES;
    /* a device whose worker is killed keeps its state until the launcher has reaped the worker */
    return d->state == DEVICE_READY && d->killed_ns == 0 && d->link != NULL &&
           recovery_of(d) == 0 && may && !d->place.yields;
}

bool device_serves(const struct device *d)
{
    return device_takes(d) && !device_drains(d);
}

bool device_hopeful(const struct device *d)
{
    bool rests = d->state == DEVICE_RESTING && d->base != NULL;
    return !device_absent(d) && d->state != DEVICE_STUCK && (!rests || device_hopeful(d->base));
}

bool device_admits(const struct device *d)
{
    return device_hopeful(d) && !device_drains(d);
}

unsigned device_flying(const struct device *base)
{
    unsigned count = base->inflight_count;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        count += d->inflight_count;
    }
    return count;
}

bool device_coming(const struct device *d)
{
    return device_admits(d) && recovery_of(d) == 0 && d->failures < 2;
}

void device_ended(struct device *d, bool blameless)
{
    bool useful = d->progress == WORKER_PRODUCTIVE || (d->progress == WORKER_UP && blameless);
    d->failures = useful ? 0 : d->failures + 1;
}

uint64_t device_pool_limit(const struct device *d)
{
    uint64_t set = d->memory_limit > 0 && d->memory_limit < d->memory ? d->memory_limit : d->memory;
    return d->pool_limit > 0 ? d->pool_limit : set;
}

uint64_t device_pool_most(const struct device *d)
{
    uint64_t limit = device_pool_limit(d);
    return d->lease.most > limit ? d->lease.most : limit;
}

uint64_t device_whole(const struct device *d)
{
    const struct device *base = d->base != NULL ? d->base : d;
    return sat_add(device_pool_limit(base), base->granted);
}

uint64_t device_extent(const struct device *d)
{
    const struct device *base = d->base != NULL ? d->base : d;
    return device_pool_limit(base) > 0 ? device_whole(d) : UINT64_MAX;
}

uint64_t device_stay(uint64_t limit, uint64_t percent)
{
    return percent >= 100 ? limit : percent_of(limit, percent);
}

uint64_t device_spill_limit(uint64_t set, unsigned devices)
{
    long pages = sysconf(_SC_PHYS_PAGES);
    long bytes = sysconf(_SC_PAGESIZE);
    uint64_t quarter = pages > 0 && bytes > 0 ? (uint64_t)pages * (uint64_t)bytes / 4 : 0;
    uint64_t part = (set > 0 ? set : quarter) / (devices > 0 ? devices : 1);
    return part >= SPILL_MIN ? part : 0;
}

uint64_t device_pause_ns(const struct device *d)
{
    uint64_t max = d->progress >= WORKER_UP ? PAUSE_UP_MAX_NS : PAUSE_MAX_NS;
    uint64_t pause = d->failures > 1 ? PAUSE_NS : 0;
    for (unsigned i = 2; i < d->failures && pause < max; i++) {
        pause *= 2;
    }
    return pause < max ? pause : max;
}

bool device_gets_worker(const struct device *d)
{
    enum drain_state drain = drain_of(d);
    return drain == DRAIN_NONE || (drain == DRAIN_FINISHES && d->jobs > 0);
}

bool device_may_restart(const struct device *d, uint64_t now)
{
    return now >= d->restart_ns && !d->losing;
}

int device_staging_create(struct device *d, uint64_t input, uint64_t output, struct err *e)
{
    int rc = memfd_create_sealed("gpud-input", input, &d->input, e);
    if (rc != 0) {
        return rc;
    }
    rc = memfd_create_sealed("gpud-output", output, &d->output, e);
    if (rc != 0) {
        memfd_finish(&d->input);
        return rc;
    }
    range_init(&d->input_range, input, STAGING_ALIGN);
    range_init(&d->output_range, output, STAGING_ALIGN);
    return 0;
}

void device_staging_finish(struct device *d)
{
    range_finish(&d->input_range);
    range_finish(&d->output_range);
    memfd_finish(&d->input);
    memfd_finish(&d->output);
}
