/* The tables `devices`, `domains` and `pool`. */
#include <stdio.h>

#include "daemon/front/devices/monitor.h"
#include "daemon/front/sched/turns.h"
#include "daemon/front/views/diagnosis.h"
#include "daemon/front/views/table_view.h"
#include "daemon/front/workers/places.h"
#include "daemon/front/workers/silence.h"

/* ---- what the management library reports of the hardware ------------------------------------ */

/* A device's hardware as its cells need it. */
struct hardware {
    struct health_device health; /* all unknown if the monitor knows nothing of the device */
    bool known;
    uint64_t age_ns; /* since the report */
    char throttled[128];
    char processes[512];
    char remarks[320]; /* which values failed, or why none is known */
};

#define MILLI 1000u

#define HARDWARE_COLUMNS(COLUMN, WIDE)                                                             \
    WIDE(temperature, UINT, number(&h, HEALTH_temperature, 1))                                     \
    WIDE(power, UINT, number(&h, HEALTH_power, MILLI))                                             \
    WIDE(power_limit, UINT, number(&h, HEALTH_power_limit, MILLI))                                 \
    WIDE(gpu_busy, PPM, number(&h, HEALTH_busy, 1))                                                \
    WIDE(gpu_memory, BYTES, number(&h, HEALTH_memory_used, 1))                                     \
    WIDE(ecc_corrected, UINT, number(&h, HEALTH_ecc_corrected, 1))                                 \
    WIDE(ecc_errors, UINT, number(&h, HEALTH_ecc_uncorrected, 1))                                  \
    WIDE(throttled, TEXT, h.throttled)                                                             \
    WIDE(recovery, TEXT, recovery_text(&h.health.value[HEALTH_recovery]))                          \
    WIDE(processes, TEXT, h.processes)                                                             \
    WIDE(health, TEXT, h.remarks)                                                                  \
    WIDE(health_age, NS, table_known(h.known, h.age_ns))

static const char *unknown_text(const struct health_value *v)
{
    switch (v->state) {
    case HEALTH_UNSUPPORTED:
        return "unsupported";
    case HEALTH_DENIED:
        return "not permitted";
    case HEALTH_FAILED:
        return "failed";
    default:
        return "-";
    }
}

static struct proto_cell number(const struct hardware *h, unsigned kind, uint64_t unit)
{
    const struct health_value *v = &h->health.value[kind];
    return v->state == HEALTH_KNOWN ? (struct proto_cell){.value = v->value / unit}
                                    : (struct proto_cell){.text = bytes_str(unknown_text(v))};
}

static const char *recovery_text(const struct health_value *v)
{
    return v->state == HEALTH_KNOWN ? monitor_recovery_text(v->value) : unknown_text(v);
}

/* Why clocks are lower than they could be; idleness is no reason to report. */
static void write_throttled(const struct health_value *v, char *out, size_t size)
{
    size_t used = 0;
    (void)snprintf(out, size, "%s", v->state == HEALTH_KNOWN ? "no" : unknown_text(v));
    for (size_t i = 0; v->state == HEALTH_KNOWN && i < HEALTH_THROTTLES && used < size; i++) {
        if ((v->value & health_throttles[i].bit) != 0) {
            used += (size_t)snprintf(out + used, size - used, "%s%s", used > 0 ? ", " : "",
                                     health_throttles[i].name);
        }
    }
}

/* The number of processes, and as many of them as fit. */
static void write_processes(const struct health_device *h, char *out, size_t size)
{
    const struct health_value *v = &h->value[HEALTH_processes];
    if (v->state != HEALTH_KNOWN) {
        (void)snprintf(out, size, "%s", unknown_text(v));
        return;
    }
    int used = snprintf(out, size, "%llu", (unsigned long long)v->value);
    for (unsigned i = 0; i < HEALTH_PROCESSES && h->process[i].pid != 0; i++) {
        const struct health_process *p = &h->process[i];
        char bytes[32] = "";
        if (p->bytes != HEALTH_UNKNOWN) {
            (void)snprintf(bytes, sizeof bytes, " %llu MiB", (unsigned long long)(p->bytes >> 20));
        }
        int n = snprintf(out + used, size - (size_t)used, "%s%llu%s", i == 0 ? ": " : ", ",
                         (unsigned long long)p->pid, bytes);
        if (n < 0 || (size_t)n >= size - (size_t)used) {
            out[used] = '\0';
            break;
        }
        used += n;
    }
}

/* Values that failed, with the library's numbers. */
static void write_failures(const struct health_device *h, char *out, size_t size)
{
    size_t used = 0;
    (void)snprintf(out, size, "known");
    for (unsigned k = 0; k < HEALTH_KINDS && used < size; k++) {
        if (h->value[k].state == HEALTH_FAILED) {
            used += (size_t)snprintf(out + used, size - used, "%s%s: NVML error %d",
                                     used > 0 ? "; " : "", health_name(k), (int)h->value[k].code);
        }
    }
}

static void hardware_read(struct front *f, const struct device *d, struct hardware *ret_hardware)
{
    struct hardware *h = ret_hardware;
    char why[256] = "";
    *h = (struct hardware){.known = false};
    h->known = monitor_read(f, d, &h->health, &h->age_ns, why, sizeof why);
    write_throttled(&h->health.value[HEALTH_throttling], h->throttled, sizeof h->throttled);
    write_processes(&h->health, h->processes, sizeof h->processes);
    if (h->known) {
        write_failures(&h->health, h->remarks, 256);
    } else {
        (void)snprintf(h->remarks, sizeof h->remarks, "%s%s", why[0] != '\0' ? "not known: " : "",
                       why);
    }
}

/* The recovery that the driver asks for, or asked for before its wish became unknown. Writes
 * nothing if there is none. */
static void recovery_note(const struct hardware *h, const struct device *d, char *out, size_t size)
{
    const struct health_value *v = &h->health.value[HEALTH_recovery];
    if (h->known && v->state == HEALTH_KNOWN && v->value != HEALTH_RECOVERY_NONE) {
        (void)snprintf(out, size, "the driver asks: %s", monitor_recovery_text(v->value));
    } else if (d->recovery_unsure != HEALTH_RECOVERY_NONE) {
        (void)snprintf(out, size, "the driver asked: %s",
                       monitor_recovery_text(d->recovery_unsure));
    }
}

/* ---- devices --------------------------------------------------------------------------------- */

#define DEVICE_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(device, UINT, device_shown(d))                                                          \
    COLUMN(backend, TEXT, d->backend)                                                              \
    COLUMN(state, TEXT, device_state_name(d))                                                      \
    COLUMN(kind, TEXT, kind_text(d))                                                               \
    COLUMN(name, TEXT, d->name)                                                                    \
    COLUMN(memory, BYTES, d->memory)                                                               \
    COLUMN(buffers, BYTES, d->buffer_bytes)                                                        \
    COLUMN(in_flight, UINT, d->inflight_count)                                                     \
    COLUMN(jobs, UINT, d->jobs_done)                                                               \
    COLUMN(restarts, UINT, d->restarts)                                                            \
    COLUMN(note, TEXT, note)                                                                       \
    WIDE(reason, TEXT, d->reason)                                                                  \
    WIDE(last_fault, TEXT, fault)                                                                  \
    WIDE(vendor, TEXT, d->vendor)                                                                  \
    WIDE(driver, TEXT, d->driver)                                                                  \
    WIDE(units, UINT, d->units)                                                                    \
    WIDE(streams, UINT, d->streams)                                                                \
    WIDE(max_group, UINT, d->max_group)                                                            \
    WIDE(local_memory, BYTES, d->local_bytes)                                                      \
    WIDE(f64, BOOL, d->f64)                                                                        \
    WIDE(worker, UINT, (uint64_t)d->pid)                                                           \
    WIDE(busy, NS, d->busy_ns)                                                                     \
    WIDE(fault_age, NS, table_known(d->fault_ns != 0, now - d->fault_ns))                          \
    WIDE(pin, TEXT, d->pin)                                                                        \
    WIDE(spilled, BYTES, d->pool.spilled)                                                          \
    WIDE(batches, UINT, d->pool.batches)                                                           \
    WIDE(batched, UINT, d->pool.batched)                                                           \
    WIDE(held, UINT, d->pool.waited)                                                               \
    HARDWARE_COLUMNS(COLUMN, WIDE)                                                                 \
    WIDE(memory_limit, BYTES, device_pool_limit(d))                                                \
    WIDE(recalled, BYTES, d->pool.missing)                                                         \
    WIDE(domains, UINT, domains_seen(q, d))                                                        \
    WIDE(time_error, PPM, table_known(d->accuracy.total > 0, accuracy_ppm(&d->accuracy, 50)))      \
    WIDE(time_error_p90, PPM, table_known(d->accuracy.total > 0, accuracy_ppm(&d->accuracy, 90)))  \
    WIDE(turn, NS, table_known(d->turn.taken > 0, turn_length_ns(&d->turn)))                       \
    WIDE(switch_cost, NS, table_known(d->turn.cost_ns > 0, d->turn.cost_ns))                       \
    WIDE(turns, UINT, d->turn.taken)                                                               \
    WIDE(overruns, UINT, d->turn.overruns)                                                         \
    WIDE(domains_waiting, UINT, waiting_seen(q, d))

/* Unknown until the device has been opened once. */
static const char *kind_text(const struct device *d)
{
    return d->arch[0] == '\0' ? "" : d->simulated ? "simulated" : d->cpu ? "CPU" : "GPU";
}

/* Another tenant's is none of its business. */
static bool sees(const struct table_query *q, const struct device *domain)
{
    return rights_sees(&q->f->rights, q->s, domain->owner);
}

static unsigned domains_seen(const struct table_query *q, const struct device *base)
{
    unsigned count = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        count += sees(q, d);
    }
    return count;
}

static unsigned waiting_seen(const struct table_query *q, const struct device *base)
{
    unsigned count = 0;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        count += sees(q, d) && place_waits(q->f, d);
    }
    return count;
}

static void device_row(struct table_query *q, const struct device *d)
{
    struct table *t = &q->table;
    struct hardware h;
    char fault[640];
    char note[64];
    uint64_t now = front_now(q->f);
    hardware_read(q->f, d, &h);
    diagnosis_fault(d, rights_sees(&q->f->rights, q->s, NULL), fault, sizeof fault);
    diagnosis_note(d, now, note, sizeof note);
    if (note[0] == '\0') {
        recovery_note(&h, d, note, sizeof note);
    }
    TABLE_ROW(DEVICE_COLUMNS);
}

static void devices_begin(struct table_query *q)
{
    struct table *t = &q->table;
    TABLE_HEADER(DEVICE_COLUMNS);
    monitor_watch(q->f, front_now(q->f), false);
    for (unsigned i = 0; i < q->f->device_count; i++) {
        device_row(q, q->f->device[i]);
    }
}

const struct table_view view_devices = {"devices", devices_begin, NULL, true};

/* ---- domains --------------------------------------------------------------------------------- */

#define DOMAIN_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(tenant, TEXT, d->owner->name)                                                           \
    COLUMN(device, UINT, device_shown(d))                                                          \
    COLUMN(state, TEXT, device_state_name(d))                                                      \
    COLUMN(worker, UINT, (uint64_t)d->pid)                                                         \
    COLUMN(jobs, UINT, d->jobs)                                                                    \
    COLUMN(in_flight, UINT, d->inflight_count)                                                     \
    COLUMN(buffers, BYTES, d->buffer_bytes)                                                        \
    COLUMN(memory, BYTES, d->grant)                                                                \
    COLUMN(restarts, UINT, d->restarts)                                                            \
    COLUMN(note, TEXT, note)                                                                       \
    WIDE(done, UINT, d->jobs_done)                                                                 \
    WIDE(used, BYTES, d->pid != 0 ? d->pool.used : 0)                                              \
    WIDE(spilled, BYTES, d->pid != 0 ? d->pool.spilled : 0)                                        \
    WIDE(busy, NS, d->busy_ns)                                                                     \
    WIDE(unused, NS, now > used_ns ? now - used_ns : 0)                                            \
    WIDE(last_fault, TEXT, fault)                                                                  \
    WIDE(on_host, BYTES, d->evacuation.bytes)                                                      \
    WIDE(wanted, BYTES, d->lease.wanted)                                                           \
    WIDE(recalled, BYTES, d->lease.taken)                                                          \
    WIDE(most, BYTES, device_pool_most(d))                                                         \
    WIDE(placed, NS, table_known(has_place(d), now - d->place.since_ns))                           \
    WIDE(waits, NS, table_known(place_waits(q->f, d), now - d->place.asked_ns))

static bool has_place(const struct device *d)
{
    return d->state != DEVICE_RESTING && d->place.since_ns != 0;
}

static void domains_begin(struct table_query *q)
{
    struct table *t = &q->table;
    const struct device *d;
    uint64_t now = front_now(q->f);
    TABLE_HEADER(DOMAIN_COLUMNS);
    for (unsigned at = 0; (d = front_next_device(q->f, &at)) != NULL;) {
        char fault[640];
        char note[sizeof d->reason];
        uint64_t used_ns = d->used_ns > d->ran_ns ? d->used_ns : d->ran_ns;
        if (d->owner != NULL && sees(q, d)) {
            (void)snprintf(note, sizeof note, "%s", d->reason);
            if (silence_excused(d)) {
                silence_note(d, now, note, sizeof note);
            }
            diagnosis_fault(d, true, fault, sizeof fault);
            TABLE_ROW(DOMAIN_COLUMNS);
        }
    }
}

const struct table_view view_domains = {"domains", domains_begin, NULL, false};

/* ---- pool ------------------------------------------------------------------------------------ */

#define POOL_COLUMNS(COLUMN, WIDE)                                                                 \
    COLUMN(device, UINT, device_shown(d))                                                          \
    COLUMN(size, BYTES, d->pool.size)                                                              \
    COLUMN(used, BYTES, d->pool.used)                                                              \
    COLUMN(peak, BYTES, d->pool.peak)                                                              \
    COLUMN(cached, BYTES, d->pool.cached)                                                          \
    COLUMN(largest_free, BYTES, d->pool.largest_free)                                              \
    COLUMN(live, UINT, d->pool.live)                                                               \
    COLUMN(allocations, UINT, d->pool.allocations)                                                 \
    WIDE(frees, UINT, d->pool.frees)                                                               \
    WIDE(hits, UINT, d->pool.hits)                                                                 \
    WIDE(failures, UINT, d->pool.failures)                                                         \
    WIDE(driver_calls, UINT, d->pool.driver_calls)                                                 \
    WIDE(staging_in, BYTES, d->input_range.used)                                                   \
    WIDE(staging_out, BYTES, d->output_range.used)                                                 \
    WIDE(spilled, BYTES, d->pool.spilled)                                                          \
    WIDE(spill_limit, BYTES, d->pool.spill_limit)                                                  \
    WIDE(spills, UINT, d->pool.spills)                                                             \
    WIDE(returns, UINT, d->pool.returns)                                                           \
    WIDE(managed, BYTES, d->pool.managed)                                                          \
    WIDE(managed_limit, BYTES, d->pool.managed_limit)                                              \
    WIDE(limit, BYTES, d->pool.limit)                                                              \
    WIDE(recalled, BYTES, d->pool.missing)                                                         \
    WIDE(private_places, UINT, d->pool.private_places)                                             \
    WIDE(private_bytes, BYTES, d->pool.private_bytes)                                              \
    WIDE(private_returns, UINT, d->pool.private_returns)                                           \
    WIDE(private_others, UINT, d->pool.private_others)                                             \
    WIDE(staying, BYTES, d->pool.staying)                                                          \
    WIDE(stay_limit, BYTES, d->stay)                                                               \
    WIDE(wanted, BYTES, d->lease.wanted)                                                           \
    WIDE(given, BYTES, d->granted)

static void pool_begin(struct table_query *q)
{
    struct table *t = &q->table;
    TABLE_HEADER(POOL_COLUMNS);
    for (unsigned i = 0; i < q->f->device_count; i++) {
        const struct device *d = q->f->device[i];
        TABLE_ROW(POOL_COLUMNS);
    }
}

const struct table_view view_pool = {"pool", pool_begin, NULL, false};
