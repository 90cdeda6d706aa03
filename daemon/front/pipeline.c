/* The hooks between rooms, the work of each turn of the loop, and the timer. */
#include "daemon/front/pipeline_int.h"

#include <inttypes.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/housekeeping.h"
#include "daemon/front/memory/arenas.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/memory/moves.h"
#include "daemon/front/memory/settle.h"
#include "daemon/front/metrics/metrics.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/record/record.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/intake.h"
#include "daemon/front/requests/job_answer.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/requests/sweep.h"
#include "daemon/front/sched/cap.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/dispatch.h"
#include "daemon/front/sched/gate.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/turns.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/tenants/forget.h"
#include "daemon/front/tenants/leases.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/access_log.h"
#include "daemon/front/views/certificate.h"
#include "daemon/front/views/diagnosis.h"
#include "daemon/front/views/notify.h"
#include "daemon/front/views/snapshot.h"
#include "daemon/front/views/table_query.h"
#include "daemon/front/views/trace.h"
#include "daemon/front/workers/beater.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/launcher_link.h"
#include "daemon/front/workers/link.h"
#include "daemon/front/workers/worker.h"

#define START_NS        (120 * NS_PER_S) /* by which a start is extended while devices open */
#define START_MARGIN_NS (30 * NS_PER_S)  /* time to end after start_timeout_s */

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
    intake_acked(data, o);
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
    session_disconnected(data, pipe);
}

static uint64_t *on_rounds(const struct session *s)
{
    return &s->tenant->lane_round;
}

static bool on_more(void *data, bool first)
{
    struct front *f = data;
    if (first) {
        turn_allow(f, TURN_SHARE);
    }
    return turn_has_room(f);
}

const struct listener_callbacks pipeline_requests = {
    .request = on_request, .closed = on_closed, .more = on_more};

const struct lanes_callbacks pipeline_ring_requests = {.request = on_ring_request,
                                                       .acked = on_taken,
                                                       .closed = on_lane_closed,
                                                       .more = on_more,
                                                       .rounds = on_rounds};

/* ---- jobs --------------------------------------------------------------------------------- */

static void on_job_admitted(struct front *f, struct job *j)
{
    if (f->traces != NULL) {
        trace_admitted(f, j);
    }
    record_job(f, j);
}

static void on_job_answered(struct front *f, struct job *j)
{
    if (j->session != NULL && (j->op != NULL || j->async)) {
        job_answer(f, j);
    }
}

static void on_job_ended(struct front *f, struct job *j)
{
    if (f->watchers > 0) {
        if (f->traces != NULL) {
            trace_ended(f, j);
        }
        record_job_ended(f, j);
    }
    if (f->access != NULL) {
        access_log_job(f->access, j);
    }
    metrics_job(f->metrics, j);
    if (j->origin == ORIGIN_PROBE) {
        discover_probed(f, j->device, j);
    } else if (j->answer == ANSWER_OPEN) {
        on_job_answered(f, j);
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

static void on_device_added(struct front *f)
{
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        command_spill(f, d);
    }
}

static bool on_worker_opened(struct front *f, struct device *d)
{
    command_spill(f, d);
    command_coalesce(d, f->config.coalesce_window_us * NS_PER_US);
    module_begin_waiting(f);
    return quota_open(f, d);
}

static bool one_comes(const struct front *f)
{
    bool comes = false;
    for (unsigned i = 0; i < f->device_count && !comes; i++) {
        comes = device_coming(f->device[i]);
    }
    return comes;
}

/* Drained devices must not fail a start: without them the daemon is up, though not ready, when no
 * other device may serve soon. */
static bool is_up(const struct front *f)
{
    bool rest = discover_serving(f) + draining_count(f) >= f->config.min_devices;
    return diagnosis_serves(f) || (rest && !one_comes(f));
}

static void on_device_changed(struct front *f, struct device *d)
{
    if (d->owner == NULL) {
        monitor_wake(f, d);
    }
    module_begin_waiting(f);
    unsigned serving = discover_serving(f);
    if (!f->ready_reported && is_up(f)) {
        f->ready_reported = true;
        log_say(LOG_READY, "ready: %u device%s", serving, serving == 1 ? "" : "s");
        notify_ready(serving);
    }
    notify_status(f);
}

static void on_worker_lost(struct front *f, struct device *d, bool external, const char *why)
{
    building_device_lost(f, d);
    completion_lost(f, d, external, why);
    adopt_lost(f, d, why);
    buffer_device_lost(f, d);
    arena_device_lost(f, d);
    snapshot_device_lost(f, d);
    domain_lost(f, d);
}

/* ---- operators ------------------------------------------------------------------------------ */

static void on_entry_removed(struct front *f, const void *entry, const void *next)
{
    table_queries_skip(f, entry, next);
    metrics_skip(f->metrics, entry, next);
}

/* ---- the end of a turn -------------------------------------------------------------------- */

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* does nothing: an active idle handle keeps the loop from sleeping */
}

/* Does postponed work, as far as this turn has units. In most turns there is none. */
static void work_turn(struct front *f)
{
    turn_allow(f, TURN_SHARE);
    job_leave_some(f);
    queue_turn(f);
    queue_awaiting_turn(f);
    if (f->sweeping != NULL) {
        sweep_some(f);
    }
    turn_allow(f, TURN_SHARE);
    if (f->losing > 0) {
        buffer_lose_some(f);
    }
    turn_allow(f, TURN_SHARE);
    if (f->table_queries != NULL) {
        table_queries_run(f);
    }
    turn_allow(f, TURN_SHARE); /* tables must not keep scrapers waiting */
    metrics_turn(f->metrics);
    if (f->ending != NULL) {
        session_end_some(f);
    }
    if (f->records_pending != NULL) {
        command_records(f);
    }
}

static void count_turn(struct front *f)
{
    f->work.most = f->work.done > f->work.most ? f->work.done : f->work.most;
    f->work.done = 0;
    turn_allow(f, TURN_SHARE);
}

static void on_check(uv_check_t *check)
{
    struct front *f = check->data;
    turn_begin(f);
    lanes_turn(f->lanes);
    if (f->kicked || f->ending != NULL || f->records_pending != NULL || f->sweeping != NULL ||
        f->table_queries != NULL) {
        f->kicked = false;
        (void)uv_idle_stop(&f->kick_idle);
        job_forget_history(f, HISTORY_MAX);
        if (f->parked.ended || f->parked.next != NULL) {
            turn_allow(f, TURN_SHARE);
            intake_room(f);
        }
        if (f->early_due != NULL) {
            turn_allow(f, TURN_SHARE);
            intake_go_on(f);
        }
        work_turn(f);
        turn_allow(f, TURN_SHARE);
        dispatch_all(f);
    }
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        link_flush(d->link); /* workers first, as clients wait for them */
    }
    lanes_flush(f->lanes);
    count_turn(f);
    turn_end(f);
}

static void kick(struct front *f)
{
    if (!f->kicked && !uv_is_closing((uv_handle_t *)&f->kick_idle)) {
        f->kicked = true;
        (void)uv_idle_start(&f->kick_idle, on_idle);
    }
}

/* ---- time ------------------------------------------------------------------------------------ */

static void watch_dog(struct front *f, uint64_t now)
{
    if (now >= f->watchdog_ns) {
        notify_watchdog();
        f->watchdog_ns = ns_add(now, notify_watchdog_period());
    }
    wake_at(f, f->watchdog_ns);
}

/* A start may take long while devices open, but must not hang, because the boot waits for it. After
 * start_timeout_s this process fails and hands over: the service manager starts another, which
 * adopts the workers. */
static void watch_start(struct front *f, uint64_t now)
{
    char why[ERR_TEXT_MAX + 128];
    if (f->ready_reported || f->life > FRONT_DRAINING) {
        return;
    }
    uint64_t until = ns_add(f->started_ns, f->config.start_timeout_s * NS_PER_S);
    bool opening = discover_opening(f);
    if (!opening && now >= until && notify_expected()) {
        diagnosis_text(f, why, sizeof why);
        log_say(LOG_START_FAILED, "not ready within start_timeout_s = %" PRIu64 ": %s",
                f->config.start_timeout_s, why);
        notify_status(f);
        f->exit_code = EXIT_FAILURE;
        pipeline_hand_over(f);
        return;
    }
    if (now >= f->starting_ns) {
        uint64_t rest = until > now ? until - now : 0;
        notify_starting(ns_add(rest, opening ? START_NS : START_MARGIN_NS));
        f->starting_ns = ns_add(now, START_NS / 4);
    }
    wake_at(f, now < until && until < f->starting_ns ? until : f->starting_ns);
}

static void beat(struct front *f, uint64_t now)
{
    if (f->accounts != NULL) {
        wake_at(f, accounts_beat(f->accounts, now));
    }
}

/* The process may stand still anywhere, and twice before the timer's work is done. */
static void count_away(struct front *f, uint64_t now)
{
    uint64_t still_ns = wake_still_ns(f, now);
    f->away_ns += still_ns;
    f->stood_ns += still_ns;
}

void pipeline_wake(struct front *f)
{
    uint64_t now = front_now(f);
    count_away(f, now);
    f->armed_ns = NS_NEVER;
    f->awake_ns = f->alive_ns = now; /* on_arm follows */
    if (now < f->wake_ns) {
        return; /* on_arm sets the timer again */
    }
    uint64_t away_ns = f->away_ns;
    bool away = away_ns > 0;
    f->away_ns = 0;
    f->wake_ns = NS_NEVER;
    turn_allow(f, TURN_SHARE);
    if (f->launcher_lost) {
        pipeline_start_anew(f);
    }
    if (front_life_stops(f->life)) {
        return;
    }
    if (f->pressed) { /* a worker that reads again may have nothing to report */
        f->pressed = false;
        kick(f);
    }
    draining_watch(f, now); /* before a worker of a drained device starts again */
    worker_watch(f, now, away_ns);
    turns_watch(f, now, away);
    domains_watch(f, now);
    leases_watch(f, now);
    discover_watch(f, now);
    buffer_restore_watch(f);
    monitor_watch(f, now, away);
    housekeeping_expire(f, now);
    gates_watch(f, now);
    caps_watch(f, now);
    if (away) {
        sessions_stood_still(f, now, away_ns);
    }
    sessions_watch(f, now);
    intake_room(f);
    snapshot_watch(f, now);
    trace_watch(f, now);
    if (certificate_watch(f, now)) {
        notify_status(f);
    }
    housekeeping(f, now);
    forget_tenants(f, now);
    beat(f, now);
    watch_dog(f, now);
    watch_start(f, now);
    pipeline_watch_end(f, now);
}

static void on_due(uv_timer_t *timer)
{
    pipeline_wake(timer->data);
}

/* Runs in each turn, before the loop sleeps. */
static void on_arm(uv_prepare_t *prepare)
{
    struct front *f = prepare->data;
    lanes_flush(f->lanes); /* for answers that the timer's work has sent */
    if (f->wake_ns == f->armed_ns || front_life_stops(f->life)) {
        f->awake_ns = f->armed_ns; /* if nothing is due, the loop may sleep for ever */
        return;
    }
    uint64_t now = front_now(f);
    count_away(f, now);
    f->alive_ns = now;
    if (f->wake_ns < now) { /* work is overdue */
        f->wake_ns = now;
    }
    f->armed_ns = f->awake_ns = f->wake_ns;
    if (f->wake_ns == NS_NEVER) {
        (void)uv_timer_stop(&f->timer);
        return;
    }
    uint64_t ms = (f->wake_ns - now + NS_PER_MS - 1) / NS_PER_MS;
    uv_update_time(f->loop); /* the timer counts from the updated time */
    (void)uv_timer_start(&f->timer, on_due, ms, 0);
}

/* ---- how the stages are tied together -------------------------------------------------------- */

static void set_hooks(struct front *f)
{
    f->hooks = (struct front_hooks){
        .job_admitted = on_job_admitted,
        .job_ended = on_job_ended,
        .job_answered = on_job_answered,
        .job_left = memory_job_left,
        .job_answer_early = job_answer_early,
        .job_late = job_late,
        .buffer_freed = record_buffer_freed,
        .entry_removed = on_entry_removed,
        .kick = kick,
        .module_need = building_need,
        .buffer_need = move_need,
        .module_build_done = module_answered,
        .module_settled = buffer_module_settled,
        .device_added = on_device_added,
        .device_changed = on_device_changed,
        .settings_changed = pipeline_settings,
        .device_given_up = discover_given_up,
        .worker_takes = buffer_device_ready,
        .worker_lost = on_worker_lost,
        .worker_done = completion_done,
        .worker_buffer = buffer_answered,
        .worker_exported = buffer_exported,
        .worker_arena = arena_mapped,
        .worker_module = building_loaded,
        .worker_tenant = quota_reported,
        .worker_tenant_refused = quota_refused,
        .worker_budget = quota_budget,
        .worker_ready = discover_ready,
        .worker_opened = on_worker_opened,
        .guarantees_retry = quota_retry,
        .budget_changed = quota_granted,
        .device_removed = snapshot_device_removed,
        .worker_siblings = discover_siblings,
        .worker_absent = discover_absent,
        .inventory_buffer = adopt_buffer,
        .inventory_module = building_adopt_module,
        .inventory_job = adopt_job,
        .inventory_end = adopt_end,
        .sessions_notify = sessions_send_events,
        .snapshot = snapshot_received,
    };
}

void pipeline_io(struct front *f)
{
    f->io = (struct front_io){
        .now_ns = clock_now_ns,
        .reply = listener_reply,
        .drop = listener_drop,
        .identified = listener_identified,
        .close_pipe = listener_close_pipe,
        .send = link_send,
        .pressed = link_pressed,
        .unread = link_unread,
        .look = beater_look,
        .start_worker = launcher_worker,
        .name_worker = launcher_device,
        .start_monitor = launcher_monitor,
        .kill = launcher_kill,
        .keep = launcher_keep,
        .release = launcher_release,
        .vacate = launcher_vacate,
        .leave_launcher = launcher_link_close,
        .compile = compiler_start,
    };
}

void pipeline_init(struct front *f)
{
    set_hooks(f);
    (void)uv_idle_init(f->loop, &f->kick_idle); /* cannot fail */
    (void)uv_check_init(f->loop, &f->kick_check);
    (void)uv_timer_init(f->loop, &f->timer);
    (void)uv_prepare_init(f->loop, &f->arm);
    f->kick_check.data = f;
    f->timer.data = f;
    f->arm.data = f;
    f->wake_ns = 0; /* the first wake comes at once */
    f->awake_ns = NS_NEVER;
    turn_allow(f, TURN_SHARE);
    f->armed_ns = NS_NEVER;
    f->watchdog_ns = ns_add(front_now(f), notify_watchdog_period());
    (void)uv_check_start(&f->kick_check, on_check);
    (void)uv_prepare_start(&f->arm, on_arm);
}
