/*
 * What buffers hold. Each byte of a tenant has the tenant's number in its upper bits, so that a
 * byte of another tenant is seen wherever it appears. The front sends jobs that use the same bytes
 * one after the other, and the worker reports their ends in that order: the model does their steps
 * when it hears of their ends.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/worker/ward_front.h"

static uint64_t grains(uint64_t bytes)
{
    return (bytes + WARD_GRAIN - 1) / WARD_GRAIN;
}

void thing_define(struct thing *t, uint64_t at, uint64_t bytes, bool defined)
{
    memset(t->defined + at / WARD_GRAIN, defined, grains(at + bytes) - at / WARD_GRAIN);
}

/* Each grain begins with a word of its own; the rest is the same for all, which takes less time. */
void model_random(struct chance *c, uint32_t tenant, uint8_t *data, uint64_t bytes)
{
    const uint64_t tag = UINT64_C(0x2020202020202020) * tenant;
    uint64_t grain[WARD_GRAIN / 8];
    for (unsigned i = 0; i < WARD_GRAIN / 8; i++) {
        grain[i] = (chance_next(c) & UINT64_C(0x1f1f1f1f1f1f1f1f)) | tag;
    }
    for (uint64_t at = 0; at < bytes; at += WARD_GRAIN) {
        grain[0] = (chance_next(c) & UINT64_C(0x1f1f1f1f1f1f1f1f)) | tag;
        memcpy(data + at, grain, bytes - at < WARD_GRAIN ? bytes - at : WARD_GRAIN);
    }
}

static bool allowed(uint8_t byte, uint32_t tenant)
{
    return byte == 0 || byte >> 5 == tenant;
}

static void foreign(struct ward *w, uint32_t tenant, const uint8_t *data, uint64_t bytes,
                    const char *who, uint64_t id)
{
    for (uint64_t i = 0; i < bytes; i++) {
        if (!allowed(data[i], tenant)) {
            ward_broken(w, "foreign", "%s %" PRIu64 " of tenant %u: byte %" PRIu64 " is %#x", who,
                        id, tenant, i, data[i]);
        }
    }
}

void model_compare(struct ward *w, const struct thing *t, uint64_t at, const uint8_t *data,
                   uint64_t bytes, const char *who, uint64_t id)
{
    for (uint64_t n = 0; n < bytes;) {
        uint64_t grain = (at + n) / WARD_GRAIN;
        uint64_t size = (grain + 1) * WARD_GRAIN - (at + n);
        size = size < bytes - n ? size : bytes - n;
        if (!t->defined[grain]) {
            foreign(w, t->tenant, data + n, size, who, id);
        } else if (memcmp(data + n, t->data + at + n, size) != 0) {
            uint64_t i = 0;
            while (data[n + i] == t->data[at + n + i]) {
                i++;
            }
            ward_broken(w, "content",
                        "%s %" PRIu64 ": byte %" PRIu64 " of %s %" PRIu64 " is %#x instead of %#x",
                        who, id, at + n + i, t->arena ? "arena" : "buffer", t->id, data[n + i],
                        t->data[at + n + i]);
        }
        n += size;
    }
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The temporaries of a job, as things. */
struct temps {
    struct thing t[WARD_TEMPS];
};

static struct thing *place(struct temps *x, const struct side *s)
{
    return s->kind == SIDE_TEMP ? &x->t[s->temp] : s->thing;
}

/* Takes over whether the bytes are defined: those of `b` where both have to be. A grain of which
 * only a part is written has to be defined before. */
static void define_as(struct thing *a, uint64_t at, const struct thing *b, uint64_t from,
                      uint64_t bytes, bool both)
{
    for (uint64_t n = 0; n < bytes; n += WARD_GRAIN) {
        uint64_t i = (at + n) / WARD_GRAIN;
        bool source = b == NULL || b->defined[(from + n) / WARD_GRAIN];
        bool whole = n + WARD_GRAIN <= bytes || at + bytes == a->bytes;
        a->defined[i] = source && ((whole && !both) || a->defined[i]);
    }
}

static void read_back(struct ward *w, const struct asked_job *j, const struct step *s,
                      struct temps *x)
{
    const struct thing *from = place(x, &s->src);
    const uint8_t *data = w->front->output.data + s->dst.at;
    model_compare(w, from, s->src.at, data, s->src.bytes, "job", j->id);
}

static void apply(struct ward *w, const struct asked_job *j, const struct step *s, struct temps *x)
{
    uint64_t bytes = s->dst.bytes;
    struct thing *dst = s->dst.kind == SIDE_STAGE ? NULL : place(x, &s->dst);
    const struct thing *src =
        s->src.kind == SIDE_THING || s->src.kind == SIDE_TEMP ? place(x, &s->src) : NULL;
    if (dst == NULL) {
        read_back(w, j, s, x);
        return;
    }
    uint8_t *to = dst->data + s->dst.at;
    const uint8_t *from = src != NULL                 ? src->data + s->src.at
                          : s->src.kind == SIDE_STAGE ? w->front->input.data + s->src.at
                                                      : NULL;
    switch (s->kind) {
    case STEP_WRITE:
    case STEP_READ:
    case STEP_COPY:
        memcpy(to, from, bytes);
        break;
    case STEP_FILL:
        memset(to, ward_tagged(j->tenant, s->k), bytes);
        break;
    case STEP_SET:
        for (uint64_t i = 0; i < bytes; i++) {
            to[i] = ward_tagged(j->tenant, (uint32_t)(s->k + i));
        }
        break;
    case STEP_MIX:
        for (uint64_t i = 0; i < bytes; i++) {
            to[i] = ward_tagged(j->tenant, to[i] * 3u + from[i] + s->k);
        }
        break;
    }
    define_as(dst, s->dst.at, src, s->src.at, bytes, s->kind == STEP_MIX);
}

void model_apply(struct ward *w, const struct asked_job *j)
{
    struct temps x = {.t = {{.id = 0}}};
    for (unsigned i = 0; i < j->temps; i++) {
        x.t[i] = (struct thing){.tenant = j->tenant,
                                .bytes = j->temp[i],
                                .data = calloc(1, j->temp[i]),
                                .defined = calloc(1, grains(j->temp[i]))};
    }
    for (unsigned i = 0; i < j->steps; i++) {
        apply(w, j, &j->step[i], &x);
    }
    for (unsigned i = 0; i < j->temps; i++) {
        free(x.t[i].data);
        free(x.t[i].defined);
    }
}

void model_spoil(const struct asked_job *j)
{
    for (unsigned i = 0; i < j->steps; i++) {
        const struct side *s = &j->step[i].dst;
        if (s->kind == SIDE_THING) {
            thing_define(s->thing, s->at, s->bytes, false);
        }
    }
}
