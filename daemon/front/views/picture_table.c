/* Pictures as tables. Every part is written from its picture when it is read, so that the loop
 * never has more to do than the rows of one answer. */
#include <stddef.h>
#include <stdio.h>

#include "common/clock.h"
#include "daemon/front/views/picture_set.h"
#include "daemon/front/views/table.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct column {
    const char *name;
    enum proto_column_kind kind;
    bool wide;
};

static void add_columns(struct table *t, const struct column *columns, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        table_column(t, columns[i].name, columns[i].kind, columns[i].wide);
    }
}

static int finish(struct table *t, struct capbuf *out, struct err *e)
{
    int rc = table_encode(t, out, e);
    table_finish(t);
    return rc;
}

/* ---- numbers ------------------------------------------------------------------------------ */

struct number {
    struct column column;
    size_t offset; /* in struct picture_numbers */
};

#define NUMBER(name, kind, wide)                                                                   \
    {                                                                                              \
        {#name, COLUMN_##kind, wide}, offsetof(struct picture_numbers, name)                       \
    }

static const struct number numbers[] = {
    NUMBER(size, BYTES, false),        NUMBER(used, BYTES, false),
    NUMBER(peak, BYTES, false),        NUMBER(cached, BYTES, false),
    NUMBER(pending, BYTES, false),     NUMBER(largest_free, BYTES, false),
    NUMBER(internal, BYTES, false),    NUMBER(external, BYTES, false),
    NUMBER(live, UINT, false),         NUMBER(limit, BYTES, true),
    NUMBER(asked, BYTES, true),        NUMBER(size_peak, BYTES, true),
    NUMBER(allocations, UINT, true),   NUMBER(frees, UINT, true),
    NUMBER(hits, UINT, true),          NUMBER(waits, UINT, true),
    NUMBER(remaps, UINT, true),        NUMBER(failures, UINT, true),
    NUMBER(refused_frees, UINT, true), NUMBER(driver_calls, UINT, true),
    NUMBER(vacant, BYTES, true),       NUMBER(came_back, UINT, true),
    NUMBER(exported, BYTES, false),    NUMBER(managed, BYTES, true),
    NUMBER(arenas, BYTES, false),
};

_Static_assert(COUNT(numbers) == sizeof(struct picture_numbers) / sizeof(uint64_t),
               "every number has its column");

static uint64_t number_of(const struct picture *p, size_t i)
{
    return *(const uint64_t *)(const void *)((const char *)&p->view.head.numbers +
                                             numbers[i].offset);
}

static uint64_t share_ppm(uint64_t part, uint64_t whole)
{
    return whole == 0 ? 0 : (uint64_t)(1e6 * (double)part / (double)whole);
}

static void taken_cells(struct table *t, const struct picture *p)
{
    const struct picture_head *h = &p->view.head;
    for (size_t i = 0; i < COUNT(numbers); i++) {
        table_value(t, number_of(p, i));
    }
    if (h->numbers.allocations > 0) {
        table_value(t, share_ppm(h->numbers.hits, h->numbers.allocations));
    } else {
        table_text(t, "-");
    }
    table_value(t, h->events);
    table_value(t, h->first_event);
    table_value(t, h->pieces);
    table_value(t, h->pieces_all - (h->pieces < h->pieces_all ? h->pieces : h->pieces_all));
    table_value(t, h->taken_ns);
    table_value(t, h->wall_ns);
}

/* As its worker told before the picture, which was asked for after it. */
static void host_cells(struct table *t, const struct picture *p)
{
    const struct msg_w_pool *told = &p->device->pool;
    const uint64_t row[] = {told->spilled, told->spill_limit, told->spills, told->returns,
                            told->managed_limit};
    for (size_t i = 0; i < COUNT(row); i++) {
        if (p->state == PICTURE_TAKEN) {
            table_value(t, row[i]);
        } else {
            table_text(t, "-");
        }
    }
}

int picture_table_numbers(const struct front *f, const struct picture_set *set, struct capbuf *out,
                          struct err *e)
{
    static const struct column device = {"device", COLUMN_UINT, false};
    static const struct column tail[] = {
        {"hit_rate", COLUMN_PPM, false},        {"events", COLUMN_UINT, true},
        {"first_event", COLUMN_UINT, true},     {"pieces", COLUMN_UINT, true},
        {"pieces_left_out", COLUMN_UINT, true}, {"taken", COLUMN_UINT, true},
        {"taken_at", COLUMN_UINT, true},        {"note", COLUMN_TEXT, false},
        {"staging_in", COLUMN_BYTES, true},     {"staging_out", COLUMN_BYTES, true},
        {"picture", COLUMN_UINT, true},         {"version", COLUMN_UINT, true},
        {"spilled", COLUMN_BYTES, true},        {"spill_limit", COLUMN_BYTES, true},
        {"spills", COLUMN_UINT, true},          {"returns", COLUMN_UINT, true},
        {"managed_limit", COLUMN_BYTES, true}};
    struct table t;
    (void)f;
    table_init(&t, "pool");
    add_columns(&t, &device, 1);
    for (size_t i = 0; i < COUNT(numbers); i++) {
        add_columns(&t, &numbers[i].column, 1);
    }
    add_columns(&t, tail, COUNT(tail));
    for (unsigned i = 0; i < set->count; i++) {
        const struct picture *p = &set->picture[i];
        table_value(&t, p->device->index);
        if (p->state == PICTURE_TAKEN) {
            taken_cells(&t, p);
        }
        for (size_t k = 0; p->state != PICTURE_TAKEN && k < COUNT(numbers) + 7; k++) {
            table_text(&t, "-"); /* not known */
        }
        table_text(&t, p->note);
        table_value(&t, p->device->input_range.used);
        table_value(&t, p->device->output_range.used);
        table_value(&t, set->number);
        table_value(&t, PICTURE_VERSION);
        host_cells(&t, p);
        table_row_end(&t);
    }
    return finish(&t, out, e);
}

/* ---- who may see what --------------------------------------------------------------------- */

/* What is shown, and to whom. */
struct part {
    const struct front *f;
    const struct session *s;
    const struct picture *p;
    bool all; /* it may see everything */
    struct table t;
    uint64_t key[PICTURE_METERS_MAX]; /* of tenants, by the pool's numbers: see tenant_key() */
};

static void learn_tenants(struct part *x)
{
    for (unsigned i = 0; i < PICTURE_METERS_MAX; i++) {
        x->key[i] = PICTURE_TENANT_UNKNOWN;
    }
    for (uint32_t i = 0; i < x->p->view.head.meters; i++) {
        struct picture_meter m = picture_meter(&x->p->view, i);
        if (m.scope == PICTURE_TENANT && m.index < PICTURE_METERS_MAX) {
            x->key[m.index] = m.what;
        }
    }
}

/* The tenant that the pool has under this number; NULL: none, or not known. */
static const struct tenant *tenant_numbered(const struct part *x, unsigned number)
{
    uint64_t key = number < PICTURE_METERS_MAX ? x->key[number] : PICTURE_TENANT_UNKNOWN;
    return key != 0 ? tenant_find(x->f->tenants, key) : NULL;
}

/* A piece, and who has it. */
struct shown {
    struct picture_piece piece;
    const struct tenant *tenant;
    const char *label;
    bool hidden; /* somebody else's */
};

static struct shown show(const struct part *x, uint32_t i)
{
    struct shown v = {.piece = picture_piece(&x->p->view, i), .label = ""};
    bool live = v.piece.state == 3; /* POOL_EXTENT_LIVE */
    v.tenant = live ? tenant_numbered(x, v.piece.tenant) : NULL;
    if (v.piece.kind == PICTURE_BUFFER) {
        const struct buffer *b = idmap_get(&x->f->buffers, v.piece.owner);
        bool here = b != NULL && b->device == x->p->device->index;
        v.tenant = here ? b->tenant : v.tenant;
        v.label = here ? b->label[0] != '\0' ? b->label : b->name : "";
    } else if (v.piece.kind == PICTURE_TEMPORARY) {
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

static void meter_name(const struct picture_meter *m, const struct tenant *tenant, char *out,
                       size_t size)
{
    static const char *const tiers[] = {"slab", "block", "large"};
    if (m->scope == PICTURE_TIER && m->index < COUNT(tiers)) {
        (void)snprintf(out, size, "%s", tiers[m->index]);
    } else if (m->scope == PICTURE_CLASS) {
        class_name(m->what, out, size);
    } else if (tenant != NULL) {
        (void)snprintf(out, size, "%s", tenant->name);
    } else if (m->what == 0) {
        (void)snprintf(out, size, "gpud");
    } else {
        (void)snprintf(out, size, "others"); /* more than a pool has numbers for, or forgotten */
    }
}

static void meter_row(struct part *x, uint32_t i)
{
    static const char *const scopes[] = {"tier", "class", "tenant"};
    struct picture_meter m = picture_meter(&x->p->view, i);
    const struct tenant *tenant = m.scope == PICTURE_TENANT ? tenant_numbered(x, m.index) : NULL;
    bool known = m.scope >= PICTURE_TIER && m.scope <= PICTURE_TENANT;
    if (!known || (m.scope == PICTURE_TENANT && !x->all && tenant != x->s->tenant)) {
        return;
    }
    char name[PROTO_NAME_MAX + 1];
    meter_name(&m, tenant, name, sizeof name);
    table_value(&x->t, x->p->device->index);
    table_text(&x->t, scopes[m.scope - PICTURE_TIER]);
    table_text(&x->t, name);
    table_value(&x->t, m.live);
    table_value(&x->t, m.used);
    table_value(&x->t, m.asked);
    table_value(&x->t, m.peak);
    table_value(&x->t, m.allocations);
    table_value(&x->t, m.total);
    table_row_end(&x->t);
}

static void meters(struct part *x)
{
    static const struct column columns[] = {
        {"device", COLUMN_UINT, false}, {"scope", COLUMN_TEXT, false},
        {"name", COLUMN_TEXT, false},   {"live", COLUMN_UINT, false},
        {"used", COLUMN_BYTES, false},  {"asked", COLUMN_BYTES, false},
        {"peak", COLUMN_BYTES, false},  {"allocations", COLUMN_UINT, false},
        {"total", COLUMN_BYTES, false},
    };
    add_columns(&x->t, columns, COUNT(columns));
    for (uint32_t i = 0; i < x->p->view.head.meters; i++) {
        meter_row(x, i);
    }
}

/* ---- pieces ------------------------------------------------------------------------------- */

static void piece_row(struct table *t, uint32_t i, uint32_t entries, const struct shown *v)
{
    static const char *const states[PICTURE_STATES] = {"void", "free", "pending", "live", "lost"};
    static const char *const kinds[] = {"", "buffer", "temporary"};
    const struct picture_piece *p = &v->piece;
    table_value(t, i);
    table_value(t, entries);
    table_value(t, p->at);
    table_value(t, p->size);
    table_text(t, states[p->state]);
    table_text(t, v->hidden || v->tenant == NULL ? "" : v->tenant->name);
    table_text(t, v->hidden ? "" : kinds[p->kind]);
    if (v->hidden || p->kind == PICTURE_NOBODY) {
        table_text(t, "-");
    } else {
        table_value(t, p->owner);
    }
    table_text(t, v->hidden ? "" : v->label);
    table_value(t, p->object);
    table_value(t, p->stream);
    table_value(t, p->seq);
    table_row_end(t);
}

/* Pieces of others that touch come as one. */
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
    static const struct column columns[] = {
        {"piece", COLUMN_UINT, false}, {"entries", COLUMN_UINT, true},
        {"at", COLUMN_UINT, false},    {"size", COLUMN_BYTES, false},
        {"state", COLUMN_TEXT, false}, {"tenant", COLUMN_TEXT, false},
        {"kind", COLUMN_TEXT, false},  {"id", COLUMN_HANDLE, false},
        {"label", COLUMN_TEXT, false}, {"object", COLUMN_BOOL, true},
        {"stream", COLUMN_UINT, true}, {"until", COLUMN_UINT, true},
    };
    add_columns(&x->t, columns, COUNT(columns));
    for (uint32_t i = first, entries; i < end; i += entries) {
        struct shown v = show(x, i);
        entries = swallow(x, i, end, &v);
        piece_row(&x->t, i, entries, &v);
    }
}

/* ---- events ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool public; /* says nothing of anybody's work */
} event_kinds[PICTURE_EVENT_KINDS] = {
    {"alloc", false},   {"hit", false},   {"free", false},   {"refuse", false},
    {"map", false},     {"remap", false}, {"unmap", false},  {"wait", false},
    {"advance", false}, {"slab", false},  {"unslab", false}, {"trim", true},
    {"limit", true},    {"stamp", true},  {"move", false},   {"clear", false},
};

static bool event_of_tenant(unsigned kind)
{
    return kind <= 3 || kind == 9 || kind == 14; /* alloc, hit, free, refuse, slab, move */
}

static void event_row(struct part *x, uint32_t i)
{
    struct picture_event v = picture_event(&x->p->view, i);
    const struct tenant *tenant = event_of_tenant(v.kind) ? tenant_numbered(x, v.tenant) : NULL;
    bool own = tenant != NULL && tenant == x->s->tenant;
    if (!x->all && !own && !event_kinds[v.kind].public) {
        return;
    }
    table_value(&x->t, x->p->view.head.first_event + i);
    table_text(&x->t, event_kinds[v.kind].name);
    table_value(&x->t, v.at);
    table_value(&x->t, v.size);
    table_text(&x->t, tenant != NULL ? tenant->name : "");
    table_value(&x->t, v.stream);
    table_value(&x->t, v.value);
    table_row_end(&x->t);
}

static void events(struct part *x, uint32_t first, uint32_t end)
{
    static const struct column columns[] = {
        {"event", COLUMN_UINT, false},  {"kind", COLUMN_TEXT, false},
        {"at", COLUMN_UINT, false},     {"size", COLUMN_BYTES, false},
        {"tenant", COLUMN_TEXT, false}, {"stream", COLUMN_UINT, false},
        {"value", COLUMN_UINT, false},
    };
    add_columns(&x->t, columns, COUNT(columns));
    for (uint32_t i = first; i < end; i++) {
        event_row(x, i);
    }
}

/* ---- */

static uint32_t end_of(uint64_t first, uint64_t count, uint32_t total)
{
    uint64_t most = count < PROTO_POOL_ROWS_MAX ? count : PROTO_POOL_ROWS_MAX;
    return first >= total ? 0 : first + most < total ? (uint32_t)(first + most) : total;
}

int picture_table_part(const struct front *f, const struct session *s, const struct picture *p,
                       const struct msg_pool_read *m, struct capbuf *out, struct err *e)
{
    static const char *const names[] = {"meters", "pieces", "events"};
    const struct picture_head *h = &p->view.head;
    struct part x = {.f = f, .s = s, .p = p, .all = rights_sees(&f->rights, s, NULL)};
    if (m->part < POOL_METERS || m->part > POOL_EVENTS) {
        return err_set(e, ERR_INVALID, "a picture has no part %llu", (unsigned long long)m->part);
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
