#include "daemon/front/workers/worker.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/beater.h"
#include "daemon/front/workers/blame.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/departing.h"
#include "daemon/front/workers/launcher_link.h"
#include "daemon/front/workers/link.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/silence.h"
#include "daemon/front/workers/worker_end.h"
#include "daemon/front/workers/worker_frames.h"

#define QUEUE_BYTES (4u * 1024u * 1024u) /* of frames that a worker has not read yet */
#define SILENCE_NS  (3 * NS_PER_S)       /* three heartbeats */
#define READ_NS     NS_PER_S             /* for what a worker had sent before it was late */
#define START_NS    (60 * NS_PER_S) /* until a worker has opened its device, without warm caches */
#define BESIDE_PART                                                                                \
    4u /* a job that ran beside another one for a fourth of its limit may have delayed it */

static uint64_t silence_limit_ns(const struct device *d)
{
    return d->patience_ns > SILENCE_NS ? d->patience_ns : SILENCE_NS;
}

static uint64_t silent_at(const struct device *d)
{
    return ns_add(d->beat_ns, silence_limit_ns(d));
}

static void heard(struct device *d, uint64_t at_ns)
{
    d->heard_ns = d->beat_ns = at_ns;
}

static void frame(void *data, unsigned kind, struct bytes bytes, struct frame_fds *fds)
{
    struct device *d = data;
    if (d->front->unadopted) {
        return; /* the front is about to end: the next one asks again */
    }
    turn_begin(d->front); /* reads the clock anew, so that the frame reports the past */
    heard(d, turn_now(d->front));
    struct err e;
    err_init(&e);
    if (worker_frame(d->front, d, kind, bytes, fds, &e) != 0) {
        worker_end(d->front, d, NULL, e.text);
    }
    wake_at(d->front, silent_at(d));
    turn_end(d->front);
}

static void broken(void *data, const struct err *e)
{
    struct device *d = data;
    link_destroy(d->link);
    d->link = NULL;
    if (d->killed_ns == 0 && d->state != DEVICE_ABSENT && d->state != DEVICE_REPLACED) {
        d->hung_up = e->code == ERR_CLOSED && process_ends(d->pid);
        worker_end(d->front, d, NULL, e->code == ERR_CLOSED ? "its channel closed" : e->text);
    }
}

static bool more(void *data, bool first)
{
    struct front *f = ((struct device *)data)->front;
    if (first) {
        turn_allow(f, TURN_SHARE / (f->device_count + f->domain_count));
    }
    return turn_has_room(f);
}

static const struct link_callbacks link_callbacks = {
    .frame = frame, .broken = broken, .more = more};

static bool is_spare(const struct front *f, const struct device *d)
{
    return d->owner != NULL && d->owner == f->spare;
}

/* A spare worker has a name of its own, so that what its driver compiles is of no other worker: the
 * launcher empties such a folder before the next owner gets it. */
static void name_owner(const struct front *f, const struct device *d,
                       char ret_name[PROTO_NAME_MAX + 1])
{
    uint64_t front = 0;
    memcpy(&front, f->daemon_id, sizeof front);
    if (is_spare(f, d)) {
        (void)snprintf(ret_name, PROTO_NAME_MAX + 1, "%s %016" PRIx64 " %" PRIu64, DOMAIN_SPARE,
                       front, d->worker);
    } else {
        (void)snprintf(ret_name, PROTO_NAME_MAX + 1, "%s", d->owner != NULL ? d->owner->name : "");
    }
}

static int encode_device(const struct device *d, struct capbuf *out, struct err *e)
{
    char owner[PROTO_NAME_MAX + 1];
    name_owner(d->front, d, owner);
    struct msg_record_worker m = {
        .backend = bytes_str(d->backend), .index = d->number, .tenant = bytes_str(owner)};
    return proto_encode(&schema_msg_record_worker, &m, out, e);
}

/* The arguments are those of the device's next worker as well, for which one may be prepared. So
 * what changes with other devices and workers is not among them: command_spill tells it. */
static int ask_launcher(struct front *f, struct device *d, struct err *e)
{
    char number[16];
    char limit[32];
    char managed[32];
    char options[sizeof f->config.backend_options + sizeof d->pin + 1];
    bool pinned = d->pin[0] != '\0'; /* numbers shift when another device is lost */
    (void)snprintf(number, sizeof number, "%u", pinned ? 0 : d->number);
    (void)snprintf(options, sizeof options, "%s%s%s", f->config.backend_options,
                   pinned && f->config.backend_options[0] != '\0' ? "," : "", pinned ? d->pin : "");
    (void)snprintf(limit, sizeof limit, "%" PRIu64,
                   d->owner != NULL ? d->grant : f->config.device_memory_max);
    (void)snprintf(managed, sizeof managed, "%" PRIu64, f->config.managed_limit);
    const char *args[] = {
        "--backend",      d->backend, "--device",        number,  "--options", options,
        "--memory-limit", limit,      "--managed-limit", managed, NULL};
    struct capbuf device;
    capbuf_init(&device, FRAME_DEVICE_MAX);
    int rc = encode_device(d, &device, e);
    if (rc == 0) {
        const struct worker_order start = {.id = d->worker,
                                           .args = args,
                                           .device = capbuf_view(&device),
                                           .fd = {d->input.fd, d->output.fd, record_fd(d->record)},
                                           .prepare =
                                               d->owner == NULL && f->config.prepared_workers > 0};
        rc = f->io.start_worker(f->launcher, &start, e);
    }
    capbuf_finish(&device);
    return rc;
}

int worker_name(struct front *f, const struct device *d, struct err *e)
{
    struct capbuf device;
    capbuf_init(&device, FRAME_DEVICE_MAX);
    int rc = encode_device(d, &device, e);
    rc = rc == 0 ? f->io.name_worker(f->launcher, d->worker, capbuf_view(&device), e) : rc;
    capbuf_finish(&device);
    return rc;
}

int worker_vacate(struct front *f, const struct device *d, struct err *e)
{
    struct capbuf device;
    capbuf_init(&device, FRAME_DEVICE_MAX);
    int rc = encode_device(d, &device, e);
    rc = rc == 0 ? f->io.vacate(f->launcher, d->index, capbuf_view(&device), e) : rc;
    capbuf_finish(&device);
    return rc;
}

static void wait_then_restart(struct front *f, struct device *d, const char *why)
{
    d->restart_ns = ns_add(front_now(f), device_pause_ns(d));
    wake_at(f, d->restart_ns);
    device_set_state(d, DEVICE_WAITING, why);
    f->hooks.device_changed(f, d);
}

void worker_forget(struct device *d)
{
    device_staging_finish(d);
    record_destroy(d->record);
    d->record = NULL;
}

void worker_backend(struct device *d, const char *backend)
{
    (void)snprintf(d->backend, sizeof d->backend, "%s", backend);
    d->recorded = 0;
}

/* The record for a worker that starts. The next front goes on behind the ids of jobs so far. Each
 * spare worker has its own, as it has its own name: the launcher keeps that of one that has ended.
 */
static int begin_record(struct device *d, struct err *e)
{
    if (d->recorded == 0 || is_spare(d->front, d)) {
        record_destroy(d->record);
        d->record = NULL;
    }
    int rc = d->record == NULL ? record_create((uint32_t)d->worker, &d->record, e) : 0;
    if (rc == 0) {
        record_begin(d->record);
        d->recorded = d->worker;
        record_note(d->record, RECORD_JOB, d->front->next_job - 1);
        record_set_lease(d->record, d->grant);
    }
    return rc;
}

/* The end of the worker that is there starts the next one (departing.h). */
static void wait_for_departing(struct front *f, struct device *d)
{
    d->restart_ns = NS_NEVER;
    device_set_state(d, DEVICE_WAITING, "a worker of the former gpud has yet to end");
    f->hooks.device_changed(f, d);
}

void worker_start(struct front *f, struct device *d)
{
    struct err e = ERR_INIT;
    int rc = 0;
    if (departing_has(f, d)) {
        wait_for_departing(f, d);
        return;
    }
    if (d->input.data == NULL || d->output.data == NULL) {
        device_staging_finish(d); /* left by a worker that was taken over in part */
        rc = device_staging_create(d, f->config.staging_input_bytes, f->config.staging_output_bytes,
                                   &e);
    }
    d->worker = f->next_worker++;
    rc = rc == 0 ? begin_record(d, &e) : rc;
    d->killed_ns = 0;
    d->unopened[0] = '\0';
    d->culprit = NULL;
    d->overran = false;
    d->lost = false;
    d->progress = WORKER_STARTED;
    d->started_ns = front_now(f);
    d->beat_ns = d->started_ns;
    d->patience_ns = START_NS;
    wake_at(f, silent_at(d));
    device_set_state(d, DEVICE_STARTING, "its worker starts");
    if (rc == 0) {
        rc = ask_launcher(f, d, &e);
    }
    if (rc != 0) {
        d->worker = 0;
        d->failures++;
        log_about(LOG_WORKER_NOT_STARTED, about_device(d), "device %u: %s", device_shown(d),
                  e.text);
        wait_then_restart(f, d, e.text);
    }
}

static struct device *find(struct front *f, uint64_t id)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (d->worker == id && id != 0) {
            return d;
        }
    }
    return NULL;
}

static int attach(struct front *f, struct device *d, int fd, struct err *e)
{
    d->epoch++;
    memset(d->stream_load, 0, sizeof d->stream_load);
    memset(d->stream_ahead_ns, 0, sizeof d->stream_ahead_ns);
    int rc = link_create(f->loop, fd, QUEUE_BYTES, &link_callbacks, d, &d->link, e);
    if (rc == 0) {
        link_gather(d->link);
    }
    return rc;
}

bool worker_started(struct front *f, uint64_t id, pid_t pid, int fd, int code, const char *text)
{
    struct device *d = find(f, id);
    if (d == NULL) {
        return false;
    }
    struct err e = ERR_INIT;
    d->pid = pid;
    if (code != 0) {
        d->worker = 0;
        d->failures++;
        log_about(LOG_WORKER_NOT_STARTED, about_device(d), "device %u: worker does not start: %s",
                  device_shown(d), text);
        wait_then_restart(f, d, text);
        return true;
    }
    d->record_alone = false;
    if (attach(f, d, fd, &e) != 0) {
        worker_end(f, d, NULL, e.text);
    }
    return true;
}

/* Takes the descriptors that it sets to -1. What it has taken serves the device's next worker, too,
 * if the record cannot be taken. */
static int take_memory(struct device *d, int fd[LAUNCHER_WORKER_FDS], struct err *e)
{
    int rc = memfd_adopt(fd[WORKER_INPUT], 1, true, &d->input, e);
    if (rc == 0) {
        fd[WORKER_INPUT] = -1;
        rc = memfd_adopt(fd[WORKER_OUTPUT], 1, true, &d->output, e);
    }
    if (rc == 0) {
        fd[WORKER_OUTPUT] = -1;
        range_init(&d->input_range, d->input.size, STAGING_ALIGN);
        range_init(&d->output_range, d->output.size, STAGING_ALIGN);
        rc = record_adopt((uint32_t)d->worker, fd[WORKER_RECORD], &d->record, e);
    }
    fd[WORKER_RECORD] = rc == 0 ? -1 : fd[WORKER_RECORD];
    return rc;
}

void worker_adopt(struct front *f, struct device *d, const struct launcher_inventory *inventory)
{
    struct err e = ERR_INIT;
    int fd[LAUNCHER_WORKER_FDS];
    memcpy(fd, inventory->fd, sizeof fd);
    d->worker = d->recorded = inventory->id;
    d->pid = inventory->pid;
    d->proven = true;
    d->progress = WORKER_PRODUCTIVE;
    d->started_ns = front_now(f);
    d->beat_ns = d->started_ns;
    d->patience_ns = START_NS;
    wake_at(f, silent_at(d));
    device_set_state(d, DEVICE_ADOPTING, "its worker reports its inventory");
    int rc = attach(f, d, inventory->channel, &e);
    rc = rc == 0 ? take_memory(d, fd, &e) : rc;
    if (rc == 0) {
        uint64_t last = record_last(d->record, RECORD_JOB);
        f->next_job = last >= f->next_job ? last + 1 : f->next_job;
        d->inventory = d->started_ns; /* a nonce that no former front has used */
        rc = command_inventory(d, d->inventory, &e);
    }
    for (unsigned i = 0; i < LAUNCHER_WORKER_FDS; i++) {
        if (fd[i] >= 0) {
            (void)close(fd[i]);
        }
    }
    f->unadopted = f->unadopted || (rc == ERR_NOMEM && d->record == NULL);
    if (rc != 0) {
        worker_end(f, d, NULL, e.text);
    }
}

void worker_detach(struct device *d)
{
    link_destroy(d->link);
    d->link = NULL;
    beater_destroy(d->beater);
    d->beater = NULL;
}

/* What an exit status means, for an error text. Workers log to the launcher's log. */
static const char *meaning(int status)
{
    switch (status) {
    case 127: /* of the dynamic linker */
        return ": its program or a shared library could not be loaded (missing, or no free "
               "descriptor); the launcher's log says which";
    default:
        return status != 0 ? "; the launcher's log says why" : "";
    }
}

static void describe(const struct device *d, bool by_us, int status, char *out, size_t size)
{
    bool killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (killed && by_us && !d->hung_up) {
        (void)snprintf(out, size, "its worker was ended: %s", d->ending);
    } else if (killed) { /* checked first, as a killed worker also closes its channel */
        (void)snprintf(out, size,
                       "its worker was killed (signal %d), not by gpud: by hand, or by the kernel "
                       "if memory was short (dmesg says so)",
                       SIGKILL);
    } else if (WIFSIGNALED(status)) {
        (void)snprintf(out, size, "its worker was ended by signal %d (%s)", WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    } else if (d->unopened[0] != '\0') {
        (void)snprintf(out, size, "the device does not open: %s", d->unopened);
    } else {
        (void)snprintf(out, size, "its worker exited with status %d%s", WEXITSTATUS(status),
                       meaning(WEXITSTATUS(status)));
    }
}

/* Was the worker killed from outside (operator, memory cgroup), or by the front for its silence?
 * Then no job is to blame. A kernel's fault shows as another signal or exit status, or names a
 * culprit. */
static bool is_external(const struct device *d, int status)
{
    return d->culprit == NULL && WIFSIGNALED(status) &&
           (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGTERM);
}

static enum restart_reason reason_of(const struct device *d, bool by_us, bool external)
{
    if (d->culprit != NULL) {
        return RESTART_JOB;
    }
    return by_us && !d->hung_up ? RESTART_ENDED : external ? RESTART_KILLED : RESTART_CRASHED;
}

/* Notes how the worker ended and what it was doing, for the log and for tables. */
static void note_fault(struct front *f, struct device *d, const char *why)
{
    blame_text(d, d->fault_doing);
    (void)snprintf(d->fault, sizeof d->fault, "%s", why);
    d->fault_ns = front_now(f);
    f->fault_device = d;
    log_about(LOG_WORKER_FAULT, about_device(d), "device %u: worker %d: %s; %s", device_shown(d),
              (int)d->pid, why, d->fault_doing);
}

bool worker_ended(struct front *f, uint64_t id, int status)
{
    struct device *d = find(f, id);
    if (d == NULL) {
        return departing_ended(f, id);
    }
    char why[240];
    bool by_us = d->killed_ns != 0;
    d->killed_ns = front_now(f); /* the end of the worker's channel is expected from now on */
    if (d->link != NULL) {
        link_drain(d->link); /* frames that it sent before its end are delivered */
    }
    describe(d, by_us, status, why, sizeof why);
    bool external = is_external(d, status);
    enum restart_reason reason = reason_of(d, by_us, external);
    worker_detach(d);
    bool expected =
        d->state == DEVICE_ABSENT || d->state == DEVICE_REPLACED || d->state == DEVICE_RESTING;
    if (!expected || d->evacuation.state != EVACUATION_NONE) {
        note_fault(f, d, why);
    }
    d->worker = 0;
    d->lease.taken = 0; /* its memory has come back with it */
    d->lease.owed = 0;
    d->pid = 0;
    d->hung_up = false;
    if (d->state == DEVICE_REPLACED) {
        device_set_state(d, DEVICE_WAITING, NULL);
    } else if (!expected) {
        d->restarts++;
        device_base(d)->restart_count[reason]++;
        device_ended(d, external || (d->culprit != NULL && d->culprit->error.code == 0));
        wait_then_restart(f, d, why);
    }
    d->killed_ns = 0;
    f->hooks.worker_lost(f, d, external, why);
    d->culprit = NULL;
    d->overran = false;
    d->lost = false;
    if (expected && d->overpromised && d->state == DEVICE_ABSENT) {
        f->hooks.guarantees_retry(f); /* new settings may allow it to serve */
    }
    wake_at(f, front_now(f)); /* discovery may try another back end */
    f->hooks.kick(f);
    return true;
}

void worker_orphaned(struct front *f, struct device *d)
{
    if (d->worker == 0) {
        return;
    }
    if (d->killed_ns == 0 || d->hung_up) { /* else the worker's end was under way already */
        d->killed_ns = front_now(f);
        d->hung_up = false;
        (void)snprintf(d->ending, sizeof d->ending, "the launcher ended, and its workers with it");
    }
    (void)worker_ended(f, d->worker, SIGKILL);
}

/* ---- watching ---------------------------------------------------------------------------- */

/* A heartbeat in shared memory does not wake the front. The front reads it when the worker would
 * count as silent. */
static void hear(struct device *d)
{
    uint64_t at = 0;
    uint64_t patience = 0;
    if (d->link == NULL || !link_beat(d->link, &at, &patience)) {
        return;
    }
    d->patience_ns = device_patience_ns(patience);
    if (at > d->beat_ns && at <= front_now(d->front)) { /* a beat from the future does not count */
        heard(d, at);
    }
}

static void check_end(struct front *f, struct device *d, uint64_t now)
{
    if (d->state == DEVICE_STUCK) {
        return;
    }
    if (now < worker_unkillable_at(d)) {
        wake_at(f, worker_unkillable_at(d));
    } else {
        log_about(LOG_DEVICE_STUCK, about_device(d), "device %u: worker %d does not end",
                  device_shown(d), (int)d->pid);
        device_set_state(d, DEVICE_STUCK, "its worker cannot be ended: the driver hangs");
        f->hooks.worker_lost(f, d, false, d->reason);
        f->hooks.device_given_up(f, d);
        f->hooks.device_changed(f, d);
    }
}

static bool is_silent(struct device *d, uint64_t now)
{
    hear(d);
    return now >= silent_at(d);
}

/* An overloaded host keeps sound workers silent. Their buffers would be lost with them, and the
 * next worker would get no more of the host than this one. */
static void judge_silence(struct front *f, struct device *d, uint64_t now,
                          const struct thread_look *look)
{
    char why[SILENCE_TEXT];
    bool told = silence_excused(d);
    bool hung = silence_judge(&d->silence, d->beat_ns, silence_limit_ns(d), now, look);
    silence_text(d, now, why, sizeof why);
    if (hung) {
        worker_end(f, d, NULL, why);
        return;
    }
    if (!told && silence_excused(d)) {
        log_about(LOG_WORKER_STARVED, about_device(d), "device %u: worker %d: %s", device_shown(d),
                  (int)d->pid, why);
    }
    wake_at(f, ns_add(now, SILENCE_LOOK_NS));
}

static void check_silence(struct front *f, struct device *d, uint64_t now)
{
    struct thread_look look;
    if (d->killed_ns != 0) {
        check_end(f, d, now);
        return;
    }
    bool seen = is_silent(d, now) && f->io.look(d, &look);
    if (is_silent(d, now)) { /* also after the look: it may have been late for that alone */
        judge_silence(f, d, now, seen ? &look : NULL);
    } else {
        wake_at(f, silent_at(d));
    }
}

static bool seen_running(const struct device *d)
{
    const struct job *j = d->inflight;
    while (j != NULL && j->clock.place == 0) {
        j = j->device_next;
    }
    return j != NULL;
}

/* May each of the jobs keep the other from the device? `k` has run behind `j` for long, and no job
 * of the device has ended since. */
static bool entangled(const struct device *d, const struct job *j, const struct job *k,
                      uint64_t limit_ns, uint64_t now)
{
    uint64_t since =
        k->clock.turned_ns > j->clock.clear_ns ? k->clock.turned_ns : j->clock.clear_ns;
    return k->clock.place > j->clock.place && d->ran_ns <= since &&
           now - since >= limit_ns / BESIDE_PART;
}

/* Has `j` and the jobs entangled with it run alone from now on, to find the culprit. false: no job
 * is entangled with `j`, or `j` is suspect, runs alone already or cannot be repeated. */
static bool set_apart(const struct device *d, struct job *j, uint64_t limit_ns, uint64_t now)
{
    bool any = false;
    if (j->trust != TRUST_SHARED || !job_repeatable(j)) {
        return false;
    }
    for (struct job *k = d->inflight; k != NULL; k = k->device_next) {
        if (k != j && entangled(d, j, k, limit_ns, now)) {
            any = true;
            job_trust_step(&k->trust, TRUST_ALONE);
        }
    }
    if (any) {
        job_trust_step(&j->trust, TRUST_ALONE);
    }
    return any;
}

static void end_overdue(struct front *f, struct device *d, struct job *j, uint64_t now)
{
    char why[sizeof d->ending];
    bool apart = set_apart(d, j, job_limit_ns(j), now);
    (void)snprintf(why, sizeof why, "a job passed its time limit of %.3f s%s",
                   (double)job_limit_ns(j) / 1e9,
                   apart ? "; it or a job beside it is the cause" : "");
    worker_end(f, d, apart ? NULL : j, why);
}

enum overrun worker_overran(struct front *f, struct device *d, uint64_t since_ns)
{
    char why[sizeof d->ending];
    struct job *j = job_first_running(d);
    uint64_t over_ns = f->config.turn_overrun_ms * NS_PER_MS;
    if (j == NULL || d->worker == 0 || d->killed_ns != 0) {
        return OVERRUN_UNSEEN;
    }
    if (d->beat_ns <= since_ns) { /* worker_watch has just looked */
        return silence_excused(d) ? OVERRUN_UNSEEN : OVERRUN_UNHEARD;
    }
    bool apart = set_apart(d, j, over_ns, turn_now(f));
    (void)snprintf(why, sizeof why, "a job ran for %.3f s beyond its turn, while others waited%s",
                   (double)over_ns / 1e9, apart ? "; it or a job beside it is the cause" : "");
    worker_end(f, d, apart ? NULL : j, why);
    d->overran = !apart;
    return OVERRUN_ENDED;
}

static bool is_bounded(const struct job *j)
{
    bool bounded = true;
    for (unsigned i = 0; i < j->work.module_count; i++) {
        bounded = bounded && j->work.modules[i]->tenant == NULL;
    }
    return bounded;
}

/* Does the worker have anything of another tenant? */
static bool is_shared(const struct front *f, const struct device *d, const struct tenant *t)
{
    for (const struct tenant *x = f->tenants; x != NULL; x = x->hh.next) {
        if (x != t && x->device_bytes[d->index] > 0) {
            return true;
        }
    }
    for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
        if (j->tenant != t) {
            return true;
        }
    }
    uint32_t cursor = 0;
    for (struct module *m; (m = idmap_next(&f->modules, &cursor, NULL)) != NULL;) {
        if (m->tenant != NULL && m->tenant != t && device_set_has(&m->loaded, d->index)) {
            return true;
        }
    }
    return false;
}

/* Is an overdue job only answered, and its worker not ended? The limit must be the client's own,
 * below the daemon's. Built-in kernels end by themselves, and a client's limit must not end a
 * worker that has something of other tenants. */
static bool ends_answer_only(const struct front *f, const struct device *d, const struct job *j)
{
    return j->answer == ANSWER_OPEN && j->ceiling_ns > j->limit_ns &&
           (is_bounded(j) || is_shared(f, d, j->tenant));
}

static void answer_overdue(struct front *f, struct job *j)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_TIME_LIMIT,
                  "ran longer than its time limit of %.3f s; its outputs are blocked and undefined "
                  "until the device finishes it",
                  (double)j->limit_ns / 1e9);
    e.effects = job_repeatable(j) ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE;
    f->hooks.job_answer_early(f, j, &e);
    wake_at(f, job_overdue_ns(j));
}

/* May the worker's channel have frames that were there when the front saw that a job is late? The
 * loop reads some of them in each turn. One that sends without end saves its job for READ_NS only.
 */
static bool is_unread(struct front *f, const struct device *d, uint64_t seen_ns, uint64_t now)
{
    return now < ns_add(seen_ns, READ_NS) && f->io.unread(d->link);
}

/* A front that stood still may have the worker's word unread. So a job is answered only when it is
 * late for the second time: between the two the loop reads what workers have sent. */
static void check_deadlines(struct front *f, const struct device *d, uint64_t now)
{
    for (struct job *j = d->inflight; j != NULL; j = j->device_next) {
        uint64_t late = ns_add(j->deadline_ns, JOB_LATE_NS);
        if (j->state != JOB_DISPATCHED || j->answer != ANSWER_OPEN) {
            continue;
        }
        if (now < late) {
            j->late_ns = 0;
            wake_at(f, late);
        } else if (j->late_ns == 0) {
            j->late_ns = now;
            wake_at(f, now);
        } else if (is_unread(f, d, j->late_ns, now)) {
            wake_at(f, now);
        } else {
            f->hooks.job_late(f, j, now);
        }
    }
}

/* Is the job's time over, and what its worker had sent until then read? A front that stood still
 * has the end of the job unread, so it looks twice. A job that is not seen to run is overdue with
 * the next sign of life only: a silent worker may have yet to read of it. */
static bool is_overdue(struct front *f, const struct device *d, struct job *j, uint64_t now)
{
    struct job_clock *c = &j->clock;
    uint64_t over = job_overdue_ns(j);
    if (now < over || c->looks == 0) {
        c->looks = now >= over;
        c->looked_ns = now;
        wake_at(f, now < over ? over : now);
        return false;
    }
    if (c->looks == 1 && is_unread(f, d, c->looked_ns, now)) {
        wake_at(f, now);
        return false;
    }
    if (c->looks == 1) {
        c->looks = 2;
        c->looked_ns = now;
    }
    bool proven = c->place != 0 || d->heard_ns > c->looked_ns;
    if (!proven) {
        wake_at(f, ns_add(now, NS_PER_S));
    }
    return proven;
}

static void stop_overdue(struct front *f, struct device *d, struct job *j, uint64_t now)
{
    if (ends_answer_only(f, d, j)) {
        answer_overdue(f, j);
    } else {
        end_overdue(f, d, j, now);
    }
}

/* Checks jobs that are known to run. While none is, it checks the first job of each stream. Other
 * jobs are checked later: the worker may have ordered them behind a running job, which has a limit
 * of its own, or that job uses the device's units. Nor does it check jobs behind one that waits for
 * memory, as they may wait for that job. */
static void check_limits(struct front *f, struct device *d, uint64_t now)
{
    bool running = seen_running(d);
    uint64_t seen = 0;
    for (struct job *j = d->inflight; j != NULL && d->killed_ns == 0; j = j->device_next) {
        if (j->wait == WAIT_MEMORY) {
            seen = UINT64_MAX; /* the job is not in its stream */
            continue;
        }
        uint64_t bit = UINT64_C(1) << j->stream;
        bool counts = j->clock.place != 0 || (!running && (seen & bit) == 0);
        seen |= bit;
        if (!counts) {
            uint64_t over = job_overdue_ns(j);
            wake_at(f, now < over ? over : ns_add(now, NS_PER_S));
        } else if (is_overdue(f, d, j, now)) {
            stop_overdue(f, d, j, now);
        }
    }
}

/* The workers may have stood still as well, as with the whole machine. */
static void stood_still(struct device *d, uint64_t now, uint64_t away_ns)
{
    d->beat_ns = now;        /* frames that arrived meanwhile are read first */
    if (d->killed_ns != 0) { /* and so is the end of a worker that was killed before */
        uint64_t since = ns_add(d->killed_ns, away_ns);
        d->killed_ns = since < now ? since : now;
    }
    for (struct job *j = d->inflight; j != NULL; j = j->device_next) {
        job_stood_still(j, now, away_ns);
    }
}

void worker_watch(struct front *f, uint64_t now, uint64_t away_ns)
{
    bool away = away_ns > 0;
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (away) {
            stood_still(d, now, away_ns);
        }
        if (d->worker != 0) {
            check_silence(f, d, now);
            check_limits(f, d, away ? 0 : now);
            check_deadlines(f, d, now);
        } else if (d->state == DEVICE_WAITING && device_gets_worker(d) &&
                   !front_life_stops(f->life)) {
            if (device_may_restart(d, now)) {
                worker_start(f, d);
            } else if (!d->losing) {
                wake_at(f, d->restart_ns);
            }
        }
    }
}
