#include "daemon/front/metrics/collect.h"

#include <stdio.h>
#include <string.h>

#include "daemon/front/devices/monitor.h"
#include "daemon/front/sched/conduct.h"
#include "daemon/front/tenants/accounts.h"
#include "daemon/front/views/access_log.h"
#include "daemon/front/views/diagnosis.h"

/* ---- the daemon and its devices -------------------------------------------------------------- */

static void take_front(struct front *f, const struct tallies *t, struct front_figures *n)
{
    n->ready = diagnosis_ready(f);
    n->reload_good =
        f->settings_bad[0] == '\0' && f->files_bad[0] == '\0' && f->sockets_bad[0] == '\0';
    n->started_ns = t->started_ns;
    n->tls_end_s = f->tls_end.at_s;
    n->sessions = f->session_count;
    n->queued = f->queued_count;
    n->running = f->job_count - f->queued_count;
    n->longest_turn = f->work.most;
    n->access_lost = f->access != NULL ? access_log_lost(f->access) : 0;
    n->tokens_refused = f->tokens_refused;
    n->count = f->count;
    if (f->listener != NULL) {
        listener_stats(f->listener, &n->listener);
    }
    if (f->lanes != NULL) {
        lanes_stats(f->lanes, &n->lanes);
    }
    if (f->compiler != NULL) {
        compiler_stats(f->compiler, &n->compiler);
    }
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        n->any[c].ready_ns = f->any[c].ns;
    }
    n->none = t->none;
}

static const char *kind_of(const struct device *d)
{
    return d->arch[0] == '\0' ? "unknown" : d->simulated ? "simulated" : d->cpu ? "cpu" : "gpu";
}

static void take_health(struct front *f, const struct device *d, struct device_figures *n)
{
    struct health_device health;
    uint64_t age_ns;
    char why[256];
    if (monitor_read(f, d, &health, &age_ns, why, sizeof why)) {
        memcpy(n->health, health.value, sizeof n->health);
    }
}

static void take_device(const struct device *d, const struct tally *t, struct device_figures *n)
{
    const char *uuid = device_uuid(d);
    n->index = d->index;
    n->kind = kind_of(d);
    (void)snprintf(n->backend, sizeof n->backend, "%s", d->backend);
    (void)snprintf(n->name, sizeof n->name, "%s", d->name);
    (void)snprintf(n->driver, sizeof n->driver, "%s", d->driver);
    (void)snprintf(n->arch, sizeof n->arch, "%s", d->arch);
    (void)snprintf(n->uuid, sizeof n->uuid, "%s", uuid != NULL ? uuid : "");
    n->up = device_serves(d);
    n->drain = d->drain.state == DRAIN_RELEASED ? 2 : device_drains(d);
    n->memory = d->memory;
    n->granted = d->granted;
    n->buffers = d->buffer_bytes;
    n->in_flight = d->inflight_count;
    n->turns = d->turn.taken;
    n->overruns = d->turn.overruns;
    n->held = d->recovery != HEALTH_RECOVERY_NONE;
    n->pool = d->pool;
    memcpy(n->restarts, d->restart_count, sizeof n->restarts);
    for (unsigned c = 0; c < CLASS_COUNT; c++) {
        n->of_class[c].ready_ns = d->line.ready[c].ns;
        n->of_class[c].flying = d->line.flying[c];
    }
    n->tally = *t;
}

int collect_begin(struct collect *c, struct front *f, const struct tallies *t, struct err *e)
{
    struct figures *n = figures_create(f->device_count);
    if (n == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for metrics");
    }
    n->build = f->build;
    take_front(f, t, &n->front);
    for (unsigned i = 0; i < n->device_count; i++) {
        take_device(f->device[i], &t->device[i], &n->device[i]);
        take_health(f, f->device[i], &n->device[i]);
        turn_count(f, 1);
    }
    *c = (struct collect){.state = COLLECT_ACCOUNTS, .figures = n};
    return 0;
}

/* ---- tenants --------------------------------------------------------------------------------- */

static struct tenant_figures *row_named(struct figures *n, unsigned row, const char *name)
{
    struct tenant_figures *r = &n->tenant[row];
    if (r->name[0] == '\0') {
        (void)snprintf(r->name, sizeof r->name, "%s", row == 0 ? TALLY_OTHERS : name);
    }
    return r;
}

static void add_account(struct figures *n, unsigned row, const struct account *a)
{
    struct tenant_figures *r = row_named(n, row, a->name);
    n->front.to_device += a->to_device;
    n->front.from_device += a->from_device;
    r->to_device += a->to_device;
    r->from_device += a->from_device;
    r->energy_uj += a->energy_uj;
    for (unsigned i = 0; i < ACCOUNT_RESULTS; i++) {
        r->jobs[i] += a->jobs[i];
    }
}

/* false: there is no such account. */
static bool take_account(struct collect *c, const struct front *f)
{
    const struct account *a = f->accounts != NULL ? accounts_at(f->accounts, c->account) : NULL;
    if (a != NULL) {
        add_account(c->figures, tally_row(c->account, a->name), a);
        c->account++;
    }
    return a != NULL;
}

static void take_tenant(struct collect *c, struct front *f)
{
    const struct tenant *t = c->tenant;
    struct figures *n = c->figures;
    unsigned row = tally_tenant_row(f, t);
    struct tenant_figures *r = row_named(n, row, t->name);
    if (t->account == &t->own) { /* its counters are in no file */
        add_account(n, row, t->account);
    }
    r->weight += t->limits.weight;
    r->sessions += t->sessions;
    r->unfinished += t->held[TENANT_JOBS];
    r->in_flight += t->gate.flying;
    r->held += t->gate.held_count;
    r->arenas += t->arena_bytes;
    r->strikes += conduct_strikes(&t->conduct, turn_now(f));
    r->paused += conduct_paused_ns(&t->conduct, turn_now(f)) > 0;
    for (unsigned i = 0; i < n->device_count; i++) {
        n->buffers[figures_at(n, row, i)] += t->device_bytes[i];
        r->spilled += t->use[i].spilled;
    }
    c->tenant = t->hh.next;
}

/* What a tenant has in workers of its own. */
static void take_domain(struct figures *n, const struct front *f, const struct device *d)
{
    unsigned base = d->base->index;
    unsigned row = tally_tenant_row(f, d->owner);
    if (base < n->device_count) { /* it was there when the collection began */
        struct tenant_figures *r = row_named(n, row, d->owner->name);
        r->spilled += d->pid != 0 ? d->owner->use[d->index].spilled : d->evacuation.bytes;
        n->buffers[figures_at(n, row, base)] += d->owner->device_bytes[d->index];
        n->device[base].buffers += d->buffer_bytes;
        n->device[base].in_flight += d->inflight_count;
        n->device[base].domains++;
    }
}

static void take_busy(struct figures *n, const struct tallies *t)
{
    for (unsigned row = 0; row < TENANT_ROWS; row++) {
        for (unsigned i = 0; i < n->device_count; i++) {
            n->busy_ns[figures_at(n, row, i)] = t->busy[row].ns[i];
        }
    }
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Visits one element. false: the collection is complete. */
static bool visit(struct collect *c, struct front *f)
{
    if (c->state == COLLECT_ACCOUNTS && !take_account(c, f)) {
        c->state = COLLECT_TENANTS;
        c->tenant = f->tenants;
    } else if (c->state == COLLECT_TENANTS && c->tenant == NULL) {
        c->state = COLLECT_DOMAINS;
        c->place = DEVICES_MAX;
    } else if (c->state == COLLECT_TENANTS) {
        take_tenant(c, f);
    } else if (c->state == COLLECT_DOMAINS) {
        const struct device *d = c->place < f->domain_end ? f->device[c->place] : NULL;
        if (d != NULL) {
            take_domain(c->figures, f, d);
        }
        return ++c->place < f->domain_end;
    }
    return true;
}

struct figures *collect_some(struct collect *c, struct front *f, const struct tallies *t)
{
    do {
        if (!turn_take(f, 1 + c->figures->device_count / 8)) {
            return NULL;
        }
    } while (visit(c, f));
    struct figures *n = c->figures;
    take_busy(n, t);
    *c = (struct collect){.state = COLLECT_IDLE};
    return n;
}

void collect_skip(struct collect *c, const void *tenant, const void *next)
{
    if (c->state == COLLECT_TENANTS && c->tenant == tenant) {
        c->tenant = next;
    }
}

void collect_cancel(struct collect *c)
{
    figures_destroy(c->figures);
    *c = (struct collect){.state = COLLECT_IDLE};
}
