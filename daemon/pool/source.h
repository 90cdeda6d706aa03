/*
 * Where the pool's memory comes from. Two kinds, and a source fills one of them:
 *
 * - pages: the device maps pages of one size at addresses of the caller's choice (CUDA's virtual
 *   memory). Memory then moves to where it is wanted without a copy, and no request fails for want
 *   of contiguous space.
 * - blocks: the device gives whole blocks and takes them back (OpenCL, Vulkan, host memory).
 *
 * Functions are called from the pool's owner only, and only those marked "slow" may take long.
 * Errors: ERR_DEVICE_MEMORY if there is no memory; anything else is told on as it is.
 */
#ifndef POOL_SOURCE_H
#define POOL_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct pool_pages {
    uint64_t page_bytes; /* a power of two ≥ 4096: 2 MiB on CUDA */
    /* An address range; *ret_range names it in pieces. */
    int (*reserve)(void *user, uint64_t bytes, void **ret_range, struct err *e);
    void (*release)(void *user, void *range, uint64_t bytes); /* nothing is mapped in it */
    /* slow: a page of memory, not mapped yet; its name is not 0 */
    int (*create)(void *user, uint64_t *ret_page, struct err *e);
    void (*destroy)(void *user, uint64_t page); /* slow; not mapped */
    int (*map)(void *user, void *range, uint64_t at, uint64_t page, struct err *e); /* slow */
    /* slow; a page with no use left. A page that cannot be unmapped stays where it is. */
    int (*unmap)(void *user, void *range, uint64_t at, struct err *e);
    int (*access)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e); /* slow */
    /* A page may be mapped at several places at once: a page that moves stays mapped where it was,
     * and what comes again where it was needs no call. It is used at one of them only. Destroying
     * it comes after the last unmap. */
    bool aliases;
};

struct pool_blocks {
    /* slow: a block aligned to POOL_ALIGN */
    int (*alloc)(void *user, uint64_t bytes, void **ret_block, struct err *e);
    void (*free)(void *user, void *block, uint64_t bytes); /* slow; no use left */
    uint64_t max_block;                                    /* bytes of one block; 0: no limit */
    uint64_t chunk;                                        /* bytes: smaller requests share a block
                                                              of this size; a power of two */
};

struct pool_source {
    void *user;
    /* Optional (NULL: memory comes zeroed, or nobody minds): slow: fills with zeros and waits for
     * it. Called once for what is new. */
    int (*clear)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e);
    const struct pool_pages *pages; /* one of these two, the other NULL */
    const struct pool_blocks *blocks;
    /* Optional (NULL: memory of one stream is not given to another before it is free): later
     * commands of `stream` run after the point `seq` of stream `on`. */
    int (*wait)(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e);
    /* Optional (NULL: as much as the pool's limit says): bytes that the device could still give.
     * Called from pool_tick only, and not counted as a call of the driver. */
    int (*budget)(void *user, uint64_t *ret_free, struct err *e);
};

#endif
