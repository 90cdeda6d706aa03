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
 * A piece is freed at a point that was counted after it was given, or, if it was not used, at one
 * that is past: then whoever had the memory before may still use it, and the pool remembers that.
 *
 * Preference: same stream, then what is past, then a wait between streams, then whole free pages
 * mapped elsewhere, then new memory, then moving pieces; then ERR_DEVICE_MEMORY, with the one
 * useful thing to do (pool_refusal). Who asks for it (`prompt`) gets new memory before a wait.
 * Nothing here waits on the host.
 *
 * Beside this header: place.h (addresses that outlive their memory), quota.h (what a tenant may
 * hold), pressure.h (giving back what is not needed), move.h (moving live pieces), clean.h
 * (clearing ahead), host.h (a source).
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
    uint32_t events;        /* of the log; 0: 16384 (24 bytes each); rounded up to a power of two */
    unsigned streams;       /* 1 … POOL_STREAMS */
    uint64_t keep;          /* bytes that are never given back for their age */
    uint64_t trim_age_ns;   /* given back when free so long: pool_tick; 0: never */
    uint64_t trim_rate;     /* bytes a second given back for their age at most; 0: 1 GiB */
    uint64_t move_most;     /* bytes moved for one request at most; 0: 1 GiB */
};

/* A piece of memory. The caller keeps it and gives it back; a copy of it is the same piece. */
struct pool_piece {
    void *range;     /* the source's range or block; NULL: no piece */
    uint64_t offset; /* bytes into it */
    uint64_t size;   /* bytes usable: at least what was asked for */
    uint32_t block;  /* the pool's */
    uint32_t generation;
    uint64_t asked;  /* bytes asked for */
    uint32_t turn;   /* of a slab's object: tells its uses apart */
    uint16_t tenant; /* who pays */
    uint8_t object;
    bool foreign; /* may hold another tenant's bytes: clear all of `size` before its tenant can read
                     it, then set this to false; memory given back with it set stays foreign */
};

struct pool_place;

struct pool_ask {
    uint64_t size;   /* bytes, > 0 */
    unsigned stream; /* that will use it first */
    unsigned tenant;
    uint64_t tag;  /* the owner's name for it: the piece may be moved (move.h); 0: it stays */
    bool reserved; /* draws on what the tenant has reserved (quota.h), as far as there is any */
    bool prompt;   /* its stream serves others, too, whom its waits hold up: new memory is taken
                      before it waits for another stream */
    const struct pool_place *place; /* of a piece of this size (place.h); NULL: anywhere */
};

/* What some pieces come to. Bytes are as handed out, but for `asked`. */
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
    POOL_TIER_BLOCK, /* less than POOL_TIER_LARGE_MIN, and small ones that no slab had room for */
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
    uint64_t internal;      /* bytes handed out that nobody asked for: used - asked */
    uint64_t moves;         /* pieces that were moved */
    uint64_t moved;         /* bytes of these */
    uint64_t trimmed;       /* bytes given back for their age */
    uint64_t cleared;       /* bytes cleared ahead */
    uint64_t vacant;        /* bytes of addresses that are kept (place.h) */
    uint64_t came_back;     /* pieces that got memory at addresses that were kept */
    uint64_t given_up;      /* ranges that were not kept to the end */
    uint64_t external;      /* bytes taken that only small requests can use: free objects, and free
                               parts of pages; 0 in `cached`, `pending` and `used` */
    struct pool_meter tier[POOL_TIERS];
};

struct pool;

/* The source is copied; what it points at must live on. */
int pool_create(const struct pool_source *source, const struct pool_options *options,
                struct pool **ret_pool, struct err *e);
/* Gives everything back to the source; pieces still live are void. NULL is fine. */
void pool_destroy(struct pool *p);

/* ERR_INVALID for 0 bytes, a stream or tenant that is none; ERR_LIMIT over the tenant's hard limit;
 * ERR_DEVICE_MEMORY names what was wanted, what is free, what waits for streams and what to do;
 * ERR_NOMEM if the records are used up. */
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
uint64_t pool_tenant_used(const struct pool *p, unsigned tenant); /* bytes handed out */
/* Takes memory from the source until it has `bytes` (at most the limit), before anybody asks. What
 * was got on the way to an error stays. */
int pool_warm(struct pool *p, uint64_t bytes, struct err *e);
/* Gives memory back until at most `keep` bytes of what is free stay. Returns bytes given back. */
uint64_t pool_trim(struct pool *p, uint64_t keep);
void pool_stats(struct pool *p, struct pool_stats *ret_stats);
/* Objects of one class (0 … POOL_CLASSES - 1) and what their tenants hold. *ret_bytes: of an
 * object. A class or tenant that is none has zeros. */
void pool_class_stats(const struct pool *p, unsigned class, uint64_t *ret_bytes,
                      struct pool_meter *ret_meter);
void pool_tenant_stats(const struct pool *p, unsigned tenant, struct pool_meter *ret_meter);

/* ---- why the last request was refused, and what helps ---- */

enum pool_advice {
    POOL_ADVICE_NONE,
    POOL_ADVICE_SMALLER, /* more than the pool can ever have: ask for less, or raise the limit */
    POOL_ADVICE_OWN,     /* the tenant is at its hard limit: it frees something of its own */
    POOL_ADVICE_WAIT,    /* streams will give back enough: again when they have come on */
    POOL_ADVICE_SPILL,   /* move pieces of `victim` to the host */
    POOL_ADVICE_QUEUE,   /* what is free is others' by right: wait until somebody frees */
};

struct pool_refusal {
    int code; /* ERR_*; 0: none was refused yet */
    uint16_t tenant;
    uint16_t victim; /* SPILL: who to take from first (pool_victim) */
    uint64_t wanted;
    uint64_t largest_free; /* bytes of a request that would surely have succeeded */
    uint64_t pending;      /* bytes that wait for streams */
    enum pool_advice advice;
};

void pool_refusal(const struct pool *p, struct pool_refusal *ret_refusal);
const char *pool_advice_text(enum pool_advice advice); /* a sentence without its end; static */

/* ---- the log: the last events, in fixed memory. No clock is read for an event; the owner stamps
 * the time now and then, once a job. */

enum pool_event_kind {
    POOL_EVENT_ALLOC,   /* at, size, tenant, stream; something was asked of the source */
    POOL_EVENT_HIT,     /* the same; nothing was */
    POOL_EVENT_FREE,    /* at, size, tenant, stream, value: its point */
    POOL_EVENT_REFUSE,  /* size wanted, tenant, stream, value: minus the ERR_* code */
    POOL_EVENT_MAP,     /* at, size: new memory */
    POOL_EVENT_REMAP,   /* at, size: free pages from elsewhere */
    POOL_EVENT_UNMAP,   /* at, size: given back to the source */
    POOL_EVENT_WAIT,    /* stream waits for `tenant` (a stream, here), value: its point */
    POOL_EVENT_ADVANCE, /* stream, value: its point */
    POOL_EVENT_SLAB,    /* at, size, tenant, stream: a block was cut into objects */
    POOL_EVENT_UNSLAB,  /* at, size: and is a block again */
    POOL_EVENT_TRIM,    /* size: given back */
    POOL_EVENT_LIMIT,   /* size: the pool's limit from now on */
    POOL_EVENT_STAMP,   /* at: nanoseconds, as pool_stamp() was told */
    POOL_EVENT_MOVE,    /* as FREE; the HIT or ALLOC that follows it tells where to */
    POOL_EVENT_CLEAR,   /* at, size: cleared ahead, stream, value: its point */
    POOL_EVENT_KINDS,
};

struct pool_event {
    uint64_t at;    /* bytes from the start of the pool's address space */
    uint64_t size;  /* bytes */
    uint32_t value; /* its low 32 bits */
    uint16_t tenant;
    uint8_t kind; /* enum pool_event_kind */
    uint8_t stream;
};

/* All events since the last stamp happened before this time. */
void pool_stamp(struct pool *p, uint64_t ns);
/* Copies events from number `from` (counted from 0 since the pool was made) on, at most `max`.
 * Returns how many; *ret_first is the first one's number: more than `from` if older ones are gone.
 */
uint32_t pool_events(const struct pool *p, uint64_t from, struct pool_event *ret_events,
                     uint32_t max, uint64_t *ret_first);

/* ---- snapshot: what lies where. Taking one copies tables and nothing else: about 1 ms for 100,000
 * blocks, if the buffer's memory was touched before. It is read later, the pool going on. */

#define POOL_TENANT_UNKNOWN UINT16_MAX

enum pool_extent_state {
    POOL_EXTENT_VOID, /* addresses without memory */
    POOL_EXTENT_FREE,
    POOL_EXTENT_PENDING, /* free for its stream, for others at its point */
    POOL_EXTENT_LIVE,
    POOL_EXTENT_LOST, /* what the source would not take back */
};

struct pool_extent {
    uint64_t at, size; /* bytes, as in struct pool_event */
    uint64_t seq;      /* PENDING blocks: the point */
    uint16_t tenant;   /* LIVE; UNKNOWN: of a slab that several tenants share */
    uint8_t state;     /* enum pool_extent_state */
    uint8_t stream;    /* PENDING, and objects */
    bool object;       /* of a slab */
    uint8_t number;    /* of its struct pool_piece: object, */
    uint32_t turn;     /* turn, */
    uint32_t block;    /* block, and */
    uint32_t generation;
};

struct pool_cursor {
    uint32_t block, object;
};

uint64_t pool_snapshot_bytes(const struct pool *p); /* of a buffer for a snapshot taken now */
/* ERR_LIMIT if the buffer (aligned to 8) is too small. */
int pool_snapshot(const struct pool *p, void *buffer, uint64_t bytes, struct err *e);
/* The next extent by address, the cursor zeroed at first; false: there are no more. Neighbouring
 * objects that are free come as one. */
bool pool_snapshot_next(const void *snapshot, struct pool_cursor *cursor,
                        struct pool_extent *ret_extent);

/* Walks all metadata; ERR_INTERNAL says what contradicts what. Builds other than Release check what
 * each call touches, walk everything now and then (check.c), and end the process if it is wrong. */
int pool_check(const struct pool *p, struct err *e);

#endif
