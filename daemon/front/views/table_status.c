/* The tables `status` and `config`. */
#include <stdio.h>

#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/sockets.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/record/record.h"
#include "daemon/front/views/access_log.h"
#include "daemon/front/views/diagnosis.h"
#include "daemon/front/views/table_view.h"

#define STATUS_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(state, TEXT, !ready ? "not ready" : problem[0] != '\0' ? "degraded" : "ready")          \
    COLUMN(problem, TEXT, problem)                                                                 \
    COLUMN(devices, UINT, f->device_count)                                                         \
    COLUMN(serving, UINT, discover_serving(f))                                                     \
    COLUMN(sessions, UINT, f->session_count)                                                       \
    COLUMN(queued, UINT, f->queued_count)                                                          \
    COLUMN(in_flight, UINT, f->job_count - f->queued_count)                                        \
    COLUMN(done, UINT, f->count.done)                                                              \
    COLUMN(failed, UINT, f->count.failed)                                                          \
    COLUMN(lost, UINT, f->count.lost)                                                              \
    COLUMN(refused, UINT, f->count.refused)                                                        \
    COLUMN(replayed, UINT, f->count.replayed)                                                      \
    COLUMN(restarts, UINT, restarts)                                                               \
    COLUMN(spilled, BYTES, spilled)                                                                \
    COLUMN(uptime, NS, front_now(f) - f->started_ns)                                               \
    COLUMN(build, TEXT, f->build)                                                                  \
    COLUMN(last_trouble, TEXT, fault)                                                              \
    WIDE(connections, UINT, stats.connections)                                                     \
    WIDE(protocol_errors, UINT, stats.protocol_errors)                                             \
    WIDE(cancelled, UINT, f->count.cancelled)                                                      \
    WIDE(deduplicated, UINT, f->count.deduplicated)                                                \
    WIDE(connections_refused, UINT, stats.refused)                                                 \
    WIDE(longest_turn, UINT, f->work.most)                                                         \
    WIDE(access_lost, UINT, f->access != NULL ? access_log_lost(f->access) : 0)                    \
    WIDE(tenant_sockets, UINT, sockets_count(f->sockets))                                          \
    COLUMN(recording, TEXT, recording)                                                             \
    COLUMN(warning, TEXT, warning)

static void last_fault(const struct table_query *q, char *out, size_t size)
{
    const struct device *d = q->f->fault_device;
    char text[640];
    if (d == NULL) {
        (void)snprintf(out, size, "%s", q->f->fault_text);
        return;
    }
    if (d->owner != NULL && !rights_sees(&q->f->rights, q->s, d->owner)) {
        out[0] = '\0';
        return;
    }
    diagnosis_fault(d, rights_sees(&q->f->rights, q->s, NULL), text, sizeof text);
    (void)snprintf(out, size, "device %u, %.0f s ago: %s", device_shown(d),
                   (double)(front_now(q->f) - d->fault_ns) / 1e9, text);
}

static void status_begin(struct table_query *q)
{
    struct table *t = &q->table;
    struct front *f = q->f;
    char problem[480];
    char warning[480] = "";
    char fault[PROTO_TEXT_MAX + 1];
    struct recorder_status record;
    const char *recording = record_status(f, &record) ? recorder_state_name(record.state) : "";
    uint64_t restarts = 0;
    uint64_t spilled = 0;
    struct listener_stats stats;
    listener_stats(f->listener, &stats);
    diagnosis_text(f, problem, sizeof problem);
    if (rights_sees(&f->rights, q->s, NULL)) { /* it may name tenants */
        diagnosis_warning(f, warning, sizeof warning);
    }
    last_fault(q, fault, sizeof fault);
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        restarts += d->restarts;
        spilled += d->pool.spilled;
    }
    bool ready = diagnosis_ready(f);
    TABLE_HEADER(STATUS_COLUMNS);
    TABLE_ROW(STATUS_COLUMNS);
}

const struct table_view view_status = {"status", status_begin, NULL, true};

#define CONFIG_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(section, TEXT, section)                                                                 \
    COLUMN(key, TEXT, key)                                                                         \
    COLUMN(value, TEXT, value)

static void config_begin(struct table_query *q)
{
    struct table *t = &q->table;
    const char *section = NULL;
    const char *key = NULL;
    char value[512];
    TABLE_HEADER(CONFIG_COLUMNS);
    for (unsigned i = 0; config_at(&q->f->config, i, &section, &key, value, sizeof value); i++) {
        TABLE_ROW(CONFIG_COLUMNS);
    }
}

const struct table_view view_config = {"config", config_begin, NULL, false};
