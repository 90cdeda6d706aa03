#include "daemon/front/pipeline.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/adopt.h"
#include "daemon/front/building.h"
#include "daemon/front/command.h"
#include "daemon/front/completion.h"
#include "daemon/front/conclude.h"
#include "daemon/front/discover.h"
#include "daemon/front/dispatch.h"
#include "daemon/front/drain.h"
#include "daemon/front/driver_cache.h"
#include "daemon/front/due.h"
#include "daemon/front/ending.h"
#include "daemon/front/forget.h"
#include "daemon/front/hazard.h"
#include "daemon/front/intake.h"
#include "daemon/front/lane.h"
#include "daemon/front/link.h"
#include "daemon/front/monitor.h"
#include "daemon/front/notify.h"
#include "daemon/front/picture.h"
#include "daemon/front/processes.h"
#include "daemon/front/queue.h"
#include "daemon/front/reload.h"
#include "daemon/front/reply.h"
#include "daemon/front/requests.h"
#include "daemon/front/standing.h"
#include "daemon/front/tenant_quota.h"
#include "daemon/front/worker.h"

#define CONTEXTS_SPARE   512u  /* requests that are no jobs and no WAITs */
#define PIPE_REQUESTS    1024u /* unanswered ones of a connection, at least */
#define LANE_BATCH       32u   /* requests of one ring before others get their turn */
#define ADOPTION_NS      (5 * NS_PER_S)
#define LAST_ANSWERS_NS  NS_PER_S
#define REPLACE_TRIES    50u
#define REPLACE_PAUSE_NS (20 * NS_PER_MS)
#define STOP_S           10u
#define READING_S        1u
#define ANSWER_ROOM      512u             /* bytes: most are shorter */
#define AWAY_NS          NS_PER_S         /* so late is a timer only if this process stood still */
#define DRAIN_LOOK_NS    (20 * NS_PER_MS) /* while it ends */

/* ---- requests -------------------------------------------------------------------------------- */

static void on_request(void *data, struct request *r)
{
    intake_request(data, r);
}

static void on_ring_request(void *data, struct session *s, struct request *r)
{
    intake_ring(data, s, r);
}

static void on_taken(void *data, struct op *o)
{
    intake_taken(data, o);
}

static void on_lane_closed(void *data, struct lane *lane)
{
    struct front *f = data;
    if (f->shm != NULL) {
        shm_withdraw(f->shm, lane);
    }
}

static void on_closed(void *data, uint32_t pipe)
{
    standing_disconnected(data, pipe);
}

/* ---- jobs --------------------------------------------------------------------------------- */

/* Keeps a completion for EVENTS; what went wrong in its place if that cannot be. */
static void keep_result(struct job *j, int rc, struct bytes result, const struct err *why)
{
    if (rc == 0 && session_result(j->session, j->id, result)) {
        return;
    }
    struct err e = *why;
    if (rc == 0) {
        (void)err_set(&e, ERR_NOMEM, "the result of %zu bytes could not be kept", result.size);
    }
    struct proto_result r = {.job = j->id,
                             .code = e.code,
                             .step = -1,
                             .arg = -1,
                             .effects = ERR_EFFECTS_MAYBE,
                             .text = bytes_str(e.text)};
    struct capbuf out;
    capbuf_init(&out, 4096);
    rc = proto_list_add(&schema_result, &r, &out, NULL);
    if (rc != 0 || !session_result(j->session, j->id, capbuf_view(&out))) {
        log_error("job %llu: nobody can be told its end: out of memory", (unsigned long long)j->id);
    }
    capbuf_finish(&out);
}

static void answer_job(struct front *f, struct job *j)
{
    bool passed = j->op != NULL && op_passed(j->op);
    uint8_t room[2][ANSWER_ROOM];
    struct capbuf record;
    struct capbuf out;
    struct err e;
    err_init(&e);
    capbuf_init_in(&record, PROTO_MESSAGE_MAX, room[0], sizeof room[0]);
    capbuf_init_in(&out, PROTO_MESSAGE_MAX, room[1], sizeof room[1]);
    int rc = completion_result(j, &record, &e);
    if (j->async) {
        keep_result(j, rc, capbuf_view(&record), &e);
        standing_tell(f, j->session, turn_now(f));
    } else if (rc == 0) {
        struct msg_results m = {.results = proto_list_of(&record, 1)};
        rc = proto_encode(&schema_msg_results, &m, &out, &e);
        if (rc == 0) {
            reply_answer(f, j->op, capbuf_view(&out));
        }
    }
    if (rc != 0 && !j->async) {
        reply_answer_error(f, j->op, &e, (struct bytes){0});
    }
    if (passed) {
        job_release(f, j); /* no ack will come for it */
    }
    capbuf_finish(&record);
    capbuf_finish(&out);
}

static void on_job_ended(struct front *f, struct job *j)
{
    if (j->probe) {
        discover_probed(f, j->device, j);
    } else if (j->session != NULL && (j->op != NULL || j->async)) {
        answer_job(f, j);
    }
    for (unsigned i = 0; i < j->work.use_count; i++) {
        buffer_seal_next(f, j->work.uses[i].buffer);
    }
    for (unsigned i = 0; i < j->work.module_count; i++) {
        building_settle(f, j->work.modules[i]);
    }
}

static void on_worker_lost(struct front *f, struct device *d, bool external, const char *why)
{
    building_device_lost(f, d);
    completion_lost(f, d, external, why);
    buffer_device_lost(f, d);
    arena_device_lost(f, d);
    picture_device_lost(f, d);
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        standing_tell(f, s, clock_now_ns());
    }
}

/* ---- the end of a turn -------------------------------------------------------------------- */

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* its being active is what keeps the loop from sleeping */
}

static void on_check(uv_check_t *check)
{
    struct front *f = check->data;
    turn_begin(f);
    lanes_turn(f->lanes);
    if (f->kicked) {
        f->kicked = false;
        (void)uv_idle_stop(&f->kick_idle);
        job_forget_history(f, HISTORY_MAX);
        dispatch_all(f);
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        link_flush(f->device[i]->link); /* workers first: they are what is waited for */
    }
    lanes_flush(f->lanes);
    turn_end(f);
}

static void kick(struct front *f)
{
    if (!f->kicked && !uv_is_closing((uv_handle_t *)&f->kick_idle)) {
        f->kicked = true;
        (void)uv_idle_start(&f->kick_idle, on_idle);
    }
}

/* ---- readiness, time ------------------------------------------------------------------------- */

static void on_device_changed(struct front *f, struct device *d)
{
    monitor_wake(f, d);
    module_begin_waiting(f);
    unsigned serving = discover_serving(f);
    bool ready = serving >= f->config.min_devices;
    if (ready && !f->ready_told) {
        f->ready_told = true;
        log_info("ready: %u device%s", serving, serving == 1 ? "" : "s");
        notify_ready(serving);
    }
    notify_status(f);
}

/* The last answers get time to reach their clients, who find nobody to ask again afterwards. */
static bool drained(struct front *f, uint64_t now)
{
    if (now >= f->drain_until_ns) {
        return true;
    }
    if (f->job_count > 0) {
        f->drained_ns = 0;
        return false;
    }
    f->drained_ns = f->drained_ns != 0 ? f->drained_ns : now;
    return f->session_count == 0 || now - f->drained_ns > LAST_ANSWERS_NS;
}

static void start_anew(struct front *f);

static void hand_over(struct front *f, unsigned orphans)
{
    if (orphans > 0) {
        log_warn("%u detached jobs of clients that left were not waited for", orphans);
    }
    log_info("handing over to the next front: %u jobs are unfinished", f->job_count);
    pipeline_stop(f);
}

static void watch_hand_over(struct front *f, uint64_t now)
{
    unsigned orphans = drain_orphans(f);
    if (orphans == 0 || now >= f->drain_until_ns) {
        hand_over(f, orphans);
    } else {
        due_at(f, ns_add(now, DRAIN_LOOK_NS));
    }
}

static void watch_drain(struct front *f, uint64_t now)
{
    if (f->stopping) {
        return;
    }
    if (f->handing_over) {
        watch_hand_over(f, now);
    } else if (f->exit_after_drain && drained(f, now)) {
        pipeline_stop(f);
    } else if (f->exit_after_drain) {
        due_at(f, ns_add(now, DRAIN_LOOK_NS));
    }
}

static void watch_dog(struct front *f, uint64_t now)
{
    if (now >= f->watchdog_ns) {
        notify_watchdog();
        f->watchdog_ns = ns_add(now, notify_watchdog_period());
    }
    due_at(f, f->watchdog_ns);
}

static void on_due(uv_timer_t *timer)
{
    struct front *f = timer->data;
    uint64_t now = clock_now_ns();
    bool away = now > ns_add(f->armed_ns, AWAY_NS);
    f->armed_ns = NS_NEVER;
    if (now < f->due_ns) {
        return; /* it is set again */
    }
    f->due_ns = NS_NEVER;
    if (f->launcher_lost) {
        start_anew(f);
    }
    if (f->stopping) {
        return;
    }
    worker_watch(f, now, away);
    monitor_watch(f, now, away);
    due_expire(f, now);
    standing_watch(f, now);
    picture_watch(f, now);
    due_housekeeping(f, now);
    forget_tenants(f, now);
    watch_dog(f, now);
    watch_drain(f, now);
}

/* Before the loop sleeps. */
static void on_arm(uv_prepare_t *prepare)
{
    struct front *f = prepare->data;
    lanes_flush(f->lanes); /* timers answer, too */
    if (f->due_ns == f->armed_ns || f->stopping) {
        return;
    }
    f->armed_ns = f->due_ns;
    if (f->due_ns == NS_NEVER) {
        (void)uv_timer_stop(&f->timer);
        return;
    }
    uint64_t now = clock_now_ns();
    uint64_t ms = f->due_ns > now ? (f->due_ns - now + NS_PER_MS - 1) / NS_PER_MS : 0;
    uv_update_time(f->loop); /* the timer counts from there */
    (void)uv_timer_start(&f->timer, on_due, ms, 0);
}

/* ---- launcher -------------------------------------------------------------------------------- */

static void on_started(void *data, uint64_t id, pid_t pid, int fd, int code, const char *text)
{
    struct front *f = data;
    if (!compiler_started(f->compiler, id, code, text) && !monitor_started(f, id, code, text)) {
        if (!worker_started(f, id, pid, fd, code, text) && fd >= 0) {
            (void)close(fd);
        }
    }
}

static void on_ended(void *data, uint64_t id, int status, bool timed_out)
{
    struct front *f = data;
    if (!compiler_ended(f->compiler, id, status, timed_out) && !monitor_ended(f, id)) {
        (void)worker_ended(f, id, status);
    }
}

static void on_held(void *data, uint64_t id, pid_t pid, struct bytes meta, int channel, int input,
                    int output)
{
    adopt_worker(data, id, pid, meta, channel, input, output);
}

static void on_listed(void *data, uint64_t count)
{
    struct front *f = data;
    uint64_t gone = count == 0 ? driver_cache_trim(f->config.cache_dir, DRIVER_CACHE_BYTES) : 0;
    if (gone > 0) {
        log_info("%llu MiB of kernels that PoCL had kept for long were removed",
                 (unsigned long long)(gone >> 20));
    }
    if (!f->listed) { /* another launcher, or another connection to it, is asked as well */
        discover_start(f);
    }
}

/* All workers and compilers are given up with it. They are started anew from the timer, where no
 * callback of the link is on the stack. */
static void on_launcher_lost(void *data, const struct err *e)
{
    struct front *f = data;
    if (!f->stopping) {
        log_error("the launcher is gone, and all workers with it: %s", e->text);
        (void)snprintf(f->trouble, sizeof f->trouble, "the launcher was lost: %s", e->text);
        f->trouble_of = NULL;
        f->launcher_lost = true;
        due_at(f, clock_now_ns());
    }
}

static const struct launcher_callbacks launcher_callbacks = {.started = on_started,
                                                             .ended = on_ended,
                                                             .held = on_held,
                                                             .listed = on_listed,
                                                             .lost = on_launcher_lost};

/* Each session has a WAIT that is not answered, each job its request: what is admitted finds a
 * context. */
static unsigned contexts(const struct config *c, unsigned *ret_pipe_requests)
{
    uint64_t all = c->sessions_max + c->queue_max + CONTEXTS_SPARE;
    uint64_t pipe = c->session_inflight_max + CONTEXTS_SPARE;
    *ret_pipe_requests = (unsigned)(pipe > PIPE_REQUESTS ? pipe : PIPE_REQUESTS);
    return (unsigned)(all < LISTENER_CONTEXTS_MAX ? all : LISTENER_CONTEXTS_MAX);
}

static void on_settings(struct front *f)
{
    unsigned pipe_requests = 0;
    unsigned all = contexts(&f->config, &pipe_requests);
    if (f->listener != NULL) {
        listener_set_contexts(f->listener, all, pipe_requests);
        listener_set_keepers(f->listener, &f->rights.admins);
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        command_coalesce(f->device[i], f->config.coalesce_window_us * NS_PER_US);
        command_spill(f, f->device[i]);
    }
}

static void on_device_added(struct front *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        command_spill(f, f->device[i]);
    }
}

static bool on_worker_opened(struct front *f, struct device *d)
{
    command_spill(f, d);
    command_coalesce(d, f->config.coalesce_window_us * NS_PER_US);
    module_begin_waiting(f);
    return quota_open(f, d);
}

/* ---- start and stop -------------------------------------------------------------------------- */

static void set_hooks(struct front *f)
{
    f->hooks = (struct front_hooks){
        .answer = reply_answer,
        .answer_error = reply_answer_error,
        .job_ended = on_job_ended,
        .kick = kick,
        .buffer_create = command_buffer_create,
        .buffer_free = command_buffer_free,
        .buffer_meta = command_buffer_meta,
        .buffer_seal = command_buffer_seal,
        .buffer_export = command_buffer_export,
        .arena_free = command_arena_free,
        .module_need = building_need,
        .module_build_done = module_answered,
        .job_send = command_job,
        .job_cancel = command_job_cancel,
        .job_retire = command_retire,
        .job_outputs_gone = command_outputs_gone,
        .worker_end = worker_end,
        .device_added = on_device_added,
        .device_changed = on_device_changed,
        .settings_changed = on_settings,
        .device_given_up = discover_given_up,
        .worker_lost = on_worker_lost,
        .worker_done = completion_done,
        .worker_buffer = buffer_answered,
        .worker_exported = buffer_exported,
        .worker_arena = arena_mapped,
        .worker_module = building_loaded,
        .worker_ready = discover_ready,
        .worker_opened = on_worker_opened,
        .guarantees_retry = quota_retry,
        .worker_siblings = discover_siblings,
        .worker_absent = discover_absent,
        .held_buffer = adopt_buffer,
        .held_module = building_held,
        .held_job = adopt_job,
        .held_end = adopt_end,
        .picture = picture_told,
    };
}

static int open_launcher(struct front *f, struct err *e)
{
    struct launcher_options options = {.runtime_dir = f->config.runtime_dir,
                                       .start = !f->supervised};
    return launcher_link_open(f->loop, &options, f->build, &launcher_callbacks, f, &f->launcher, e);
}

/* One that is about to be gone may still hold its lock and accept: then the next try finds another.
 * Nothing can be served meanwhile. */
static int replace_launcher(struct front *f, struct err *e)
{
    const struct timespec pause = {.tv_nsec = (long)REPLACE_PAUSE_NS};
    int rc = open_launcher(f, e);
    for (unsigned i = 0; rc != 0 && i < REPLACE_TRIES; i++) {
        (void)nanosleep(&pause, NULL);
        rc = open_launcher(f, e);
    }
    return rc;
}

/* After the launcher's end: what its workers had is given up as after any worker's end. */
static void start_anew(struct front *f)
{
    struct err e = ERR_INIT;
    f->launcher_lost = false;
    monitor_orphaned(f);
    compiler_relink(f->compiler, NULL);
    launcher_link_close(f->launcher);
    f->launcher = NULL;
    for (unsigned i = 0; i < f->device_count; i++) {
        (void)worker_ended(f, f->device[i]->worker, SIGKILL);
    }
    int rc = replace_launcher(f, &e);
    if (rc == 0) {
        rc = launcher_list(f->launcher, &e); /* what runs there still was given up: it is ended */
    }
    if (rc != 0) {
        log_error("%s", e.text);
        f->exit_code = 1;
        pipeline_stop(f);
        return;
    }
    compiler_relink(f->compiler, f->launcher);
    log_info("a new launcher runs; devices are opened again");
}

static int start_launcher(struct front *f, struct err *e)
{
    int rc = open_launcher(f, e);
    if (rc != 0) {
        return rc;
    }
    struct compiler_options compile = {
        .cache_dir = f->config.cache_dir,
        .build = f->build,
        .parallel = 2,
        .queue_max = 256,
        .limits = {.cpu_s = f->config.compile_cpu_s,
                   .memory = f->config.compile_memory_bytes,
                   .wall_ns = f->config.compile_wall_ms * NS_PER_MS},
    };
    rc = compiler_create(f->loop, f->launcher, &compile, &f->compiler, e);
    if (rc == 0 && compiler_cache_error(f->compiler) != NULL) {
        log_warn("kernels are compiled anew at each start: %s",
                 compiler_cache_error(f->compiler)->text);
    }
    return rc != 0 ? rc : launcher_list(f->launcher, e);
}

static int start_listener(struct front *f, struct err *e)
{
    static const struct listener_callbacks callbacks = {.request = on_request, .closed = on_closed};
    unsigned pipe_requests = 0;
    struct listener_options options = {.contexts = contexts(&f->config, &pipe_requests),
                                       .connections_max = (unsigned)f->config.connections_max,
                                       .connections_spare = KEEPERS_SPARE,
                                       .handshake_ns = f->config.handshake_timeout_ms * NS_PER_MS,
                                       .ipc_mode = 0660};
    options.pipe_requests_max = pipe_requests;
    int rc = listener_create(f->loop, &options, &callbacks, f, &f->listener, e);
    if (rc == 0) {
        listener_set_keepers(f->listener, &f->rights.admins);
    }
    for (unsigned i = 0; rc == 0 && i < f->config.listen_count; i++) {
        rc = listener_add(f->listener, f->config.listen[i], e);
    }
    return rc;
}

static int start_shm(struct front *f, struct err *e)
{
    char path[CONFIG_PATH + 16];
    (void)snprintf(path, sizeof path, "%s/shm.sock", f->config.runtime_dir);
    return shm_create(f->loop, path, &shm_defaults, &f->shm, e);
}

static int start_lanes(struct front *f, struct err *e)
{
    static const struct lanes_callbacks callbacks = {
        .request = on_ring_request, .taken = on_taken, .closed = on_lane_closed};
    struct lanes_options options = {.batch = LANE_BATCH,
                                    .spin_ns = f->config.ring_spin_us * NS_PER_US};
    return lanes_create(f->loop, &options, &callbacks, f, &f->lanes, e);
}

static void on_process_ended(void *data, void *session)
{
    standing_process_ended(data, session);
}

static void stop_lanes(struct front *f)
{
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        lane_close(s->lane);
    }
    lanes_destroy(f->lanes);
    f->lanes = NULL;
}

/* Until workers from before have told what they hold, nobody can be answered rightly. One that does
 * not is ended: else what it holds would run a second time. */
static bool adopting(const struct front *f)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        if (f->device[i]->state == DEVICE_ADOPTING) {
            return true;
        }
    }
    return !f->listed;
}

static void await_adoption(struct front *f)
{
    uint64_t until = clock_now_ns() + ADOPTION_NS;
    while (adopting(f) && clock_now_ns() < until && !f->stopping) {
        due_at(f, until);
        (void)uv_run(f->loop, UV_RUN_ONCE);
    }
    if (f->stopping) {
        return; /* whoever comes next takes them over */
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        if (f->device[i]->state == DEVICE_ADOPTING) {
            worker_end(f, f->device[i], NULL, "it did not tell in time what it holds");
        }
    }
}

static void init_handles(struct front *f)
{
    (void)uv_idle_init(f->loop, &f->kick_idle); /* these cannot fail */
    (void)uv_check_init(f->loop, &f->kick_check);
    (void)uv_timer_init(f->loop, &f->timer);
    (void)uv_prepare_init(f->loop, &f->arm);
    f->kick_check.data = f;
    f->timer.data = f;
    f->arm.data = f;
    f->due_ns = 0; /* at once */
    f->armed_ns = NS_NEVER;
    f->watchdog_ns = ns_add(clock_now_ns(), notify_watchdog_period());
    (void)uv_check_start(&f->kick_check, on_check);
    (void)uv_prepare_start(&f->arm, on_arm);
}

int pipeline_start(struct front *f, struct err *e)
{
    set_hooks(f);
    init_handles(f);
    monitor_init(&f->monitor);
    int rc = start_lanes(f, e);
    if (rc == 0) {
        rc = processes_create(f->loop, on_process_ended, f, &f->processes, e);
    }
    if (rc == 0) {
        rc = building_init(f, e);
    }
    if (rc == 0) {
        rc = start_launcher(f, e);
    }
    if (rc == 0) {
        await_adoption(f);
        rc = f->stopping ? 0 : start_shm(f, e); /* told to end meanwhile: nobody is to be served */
    }
    if (rc == 0 && !f->stopping) {
        rc = start_listener(f, e);
    }
    return rc;
}

void pipeline_drain(struct front *f)
{
    if (f->exit_after_drain) { /* asked a second time */
        pipeline_stop(f);
        return;
    }
    f->draining = true;
    f->exit_after_drain = true;
    f->handing_over = false;
    due_at(f, clock_now_ns());
    f->drain_until_ns = drain_until(f, clock_now_ns());
    log_info("draining: %u jobs are unfinished", f->job_count);
    notify_stopping();
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        (void)session_notice(s, NOTICE_DRAINING, 0);
        standing_tell(f, s, clock_now_ns());
    }
}

void pipeline_hand_over(struct front *f)
{
    if (f->stopping) {
        return;
    }
    unsigned orphans = drain_orphans(f);
    bool now = f->handing_over || f->exit_after_drain; /* asked a second time */
    f->handing_over = true;
    notify_stopping();
    if (now || orphans == 0) {
        hand_over(f, orphans);
        return;
    }
    f->drain_until_ns = drain_until(f, clock_now_ns());
    due_at(f, clock_now_ns());
    log_info("handing over once a worker has %u detached jobs of clients that left", orphans);
}

static void on_listener_closed(void *data)
{
    struct front *f = data;
    listener_destroy(f->listener);
    f->listener = NULL;
    if (reload_under_way(f)) { /* nobody needs what it finds */
        ending_within(f, READING_S, "the reading of settings");
    }
}

static void close_handle(uv_handle_t *handle)
{
    if (!uv_is_closing(handle)) {
        uv_close(handle, NULL);
    }
}

void pipeline_stop(struct front *f)
{
    if (f->stopping) {
        return;
    }
    f->stopping = true;
    if (f->exit_after_drain && f->job_count > 0) {
        log_warn("%u %s not waited for", f->job_count, f->job_count == 1 ? "job was" : "jobs were");
    }
    ending_within(f, STOP_S, "a socket of NNG's"); /* closing one has been seen to hang */
    close_handle((uv_handle_t *)&f->timer);
    close_handle((uv_handle_t *)&f->arm);
    close_handle((uv_handle_t *)&f->kick_idle);
    close_handle((uv_handle_t *)&f->kick_check);
    close_handle((uv_handle_t *)&f->sigterm);
    close_handle((uv_handle_t *)&f->sigint);
    close_handle((uv_handle_t *)&f->sighup);
    close_handle((uv_handle_t *)&f->sigusr1);
    stop_lanes(f);
    processes_destroy(f->processes);
    f->processes = NULL;
    shm_destroy(f->shm);
    f->shm = NULL;
    compiler_destroy(f->compiler);
    f->compiler = NULL;
    for (unsigned i = 0; i < f->device_count; i++) {
        worker_detach(f->device[i]);
    }
    if (f->launcher != NULL && !f->supervised && !f->handing_over) {
        (void)launcher_quit(f->launcher, NULL);
    }
    launcher_link_close(f->launcher);
    f->launcher = NULL;
    if (f->listener != NULL) {
        listener_close(f->listener, on_listener_closed, f);
    }
}

static void free_jobs(struct front *f)
{
    struct job *j;
    struct job *next;
    HASH_ITER(hh, f->jobs, j, next)
    {
        HASH_DEL(f->jobs, j);
        if (!job_ended(j)) {
            queue_remove(f, j);
            j->retained = false;
            f->job_count--;
        }
        hazard_forget(j);
        job_destroy(j);
    }
}

void pipeline_finish(struct front *f)
{
    struct session *s;
    struct session *next;
    HASH_CLEAR(hh_pipe, f->by_pipe);
    HASH_ITER(hh, f->sessions, s, next)
    {
        HASH_DEL(f->sessions, s);
        session_destroy(s);
    }
    free_jobs(f);
    picture_finish_all(f);
    reload_finish(f);
    uint32_t cursor = 0;
    struct buffer *b;
    while ((b = idmap_next(&f->buffers, &cursor, NULL)) != NULL) {
        buffer_destroy(b);
    }
    cursor = 0;
    struct arena *a;
    while ((a = idmap_next(&f->arenas, &cursor, NULL)) != NULL) {
        arena_destroy(a);
    }
    cursor = 0;
    struct program *p;
    while ((p = idmap_next(&f->programs, &cursor, NULL)) != NULL) {
        program_unref(p);
    }
    building_finish(f);
    monitor_finish(&f->monitor);
    for (unsigned i = 0; i < f->device_count; i++) {
        device_staging_finish(f->device[i]);
        free(f->device[i]);
    }
    tenant_destroy_all(&f->tenants);
    tenant_rules_finish(&f->rules);
    idmap_finish(&f->buffers);
    idmap_finish(&f->arenas);
    idmap_finish(&f->programs);
    idmap_finish(&f->modules);
    idmap_finish(&f->kernels);
    spare_finish(&f->spare_jobs);
    spare_finish(&f->spare_ops);
}
