/*
 * Makes whole pages of free parts by moving live pieces (move.h). A stretch is a row of
 * neighbouring blocks that are free or may move; when its pieces have left, its pages are whole.
 * Stretches that gain most for each byte copied come first. Pieces move to where any request would
 * go, but never into memory that streams may still use. On sources of blocks a stretch is one block
 * of the source, and its pieces move into free parts of others.
 */
#include "daemon/pool/pool_int.h"

#define STRETCH_BLOCKS 64u      /* most blocks of one stretch */
#define LOOK_STEPS     4000000u /* blocks examined for one answer */
#define ROUGH          5u /* passes: the last takes stretches that gain 1/128 of what is copied */

struct stretch {
    uint32_t first;   /* block */
    unsigned count;   /* blocks */
    uint64_t begin;   /* bytes: start of the first block */
    uint64_t end;     /* bytes: end of the last block */
    uint64_t live;    /* bytes to be copied */
    uint64_t whole;   /* bytes of whole pages that are free already */
    unsigned movable; /* blocks with something to move */
};

/* The limits and progress of a call of compact(). */
struct effort {
    uint64_t target; /* bytes of whole pages wanted; 0: see block */
    uint64_t block;  /* bytes wanted in a row, less than a page */
    uint64_t most;   /* bytes that may yet be moved */
    uint64_t steps;
    uint64_t moved;
    bool waits; /* some memory may become free, or movable, when streams advance */
};

void pool_set_mover(struct pool *p, const struct pool_mover *mover)
{
    p->mover = mover != NULL ? *mover : (struct pool_mover){.move = NULL};
    compact_anew(p);
}

/* Memory without a piece. Free objects of slabs are charged to a tenant, but may become whole pages
 * too. */
static uint64_t unused(const struct pool *p)
{
    return sat_add(sat_sub(p->stats.size, p->stats.used), pool_room(p));
}

/* Whole pages, memory that the source may still give, and memory that streams will give back. */
static uint64_t reach(const struct pool *p)
{
    return sat_add(p->whole_bytes + p->stats.pending, pool_room(p));
}

/* ---- finding ----------------------------------------------------------------------------------*/

static bool joins(const struct pool *p, const struct block *b)
{
    switch ((enum block_state)b->state) {
    case BLOCK_READY:
        return true;
    case BLOCK_LIVE:
        return b->tag != 0;
    case BLOCK_SLAB:
        return slab_movable(p, b->owner);
    default:
        return false;
    }
}

static void extend(const struct pool *p, struct stretch *s, const struct block *b)
{
    uint64_t at;
    s->end = b->at + b->size;
    s->count++;
    if (b->state == BLOCK_READY) {
        s->whole += space_whole(p, b, &at);
    } else {
        s->live += b->state == BLOCK_SLAB ? slab_live_bytes(p, b->owner) : b->size;
        s->movable++;
    }
}

/* Whole pages gained, in bytes, when the stretch is empty and its pieces lie close together
 * elsewhere; 0: none. For less than a page all bytes in a row count, if they suffice. */
static uint64_t gain_of(const struct pool *p, const struct stretch *s, const struct effort *effort)
{
    if (effort->target == 0) {
        return s->end - s->begin >= effort->block ? s->end - s->begin - s->live : 0;
    }
    uint64_t at;
    uint64_t pages = page_whole(p, s->begin, s->end, &at);
    return sat_sub(pages, sat_add(s->whole, s->live));
}

/* Is there room outside the stretch for its pieces? Most of a small pool may be one stretch. */
static bool lands(const struct pool *p, const struct stretch *s)
{
    uint64_t inside = s->end - s->begin - s->live;
    return s->live <= sat_sub(unused(p), sat_add(p->stats.pending, inside));
}

/* The stretch from a block on that gains most for each byte moved, of all its lengths. */
static struct stretch best_from(const struct pool *p, uint32_t first, struct effort *effort)
{
    struct stretch s = {.first = first, .begin = block_at(&p->blocks, first)->at};
    struct stretch best = {.count = 0};
    uint64_t best_gain = 0;
    for (uint32_t i = first; i != BLOCK_NONE && s.count < STRETCH_BLOCKS;) {
        const struct block *b = block_at(&p->blocks, i);
        bool edge = p->source.blocks != NULL && i != first && b->edge;
        if (edge || !joins(p, b) || s.live > effort->most) {
            break;
        }
        extend(p, &s, b);
        effort->steps++;
        uint64_t gain = lands(p, &s) ? gain_of(p, &s, effort) : 0;
        if (gain > 0 &&
            (double)gain * (double)(best.live + 1) > (double)best_gain * (double)(s.live + 1)) {
            best = s;
            best_gain = gain;
        }
        i = b->after;
    }
    return best;
}

/* A home is emptied as a whole or not at all: free parts of it serve no larger request. */
static struct stretch home_from(const struct pool *p, uint32_t first, struct effort *effort)
{
    const struct block *b = block_at(&p->blocks, first);
    const struct home *h = records_at(&p->homes, b->home);
    struct stretch s = {.first = first, .begin = b->at};
    for (uint32_t i = first; i != BLOCK_NONE && s.end < h->at + h->bytes; i = b->after) {
        b = block_at(&p->blocks, i);
        if (!joins(p, b) || s.count == STRETCH_BLOCKS) {
            return (struct stretch){.count = 0};
        }
        extend(p, &s, b);
        effort->steps++;
    }
    return s;
}

#define HOME_LOOKED 256u /* blocks; a home of more counts as full */

/* On sources of blocks a piece moves into a smaller home, or into one with as much in use as its
 * old one; otherwise the pieces of two homes of the same size could swap for ever. A large home may
 * hold more than any small one, and is still emptied. Pieces that went into a smaller home and fill
 * a large one again gained nothing; `in_vain` ends that. */
bool compact_gains(const struct pool *p, uint32_t i)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t live = 0;
    unsigned looked = 0;
    if (p->moving.least == 0) {
        return true;
    }
    while (!b->edge && looked++ < HOME_LOOKED) {
        i = b->before;
        b = block_at(&p->blocks, i);
    }
    const struct home *h = records_at(&p->homes, b->home);
    if (looked < HOME_LOOKED && h->bytes < p->moving.home) {
        return true;
    }
    for (; i != BLOCK_NONE && looked < HOME_LOOKED; looked++, i = b->after) {
        b = block_at(&p->blocks, i);
        if (b->at >= h->at + h->bytes) {
            break;
        }
        live += b->state == BLOCK_LIVE   ? b->size
                : b->state == BLOCK_SLAB ? slab_live_bytes(p, b->owner)
                                         : 0;
    }
    return live >= p->moving.least || looked >= HOME_LOOKED;
}

/* ---- moving -----------------------------------------------------------------------------------*/

/* Moves a LIVE block. Its old memory is free at the point that the owner names. */
static int move_block(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    uint32_t to = BLOCK_NONE;
    const struct pool_ask ask = {.tenant = b->tenant};
    uint64_t calls = p->stats.driver_calls;
    if (!space_has_records(p, 12) || pool_take(p, b->size, &ask, TAKE_PAST, &to, NULL) != 0) {
        return ERR_DEVICE_MEMORY;
    }
    struct block *t = block_at(&p->blocks, to);
    struct pool_piece from_piece = pool_piece_of(p, i);
    struct pool_piece to_piece = pool_piece_of(p, to);
    struct pool_move move = {.tag = b->tag, .from = &from_piece, .to = &to_piece};
    int rc = p->mover.move(p->mover.user, &move, NULL);
    if (rc != 0) {
        p->moving.refused = true;
        space_enter(p, space_merge(p, to));
        return rc;
    }
    (void)tenancy_claim(p, t, b->tenant, true);
    if (move.foreign) { /* neither place has only its tenant's bytes */
        tenancy_spoil(p, b);
        tenancy_spoil(p, t);
    }
    t->state = BLOCK_LIVE;
    t->tag = b->tag;
    t->tenant = b->tenant;
    p->stats.moves++;
    p->stats.moved += b->size;
    event_moved(p, &move, b->at, t->at, calls);
    (void)space_release(p, i, move.stream < p->streams ? move.stream : 0, move.seq);
    return 0;
}

static void empty(struct pool *p, const struct stretch *s, struct effort *effort)
{
    uint32_t gap[STRETCH_BLOCKS];
    uint32_t live[STRETCH_BLOCKS];
    unsigned gaps = 0;
    unsigned lives = 0;
    uint64_t before = p->stats.moved;
    uint32_t i = s->first;
    for (unsigned n = 0; n < s->count; n++, i = block_at(&p->blocks, i)->after) {
        bool ready = block_at(&p->blocks, i)->state == BLOCK_READY;
        *(ready ? &gap[gaps++] : &live[lives++]) = i;
    }
    for (unsigned n = 0; n < gaps; n++) { /* otherwise the pieces would move into these */
        space_leave(p, gap[n]);
        block_at(&p->blocks, gap[n])->state = BLOCK_HELD;
    }
    int rc = 0;
    p->moving.least = p->source.blocks != NULL ? s->live : 0;
    p->moving.home = s->end - s->begin;
    for (unsigned n = 0; n < lives && rc == 0; n++) {
        const struct block *b = block_at(&p->blocks, live[n]);
        rc = b->state == BLOCK_LIVE ? move_block(p, live[n]) : slab_move(p, b->owner);
    }
    p->moving.least = 0;
    for (unsigned n = 0; n < gaps; n++) {
        block_at(&p->blocks, gap[n])->state = BLOCK_READY;
        space_enter(p, space_merge(p, gap[n]));
    }
    uint64_t moved = p->stats.moved - before;
    effort->moved += moved;
    effort->most = sat_sub(effort->most, moved);
}

/* ---- all of it --------------------------------------------------------------------------------*/

/* The next block after the stretch that emptying it does not change: LIVE or SLAB. */
static uint32_t beyond(const struct pool *p, const struct stretch *s)
{
    uint32_t i = s->first;
    for (unsigned n = 0; n < s->count; n++) {
        i = block_at(&p->blocks, i)->after;
    }
    while (i != BLOCK_NONE && block_at(&p->blocks, i)->state != BLOCK_LIVE &&
           block_at(&p->blocks, i)->state != BLOCK_SLAB) {
        i = block_at(&p->blocks, i)->after;
    }
    return i;
}

static bool worth(const struct pool *p, const struct stretch *s, unsigned pass,
                  const struct effort *effort)
{
    uint64_t gain = p->source.pages != NULL ? gain_of(p, s, effort) : s->end - s->begin - s->live;
    return s->movable > 0 && gain > 0 && gain >= s->live * 4 >> (2 * pass + 1);
}

static bool done(const struct pool *p, const struct effort *effort)
{
    bool enough = effort->target != 0
                      ? reach(p) >= effort->target
                      : fit_find(&p->ready, &p->blocks, effort->block) != BLOCK_NONE;
    return enough || effort->most == 0 || effort->steps >= LOOK_STEPS;
}

/* A stretch with a free part in front gains more than one without. */
static bool begins(const struct pool *p, const struct block *b)
{
    bool roomy = b->state == BLOCK_SLAB && slab_live_bytes(p, b->owner) < b->size;
    bool alone = b->before == BLOCK_NONE || !joins(p, block_at(&p->blocks, b->before));
    return b->state == BLOCK_READY || ((alone || roomy) && joins(p, b));
}

static void pass(struct pool *p, unsigned number, struct effort *effort)
{
    uint32_t i = 0; /* block 0 is the lowest address and never disappears */
    while (i != BLOCK_NONE && !done(p, effort)) {
        const struct block *b = block_at(&p->blocks, i);
        bool start = p->source.pages != NULL ? begins(p, b) : b->edge && b->state != BLOCK_VOID;
        effort->steps++;
        effort->waits |= number == 0 && b->state == BLOCK_SLAB && slab_busy(p, b->owner);
        struct stretch s = {.count = 0};
        if (start) {
            s = p->source.pages != NULL ? best_from(p, i, effort) : home_from(p, i, effort);
        }
        if (s.count > 0 && worth(p, &s, number, effort)) {
            uint32_t next = beyond(p, &s);
            empty(p, &s, effort);
            i = next;
        } else {
            i = b->after;
        }
    }
}

void compact_anew(struct pool *p)
{
    p->moving.vain[0].known = p->moving.vain[1].known = false;
}

/* An earlier request of the same kind, for no more, moved pieces in vain, and nothing was freed or
 * gained since. A stream or the owner that was in the way then may no longer be: that is tried
 * again, but not while streams still use memory that moved, or the same pieces would move in
 * circles. */
static bool in_vain(const struct pool *p, const struct effort *effort)
{
    const struct vain *v = &p->moving.vain[effort->target != 0];
    bool less = effort->target != 0 ? v->target <= effort->target : v->block <= effort->block;
    bool waits = p->stats.pending > 0 || p->deferred.live > 0;
    return v->known && less && v->most >= effort->most && v->frees == p->stats.frees &&
           v->reach >= reach(p) && (v->sure || waits);
}

/* The gain of a stretch assumes that all its pieces can lie close together elsewhere. Where they
 * cannot, the same pieces would move in circles for as long as requests come; `vain` stops that. */
static uint64_t compact(struct pool *p, uint64_t target, uint64_t block, uint64_t most)
{
    (void)warm_flush(p);
    struct effort effort = {
        .target = target, .block = block, .most = most, .waits = p->stats.pending > 0};
    struct vain vain = {.known = true,
                        .target = target,
                        .block = block,
                        .most = most,
                        .reach = reach(p),
                        .frees = p->stats.frees};
    if (p->mover.move == NULL || in_vain(p, &effort)) {
        return 0;
    }
    p->moving.refused = false;
    for (unsigned n = 0; n < ROUGH && !done(p, &effort); n++) {
        pass(p, n, &effort);
    }
    if (effort.moved > 0 && reach(p) <= vain.reach && !done(p, &effort)) {
        vain.sure = !p->moving.refused && !effort.waits;
        p->moving.vain[target != 0] = vain; /* else an earlier one remains valid */
    }
    return effort.moved;
}

bool compact_for(struct pool *p, uint64_t size)
{
    if (p->mover.move == NULL || unused(p) < size) {
        return false;
    }
    bool pages = p->source.blocks != NULL || size > p->page / 2;
    return compact(p, pages ? sat_add(size, 2 * p->page) : 0, size, p->moving.most) > 0;
}

#define AHEAD_SHARE 128u /* share of the limit that is kept in whole pages */
#define AHEAD_PAGES 8u   /* at least */
#define AHEAD_CALM  65536u

void compact_ahead(struct pool *p)
{
    struct moving *m = &p->moving;
    uint64_t least = p->stats.limit / AHEAD_SHARE;
    least = least > AHEAD_PAGES * p->page ? least : AHEAD_PAGES * p->page;
    if (reach(p) + p->warm_bytes >= least || unused(p) < least + least / 2 ||
        p->stats.frees - m->tried < m->calm) {
        return;
    }
    (void)compact(p, 2 * least, 0, m->most);
    m->tried = p->stats.frees;
    m->calm = reach(p) >= least ? 0 : m->calm < AHEAD_CALM ? 2 * m->calm + 64 : m->calm;
}

uint64_t pool_defragment(struct pool *p, uint64_t most)
{
    uint64_t moved = compact(p, UINT64_MAX, 0, most);
    guard_check(p, BLOCK_NONE);
    return moved;
}
