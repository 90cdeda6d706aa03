/*
 * A caching allocator after the published rules of PyTorch's, with its default settings, of its own
 * code. Each stream has a cache of small requests (up to 1 MiB) and one of large ones:
 *
 * - Sizes are rounded up to 512 bytes. A request takes the smallest free block of its cache that is
 *   large enough, and leaves the rest of it free: from 512 bytes on (small), or if the rest is more
 *   than 1 MiB (large). Freed blocks merge with free neighbours of their segment.
 * - Otherwise a segment is allocated: 2 MiB for small requests, 20 MiB for less than 10 MiB, else a
 *   segment of its own, rounded up to 2 MiB.
 * - At the limit all free segments of all caches are given back, after a wait for the device, and
 *   the request is tried again. (Giving back only what is large enough happens with an option.)
 *
 * The same stream uses a freed block at once; no other stream ever does.
 *
 * `expandable` is the variant in which a cache has a range of addresses, an eighth larger than the
 * limit, to which memory is added behind the last block, in handles of 2 or 20 MiB. At the limit
 * the free handles go back. All rests stay free there, from 512 bytes on.
 */
#ifndef BENCH_POOL_CACHING_H
#define BENCH_POOL_CACHING_H

#include "bench/pool/policy.h"
#include "bench/pool/spans.h"

struct caching {
    struct spans spans;
    uint32_t free[POLICY_STREAMS * 2]; /* trees, by group: 2 * stream + small */
    uint32_t none[POLICY_STREAMS * 2]; /* addresses without memory, if expandable */
    uint64_t limit;                    /* bytes */
    uint64_t reserved, peak;           /* bytes taken from the device */
    uint64_t calls, waits;
    uint64_t end; /* of all addresses so far */
    bool expandable;
};

/* Makes a free block of a cache; merges it with its neighbours. Returns the merged block. */
uint32_t caching_release(struct caching *c, uint32_t i);
void caching_withdraw(struct caching *c, uint32_t i); /* the block is free no longer */
void caching_reserve(struct caching *c, uint64_t bytes);

/* ---- expandable.c ---- */

/* A block of at least `size` bytes, not free; SPAN_NONE: the limit is reached. */
uint32_t expandable_grow(struct caching *c, unsigned group, uint64_t size);
/* Of equal fits, the block that can expand least. */
uint32_t expandable_choose(const struct caching *c, unsigned group, uint32_t i);
void expandable_give_back(struct caching *c);

#endif
