/* A pool of powers of two, like the caches of many frameworks: blocks are not split or merged. */
#include <stdlib.h>

#include "bench/pool/policy.h"

#define BINS      64u
#define BIN_LEAST 8u /* 256 bytes */

struct stack {
    uint64_t *at;
    size_t count, room;
};

struct bins {
    struct stack free[BINS];
    uint64_t end;
};

static unsigned bin_of(uint64_t size)
{
    unsigned bits = size <= 1 ? 0 : 64u - (unsigned)__builtin_clzll(size - 1);
    return bits < BIN_LEAST ? BIN_LEAST : bits;
}

static bool bins_alloc(void *self, uint64_t size, unsigned stream, struct pool_piece *ret_piece)
{
    struct bins *b = self;
    (void)stream;
    unsigned bin = bin_of(size);
    struct stack *s = &b->free[bin];
    ret_piece->size = UINT64_C(1) << bin;
    if (s->count > 0) {
        ret_piece->offset = s->at[--s->count];
    } else {
        ret_piece->offset = b->end;
        b->end += ret_piece->size;
    }
    return true;
}

static void bins_free(void *self, struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    struct bins *b = self;
    (void)stream;
    (void)seq;
    struct stack *s = &b->free[bin_of(piece->size)];
    if (s->count == s->room) {
        size_t room = s->room == 0 ? 64 : 2 * s->room;
        uint64_t *more = bench_calloc(room, sizeof *more);
        for (size_t i = 0; i < s->count; i++) {
            more[i] = s->at[i];
        }
        free(s->at);
        s->at = more;
        s->room = room;
    }
    s->at[s->count++] = piece->offset;
}

static uint64_t bins_peak(void *self)
{
    const struct bins *b = self;
    return b->end;
}

static void bins_destroy(void *self)
{
    struct bins *b = self;
    for (unsigned i = 0; i < BINS; i++) {
        free(b->free[i].at);
    }
    free(b);
}

void policy_bins(struct policy *ret_policy)
{
    *ret_policy = (struct policy){.name = "bins",
                                  .self = bench_calloc(1, sizeof(struct bins)),
                                  .alloc = bins_alloc,
                                  .free = bins_free,
                                  .peak = bins_peak,
                                  .destroy = bins_destroy};
}
