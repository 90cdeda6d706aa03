/* How the process ends: draining, handing over, stopping, and freeing everything. */
#include <stdlib.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/lane.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/clients/sockets.h"
#include "daemon/front/devices/hold_file.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/ending.h"
#include "daemon/front/memory/variable.h"
#include "daemon/front/metrics/metrics.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/record/record.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/reload.h"
#include "daemon/front/sched/drain.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/tenants/forecast_file.h"
#include "daemon/front/views/access_log.h"
#include "daemon/front/views/notify.h"
#include "daemon/front/views/snapshot.h"
#include "daemon/front/views/table_query.h"
#include "daemon/front/views/trace.h"
#include "daemon/front/workers/keep.h"
#include "daemon/front/workers/worker.h"

#define LAST_ANSWERS_NS NS_PER_S
#define STOP_S          10u
#define READING_S       1u
#define DRAIN_CHECK_NS  (20 * NS_PER_MS) /* between two checks while the front drains */

/* ---- the time to end ----------------------------------------------------------------------- */

/* Whether draining is over. The last answers get LAST_ANSWERS_NS to reach their clients, which
 * cannot ask again afterwards. */
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

static void hand_over(struct front *f, unsigned orphans, unsigned stranded)
{
    if (stranded > 0) {
        log_say(LOG_JOBS_LEFT,
                "dropping %u detached jobs of clients that left: no device can run them soon",
                stranded);
    }
    if (orphans > 0) {
        log_say(LOG_JOBS_LEFT, "%u detached jobs of clients that left were not waited for",
                orphans);
    }
    log_say(LOG_ENDING, "handing over to the next front: %u jobs are unfinished", f->job_count);
    pipeline_stop(f);
}

static void watch_hand_over(struct front *f, uint64_t now)
{
    unsigned stranded = 0;
    unsigned orphans = drain_orphans(f, &stranded);
    if (orphans == 0 || now >= f->drain_until_ns) {
        hand_over(f, orphans, stranded);
    } else {
        wake_at(f, ns_add(now, DRAIN_CHECK_NS));
    }
}

void pipeline_watch_end(struct front *f, uint64_t now)
{
    if (f->life == FRONT_HANDING_OVER) {
        watch_hand_over(f, now);
    } else if (f->life == FRONT_ENDING && drained(f, now)) {
        pipeline_stop(f);
    } else if (f->life == FRONT_ENDING) {
        wake_at(f, ns_add(now, DRAIN_CHECK_NS));
    }
}

/* ---- requests to end ----------------------------------------------------------------------- */

void pipeline_drain(struct front *f)
{
    if (f->life >= FRONT_ENDING) { /* the second request */
        pipeline_stop(f);
        return;
    }
    front_life_step(&f->life, FRONT_ENDING);
    wake_at(f, front_now(f));
    f->drain_until_ns = drain_until(f, front_now(f));
    log_say(LOG_ENDING, "draining: %u jobs are unfinished", f->job_count);
    notify_stopping();
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        (void)session_notice(s, f->config.tenant_notices_max, NOTICE_DRAINING, 0);
        session_send_events(f, s, front_now(f));
    }
}

void pipeline_hand_over(struct front *f)
{
    if (front_life_stops(f->life)) {
        return;
    }
    unsigned stranded = 0;
    unsigned orphans = drain_orphans(f, &stranded);
    bool now = f->life >= FRONT_HANDING_OVER; /* the second request */
    front_life_step(&f->life, FRONT_HANDING_OVER);
    notify_stopping();
    if (now || orphans == 0) {
        hand_over(f, orphans, stranded);
        return;
    }
    f->drain_until_ns = drain_until(f, front_now(f));
    wake_at(f, front_now(f));
    log_say(LOG_ENDING,
            "handing over once workers have accepted %u detached jobs of clients that left",
            orphans);
}

/* ---- the end ------------------------------------------------------------------------------- */

static void stop_lanes(struct front *f)
{
    for (struct session *s = f->sessions; s != NULL; s = s->hh.next) {
        lane_close(s->lane);
    }
    lanes_destroy(f->lanes);
    f->lanes = NULL;
}

static void on_listener_closed(void *data)
{
    struct front *f = data;
    listener_destroy(f->listener);
    f->listener = NULL;
    if (reload_under_way(f)) { /* its result is not needed */
        ending_within(f, READING_S, "reading the settings");
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
    if (front_life_stops(f->life)) {
        return;
    }
    if (f->life == FRONT_ENDING && f->job_count > 0) {
        log_say(LOG_JOBS_LEFT, "ending with %u unfinished %s", f->job_count,
                f->job_count == 1 ? "job" : "jobs");
    }
    bool handing_over = f->life == FRONT_HANDING_OVER;
    front_life_step(&f->life, handing_over ? FRONT_LEAVING : FRONT_STOPPING);
    ending_within(f, STOP_S, "closing connections"); /* NNG's threads close them */
    close_handle((uv_handle_t *)&f->timer);
    close_handle((uv_handle_t *)&f->arm);
    close_handle((uv_handle_t *)&f->kick_idle);
    close_handle((uv_handle_t *)&f->kick_check);
    close_handle((uv_handle_t *)&f->sigterm);
    close_handle((uv_handle_t *)&f->sigint);
    close_handle((uv_handle_t *)&f->sighup);
    close_handle((uv_handle_t *)&f->sigusr1);
    metrics_stop(f->metrics);
    stop_lanes(f);
    processes_destroy(f->processes);
    f->processes = NULL;
    shm_destroy(f->shm);
    f->shm = NULL;
    sockets_destroy(f->sockets);
    f->sockets = NULL;
    compiler_destroy(f->compiler);
    f->compiler = NULL;
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        worker_detach(d);
    }
    if (f->launcher != NULL && !f->supervised && !handing_over) {
        (void)launcher_quit(f->launcher, NULL);
    }
    if (f->launcher != NULL) {
        f->io.leave_launcher(f->launcher);
        f->launcher = NULL;
    }
    if (f->listener != NULL) {
        listener_close(f->listener, on_listener_closed, f);
    }
}

static void free_buffers(struct front *f)
{
    uint32_t cursor = 0;
    struct buffer *b;
    while ((b = idmap_next(&f->buffers, &cursor, NULL)) != NULL) {
        variable_remove(b->variable);
        buffer_destroy(b);
    }
}

static void free_sessions(struct front *f)
{
    struct session *s;
    struct session *next;
    HASH_CLEAR(hh_pipe, f->by_pipe);
    HASH_ITER(hh, f->sessions, s, next)
    {
        HASH_DEL(f->sessions, s);
        session_destroy(s);
    }
    while (f->ending != NULL) {
        s = f->ending;
        f->ending = s->ending_next;
        session_destroy(s);
    }
}

static void free_jobs(struct front *f)
{
    struct job *j;
    struct job *next;
    for (; f->leaving != NULL; f->leaving = f->leaving->ended_next) {
        f->job_count--;
    }
    HASH_ITER(hh, f->jobs, j, next)
    {
        HASH_DEL(f->jobs, j);
        job_part(j);
        if (!job_ended(j)) {
            queue_remove(f, j);
            f->job_count--;
        }
        hazard_forget(&f->hazards, j);
        job_destroy(j);
    }
}

void pipeline_finish(struct front *f)
{
    forecast_file_write(f->forecasts, f->tenants, f->config.cache_dir);
    forecast_file_destroy(f->forecasts);
    table_queries_cancel(f, NULL);
    trace_finish_all(f);
    record_finish(f);
    keep_finish(f);
    free_jobs(f);
    free_buffers(f); /* before sessions, to which buffers point */
    free_sessions(f);
    snapshot_finish_all(f);
    reload_finish(f);
    uint32_t cursor = 0;
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
    monitor_destroy(f->monitor);
    hold_file_destroy(f->holds);
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        worker_forget(d);
    }
    for (struct tenant *t = f->tenants; t != NULL; t = t->hh.next) {
        accounts_release(f->accounts, t, front_now(f));
    }
    metrics_free(f->metrics);
    f->metrics = NULL;
    access_log_destroy(f->access);
    f->access = NULL;
    accounts_destroy(f->accounts, front_now(f));
    f->accounts = NULL;
    tenant_destroy_all(&f->tenants); /* leave the lines of devices */
    tenant_destroy_all(&f->spare);
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        line_finish(&d->line);
        free(d);
    }
    tenant_rules_finish(&f->rules);
    tls_files_finish(&f->tls);
    idmap_finish(&f->buffers);
    idmap_finish(&f->arenas);
    idmap_finish(&f->programs);
    idmap_finish(&f->modules);
    idmap_finish(&f->kernels);
    freelist_finish(&f->job_freelist);
    freelist_finish(&f->op_freelist);
}
