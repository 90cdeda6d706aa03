/*
 * A caching pool of device memory. It knows no GPU: memory comes from a source (source.h), pieces
 * are (range, offset), and all metadata is host memory in tables of fixed records.
 *
 * Three tiers in one address space (docs/pool.md):
 * - up to 64 KiB: slabs, up to 64 objects of one size class whose free ones are bits of one word;
 * - above: two-level segregated fit on 256-byte units, over page borders, so that the tail of a
 *   large piece shares its page with others;
 * - what has no fit is assembled from whole free pages wherever they are, and from new ones
 *   (sources of pages), or from a new block (sources of blocks).
 *
 * Order. A stream's work is counted by its owner: a piece is freed at a point `seq` of a stream
 * and may be used by later work of the same stream at once, by others once pool_advance() told that
 * the stream has come to `seq`. Points of a stream never go back. `seq` 0 is always past.
 *
 * Preference: same stream, then what is past, then a wait between streams, then whole free pages
 * mapped elsewhere, then new memory; then ERR_DEVICE_MEMORY. Nothing here waits on the host.
 *
 * Thread: one owner. All sizes are bytes. Every address is a multiple of POOL_ALIGN.
 */
#ifndef POOL_POOL_H
#define POOL_POOL_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/pool/source.h"

#define POOL_ALIGN    256u          /* bytes */
#define POOL_SLAB_MAX (64u * 1024u) /* bytes: larger requests are blocks of their own */
#define POOL_STREAMS  16u
#define POOL_TENANTS  1024u /* numbered from 0 */

struct pool_options {
    uint64_t limit;         /* bytes the pool may take from its source */
    uint64_t address_bytes; /* pages: reserved; 0: 8 times the limit, at least 1 GiB */
    uint32_t max_blocks;    /* records; 0: 4 million (64 bytes each, touched as needed) */
    unsigned streams;       /* 1 … POOL_STREAMS */
};

/* A piece of memory. The caller keeps it and gives it back; a copy of it is the same piece. */
struct pool_piece {
    void *range;     /* the source's range or block; NULL: no piece */
    uint64_t offset; /* bytes into it */
    uint64_t size;   /* bytes usable: at least what was asked for */
    uint32_t block;  /* the pool's */
    uint32_t generation;
    uint64_t asked;  /* bytes asked for */
    uint16_t tenant; /* who pays */
    uint8_t object;
    bool foreign; /* may hold another tenant's bytes: clear it before its tenant can read it */
};

struct pool_ask {
    uint64_t size;   /* bytes, > 0 */
    unsigned stream; /* that will use it first */
    unsigned tenant;
};

struct pool_stats {
    uint64_t limit;        /* bytes the pool may take from its source */
    uint64_t size;         /* bytes taken from the source */
    uint64_t used;         /* bytes handed out, rounded up */
    uint64_t asked;        /* bytes handed out, as asked for */
    uint64_t peak;         /* most of `used` so far */
    uint64_t size_peak;    /* most of `size` so far */
    uint64_t cached;       /* bytes that pool_trim could give back now */
    uint64_t pending;      /* bytes free for their stream only */
    uint64_t largest_free; /* bytes of a request that would surely succeed now */
    uint64_t live;         /* pieces */
    uint64_t allocations;  /* since the pool was made */
    uint64_t frees;
    uint64_t hits;          /* allocations that needed nothing from the source */
    uint64_t waits;         /* waits placed between streams */
    uint64_t remaps;        /* pages that were mapped elsewhere */
    uint64_t failures;      /* allocations refused */
    uint64_t refused_frees; /* pieces given back that were not live */
    uint64_t driver_calls;  /* of the source */
};

struct pool;

/* The source is copied; what it points at must live on. */
int pool_create(const struct pool_source *source, const struct pool_options *options,
                struct pool **ret_pool, struct err *e);
/* Gives everything back to the source; pieces still live are void. NULL is fine. */
void pool_destroy(struct pool *p);

/* ERR_INVALID for 0 bytes, a stream or tenant that is none; ERR_LIMIT over the tenant's limit;
 * ERR_DEVICE_MEMORY names what was wanted, what is free and what waits for streams; ERR_NOMEM if
 * the records are used up. */
int pool_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
               struct err *e);
/* Takes the piece back at point `seq` of the stream that used it last, and clears it; a cleared one
 * may be freed again. ERR_BAD_HANDLE for a piece that is not live (freed through a copy of it):
 * nothing is changed. */
int pool_free(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
              struct err *e);
/* The stream has come to `seq`: what was freed up to there is free for all. */
void pool_advance(struct pool *p, unsigned stream, uint64_t seq);

/* A lower limit takes effect as memory becomes free; what is free above it is given back at once.
 */
void pool_set_limit(struct pool *p, uint64_t limit);
/* Most bytes (as charged: rounded up) that the tenant may hold; UINT64_MAX, the default: no limit.
 */
void pool_set_tenant_limit(struct pool *p, unsigned tenant, uint64_t bytes);
uint64_t pool_tenant_used(const struct pool *p, unsigned tenant); /* bytes as charged */
/* Gives memory back until at most `keep` bytes of what is free stay. Returns bytes given back. */
uint64_t pool_trim(struct pool *p, uint64_t keep);
void pool_stats(const struct pool *p, struct pool_stats *ret_stats);
/* Walks all metadata; ERR_INTERNAL says what contradicts what. For tests and diagnosis. */
int pool_check(const struct pool *p, struct err *e);

#endif
