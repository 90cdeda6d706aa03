#include "daemon/front/workers/worker_frames.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "common/log.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/forecast.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/beater.h"
#include "daemon/front/workers/frame_check.h"
#include "daemon/front/workers/link.h"
#include "proto/codec.h"

/* Texts are for people, so long ones are cut and not refused. */
static void keep(struct bytes from, char *to, size_t size)
{
    if (from.size >= size) {
        from.size = size - 1;
    }
    (void)bytes_to_str(from, to, size);
}

/* The pin becomes an argument of the next worker, so it must be one "key=value". */
static bool is_one_option(struct bytes b)
{
    unsigned equals = 0;
    for (size_t i = 0; i < b.size; i++) {
        equals += b.data[i] == '=';
        if (b.data[i] != '=' && b.data[i] != '-' && !isalnum(b.data[i])) {
            return false;
        }
    }
    return equals == 1;
}

/* Without rings, frames go over the socket, a few microseconds slower each. */
static void offer_rings(struct device *d)
{
    struct err e = ERR_INIT;
    if (d->link != NULL && link_offer_rings(d->link, &e) != 0) {
        log_about(LOG_WORKER_RINGS, about_device(d), "device %u: no rings to its worker: %s",
                  device_shown(d), e.text);
    }
}

static void opened(struct front *f, struct device *d)
{
    if (f->hooks.worker_opened(f, d) && d->state != DEVICE_ADOPTING) {
        f->hooks.worker_ready(f, d);
    }
}

/* What a former front asked a worker to give back is not known: its budget is sent again. */
static void begin_lease(struct device *d)
{
    bool adopted = d->state == DEVICE_ADOPTING;
    d->lease.most = d->lease.owed = adopted ? UINT64_MAX : 0;
}

static int ready(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_ready m;
    int rc = proto_decode(&schema_msg_w_ready, bytes, &m, e);
    rc = rc == 0 ? frame_check_ready(d, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (!bytes_equal_str(m.build, f->build)) {
        return err_set(
            e, ERR_VERSION,
            "the worker is of build %.*s, gpud of build %s: restart gpud-launcher and gpud",
            (int)m.build.size, (const char *)m.build.data, f->build);
    }
    keep(m.name, d->name, sizeof d->name);
    d->forecast_id = forecast_device(d->backend, d->number, d->name);
    keep(m.vendor, d->vendor, sizeof d->vendor);
    keep(m.driver, d->driver, sizeof d->driver);
    keep(m.note, d->warning, sizeof d->warning);
    keep(m.arch, d->arch, sizeof d->arch);
    keep(is_one_option(m.pin) ? m.pin : bytes_str(""), d->pin, sizeof d->pin);
    if (d->warning[0] != '\0') {
        log_about(LOG_DEVICE_WARNING, about_device(d), "device %u: %s", device_shown(d),
                  d->warning);
    }
    d->cpu = m.cpu != 0;
    d->simulated = m.simulated != 0;
    d->f64 = m.f64 != 0;
    d->chosen = m.chosen != 0;
    d->memory = m.memory;
    d->max_alloc = m.max_alloc;
    d->pool_limit = d->budget = m.pool_limit;
    d->pool_default = m.pool_default;
    d->stay = m.stay;
    begin_lease(d);
    d->spill_limit = m.spill_limit;
    d->units = m.units;
    d->max_group = m.max_group;
    d->local_bytes = m.local_bytes;
    d->streams = m.streams < 1 ? 1 : m.streams > STREAMS_MAX ? STREAMS_MAX : (unsigned)m.streams;
    d->urgent = m.urgent < d->streams ? (unsigned)m.urgent : 0;
    d->siblings = m.devices < DEVICES_MAX ? (unsigned)m.devices : DEVICES_MAX;
    d->patience_ns = 0;
    d->progress = d->progress == WORKER_STARTED ? WORKER_UP : d->progress;
    offer_rings(d);
    /* Waits for the answer to the offer. Frames before it are queued with duplicates of their
     * descriptors, and many sealed buffers would need more descriptors than the process may
     * have. */
    if (d->state != DEVICE_ADOPTING) {
        device_set_state(d, DEVICE_OPENED, NULL);
    }
    if (d->state == DEVICE_ADOPTING || !link_offers(d->link)) {
        opened(f, d);
    }
    return 0;
}

/* The device exists, and the obstacle to opening it may pass. */
static bool may_open_later(int code)
{
    return code == ERR_DEVICE_MEMORY || code == ERR_DEVICE_LOST || code == ERR_NOMEM ||
           code == ERR_INTERNAL;
}

static int absent(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_absent m;
    int rc = proto_decode(&schema_msg_w_absent, bytes, &m, e);
    rc = rc == 0 ? frame_check_absent(d, &m, e) : rc;
    if (rc != 0) {
        return rc;
    }
    struct err why = ERR_INIT;
    (void)err_set_vendor(&why, m.code < 0 ? (int)m.code : ERR_NO_DEVICE, (int)m.vendor, "%.*s",
                         (int)m.text.size, (const char *)m.text.data);
    d->siblings = m.devices < DEVICES_MAX ? (unsigned)m.devices : DEVICES_MAX;
    if (d->siblings > 0) { /* the other devices exist even if this one fails */
        f->hooks.worker_siblings(f, d);
    }
    if (may_open_later(why.code)) {
        (void)snprintf(d->unopened, sizeof d->unopened, "%s", why.text);
        return 0; /* the worker's end is reported next, and another one starts after a pause */
    }
    f->hooks.worker_absent(f, d, &why);
    return 0;
}

static int beat(struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_beat m;
    int rc = proto_decode(&schema_msg_w_beat, bytes, &m, e);
    if (rc == 0) {
        d->patience_ns = device_patience_ns(m.patience_ns);
    }
    return rc;
}

/* Takes the frame's only descriptor, which the caller then owns. -1: the frame has none, or
 * several. */
static int take_one(struct frame_fds *fds)
{
    if (fds->count != 1) {
        return -1;
    }
    fds->count = 0;
    return fds->fd[0];
}

static int rings(struct front *f, struct device *d, struct bytes bytes, struct frame_fds *fds,
                 struct err *e)
{
    struct msg_w_rings m;
    int rc = proto_decode(&schema_msg_w_rings, bytes, &m, e);
    rc = rc == 0 ? frame_check_code(m.code, 0, e) : rc;
    if (rc != 0) {
        return rc;
    }
    if (m.code != 0) {
        log_about(LOG_WORKER_RINGS, about_device(d),
                  "device %u: no rings to its worker (%.*s): frames use the socket",
                  device_shown(d), (int)m.text.size, (const char *)m.text.data);
    }
    beater_destroy(d->beater);
    d->beater = beater_create(take_one(fds), d->pid);
    link_rings_answered(d->link, m.nonce, (int)m.code);
    if (d->state == DEVICE_OPENED && !link_offers(d->link)) {
        opened(f, d);
    }
    return 0;
}

static int started(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_started m;
    int rc = proto_decode(&schema_msg_w_started, bytes, &m, e);
    rc = rc == 0 ? frame_check_job(f, d, m.job, e) : rc;
    if (rc != 0) {
        return rc;
    }
    struct job *j = job_find(f->jobs, m.job);
    if (j == NULL || j->device != d) {
        return 0;
    }
    if (j->state == JOB_DISPATCHED) {
        job_set_state(j, JOB_RUNNING, front_now(f));
    } else if (j->state == JOB_RUNNING) {
        job_resume(j, front_now(f));
    }
    wake_at(f, job_overdue_ns(j));
    return 0;
}

static int paused(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_paused m;
    int rc = proto_decode(&schema_msg_w_paused, bytes, &m, e);
    rc = rc == 0 ? frame_check_job(f, d, m.job, e) : rc;
    if (rc != 0) {
        return rc;
    }
    struct job *j = job_find(f->jobs, m.job);
    if (j != NULL && j->device == d && j->state == JOB_RUNNING) {
        job_make_way(j);
        wake_at(f, job_overdue_ns(j));
    }
    return 0;
}

/* What the first of those jobs lacks: the others come after it. */
static void want(struct front *f, struct device *d, uint64_t bytes)
{
    if (bytes > 0 && d->lease.wanted == 0) {
        d->lease.wanted = bytes;
        d->lease.since_ns = front_now(f);
        wake_at(f, d->lease.since_ns);
    }
}

/* A job waits for memory, or does not any more. The wait does not count against its time limit. */
static int waiting(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_waiting m;
    int rc = proto_decode(&schema_msg_w_waiting, bytes, &m, e);
    rc = rc == 0 ? frame_check_job(f, d, m.job, e) : rc;
    if (rc != 0) {
        return rc;
    }
    struct job *j = job_find(f->jobs, m.job);
    if (j == NULL || j->device != d || j->state != JOB_DISPATCHED) {
        return 0;
    }
    job_await_memory(j, m.waits != 0);
    want(f, d, m.bytes);
    j->dispatched_ns = front_now(f);
    wake_at(f, job_overdue_ns(j));
    f->hooks.kick(f); /* the other workers of the device no longer wait for the job */
    return 0;
}

static int late(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_late m;
    int rc = proto_decode(&schema_msg_w_late, bytes, &m, e);
    rc = rc == 0 ? frame_check_job(f, d, m.job, e) : rc;
    if (rc != 0) {
        return rc;
    }
    struct job *j = job_find(f->jobs, m.job);
    if (j != NULL && j->device == d && j->state == JOB_DISPATCHED) {
        f->hooks.job_late(f, j, turn_now(f));
    }
    return 0;
}

static int pool(struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_pool m;
    int rc = proto_decode(&schema_msg_w_pool, bytes, &m, e);
    if (rc == 0) {
        d->pool = m;
        d->lease.owed = d->lease.owed != UINT64_MAX ? m.missing : UINT64_MAX;
    }
    return rc;
}

static int tenant(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_tenant m;
    int rc = proto_decode(&schema_msg_w_tenant, bytes, &m, e);
    if (rc == 0) {
        f->hooks.worker_tenant(f, d, &m);
    }
    return rc;
}

static int tenant_refused(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_tenant_refused m;
    int rc = proto_decode(&schema_msg_w_tenant_refused, bytes, &m, e);
    rc = rc == 0 ? frame_check_code(m.code, 0, e) : rc;
    if (rc == 0) {
        f->hooks.worker_tenant_refused(f, d, &m);
    }
    return rc;
}

static int budget(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_budget m;
    int rc = proto_decode(&schema_msg_w_budget, bytes, &m, e);
    rc = rc == 0 ? frame_check_code(m.code, 0, e) : rc;
    if (rc == 0) {
        f->hooks.worker_budget(f, d, &m);
    }
    return rc;
}

static int arena(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_arena m;
    int rc = proto_decode(&schema_msg_w_arena, bytes, &m, e);
    rc = rc == 0 ? frame_check_arena(&m, e) : rc;
    if (rc == 0) {
        f->hooks.worker_arena(f, d, &m);
    }
    return rc;
}

static int inventory_buffer(struct front *f, struct device *d, struct bytes bytes,
                            struct frame_fds *fds, struct err *e)
{
    struct msg_w_inventory_buffer m;
    int rc = proto_decode(&schema_msg_w_inventory_buffer, bytes, &m, e);
    if (rc != 0) {
        return rc;
    }
    return f->hooks.inventory_buffer(f, d, &m, take_one(fds), e);
}

/* The end of an inventory for a former front is ignored: its beginning may be lost. */
static int inventory_end(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_inventory_end m;
    int rc = proto_decode(&schema_msg_w_inventory_end, bytes, &m, e);
    if (rc == 0 && m.nonce == d->inventory) {
        f->hooks.inventory_end(f, d);
    }
    return rc;
}

static int exported(struct front *f, struct device *d, struct bytes bytes, struct frame_fds *fds,
                    struct err *e)
{
    struct msg_w_exported m;
    int rc = proto_decode(&schema_msg_w_exported, bytes, &m, e);
    rc = rc == 0 ? frame_check_exported(f, d, &m, e) : rc;
    if (rc != 0) {
        return rc;
    }
    f->hooks.worker_exported(f, d, &m, take_one(fds));
    return 0;
}

static int snapshot(struct front *f, struct device *d, struct bytes bytes, struct frame_fds *fds,
                    struct err *e)
{
    struct msg_w_snapshot m;
    int rc = proto_decode(&schema_msg_w_snapshot, bytes, &m, e);
    rc = rc == 0 ? frame_check_code(m.code, m.vendor, e) : rc;
    if (rc != 0) {
        return rc;
    }
    f->hooks.snapshot(f, d, &m, take_one(fds));
    return 0;
}

static int done(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_done m;
    int rc = proto_decode(&schema_msg_w_done, bytes, &m, e);
    rc = rc == 0 ? frame_check_done(f, d, &m, e) : rc;
    if (rc == 0) {
        f->hooks.worker_done(f, d, &m);
    }
    return rc;
}

static int buffer(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_buffer m;
    int rc = proto_decode(&schema_msg_w_buffer, bytes, &m, e);
    rc = rc == 0 ? frame_check_buffer(f, d, &m, e) : rc;
    if (rc == 0) {
        f->hooks.worker_buffer(f, d, &m);
    }
    return rc;
}

static int module(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_module m;
    int rc = proto_decode(&schema_msg_w_module, bytes, &m, e);
    rc = rc == 0 ? frame_check_module(f, d, &m, e) : rc;
    if (rc == 0) {
        f->hooks.worker_module(f, d, &m);
    }
    return rc;
}

static int inventory_module(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_inventory_module m;
    int rc = proto_decode(&schema_msg_w_inventory_module, bytes, &m, e);
    if (rc == 0) {
        f->hooks.inventory_module(f, d, &m);
    }
    return rc;
}

static int inventory_job(struct front *f, struct device *d, struct bytes bytes, struct err *e)
{
    struct msg_w_inventory_job m;
    int rc = proto_decode(&schema_msg_w_inventory_job, bytes, &m, e);
    return rc == 0 ? f->hooks.inventory_job(f, d, &m, e) : rc;
}

static int of_job(struct front *f, struct device *d, unsigned kind, struct bytes bytes,
                  struct err *e)
{
    switch (kind) {
    case FRAME_KIND_W_STARTED:
        return started(f, d, bytes, e);
    case FRAME_KIND_W_PAUSED:
        return paused(f, d, bytes, e);
    case FRAME_KIND_W_WAITING:
        return waiting(f, d, bytes, e);
    case FRAME_KIND_W_LATE:
        return late(f, d, bytes, e);
    case FRAME_KIND_W_DONE:
        return done(f, d, bytes, e);
    case FRAME_KIND_W_INVENTORY_JOB:
        return inventory_job(f, d, bytes, e);
    default:
        return err_set(e, ERR_PROTOCOL, "worker sent a frame of kind %u", kind);
    }
}

static int answers(struct front *f, struct device *d, unsigned kind, struct bytes bytes,
                   struct err *e)
{
    switch (kind) {
    case FRAME_KIND_W_BUDGET:
        return budget(f, d, bytes, e);
    case FRAME_KIND_W_BUFFER:
        return buffer(f, d, bytes, e);
    case FRAME_KIND_W_MODULE:
        return module(f, d, bytes, e);
    case FRAME_KIND_W_INVENTORY_MODULE:
        return inventory_module(f, d, bytes, e);
    default:
        return of_job(f, d, kind, bytes, e);
    }
}

int worker_frame(struct front *f, struct device *d, unsigned kind, struct bytes bytes,
                 struct frame_fds *fds, struct err *e)
{
    switch (kind) {
    case FRAME_KIND_W_READY:
        return ready(f, d, bytes, e);
    case FRAME_KIND_W_ABSENT:
        return absent(f, d, bytes, e);
    case FRAME_KIND_W_BEAT:
        return beat(d, bytes, e);
    case FRAME_KIND_W_POOL:
        return pool(d, bytes, e);
    case FRAME_KIND_W_TENANT:
        return tenant(f, d, bytes, e);
    case FRAME_KIND_W_TENANT_REFUSED:
        return tenant_refused(f, d, bytes, e);
    case FRAME_KIND_W_ARENA:
        return arena(f, d, bytes, e);
    case FRAME_KIND_W_INVENTORY_BUFFER:
        return inventory_buffer(f, d, bytes, fds, e);
    case FRAME_KIND_W_EXPORTED:
        return exported(f, d, bytes, fds, e);
    case FRAME_KIND_W_SNAPSHOT:
        return snapshot(f, d, bytes, fds, e);
    case FRAME_KIND_W_RINGS:
        return rings(f, d, bytes, fds, e);
    case FRAME_KIND_W_INVENTORY_END:
        return inventory_end(f, d, bytes, e);
    default:
        return answers(f, d, kind, bytes, e);
    }
}
