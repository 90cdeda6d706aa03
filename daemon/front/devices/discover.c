#include "daemon/front/devices/discover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/devices/drained.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/resolve/resolve.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/worker.h"
#include "daemon/front/workers/worker_end.h"

#define PROBE_ITEMS 64u
#define PROBE_VALUE 42.0f

/* The pauses between retries of an absent device, which double. */
#define FIRST_NS     (100 * NS_PER_MS) /* until the first device is tried again without memory */
#define RETRY_NS     (2 * NS_PER_S)
#define RETRY_MAX_NS (300 * NS_PER_S)

/* In order of preference. "auto" never chooses a simulated device. */
static const char *const automatic[] = {"cuda", "opencl"};

static bool named(const struct front *f, unsigned number)
{
    const char *at = f->config.devices;
    while (*at != '\0') {
        char *end = NULL;
        if (strtoul(at, &end, 10) == number && end != at) {
            return true;
        }
        at = *end == ',' ? end + 1 : "";
    }
    return false;
}

struct device *discover_device(struct front *f, const char *backend, unsigned number)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        if (f->device[i]->number == number && strcmp(f->device[i]->backend, backend) == 0) {
            return f->device[i];
        }
    }
    struct device *d = f->device_count < DEVICES_MAX ? calloc(1, sizeof *d) : NULL;
    if (d == NULL) {
        return NULL;
    }
    d->front = f;
    d->index = f->device_count;
    d->number = number;
    d->input = MEMFD_NONE;
    d->output = MEMFD_NONE;
    d->streams = 1;
    d->memory_limit = f->config.device_memory_max;
    d->required = named(f, number);
    (void)snprintf(d->backend, sizeof d->backend, "%s", backend);
    f->device[f->device_count++] = d;
    f->hooks.device_added(f);
    (void)drained_recall(f, d);
    return d;
}

/* Opens a new device. A drained device stays closed, but may lead to the others. */
static void begin(struct front *f, struct device *d)
{
    if (!device_drains(d)) {
        worker_start(f, d);
    }
}

/* pin: NULL, or names the device by its UUID. A device that is there keeps its pin. */
static void open_pinned(struct front *f, const char *backend, unsigned number, const char *pin)
{
    unsigned before = f->device_count;
    struct device *d = discover_device(f, backend, number);
    if (d == NULL || f->device_count == before) {
        return;
    }
    if (pin != NULL) {
        (void)snprintf(d->pin, sizeof d->pin, "%s", pin);
        (void)drained_recall(f, d);
    }
    begin(f, d);
}

/* Numbers shift when a device is lost, so a device that the former front knew has its pin. */
static void open_device(struct front *f, const char *backend, unsigned number)
{
    const struct hold_known *k = NULL;
    for (unsigned i = 0; (k = drained_known(f, i)) != NULL; i++) {
        if (k->number == number && strcmp(k->backend, backend) == 0) {
            break;
        }
    }
    open_pinned(f, backend, number, k != NULL ? k->pin : NULL);
}

/* Where a device is drained, the management library lists none: those that the former front knew.
 */
static void open_known(struct front *f)
{
    const struct hold_known *k;
    for (unsigned i = 0; f->device_count > 0 && (k = drained_known(f, i)) != NULL; i++) {
        if (strcmp(k->backend, f->device[0]->backend) == 0) {
            open_pinned(f, k->backend, k->number, k->pin);
        }
    }
}

static unsigned first_wanted(const struct front *f, unsigned from)
{
    if (f->config.devices[0] == '\0') {
        return from;
    }
    for (unsigned n = from; n < DEVICES_MAX; n++) {
        if (named(f, n)) {
            return n;
        }
    }
    return DEVICES_MAX;
}

void discover_start(struct front *f)
{
    f->listed = true;
    for (unsigned i = 0; i < f->device_count; i++) {
        if (f->device[i]->worker == 0 && f->device[i]->state == DEVICE_STARTING) {
            begin(f, f->device[i]); /* its worker has ended since */
        }
    }
    bool automatic_choice = strcmp(f->config.backend, "auto") == 0;
    if (!automatic_choice || f->device_count == 0) {
        open_device(f, automatic_choice ? automatic[0] : f->config.backend, first_wanted(f, 0));
    } /* else the adopted workers decide the back end, and lead to its other devices */
    open_known(f);
    if (f->device_count == 0) {
        wake_at(f, ns_add(front_now(f), FIRST_NS));
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        if (device_drains(f->device[i])) {
            discover_siblings(f, f->device[i]);
            f->hooks.device_changed(f, f->device[i]);
        }
    }
}

unsigned discover_serving(const struct front *f)
{
    unsigned count = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        count += device_serves(f->device[i]) ? 1 : 0;
    }
    return count;
}

void discover_siblings(struct front *f, struct device *d)
{
    for (unsigned n = d->owner == NULL ? first_wanted(f, 0) : DEVICES_MAX; n < DEVICES_MAX;
         n = first_wanted(f, n + 1)) {
        if (n < d->siblings || named(f, n)) {
            open_device(f, d->backend, n);
        }
    }
}

/* ---- instances of MIG, and the GPUs beside them ---------------------------------------------- */

#define INSTANCE "MIG-"
#define WHOLE    "GPU-"

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* The pin of a GPU that was not opened by its name lacks the prefix GPU-. */
static bool same_uuid(const struct device *d, const char *uuid)
{
    const char *name = device_uuid(d);
    const char *plain =
        name != NULL && begins(uuid, WHOLE) && !begins(name, WHOLE) ? uuid + strlen(WHOLE) : uuid;
    return name != NULL && strcasecmp(name, plain) == 0;
}

static bool is_open(const struct front *f, const char *uuid)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        if (same_uuid(f->device[i], uuid)) {
            return true;
        }
    }
    return false;
}

/* Does the report list MIG instances, or GPUs that are divided into them? Then a process sees one
 * instance, and perhaps no GPU beside it. Without instances it sees all GPUs. */
static bool some_divided(const struct health_report *report)
{
    bool some = false;
    for (uint32_t i = 0; i < report->device_count; i++) {
        some = some || report->device[i].divided != 0 || begins(report->device[i].uuid, INSTANCE);
    }
    return some;
}

/* Searches for it, because after a restart of the front the devices are in the order in which their
 * workers were adopted. */
static const struct device *number_zero(const struct front *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        if (f->device[i]->number == 0) {
            return f->device[i];
        }
    }
    return NULL;
}

/* The first device. NULL if the settings or the workers' environment choose devices, or if the UUID
 * of a device that was opened by number is unknown. */
static const struct device *first_of_all(const struct front *f)
{
    const struct device *d = number_zero(f);
    bool known = d != NULL && d->state == DEVICE_READY && device_uuid(d) != NULL;
    for (unsigned i = 0; known && i < f->device_count; i++) {
        known = f->device[i]->pin[0] != '\0' || device_absent(f->device[i]);
    }
    bool chosen =
        !known || d->chosen || device_chosen(f->config.devices, f->config.backend_options);
    return chosen ? NULL : d;
}

static unsigned next_number(const struct front *f)
{
    unsigned number = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        number = f->device[i]->number >= number ? f->device[i]->number + 1 : number;
    }
    return number;
}

void discover_listed(struct front *f, const struct health_report *report)
{
    const struct device *first = some_divided(report) ? first_of_all(f) : NULL;
    for (uint32_t i = 0; first != NULL && i < report->device_count; i++) {
        const struct health_device *listed = &report->device[i];
        bool device =
            begins(listed->uuid, INSTANCE) || (begins(listed->uuid, WHOLE) && listed->divided == 0);
        char pin[sizeof first->pin];
        if (device && !is_open(f, listed->uuid) &&
            strlen(listed->uuid) < sizeof pin - strlen(UUID_OPTION)) {
            (void)snprintf(pin, sizeof pin, UUID_OPTION "%s", listed->uuid);
            open_pinned(f, first->backend, next_number(f), pin);
        }
    }
}

static void serve(struct front *f, struct device *d)
{
    bool first = !d->proven;
    d->proven = true;
    d->absences = 0;
    d->lacks[0] = '\0';
    device_set_state(d, DEVICE_READY, "");
    if (d->owner != NULL) {
        log_about(LOG_DEVICE_READY, about_device(d), "device %u ready for tenant %s: worker %d",
                  device_shown(d), d->owner->name, (int)d->pid);
    } else if (first) {
        log_about(LOG_DEVICE_READY, about_device(d), "device %u ready: %s (%s%s)", device_shown(d),
                  d->name, d->backend,
                  d->simulated ? ", simulated"
                  : d->cpu     ? ", CPU"
                               : "");
    } else {
        log_about(LOG_DEVICE_READY, about_device(d), "device %u ready again: worker %d",
                  device_shown(d), (int)d->pid);
    }
    wake_for_pool(f, d);
    f->hooks.device_changed(f, d);
    f->hooks.kick(f);
    discover_siblings(f, d);
}

/* ---- the first job --------------------------------------------------------------------------- */

static const struct kernel *find_builtin(const struct front *f, const char *name)
{
    uint32_t cursor = 0;
    const struct kernel *k;
    while ((k = idmap_next(&f->kernels, &cursor, NULL)) != NULL) {
        if ((k->module == NULL || k->module->tenant == NULL) && strcmp(k->name, name) == 0) {
            return k;
        }
    }
    return NULL;
}

/* The step fill(value, out y[64]), with the arguments in the order of the kernel's signature. */
static int probe_steps(const struct front *f, struct capbuf *steps, struct err *e)
{
    const struct kernel *k = find_builtin(f, "fill");
    if (k == NULL) {
        return err_set(e, ERR_INTERNAL, "kernel fill is missing");
    }
    float value = PROBE_VALUE;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    struct capbuf args;
    capbuf_init(&args, 4096);
    int rc = 0;
    for (unsigned i = 0; rc == 0 && i < k->signature->arg_count; i++) {
        struct proto_arg scalar = {.tag = ARG_SCALAR, .dtype = DTYPE_F32, .bits = bits};
        struct proto_arg array = {.tag = ARG_INLINE,
                                  .access = ACCESS_OUT,
                                  .dtype = DTYPE_F32,
                                  .ndim = 1,
                                  .d0 = PROBE_ITEMS};
        rc = proto_list_add(&schema_arg, k->signature->arg[i].kind == SIG_ARRAY ? &array : &scalar,
                            &args, e);
    }
    if (rc == 0) {
        struct proto_step step = {.op = OP_LAUNCH,
                                  .kernel = k->handle,
                                  .args = proto_list_of(&args, k->signature->arg_count)};
        rc = proto_list_add(&schema_step, &step, steps, e);
    }
    capbuf_finish(&args);
    return rc;
}

static int probe_resolve(struct front *f, struct job *j, struct err *e)
{
    struct capbuf steps;
    capbuf_init(&steps, 4096);
    int rc = probe_steps(f, &steps, e);
    if (rc == 0) {
        struct resolve_input in = {.buffers = &f->buffers,
                                   .kernels = &f->kernels,
                                   .builtin = f->builtin,
                                   .steps = proto_list_of(&steps, 1)};
        rc = resolve(&in, &j->work, e);
    }
    capbuf_finish(&steps);
    return rc;
}

static void probe(struct front *f, struct device *d)
{
    struct err e = ERR_INIT;
    struct job *j = calloc(1, sizeof *j);
    if (j == NULL) {
        /* the next worker starts after a pause */
        worker_end(f, d, NULL, "no memory for its first job");
        return;
    }
    j->error = ERR_INIT;
    j->origin = ORIGIN_PROBE;
    j->input = RANGE_NONE;
    j->output = RANGE_NONE;
    j->submitted_ns = front_now(f);
    j->deadline_ns = NS_NEVER;
    j->limit_ns = j->ceiling_ns = f->config.time_limit_ms * NS_PER_MS;
    j->device = d;
    (void)snprintf(j->label, sizeof j->label, "first kernel of device %u", device_shown(d));
    work_init(&j->work);
    if (probe_resolve(f, j, &e) != 0) {
        job_destroy(j);
        if (e.code == ERR_NOMEM) {
            worker_end(f, d, NULL, e.text);
        } else {
            discover_absent(f, d, &e);
        }
        return;
    }
    j->work.device = (int)d->index;
    j->id = command_job_id(f);
    if (!job_put(&f->jobs, j)) {
        job_destroy(j);
        worker_end(f, d, NULL, "no memory for its first job");
        return;
    }
    f->job_count++;
    f->queued_count++;
    for (unsigned i = 0; i < j->work.module_count; i++) {
        j->work.modules[i]->users++;
    }
    d->probe = j;
    device_set_state(d, DEVICE_PROBING, "runs its first kernel and copy");
    f->hooks.kick(f);
}

void discover_probed(struct front *f, struct device *d, const struct job *j)
{
    d->probe = NULL;
    if (j->state != JOB_DONE) {
        struct err e = j->error;
        (void)err_wrap(&e, "the first kernel failed");
        log_about(LOG_WORKER_NOT_STARTED, about_device(d), "device %u: %s", device_shown(d),
                  e.text);
        d->progress = WORKER_STARTED; /* the pause before the next worker grows */
        worker_end(f, d, NULL, e.text);
        return;
    }
    const float *out = (const float *)(const void *)(d->output.data + j->output);
    for (unsigned i = 0; i < PROBE_ITEMS; i++) {
        if (out[i] != PROBE_VALUE) {
            d->progress = WORKER_STARTED; /* as above */
            worker_end(f, d, NULL, "the first kernel computed a wrong result");
            return;
        }
    }
    serve(f, d);
}

void discover_ready(struct front *f, struct device *d)
{
    if (d->state == DEVICE_OPENED) {
        device_set_state(d, DEVICE_PROBING, "restores sealed buffers");
        f->hooks.worker_takes(f, d);
    }
    if (d->state != DEVICE_PROBING || d->probe != NULL || buffer_restoring(d)) {
        return;
    }
    if (d->proven) {
        serve(f, d);
    } else {
        probe(f, d);
    }
}

/* ---- no device ---------------------------------------------------------------------------- */

/* Ends jobs that wait for this device, or for any device if no other may appear. */
static void fail_waiting(struct front *f, struct device *d)
{
    struct err e = ERR_INIT;
    bool shared = domain_hope(f, NULL);
    (void)err_set(&e, ERR_NO_DEVICE, "device %u: %s", device_shown(d), d->reason);
    struct job *j;
    struct job *next;
    HASH_ITER(hh, f->jobs, j, next)
    {
        const struct tenant *t = j->tenant;
        bool own = t != NULL && (t->apart || t->limits.devices != 0);
        bool hope = own ? domain_hope(f, t) : shared;
        bool waits = j->device == d || (j->device == NULL && !hope);
        if (j->state == JOB_QUEUED && waits && j->origin != ORIGIN_PROBE) {
            job_conclude(f, j, JOB_FAILED, &e);
        }
    }
}

static void give_up(struct front *f, struct device *d)
{
    fail_waiting(f, d);
    buffer_device_given_up(f, d);
}

void discover_given_up(struct front *f, struct device *d)
{
    domains_give_up(f, d, give_up);
    give_up(f, d);
}

/* May another back end take the device's place? Only with "auto", and only before the first device
 * has served. */
static bool any_backend(const struct front *f, const struct device *d)
{
    return d->owner == NULL && strcmp(f->config.backend, "auto") == 0 && !d->proven &&
           d->siblings <= 1 && d->number == first_wanted(f, 0);
}

/* With "auto" the first device of the next back end takes the place of one that is absent, once its
 * worker has ended. */
static bool try_next_backend(struct front *f, struct device *d, const struct err *e)
{
    for (unsigned i = 0; any_backend(f, d) && i + 1 < sizeof automatic / sizeof automatic[0]; i++) {
        if (strcmp(automatic[i], d->backend) == 0) {
            worker_backend(d, automatic[i + 1]);
            d->pin[0] = '\0'; /* of the device that the former front knew */
            device_set_state(d, DEVICE_REPLACED, e->text);
            return true;
        }
    }
    return false;
}

static uint64_t retry_pause_ns(const struct device *d)
{
    uint64_t pause = RETRY_NS;
    for (unsigned i = 1; i < d->absences && pause < RETRY_MAX_NS; i++) {
        pause *= 2;
    }
    return pause < RETRY_MAX_NS ? pause : RETRY_MAX_NS;
}

void discover_absent(struct front *f, struct device *d, const struct err *e)
{
    bool news = d->absences == 0;
    if (try_next_backend(f, d, e)) {
        if (news) {
            log_say(LOG_BACKEND_SKIPPED, "back end %s: %s; trying %s", automatic[0], e->text,
                    d->backend);
        }
        return;
    }
    news = news || strncmp(d->lacks, e->text, sizeof d->lacks - 1) != 0;
    if (news) {
        log_about(LOG_DEVICE_ABSENT, about_device(d),
                  "device %u (%s %u) is absent: %s; retried periodically", device_shown(d),
                  d->backend, d->number, e->text);
    }
    d->absences++;
    (void)snprintf(d->lacks, sizeof d->lacks, "%s", e->text);
    d->restart_ns = ns_add(front_now(f), retry_pause_ns(d));
    wake_at(f, d->restart_ns);
    device_set_state(d, DEVICE_ABSENT, e->text);
    discover_given_up(f, d);
    f->hooks.device_changed(f, d);
}

/* Is the device to be opened again? A device that is too small for all guarantees waits for other
 * settings instead (tenant_quota.h). */
static bool may_come_back(const struct device *d)
{
    return d->state == DEVICE_ABSENT && d->worker == 0 && !d->overpromised && device_gets_worker(d);
}

void discover_watch(struct front *f, uint64_t now)
{
    if (f->listed && f->device_count == 0 && !front_life_stops(f->life)) {
        discover_start(f); /* there was no memory for the first device */
    }
    struct device *d;
    for (unsigned at = 0; !front_life_stops(f->life) && (d = front_next_device(f, &at)) != NULL;) {
        if (!may_come_back(d)) {
            continue;
        }
        if (!device_may_restart(d, now)) {
            wake_at(f, d->losing ? NS_NEVER : d->restart_ns);
            continue;
        }
        if (any_backend(f, d)) {
            worker_backend(d, automatic[0]);
        }
        worker_start(f, d);
        (void)snprintf(d->reason, sizeof d->reason, "%s", d->lacks);
    }
}

void discover_again(struct front *f)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (may_come_back(d)) {
            d->absences = 0;
            d->restart_ns = front_now(f);
            wake_at(f, d->restart_ns);
        }
    }
}

bool discover_opening(const struct front *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = f->device[i];
        bool opening = d->state == DEVICE_STARTING || d->state == DEVICE_OPENED ||
                       d->state == DEVICE_ADOPTING || d->state == DEVICE_PROBING ||
                       d->state == DEVICE_REPLACED;
        if (opening && d->absences == 0 && d->failures < 2) {
            return true;
        }
    }
    return false;
}
