/* The snapshot as JSON; docs/pool.md has its shape. Pieces and events are written one by one: there
 * may be millions. */
#include "gpuctl/pool/snapshot.h"
#include "gpuctl/sheet/json_value.h"

/* Adds members to an object. Both belong to the function, which frees them if memory is out. */
static json_t *with(json_t *object, json_t *members)
{
    if (json_object_update_new(object, members) != 0) {
        json_decref(object);
        return NULL;
    }
    return object;
}

static json_t *live_members(const struct snapshot *snapshot, const struct snapshot_piece *p)
{
    json_t *owner =
        json_pack("{s:o, s:o}", "tenant", json_of_text(snapshot_text(snapshot, p->tenant)), "kind",
                  json_of_text(snapshot_text(snapshot, p->kind)));
    if (p->kind != 0) {
        owner = with(owner, json_pack("{s:o}", "id", json_of_handle(p->id)));
    }
    return with(owner,
                json_pack("{s:o}", "label", json_of_text(snapshot_text(snapshot, p->label))));
}

static json_t *piece_value(const struct snapshot *snapshot, const struct snapshot_piece *p)
{
    json_t *piece = json_pack("{s:o, s:o, s:s}", "at", json_of_uint(p->at), "size",
                              json_of_uint(p->size), "state", snapshot_state_name(p->state));
    if (p->state == SNAPSHOT_LIVE) {
        piece = with(piece, live_members(snapshot, p));
    }
    if (p->state == SNAPSHOT_PENDING) {
        piece = with(piece,
                     json_pack("{s:i, s:o}", "stream", p->stream, "until", json_of_uint(p->until)));
    }
    return p->object ? with(piece, json_pack("{s:i}", "object", 1)) : piece;
}

static json_t *event_value(const struct snapshot *snapshot, const struct snapshot_event *v)
{
    return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:o}", "event", json_of_uint(v->number),
                     "kind", json_of_text(snapshot_text(snapshot, v->name)), "before",
                     json_of_uint(v->before_ns), "at", json_of_uint(v->at), "size",
                     json_of_uint(v->size), "tenant",
                     json_of_text(snapshot_text(snapshot, v->tenant)), "stream", v->stream, "value",
                     json_of_uint(v->value));
}

/* The members of a device but for its lists. */
static json_t *device_members(const struct snapshot *snapshot, const struct snapshot_device *d)
{
    json_t *meters = json_array();
    for (uint32_t r = 0; meters != NULL && r < gpud_table_rows(d->meters); r++) {
        if (json_array_append_new(meters, json_of_row(d->meters, r)) != 0) {
            json_decref(meters);
            meters = NULL;
        }
    }
    return json_pack("{s:o, s:o, s:o, s:o}", "device", json_of_uint(d->id), "note",
                     json_of_text(snapshot_note(snapshot, d)), "pool",
                     json_of_row(snapshot->pool, d->row), "meters", meters);
}

static bool device_write(const struct snapshot *snapshot, const struct snapshot_device *d,
                         FILE *out)
{
    fputs("{", out);
    bool good = json_put(device_members(snapshot, d), true, out);
    fputs(",\"pieces\":[", out);
    for (uint32_t i = 0; good && i < d->piece_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        good = json_put(piece_value(snapshot, &d->pieces[i]), false, out);
    }
    fputs("],\"events\":[", out);
    for (uint32_t i = 0; good && i < d->event_count; i++) {
        fputs(i > 0 ? ",\n" : "\n", out);
        good = json_put(event_value(snapshot, &d->events[i]), false, out);
    }
    fputs("]}", out);
    return good;
}

bool snapshot_write_json(const struct snapshot *snapshot, FILE *out)
{
    bool good = true;
    fprintf(out, "{\"version\":%u,\"devices\":[", SNAPSHOT_VERSION);
    for (uint32_t i = 0; good && i < snapshot->device_count; i++) {
        fputs(i > 0 ? "," : "", out);
        good = device_write(snapshot, &snapshot->devices[i], out);
    }
    fputs("]}\n", out);
    return good;
}
