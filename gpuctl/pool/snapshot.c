#include "gpuctl/pool/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "gpuctl/sheet/sheet.h"

#define PART_ROWS   4096u
#define ENTRIES_MAX (UINT32_C(1) << 22) /* of a part; daemons send fewer */

/* ---- texts -------------------------------------------------------------------------------- */

const char *snapshot_text(const struct snapshot *snapshot, uint32_t text)
{
    return text < snapshot->text_count ? snapshot->texts[text] : "";
}

static uint32_t hash_of(const char *text)
{
    uint32_t hash = 2166136261u;
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * 16777619u;
    }
    return hash;
}

/* The slot that has the text, or is free for it. */
static uint32_t *slot_of(const struct snapshot *snapshot, const char *text)
{
    uint32_t at = hash_of(text);
    for (;; at++) {
        uint32_t *slot = &snapshot->slots[at & (snapshot->slot_count - 1)];
        if (*slot == 0 || strcmp(snapshot->texts[*slot - 1], text) == 0) {
            return slot;
        }
    }
}

static bool texts_grow(struct snapshot *snapshot)
{
    uint32_t room = snapshot->text_room > 0 ? 2 * snapshot->text_room : 256;
    char **texts = realloc(snapshot->texts, room * sizeof *texts);
    if (texts == NULL) {
        return false;
    }
    snapshot->texts = texts;
    uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(snapshot->slots);
    snapshot->slots = slots;
    snapshot->slot_count = 2 * room;
    snapshot->text_room = room;
    for (uint32_t i = 0; i < snapshot->text_count; i++) {
        *slot_of(snapshot, snapshot->texts[i]) = i + 1;
    }
    return true;
}

/* The text's index, added if new; 0, the index of "", if memory is out. */
static uint32_t text_number(struct snapshot *snapshot, const char *text)
{
    if (snapshot->text_count == snapshot->text_room && !texts_grow(snapshot)) {
        return 0;
    }
    uint32_t *slot = slot_of(snapshot, text);
    if (*slot == 0) {
        char *copy = strdup(text);
        if (copy == NULL) {
            return 0;
        }
        snapshot->texts[snapshot->text_count++] = copy;
        *slot = snapshot->text_count;
    }
    return *slot - 1;
}

static unsigned index_of(const char *text, const char *const *names, unsigned count)
{
    unsigned i = 0;
    while (i < count && strcmp(names[i], text) != 0) {
        i++;
    }
    return i;
}

static const char *const states[SNAPSHOT_STATES] = {
    [SNAPSHOT_VOID] = "void", [SNAPSHOT_FREE] = "free", [SNAPSHOT_PENDING] = "pending",
    [SNAPSHOT_LIVE] = "live", [SNAPSHOT_LOST] = "lost",
};
static const char *const kinds[SNAPSHOT_OTHER] = {
    [SNAPSHOT_ALLOC] = "alloc",   [SNAPSHOT_HIT] = "hit",     [SNAPSHOT_RELEASE] = "free",
    [SNAPSHOT_REFUSE] = "refuse", [SNAPSHOT_MAP] = "map",     [SNAPSHOT_REMAP] = "remap",
    [SNAPSHOT_UNMAP] = "unmap",   [SNAPSHOT_STAMP] = "stamp",
};

const char *snapshot_state_name(unsigned state)
{
    return state < SNAPSHOT_STATES ? states[state] : "";
}

/* ---- tables ------------------------------------------------------------------------------- */

static void piece_read(struct snapshot *snapshot, const gpud_table *t, uint32_t r,
                       struct snapshot_piece *p)
{
    unsigned state = index_of(table_text_of(t, r, "state"), states, SNAPSHOT_STATES);
    *p = (struct snapshot_piece){
        .at = table_value_of(t, r, "at"),
        .size = table_value_of(t, r, "size"),
        .until = table_value_of(t, r, "until"),
        .id = table_value_of(t, r, "id"),
        .tenant = text_number(snapshot, table_text_of(t, r, "tenant")),
        .label = text_number(snapshot, table_text_of(t, r, "label")),
        .kind = text_number(snapshot, table_text_of(t, r, "kind")),
        .state = (uint8_t)(state < SNAPSHOT_STATES ? state : SNAPSHOT_LOST),
        .stream = (uint8_t)table_value_of(t, r, "stream"),
        .object = table_value_of(t, r, "object") != 0,
    };
}

static void event_read(struct snapshot *snapshot, const gpud_table *t, uint32_t r,
                       struct snapshot_event *v)
{
    const char *kind = table_text_of(t, r, "kind");
    *v = (struct snapshot_event){
        .number = table_value_of(t, r, "event"),
        .at = table_value_of(t, r, "at"),
        .size = table_value_of(t, r, "size"),
        .value = table_value_of(t, r, "value"),
        .tenant = text_number(snapshot, table_text_of(t, r, "tenant")),
        .name = text_number(snapshot, kind),
        .kind = (uint8_t)index_of(strcmp(kind, "move") == 0 ? "free" : kind, kinds, SNAPSHOT_OTHER),
        .stream = (uint8_t)table_value_of(t, r, "stream"),
    };
}

static void entries_read(struct snapshot *snapshot, struct snapshot_device *d, const gpud_table *t,
                         int part)
{
    for (uint32_t r = 0; r < gpud_table_rows(t); r++) {
        if (part == GPUD_POOL_PIECES) { /* addresses without memory are left out */
            struct snapshot_piece *p = &d->pieces[d->piece_count];
            piece_read(snapshot, t, r, p);
            d->piece_count += p->state != SNAPSHOT_VOID;
        } else {
            event_read(snapshot, t, r, &d->events[d->event_count++]);
        }
    }
}

/* The log has a time stamp now and then: events before a stamp happened before its time. */
static void date_events(struct snapshot_device *d)
{
    uint64_t before = d->taken_ns;
    for (uint32_t i = d->event_count; i > 0; i--) {
        struct snapshot_event *v = &d->events[i - 1];
        before = v->kind == SNAPSHOT_STAMP ? v->at : before;
        v->before_ns = before;
    }
}

/* ---- reading ------------------------------------------------------------------------------ */

static int part_read(gpud_client *client, struct snapshot *snapshot, struct snapshot_device *d,
                     int part, uint64_t count, struct ctl_err *e)
{
    uint64_t number = table_value_of(snapshot->pool, d->row, "picture");
    for (uint64_t first = 0; first < count; first += PART_ROWS) {
        gpud_table *t = NULL;
        int rc = gpud_pool_read(client, number, d->id, part, first, PART_ROWS, &t);
        if (rc != 0) {
            return ctl_err_lib(e, rc, "device %llu", (unsigned long long)d->id);
        }
        if (gpud_table_rows(t) > PART_ROWS || gpud_table_rows(t) > count - first) {
            gpud_table_free(t);
            return ctl_err_set(e, GPUD_ERR_PROTOCOL, "the daemon sent more than was asked for");
        }
        entries_read(snapshot, d, t, part);
        gpud_table_free(t);
    }
    return 0;
}

static int device_read(gpud_client *client, struct snapshot *snapshot, struct snapshot_device *d,
                       bool detail, struct ctl_err *e)
{
    uint64_t number = table_value_of(snapshot->pool, d->row, "picture");
    uint64_t pieces = detail ? table_value_of(snapshot->pool, d->row, "pieces") : 0;
    uint64_t events = detail ? table_value_of(snapshot->pool, d->row, "events") : 0;
    int rc = gpud_pool_read(client, number, d->id, GPUD_POOL_METERS, 0, 0, &d->meters);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "device %llu", (unsigned long long)d->id);
    }
    if (pieces > ENTRIES_MAX || events > ENTRIES_MAX) {
        return ctl_err_set(e, GPUD_ERR_LIMIT, "a snapshot of %llu pieces and %llu events",
                           (unsigned long long)pieces, (unsigned long long)events);
    }
    d->pieces = calloc((size_t)pieces + 1, sizeof *d->pieces);
    d->events = calloc((size_t)events + 1, sizeof *d->events);
    if (d->pieces == NULL || d->events == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    rc = part_read(client, snapshot, d, GPUD_POOL_PIECES, pieces, e);
    rc = rc == 0 ? part_read(client, snapshot, d, GPUD_POOL_EVENTS, events, e) : rc;
    date_events(d);
    return rc;
}

const char *snapshot_note(const struct snapshot *snapshot, const struct snapshot_device *d)
{
    return table_text_of(snapshot->pool, d->row, "note");
}

static int devices_read(gpud_client *client, struct snapshot *snapshot, bool detail,
                        struct ctl_err *e)
{
    uint32_t rows = gpud_table_rows(snapshot->pool);
    snapshot->devices = calloc(rows + 1u, sizeof *snapshot->devices);
    if (snapshot->devices == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    (void)text_number(snapshot, "");
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < rows; r++) {
        struct snapshot_device *d = &snapshot->devices[snapshot->device_count++];
        d->id = table_value_of(snapshot->pool, r, "device");
        d->row = r;
        d->answered = snapshot_note(snapshot, d)[0] == '\0';
        d->taken_ns = table_value_of(snapshot->pool, r, "taken");
        d->wall_ns = table_value_of(snapshot->pool, r, "taken_at");
        rc = d->answered ? device_read(client, snapshot, d, detail, e) : 0;
    }
    return rc;
}

int snapshot_take(gpud_client *client, const struct snapshot_request *request,
                  struct snapshot *ret_snapshot, struct ctl_err *e)
{
    struct snapshot snapshot = {0};
    gpud_pool_options o = {.size = sizeof o,
                           .device = request->device,
                           .flags = request->detail ? GPUD_POOL_DETAIL : 0,
                           .timeout_ns = request->timeout_ns};
    int rc = gpud_pool_take(client, &o, &snapshot.pool);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "snapshot of the pool");
    }
    rc = devices_read(client, &snapshot, request->detail, e);
    if (rc != 0) {
        snapshot_finish(&snapshot);
        return rc;
    }
    *ret_snapshot = snapshot;
    return 0;
}

void snapshot_finish(struct snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        gpud_table_free(snapshot->devices[i].meters);
        free(snapshot->devices[i].pieces);
        free(snapshot->devices[i].events);
    }
    for (uint32_t i = 0; i < snapshot->text_count; i++) {
        free(snapshot->texts[i]);
    }
    gpud_table_free(snapshot->pool);
    free(snapshot->devices);
    free(snapshot->texts);
    free(snapshot->slots);
    *snapshot = (struct snapshot){0};
}
