#include "gpuctl/pool/shot.h"

#include <stdlib.h>
#include <string.h>

#include "gpuctl/sheet/sheet.h"

#define PART_ROWS   4096u
#define ENTRIES_MAX (UINT32_C(1) << 22) /* of a part; a daemon promises less */

/* ---- texts -------------------------------------------------------------------------------- */

const char *shot_text(const struct shot *shot, uint32_t text)
{
    return text < shot->text_count ? shot->texts[text] : "";
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
static uint32_t *slot_of(const struct shot *shot, const char *text)
{
    uint32_t at = hash_of(text);
    for (;; at++) {
        uint32_t *slot = &shot->slots[at & (shot->slot_count - 1)];
        if (*slot == 0 || strcmp(shot->texts[*slot - 1], text) == 0) {
            return slot;
        }
    }
}

static bool texts_grow(struct shot *shot)
{
    uint32_t room = shot->text_room > 0 ? 2 * shot->text_room : 256;
    char **texts = realloc(shot->texts, room * sizeof *texts);
    if (texts == NULL) {
        return false;
    }
    shot->texts = texts;
    uint32_t *slots = calloc(2 * (size_t)room, sizeof *slots);
    if (slots == NULL) {
        return false;
    }
    free(shot->slots);
    shot->slots = slots;
    shot->slot_count = 2 * room;
    shot->text_room = room;
    for (uint32_t i = 0; i < shot->text_count; i++) {
        *slot_of(shot, shot->texts[i]) = i + 1;
    }
    return true;
}

/* Its number; 0, which is "", without memory. */
static uint32_t text_number(struct shot *shot, const char *text)
{
    if (shot->text_count == shot->text_room && !texts_grow(shot)) {
        return 0;
    }
    uint32_t *slot = slot_of(shot, text);
    if (*slot == 0) {
        char *copy = strdup(text);
        if (copy == NULL) {
            return 0;
        }
        shot->texts[shot->text_count++] = copy;
        *slot = shot->text_count;
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

static const char *const states[SHOT_STATES] = {"void", "free", "pending", "live", "lost"};
static const char *const kinds[SHOT_OTHER] = {"alloc", "hit",   "free",  "refuse",
                                              "map",   "remap", "unmap", "stamp"};

const char *shot_state_name(unsigned state)
{
    return state < SHOT_STATES ? states[state] : "";
}

/* ---- tables ------------------------------------------------------------------------------- */

static void piece_read(struct shot *shot, const gpud_table *t, uint32_t r, struct shot_piece *p)
{
    unsigned state = index_of(table_text_of(t, r, "state"), states, SHOT_STATES);
    *p = (struct shot_piece){
        .at = table_value_of(t, r, "at"),
        .size = table_value_of(t, r, "size"),
        .until = table_value_of(t, r, "until"),
        .id = table_value_of(t, r, "id"),
        .tenant = text_number(shot, table_text_of(t, r, "tenant")),
        .label = text_number(shot, table_text_of(t, r, "label")),
        .kind = text_number(shot, table_text_of(t, r, "kind")),
        .state = (uint8_t)(state < SHOT_STATES ? state : SHOT_LOST),
        .stream = (uint8_t)table_value_of(t, r, "stream"),
        .object = table_value_of(t, r, "object") != 0,
    };
}

static void event_read(struct shot *shot, const gpud_table *t, uint32_t r, struct shot_event *v)
{
    const char *kind = table_text_of(t, r, "kind");
    *v = (struct shot_event){
        .number = table_value_of(t, r, "event"),
        .at = table_value_of(t, r, "at"),
        .size = table_value_of(t, r, "size"),
        .value = table_value_of(t, r, "value"),
        .tenant = text_number(shot, table_text_of(t, r, "tenant")),
        .name = text_number(shot, kind),
        .kind = (uint8_t)index_of(strcmp(kind, "move") == 0 ? "free" : kind, kinds, SHOT_OTHER),
        .stream = (uint8_t)table_value_of(t, r, "stream"),
    };
}

static void entries_read(struct shot *shot, struct shot_device *d, const gpud_table *t, int part)
{
    for (uint32_t r = 0; r < gpud_table_rows(t); r++) {
        if (part == GPUD_POOL_PIECES) { /* addresses without memory are no piece of it */
            struct shot_piece *p = &d->pieces[d->piece_count];
            piece_read(shot, t, r, p);
            d->piece_count += p->state != SHOT_VOID;
        } else {
            event_read(shot, t, r, &d->events[d->event_count++]);
        }
    }
}

/* Events are stamped now and then: those before a stamp happened before its time. */
static void date_events(struct shot_device *d)
{
    uint64_t before = d->taken_ns;
    for (uint32_t i = d->event_count; i > 0; i--) {
        struct shot_event *v = &d->events[i - 1];
        before = v->kind == SHOT_STAMP ? v->at : before;
        v->before_ns = before;
    }
}

/* ---- reading ------------------------------------------------------------------------------ */

static int part_read(gpud_client *client, struct shot *shot, struct shot_device *d, int part,
                     uint64_t count, struct ctl_err *e)
{
    uint64_t picture = table_value_of(shot->pool, d->row, "picture");
    for (uint64_t first = 0; first < count; first += PART_ROWS) {
        gpud_table *t = NULL;
        int rc = gpud_pool_read(client, picture, d->id, part, first, PART_ROWS, &t);
        if (rc != 0) {
            return ctl_err_lib(e, rc, "device %llu", (unsigned long long)d->id);
        }
        if (gpud_table_rows(t) > PART_ROWS || gpud_table_rows(t) > count - first) {
            gpud_table_free(t);
            return ctl_err_set(e, GPUD_ERR_PROTOCOL, "the daemon told more than was asked for");
        }
        entries_read(shot, d, t, part);
        gpud_table_free(t);
    }
    return 0;
}

static int device_read(gpud_client *client, struct shot *shot, struct shot_device *d, bool detail,
                       struct ctl_err *e)
{
    uint64_t picture = table_value_of(shot->pool, d->row, "picture");
    uint64_t pieces = detail ? table_value_of(shot->pool, d->row, "pieces") : 0;
    uint64_t events = detail ? table_value_of(shot->pool, d->row, "events") : 0;
    int rc = gpud_pool_read(client, picture, d->id, GPUD_POOL_METERS, 0, 0, &d->meters);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "device %llu", (unsigned long long)d->id);
    }
    if (pieces > ENTRIES_MAX || events > ENTRIES_MAX) {
        return ctl_err_set(e, GPUD_ERR_LIMIT, "a picture of %llu pieces and %llu events",
                           (unsigned long long)pieces, (unsigned long long)events);
    }
    d->pieces = calloc((size_t)pieces + 1, sizeof *d->pieces);
    d->events = calloc((size_t)events + 1, sizeof *d->events);
    if (d->pieces == NULL || d->events == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    rc = part_read(client, shot, d, GPUD_POOL_PIECES, pieces, e);
    rc = rc == 0 ? part_read(client, shot, d, GPUD_POOL_EVENTS, events, e) : rc;
    date_events(d);
    return rc;
}

const char *shot_note(const struct shot *shot, const struct shot_device *d)
{
    return table_text_of(shot->pool, d->row, "note");
}

static int devices_read(gpud_client *client, struct shot *shot, bool detail, struct ctl_err *e)
{
    uint32_t rows = gpud_table_rows(shot->pool);
    shot->devices = calloc(rows + 1u, sizeof *shot->devices);
    if (shot->devices == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "out of memory");
    }
    (void)text_number(shot, "");
    int rc = 0;
    for (uint32_t r = 0; rc == 0 && r < rows; r++) {
        struct shot_device *d = &shot->devices[shot->device_count++];
        d->id = table_value_of(shot->pool, r, "device");
        d->row = r;
        d->told = shot_note(shot, d)[0] == '\0';
        d->taken_ns = table_value_of(shot->pool, r, "taken");
        d->wall_ns = table_value_of(shot->pool, r, "taken_at");
        rc = d->told ? device_read(client, shot, d, detail, e) : 0;
    }
    return rc;
}

int shot_take(gpud_client *client, const struct shot_ask *ask, struct shot *ret_shot,
              struct ctl_err *e)
{
    struct shot shot = {0};
    gpud_pool_options o = {.size = sizeof o,
                           .device = ask->device,
                           .flags = ask->detail ? GPUD_POOL_DETAIL : 0,
                           .timeout_ns = ask->timeout_ns};
    int rc = gpud_pool_take(client, &o, &shot.pool);
    if (rc != 0) {
        return ctl_err_lib(e, rc, "picture of the pool");
    }
    rc = devices_read(client, &shot, ask->detail, e);
    if (rc != 0) {
        shot_finish(&shot);
        return rc;
    }
    *ret_shot = shot;
    return 0;
}

void shot_finish(struct shot *shot)
{
    for (uint32_t i = 0; i < shot->device_count; i++) {
        gpud_table_free(shot->devices[i].meters);
        free(shot->devices[i].pieces);
        free(shot->devices[i].events);
    }
    for (uint32_t i = 0; i < shot->text_count; i++) {
        free(shot->texts[i]);
    }
    gpud_table_free(shot->pool);
    free(shot->devices);
    free(shot->texts);
    free(shot->slots);
    *shot = (struct shot){0};
}
