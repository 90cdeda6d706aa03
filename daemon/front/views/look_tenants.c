#include "daemon/front/views/look_tenants.h"

#include "common/saturate.h"
#include "daemon/front/tenants/tenant_quota.h"

struct sums {
    struct tenant_use use;
    struct tenant_quota quota;
};

static struct sums sums_of(const struct front *f, const struct tenant *t)
{
    struct sums all = {.quota.hard = 0};
    bool known = false;
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct tenant_use *u = &t->use[i];
        const struct device *d = f->device[i];
        all.use.asked += u->asked;
        all.use.mapped += u->mapped;
        all.use.peak += u->peak;
        all.use.shared += u->shared;
        all.use.spilled += u->spilled;
        if (device_serves(d)) {
            const struct tenant_quota q = tenant_quota(t, device_pool_limit(d));
            known = true;
            all.quota.hard = sat_add(all.quota.hard, q.hard);
            all.quota.soft = sat_add(all.quota.soft, q.soft);
            all.quota.guaranteed = sat_add(all.quota.guaranteed, u->kept);
            all.quota.spilled = sat_add(all.quota.spilled, q.spilled);
        }
    }
    all.quota.hard = known ? all.quota.hard : UINT64_MAX; /* of no device: not a limit of 0 */
    all.quota.soft = known ? all.quota.soft : UINT64_MAX;
    all.quota.spilled = known ? all.quota.spilled : UINT64_MAX;
    return all;
}

static void limit(struct table *t, uint64_t bytes)
{
    if (bytes == UINT64_MAX) {
        table_text(t, "-");
    } else {
        table_value(t, bytes);
    }
}

void look_tenants_row(const struct front *f, const struct tenant *x, struct table *t)
{
    char users[600];
    struct sums all = sums_of(f, x);
    quota_users(&f->rules, x, users, sizeof users);
    table_text(t, x->name);
    table_value(t, x->sessions);
    table_value(t, x->buffer_bytes);
    table_value(t, all.use.mapped);
    table_value(t, all.use.spilled);
    limit(t, all.quota.hard);
    table_value(t, x->jobs_submitted);
    table_value(t, x->waiting);
    table_value(t, x->refusals);
    table_text(t, users);
    table_value(t, all.use.asked);
    table_value(t, all.use.peak);
    table_value(t, all.use.shared);
    limit(t, all.quota.soft);
    table_value(t, all.quota.guaranteed);
    table_value(t, x->arena_bytes);
    limit(t, x->limits.arena_bytes == UINT64_MAX ? f->config.tenant_arena_bytes
                                                 : x->limits.arena_bytes);
    table_value(t, x->jobs_failed);
    table_value(t, x->may_load);
    table_value(t, HASH_COUNT(x->strikes));
    limit(t, all.quota.spilled);
    limit(t, x->limits.total);
    table_row_end(t);
}

static void columns(struct table *t)
{
    static const struct {
        const char *name;
        enum proto_column_kind kind;
        bool wide;
    } column[] = {
        {"tenant", COLUMN_TEXT, false},       {"sessions", COLUMN_UINT, false},
        {"buffers", COLUMN_BYTES, false},     {"mapped", COLUMN_BYTES, false},
        {"spilled", COLUMN_BYTES, false},     {"hard", COLUMN_BYTES, false},
        {"jobs", COLUMN_UINT, false},         {"waiting", COLUMN_UINT, false},
        {"refusals", COLUMN_UINT, false},     {"users", COLUMN_TEXT, true},
        {"asked", COLUMN_BYTES, true},        {"peak", COLUMN_BYTES, true},
        {"exported", COLUMN_BYTES, true},     {"soft", COLUMN_BYTES, true},
        {"guaranteed", COLUMN_BYTES, true},   {"arenas", COLUMN_BYTES, true},
        {"arenas_max", COLUMN_BYTES, true},   {"failed", COLUMN_UINT, true},
        {"loads_kernels", COLUMN_BOOL, true}, {"struck_kernels", COLUMN_UINT, true},
        {"spilled_max", COLUMN_BYTES, true},  {"total_max", COLUMN_BYTES, true},
    };
    for (unsigned i = 0; i < sizeof column / sizeof column[0]; i++) {
        table_column(t, column[i].name, column[i].kind, column[i].wide);
    }
}

/* Only jobs that a worker has wait for memory. */
static void count_waiting(struct front *f)
{
    for (struct tenant *x = f->tenants; x != NULL; x = x->hh.next) {
        turn_count(f, 1);
        x->waiting = 0;
    }
    for (unsigned i = 0; i < f->device_count; i++) {
        for (const struct job *j = f->device[i]->inflight; j != NULL; j = j->device_next) {
            if (j->tenant != NULL && j->wait == WAIT_MEMORY) {
                j->tenant->waiting++;
            }
        }
    }
}

void look_tenants_begin(struct front *f, struct table *t)
{
    count_waiting(f);
    columns(t);
}
