/* Address-ordered best fit over one range, which ends at the highest end of any block so far. */
#include <stdlib.h>

#include "bench/pool/policy.h"
#include "bench/pool/spans.h"

#define UNIT 256u

struct best_fit {
    struct spans spans;
    uint32_t root; /* free spans */
    uint32_t last; /* the span with the highest address */
    uint64_t end, peak;
    uint64_t limit;
};

static void insert(struct best_fit *b, uint32_t i)
{
    b->spans.span[i].state = SPAN_FREE;
    spans_insert(&b->spans, &b->root, i);
}

static void withdraw(struct best_fit *b, uint32_t i)
{
    spans_remove(&b->spans, &b->root, i);
    b->spans.span[i].state = SPAN_LIVE;
}

/* Makes a block at the end of the range; a free block there becomes its start. */
static uint32_t grow(struct best_fit *b, uint64_t size)
{
    uint32_t i = b->last;
    if (i != SPAN_NONE && b->spans.span[i].state == SPAN_FREE) {
        withdraw(b, i);
        b->end += size - b->spans.span[i].size;
        b->spans.span[i].size = size;
        return i;
    }
    b->last = span_make(&b->spans, b->end, size, i);
    b->end += size;
    return b->last;
}

static bool best_fit_alloc(void *self, uint64_t size, unsigned stream, struct pool_piece *ret_piece)
{
    struct best_fit *b = self;
    const struct span *span = b->spans.span;
    (void)stream;
    size = (size + UNIT - 1) / UNIT * UNIT;
    uint32_t i = spans_find(&b->spans, b->root, size, 0);
    if (i == SPAN_NONE) {
        bool ends_free = b->last != SPAN_NONE && span[b->last].state == SPAN_FREE;
        if (b->end - (ends_free ? span[b->last].size : 0) + size > b->limit) {
            return false;
        }
        i = grow(b, size);
    } else {
        withdraw(b, i);
        if (span[i].size > size) {
            uint32_t rest = span_cut(&b->spans, i, size);
            b->last = b->last == i ? rest : b->last;
            insert(b, rest);
        }
    }
    b->peak = b->end > b->peak ? b->end : b->peak;
    ret_piece->block = i;
    return true;
}

static void best_fit_free(void *self, struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    struct best_fit *b = self;
    uint32_t i = piece->block;
    (void)stream;
    (void)seq;
    if (span_next_is(&b->spans, i, SPAN_FREE)) {
        withdraw(b, b->spans.span[i].after);
        span_join(&b->spans, i);
    }
    if (span_previous_is(&b->spans, i, SPAN_FREE)) {
        i = b->spans.span[i].before;
        withdraw(b, i);
        span_join(&b->spans, i);
    }
    b->last = b->spans.span[i].after == SPAN_NONE ? i : b->last;
    insert(b, i);
}

static uint64_t best_fit_peak(void *self)
{
    const struct best_fit *b = self;
    return b->peak;
}

static void best_fit_destroy(void *self)
{
    struct best_fit *b = self;
    spans_finish(&b->spans);
    free(b);
}

void policy_best_fit(uint64_t limit, struct policy *ret_policy)
{
    struct best_fit *b = bench_calloc(1, sizeof *b);
    spans_init(&b->spans);
    b->limit = limit;
    *ret_policy = (struct policy){.name = "best fit",
                                  .self = b,
                                  .alloc = best_fit_alloc,
                                  .free = best_fit_free,
                                  .peak = best_fit_peak,
                                  .destroy = best_fit_destroy};
}
