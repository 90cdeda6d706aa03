/*
 * Allocation policies: the pool, and the references that it is compared with. They manage addresses
 * only; no memory is accessed, except by malloc. The references are small implementations of
 * well-known policies:
 * - best_fit: one range that grows; the smallest free block that is large enough, the lowest
 *   address among equals; free neighbours are merged. Nothing moves.
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

struct policy {
    const char *name;
    void *self;
    bool (*alloc)(void *self, uint64_t size, struct pool_piece *ret_piece); /* false: refused */
    void (*free)(void *self, struct pool_piece *piece);
    uint64_t (*peak)(
        void *self); /* the most bytes that were taken from the source; NULL: not known */
    uint64_t (*calls)(void *self); /* of the driver; NULL: does not apply */
    void (*destroy)(void *self);
};

#define POLICIES        4u
#define POLICIES_PLACED 3u /* the first policies, whose peak is known */

/* Policy 0 is the pool. Ends the program if there is no memory. */
void policy_create(unsigned number, uint64_t limit, uint64_t divide, struct policy *ret_policy);

/* Refuses a request whose block would end beyond `limit` bytes. */
void policy_best_fit(uint64_t limit, struct policy *ret_policy);
void policy_bins(struct policy *ret_policy);

/* calloc; ends the program if memory is out. */
void *bench_calloc(size_t count, size_t bytes);

#endif
