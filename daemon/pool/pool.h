/*
 * A caching pool of device memory over a page source. It knows no GPU: it takes blocks from the
 * source, hands out (block, offset) and keeps what is freed for reuse. All metadata is host memory.
 *
 * Requests up to POOL_SMALL_MAX bytes come from 2 MiB chunks that are cut into pieces of one size;
 * larger ones own a block, which is cached by size when it is freed. Sizes are rounded up to
 * classes, at most 12.5% above what was asked (256 bytes at least). Every address is a multiple of
 * 256 bytes.
 *
 * Thread: one owner. Does not block but for what the page source does. A block that is freed must
 * have no use left on the device.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define POOL_ALIGN       256u                 /* bytes */
#define POOL_CHUNK_BYTES (2u * 1024u * 1024u) /* what small requests are cut from */
#define POOL_SMALL_MAX   (256u * 1024u)       /* bytes: larger requests own a block */

/* Where blocks come from. Blocks are the source's; the pool never looks into one. */
struct pool_source {
    void *user;
    /* A block of `size` bytes aligned to POOL_ALIGN; ERR_DEVICE_MEMORY if there is none. */
    int (*alloc)(void *user, uint64_t size, void **ret_block, struct err *e);
    void (*free)(void *user, void *block, uint64_t size);
    uint64_t max_block; /* bytes of one block; 0: no limit */
};

/* A piece of memory: the caller keeps it and gives it back. */
struct pool_piece {
    void *block;     /* the source's */
    uint64_t offset; /* bytes into the block */
    uint64_t size;   /* bytes usable, the class's: at least what was asked for */
    void *owner;     /* the pool's; NULL: none */
};

struct pool_stats {
    uint64_t limit;        /* bytes the pool may take from its source */
    uint64_t size;         /* bytes taken from the source */
    uint64_t used;         /* bytes handed out, rounded up to classes */
    uint64_t peak;         /* most of `used` so far */
    uint64_t cached;       /* bytes of whole blocks that could be given back: see pool_trim */
    uint64_t largest_free; /* bytes of the largest request that would succeed if the source gives
                              all it may */
    uint64_t live;         /* pieces */
    uint64_t allocations;  /* since the pool was made */
    uint64_t frees;
    uint64_t hits;         /* allocations that needed nothing from the source */
    uint64_t failures;     /* allocations refused */
    uint64_t driver_calls; /* calls of the source, alloc and free */
};

struct pool;

/* limit: bytes the pool may take from the source. The struct is copied. */
int pool_create(const struct pool_source *source, uint64_t limit, struct pool **ret_pool,
                struct err *e);
/* Gives everything back to the source; pieces still live are void. NULL is fine. */
void pool_destroy(struct pool *p);

/* ERR_INVALID for 0 bytes; ERR_DEVICE_MEMORY names what was wanted and the largest free; ERR_NOMEM
 * for host memory. Before it refuses, all that is cached is given back and the source asked again.
 */
int pool_alloc(struct pool *p, uint64_t size, struct pool_piece *ret_piece, struct err *e);
/* Takes the piece back and clears it; a cleared one may be freed again, a copy of it may not. */
void pool_free(struct pool *p, struct pool_piece *piece);

/* A lower limit takes effect as pieces are freed; what is cached above it is given back at once. */
void pool_set_limit(struct pool *p, uint64_t limit);
/* Gives cached blocks back until at most `keep` bytes stay cached. Returns bytes given back. */
uint64_t pool_trim(struct pool *p, uint64_t keep);
void pool_stats(const struct pool *p, struct pool_stats *ret_stats);
/* Walks all metadata; ERR_INTERNAL says what contradicts what. For tests and diagnosis. */
int pool_check(const struct pool *p, struct err *e);

/* Bytes of the class that a request falls into; 0 for 0 and for what overflows. */
uint64_t pool_class_bytes(uint64_t size);

#endif
