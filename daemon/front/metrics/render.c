#include "daemon/front/metrics/render.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "build.h"
#include "common/err.h"
#include "daemon/front/settings/tenant_limits.h"

#define LABELS(...)                                                                                \
    (const struct label[])                                                                         \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define COUNT(list) (unsigned)(sizeof(list) / sizeof(list)[0])

/* A family with a sample for each row of a kind: the daemon, a device, a tenant. */
struct family {
    const char *name;
    const char *help;
    enum family_type type;
    enum family_unit unit;
    size_t offset; /* of a uint64_t in the row */
};

#define FAMILY(row, type, unit, name, member, help)                                                \
    {                                                                                              \
        name, help, FAMILY_##type, UNIT_##unit, offsetof(struct row, member)                       \
    }

static uint64_t cell(const void *row, const struct family *m)
{
    uint64_t value;
    memcpy(&value, (const char *)row + m->offset, sizeof value);
    return value;
}

static const char *number(unsigned value, char out[16])
{
    (void)snprintf(out, 16, "%u", value);
    return out;
}

static void family(struct exposition *x, const struct family *m)
{
    exposition_family(x, m->name, m->type, m->help);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

#define FRONT(type, unit, name, member, help) FAMILY(front_figures, type, unit, name, member, help)

static const struct family front_families[] = {
    FRONT(GAUGE, ONE, "gpud_config_last_reload_successful", reload_good,
          "1: the settings in the files are in use; 0: they are not, or not all."),
    FRONT(GAUGE, NS, "gpud_start_time_seconds", started_ns, "When the daemon started, Unix time."),
    FRONT(GAUGE, ONE, "gpud_sessions", sessions, "Sessions of clients."),
    FRONT(GAUGE, ONE, "gpud_connections", listener.connections, "Connections of clients."),
    FRONT(COUNTER, ONE, "gpud_connections_refused_total", listener.refused,
          "Connections without a place, refused or closed."),
    FRONT(COUNTER, ONE, "gpud_socket_requests_total", listener.requests,
          "Requests that came through sockets."),
    FRONT(COUNTER, ONE, "gpud_protocol_errors_total", listener.protocol_errors,
          "Messages that could not be decoded."),
    FRONT(COUNTER, ONE, "gpud_buffers_moved_total", count.moved,
          "Buffers that moved to another device for a job."),
    FRONT(COUNTER, ONE, "gpud_buffers_moved_bytes_total", count.moved_bytes,
          "Bytes of these buffers."),
    FRONT(COUNTER, ONE, "gpud_tokens_refused_total", tokens_refused,
          "Clients over TCP without the token that they needed."),
    FRONT(GAUGE, ONE, "gpud_lanes", lanes.lanes,
          "Rings in shared memory between daemon and clients."),
    FRONT(COUNTER, ONE, "gpud_lane_requests_total", lanes.records,
          "Requests that came through rings."),
    FRONT(COUNTER, ONE, "gpud_lane_answers_waited_total", lanes.waited,
          "Answers that found no room in the ring of their client at first."),
    FRONT(COUNTER, ONE, "gpud_lane_violations_total", lanes.violated,
          "Rings closed because the client broke the rules."),
    FRONT(GAUGE, ONE, "gpud_loop_longest_turn_units", longest_turn,
          "Most units of work in a turn of the loop; 4096 units take 1 ms at most."),
    FRONT(COUNTER, ONE, "gpud_access_log_lost_total", access_lost,
          "Lines that are missing in the access log."),
    FRONT(COUNTER, ONE, "gpud_compilations_total", compiler.started, "Compilations of modules."),
    FRONT(COUNTER, ONE, "gpud_compilations_failed_total", compiler.failed,
          "Compilations that gave no binary."),
    FRONT(GAUGE, ONE, "gpud_compilations_running", compiler.running, "Compilations under way."),
    FRONT(GAUGE, ONE, "gpud_compilations_queued", compiler.queued,
          "Compilations that wait for their turn."),
    FRONT(COUNTER, ONE, "gpud_jobs_submitted_total", count.submitted, "Jobs that were admitted."),
    FRONT(GAUGE, ONE, "gpud_jobs_running", running, "Unfinished jobs that a worker has."),
    FRONT(GAUGE, ONE, "gpud_jobs_queued", queued, "Unfinished jobs that no worker has."),
    FRONT(COUNTER, ONE, "gpud_jobs_replayed_total", count.replayed,
          "Jobs that were run again because their worker had ended."),
    FRONT(COUNTER, ONE, "gpud_requests_deduplicated_total", count.deduplicated,
          "Requests that came again and were not run again."),
};

static void put_daemon(struct exposition *x, const struct figures *n)
{
    const struct label build[] = {{"version", GPUD_VERSION}, {"build", n->build}};
    exposition_family(x, "gpud_build_info", FAMILY_GAUGE, "Version and build, as labels.");
    exposition_sample(x, build, COUNT(build), 1, UNIT_ONE);
    exposition_family(x, "gpud_ready", FAMILY_GAUGE,
                      "1: the daemon serves, as gpuctl status and /readyz say.");
    exposition_sample(x, NULL, 0, n->front.ready, UNIT_ONE);
    for (unsigned i = 0; i < COUNT(front_families); i++) {
        family(x, &front_families[i]);
        exposition_sample(x, NULL, 0, cell(&n->front, &front_families[i]), front_families[i].unit);
    }
    if (n->front.tls_end_s != 0) {
        exposition_family(x, "gpud_certificate_expiry_timestamp_seconds", FAMILY_GAUGE,
                          "When the first certificate for clients of other hosts ends, Unix time.");
        exposition_sample(x, NULL, 0, n->front.tls_end_s, UNIT_ONE);
    }
}

static void put_cache(struct exposition *x, const struct compiler_stats *s)
{
    exposition_family(x, "gpud_compiler_cache_total", FAMILY_COUNTER,
                      "Look-ups in the cache of binaries.");
    exposition_sample(x, LABELS({"result", "hit"}), 1, s->hits, UNIT_ONE);
    exposition_sample(x, LABELS({"result", "miss"}), 1, s->misses, UNIT_ONE);
    exposition_sample(x, LABELS({"result", "damaged"}), 1, s->damaged, UNIT_ONE);
}

/* An error's name in small letters; NULL: there is no error of that code. */
static const char *error_label(unsigned code, char out[32])
{
    const char *name = err_name(-(int)code);
    unsigned i = 0;
    if (code == 0 || strcmp(name, "UNKNOWN") == 0) {
        return NULL;
    }
    for (; name[i] != '\0' && i < 31; i++) {
        out[i] = (char)tolower((unsigned char)name[i]);
    }
    out[i] = '\0';
    return out;
}

static void put_jobs(struct exposition *x, const struct front_counters *c)
{
    char text[32];
    exposition_family(x, "gpud_jobs_completed_total", FAMILY_COUNTER, "Jobs that ended.");
    exposition_sample(x, LABELS({"result", "done"}), 1, c->done, UNIT_ONE);
    exposition_sample(x, LABELS({"result", "failed"}), 1, c->failed, UNIT_ONE);
    exposition_sample(x, LABELS({"result", "cancelled"}), 1, c->cancelled, UNIT_ONE);
    exposition_sample(x, LABELS({"result", "lost"}), 1, c->lost, UNIT_ONE);
    exposition_family(x, "gpud_jobs_rejected_total", FAMILY_COUNTER,
                      "Submissions that were answered with an error, by the error.");
    for (unsigned code = 1; code < FRONT_ERRORS; code++) {
        const char *reason = error_label(code, text);
        if (reason != NULL && (c->rejected[code] > 0 || code == (unsigned)-ERR_BUSY)) {
            exposition_sample(x, LABELS({"reason", reason}), 1, c->rejected[code], UNIT_ONE);
        }
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

#define DEVICE(type, unit, name, member, help)                                                     \
    FAMILY(device_figures, type, unit, name, member, help)

static const struct family device_families[] = {
    DEVICE(GAUGE, ONE, "gpud_device_up", up, "1: the device serves."),
    DEVICE(GAUGE, ONE, "gpud_device_held", held,
           "1: it gets no new jobs, as its driver asks for a recovery."),
    DEVICE(GAUGE, ONE, "gpud_device_drain", drain,
           "1: an operator drains the device; 2: it is released, until gpuctl resume."),
    DEVICE(GAUGE, ONE, "gpud_device_memory_bytes", memory, "Memory of the device."),
    DEVICE(GAUGE, ONE, "gpud_device_buffer_bytes", buffers,
           "Buffers on the device or sealed on the host, as they were asked for."),
    DEVICE(GAUGE, ONE, "gpud_device_jobs_in_flight", in_flight, "Jobs that its workers have."),
    DEVICE(GAUGE, ONE, "gpud_device_domains", domains, "Workers of single tenants."),
    DEVICE(GAUGE, ONE, "gpud_device_granted_bytes", granted,
           "Memory that workers of single tenants may use."),
    DEVICE(COUNTER, ONE, "gpud_device_turns_total", turns, "Turns that its workers had."),
    DEVICE(COUNTER, ONE, "gpud_device_turn_overruns_total", overruns,
           "Turns of a worker that lasted longer than its jobs were to."),
    DEVICE(COUNTER, ONE, "gpud_device_batches_total", pool.batches,
           "Batches of brief jobs that were started together."),
    DEVICE(COUNTER, ONE, "gpud_device_batched_jobs_total", pool.batched, "Jobs in those batches."),
    DEVICE(GAUGE, ONE, "gpud_pool_size_bytes", pool.size, "Memory that the pool has."),
    DEVICE(GAUGE, ONE, "gpud_pool_limit_bytes", pool.limit, "Memory that the pool may have."),
    DEVICE(GAUGE, ONE, "gpud_pool_used_bytes", pool.used, "Memory of the pool that is in use."),
    DEVICE(GAUGE, ONE, "gpud_pool_peak_bytes", pool.peak, "Most that was in use."),
    DEVICE(GAUGE, ONE, "gpud_pool_cached_bytes", pool.cached,
           "Memory that the pool keeps for later allocations."),
    DEVICE(GAUGE, ONE, "gpud_pool_largest_free_bytes", pool.largest_free,
           "Largest allocation that needs no call of the driver."),
    DEVICE(GAUGE, ONE, "gpud_pool_live_allocations", pool.live, "Allocations that are in use."),
    DEVICE(COUNTER, ONE, "gpud_pool_allocations_total", pool.allocations, "Allocations."),
    DEVICE(COUNTER, ONE, "gpud_pool_allocation_failures_total", pool.failures,
           "Allocations for which there was no memory."),
    DEVICE(COUNTER, ONE, "gpud_pool_driver_calls_total", pool.driver_calls,
           "Calls of the driver for memory."),
    DEVICE(GAUGE, ONE, "gpud_pool_spilled_bytes", pool.spilled,
           "Buffers that moved to the host because the device was full."),
    DEVICE(COUNTER, ONE, "gpud_pool_spills_total", pool.spills, "Moves of buffers to the host."),
    DEVICE(COUNTER, ONE, "gpud_pool_returns_total", pool.returns, "Moves of buffers back."),
};

/* What the driver reports; no sample of what it does not tell. */
static const struct health_family {
    const char *name;
    const char *help;
    enum family_type type;
    enum family_unit unit;
    enum health_kind kind;
} health_families[] = {
    {"gpud_device_temperature_celsius", "Temperature of the GPU.", FAMILY_GAUGE, UNIT_ONE,
     HEALTH_temperature},
    {"gpud_device_power_watts", "Power that the GPU takes.", FAMILY_GAUGE, UNIT_MILLI,
     HEALTH_power},
    {"gpud_device_power_limit_watts", "Power that the GPU may take.", FAMILY_GAUGE, UNIT_MILLI,
     HEALTH_power_limit},
    {"gpud_device_energy_joules_total", "Energy of the GPU since its driver was loaded.",
     FAMILY_COUNTER, UNIT_MILLI, HEALTH_energy},
    {"gpud_device_utilization_ratio",
     "Part of the last period in which a kernel of any process ran.", FAMILY_GAUGE, UNIT_MICRO,
     HEALTH_busy},
    {"gpud_device_memory_used_bytes", "Memory that all processes have of the GPU.", FAMILY_GAUGE,
     UNIT_ONE, HEALTH_memory_used},
};

/* Does the driver report it of any device? */
static bool is_known(const struct figures *n, enum health_kind kind)
{
    bool known = false;
    for (unsigned i = 0; i < n->device_count; i++) {
        known = known || n->device[i].health[kind].state == HEALTH_KNOWN;
    }
    return known;
}

static void put_health(struct exposition *x, const struct figures *n)
{
    char text[16];
    for (unsigned m = 0; m < COUNT(health_families); m++) {
        const struct health_family *of = &health_families[m];
        if (is_known(n, of->kind)) {
            exposition_family(x, of->name, of->type, of->help);
        }
        for (unsigned i = 0; i < n->device_count; i++) {
            const struct health_value *v = &n->device[i].health[of->kind];
            if (v->state == HEALTH_KNOWN) {
                exposition_sample(x, LABELS({"device", number(n->device[i].index, text)}), 1,
                                  v->value, of->unit);
            }
        }
    }
}

static void put_ecc(struct exposition *x, const struct figures *n)
{
    static const struct {
        enum health_kind kind;
        const char *label;
    } kinds[] = {{HEALTH_ecc_corrected, "corrected"}, {HEALTH_ecc_uncorrected, "uncorrected"}};
    char text[16];
    if (is_known(n, HEALTH_ecc_corrected) || is_known(n, HEALTH_ecc_uncorrected)) {
        exposition_family(x, "gpud_device_ecc_errors_total", FAMILY_COUNTER,
                          "ECC errors since the driver was loaded.");
    }
    for (unsigned i = 0; i < n->device_count; i++) {
        for (unsigned k = 0; k < COUNT(kinds); k++) {
            const struct health_value *v = &n->device[i].health[kinds[k].kind];
            if (v->state == HEALTH_KNOWN) {
                exposition_sample(
                    x,
                    LABELS({"device", number(n->device[i].index, text)}, {"kind", kinds[k].label}),
                    2, v->value, UNIT_ONE);
            }
        }
    }
}

static void put_throttling(struct exposition *x, const struct figures *n)
{
    char text[16];
    if (is_known(n, HEALTH_throttling)) {
        exposition_family(x, "gpud_device_throttled", FAMILY_GAUGE,
                          "1: clocks are lower than they could be, for this reason.");
    }
    for (unsigned i = 0; i < n->device_count; i++) {
        const struct health_value *v = &n->device[i].health[HEALTH_throttling];
        for (unsigned r = 0; r < HEALTH_THROTTLES && v->state == HEALTH_KNOWN; r++) {
            exposition_sample(x,
                              LABELS({"device", number(n->device[i].index, text)},
                                     {"reason", health_throttles[r].name}),
                              2, (v->value & health_throttles[r].bit) != 0, UNIT_ONE);
        }
    }
}

static void put_device_info(struct exposition *x, const struct figures *n)
{
    char text[16];
    exposition_family(x, "gpud_device_info", FAMILY_GAUGE, "What the device is, as labels.");
    for (unsigned i = 0; i < n->device_count; i++) {
        const struct device_figures *d = &n->device[i];
        const struct label labels[] = {{"device", number(d->index, text)},
                                       {"backend", d->backend},
                                       {"kind", d->kind},
                                       {"name", d->name},
                                       {"arch", d->arch},
                                       {"driver", d->driver},
                                       {"uuid", d->uuid}};
        exposition_sample(x, labels, COUNT(labels), 1, UNIT_ONE);
    }
}

static void put_devices(struct exposition *x, const struct figures *n)
{
    char text[16];
    put_device_info(x, n);
    for (unsigned m = 0; m < COUNT(device_families); m++) {
        family(x, &device_families[m]);
        for (unsigned i = 0; i < n->device_count; i++) {
            const struct device_figures *d = &n->device[i];
            exposition_sample(x, LABELS({"device", number(d->index, text)}), 1,
                              cell(d, &device_families[m]), device_families[m].unit);
        }
    }
}

static void put_troubles(struct exposition *x, const struct figures *n)
{
    char text[16];
    char name[32];
    exposition_family(x, "gpud_worker_restarts_total", FAMILY_COUNTER,
                      "Ends of workers that others replaced. job: a job was to blame; ended: gpud "
                      "ended it, as it was silent or broke the rules; killed: from outside; "
                      "crashed: by itself.");
    for (unsigned i = 0; i < n->device_count; i++) {
        for (unsigned r = 0; r < RESTART_REASONS; r++) {
            exposition_sample(x,
                              LABELS({"device", number(n->device[i].index, text)},
                                     {"reason", restart_reason_name((enum restart_reason)r)}),
                              2, n->device[i].restarts[r], UNIT_ONE);
        }
    }
    exposition_family(
        x, "gpud_device_errors_total", FAMILY_COUNTER,
        "Jobs that failed on the device, or were lost with its worker, by the error.");
    for (unsigned i = 0; i < n->device_count; i++) {
        for (unsigned code = 1; code < TALLY_ERRORS; code++) {
            const char *error = error_label(code, name);
            uint64_t count = n->device[i].tally.errors[code];
            if (error != NULL && (count > 0 || code == (unsigned)-ERR_KERNEL_FAULT)) {
                exposition_sample(
                    x, LABELS({"device", number(n->device[i].index, text)}, {"error", error}), 2,
                    count, UNIT_ONE);
            }
        }
    }
}

static void put_times(struct exposition *x, const struct figures *n)
{
    static const struct {
        const char *name, *help;
    } times[TALLY_TIMES] = {
        [TALLY_QUEUE] = {"gpud_job_queue_seconds",
                         "From a job's admission until it began on its device."},
        [TALLY_EXECUTION] = {"gpud_job_execution_seconds", "From a job's begin until its end."},
        [TALLY_DURATION] =
            {"gpud_job_duration_seconds",
             "From a job's admission until its end. device \"none\": it was on none."},
    };
    char text[16];
    for (unsigned t = 0; t < TALLY_TIMES; t++) {
        exposition_family(x, times[t].name, FAMILY_HISTOGRAM, times[t].help);
        for (unsigned i = 0; i < n->device_count; i++) {
            exposition_histogram(x, LABELS({"device", number(n->device[i].index, text)}), 1,
                                 &n->device[i].tally.time[t]);
        }
        if (t == TALLY_DURATION) {
            exposition_histogram(x, LABELS({"device", "none"}), 1, &n->front.none.time[t]);
        }
    }
}

static void put_copies(struct exposition *x, const struct figures *n)
{
    uint64_t ns[TALLY_COPIES] = {0, 0};
    for (unsigned i = 0; i < n->device_count; i++) {
        for (unsigned c = 0; c < TALLY_COPIES; c++) {
            ns[c] += n->device[i].tally.copy_ns[c];
        }
    }
    exposition_family(x, "gpud_copy_bytes_total", FAMILY_COUNTER,
                      "Bytes that jobs copied between host and devices.");
    exposition_sample(x, LABELS({"direction", "to_device"}), 1, n->front.to_device, UNIT_ONE);
    exposition_sample(x, LABELS({"direction", "from_device"}), 1, n->front.from_device, UNIT_ONE);
    exposition_family(x, "gpud_copy_seconds_total", FAMILY_COUNTER,
                      "Time of the steps that copied. Steps that were timed together have equal "
                      "parts of their time.");
    exposition_sample(x, LABELS({"direction", "to_device"}), 1, ns[TALLY_TO_DEVICE], UNIT_NS);
    exposition_sample(x, LABELS({"direction", "from_device"}), 1, ns[TALLY_FROM_DEVICE], UNIT_NS);
}

/* ---- the scheduler --------------------------------------------------------------------------- */

static void put_class(struct exposition *x, const char *device, const struct class_figures *of,
                      bool flying)
{
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        exposition_sample(x, LABELS({"device", device}, {"class", tenant_classes[c]}), 2,
                          flying ? of[c].flying : of[c].ready_ns, flying ? UNIT_ONE : UNIT_NS);
    }
}

static void put_classes(struct exposition *x, const struct figures *n)
{
    char text[16];
    exposition_family(x, "gpud_ready_work_seconds", FAMILY_GAUGE,
                      "Time that ready jobs are expected to take. device \"any\": of jobs that any "
                      "device may run.");
    for (unsigned i = 0; i < n->device_count; i++) {
        put_class(x, number(n->device[i].index, text), n->device[i].of_class, false);
    }
    put_class(x, "any", n->front.any, false);
    exposition_family(x, "gpud_class_jobs_in_flight", FAMILY_GAUGE,
                      "Jobs of the class that workers of the device have.");
    for (unsigned i = 0; i < n->device_count; i++) {
        put_class(x, number(n->device[i].index, text), n->device[i].of_class, true);
    }
}

/* ---- tenants --------------------------------------------------------------------------------- */

#define TENANT(type, unit, name, member, help)                                                     \
    FAMILY(tenant_figures, type, unit, name, member, help)

static const struct family tenant_families[] = {
    TENANT(GAUGE, ONE, "gpud_tenant_weight", weight, "Its weight among tenants with ready jobs."),
    TENANT(GAUGE, ONE, "gpud_tenant_sessions", sessions, "Its sessions."),
    TENANT(GAUGE, ONE, "gpud_tenant_jobs_unfinished", unfinished, "Its unfinished jobs."),
    TENANT(GAUGE, ONE, "gpud_tenant_jobs_in_flight", in_flight, "Its jobs that workers have."),
    TENANT(GAUGE, ONE, "gpud_tenant_jobs_held", held, "Its jobs that only its own limits hold."),
    TENANT(GAUGE, ONE, "gpud_tenant_spilled_bytes", spilled, "Its buffers on the host."),
    TENANT(GAUGE, ONE, "gpud_tenant_arena_bytes", arenas, "Memory that it shares with the daemon."),
    TENANT(GAUGE, ONE, "gpud_tenant_strikes", strikes,
           "Ends of shared workers, and overrun turns, that it has to answer for."),
    TENANT(GAUGE, ONE, "gpud_tenant_paused", paused, "1: its jobs are refused for a while."),
    TENANT(COUNTER, ONE, "gpud_tenant_jobs_rejected_total", jobs[ACCOUNT_REFUSED],
           "Its submissions that were answered with an error."),
    TENANT(COUNTER, MICRO, "gpud_tenant_energy_joules_total", energy_uj,
           "Its shares of the energy of devices."),
};

static void put_tenants(struct exposition *x, const struct figures *n)
{
    for (unsigned m = 0; m < COUNT(tenant_families); m++) {
        family(x, &tenant_families[m]);
        for (unsigned row = 0; row < TENANT_ROWS; row++) {
            const struct tenant_figures *t = &n->tenant[row];
            if (t->name[0] != '\0') {
                exposition_sample(x, LABELS({"tenant", t->name}), 1, cell(t, &tenant_families[m]),
                                  tenant_families[m].unit);
            }
        }
    }
}

static void put_results(struct exposition *x, const struct figures *n)
{
    static const char *const results[] = {
#define X(NAME, name) #name,
        ACCOUNT_RESULTS_LIST(X)
#undef X
    };
    exposition_family(x, "gpud_tenant_jobs_completed_total", FAMILY_COUNTER,
                      "Jobs of the tenant that ended. deadline: they failed because of it.");
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        const struct tenant_figures *t = &n->tenant[row];
        for (unsigned r = 0; r < ACCOUNT_RESULTS && t->name[0] != '\0'; r++) {
            if (r != ACCOUNT_REFUSED) {
                exposition_sample(x, LABELS({"tenant", t->name}, {"result", results[r]}), 2,
                                  t->jobs[r], UNIT_ONE);
            }
        }
    }
}

static void put_tenant_copies(struct exposition *x, const struct figures *n)
{
    exposition_family(x, "gpud_tenant_copy_bytes_total", FAMILY_COUNTER,
                      "Bytes that jobs of the tenant copied between host and devices.");
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        const struct tenant_figures *t = &n->tenant[row];
        if (t->name[0] != '\0') {
            exposition_sample(x, LABELS({"tenant", t->name}, {"direction", "to_device"}), 2,
                              t->to_device, UNIT_ONE);
            exposition_sample(x, LABELS({"tenant", t->name}, {"direction", "from_device"}), 2,
                              t->from_device, UNIT_ONE);
        }
    }
}

/* A sample for each device and tenant that has used it. */
static void put_grid(struct exposition *x, const struct figures *n, const uint64_t *grid,
                     enum family_unit unit)
{
    char text[16];
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        for (unsigned i = 0; i < n->device_count && n->tenant[row].name[0] != '\0'; i++) {
            unsigned at = figures_at(n, row, i);
            if (n->busy_ns[at] > 0 || n->buffers[at] > 0) {
                exposition_sample(x,
                                  LABELS({"device", number(n->device[i].index, text)},
                                         {"tenant", n->tenant[row].name}),
                                  2, grid[at], unit);
            }
        }
    }
}

void render(struct exposition *x, const struct figures *n)
{
    put_daemon(x, n);
    put_cache(x, &n->front.compiler);
    put_jobs(x, &n->front.count);
    put_devices(x, n);
    put_health(x, n);
    put_ecc(x, n);
    put_throttling(x, n);
    put_troubles(x, n);
    put_times(x, n);
    put_copies(x, n);
    put_classes(x, n);
    put_tenants(x, n);
    put_results(x, n);
    put_tenant_copies(x, n);
    exposition_family(x, "gpud_busy_seconds_total", FAMILY_COUNTER,
                      "Time that jobs of the tenant had of the device, since the daemon started.");
    put_grid(x, n, n->busy_ns, UNIT_NS);
    exposition_family(x, "gpud_buffer_bytes", FAMILY_GAUGE,
                      "Buffers of the tenant on the device, as they were asked for.");
    put_grid(x, n, n->buffers, UNIT_ONE);
}
