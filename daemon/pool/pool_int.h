/* The pool's state and the functions that its files share. Include it in this folder only. */
#ifndef POOL_POOL_INT_H
#define POOL_POOL_INT_H

#include "common/saturate.h"
#include "daemon/pool/class.h"
#include "daemon/pool/fit.h"
#include "daemon/pool/late.h"
#include "daemon/pool/lease.h"
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
#define LINES        (POOL_STREAMS + 1u) /* streams, and the joint line: joint.c */
#define LINE_NONE    LINES
#define JOINTS       16u /* points of the joint line that are not past */

/* Objects of one class in a block. */
struct slab {
    uint32_t prev, next; /* in partial[stream][class] while an object is free */
    uint64_t free;       /* bit o: object o is free */
    uint64_t live;       /* bit o: object o is handed out; neither bit: see struct deferred */
    uint64_t own;        /* bit o: object o holds bytes of `tenant` only */
    uint64_t seq;        /* the last free's point on `stream` */
    uint64_t after_seq;  /* `stream` got the slab with a wait for this point of `after`; no other
                            stream gets it before that point is past */
    uint32_t block;
    uint16_t tenant;
    uint8_t class;
    uint8_t stream; /* the stream that may use free objects at once */
    uint8_t after;
    bool failed; /* it is in no list, and gives no object: late.c */
    uint8_t capacity;
    uint8_t align; /* log2 of the alignment of its objects; they may have a higher one */
    uint32_t turn[SLAB_OBJECTS]; /* counts each object's uses: a stale piece has another */
};

/* An object freed by another stream than its slab's, which may still use it. */
struct deferred {
    uint32_t next;
    uint32_t slab;
    uint64_t seq;
    uint8_t object;
};

/* A block of a source of blocks. */
struct home {
    uint32_t unused; /* of records.h while the record is free */
    void *block;
    uint64_t at;
    uint64_t bytes;
    uint16_t tenant; /* its holder: see tenancy.c */
};

/* A past request and the address that it got. */
struct recalled {
    uint64_t key; /* bytes, a multiple of POOL_ALIGN, with the stream in the low bits */
    uint64_t at;
};

#define RECALL_REQUESTS 65536u /* a power of two */

/* Past requests: see recall.c. */
struct recall {
    struct recalled *past; /* request n is at n % RECALL_REQUESTS; NULL: no record is kept */
    uint32_t *guess;       /* by hash of three requests: number of the next one, 32 bits */
    uint64_t count;        /* requests so far */
    uint64_t next;         /* number of the past request that the next request should equal */
    unsigned alike;        /* requests in a row that were as expected */
    unsigned credit;       /* above 0: pages stay mapped where they were */
    uint64_t forgot;       /* `count` when the addresses were last used up */
    uint64_t resume;       /* `count` from which credit is earned again */
    uint64_t pause;        /* requests without credit: longer each time */
};

/* Memory that waits for a stream, oldest first. */
struct line {
    uint32_t oldest, newest;                   /* blocks */
    uint32_t oldest_deferred, newest_deferred; /* objects */
};

/* Blocks that are VACANT, oldest first: see vacant.c. */
struct vacant {
    uint32_t oldest, newest;
    uint32_t stuck; /* streams use all places from the oldest to this one, and none could be given
                       up since a stream advanced last; BLOCK_NONE: not known */
    uint64_t bytes; /* of addresses */
};

/* The point at which memory is no longer used. */
struct point {
    unsigned stream; /* or the joint line */
    uint64_t seq;    /* 0: it is unused now */
};

/* See joint.c. */
struct joint {
    uint64_t last; /* number of the newest point */
    /* point n, as a point of each stream, is at n % JOINTS; never before that of point n - 1 */
    uint64_t seq[JOINTS][POOL_STREAMS];
};

/* A request that moving could not help. */
struct vain {
    bool known;        /* false: no such request */
    bool sure;         /* the obstacle can only pass by a change of the owner's */
    bool ahead;        /* it was none: a request is tried all the same */
    bool still;        /* nothing moved, and a stream that advances may help */
    uint64_t wanted;   /* this and more is in vain: struct effort */
    uint64_t most;     /* bytes that might be moved for it */
    uint64_t whole;    /* bytes of whole pages before */
    uint64_t used;     /* bytes of pieces then */
    uint64_t advances; /* of streams, then */
    uint32_t change;   /* the owner's last one, then */
};

/* How much has moved without a gain since the owner's last change. */
struct spent {
    uint32_t change; /* that change */
    uint64_t most;   /* bytes of pieces and of whole pages, the most since then */
    uint64_t moved;  /* bytes since there were so many, and … */
    uint64_t moves;  /* … pieces */
    uint64_t need;   /* for a request that needs so many bytes enough has moved: need_of() */
};

/* Several passes over all blocks, in slices: each call goes on where the last one ended. */
struct sweep {
    unsigned pass;   /* from 1 on; 0: there is no sweep */
    unsigned first;  /* pass */
    uint32_t at;     /* the next block to examine (moving_joined); BLOCK_NONE: the pass is over */
    bool ahead;      /* it serves no request */
    bool refused;    /* the owner refused to move a piece */
    bool waits;      /* some memory may become free, or movable, when streams advance */
    uint64_t wanted; /* the largest request that it serves: struct effort */
    uint64_t most;   /* bytes that it may yet move */
    uint64_t limit;  /* the least bytes that one of its calls might move */
    uint64_t moved;  /* bytes */
    uint64_t gained; /* bytes of whole pages */
    uint64_t whole;  /* bytes of whole pages when it began */
    uint64_t used;   /* bytes of pieces then */
    uint32_t change; /* the owner's last one, then */
};

/* See compact.c. */
struct moving {
    uint64_t most;         /* bytes moved by one sweep */
    uint64_t slice;        /* units of work in a slice */
    uint64_t tried;        /* stats.frees at the last move ahead */
    uint64_t calm;         /* frees until the next try */
    uint64_t least;        /* bytes in use in the home being emptied; 0: anywhere */
    uint64_t home;         /* size of that home */
    uint64_t advances;     /* counts pool_advance */
    uint64_t units;        /* of work left to the present call */
    unsigned stream;       /* of the last copy that was not complete; LINE_NONE: none */
    unsigned pass[2];      /* in which the last sweep that had enough ended */
    bool more;             /* the last request was refused before its sweep was over */
    bool refused;          /* the owner refused to move a piece in the present call */
    bool full;             /* … and takes none before a stream has advanced */
    struct sweep sweep[2]; /* 0: for less than a page; 1: for pages */
    struct vain vain[2];   /* the same */
    struct spent spent[2]; /* the same */
    /* Counts what the owner changed: limits, quotas, movers, and frees. A piece that was taken
     * after the last change and is freed again leaves all as it was: tries of a job do that. */
    uint32_t change;
};

#define TRIM_WINDOWS 16u

/* The state of pool_tick between calls. */
struct trimming {
    uint64_t age_ns, rate, keep;  /* as in the options */
    uint64_t now_ns;              /* of the last tick */
    uint64_t window_ns;           /* when the current window began */
    uint64_t least[TRIM_WINDOWS]; /* least whole_bytes in each window; [window]: so far */
    unsigned window;
    uint64_t budget;    /* bytes the source can still give; UINT64_MAX: not known */
    uint64_t budget_ns; /* when the source reported it */
    uint64_t allowance; /* bytes that may be given back now */
};

/* See lease.c; the budget is stats.limit. */
struct lease {
    enum pool_lease_state state; /* changed in one place of lease.c */
    uint64_t asked;              /* bytes above the budget when it was set */
    uint64_t deadline_ns;
};

/* See late.c. */
struct late {
    uint64_t issued; /* number of the last call */
    uint64_t done;   /* calls up to this one are complete */
    uint64_t failed; /* bytes of FAILED and LOST views */
    uint64_t lost;   /* bytes that the source could not unmap */
    uint32_t first;  /* FAILED blocks */
    /* After a failure, until memory was given back or the next tick: */
    unsigned order; /* log2 of the pages of the largest handle that is asked for */
    bool refuses;   /* no new memory */
};

/* Debug builds: see guard.c. */
struct guard {
    uint64_t until_walk; /* calls left */
};

struct pool {
    struct pool_source source;
    unsigned streams;
    uint64_t page;       /* bytes; VOID blocks consist of pages; POOL_ALIGN for sources of blocks */
    unsigned page_log;   /* page is 2^page_log */
    uint64_t space;      /* bytes of addresses */
    uint64_t handle_max; /* bytes of the largest handle; 0: a source of blocks */
    void *range;         /* sources of pages */
    struct page_table table; /* sources of pages */
    struct recall recall;
    uint32_t *begins; /* see by_address.c; NULL: no index */
    struct marks begins_at;
    struct records blocks;
    struct records slabs;
    uint64_t slabs_empty; /* without an object in use */
    struct records tags;  /* uint64_t[SLAB_OBJECTS] for each slab, by its index: see move.h; no
                             record is allocated or freed */
    struct records deferred;
    struct records homes;

    struct fit void_fit;
    struct fit ready;
    /* by stream; [streams]: the joint line */
    struct fit pending[LINES];
    struct line line[LINES];
    uint64_t pending_whole[LINES]; /* bytes of its whole PENDING pages */
    uint64_t done[LINES];
    struct joint joint;
    uint32_t whole[WHOLE_LISTS]; /* READY blocks with whole pages: space_whole_list */
    uint64_t whole_bytes;        /* in these blocks and in `idle` */
    struct line idle;            /* VACANT blocks with pages that no stream uses */
    uint32_t leaving;       /* VACANT blocks with pages that streams may use; they are in `line` */
    uint64_t leaving_bytes; /* bytes of these pages */
    uint64_t leaving_of[LINES]; /* these bytes by line */
    struct vacant vacant;
    uint32_t partial[POOL_STREAMS][SLAB_CLASSES];
    uint32_t warm[WARM_BLOCKS]; /* see warm.c */
    uint64_t warm_bytes;        /* in all of them */

    struct pool_account account[POOL_TENANTS]; /* see quota.c */
    uint64_t mapped;                           /* bytes that all tenants are charged for */
    uint64_t due;                              /* bytes kept for tenants: guaranteed, reserved */
    uint64_t reserved;                         /* bytes of all accounts */
    uint64_t drawn;                            /* of these: available to the request in progress */
    uint64_t staying;                          /* bytes of all accounts that stay */
    uint64_t stay_most; /* of these, most of all tenants without a guarantee */
    struct pool_meter class[SLAB_CLASSES];
    struct pool_stats stats;
    struct pool_refusal refusal;
    struct trimming trimming;
    struct lease lease;
    struct pool_mover mover; /* move NULL: nothing moves */
    struct moving moving;
    bool tagged; /* a piece has, or had, a tag */
    struct late late;
    struct guard guard;

    struct pool_event *event; /* event n is at n & event_mask */
    uint32_t event_mask;
    uint64_t event_count;
};

/* ---- the log: an event is a few stores */

static inline void event_add(struct pool *p, enum pool_event_kind kind, struct pool_event event)
{
    event.kind = (uint8_t)kind;
    p->event[p->event_count++ & p->event_mask] = event;
}

/* Logs that a piece moved between these addresses of the pool. `calls`: driver_calls before. */
void event_moved(struct pool *p, const struct pool_move *move, uint64_t from, uint64_t to,
                 uint64_t calls);
/* Counts, logs and records the refusal, and adds its numbers to *e. Returns rc. */
int refuse(struct pool *p, const struct pool_ask *ask, int rc, struct err *e);

/* ---- space.c: changes of state. A block is either indexed (in the fits and lists of its state) or
 * held by the caller. */

void space_enter(struct pool *p, uint32_t i); /* held → indexed */
void space_leave(struct pool *p, uint32_t i); /* indexed → held */
/* Cuts a held block after `size` bytes. The rest is held too and has the same fields apart from its
 * place. A record must be free (space_has_records). */
uint32_t space_cut(struct pool *p, uint32_t i, uint64_t size);
/* Joins a held block with indexed neighbours of the same kind; the result is held. */
uint32_t space_merge(struct pool *p, uint32_t i);
/* Frees a held block at a point of a stream, merges and indexes it. */
uint32_t space_release(struct pool *p, uint32_t i, unsigned stream, uint64_t seq);
/* Turns the point at which a block is freed into the point at which it is unused: an earlier user
 * may be the later one. seq 0: unused now. */
void space_point(const struct pool *p, const struct block *b, unsigned *stream, uint64_t *seq);
/* `bytes` of pages of a VACANT block are used elsewhere, or destroyed. */
void space_lose_pages(struct pool *p, uint32_t i, uint64_t bytes);
bool space_has_records(const struct pool *p, uint32_t count);
/* The whole handles, or the whole home, in a block. Of READY and PENDING blocks they are the "whole
 * pages" of this folder. */
struct handles space_handles(const struct pool *p, const struct block *b);
/* The same: from *ret_at on. Returns bytes. */
uint64_t space_whole(const struct pool *p, const struct block *b, uint64_t *ret_at);
/* The list of p->whole for READY blocks whose smaller end handle, or whose home, has so many bytes.
 */
unsigned space_whole_list(const struct pool *p, uint64_t bytes);

/* ---- warm.c */

void warm_keep(struct pool *p, uint32_t i, unsigned stream, uint64_t seq); /* a LIVE block */
/* Held, and at a multiple of `align`; or BLOCK_NONE. */
uint32_t warm_take(struct pool *p, uint64_t size, unsigned stream, uint64_t align);
bool warm_flush(struct pool *p); /* false: there were none */

/* ---- by_address.c: add and remove do nothing without an index */

int by_address_init(struct pool *p, struct err *e);
void by_address_finish(struct pool *p);
void by_address_add(struct pool *p, uint32_t block);    /* after it got its address */
void by_address_remove(struct pool *p, uint32_t block); /* while its neighbours still link to it */
uint32_t by_address(const struct pool *p, uint64_t at); /* the block that contains `at` */

/* ---- recall.c */

#define RECALL_NOWHERE UINT64_MAX

int recall_init(struct pool *p, struct err *e);
void recall_finish(struct pool *p);
/* The address that such a request had before; RECALL_NOWHERE: not known. */
uint64_t recall_expect(const struct pool *p, uint64_t size, unsigned stream);
/* Notes a request and the address that it got. */
void recall_note(struct pool *p, uint64_t size, unsigned stream, uint64_t at);
/* An indexed block that begins at `at`, has at least `size` bytes and is free for the stream, found
 * without a call of the source; BLOCK_NONE: not possible. */
uint32_t recall_take(struct pool *p, uint64_t at, uint64_t size, unsigned stream);
bool recall_repeats(const struct pool *p); /* has the load repeated itself for a while? */
bool recall_keeps(const struct pool *p);   /* do moved pages stay mapped at their old address? */
/* Opens VOID blocks with mapped pages to all requests; false: there were none. */
bool recall_forget(struct pool *p);

/* ---- backing_*.c */

/* Makes an indexed READY block of at least `size` bytes. On failure, memory got so far is READY. */
int backing_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e);
int backing_pages_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e);
int backing_blocks_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e);
/* Pages that are mapped and accessible from `at` on, in a VOID block, and free in one other block,
 * are used at `at` again: one row of at most `bytes` within the VOID block. Returns bytes. */
uint64_t backing_pages_return(struct pool *p, uint64_t at, uint64_t bytes, unsigned stream);
/* The same at `at` in a held block, for READY pages that are mapped, accessible or not. */
uint64_t backing_pages_back(struct pool *p, uint64_t at, uint64_t bytes);
/* The row mapped at `at` that is free where it is used now: *ret_from, in block *ret_block. Returns
 * bytes; 0: not free for the stream. */
uint64_t backing_pages_free(const struct pool *p, uint64_t at, unsigned stream, uint64_t *ret_from,
                            uint32_t *ret_block);
/* A range to be filled with memory that streams may still use. */
struct want {
    uint64_t to, need; /* bytes */
    uint64_t room;     /* bytes that may be filled: the last handle may reach beyond `need` */
    uint64_t got;      /* bytes so far */
};

/* Moves whole pages that only the stream may use. Raises *seq to the last point of these pages. */
void backing_pages_pending(struct pool *p, unsigned stream, struct want *w, uint64_t *seq,
                           struct err *e);
/* page_break in a held READY block. On failure the block is indexed in parts. e is not NULL. */
int backing_pages_break(struct pool *p, uint32_t i, uint64_t at, bool alone, struct err *e);
#define BREAK_RECORDS 24u /* blocks that may be needed: parts of a handle after a failure */
/* Bytes of leading whole handles from `at` on, at most `most`, of [at, at + bytes). */
uint64_t backing_pages_fit(const struct pool *p, uint64_t at, uint64_t bytes, uint64_t most);
/* The same, but at least `least` bytes, as far as there are so many. */
uint64_t backing_pages_reach(const struct pool *p, uint64_t at, uint64_t bytes, uint64_t least);
/* Maps free pages from elsewhere, then new ones, in [to, to + need). On failure some pages are
 * there. They may not be accessible yet. */
int backing_pages_fill(struct pool *p, uint64_t to, uint64_t need, struct err *e);
/* A held block becomes READY where it has pages and VOID elsewhere. Each part needs a record. */
void backing_pages_unwind(struct pool *p, uint32_t i);
int backing_blocks_warm(struct pool *p, uint64_t bytes, struct err *e); /* gets so much, READY */
uint64_t backing_trim(struct pool *p, uint64_t keep); /* returns bytes given back */
uint64_t backing_pages_drop(struct pool *p, uint32_t i, uint64_t most);
uint64_t backing_blocks_drop(struct pool *p, uint32_t i);
void backing_finish(struct pool *p); /* gives all memory back, in any state */
void backing_blocks_finish(struct pool *p);

/* ---- vacant.c: kept addresses whose memory others may use */

/* A LIVE block gives its memory up at a point and keeps its addresses. False: it cannot. */
bool vacant_keep(struct pool *p, uint32_t i, unsigned stream, uint64_t seq,
                 struct pool_place *ret_place);
/* The block of the request's kept place; BLOCK_NONE: not kept, or of another size. */
uint32_t vacant_find(const struct pool *p, const struct pool_ask *ask);
/* Gives a VACANT block memory again; it is held then. ERR_STATE: not now, but another block may do
 * (free pages are too few or kept for other tenants, or a stream uses them). ERR_DEVICE_MEMORY: the
 * source has no more. On failure it remains VACANT. */
int vacant_occupy(struct pool *p, uint32_t i, const struct pool_ask *ask, struct err *e);
/* Makes an indexed READY or PENDING block of at least `size` bytes for later commands of `stream`:
 * of free and new pages, and of pages that one stream has freed or vacated and may still use. */
int vacant_grow(struct pool *p, uint64_t size, unsigned stream, uint32_t *ret_block, struct err *e);
/* Moves free pages of VACANT blocks to [to, to + most). Returns bytes. */
uint64_t vacant_pages(struct pool *p, uint64_t to, uint64_t most, struct err *e);
uint64_t vacant_drop(struct pool *p, uint64_t most); /* bytes given back to the source */
/* Makes it an ordinary free block. False: not possible yet. */
bool vacant_give_up(struct pool *p, uint32_t i);
bool vacant_give_up_oldest(struct pool *p); /* the oldest that can be; false: none */

/* ---- joint.c: memory of several streams */

static inline unsigned joint_line(const struct pool *p)
{
    return p->streams;
}

/* Orders later commands of the stream after a point of the joint line. */
int joint_wait(struct pool *p, unsigned stream, uint64_t n, struct err *e);
bool joint_needs(const struct pool *p, unsigned stream); /* does joint memory wait for it? */
uint64_t joint_reached(const struct pool *p);            /* the last point that is past */
/* Whole pages of several streams join, or free blocks in a row, so that the joint line has enough
 * for the request. False: they are too few, or none need join. */
bool joint_pages(struct pool *p, const struct pool_ask *ask);
bool joint_row(struct pool *p, const struct pool_ask *ask);

/* ---- late.c */

/* The number of the source's last call; 0: its calls are complete when they return. */
static inline uint64_t late_issued(struct pool *p)
{
    if (p->source.issued != NULL) {
        p->late.issued = p->source.issued(p->source.user);
    }
    return p->late.issued;
}

/* A view of so many pages ends. */
static inline void late_forget(struct pool *p, const struct view *v, uint64_t pages)
{
    p->late.failed -= v->late >= VIEW_FAILED ? pages * p->page : 0;
}

/* The source may have room for new memory. */
static inline void late_room(struct pool *p)
{
    p->late.refuses = false;
    p->late.order = UINT8_MAX;
}

/* Does anything have to be asked about a piece? */
static inline bool late_any(const struct pool *p)
{
    return p->late.done < p->late.issued || p->late.failed > 0;
}

void late_issue(struct pool *p, uint64_t at, uint64_t bytes); /* a call for [at, at + bytes) */
/* Is a page of [at, end) failed? */
bool late_failed(const struct pool *p, uint64_t at, uint64_t end);
/* Makes failed pages in READY and PENDING blocks of [at, end) FAILED, and drops them if all of a
 * page is. */
void late_strike(struct pool *p, uint64_t at, uint64_t end);
void late_sweep(struct pool *p);          /* drops FAILED pages that could not be dropped before */
uint64_t pool_room(const struct pool *p); /* bytes the pool may still get; 0 after a refusal */

/* ---- stats.c */

/* Count a piece that was handed out (its block LIVE or SLAB), or that is about to be freed. */
void stats_taken(struct pool *p, const struct pool_piece *piece);
void stats_given(struct pool *p, const struct pool_piece *piece);
uint64_t stats_largest_free(const struct pool *p);

/* Most bytes the pool may have: reserved memory may lie beside it. */
static inline uint64_t pool_most(const struct pool *p)
{
    return sat_sub(p->stats.limit, p->reserved - p->drawn + p->late.lost);
}

static inline uint64_t pool_over(const struct pool *p) /* bytes it has too many */
{
    return sat_sub(p->stats.size, pool_most(p));
}

/* ---- lease.c */

#define SHRINK_BYTES (UINT64_C(256) << 20) /* given back at once during a recall, at most */

/* Gives at most `most` free bytes back, as far as the pool has more than its budget. */
uint64_t pool_shrink(struct pool *p, uint64_t most);

/* ---- quota.c */

/* Is so much more within the tenant's hard limit? */
int quota_within(const struct pool *p, const struct pool_ask *ask, uint64_t bytes, struct err *e);
/* The same, and does it leave what is kept for others? */
int quota_admit(const struct pool *p, const struct pool_ask *ask, uint64_t bytes, struct err *e);
void quota_charge(struct pool *p, const struct pool_ask *ask, uint64_t bytes);
void quota_discharge(struct pool *p, unsigned tenant, uint64_t bytes);
void quota_transfer(struct pool *p, unsigned from, unsigned to, uint64_t bytes);
uint64_t quota_due(const struct pool *p); /* p->due, computed anew */
/* Bytes that the request must leave: kept for others, or reserved and not for this request. */
uint64_t quota_kept(const struct pool *p, const struct pool_ask *ask);

/* ---- compact.c */

/* Does a slice of moving pieces for a request, so that it may find whole pages. True: pieces moved,
 * try again. p->moving.more: there is more to do. */
bool compact_for(struct pool *p, const struct pool_ask *ask);
/* Keeps some pages whole: pieces larger than any free part could not move otherwise. */
void compact_ahead(struct pool *p);
/* Forgets sweeps and requests that moving could not help: something other than a free has
 * changed. */
void compact_anew(struct pool *p);
void compact_changed(struct pool *p); /* the same after a change of the owner's: moving.change */
void compact_served(struct pool *p, const struct pool_ask *ask); /* its sweep ends */
/* While pieces move: may one move to this free block, or into this slab's block? */
bool compact_gains(struct pool *p, uint32_t block);

#define MOVE_UNITS 64u /* of work: a piece that moves, or that the owner refuses to move */

static inline void moving_spend(struct pool *p, uint64_t units)
{
    p->stats.work += units;
    p->moving.units = sat_sub(p->moving.units, units);
}

static inline void moving_refused(struct pool *p, int rc)
{
    p->moving.refused = true;
    p->moving.full = p->moving.full || rc == ERR_LIMIT;
}

/* Block `gone` became part of block `into`. */
static inline void moving_joined(struct pool *p, uint32_t gone, uint32_t into)
{
    for (unsigned k = 0; k < 2; k++) {
        p->moving.sweep[k].at = p->moving.sweep[k].at == gone ? into : p->moving.sweep[k].at;
    }
}

/* ---- guard.c: debug builds end the process when a call leaves a contradiction */

#ifdef POOL_GUARD
void guard_check(struct pool *p, uint32_t block); /* the block touched last */
#else
static inline void guard_check(struct pool *p, uint32_t block)
{
    (void)p;
    (void)block;
}
#endif

/* ---- pool.c */

static inline uint64_t pool_align(const struct pool_ask *ask)
{
    return ask->align > POOL_ALIGN ? ask->align : POOL_ALIGN;
}

/* In pages, rounded down. A shift: divisions are slow, and each request makes many. */
static inline uint64_t to_pages(const struct pool *p, uint64_t bytes)
{
    return bytes >> p->page_log;
}

static inline unsigned pool_log(uint64_t power) /* of a power of two */
{
    return (unsigned)__builtin_ctzll(power);
}

enum take_flags {
    TAKE_NOW = 0,
    TAKE_WAIT = 1,
    TAKE_GROW = 2,
    TAKE_PAST = 4,   /* only memory that no stream uses */
    TAKE_RECALL = 8, /* prefer the address that such a request had before */
    TAKE_LATE = 16,  /* waits only if growing fails; without TAKE_GROW at once */
};

/* A held block of exactly `size` bytes (a multiple of POOL_ALIGN), READY or PENDING, aligned as
 * asked. */
int pool_take(struct pool *p, uint64_t size, const struct pool_ask *ask, unsigned flags,
              uint32_t *ret_block, struct err *e);
/* Sets range and offset as the source knows them; `offset` is the pool's address before. */
void pool_locate(const struct pool *p, struct pool_piece *piece);
struct pool_piece pool_piece_of(const struct pool *p,
                                uint32_t block); /* a whole block as a piece */
/* Is enough left of what is kept for others? */
bool pool_leaves_enough(const struct pool *p, const struct pool_ask *ask);
int pool_wait(struct pool *p, unsigned stream, unsigned on, uint64_t seq, struct err *e);

/* ---- tenancy.c: the holder of a page (or of a block of the source) is the tenant whose bytes it
 * has: one tenant, nobody, or several */

#define TENANCY_CLEAN (UINT16_MAX - 1) /* zeros */
#define TENANCY_MIXED UINT16_MAX

/* The tenant gets this block. Returns whether it may hold another tenant's bytes. `clears`: if so,
 * the tenant clears all of it before use. */
bool tenancy_claim(struct pool *p, const struct block *b, unsigned tenant, bool clears);
void tenancy_spoil(struct pool *p, const struct block *b); /* it was freed without being cleared */
void tenancy_clean(struct pool *p, const struct block *b); /* whole pages are zeros now */
void tenancy_new(struct pool *p, uint64_t frame, uint64_t count); /* new memory from the source */
/* Bytes from `at` on, up to `end`, of used pages with one holder; 0: `at` is not used. */
uint64_t tenancy_row(const struct pool *p, uint64_t at, uint64_t end, uint16_t *ret_holder);

/* ---- slab.c */

int slab_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
               struct err *e);
/* ERR_BAD_HANDLE if the object is not live. */
int slab_free(struct pool *p, const struct pool_piece *piece, unsigned stream, uint64_t seq,
              struct err *e);
void slab_advance(struct pool *p, unsigned stream); /* done[stream] has advanced */
void pressure_note(struct pool *p);                 /* whole_bytes may have decreased */
/* A slab in a failed page gives no more objects, and goes when it is empty. */
void slab_fail(struct pool *p, uint32_t i);
void slab_fail_sweep(struct pool *p);  /* failed slabs that could not go before */
uint64_t slab_reclaim(struct pool *p); /* empty slabs become free blocks; returns bytes */
bool slab_busy(const struct pool *p, uint32_t i); /* streams may use free objects of it */
bool slab_movable(const struct pool *p,
                  uint32_t i); /* live objects have tags, free ones are past */
uint64_t slab_live_bytes(const struct pool *p, uint32_t i);
/* Moves its objects into other slabs of their class, until the owner refuses. */
int slab_move(struct pool *p, uint32_t i);
/* Puts the tenant's objects together in fewer slabs until the request is within its hard limit, if
 * that helps: an empty slab is not charged. True: objects moved, try again. */
bool slab_pack(struct pool *p, const struct pool_ask *ask);

#endif
