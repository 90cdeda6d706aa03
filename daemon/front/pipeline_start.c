/* How the process begins: launcher, adoption of workers, then the sockets of clients. */
#include <stdio.h>

#include "common/clock.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/hold_file.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/metrics/metrics.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/record/record.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/tenants/forecast_file.h"
#include "daemon/front/views/access_log.h"
#include "daemon/front/workers/worker.h"
#include "daemon/front/workers/worker_end.h"

#define LANE_BATCH  32u /* requests of one ring before other rings get their turn */
#define ADOPTION_NS (5 * NS_PER_S)

/* ---- clients --------------------------------------------------------------------------------- */

static int start_listener(struct front *f, struct err *e)
{
    struct listener_options options = {.connections_max = (unsigned)f->config.connections_max,
                                       .connections_reserved = KEEPERS_RESERVE,
                                       .handshake_ns = f->config.handshake_timeout_ms * NS_PER_MS,
                                       .ipc_mode = 0660};
    pipeline_request_limits(&f->config, &options);
    int rc = listener_create(f->loop, &options, &pipeline_requests, f, &f->listener, e);
    if (rc == 0) {
        listener_set_keepers(f->listener, &f->rights.admins);
    }
    rc = rc == 0 ? pipeline_tls(f, e) : rc;
    for (unsigned i = 0; rc == 0 && i < f->config.listen_count; i++) {
        rc = pipeline_waits_for_tls(f, i) ? 0 : listener_add(f->listener, f->config.listen[i], e);
    }
    if (rc == 0) {
        pipeline_sockets(f);
    }
    return rc;
}

static int start_shm(struct front *f, struct err *e)
{
    char path[CONFIG_PATH + 16];
    (void)snprintf(path, sizeof path, "%s/" CONFIG_SHM, f->config.runtime_dir);
    return shm_create(f->loop, path, &shm_defaults, &f->shm, e);
}

static int start_lanes(struct front *f, struct err *e)
{
    struct lanes_options options = {.batch = LANE_BATCH,
                                    .spin_ns = f->config.ring_spin_us * NS_PER_US};
    return lanes_create(f->loop, &options, &pipeline_ring_requests, f, &f->lanes, e);
}

static void on_process_ended(void *data, void *session)
{
    session_process_ended(data, session);
}

/* ---- start ----------------------------------------------------------------------------------- */

/* Whether adopted workers have yet to report. Clients are served only afterwards. A worker that
 * does not report in time is ended, so that its jobs do not run twice. */
static bool adopting(const struct front *f)
{
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (d->state == DEVICE_ADOPTING) {
            return true;
        }
    }
    return !f->listed;
}

/* Does the next front adopt the workers? */
static bool leaves_them(const struct front *f)
{
    return front_life_stops(f->life) || f->unadopted;
}

uint64_t pipeline_adopts_until(const struct front *f, uint64_t began_ns)
{
    uint64_t until = ns_add(began_ns + ADOPTION_NS, f->stood_ns);
    return adopting(f) && front_now(f) < until && !leaves_them(f) ? until : 0;
}

static void await_adoption(struct front *f)
{
    uint64_t began = front_now(f);
    for (uint64_t until; (until = pipeline_adopts_until(f, began)) != 0;) {
        wake_at(f, until);
        (void)uv_run(f->loop, UV_RUN_ONCE);
    }
    if (leaves_them(f)) {
        return;
    }
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        if (d->state == DEVICE_ADOPTING) {
            static const char why[] = "it did not report its inventory in time";
            worker_end(f, d, NULL, why);
            adopt_lost(f, d, why);
        }
    }
}

/* A start that lacks memory for jobs of the former front fails, and the next start tries again: a
 * job that this front does not know would run twice. */
static int adopt_all(struct front *f, struct err *e)
{
    await_adoption(f);
    if (front_life_stops(f->life)) {
        return 0;
    }
    if (f->unadopted) {
        return err_set(e, ERR_NOMEM,
                       "no memory for jobs of the former gpud, which might run twice");
    }
    adopt_over(f);
    f->work.most = 0; /* turns before the first client do not count */
    return 0;
}

/* If a signal has stopped the front meanwhile, there are no clients to serve. */
static int start_clients(struct front *f, struct err *e)
{
    int rc = front_life_stops(f->life) ? 0 : start_shm(f, e);
    if (rc == 0 && f->record_file != NULL) {
        rc = record_start_file(f, f->record_file, f->record_file_data, e);
    }
    return rc == 0 && !front_life_stops(f->life) ? start_listener(f, e) : rc;
}

int pipeline_start(struct front *f, struct err *e)
{
    pipeline_init(f);
    forecast_file_read(f->config.cache_dir, &f->forecasts);
    int rc = monitor_create(&f->monitor, e);
    rc = rc == 0 ? hold_file_create(&f->holds, e) : rc;
    rc = rc == 0 ? access_log_create(&f->access, e) : rc;
    if (rc == 0) {
        access_log_set(f->access, f->config.access);
        rc = metrics_create(f, &f->metrics, e);
    }
    if (rc == 0) {
        pipeline_metrics(f);
    }
    rc = rc == 0 ? start_lanes(f, e) : rc;
    rc = rc == 0 ? processes_create(f->loop, on_process_ended, f, &f->processes, e) : rc;
    rc = rc == 0 ? building_init(f, e) : rc;
    rc = rc == 0 ? pipeline_start_launcher(f, e) : rc;
    rc = rc == 0 ? adopt_all(f, e) : rc;
    return rc == 0 ? start_clients(f, e) : rc;
}
