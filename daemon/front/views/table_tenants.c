/* The tables `sessions` and `tenants`. */
#include <stdio.h>
#include <string.h>

#include "common/saturate.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/views/table_view.h"

/* ---- sessions -------------------------------------------------------------------------------- */

#define SESSION_COLUMNS(COLUMN, WIDE)                                                              \
    COLUMN(session, UINT, s->id)                                                                   \
    COLUMN(name, TEXT, s->name)                                                                    \
    COLUMN(tenant, TEXT, s->tenant->name)                                                          \
    COLUMN(process, UINT, s->client.pid > 0 ? (uint64_t)s->client.pid : 0)                         \
    COLUMN(state, TEXT, s->state == SESSION_CONNECTED ? "connected" : "lingering")                 \
    COLUMN(jobs, UINT, s->jobs)                                                                    \
    COLUMN(buffers, UINT, s->buffers)                                                              \
    COLUMN(requests, UINT, s->ops.open_count)                                                      \
    WIDE(kept, BYTES, s->ops.kept_bytes)                                                           \
    WIDE(waiting, UINT, s->early.count)                                                            \
    WIDE(expects, UINT, s->order.expect)                                                           \
    WIDE(admitted, UINT, s->requests)

static void sessions_begin(struct table_query *q)
{
    struct table *t = &q->table;
    TABLE_HEADER(SESSION_COLUMNS);
    q->at = q->f->sessions;
}

static bool sessions_next(struct table_query *q)
{
    struct table *t = &q->table;
    const struct session *s = q->at;
    if (s == NULL) {
        return false;
    }
    q->at = s->hh.next;
    if (rights_sees(&q->f->rights, q->s, s->tenant)) {
        turn_count(q->f, TABLE_ROW_UNITS);
        TABLE_ROW(SESSION_COLUMNS);
    }
    return true;
}

const struct table_view view_sessions = {"sessions", sessions_begin, sessions_next, false};

/* ---- tenants --------------------------------------------------------------------------------- */

/* What a tenant has on all devices, by the latest reports of their workers, and what it may have on
 * those that serve. */
struct sums {
    struct tenant_use use;
    struct tenant_quota quota;
};

static struct sums sums_of(const struct front *f, const struct tenant *t)
{
    struct sums all = {.quota.hard = 0};
    bool known = false;
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        const struct tenant_use *u = &t->use[d->index];
        all.use.asked += u->asked;
        all.use.peak += u->peak;
        if (d->owner == t && d->pid == 0) { /* its last report was of a process that has ended */
            all.use.spilled += d->evacuation.bytes;
        } else {
            all.use.mapped += u->mapped;
            all.use.shared += u->shared;
            all.use.spilled += u->spilled;
        }
        if (device_serves(d)) {
            const struct tenant_quota q = tenant_quota(t, device_pool_limit(d));
            known = true;
            all.quota.hard = sat_add(all.quota.hard, q.hard);
            all.quota.soft = sat_add(all.quota.soft, q.soft);
            all.quota.guaranteed = sat_add(all.quota.guaranteed, u->kept);
            all.quota.spilled = sat_add(all.quota.spilled, q.spilled);
        }
    }
    all.quota.hard = known ? all.quota.hard : UINT64_MAX; /* no device serves: unknown, not 0 */
    all.quota.soft = known ? all.quota.soft : UINT64_MAX;
    all.quota.spilled = known ? all.quota.spilled : UINT64_MAX;
    return all;
}

static struct proto_cell limit(uint64_t bytes)
{
    return table_known(bytes != UINT64_MAX, bytes);
}

static uint64_t arena_limit(const struct front *f, const struct tenant *x)
{
    return x->limits.arena_bytes == UINT64_MAX ? f->config.tenant_arena_bytes
                                               : x->limits.arena_bytes;
}

static uint64_t jobs_limit(const struct front *f, const struct tenant *x)
{
    uint64_t own = x->limits.most[TENANT_JOBS];
    return own > 0 ? own : config_tenant_jobs(&f->config);
}

#define TENANT_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(tenant, TEXT, x->name)                                                                  \
    COLUMN(sessions, UINT, x->sessions)                                                            \
    COLUMN(buffers, BYTES, x->buffer_bytes)                                                        \
    COLUMN(mapped, BYTES, all.use.mapped)                                                          \
    COLUMN(spilled, BYTES, all.use.spilled)                                                        \
    COLUMN(hard, BYTES, limit(all.quota.hard))                                                     \
    COLUMN(jobs, UINT, x->jobs_submitted)                                                          \
    COLUMN(waiting, UINT, x->waiting)                                                              \
    COLUMN(device_time, NS, x->account->device_ns)                                                 \
    COLUMN(refusals, UINT, x->refusals)                                                            \
    WIDE(weight, UINT, x->limits.weight)                                                           \
    WIDE(class, TEXT, tenant_classes[x->limits.job_class])                                         \
    WIDE(users, TEXT, users)                                                                       \
    WIDE(asked, BYTES, all.use.asked)                                                              \
    WIDE(peak, BYTES, all.use.peak)                                                                \
    WIDE(exported, BYTES, all.use.shared)                                                          \
    WIDE(soft, BYTES, limit(all.quota.soft))                                                       \
    WIDE(guaranteed, BYTES, all.quota.guaranteed)                                                  \
    WIDE(arenas, BYTES, x->arena_bytes)                                                            \
    WIDE(arenas_max, BYTES, limit(arena_limit(q->f, x)))                                           \
    WIDE(failed, UINT, x->jobs_failed)                                                             \
    WIDE(loads_kernels, BOOL, x->may_load)                                                         \
    WIDE(domains, UINT, x->domains)                                                                \
    WIDE(own_workers, BOOL, x->apart)                                                              \
    WIDE(struck_kernels, UINT, HASH_COUNT(x->strikes))                                             \
    WIDE(spilled_max, BYTES, limit(all.quota.spilled))                                             \
    WIDE(total_max, BYTES, limit(x->limits.total))                                                 \
    WIDE(devices, TEXT, devices)                                                                   \
    WIDE(roles, TEXT, roles)                                                                       \
    WIDE(unfinished, UINT, x->held[TENANT_JOBS])                                                   \
    WIDE(jobs_max, UINT, jobs_limit(q->f, x))                                                      \
    WIDE(in_flight, UINT, x->gate.flying)                                                          \
    WIDE(inflight_max, UINT, table_known(x->limits.in_flight > 0, x->limits.in_flight))            \
    WIDE(held, UINT, x->gate.held_count)                                                           \
    WIDE(transfer_rate, BYTES, table_known(x->limits.transfer_rate > 0, x->limits.transfer_rate))  \
    WIDE(socket, TEXT, socket_of(q, x))                                                            \
    WIDE(device_share, TEXT, share)

/* Only jobs that a worker has wait for memory. */
static void count_waiting(struct front *f)
{
    for (struct tenant *x = f->tenants; x != NULL; x = x->hh.next) {
        turn_count(f, 1);
        x->waiting = 0;
    }
    const struct device *d;
    for (unsigned at = 0; (d = front_next_device(f, &at)) != NULL;) {
        for (const struct job *j = d->inflight; j != NULL; j = j->device_next) {
            if (j->tenant != NULL && j->wait == WAIT_MEMORY) {
                j->tenant->waiting++;
            }
        }
    }
}

static void tenants_begin(struct table_query *q)
{
    struct table *t = &q->table;
    count_waiting(q->f);
    TABLE_HEADER(TENANT_COLUMNS);
    q->at = q->f->tenants;
}

static void add_word(char *out, size_t size, const char *word)
{
    size_t used = strlen(out);
    (void)snprintf(out + used, size - used, "%s%s", used > 0 ? "," : "", word);
}

static void list_devices(const struct front *f, const struct tenant *x, char *out, size_t size)
{
    char number[16];
    out[0] = '\0';
    for (unsigned i = 0; i < f->device_count && x->limits.devices != 0; i++) {
        (void)snprintf(number, sizeof number, "%u", i);
        if (tenant_may_use(x, i)) {
            add_word(out, size, number);
        }
    }
    if (x->limits.devices == 0) {
        add_word(out, size, "all");
    } else if (out[0] == '\0') {
        add_word(out, size, "none");
    }
}

static void list_roles(const struct tenant *x, char *out, size_t size)
{
    out[0] = '\0';
    for (unsigned i = 0; i < TENANT_ROLES; i++) {
        if ((x->limits.roles >> i & 1) != 0) {
            add_word(out, size, tenant_roles[i]);
        }
    }
}

static const char *socket_of(const struct table_query *q, const struct tenant *x)
{
    const struct tenant_rule *rule = tenant_rules_named(&q->f->rules, x->name);
    return rule != NULL ? rule->socket.path : "";
}

static void tenant_row(struct table_query *q, const struct tenant *x)
{
    struct table *t = &q->table;
    char users[600];
    char devices[200];
    char roles[40];
    char share[8] = "";
    struct sums all = sums_of(q->f, x);
    quota_users(&q->f->rules, x, users, sizeof users);
    list_devices(q->f, x, devices, sizeof devices);
    list_roles(x, roles, sizeof roles);
    if (x->limits.device_share > 0) {
        (void)snprintf(share, sizeof share, "%u%%", x->limits.device_share);
    }
    TABLE_ROW(TENANT_COLUMNS);
}

static bool tenants_next(struct table_query *q)
{
    const struct tenant *x = q->at;
    if (x == NULL) {
        return false;
    }
    q->at = x->hh.next;
    if (rights_sees(&q->f->rights, q->s, x)) {
        turn_count(q->f, TABLE_ROW_UNITS + q->f->device_count);
        tenant_row(q, x);
    }
    return true;
}

const struct table_view view_tenants = {"tenants", tenants_begin, tenants_next, false};
