/*
 * Allocation policies: the pool, and the references that it is compared with. They manage addresses
 * only; no memory is accessed, except by malloc. "Pool moving" is the pool with pieces that it may
 * move; there is nothing to copy. The references are small implementations of
 * well-known policies:
 * - best fit: one range that grows; the smallest free block that is large enough, the lowest
 *   address among equals; free neighbours are merged. Nothing moves.
 * - tlsf: one range; two-level segregated fit. Nothing moves.
 * - caching, expandable: the rules of PyTorch's allocator (caching.h).
 * - bins: each size is rounded up to a power of two; a list of free blocks for each.
 * - malloc: the C library's, with all sizes divided by `divide`, because it accesses memory. Its
 *   peak is not known. It maps large blocks one by one, so their times are those of the kernel.
 */
#ifndef BENCH_POOL_POLICY_H
#define BENCH_POOL_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/pool/pool.h"

#define POLICY_STREAMS 4u

struct policy {
    const char *name;
    void *self;
    /* Is memory freed in the order of streams? The stream that freed it may use it at once.
     * Otherwise the caller frees a piece once its stream has reached the point. */
    bool ordered;
    /* false: refused */
    bool (*alloc)(void *self, uint64_t size, unsigned stream, struct pool_piece *ret_piece);
    /* at a point of the stream that allocated it; 0: a past point */
    void (*free)(void *self, struct pool_piece *piece, unsigned stream, uint64_t seq);
    void (*advance)(void *self, unsigned stream, uint64_t seq); /* NULL: no use for it */
    uint64_t (*peak)(
        void *self); /* the most bytes that were taken from the source; NULL: not known */
    uint64_t (*calls)(void *self); /* of the driver; NULL: does not apply */
    uint64_t (*waits)(void *self); /* pool: of a stream for another; others: of the host for the
                                      device; NULL: does not apply */
    void (*destroy)(void *self);
};

/* In an order so that parts can take a range of them. */
enum policy_kind {
    POLICY_POOL_MOVING, /* a piece stays where the caller put it, since the pool changes it */
    POLICY_POOL,
    POLICY_BEST_FIT,
    POLICY_TLSF,
    POLICY_CACHING,
    POLICY_EXPANDABLE, /* the last one that refuses a request beyond its limit */
    POLICY_BINS,       /* the last one whose peak is known */
    POLICY_MALLOC,
};

struct policy_options {
    uint64_t limit;        /* bytes; of the pool */
    uint64_t limit_others; /* bytes; of the other bounded policies; UINT64_MAX: none */
    uint64_t divide;       /* sizes for malloc are divided by this */
    unsigned streams;      /* 0: one */
};

/* Ends the program if there is no memory. */
void policy_create(enum policy_kind kind, const struct policy_options *options,
                   struct policy *ret_policy);

void policy_pool(const struct pool_source *source, uint64_t limit, unsigned streams,
                 struct policy *ret_policy);
/* Asks the pool until it serves or refuses the request. False: refused. */
bool policy_pool_get(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece);
void policy_best_fit(uint64_t limit, struct policy *ret_policy);
void policy_tlsf(uint64_t limit, struct policy *ret_policy);
void policy_caching(uint64_t limit, bool expandable, struct policy *ret_policy);
void policy_bins(struct policy *ret_policy);

/* calloc; ends the program if memory is out. */
void *bench_calloc(size_t count, size_t bytes);

#endif
