/* Snapshots as tables. A part becomes a table only when a client reads it, so a request makes the
 * rows of one answer at most. */
#include <stdio.h>

#include "common/clock.h"
#include "daemon/front/views/snapshot_set.h"
#include "daemon/front/views/table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static int finish(struct table *t, struct capbuf *out, struct err *e)
{
    int rc = table_encode(t, out, e);
    table_finish(t);
    return rc;
}

/* ---- numbers ------------------------------------------------------------------------------ */

/* A number of the snapshot, and one of the worker's report that precedes it. */
#define TAKEN(member)    table_known(taken, h->numbers.member)
#define REPORTED(member) table_known(taken, p->device->pool.member)

#define NUMBER_COLUMNS(COLUMN, WIDE)                                                               \
    COLUMN(size, BYTES, TAKEN(size))                                                               \
    COLUMN(used, BYTES, TAKEN(used))                                                               \
    COLUMN(peak, BYTES, TAKEN(peak))                                                               \
    COLUMN(cached, BYTES, TAKEN(cached))                                                           \
    COLUMN(pending, BYTES, TAKEN(pending))                                                         \
    COLUMN(largest_free, BYTES, TAKEN(largest_free))                                               \
    COLUMN(internal, BYTES, TAKEN(internal))                                                       \
    COLUMN(external, BYTES, TAKEN(external))                                                       \
    COLUMN(live, UINT, TAKEN(live))                                                                \
    WIDE(limit, BYTES, TAKEN(limit))                                                               \
    WIDE(asked, BYTES, TAKEN(asked))                                                               \
    WIDE(size_peak, BYTES, TAKEN(size_peak))                                                       \
    WIDE(allocations, UINT, TAKEN(allocations))                                                    \
    WIDE(frees, UINT, TAKEN(frees))                                                                \
    WIDE(hits, UINT, TAKEN(hits))                                                                  \
    WIDE(waits, UINT, TAKEN(waits))                                                                \
    WIDE(remaps, UINT, TAKEN(remaps))                                                              \
    WIDE(failures, UINT, TAKEN(failures))                                                          \
    WIDE(refused_frees, UINT, TAKEN(refused_frees))                                                \
    WIDE(driver_calls, UINT, TAKEN(driver_calls))                                                  \
    WIDE(vacant, BYTES, TAKEN(vacant))                                                             \
    WIDE(came_back, UINT, TAKEN(came_back))                                                        \
    COLUMN(exported, BYTES, TAKEN(exported))                                                       \
    WIDE(managed, BYTES, TAKEN(managed))                                                           \
    COLUMN(arenas, BYTES, TAKEN(arenas))

/* Columns are appended only: clients may know them by their place. */
#define LATER_NUMBER_COLUMNS(COLUMN, WIDE)                                                         \
    WIDE(handles, UINT, TAKEN(handles))                                                            \
    WIDE(breaks, UINT, TAKEN(breaks))

_Static_assert(TABLE_COUNT(NUMBER_COLUMNS) + TABLE_COUNT(LATER_NUMBER_COLUMNS) ==
                   sizeof(struct snapshot_numbers) / sizeof(uint64_t),
               "every number has its column");

#define POOL_COLUMNS(COLUMN, WIDE)                                                                 \
    COLUMN(device, UINT, device_shown(p->device))                                                  \
    NUMBER_COLUMNS(COLUMN, WIDE)                                                                   \
    COLUMN(hit_rate, PPM, hit_rate(p))                                                             \
    WIDE(events, UINT, table_known(taken, h->events))                                              \
    WIDE(first_event, UINT, table_known(taken, h->first_event))                                    \
    WIDE(pieces, UINT, table_known(taken, h->pieces))                                              \
    WIDE(pieces_left_out, UINT, table_known(taken, left_out(h)))                                   \
    WIDE(taken, UINT, table_known(taken, h->taken_ns))                                             \
    WIDE(taken_at, UINT, table_known(taken, h->wall_ns))                                           \
    COLUMN(note, TEXT, p->note)                                                                    \
    WIDE(staging_in, BYTES, p->device->input_range.used)                                           \
    WIDE(staging_out, BYTES, p->device->output_range.used)                                         \
    WIDE(picture, UINT, set->number)                                                               \
    WIDE(version, UINT, SNAPSHOT_VERSION)                                                          \
    WIDE(spilled, BYTES, REPORTED(spilled))                                                        \
    WIDE(spill_limit, BYTES, REPORTED(spill_limit))                                                \
    WIDE(spills, UINT, REPORTED(spills))                                                           \
    WIDE(returns, UINT, REPORTED(returns))                                                         \
    WIDE(managed_limit, BYTES, REPORTED(managed_limit))                                            \
    WIDE(recalled, BYTES, REPORTED(missing))                                                       \
    WIDE(private_places, UINT, REPORTED(private_places))                                           \
    WIDE(private_bytes, BYTES, REPORTED(private_bytes))                                            \
    WIDE(private_returns, UINT, REPORTED(private_returns))                                         \
    WIDE(private_others, UINT, REPORTED(private_others))                                           \
    WIDE(staying, BYTES, REPORTED(staying))                                                        \
    WIDE(stay_limit, BYTES, p->device->stay)                                                       \
    LATER_NUMBER_COLUMNS(COLUMN, WIDE)

static struct proto_cell hit_rate(const struct snapshot *p)
{
    const struct snapshot_numbers *n = &p->view.head.numbers;
    bool known = p->state == SNAPSHOT_TAKEN && n->allocations > 0;
    return table_known(known,
                       known ? (uint64_t)(1e6 * (double)n->hits / (double)n->allocations) : 0);
}

static uint64_t left_out(const struct snapshot_head *h)
{
    return h->pieces < h->pieces_all ? h->pieces_all - h->pieces : 0;
}

int snapshot_table_numbers(const struct snapshot_set *set, struct capbuf *out, struct err *e)
{
    struct table table;
    struct table *t = &table;
    table_init(t, "pool");
    TABLE_HEADER(POOL_COLUMNS);
    for (unsigned i = 0; i < set->count; i++) {
        const struct snapshot *p = &set->snapshot[i];
        const struct snapshot_head *h = &p->view.head;
        bool taken = p->state == SNAPSHOT_TAKEN;
        TABLE_ROW(POOL_COLUMNS);
    }
    return finish(t, out, e);
}

/* ---- rights ------------------------------------------------------------------------------- */

/* A part for one session. */
struct part {
    const struct front *f;
    const struct session *s;
    const struct snapshot *p;
    bool all; /* the session may see all tenants */
    struct table t;
    uint64_t key[SNAPSHOT_METERS_MAX]; /* of tenants, by their number in the pool (tenant_key) */
};

static void learn_tenants(struct part *x)
{
    for (unsigned i = 0; i < SNAPSHOT_METERS_MAX; i++) {
        x->key[i] = SNAPSHOT_TENANT_UNKNOWN;
    }
    for (uint32_t i = 0; i < x->p->view.head.meters; i++) {
        struct snapshot_meter m = snapshot_meter(&x->p->view, i);
        if (m.scope == SNAPSHOT_TENANT && m.index < SNAPSHOT_METERS_MAX) {
            x->key[m.index] = m.what;
        }
    }
}

/* The tenant with this number in the pool; NULL: none, or not known. */
static const struct tenant *tenant_numbered(const struct part *x, unsigned number)
{
    uint64_t key = number < SNAPSHOT_METERS_MAX ? x->key[number] : SNAPSHOT_TENANT_UNKNOWN;
    return key != 0 ? tenant_find(x->f->tenants, key) : NULL;
}

/* A piece with its owner. */
struct shown {
    struct snapshot_piece piece;
    const struct tenant *tenant;
    const char *label;
    bool hidden; /* of another tenant */
};

static struct shown show(const struct part *x, uint32_t i)
{
    struct shown v = {.piece = snapshot_piece(&x->p->view, i), .label = ""};
    bool live = v.piece.state == 3; /* POOL_EXTENT_LIVE */
    v.tenant = live ? tenant_numbered(x, v.piece.tenant) : NULL;
    if (v.piece.kind == SNAPSHOT_BUFFER) {
        const struct buffer *b = idmap_get(&x->f->buffers, v.piece.owner);
        bool here = b != NULL && b->device == x->p->device->index;
        v.tenant = here ? b->tenant : v.tenant;
        v.label = here ? b->label[0] != '\0' ? b->label : b->name : "";
    } else if (v.piece.kind == SNAPSHOT_TEMPORARY) {
        struct job *j = NULL;
        j = job_find(x->f->jobs, v.piece.owner);
        v.tenant = j != NULL && j->tenant != NULL ? j->tenant : v.tenant;
        v.label = j != NULL ? j->label : "";
    }
    v.hidden = !x->all && live && (v.tenant == NULL || v.tenant != x->s->tenant);
    return v;
}

/* ---- meters ------------------------------------------------------------------------------- */

static void class_name(uint64_t bytes, char *out, size_t size)
{
    if (bytes < 1024) {
        (void)snprintf(out, size, "%llu B", (unsigned long long)bytes);
    } else {
        (void)snprintf(out, size, "%g KiB", (double)bytes / 1024);
    }
}

static void meter_name(const struct snapshot_meter *m, const struct tenant *tenant, char *out,
                       size_t size)
{
    static const char *const tiers[] = {"slab", "block", "large"};
    if (m->scope == SNAPSHOT_TIER && m->index < COUNT(tiers)) {
        (void)snprintf(out, size, "%s", tiers[m->index]);
    } else if (m->scope == SNAPSHOT_CLASS) {
        class_name(m->what, out, size);
    } else if (tenant != NULL) {
        (void)snprintf(out, size, "%s", tenant->name);
    } else if (m->what == 0) {
        (void)snprintf(out, size, "gpud");
    } else { /* tenants without a number of their own, or removed ones */
        (void)snprintf(out, size, "others");
    }
}

#define METER_COLUMNS(COLUMN, WIDE)                                                                \
    COLUMN(device, UINT, device_shown(x->p->device))                                               \
    COLUMN(scope, TEXT, scopes[m.scope - SNAPSHOT_TIER])                                           \
    COLUMN(name, TEXT, name)                                                                       \
    COLUMN(live, UINT, m.live)                                                                     \
    COLUMN(used, BYTES, m.used)                                                                    \
    COLUMN(asked, BYTES, m.asked)                                                                  \
    COLUMN(peak, BYTES, m.peak)                                                                    \
    COLUMN(allocations, UINT, m.allocations)                                                       \
    COLUMN(total, BYTES, m.total)

static void meter_row(struct part *x, uint32_t i)
{
    static const char *const scopes[] = {"tier", "class", "tenant"};
    struct table *t = &x->t;
    struct snapshot_meter m = snapshot_meter(&x->p->view, i);
    const struct tenant *tenant = m.scope == SNAPSHOT_TENANT ? tenant_numbered(x, m.index) : NULL;
    bool known = m.scope >= SNAPSHOT_TIER && m.scope <= SNAPSHOT_TENANT;
    if (!known || (m.scope == SNAPSHOT_TENANT && !x->all && tenant != x->s->tenant)) {
        return;
    }
    char name[PROTO_NAME_MAX + 1];
    meter_name(&m, tenant, name, sizeof name);
    TABLE_ROW(METER_COLUMNS);
}

static void meters(struct part *x)
{
    struct table *t = &x->t;
    TABLE_HEADER(METER_COLUMNS);
    for (uint32_t i = 0; i < x->p->view.head.meters; i++) {
        meter_row(x, i);
    }
}

/* ---- pieces ------------------------------------------------------------------------------- */

#define PIECE_COLUMNS(COLUMN, WIDE)                                                                \
    COLUMN(piece, UINT, i)                                                                         \
    WIDE(entries, UINT, entries)                                                                   \
    COLUMN(at, UINT, p->at)                                                                        \
    COLUMN(size, BYTES, p->size)                                                                   \
    COLUMN(state, TEXT, states[p->state])                                                          \
    COLUMN(tenant, TEXT, v->hidden || v->tenant == NULL ? "" : v->tenant->name)                    \
    COLUMN(kind, TEXT, v->hidden ? "" : kinds[p->kind])                                            \
    COLUMN(id, HANDLE, table_known(!v->hidden && p->kind != SNAPSHOT_NOBODY, p->owner))            \
    COLUMN(label, TEXT, v->hidden ? "" : v->label)                                                 \
    WIDE(object, BOOL, p->object)                                                                  \
    WIDE(stream, UINT, p->stream)                                                                  \
    WIDE(until, UINT, p->seq)

static void piece_row(struct table *t, uint32_t i, uint32_t entries, const struct shown *v)
{
    static const char *const states[SNAPSHOT_STATES] = {"void", "free", "pending", "live", "lost"};
    static const char *const kinds[] = {"", "buffer", "temporary"};
    const struct snapshot_piece *p = &v->piece;
    TABLE_ROW(PIECE_COLUMNS);
}

/* Joins adjacent hidden pieces. Returns how many pieces `v` stands for. */
static uint32_t swallow(const struct part *x, uint32_t i, uint32_t end, struct shown *v)
{
    uint32_t entries = 1;
    while (v->hidden && i + entries < end) {
        struct shown next = show(x, i + entries);
        if (!next.hidden || next.piece.at != v->piece.at + v->piece.size) {
            break;
        }
        v->piece.size += next.piece.size;
        v->piece.object = 0;
        entries++;
    }
    return entries;
}

static void pieces(struct part *x, uint32_t first, uint32_t end)
{
    struct table *t = &x->t;
    TABLE_HEADER(PIECE_COLUMNS);
    for (uint32_t i = first, entries; i < end; i += entries) {
        struct shown v = show(x, i);
        entries = swallow(x, i, end, &v);
        piece_row(t, i, entries, &v);
    }
}

/* ---- events ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool public; /* shows nothing of a tenant's work */
} event_kinds[SNAPSHOT_EVENT_KINDS] = {
    {"alloc", false},   {"hit", false},   {"free", false},   {"refuse", false},
    {"map", false},     {"remap", false}, {"unmap", false},  {"wait", false},
    {"advance", false}, {"slab", false},  {"unslab", false}, {"trim", true},
    {"limit", true},    {"stamp", true},  {"move", false},   {"clear", false},
};

static bool event_of_tenant(unsigned kind)
{
    return kind <= 3 || kind == 9 || kind == 14; /* alloc, hit, free, refuse, slab, move */
}

#define EVENT_COLUMNS(COLUMN, WIDE)                                                                \
    COLUMN(event, UINT, x->p->view.head.first_event + i)                                           \
    COLUMN(kind, TEXT, event_kinds[v.kind].name)                                                   \
    COLUMN(at, UINT, v.at)                                                                         \
    COLUMN(size, BYTES, v.size)                                                                    \
    COLUMN(tenant, TEXT, tenant != NULL ? tenant->name : "")                                       \
    COLUMN(stream, UINT, v.stream)                                                                 \
    COLUMN(value, UINT, v.value)

static void event_row(struct part *x, uint32_t i)
{
    struct snapshot_event v = snapshot_event(&x->p->view, i);
    const struct tenant *tenant = event_of_tenant(v.kind) ? tenant_numbered(x, v.tenant) : NULL;
    bool own = tenant != NULL && tenant == x->s->tenant;
    if (!x->all && !own && !event_kinds[v.kind].public) {
        return;
    }
    struct table *t = &x->t;
    TABLE_ROW(EVENT_COLUMNS);
}

static void events(struct part *x, uint32_t first, uint32_t end)
{
    struct table *t = &x->t;
    TABLE_HEADER(EVENT_COLUMNS);
    for (uint32_t i = first; i < end; i++) {
        event_row(x, i);
    }
}

/* ---- parts ------------------------------------------------------------------------------ */

static uint32_t end_of(uint64_t first, uint64_t count, uint32_t total)
{
    uint64_t most = count < PROTO_POOL_ROWS_MAX ? count : PROTO_POOL_ROWS_MAX;
    return first >= total ? 0 : first + most < total ? (uint32_t)(first + most) : total;
}

int snapshot_table_part(const struct front *f, const struct session *s, const struct snapshot *p,
                        const struct msg_pool_read *m, struct capbuf *out, struct err *e)
{
    static const char *const names[] = {"meters", "pieces", "events"};
    const struct snapshot_head *h = &p->view.head;
    struct part x = {.f = f, .s = s, .p = p, .all = rights_sees(&f->rights, s, NULL)};
    if (m->part < POOL_METERS || m->part > POOL_EVENTS) {
        return err_set(e, ERR_INVALID, "a snapshot has no part %llu", (unsigned long long)m->part);
    }
    learn_tenants(&x);
    table_init(&x.t, names[m->part - POOL_METERS]);
    if (m->part == POOL_METERS) {
        meters(&x);
    } else if (m->part == POOL_PIECES) {
        pieces(&x, (uint32_t)m->first, end_of(m->first, m->count, h->pieces));
    } else {
        events(&x, (uint32_t)m->first, end_of(m->first, m->count, h->events));
    }
    return finish(&x.t, out, e);
}
