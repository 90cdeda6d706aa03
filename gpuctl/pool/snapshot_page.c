/* The snapshot as one HTML file: the page with its data embedded. Pieces and events are short
 * arrays, since there may be millions; pool_page.html expects their members in this order. */
#include "gpuctl/pool/pool_page.h"
#include "gpuctl/pool/snapshot.h"
#include "gpuctl/sheet/json_value.h"

static json_t *piece_value(const struct snapshot_piece *p)
{
    json_t *id = p->kind != 0 ? json_of_handle(p->id) : json_integer(0);
    return json_pack("[o, o, i, o, o, o, o, i, i]", json_of_uint(p->at), json_of_uint(p->size),
                     p->state, json_of_uint(p->tenant), json_of_uint(p->kind),
                     json_of_uint(p->label), id, p->stream, p->object);
}

/* The event's time relative to the snapshot, in ms (0 or negative) with three decimals. */
static double before_ms(const struct snapshot_device *d, const struct snapshot_event *v)
{
    uint64_t us = d->taken_ns > v->before_ns ? (d->taken_ns - v->before_ns) / 1000 : 0;
    return -(double)us / 1000;
}

static json_t *event_value(const struct snapshot_device *d, const struct snapshot_event *v)
{
    return json_pack("[o, i, o, o, o, i, f]", json_of_uint(v->number), v->kind, json_of_uint(v->at),
                     json_of_uint(v->size), json_of_uint(v->tenant), v->stream, before_ms(d, v));
}

/* Does the page draw it? */
static bool drawn(const struct snapshot_event *v)
{
    return v->kind <= SNAPSHOT_RELEASE || (v->kind >= SNAPSHOT_MAP && v->kind <= SNAPSHOT_UNMAP);
}

static bool device_write(const struct snapshot *snapshot, const struct snapshot_device *d,
                         FILE *out)
{
    fputs("{", out);
    bool good = json_put(json_pack("{s:o, s:o, s:o, s:o}", "id", json_of_uint(d->id), "note",
                                   json_of_text(snapshot_note(snapshot, d)), "wall",
                                   json_of_uint(d->wall_ns / 1000000u), "pool",
                                   json_of_row(snapshot->pool, d->row)),
                         true, out);
    fputs(",\"pieces\":[", out);
    for (uint32_t i = 0; good && i < d->piece_count; i++) {
        fputs(i > 0 ? "," : "", out);
        good = json_put(piece_value(&d->pieces[i]), false, out);
    }
    fputs("],\"events\":[", out);
    const char *comma = "";
    for (uint32_t i = 0; good && i < d->event_count; i++) {
        if (drawn(&d->events[i])) {
            fputs(comma, out);
            good = json_put(event_value(d, &d->events[i]), false, out);
            comma = ",";
        }
    }
    fputs("]}", out);
    return good;
}

static json_t *texts_value(const struct snapshot *snapshot)
{
    json_t *texts = json_array();
    for (uint32_t i = 0; texts != NULL && i < snapshot->text_count; i++) {
        if (json_array_append_new(texts, json_of_text(snapshot_text(snapshot, i))) != 0) {
            json_decref(texts);
            return NULL;
        }
    }
    return texts;
}

bool snapshot_write_page(const struct snapshot *snapshot, FILE *out)
{
    (void)fwrite(pool_page_head, 1, pool_page_head_size, out);
    fputs("{\"texts\":", out);
    bool good = json_put(texts_value(snapshot), false, out);
    fputs(",\"devices\":[", out);
    for (uint32_t i = 0; good && i < snapshot->device_count; i++) {
        fputs(i > 0 ? "," : "", out);
        good = device_write(snapshot, &snapshot->devices[i], out);
    }
    fputs("]}", out);
    (void)fwrite(pool_page_tail, 1, pool_page_tail_size, out);
    return good;
}
