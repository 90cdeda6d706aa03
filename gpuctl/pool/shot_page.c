/* The picture as one HTML file: the page with its data in it. Lists are short arrays, since there
 * are many thousands; pool_page.html knows their order. */
#include "gpuctl/pool/json_out.h"
#include "gpuctl/pool/pool_page.h"
#include "gpuctl/pool/shot.h"

static void piece_write(const struct shot_piece *p, struct json_out *j)
{
    jout_open(j, NULL, '[');
    jout_uint(j, NULL, p->at);
    jout_uint(j, NULL, p->size);
    jout_uint(j, NULL, p->state);
    jout_uint(j, NULL, p->tenant);
    jout_uint(j, NULL, p->kind);
    jout_uint(j, NULL, p->label);
    if (p->kind != 0) {
        jout_handle(j, NULL, p->id);
    } else {
        jout_uint(j, NULL, 0);
    }
    jout_uint(j, NULL, p->stream);
    jout_uint(j, NULL, p->object);
    jout_close(j, ']');
}

/* Times as milliseconds from the picture back, with three places. */
static void before_write(const struct shot_device *d, const struct shot_event *v,
                         struct json_out *j)
{
    uint64_t us = d->taken_ns > v->before_ns ? (d->taken_ns - v->before_ns) / 1000 : 0;
    char text[32];
    snprintf(text, sizeof text, "-%llu.%03llu", (unsigned long long)(us / 1000),
             (unsigned long long)(us % 1000));
    jout_number(j, NULL, text);
}

static void event_write(const struct shot_device *d, const struct shot_event *v, struct json_out *j)
{
    jout_open(j, NULL, '[');
    jout_uint(j, NULL, v->number);
    jout_uint(j, NULL, v->kind);
    jout_uint(j, NULL, v->at);
    jout_uint(j, NULL, v->size);
    jout_uint(j, NULL, v->tenant);
    jout_uint(j, NULL, v->stream);
    before_write(d, v, j);
    jout_close(j, ']');
}

/* What the page draws. */
static bool drawn(const struct shot_event *v)
{
    return v->kind <= SHOT_RELEASE || (v->kind >= SHOT_MAP && v->kind <= SHOT_UNMAP);
}

static void device_write(const struct shot *shot, const struct shot_device *d, struct json_out *j)
{
    jout_open(j, NULL, '{');
    jout_uint(j, "id", d->id);
    jout_text(j, "note", shot_note(shot, d));
    jout_uint(j, "wall", d->wall_ns / 1000000u);
    jout_row(j, "pool", shot->pool, d->row);
    jout_open(j, "pieces", '[');
    for (uint32_t i = 0; i < d->piece_count; i++) {
        piece_write(&d->pieces[i], j);
    }
    jout_close(j, ']');
    jout_open(j, "events", '[');
    for (uint32_t i = 0; i < d->event_count; i++) {
        if (drawn(&d->events[i])) {
            event_write(d, &d->events[i], j);
        }
    }
    jout_close(j, ']');
    jout_close(j, '}');
}

void shot_write_page(const struct shot *shot, FILE *out)
{
    struct json_out j = {.out = out};
    (void)fwrite(pool_page_head, 1, pool_page_head_size, out);
    jout_open(&j, NULL, '{');
    jout_open(&j, "texts", '[');
    for (uint32_t i = 0; i < shot->text_count; i++) {
        jout_text(&j, NULL, shot_text(shot, i));
    }
    jout_close(&j, ']');
    jout_open(&j, "devices", '[');
    for (uint32_t i = 0; i < shot->device_count; i++) {
        device_write(shot, &shot->devices[i], &j);
    }
    jout_close(&j, ']');
    jout_close(&j, '}');
    (void)fwrite(pool_page_tail, 1, pool_page_tail_size, out);
}
