#include "bench/pool/caching.h"

#include <stdlib.h>

#define ROUND       UINT64_C(512)
#define MIB         (UINT64_C(1) << 20)
#define SMALL_MOST  MIB
#define SMALL_BYTES (2 * MIB)  /* of a segment */
#define LARGE_BYTES (20 * MIB) /* of a segment for less than LARGE_OWN */
#define LARGE_OWN   (10 * MIB)
#define LARGE_ROUND (2 * MIB)

void caching_withdraw(struct caching *c, uint32_t i)
{
    spans_remove(&c->spans, &c->free[c->spans.span[i].group], i);
    c->spans.span[i].state = SPAN_LIVE;
}

uint32_t caching_release(struct caching *c, uint32_t i)
{
    if (span_next_is(&c->spans, i, SPAN_FREE)) {
        caching_withdraw(c, c->spans.span[i].after);
        span_join(&c->spans, i);
    }
    if (span_previous_is(&c->spans, i, SPAN_FREE)) {
        i = c->spans.span[i].before;
        caching_withdraw(c, i);
        span_join(&c->spans, i);
    }
    c->spans.span[i].state = SPAN_FREE;
    spans_insert(&c->spans, &c->free[c->spans.span[i].group], i);
    return i;
}

void caching_reserve(struct caching *c, uint64_t bytes)
{
    c->reserved += bytes;
    c->peak = c->reserved > c->peak ? c->reserved : c->peak;
}

static bool is_small(unsigned group)
{
    return group % 2 == 1;
}

static uint32_t segment_make(struct caching *c, unsigned group, uint64_t size)
{
    uint64_t bytes = is_small(group)    ? SMALL_BYTES
                     : size < LARGE_OWN ? LARGE_BYTES
                                        : (size + LARGE_ROUND - 1) / LARGE_ROUND * LARGE_ROUND;
    c->calls++;
    if (bytes > c->limit - c->reserved) {
        return SPAN_NONE;
    }
    uint32_t i = span_make(&c->spans, c->end, bytes, SPAN_NONE);
    c->spans.span[i].group = (uint16_t)group;
    c->end += bytes;
    caching_reserve(c, bytes);
    return i;
}

/* Gives all free segments back. */
static void segments_give_back(struct caching *c)
{
    for (unsigned group = 0; group < POLICY_STREAMS * 2; group++) {
        uint32_t i = spans_find(&c->spans, c->free[group], 0, 0);
        while (i != SPAN_NONE) {
            const struct span n = c->spans.span[i];
            if (n.before == SPAN_NONE && n.after == SPAN_NONE) {
                caching_withdraw(c, i);
                span_drop(&c->spans, i);
                c->reserved -= n.size;
                c->calls++;
            }
            i = spans_find(&c->spans, c->free[group], n.size, n.at + 1);
        }
    }
}

static uint32_t more_memory(struct caching *c, unsigned group, uint64_t size)
{
    uint32_t (*make)(struct caching * c, unsigned group, uint64_t size) =
        c->expandable ? expandable_grow : segment_make;
    uint32_t i = make(c, group, size);
    if (i == SPAN_NONE) {
        c->waits++;
        if (c->expandable) {
            expandable_give_back(c);
        } else {
            segments_give_back(c);
        }
        i = make(c, group, size);
    }
    return i;
}

static bool caching_alloc(void *self, uint64_t size, unsigned stream, struct pool_piece *ret_piece)
{
    struct caching *c = self;
    unsigned group = 2 * stream + (size <= SMALL_MOST);
    size = (size + ROUND - 1) / ROUND * ROUND;
    uint32_t i = spans_find(&c->spans, c->free[group], size, 0);
    if (i != SPAN_NONE) {
        i = c->expandable ? expandable_choose(c, group, i) : i;
        caching_withdraw(c, i);
    } else {
        i = more_memory(c, group, size);
    }
    if (i == SPAN_NONE) {
        return false;
    }
    uint64_t rest = c->spans.span[i].size - size;
    if (is_small(group) || c->expandable ? rest >= ROUND : rest > SMALL_MOST) {
        (void)caching_release(c, span_cut(&c->spans, i, size));
    }
    ret_piece->block = i;
    return true;
}

static void caching_free(void *self, struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    (void)stream;
    (void)seq;
    (void)caching_release(self, piece->block);
}

static uint64_t caching_peak(void *self)
{
    const struct caching *c = self;
    return c->peak;
}

static uint64_t caching_calls(void *self)
{
    const struct caching *c = self;
    return c->calls;
}

static uint64_t caching_waits(void *self)
{
    const struct caching *c = self;
    return c->waits;
}

static void caching_destroy(void *self)
{
    struct caching *c = self;
    spans_finish(&c->spans);
    free(c);
}

void policy_caching(uint64_t limit, bool expandable, struct policy *ret_policy)
{
    struct caching *c = bench_calloc(1, sizeof *c);
    spans_init(&c->spans);
    c->limit = limit;
    c->expandable = expandable;
    *ret_policy = (struct policy){.name = expandable ? "expandable" : "caching",
                                  .self = c,
                                  .ordered = true,
                                  .alloc = caching_alloc,
                                  .free = caching_free,
                                  .peak = caching_peak,
                                  .calls = caching_calls,
                                  .waits = caching_waits,
                                  .destroy = caching_destroy};
}
