/*
 * A caching pool of device memory. It knows no GPU: memory comes from a source (source.h), a piece
 * is (range, offset), and all records are tables in host memory.
 *
 * Three tiers in one address space (docs/pool.md):
 * - up to 64 KiB: slabs of up to 64 objects of one size class, whose free objects are bits of a
 *   word;
 * - above: two-level segregated fit on 256-byte units that ignores page borders, so that the tail
 *   of a large piece shares its page with other pieces;
 * - requests that fit nowhere: whole free pages from anywhere, and new pages (sources of pages), or
 *   a new block (sources of blocks).
 *
 * Order. The owner counts each stream's work. A piece is freed at a point `seq` of a stream: later
 * work of that stream may use the memory at once, other streams once pool_advance() reports that
 * the stream has reached `seq`. Points of a stream never decrease; `seq` 0 is always past. A used
 * piece is freed at a point counted after its allocation. An unused piece may be freed at a past
 * point: an earlier user may still use the memory then, and the pool remembers that.
 *
 * Preference: the closer fit of memory that the same stream freed and memory free for every stream;
 * memory of another stream, for a wait; whole free pages mapped elsewhere; new memory; whole pages
 * that one stream may still use. Then the pool asks the device which uses are over
 * (pool_source.reached) and tries all of this again, because asking costs less than what follows:
 * empty slabs; memory of several streams, for a wait for each; moved pieces. Then ERR_DEVICE_MEMORY
 * (pool_refusal). A `prompt` request prefers new memory to a wait. Nothing here waits on the host.
 *
 * Related headers: place.h (addresses that outlive their memory), quota.h (the ledger of tenants),
 * lease.h (the budget), pressure.h (giving memory back), move.h (moving live pieces), clean.h
 * (clearing ahead), host.h (a source).
 *
 * Thread: one owner. All sizes are bytes. Every address is a multiple of POOL_ALIGN, or of
 * pool_ask.align.
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
    uint64_t address_bytes; /* addresses reserved for pages; 0: 32 times the limit,
                               at least 1 GiB, fewer where the device has fewer */
    uint32_t max_blocks;    /* records; 0: 4 million (64 bytes each, touched as needed) */
    uint32_t events;  /* size of the log; 0: 16384 (24 bytes each); rounded up to a power of two */
    unsigned streams; /* 1 … POOL_STREAMS */
    uint64_t keep;    /* bytes that trimming by age leaves in the pool */
    uint64_t trim_age_ns; /* age at which free memory is given back: pool_tick; 0: never */
    uint64_t trim_rate;   /* most bytes a second given back for their age; 0: 1 GiB */
    uint64_t move_most;   /* most bytes moved by one search (move.h); 0: 1 GiB */
    uint32_t slice;       /* units of work in a slice of moving (move.h); 0: POOL_SLICE */
};

/* A piece of memory. The caller stores it and frees it; a copy names the same piece. */
struct pool_piece {
    void *range;     /* the source's range or block; NULL: no piece */
    uint64_t offset; /* bytes into it */
    uint64_t size;   /* usable bytes: at least `asked` */
    uint32_t block;  /* the pool's */
    uint32_t generation;
    uint64_t asked;  /* bytes asked for */
    uint32_t turn;   /* of a slab's object: counts its uses, so that a stale piece is recognised */
    uint16_t tenant; /* charged for the piece */
    uint8_t object;
    uint64_t ticket; /* not 0: not usable before pool_piece_late() (late.h) says so */
    uint32_t change; /* the pool's: the owner's last change before the piece was handed out */
    bool foreign; /* may hold another tenant's bytes: clear all of `size` before the tenant can read
                     it, then set this to false. Memory freed with it set remains foreign */
};

struct pool_place;

struct pool_ask {
    uint64_t size;   /* bytes, > 0 */
    unsigned stream; /* the first stream to use it */
    unsigned tenant;
    uint64_t tag;   /* the owner's name for the piece, which may then be moved (move.h); 0: it never
                       moves */
    uint64_t align; /* bytes: of its address, also after a move. A power of two up to a page of the
                       source (of blocks: POOL_ALIGN); 0: POOL_ALIGN */
    bool reserved;  /* draws on the tenant's reservation (quota.h), as far as it goes */
    bool prompt; /* its stream serves many tenants, which a wait would delay: prefer new memory to a
                    wait for another stream */
    const struct pool_place *place; /* a kept place (place.h); NULL: anywhere */
};

/* Sums over some pieces. Bytes are as handed out, except `asked`. */
struct pool_meter {
    uint64_t live; /* pieces */
    uint64_t used;
    uint64_t asked;
    uint64_t peak;        /* most of `used` so far */
    uint64_t allocations; /* since the pool was made */
    uint64_t total;       /* bytes of these */
};

enum pool_tier {
    POOL_TIER_SLAB,  /* objects in slabs */
    POOL_TIER_BLOCK, /* less than POOL_TIER_LARGE_MIN; small pieces that no slab took */
    POOL_TIER_LARGE,
    POOL_TIERS,
};

#define POOL_TIER_LARGE_MIN (UINT64_C(2) << 20) /* bytes */
#define POOL_CLASSES        48u                 /* sizes of objects in slabs */

struct pool_stats {
    uint64_t limit;        /* bytes the pool may take from its source */
    uint64_t size;         /* bytes taken from the source */
    uint64_t used;         /* bytes handed out, rounded up */
    uint64_t asked;        /* bytes handed out, as asked for */
    uint64_t peak;         /* most of `used` so far */
    uint64_t size_peak;    /* most of `size` so far */
    uint64_t cached;       /* bytes that pool_trim could give back now */
    uint64_t pending;      /* bytes that only the stream that freed them may use yet */
    uint64_t largest_free; /* bytes of a request that would surely succeed now */
    uint64_t live;         /* pieces */
    uint64_t allocations;  /* since the pool was made */
    uint64_t frees;
    uint64_t hits;          /* allocations without a call of the source */
    uint64_t waits;         /* waits placed between streams */
    uint64_t remaps;        /* pages mapped at another address */
    uint64_t staying;       /* bytes of buffers that are never evicted (quota.h) */
    uint64_t breaks;        /* handles given back for smaller ones */
    uint64_t handles;       /* of the source, now */
    uint64_t failures;      /* allocations refused */
    uint64_t refused_frees; /* frees of pieces that were not live */
    uint64_t driver_calls;  /* calls of the source */
    uint64_t internal;      /* bytes handed out beyond what was asked for: used - asked */
    uint64_t moves;         /* pieces that were moved */
    uint64_t moved;         /* bytes of these */
    uint64_t work;          /* units spent on moving (move.h) */
    uint64_t trimmed;       /* bytes given back for their age */
    uint64_t cleared;       /* bytes cleared ahead */
    uint64_t vacant;        /* bytes of addresses kept for pieces elsewhere (place.h) */
    uint64_t came_back;     /* pieces that returned to their kept addresses */
    uint64_t given_up;      /* kept places that were given up */
    uint64_t external; /* bytes that only small requests can use: free objects and free parts of
                          pages; not in `cached`, `pending` or `used` */
    struct pool_meter tier[POOL_TIERS];
};

struct pool;

/* The source is copied; its pointers must remain valid. */
int pool_create(const struct pool_source *source, const struct pool_options *options,
                struct pool **ret_pool, struct err *e);
/* Gives all memory back to the source; live pieces become invalid. NULL is allowed. */
void pool_destroy(struct pool *p);

/* ERR_INVALID for 0 bytes, another alignment or an unknown stream or tenant; ERR_LIMIT over the
 * tenant's hard limit; ERR_DEVICE_MEMORY names the size wanted, the bytes free and the bytes that
 * wait for streams; ERR_NOMEM if the records are used up. */
int pool_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
               struct err *e);
/* Frees the piece at point `seq` of the stream that used it last, and clears *piece; freeing a
 * cleared piece does nothing. ERR_BAD_HANDLE for a piece that is not live (freed through a copy):
 * nothing changes. */
int pool_free(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
              struct err *e);
/* The stream has reached `seq`: memory freed up to there is free for every stream. */
void pool_advance(struct pool *p, unsigned stream, uint64_t seq);

/* A lower limit takes effect as memory becomes free. Free memory above it goes back at once. */
void pool_set_limit(struct pool *p, uint64_t limit);
uint64_t pool_tenant_used(const struct pool *p, unsigned tenant); /* bytes handed out */
/* Allocates from a source of blocks until the pool has `bytes` (at most the limit), ahead of
 * requests. On an error, memory got so far remains in the pool. ERR_UNSUPPORTED: a source of
 * pages. */
int pool_warm(struct pool *p, uint64_t bytes, struct err *e);
/* Gives free memory back until at most `keep` bytes of it remain. Returns bytes given back. */
uint64_t pool_trim(struct pool *p, uint64_t keep);
void pool_stats(struct pool *p, struct pool_stats *ret_stats);
/* Meters of one class (0 … POOL_CLASSES - 1) and of one tenant. *ret_bytes: size of an object. An
 * unknown class or tenant has zeros. */
void pool_class_stats(const struct pool *p, unsigned class, uint64_t *ret_bytes,
                      struct pool_meter *ret_meter);
void pool_tenant_stats(const struct pool *p, unsigned tenant, struct pool_meter *ret_meter);

/* ---- the last refusal. What helps against it the owner knows: it knows who else wants memory. */

struct pool_refusal {
    int code; /* ERR_*; 0: no request was refused yet */
    uint16_t tenant;
    uint64_t wanted;
    uint64_t largest_free; /* bytes of a request that would surely have succeeded */
    uint64_t pending;      /* bytes that wait for streams */
    /* Pieces are being moved together, a slice in each call: try again soon. This is no refusal in
     * stats and log. */
    bool moves;
    bool full; /* the owner moves as many pieces as it can: try again when some have arrived */
};

void pool_refusal(const struct pool *p, struct pool_refusal *ret_refusal);

/* ---- the log: the last events, in fixed memory. Events carry no time; the owner stamps the time
 * now and then, about once a job. */

enum pool_event_kind {
    POOL_EVENT_ALLOC,   /* at, size, tenant, stream; with calls of the source */
    POOL_EVENT_HIT,     /* the same, without a call */
    POOL_EVENT_FREE,    /* at, size, tenant, stream, value: its point */
    POOL_EVENT_REFUSE,  /* size wanted, tenant, stream, value: minus the ERR_* code */
    POOL_EVENT_MAP,     /* at, size: new memory */
    POOL_EVENT_REMAP,   /* at, size: free pages from elsewhere */
    POOL_EVENT_UNMAP,   /* at, size: given back to the source */
    POOL_EVENT_WAIT,    /* stream waits for `tenant` (a stream, here), value: its point */
    POOL_EVENT_ADVANCE, /* stream, value: its point */
    POOL_EVENT_SLAB,    /* at, size, tenant, stream: a block was cut into objects */
    POOL_EVENT_UNSLAB,  /* at, size: a slab became a block again */
    POOL_EVENT_TRIM,    /* size: given back */
    POOL_EVENT_LIMIT,   /* size: the pool's limit from now on */
    POOL_EVENT_STAMP,   /* at: nanoseconds, from pool_stamp() */
    POOL_EVENT_MOVE,  /* as FREE, of the old place; the HIT or ALLOC that follows has the new one */
    POOL_EVENT_CLEAR, /* at, size: cleared ahead, stream, value: its point */
    POOL_EVENT_KINDS,
};

struct pool_event {
    uint64_t at;    /* bytes from the start of the pool's address space */
    uint64_t size;  /* bytes */
    uint32_t value; /* of a point: its low 32 bits */
    uint16_t tenant;
    uint8_t kind; /* enum pool_event_kind */
    uint8_t stream;
};

/* All events since the last stamp happened before this time. */
void pool_stamp(struct pool *p, uint64_t ns);
/* Copies at most `max` events from number `from` on (0: the first since the pool was made). Returns
 * how many; *ret_first is the number of the first one, more than `from` if older events were
 * overwritten. */
uint32_t pool_events(const struct pool *p, uint64_t from, struct pool_event *ret_events,
                     uint32_t max, uint64_t *ret_first);

/* ---- snapshot: which memory lies where. Taking one only copies tables: about 1 ms for 100,000
 * blocks, if the buffer's memory was touched before. It can be read while the pool goes on. */

#define POOL_TENANT_UNKNOWN UINT16_MAX

enum pool_extent_state {
    POOL_EXTENT_VOID, /* addresses without memory */
    POOL_EXTENT_FREE,
    POOL_EXTENT_PENDING, /* free for its stream only, until its point */
    POOL_EXTENT_LIVE,
    POOL_EXTENT_LOST, /* memory that the source failed to take back */
};

struct pool_extent {
    uint64_t at, size; /* bytes, as in struct pool_event */
    uint64_t seq;      /* PENDING blocks: the point */
    uint16_t tenant;   /* LIVE; UNKNOWN: several tenants share the slab */
    uint8_t state;     /* enum pool_extent_state */
    uint8_t stream;    /* PENDING, and objects */
    bool object;       /* an object of a slab */
    uint8_t number;    /* as in its struct pool_piece: object, … */
    uint32_t turn;     /* … turn, … */
    uint32_t block;    /* … block and generation */
    uint32_t generation;
};

struct pool_cursor {
    uint32_t block, object;
};

uint64_t
pool_snapshot_bytes(const struct pool *p); /* of the buffer for a snapshot at this moment */
/* ERR_LIMIT if the buffer (aligned to 8) is too small. */
int pool_snapshot(const struct pool *p, void *buffer, uint64_t bytes, struct err *e);
/* The next extent by address; start with a zeroed cursor. False: no more. Neighbouring free objects
 * are one extent. */
bool pool_snapshot_next(const void *snapshot, struct pool_cursor *cursor,
                        struct pool_extent *ret_extent);

/* Walks all records; ERR_INTERNAL names the contradiction. Builds other than Release check the
 * records that each call touches, walk everything from time to time (guard.c), and end the process
 * on a contradiction. */
int pool_check(const struct pool *p, struct err *e);

#endif
