/*
 * Host memory as a source of blocks: for an arena that is pinned once, in chunks. Each chunk is
 * mapped on its own, page-aligned, zeroed and touched; `pin` makes it known to the device.
 *
 *     struct pool_host host;
 *     pool_host_init(&host, &options);
 *     pool_create(&host.source, ...);      pieces: piece.range is the chunk, a pointer
 *     pool_warm(pool, bytes, e);           takes chunks at start
 *
 * Thread: the pool's owner. Slow: alloc and free of a chunk (pinning 512 MiB takes half a second).
 */
#ifndef POOL_HOST_H
#define POOL_HOST_H

#include "daemon/pool/pool.h"

struct pool_host;

struct pool_host_options {
    uint64_t
        chunk; /* bytes, a power of two ≥ 64 KiB: what requests share, and the arena grows by */
    /* Optional (NULL: plain memory). An error refuses the chunk. */
    int (*pin)(void *user, void *memory, uint64_t bytes, struct err *e);
    void (*unpin)(void *user, void *memory, uint64_t bytes);
    /* Optional (NULL: a chunk goes at once): takes one that is to go, and gives it to
     * pool_host_drop() when its unpinning holds nobody up; before `h` ends. */
    void (*later)(void *user, struct pool_host *h, void *memory, uint64_t bytes);
    void *user;
};

struct pool_host {
    struct pool_source source; /* points into this struct: do not copy it */
    struct pool_blocks blocks;
    struct pool_host_options options;
    uint64_t bytes; /* mapped now */
};

int pool_host_init(struct pool_host *h, const struct pool_host_options *options, struct err *e);
/* Of `later`: unpins and unmaps it. */
void pool_host_drop(struct pool_host *h, void *memory, uint64_t bytes);

static inline void *pool_host_at(const struct pool_piece *piece)
{
    return (uint8_t *)piece->range + piece->offset;
}

#endif
