/* Routes the launcher's reports to workers, compilers and the monitor. */
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/modules/compiler.h"
#include "daemon/front/pipeline_int.h"
#include "daemon/front/workers/departing.h"
#include "daemon/front/workers/keep.h"
#include "daemon/front/workers/launcher_link.h"
#include "daemon/front/workers/worker.h"

#define REPLACE_TRIES    50u
#define REPLACE_PAUSE_NS (20 * NS_PER_MS)
#define REPLACE_NS       (10 * NS_PER_S)

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

static void on_inventory(void *data, const struct launcher_inventory *inventory)
{
    adopt_worker(data, inventory);
}

static void on_kept(void *data, uint64_t id, int fd)
{
    keep_found(data, id, fd);
}

static void on_listed(void *data, uint64_t count)
{
    struct front *f = data;
    (void)count;
    if (!f->listed) {
        discover_start(f);
    } else { /* the same launcher again: its copies were given up with its workers */
        keep_settle(f);
    }
}

static void on_vacated(void *data, uint64_t id, uint64_t left)
{
    draining_vacated(data, id, left);
}

/* Workers and compilers of the lost launcher are given up. The timer starts a new launcher
 * (pipeline_start_anew), because then no callback of the link is on the stack. */
static void on_launcher_lost(void *data, const struct err *e)
{
    struct front *f = data;
    if (!front_life_stops(f->life)) {
        log_say(LOG_LAUNCHER_LOST, "the launcher ended, and all workers with it: %s", e->text);
        (void)snprintf(f->fault_text, sizeof f->fault_text, "the launcher was lost: %s", e->text);
        f->fault_device = NULL;
        f->launcher_lost = true;
        wake_at(f, front_now(f));
    }
}

static const struct launcher_callbacks launcher_callbacks = {.started = on_started,
                                                             .ended = on_ended,
                                                             .kept = on_kept,
                                                             .inventory = on_inventory,
                                                             .listed = on_listed,
                                                             .vacated = on_vacated,
                                                             .lost = on_launcher_lost};

static int open_launcher(struct front *f, struct err *e)
{
    struct launcher_options options = {.runtime_dir = f->config.runtime_dir,
                                       .start = !f->supervised};
    int rc =
        launcher_link_open(f->loop, &options, f->build, &launcher_callbacks, f, &f->launcher, e);
    if (rc == 0) {
        f->lineage = launcher_lineage(f->launcher);
        f->worker_uid = launcher_worker_uid(f->launcher);
        f->worker_gid = launcher_worker_gid(f->launcher);
        f->copies_max = launcher_copies(f->launcher);
    }
    return rc;
}

/* Connects to another launcher. A launcher that is ending may still have its lock, and accept; a
 * later try finds its successor. Blocks for at least 20 ms after each failure, 50 times, but begins
 * no try after REPLACE_NS: nothing could be served meanwhile, no signal either. */
static int replace_launcher(struct front *f, struct err *e)
{
    const struct timespec pause = {.tv_nsec = (long)REPLACE_PAUSE_NS};
    uint64_t until_ns = ns_add(clock_now_ns(), REPLACE_NS);
    int rc = open_launcher(f, e);
    for (unsigned i = 0; rc != 0 && i < REPLACE_TRIES && clock_now_ns() < until_ns; i++) {
        (void)nanosleep(&pause, NULL);
        rc = open_launcher(f, e);
    }
    return rc;
}

/* The workers of a launcher that ended count as ended. */
void pipeline_start_anew(struct front *f)
{
    struct err e = ERR_INIT;
    f->launcher_lost = false;
    monitor_orphaned(f);
    compiler_relink(f->compiler, NULL);
    launcher_link_close(f->launcher);
    f->launcher = NULL;
    struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        worker_orphaned(f, d);
    }
    departing_orphaned(f);
    keep_orphaned(f);
    int rc = replace_launcher(f, &e);
    if (rc == 0) {
        /* workers that it lists were given up with the former launcher, and are ended */
        rc = launcher_list(f->launcher, &e);
    }
    if (rc != 0) {
        log_say(LOG_START_FAILED, "%s", e.text);
        f->exit_code = 1;
        pipeline_stop(f);
        return;
    }
    compiler_relink(f->compiler, f->launcher);
    log_say(LOG_LAUNCHER_BACK, "a new launcher runs; devices are opened again");
}

int pipeline_start_launcher(struct front *f, struct err *e)
{
    int rc = open_launcher(f, e);
    if (rc != 0) {
        return rc;
    }
    struct compiler_options compile = {
        .cache_dir = f->config.cache_dir,
        .build = f->build,
        .parallel = 3,
        .owner_parallel = 2,
        .queue_max = 256,
        .owner_queue_max = 192,
        .limits = {.cpu_s = f->config.compile_cpu_s,
                   .memory = f->config.compile_memory_bytes,
                   .wall_ns = f->config.compile_wall_ms * NS_PER_MS},
    };
    rc = compiler_create(f->loop, f->launcher, &compile, &f->compiler, e);
    if (rc == 0 && compiler_cache_error(f->compiler) != NULL) {
        log_say(LOG_CACHE_BAD, "no kernel cache, so each start compiles kernels anew: %s",
                compiler_cache_error(f->compiler)->text);
    }
    return rc != 0 ? rc : launcher_list(f->launcher, e);
}
