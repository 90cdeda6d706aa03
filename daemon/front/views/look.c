/* QUERY: tables of what is there, for gpuctl and whoever else looks. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/views/look.h"
#include "daemon/front/views/look_health.h"
#include "daemon/front/views/look_tenants.h"
#include "daemon/front/views/table.h"
#include "daemon/front/views/trouble.h"

#define ROW_UNITS 8u /* of work, to write a row down */

struct view {
    const char *name;
    void (*fill)(struct look *l); /* columns; and rows, where they are few */
    /* Where they can be many: looks at one thing more, and makes a row of it or not. false: there
     * was none. */
    bool (*next)(struct look *l);
    bool anybody; /* before HELLO too */
};

struct look {
    struct front *f;
    const struct session *s; /* NULL: before HELLO */
    const struct msg_query *query;
    struct table *t;
    const struct view *view;
    struct request *r; /* owned, once it takes several turns */
    struct table table;
    bool begun;
    const void *at;  /* what is looked at next, of a table; see look_gone */
    uint32_t cursor; /* of handles */
    struct look *prev, *next;
};

static void columns(struct table *t, const char *const *names, const int *kinds, unsigned narrow,
                    unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        table_column(t, names[i], (enum proto_column_kind)kinds[i], i >= narrow);
    }
}

#define COLUMNS(t, narrow, names, kinds)                                                           \
    _Static_assert(sizeof(names) / sizeof((names)[0]) == sizeof(kinds) / sizeof((kinds)[0]),       \
                   "a kind for each name");                                                        \
    columns((t), (names), (kinds), (narrow), sizeof(names) / sizeof((names)[0]))

/* Who did what is told to those who may see it; the others hear that something was. */
static void fault_text(const struct look *l, const struct device *d, char *out, size_t size)
{
    bool all = rights_sees(&l->f->rights, l->s, NULL);
    bool told = all && d->fault[0] != '\0';
    (void)snprintf(out, size, "%s%s%s", d->fault, told ? "; " : "", told ? d->fault_doing : "");
}

static void last_trouble(const struct look *l)
{
    const struct device *d = l->f->trouble_of;
    char text[640];
    if (d == NULL) {
        table_text(l->t, l->f->trouble);
        return;
    }
    fault_text(l, d, text, sizeof text);
    table_printf(l->t, "device %u, %.0f s ago: %s", d->index,
                 (double)(clock_now_ns() - d->fault_ns) / 1e9, text);
}

static void look_status(struct look *l)
{
    static const char *const names[] = {"state",           "problem",
                                        "devices",         "serving",
                                        "sessions",        "queued",
                                        "in_flight",       "done",
                                        "failed",          "lost",
                                        "refused",         "replayed",
                                        "restarts",        "spilled",
                                        "uptime",          "build",
                                        "last_trouble",    "connections",
                                        "protocol_errors", "cancelled",
                                        "deduplicated",    "connections_refused",
                                        "longest_turn"};
    static const int kinds[] = {COLUMN_TEXT, COLUMN_TEXT, COLUMN_UINT, COLUMN_UINT,  COLUMN_UINT,
                                COLUMN_UINT, COLUMN_UINT, COLUMN_UINT, COLUMN_UINT,  COLUMN_UINT,
                                COLUMN_UINT, COLUMN_UINT, COLUMN_UINT, COLUMN_BYTES, COLUMN_NS,
                                COLUMN_TEXT, COLUMN_TEXT, COLUMN_UINT, COLUMN_UINT,  COLUMN_UINT,
                                COLUMN_UINT, COLUMN_UINT, COLUMN_UINT};
    struct front *f = l->f;
    char problem[480];
    uint64_t restarts = 0;
    uint64_t spilled = 0;
    struct listener_stats stats;
    listener_stats(f->listener, &stats);
    trouble_text(f, problem, sizeof problem);
    for (unsigned i = 0; i < f->device_count; i++) {
        restarts += f->device[i]->restarts;
        spilled += f->device[i]->pool.spilled;
    }
    COLUMNS(l->t, 17, names, kinds);
    bool ready = discover_serving(f) >= f->config.min_devices && !f->draining;
    table_text(l->t, !ready ? "not ready" : problem[0] != '\0' ? "degraded" : "ready");
    table_text(l->t, problem);
    table_value(l->t, f->device_count);
    table_value(l->t, discover_serving(f));
    table_value(l->t, f->session_count);
    table_value(l->t, f->queued_count);
    table_value(l->t, f->job_count - f->queued_count);
    table_value(l->t, f->count.done);
    table_value(l->t, f->count.failed);
    table_value(l->t, f->count.lost);
    table_value(l->t, f->count.refused);
    table_value(l->t, f->count.replayed);
    table_value(l->t, restarts);
    table_value(l->t, spilled);
    table_value(l->t, clock_now_ns() - f->started_ns);
    table_text(l->t, f->build);
    last_trouble(l);
    table_value(l->t, stats.connections);
    table_value(l->t, stats.protocol_errors);
    table_value(l->t, f->count.cancelled);
    table_value(l->t, f->count.deduplicated);
    table_value(l->t, stats.refused);
    table_value(l->t, f->work.most);
    table_row_end(l->t);
}

static void device_row(const struct look *l, const struct device *d)
{
    struct table *t = l->t;
    char fault[640];
    char note[64];
    uint64_t now = clock_now_ns();
    fault_text(l, d, fault, sizeof fault);
    trouble_note(d, now, note, sizeof note);
    if (note[0] == '\0') {
        look_health_note(l->f, d, note, sizeof note);
    }
    table_value(t, d->index);
    table_text(t, d->backend);
    table_text(t, device_state_name(d));
    const char *kind = d->simulated ? "simulated" : d->cpu ? "CPU" : "GPU";
    table_text(t, d->arch[0] != '\0' ? kind : ""); /* not known before it opened once */
    table_text(t, d->name);
    table_value(t, d->memory);
    table_value(t, d->buffer_bytes);
    table_value(t, d->inflight_count);
    table_value(t, d->jobs_done);
    table_value(t, d->restarts);
    table_text(t, note);
    table_text(t, d->reason);
    table_text(t, fault);
    table_text(t, d->vendor);
    table_text(t, d->driver);
    table_value(t, d->units);
    table_value(t, d->streams);
    table_value(t, d->max_group);
    table_value(t, d->local_bytes);
    table_value(t, d->f64);
    table_value(t, (uint64_t)d->pid);
    table_value(t, d->busy_ns);
    if (d->fault_ns != 0) {
        table_value(t, now - d->fault_ns);
    } else {
        table_text(t, "-");
    }
    table_text(t, d->pin);
    table_value(t, d->pool.spilled);
    table_value(t, d->pool.batches);
    table_value(t, d->pool.batched);
    table_value(t, d->pool.held);
    look_health_cells(l->f, d, t);
    table_row_end(t);
}

static void look_devices(struct look *l)
{
    static const char *const names[] = {
        "device",    "backend",   "state",    "kind",      "name",         "memory",     "buffers",
        "in_flight", "jobs",      "restarts", "note",      "reason",       "last_fault", "vendor",
        "driver",    "units",     "streams",  "max_group", "local_memory", "f64",        "worker",
        "busy",      "fault_age", "pin",      "spilled",   "batches",      "batched",    "held"};
    static const int kinds[] = {COLUMN_UINT,  COLUMN_TEXT,  COLUMN_TEXT, COLUMN_TEXT,  COLUMN_TEXT,
                                COLUMN_BYTES, COLUMN_BYTES, COLUMN_UINT, COLUMN_UINT,  COLUMN_UINT,
                                COLUMN_TEXT,  COLUMN_TEXT,  COLUMN_TEXT, COLUMN_TEXT,  COLUMN_TEXT,
                                COLUMN_UINT,  COLUMN_UINT,  COLUMN_UINT, COLUMN_BYTES, COLUMN_BOOL,
                                COLUMN_UINT,  COLUMN_NS,    COLUMN_NS,   COLUMN_TEXT,  COLUMN_BYTES,
                                COLUMN_UINT,  COLUMN_UINT,  COLUMN_UINT};
    COLUMNS(l->t, 11, names, kinds);
    look_health_columns(l->t);
    monitor_watch(l->f, clock_now_ns(), false);
    for (unsigned i = 0; i < l->f->device_count; i++) {
        device_row(l, l->f->device[i]);
    }
}

static void look_pool(struct look *l)
{
    static const char *const names[] = {"device",     "size",         "used",     "peak",
                                        "cached",     "largest_free", "live",     "allocations",
                                        "frees",      "hits",         "failures", "driver_calls",
                                        "staging_in", "staging_out",  "spilled",  "spill_limit",
                                        "spills",     "returns",      "managed",  "managed_limit"};
    static const int kinds[] = {COLUMN_UINT,  COLUMN_BYTES, COLUMN_BYTES, COLUMN_BYTES,
                                COLUMN_BYTES, COLUMN_BYTES, COLUMN_UINT,  COLUMN_UINT,
                                COLUMN_UINT,  COLUMN_UINT,  COLUMN_UINT,  COLUMN_UINT,
                                COLUMN_BYTES, COLUMN_BYTES, COLUMN_BYTES, COLUMN_BYTES,
                                COLUMN_UINT,  COLUMN_UINT,  COLUMN_BYTES, COLUMN_BYTES};
    COLUMNS(l->t, 8, names, kinds);
    for (unsigned i = 0; i < l->f->device_count; i++) {
        const struct device *d = l->f->device[i];
        const struct msg_w_pool *p = &d->pool;
        const uint64_t row[] = {d->index,
                                p->size,
                                p->used,
                                p->peak,
                                p->cached,
                                p->largest_free,
                                p->live,
                                p->allocations,
                                p->frees,
                                p->hits,
                                p->failures,
                                p->driver_calls,
                                d->input_range.used,
                                d->output_range.used,
                                p->spilled,
                                p->spill_limit,
                                p->spills,
                                p->returns,
                                p->managed,
                                p->managed_limit};
        for (unsigned k = 0; k < sizeof row / sizeof row[0]; k++) {
            table_value(l->t, row[k]);
        }
        table_row_end(l->t);
    }
}

/* A number, or what stands for one that is not known. */
static void known_value(struct table *t, uint64_t value)
{
    if (value != 0) {
        table_value(t, value);
    } else {
        table_text(t, "-");
    }
}

/* b: for which device kind it was made, NULL if for none. */
static void kernel_row(struct table *t, const struct kernel *k, uint64_t handle,
                       const struct build *b)
{
    bool users = k->module != NULL && k->module->tenant != NULL;
    struct resources needs = kernel_needs(k, b);
    table_text(t, k->name);
    table_text(t, k->module != NULL ? k->module->name : "");
    table_text(t, users ? "loaded" : k->module == NULL ? "operation" : "built-in");
    table_text(t, k->signature != NULL ? k->signature->text : "");
    table_value(t, handle);
    table_text(t, b != NULL ? b->backend : "");
    table_text(t, b != NULL ? b->arch : "");
    known_value(t, needs.registers);
    known_value(t, needs.item_bytes);
    known_value(t, needs.group_bytes);
    known_value(t, needs.max_group);
    known_value(t, needs.group_multiple);
    known_value(t, needs.occupancy);
    table_row_end(t);
}

static const struct build *next_made(const struct build *b)
{
    while (b != NULL && b->state != BUILD_DONE) {
        b = b->next;
    }
    return b;
}

static void look_kernels(struct look *l)
{
    static const char *const names[] = {
        "name",      "module",         "kind",      "signature",   "handle",
        "backend",   "arch",           "registers", "item_memory", "group_memory",
        "max_group", "group_multiple", "occupancy"};
    static const int kinds[] = {COLUMN_TEXT, COLUMN_TEXT, COLUMN_TEXT, COLUMN_TEXT,  COLUMN_HANDLE,
                                COLUMN_TEXT, COLUMN_TEXT, COLUMN_UINT, COLUMN_BYTES, COLUMN_BYTES,
                                COLUMN_UINT, COLUMN_UINT, COLUMN_PPM};
    COLUMNS(l->t, 4, names, kinds);
}

static bool next_kernel(struct look *l)
{
    uint64_t handle = 0;
    const struct kernel *k = idmap_next(&l->f->kernels, &l->cursor, &handle);
    if (k == NULL) {
        return false;
    }
    bool users = k->module != NULL && k->module->tenant != NULL;
    if (users && (l->s == NULL || k->module->tenant != l->s->tenant)) {
        return true;
    }
    const struct build *b = next_made(k->module != NULL ? k->module->builds : NULL);
    do {
        turn_count(l->f, ROW_UNITS);
        kernel_row(l->t, k, handle, b);
        b = b != NULL ? next_made(b->next) : NULL;
    } while (b != NULL);
    return true;
}

static void job_row(struct table *t, const struct job *j)
{
    table_value(t, j->id);
    table_text(t, job_state_name(j->state));
    table_text(t, j->label);
    table_text(t, j->tenant != NULL ? j->tenant->name : "gpud");
    if (j->device != NULL) {
        table_printf(t, "%u.%u", j->device->index, j->stream);
    } else {
        table_text(t, "");
    }
    table_text(t, job_wait_name(j->wait));
    uint64_t end = j->ended_ns > 0 ? j->ended_ns : clock_now_ns();
    uint64_t began = j->started_ns > 0 ? j->started_ns : end;
    table_value(t, began > j->submitted_ns ? began - j->submitted_ns : 0);
    table_value(t, j->started_ns > 0 && end > j->started_ns ? end - j->started_ns : 0);
    table_value(t, j->replays + j->external);
    table_text(t, j->error.text);
    table_value(t, j->submitted_ns);
    table_value(t, j->dispatched_ns);
    table_value(t, j->started_ns);
    table_value(t, j->ended_ns);
    table_row_end(t);
}

/* The table of jobs is in the order of their submission. */
static const struct job *newest_job(const struct front *f)
{
    return f->jobs != NULL ? ELMT_FROM_HH(f->jobs->hh.tbl, f->jobs->hh.tbl->tail) : NULL;
}

static bool job_wanted(const struct msg_query *query, const struct job *j)
{
    const char *tenant = j->tenant != NULL ? j->tenant->name : "gpud";
    return (query->state.size == 0 || bytes_equal_str(query->state, job_state_name(j->state))) &&
           (query->tenant.size == 0 || bytes_equal_str(query->tenant, tenant)) &&
           (query->session == 0 || query->session == j->session_id);
}

/* Newest first. Also the timeline: when each job ran on which stream. */
static void look_jobs(struct look *l)
{
    static const char *const names[] = {
        "job",      "state",   "label", "tenant",       "device",        "waits_for",  "queued",
        "executed", "replays", "error", "submitted_at", "dispatched_at", "started_at", "ended_at"};
    static const int kinds[] = {COLUMN_UINT, COLUMN_TEXT, COLUMN_TEXT, COLUMN_TEXT, COLUMN_TEXT,
                                COLUMN_TEXT, COLUMN_NS,   COLUMN_NS,   COLUMN_UINT, COLUMN_TEXT,
                                COLUMN_NS,   COLUMN_NS,   COLUMN_NS,   COLUMN_NS};
    COLUMNS(l->t, 10, names, kinds);
    l->at = newest_job(l->f);
}

static bool next_job(struct look *l)
{
    uint64_t most = l->query->limit > 0 ? l->query->limit : UINT64_MAX;
    const struct job *j = l->at;
    if (j == NULL || l->t->row_count >= most) {
        return false;
    }
    l->at = j->hh.prev;
    if (rights_sees(&l->f->rights, l->s, j->tenant) && job_wanted(l->query, j)) {
        turn_count(l->f, ROW_UNITS);
        job_row(l->t, j);
    }
    return true;
}

static void look_sessions(struct look *l)
{
    static const char *const names[] = {"session", "name",    "tenant",  "process",
                                        "state",   "jobs",    "buffers", "requests",
                                        "kept",    "waiting", "expects", "admitted"};
    static const int kinds[] = {COLUMN_UINT,  COLUMN_TEXT, COLUMN_TEXT, COLUMN_UINT,
                                COLUMN_TEXT,  COLUMN_UINT, COLUMN_UINT, COLUMN_UINT,
                                COLUMN_BYTES, COLUMN_UINT, COLUMN_UINT, COLUMN_UINT};
    COLUMNS(l->t, 8, names, kinds);
    l->at = l->f->sessions;
}

static bool next_session(struct look *l)
{
    const struct session *s = l->at;
    if (s == NULL) {
        return false;
    }
    l->at = s->hh.next;
    if (!rights_sees(&l->f->rights, l->s, s->tenant)) {
        return true;
    }
    turn_count(l->f, ROW_UNITS);
    table_value(l->t, s->id);
    table_text(l->t, s->name);
    table_text(l->t, s->tenant->name);
    table_value(l->t, s->pid > 0 ? (uint64_t)s->pid : 0);
    table_text(l->t, s->pipe != 0 ? "connected" : "lingering");
    table_value(l->t, s->jobs);
    table_value(l->t, s->buffers);
    table_value(l->t, s->unanswered);
    table_value(l->t, s->kept_bytes);
    table_value(l->t, s->early_count);
    table_value(l->t, s->expect);
    table_value(l->t, s->requests);
    table_row_end(l->t);
    return true;
}

static void look_tenants(struct look *l)
{
    look_tenants_begin(l->f, l->t);
    l->at = l->f->tenants;
}

static bool next_tenant(struct look *l)
{
    const struct tenant *x = l->at;
    if (x == NULL) {
        return false;
    }
    l->at = x->hh.next;
    if (rights_sees(&l->f->rights, l->s, x)) {
        turn_count(l->f, ROW_UNITS + l->f->device_count);
        look_tenants_row(l->f, x, l->t);
    }
    return true;
}

static void look_config(struct look *l)
{
    static const char *const names[] = {"section", "key", "value"};
    static const int kinds[] = {COLUMN_TEXT, COLUMN_TEXT, COLUMN_TEXT};
    COLUMNS(l->t, 3, names, kinds);
    const char *section = NULL;
    const char *key = NULL;
    char value[512];
    for (unsigned i = 0; config_at(&l->f->config, i, &section, &key, value, sizeof value); i++) {
        table_text(l->t, section);
        table_text(l->t, key);
        table_text(l->t, value);
        table_row_end(l->t);
    }
}

static const struct view views[] = {
    {"status", look_status, NULL, true},
    {"devices", look_devices, NULL, true},
    {"pool", look_pool, NULL, false},
    {"kernels", look_kernels, next_kernel, true},
    {"jobs", look_jobs, next_job, false},
    {"timeline", look_jobs, next_job, false},
    {"sessions", look_sessions, next_session, false},
    {"tenants", look_tenants, next_tenant, false},
    {"config", look_config, NULL, false},
};

/* Is it the name of a state of jobs, or empty? */
static int check_state(struct bytes state, struct err *e)
{
    char names[128] = "";
    bool known = state.size == 0;
    for (int i = 0; i < JOB_STATES && !known; i++) {
        const char *name = job_state_name((enum job_state)i);
        size_t used = strlen(names);
        known = bytes_equal_str(state, name);
        (void)snprintf(names + used, sizeof names - used, "%s%s", used > 0 ? ", " : "", name);
    }
    return known ? 0
                 : err_set(e, ERR_INVALID, "state \"%.*s\": the states of jobs are %s",
                           (int)state.size, (const char *)state.data, names);
}

/* ---- in slices ------------------------------------------------------------------------------ */

static void begin(struct look *l)
{
    l->begun = true;
    table_init(&l->table, l->view->name);
    l->table.filter = l->query->filter;
    l->t = &l->table;
    l->view->fill(l);
}

/* false: the turn is over. */
static bool go_on(struct look *l)
{
    bool more = l->view->next != NULL;
    while (more) {
        if (!turn_take(l->f, 1)) {
            return false;
        }
        more = l->view->next(l);
    }
    return true;
}

static void look_destroy(struct look *l)
{
    if (l->begun) {
        table_finish(&l->table);
    }
    request_destroy(l->r);
    free(l);
}

/* From now on it has its turns behind those that came before. */
static int look_later(struct request_context *c, struct look *from, struct err *e)
{
    struct look *l = malloc(sizeof *l);
    if (l == NULL) {
        return err_set(e, ERR_NOMEM, "a table");
    }
    *l = *from;
    l->t = &l->table;
    l->r = c->r;
    c->r = NULL;
    DL_APPEND(c->f->looks, l);
    c->f->hooks.kick(c->f);
    return 0;
}

static int look_at(struct request_context *c, const struct view *view, struct err *e)
{
    struct look l = {.f = c->f, .s = c->s, .query = &c->r->msg.query, .view = view};
    int rc = 0;
    bool waits = view->next != NULL && c->f->looks != NULL;
    if (!waits) {
        begin(&l);
    }
    if (waits || !go_on(&l)) {
        rc = look_later(c, &l, e);
    } else {
        rc = table_encode(&l.table, c->out, e);
    }
    if (l.begun && (rc != 0 || c->r != NULL)) {
        table_finish(&l.table);
    }
    return rc;
}

static void look_answer(struct look *l)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    int rc = table_encode(&l->table, &out, &e);
    if (rc == 0) {
        reply_plain(l->f, l->r, capbuf_view(&out));
    } else {
        reply_error(l->f, l->r, &e);
        l->r = NULL;
    }
    capbuf_finish(&out);
}

void look_some(struct front *f)
{
    while (f->looks != NULL && turn_has_room(f)) {
        struct look *l = f->looks;
        if (!l->begun) {
            begin(l);
        }
        if (!go_on(l)) {
            return;
        }
        DL_DELETE(f->looks, l);
        look_answer(l);
        look_destroy(l);
    }
}

void look_gone(struct front *f, const void *what, const void *next)
{
    if (f->looks != NULL && f->looks->at == what) {
        f->looks->at = next;
    }
}

void look_stop(struct front *f, const struct session *s)
{
    struct look *l;
    struct look *next;
    DL_FOREACH_SAFE(f->looks, l, next)
    {
        turn_count(f, 1);
        if (s == NULL || l->s == s) {
            DL_DELETE(f->looks, l);
            reply_none(f, l->r);
            l->r = NULL;
            look_destroy(l);
        }
    }
}

int request_query(struct request_context *c, struct err *e)
{
    const struct bytes what = c->r->msg.query.what;
    int bad = check_state(c->r->msg.query.state, e);
    if (bad != 0) {
        return bad;
    }
    for (unsigned i = 0; i < sizeof views / sizeof views[0]; i++) {
        if (!bytes_equal_str(what, views[i].name)) {
            continue;
        }
        if (c->s == NULL && !views[i].anybody) {
            return err_set(e, ERR_STATE, "say HELLO first");
        }
        return look_at(c, &views[i], e);
    }
    return err_set(e, ERR_NOT_FOUND, "there is no view %.*s", (int)what.size,
                   (const char *)what.data);
}
