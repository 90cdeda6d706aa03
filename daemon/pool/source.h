/*
 * Where the pool's memory comes from. A source is of one of two kinds:
 *
 * - pages: the device creates handles of memory, and maps a handle at addresses of the caller's
 *   choice, at several places at once (CUDA's virtual memory). A handle is used at one of them. So
 *   free handles move to other addresses without a copy, and scattered memory serves a large
 *   request; and a handle that moves stays mapped at its old address, and returns there without a
 *   call. The pool destroys a handle after its last unmap.
 * - blocks: the device allocates and frees whole blocks (OpenCL, Vulkan, host memory).
 *
 * The pool's owner is the only caller. Only functions marked "slow" may take long. Errors:
 * ERR_DEVICE_MEMORY if memory is short; any other error reaches the caller unchanged.
 */
#ifndef POOL_SOURCE_H
#define POOL_SOURCE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

struct pool_pages {
    uint64_t page_bytes; /* of the smallest handle, a power of two ≥ 4096: 2 MiB on CUDA */
    uint64_t handle_max; /* bytes of the largest, page_bytes times a power of two; 0: page_bytes */
    /* a handle is at most this part of the pool's limit (pool_handle_most); 0: 1024 */
    uint32_t handle_share;
    /* Reserves an address range, which pieces name as their range. */
    int (*reserve)(void *user, uint64_t bytes, void **ret_range, struct err *e);
    void (*release)(void *user, void *range, uint64_t bytes); /* with nothing mapped */
    /* slow: creates a handle of `bytes` (page_bytes times a power of two), not mapped; its name is
     * not 0 */
    int (*create)(void *user, uint64_t bytes, uint64_t *ret_handle, struct err *e);
    void (*destroy)(void *user, uint64_t handle, uint64_t bytes); /* slow; not mapped */
    /* slow: maps all of a handle, which has `bytes`, at a multiple of page_bytes */
    int (*map)(void *user, void *range, uint64_t at, uint64_t handle, uint64_t bytes,
               struct err *e);
    /* slow: ends a mapping as a whole; no stream uses the memory there. On failure it remains. */
    int (*unmap)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e);
    int (*access)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e); /* slow */
};

struct pool_blocks {
    /* slow: allocates a block aligned to POOL_ALIGN */
    int (*alloc)(void *user, uint64_t bytes, void **ret_block, struct err *e);
    void (*free)(void *user, void *block, uint64_t bytes); /* slow; no stream uses it */
    uint64_t max_block;                                    /* bytes of one block; 0: no limit */
    uint64_t chunk; /* bytes, a power of two: smaller requests share a block of this size */
};

struct pool_source {
    void *user;
    /* Optional (NULL: new memory counts as dirty). Slow: fills with zeros and waits for it. Called
     * when the pool maps or allocates memory that is new, or that has bytes of several tenants. */
    int (*clear)(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e);
    const struct pool_pages *pages; /* one of the two; the other is NULL */
    const struct pool_blocks *blocks;
    /* Optional (NULL: memory that one stream may still use is not given to another). Orders later
     * commands of `stream` after point `seq` of stream `on`. */
    int (*wait)(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e);
    /* Optional (NULL: each call is complete when it returns); for sources of pages. The number
     * of the last call of create, destroy, map, unmap, access or clear, from 1 on. The source makes
     * these calls later, in their order, and reports what became of them: late.h. */
    uint64_t (*issued)(void *user);
    /* Optional (NULL: the pool learns it from pool_advance alone). Asks the device for the last
     * point of the stream that is over; it may answer with an earlier one. Never waits. Called
     * before the pool moves pieces for a request or refuses it, at most once in each pool_alloc for
     * each stream with memory that waits; not counted as a call of the driver. */
    int (*reached)(void *user, unsigned stream, uint64_t *ret_seq, struct err *e);
    /* Optional (NULL: bounded by the pool's limit only). Bytes that the device could still give.
     * Called from pool_tick only, and not counted as a call of the driver. */
    int (*budget)(void *user, uint64_t *ret_free, struct err *e);
};

#endif
