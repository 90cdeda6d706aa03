/*
 * A source of blocks that gives host memory: an arena of chunks, each pinned once. Each chunk is a
 * page-aligned mapping of its own, zeroed and touched; `pin` registers it with the device.
 *
 *     struct pool_host host;
 *     pool_host_init(&host, &options);
 *     pool_create(&host.source, ...);      pieces: piece.range is the chunk, a pointer
 *     pool_warm(pool, bytes, e);           allocates chunks at start
 *
 * Thread: the pool's owner. Blocking: allocating and freeing a chunk (pinning 512 MiB takes half a
 * second), unless `make` and `later` see to it.
 */
#ifndef POOL_HOST_H
#define POOL_HOST_H

#include "daemon/pool/pool.h"

struct pool_host;

struct pool_host_options {
    uint64_t chunk; /* bytes, a power of two ≥ 64 KiB: the arena grows by chunks */
    /* Optional (NULL: plain memory). An error refuses the chunk. */
    int (*pin)(void *user, void *memory, uint64_t bytes, struct err *e);
    void (*unpin)(void *user, void *memory, uint64_t bytes);
    /* Optional (NULL: pool_host_make): gives a chunk, of whole pages. An error refuses it.
     * ERR_BUSY: it is being made, and can be given later. */
    int (*make)(void *user, struct pool_host *h, uint64_t bytes, void **ret_memory, struct err *e);
    /* Optional (NULL: a chunk is unpinned and unmapped at once). Gets a chunk to release and passes
     * it to pool_host_drop() when unpinning delays nothing, and before `h` ends; or does the same
     * itself, and then calls pool_host_gone(). */
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
/* For `make`: maps, touches and pins a chunk. Blocks. */
int pool_host_make(struct pool_host *h, uint64_t bytes, void **ret_memory, struct err *e);
/* For `later`: the chunk is unpinned and unmapped. */
void pool_host_gone(struct pool_host *h, uint64_t bytes);
/* For `later`: unpins and unmaps the chunk. Blocks. */
void pool_host_drop(struct pool_host *h, void *memory, uint64_t bytes);

static inline void *pool_host_at(const struct pool_piece *piece)
{
    return (uint8_t *)piece->range + piece->offset;
}

#endif
