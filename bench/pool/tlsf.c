/*
 * Two-level segregated fit over one range: lists of free blocks by the power of two of their size
 * and 32 equal steps in it, found by two bit maps. Good fit: a request takes the first block of the
 * next list whose blocks are all large enough. Constant time.
 */
#include <stdlib.h>

#include "bench/pool/policy.h"
#include "bench/pool/spans.h"

#define UNIT      256u /* bytes */
#define STEPS     32u
#define STEP_BITS 5u
#define LEVELS    60u
#define UNBOUNDED (UINT64_C(1) << 60) /* bytes of a range without a limit */

struct tlsf {
    struct spans spans;
    uint64_t levels; /* bit: the level has a free block */
    uint32_t steps[LEVELS];
    uint32_t first[LEVELS][STEPS]; /* lists by `left` and `right` */
    uint64_t peak;
};

struct place {
    unsigned level, step;
};

static unsigned log2_of(uint64_t n)
{
    return 63u - (unsigned)__builtin_clzll(n);
}

/* The list of blocks with `units`; below 32 units each size has its own list. */
static struct place place_of(uint64_t units)
{
    if (units < STEPS) {
        return (struct place){0, (unsigned)units};
    }
    unsigned bits = log2_of(units);
    return (struct place){bits - STEP_BITS + 1, (unsigned)(units >> (bits - STEP_BITS)) - STEPS};
}

static void insert(struct tlsf *t, uint32_t i)
{
    struct place to = place_of(t->spans.span[i].size / UNIT);
    uint32_t *first = &t->first[to.level][to.step];
    t->spans.span[i].state = SPAN_FREE;
    t->spans.span[i].left = SPAN_NONE;
    t->spans.span[i].right = *first;
    if (*first != SPAN_NONE) {
        t->spans.span[*first].left = i;
    }
    *first = i;
    t->steps[to.level] |= UINT32_C(1) << to.step;
    t->levels |= UINT64_C(1) << to.level;
}

static void withdraw(struct tlsf *t, uint32_t i)
{
    struct span *n = &t->spans.span[i];
    struct place at = place_of(n->size / UNIT);
    if (n->right != SPAN_NONE) {
        t->spans.span[n->right].left = n->left;
    }
    if (n->left != SPAN_NONE) {
        t->spans.span[n->left].right = n->right;
    } else {
        t->first[at.level][at.step] = n->right;
    }
    if (t->first[at.level][at.step] == SPAN_NONE) {
        t->steps[at.level] &= ~(UINT32_C(1) << at.step);
    }
    if (t->steps[at.level] == 0) {
        t->levels &= ~(UINT64_C(1) << at.level);
    }
    n->state = SPAN_LIVE;
}

static uint32_t find(const struct tlsf *t, uint64_t units)
{
    if (units >= STEPS) { /* up to the next list, whose blocks are all large enough */
        units += (UINT64_C(1) << (log2_of(units) - STEP_BITS)) - 1;
    }
    struct place from = place_of(units);
    uint32_t steps = t->steps[from.level] & ~UINT32_C(0) << from.step;
    if (steps == 0) {
        uint64_t levels = t->levels & ~UINT64_C(0) << (from.level + 1);
        if (levels == 0) {
            return SPAN_NONE;
        }
        from.level = (unsigned)__builtin_ctzll(levels);
        steps = t->steps[from.level];
    }
    return t->first[from.level][__builtin_ctz(steps)];
}

static bool tlsf_alloc(void *self, uint64_t size, unsigned stream, struct pool_piece *ret_piece)
{
    struct tlsf *t = self;
    uint64_t units = (size + UNIT - 1) / UNIT;
    uint32_t i = find(t, units);
    (void)stream;
    if (i == SPAN_NONE) {
        return false;
    }
    withdraw(t, i);
    if (t->spans.span[i].size > units * UNIT) {
        insert(t, span_cut(&t->spans, i, units * UNIT));
    }
    uint64_t end = t->spans.span[i].at + t->spans.span[i].size;
    t->peak = end > t->peak ? end : t->peak;
    ret_piece->block = i;
    return true;
}

static void tlsf_free(void *self, struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    struct tlsf *t = self;
    uint32_t i = piece->block;
    (void)stream;
    (void)seq;
    if (span_next_is(&t->spans, i, SPAN_FREE)) {
        withdraw(t, t->spans.span[i].after);
        span_join(&t->spans, i);
    }
    if (span_previous_is(&t->spans, i, SPAN_FREE)) {
        i = t->spans.span[i].before;
        withdraw(t, i);
        span_join(&t->spans, i);
    }
    insert(t, i);
}

static uint64_t tlsf_peak(void *self)
{
    const struct tlsf *t = self;
    return t->peak;
}

static void tlsf_destroy(void *self)
{
    struct tlsf *t = self;
    spans_finish(&t->spans);
    free(t);
}

void policy_tlsf(uint64_t limit, struct policy *ret_policy)
{
    struct tlsf *t = bench_calloc(1, sizeof *t);
    spans_init(&t->spans);
    limit = limit < UNBOUNDED ? limit : UNBOUNDED;
    insert(t, span_make(&t->spans, 0, limit / UNIT * UNIT, SPAN_NONE));
    *ret_policy = (struct policy){.name = "tlsf",
                                  .self = t,
                                  .alloc = tlsf_alloc,
                                  .free = tlsf_free,
                                  .peak = tlsf_peak,
                                  .destroy = tlsf_destroy};
}
