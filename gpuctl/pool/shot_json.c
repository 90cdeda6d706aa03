/* The picture as JSON; docs/pool.md tells its shape. */
#include "gpuctl/pool/json_out.h"
#include "gpuctl/pool/shot.h"

static void piece_write(const struct shot *shot, const struct shot_piece *p, struct json_out *j)
{
    jout_open(j, NULL, '{');
    jout_uint(j, "at", p->at);
    jout_uint(j, "size", p->size);
    jout_text(j, "state", shot_state_name(p->state));
    if (p->state == SHOT_LIVE) {
        jout_text(j, "tenant", shot_text(shot, p->tenant));
        jout_text(j, "kind", shot_text(shot, p->kind));
        if (p->kind != 0) {
            jout_handle(j, "id", p->id);
        }
        jout_text(j, "label", shot_text(shot, p->label));
    }
    if (p->state == SHOT_PENDING) {
        jout_uint(j, "stream", p->stream);
        jout_uint(j, "until", p->until);
    }
    if (p->object) {
        jout_uint(j, "object", 1);
    }
    jout_close(j, '}');
}

static void event_write(const struct shot *shot, const struct shot_event *v, struct json_out *j)
{
    jout_open(j, NULL, '{');
    jout_uint(j, "event", v->number);
    jout_text(j, "kind", shot_text(shot, v->name));
    jout_uint(j, "before", v->before_ns);
    jout_uint(j, "at", v->at);
    jout_uint(j, "size", v->size);
    jout_text(j, "tenant", shot_text(shot, v->tenant));
    jout_uint(j, "stream", v->stream);
    jout_uint(j, "value", v->value);
    jout_close(j, '}');
}

static void device_write(const struct shot *shot, const struct shot_device *d, struct json_out *j)
{
    jout_open(j, NULL, '{');
    jout_uint(j, "device", d->id);
    jout_text(j, "note", shot_note(shot, d));
    jout_row(j, "pool", shot->pool, d->row);
    jout_open(j, "meters", '[');
    for (uint32_t r = 0; r < gpud_table_rows(d->meters); r++) {
        jout_row(j, NULL, d->meters, r);
    }
    jout_close(j, ']');
    jout_open(j, "pieces", '[');
    for (uint32_t i = 0; i < d->piece_count; i++) {
        jout_line(j);
        piece_write(shot, &d->pieces[i], j);
    }
    jout_close(j, ']');
    jout_open(j, "events", '[');
    for (uint32_t i = 0; i < d->event_count; i++) {
        jout_line(j);
        event_write(shot, &d->events[i], j);
    }
    jout_close(j, ']');
    jout_close(j, '}');
}

void shot_write_json(const struct shot *shot, FILE *out)
{
    struct json_out j = {.out = out};
    jout_open(&j, NULL, '{');
    jout_uint(&j, "version", SHOT_VERSION);
    jout_open(&j, "devices", '[');
    for (uint32_t i = 0; i < shot->device_count; i++) {
        device_write(shot, &shot->devices[i], &j);
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    fputs("\n", out);
}
