/* The pool's state, for the files of this folder. */
#ifndef POOL_POOL_INT_H
#define POOL_POOL_INT_H

#include "common/saturate.h"
#include "daemon/pool/class.h"
#include "daemon/pool/fit.h"
#include "daemon/pool/move.h"
#include "daemon/pool/page_table.h"
#include "daemon/pool/place.h"
#include "daemon/pool/pool.h"
#include "daemon/pool/quota.h"

#define LL(bytes) ((unsigned long long)(bytes))

#define SLAB_OBJECTS 64u
#define SLAB_CLASSES POOL_CLASSES /* classes up to POOL_SLAB_MAX */
#define WHOLE_LISTS  7u
#define WARM_BLOCKS  16u

/* Objects of one class in a block. */
struct slab {
    uint32_t prev, next; /* in partial[stream][class], while an object is free */
    uint64_t free;       /* bit o: object o is free */
    uint64_t live;       /* bit o: object o is handed out; neither: see struct deferred */
    uint64_t own;        /* bit o: object o holds bytes of `tenant` only */
    uint64_t seq;        /* the last free's point on `stream` */
    uint64_t after_seq;  /* `stream` took it over with a wait for this point of `after`: until that
                            is past, nobody else may have it */
    uint32_t block;
    uint16_t tenant;
    uint8_t class;
    uint8_t stream; /* which may use free objects at once */
    uint8_t after;
    uint8_t capacity;
    uint32_t turn[SLAB_OBJECTS]; /* of each object's last use: tells a stale piece */
};

/* An object that another stream than its slab's gave back and may still use. */
struct deferred {
    uint32_t next;
    uint32_t slab;
    uint64_t seq;
    uint8_t object;
};

/* A block of a source of blocks. */
struct home {
    uint32_t unused; /* records.h's while not in use */
    void *block;
    uint64_t at;
    uint64_t bytes;
    uint16_t tenant; /* see tenancy.c */
};

/* A request, and where it was served. */
struct recalled {
    uint64_t key; /* its bytes, a multiple of POOL_ALIGN, and its stream in the bits below */
    uint64_t at;
};

#define RECALL_REQUESTS 65536u /* a power of two */

/* What was asked for so far: see recall.c. */
struct recall {
    struct recalled *past; /* request number n is at n % RECALL_REQUESTS; NULL: not kept */
    uint32_t *guess;       /* by hash of three requests: the number of the one behind, 32 bits */
    uint64_t count;        /* requests so far */
    uint64_t next;         /* number of the past request that the next one should be like */
    unsigned alike;        /* requests in a row that were as expected */
    unsigned credit;       /* above 0: pages stay mapped where they were */
    uint64_t forgot;       /* `count` when addresses were used up last */
    uint64_t resume;       /* `count` from which on there is credit again */
    uint64_t pause;        /* requests without: longer each time */
};

/* What waits for a stream, oldest first. */
struct line {
    uint32_t oldest, newest;                   /* blocks */
    uint32_t oldest_deferred, newest_deferred; /* objects */
};

/* Blocks that are VACANT, oldest first: see vacant.c. */
struct vacant {
    uint32_t oldest, newest;
    uint32_t stuck; /* from the oldest to this one streams use all, and none could be given up since
                       a stream came on last; BLOCK_NONE: not known of any */
    uint64_t bytes; /* of addresses */
    uint64_t looks; /* at one that could not be given up, so far */
};

/* When memory is no longer in use. */
struct point {
    unsigned stream;
    uint64_t seq; /* 0: it is not */
};

/* What moving did not help. */
struct vain {
    bool known;                   /* false: of nothing */
    bool sure;                    /* nothing was in the way that passes without a free */
    uint64_t target, block, most; /* what was wanted: see struct effort */
    uint64_t reach;               /* bytes that could be had, before */
    uint64_t frees;               /* stats.frees then */
};

/* See compact.c. */
struct moving {
    uint64_t most;  /* bytes moved for one request */
    uint64_t tried; /* stats.frees when pieces were moved ahead last */
    uint64_t calm;  /* frees until that is tried again */
    uint64_t least; /* bytes in use in the home that is emptied: see compact_gains; 0: anywhere */
    uint64_t home;  /* its bytes */
    bool refused;   /* the owner did not move a piece, since moving began */
    struct vain vain[2]; /* for less than a page, for pages */
};

#define TRIM_WINDOWS 16u

/* What pool_tick knows from the last time. */
struct trimming {
    uint64_t age_ns, rate, keep;  /* as in the options */
    uint64_t now_ns;              /* of the last tick */
    uint64_t window_ns;           /* when the current window began */
    uint64_t least[TRIM_WINDOWS]; /* of whole_bytes in each window; [window]: so far */
    unsigned window;
    uint64_t budget;    /* bytes the source can still give; UINT64_MAX: not known */
    uint64_t budget_ns; /* when it was asked */
    uint64_t allowance; /* bytes that may be given back now */
};

/* Debug builds: see check.c. */
struct guard {
    uint64_t until_walk; /* calls */
};

struct pool {
    struct pool_source source;
    unsigned streams;
    uint64_t page;           /* bytes; what VOID consists of; POOL_ALIGN for sources of blocks */
    uint64_t space;          /* bytes of addresses */
    void *range;             /* sources of pages */
    struct page_table table; /* sources of pages */
    struct recall recall;
    uint32_t *begins; /* see by_address.c; NULL: not kept */
    struct marks begins_at;
    struct records blocks;
    struct records slabs;
    uint64_t slabs_empty; /* without an object in use */
    struct records
        tags; /* uint64_t[SLAB_OBJECTS] for each slab: see move.h; never taken or given */
    struct records deferred;
    struct records homes;

    struct fit void_fit;
    struct fit ready;
    struct fit pending[POOL_STREAMS];
    struct line line[POOL_STREAMS];
    uint64_t pending_whole[POOL_STREAMS]; /* bytes of whole pages that wait for it */
    uint64_t done[POOL_STREAMS];
    uint32_t whole[WHOLE_LISTS]; /* READY blocks with whole pages, by log2 of their number */
    uint64_t whole_bytes;        /* in all of them, and in `idle` */
    struct line idle;            /* VACANT blocks with pages that no stream uses */
    uint32_t leaving;            /* VACANT blocks with pages that streams may use: in `line` */
    uint64_t leaving_bytes;      /* of these pages */
    uint64_t leaving_of[POOL_STREAMS]; /* the same, by stream */
    struct vacant vacant;
    uint32_t partial[POOL_STREAMS][SLAB_CLASSES];
    uint32_t warm[WARM_BLOCKS]; /* see warm.c */
    uint64_t warm_bytes;        /* in all of them */

    struct pool_account account[POOL_TENANTS]; /* see quota.c */
    uint64_t mapped;                           /* bytes that all tenants are charged for */
    uint64_t due;                              /* bytes kept for tenants: guaranteed, reserved */
    uint64_t reserved;                         /* bytes of all accounts */
    uint64_t drawn; /* of these: what the request under way may draw on */
    struct pool_meter class[SLAB_CLASSES];
    struct pool_stats stats;
    struct pool_refusal refusal;
    struct trimming trimming;
    struct pool_mover mover; /* move NULL: nothing moves */
    struct moving moving;
    bool tagged; /* some piece has, or had, a tag */
    struct guard guard;

    struct pool_event *event; /* number n is at n & event_mask */
    uint32_t event_mask;
    uint64_t event_count;
};

/* ---- the log: an event is a few stores */

static inline void event_add(struct pool *p, enum pool_event_kind kind, struct pool_event event)
{
    event.kind = (uint8_t)kind;
    p->event[p->event_count++ & p->event_mask] = event;
}

/* A piece has moved between these addresses of the pool. `calls`: of the source, before. */
void event_moved(struct pool *p, const struct pool_move *move, uint64_t from, uint64_t to,
                 uint64_t calls);

/* ---- space.c: blocks between their states. A block is either indexed (found by the fits and
 * lists its state names) or held by the caller. */

void space_enter(struct pool *p, uint32_t i); /* held → indexed */
void space_leave(struct pool *p, uint32_t i); /* indexed → held */
/* Cuts a held block after `size` bytes; the rest is held too, alike but for place and size. There
 * must be a record (space_has_records). */
uint32_t space_cut(struct pool *p, uint32_t i, uint64_t size);
/* Joins a held block with indexed neighbours that are alike; the result is held. */
uint32_t space_merge(struct pool *p, uint32_t i);
/* A held block becomes free at a point of a stream, is merged and indexed. */
uint32_t space_release(struct pool *p, uint32_t i, unsigned stream, uint64_t seq);
/* When nobody uses a block any more that is freed at (*stream, *seq): its earlier user may be the
 * later one. seq 0: now. */
void space_point(const struct pool *p, const struct block *b, unsigned *stream, uint64_t *seq);
/* Of a VACANT block: they are used elsewhere. */
void space_lose_pages(struct pool *p, uint32_t i, uint64_t bytes);
bool space_has_records(const struct pool *p, uint32_t count);
/* [*ret_at, + return) are the whole pages (or the whole home) in a block; 0: none. */
uint64_t space_whole(const struct pool *p, const struct block *b, uint64_t *ret_at);

/* ---- warm.c */

void warm_keep(struct pool *p, uint32_t i, unsigned stream, uint64_t seq); /* a LIVE block */
uint32_t warm_take(struct pool *p, uint64_t size, unsigned stream);        /* held; BLOCK_NONE */
bool warm_flush(struct pool *p); /* true: there were some */

/* ---- by_address.c: the first two do nothing where it is not kept */

int by_address_init(struct pool *p, struct err *e);
void by_address_finish(struct pool *p);
void by_address_add(struct pool *p, uint32_t block);    /* it begins there now */
void by_address_remove(struct pool *p, uint32_t block); /* before its neighbours are told */
uint32_t by_address(const struct pool *p, uint64_t at); /* the block that holds it */

/* ---- recall.c */

#define RECALL_NOWHERE UINT64_MAX

int recall_init(struct pool *p, struct err *e);
void recall_finish(struct pool *p);
/* Where a request should be served, as it was before; NOWHERE: it is not known. */
uint64_t recall_expect(const struct pool *p, uint64_t size, unsigned stream);
/* It was served there. */
void recall_note(struct pool *p, uint64_t size, unsigned stream, uint64_t at);
/* An indexed block that begins at `at` and is at least so large, free for the stream, without a
 * call of the source; BLOCK_NONE: there is none. */
uint32_t recall_take(struct pool *p, uint64_t at, uint64_t size, unsigned stream);
bool recall_repeats(const struct pool *p); /* has the load done so for a while? */
bool recall_keeps(const struct pool *p);   /* do pages stay mapped where they were? */
/* VOID blocks with pages mapped serve all requests again; false: there were none. */
bool recall_forget(struct pool *p);

/* ---- backing_*.c */

/* Makes an indexed READY block of at least `size` bytes. What was got on the way to a failure stays
 * as READY memory. */
int backing_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e);
int backing_pages_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e);
int backing_blocks_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e);
int backing_warm(struct pool *p, uint64_t bytes, struct err *e); /* takes so much, free for all */
/* Free pages of one block that are accessible from `at` on, in a VOID block, are used there again:
 * as many in a row as may be, at most `bytes`, all in that block. Returns how many bytes. */
uint64_t backing_pages_return(struct pool *p, uint64_t at, uint64_t bytes, unsigned stream);
/* The same for one that is held, of pages that are mapped. *ret_found: there is such a page. */
uint64_t backing_pages_back(struct pool *p, uint64_t at, uint64_t bytes);
/* Of what is mapped at `at`: bytes in a row that are free where they are used now, from *ret_from
 * on, in one block. */
uint64_t backing_pages_free(const struct pool *p, uint64_t at, unsigned stream, uint64_t *ret_from,
                            uint32_t *ret_block);
/* Pages that are free for the stream only are used from `to` on: at most `most` bytes, whole pages.
 * Returns bytes, and raises *seq to the last point of theirs. */
uint64_t backing_pages_pending(struct pool *p, unsigned stream, uint64_t to, uint64_t most,
                               uint64_t *seq, struct err *e);
/* Maps free pages from elsewhere, then new ones, in [to, to + need). On failure some are there.
 * Whether they are accessible is not known. */
int backing_pages_fill(struct pool *p, uint64_t to, uint64_t need, struct err *e);
/* A held block becomes READY where it has pages, and VOID where not: a record for each of those. */
void backing_pages_unwind(struct pool *p, uint32_t i);
int backing_pages_warm(struct pool *p, uint64_t bytes, struct err *e);
int backing_blocks_warm(struct pool *p, uint64_t bytes, struct err *e);
uint64_t backing_trim(struct pool *p, uint64_t keep); /* bytes given back */
uint64_t backing_pages_drop(struct pool *p, uint32_t i, uint64_t most);
uint64_t backing_blocks_drop(struct pool *p, uint32_t i);
void backing_finish(struct pool *p); /* all of it, whatever its state */
void backing_blocks_finish(struct pool *p);

/* ---- vacant.c: addresses without memory of their own */

/* A block that was LIVE gives its memory up at a point and keeps its addresses. False: it is not
 * one that can. */
bool vacant_keep(struct pool *p, uint32_t i, unsigned stream, uint64_t seq,
                 struct pool_place *ret_place);
/* The block of a place that is kept; BLOCK_NONE: it is not, or not for a request like that. */
uint32_t vacant_find(const struct pool *p, const struct pool_ask *ask);
/* It gets memory again, and is held. ERR_STATE: it cannot now, but others might: free pages are too
 * few, kept for others, or a stream uses it. ERR_DEVICE_MEMORY: the source has no more. Any failure
 * leaves it VACANT. */
int vacant_occupy(struct pool *p, uint32_t i, const struct pool_ask *ask, struct err *e);
/* Makes an indexed PENDING block of at least `size` bytes of what VACANT ones are about to leave,
 * for commands of `stream` that come now. */
int vacant_grow(struct pool *p, uint64_t size, unsigned stream, uint32_t *ret_block, struct err *e);
/* Moves free pages of VACANT blocks to [to, to + most). Returns how many bytes. */
uint64_t vacant_pages(struct pool *p, uint64_t to, uint64_t most, struct err *e);
uint64_t vacant_drop(struct pool *p, uint64_t most); /* gives such pages back to the source */
/* It is an ordinary free block from now on. False: it cannot be yet. */
bool vacant_give_up(struct pool *p, uint32_t i);
bool vacant_give_up_oldest(struct pool *p); /* that can be; false: there is none */

/* ---- stats.c */

/* A piece was handed out (its block LIVE or SLAB) or is about to come back. */
void stats_taken(struct pool *p, const struct pool_piece *piece);
void stats_given(struct pool *p, const struct pool_piece *piece);
uint64_t stats_largest_free(const struct pool *p);

/* Bytes that the pool may hold: what is reserved may lie beside it. */
static inline uint64_t pool_most(const struct pool *p)
{
    return sat_sub(p->stats.limit, p->reserved - p->drawn);
}

static inline uint64_t pool_room(const struct pool *p) /* bytes that may still be taken */
{
    return sat_sub(pool_most(p), p->stats.size);
}

static inline uint64_t pool_over(const struct pool *p) /* bytes that are to go back */
{
    return sat_sub(p->stats.size, pool_most(p));
}

/* ---- quota.c */

/* Is so much more within the tenant's hard limit? */
int quota_within(const struct pool *p, const struct pool_ask *ask, uint64_t bytes, struct err *e);
/* The same, and what is kept for others. */
int quota_admit(const struct pool *p, const struct pool_ask *ask, uint64_t bytes, struct err *e);
void quota_charge(struct pool *p, const struct pool_ask *ask, uint64_t bytes);
void quota_discharge(struct pool *p, unsigned tenant, uint64_t bytes);
void quota_transfer(struct pool *p, unsigned from, unsigned to, uint64_t bytes);
uint64_t quota_due(const struct pool *p); /* p->due, added up anew */
/* Bytes that the request has to leave: kept for others, or reserved and not for it. */
uint64_t quota_kept(const struct pool *p, const struct pool_ask *ask);

/* ---- compact.c */

/* Moves pieces until a request of so many bytes may have its whole pages. True: try again. */
bool compact_for(struct pool *p, uint64_t size);
/* Keeps some whole pages, without which pieces that are larger than any free part cannot move. */
void compact_ahead(struct pool *p);
/* What moving did not help once may be helped now: something was changed that is no free. */
void compact_anew(struct pool *p);
/* While pieces are moved: may one go to this free block, or to this slab's? */
bool compact_gains(const struct pool *p, uint32_t block);

/* ---- refusal.c */

/* Counts, logs and remembers it, and says all that helps. Returns rc. */
int refuse(struct pool *p, const struct pool_ask *ask, int rc, struct err *e);

/* ---- check.c: debug builds end the process when a call has left something wrong behind */

#ifdef POOL_GUARD
void guard_check(struct pool *p, uint32_t block); /* that was touched last */
#else
static inline void guard_check(struct pool *p, uint32_t block)
{
    (void)p;
    (void)block;
}
#endif

/* ---- pool.c */

enum take_flags {
    TAKE_NOW = 0,
    TAKE_WAIT = 1,
    TAKE_GROW = 2,
    TAKE_PAST = 4,   /* only what no stream uses any more */
    TAKE_RECALL = 8, /* first where such a request was served before */
    TAKE_LATE = 16,  /* waits where nothing grows; without TAKE_GROW at once */
};

/* A held block of exactly `size` bytes (a multiple of POOL_ALIGN), in the state it was found in. */
int pool_take(struct pool *p, uint64_t size, const struct pool_ask *ask, unsigned flags,
              uint32_t *ret_block, struct err *e);
/* Its range and offset as the source knows them, from those in the pool's address space. */
void pool_locate(const struct pool *p, struct pool_piece *piece);
struct pool_piece pool_piece_of(const struct pool *p, uint32_t block); /* all of a block */
/* Is what others are to have still there? */
bool pool_leaves_enough(const struct pool *p, const struct pool_ask *ask);
int pool_wait(struct pool *p, unsigned stream, unsigned on, uint64_t seq, struct err *e);

/* ---- tenancy.c: whose bytes a page (or a block of the source) holds: one tenant's, nobody's, or
 * several tenants' */

#define TENANCY_CLEAN (UINT16_MAX - 1) /* zeros */
#define TENANCY_MIXED UINT16_MAX

/* The tenant gets this block. Returns whether it may hold bytes of another. `clears`: in that case
 * all of it is cleared before it is used. */
bool tenancy_claim(struct pool *p, const struct block *b, unsigned tenant, bool clears);
void tenancy_spoil(struct pool *p, const struct block *b); /* what was not cleared comes back */
void tenancy_clean(struct pool *p, const struct block *b); /* whole pages that are zeros now */
void tenancy_new(struct pool *p, uint64_t frame, uint64_t count); /* from the source */
/* From `at` on, up to `end`: bytes of used pages with one holder; 0: none is used at `at`. */
uint64_t tenancy_row(const struct pool *p, uint64_t at, uint64_t end, uint16_t *ret_holder);

/* ---- slab.c */

int slab_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
               struct err *e);
/* ERR_BAD_HANDLE if the object is not live. */
int slab_free(struct pool *p, const struct pool_piece *piece, unsigned stream, uint64_t seq,
              struct err *e);
void slab_advance(struct pool *p, unsigned stream);  /* done[stream] has moved */
void pressure_note(struct pool *p);                  /* somebody got whole pages, perhaps */
uint64_t slab_reclaim(struct pool *p);               /* empty slabs' bytes become free blocks */
bool slab_busy(const struct pool *p, uint32_t i);    /* streams may use what is free in it */
bool slab_movable(const struct pool *p, uint32_t i); /* each object in use has a tag; all past */
uint64_t slab_live_bytes(const struct pool *p, uint32_t i);
/* Moves its objects into other slabs of their class, until the owner refuses one. */
int slab_move(struct pool *p, uint32_t i);
/* Moves objects of the tenant's slabs together until the request is within its hard limit, where
 * that helps: a slab that is empty is off its account. True: try again. */
bool slab_pack(struct pool *p, const struct pool_ask *ask);

#endif
