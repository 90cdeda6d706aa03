#include <signal.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/clients/shm.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/model/due.h"
#include "daemon/front/modules/building.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/requests/standing.h"
#include "daemon/front/workers/command.h"
#include "daemon/front/workers/worker.h"

#define UNREAD           (256ull * 1024 * 1024) /* bytes of answers of a connection, at least */
#define LANE_BATCH       32u /* requests of one ring before others get their turn */
#define ADOPTION_NS      (5 * NS_PER_S)
#define REPLACE_TRIES    50u
#define REPLACE_PAUSE_NS (20 * NS_PER_MS)

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

static void on_held(void *data, const struct launcher_held *held)
{
    adopt_worker(data, held);
}

static void on_listed(void *data, uint64_t count)
{
    struct front *f = data;
    (void)count;
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

static int open_launcher(struct front *f, struct err *e)
{
    struct launcher_options options = {.runtime_dir = f->config.runtime_dir,
                                       .start = !f->supervised};
    int rc =
        launcher_link_open(f->loop, &options, f->build, &launcher_callbacks, f, &f->launcher, e);
    if (rc == 0) {
        f->worker_uid = launcher_worker_uid(f->launcher);
    }
    return rc;
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
void pipeline_start_anew(struct front *f)
{
    struct err e = ERR_INIT;
    f->launcher_lost = false;
    monitor_orphaned(f);
    compiler_relink(f->compiler, NULL);
    launcher_link_close(f->launcher);
    f->launcher = NULL;
    for (unsigned i = 0; i < f->device_count; i++) {
        worker_orphaned(f, f->device[i]);
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

/* ---- clients --------------------------------------------------------------------------------- */

/* Each session has a WAIT that is not answered, each job its request: what is admitted finds a
 * slot. */
static unsigned requests_max(const struct config *c, unsigned *ret_pipe_requests)
{
    uint64_t all = c->sessions_max + c->queue_max + REQUESTS_SPARE;
    *ret_pipe_requests = (unsigned)config_requests_max(c);
    return (unsigned)(all < LISTENER_REQUESTS_MAX ? all : LISTENER_REQUESTS_MAX);
}

/* More than a session's kept answers: a slow client loses none of those that it may ask for again.
 */
static uint64_t unread_max(const struct config *c)
{
    return c->keep_results_bytes > UNREAD / 2 ? 2 * c->keep_results_bytes : UNREAD;
}

void pipeline_settings(struct front *f)
{
    unsigned pipe_requests = 0;
    unsigned all = requests_max(&f->config, &pipe_requests);
    if (f->listener != NULL) {
        listener_set_limits(f->listener, all, pipe_requests, unread_max(&f->config));
        listener_set_keepers(f->listener, &f->rights.admins);
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        command_coalesce(f->device[i], f->config.coalesce_window_us * NS_PER_US);
        command_spill(f, f->device[i]);
    }
}

static int start_listener(struct front *f, struct err *e)
{
    unsigned pipe_requests = 0;
    struct listener_options options = {.requests_max = requests_max(&f->config, &pipe_requests),
                                       .connections_max = (unsigned)f->config.connections_max,
                                       .connections_spare = KEEPERS_SPARE,
                                       .handshake_ns = f->config.handshake_timeout_ms * NS_PER_MS,
                                       .ipc_mode = 0660};
    options.pipe_requests_max = pipe_requests;
    options.unread_max = unread_max(&f->config);
    int rc = listener_create(f->loop, &options, &pipeline_requests, f, &f->listener, e);
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
    struct lanes_options options = {.batch = LANE_BATCH,
                                    .spin_ns = f->config.ring_spin_us * NS_PER_US};
    return lanes_create(f->loop, &options, &pipeline_ring_requests, f, &f->lanes, e);
}

static void on_process_ended(void *data, void *session)
{
    standing_process_ended(data, session);
}

/* ---- start ----------------------------------------------------------------------------------- */

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

int pipeline_start(struct front *f, struct err *e)
{
    pipeline_init(f);
    int rc = monitor_create(&f->monitor, e);
    if (rc == 0) {
        rc = start_lanes(f, e);
    }
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
        adopt_over(f);
        f->work.most = 0;                       /* those turns held up nobody */
        rc = f->stopping ? 0 : start_shm(f, e); /* told to end meanwhile: nobody is to be served */
    }
    if (rc == 0 && !f->stopping) {
        rc = start_listener(f, e);
    }
    return rc;
}
