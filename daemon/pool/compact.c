/*
 * Makes whole pages of free parts by moving live pieces (move.h). A stretch is a row of
 * neighbouring blocks that are free or may move; when its pieces have left, its pages are whole.
 * Stretches that gain most for each byte copied come first. Pieces move to where any request would
 * go, but never into memory that streams may still use. On sources of blocks a stretch is one block
 * of the source, and its pieces move into free parts of others.
 *
 * All of this is a sweep: some passes over all blocks. A call does a slice of it, by a count of
 * work. Blocks change between slices, so nothing is kept but the block to examine next. A stretch
 * that a slice leaves half empty is found again there: its memory that copies still read counts as
 * free.
 */
#include "daemon/pool/pool_int.h"

#define STRETCH_BLOCKS 64u /* most blocks of one stretch */
#define ROUGH          5u  /* passes: the last takes stretches that gain 1/128 of what is copied */
#define AHEAD_SLICES   8u  /* a slice for no request is so much smaller */

struct stretch {
    uint32_t first;   /* block */
    unsigned count;   /* blocks */
    uint64_t begin;   /* bytes: start of the first block */
    uint64_t end;     /* bytes: end of the last block */
    uint64_t live;    /* bytes to be copied */
    uint64_t ready;   /* bytes that are free for every stream */
    uint64_t whole;   /* bytes of whole pages that are free already */
    unsigned movable; /* blocks with something to move */
};

/* What one call wants of its sweep. */
struct effort {
    bool pages;      /* whole pages; else a row of less than a page */
    uint64_t wanted; /* bytes of these */
    uint64_t most;   /* bytes that this call may yet move */
    uint64_t moved;
    uint64_t moves; /* pieces */
    bool limited;   /* `most` is less than a sweep may move */
    bool cut;       /* … and ended the call: the next stretch has more to move */
};

void pool_set_mover(struct pool *p, const struct pool_mover *mover)
{
    p->mover = mover != NULL ? *mover : (struct pool_mover){.move = NULL};
    compact_changed(p);
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

/* Of these, what is sure: a piece that moves leaves memory that streams will give back, but no
 * whole page as long as others remain in it. */
static uint64_t whole(const struct pool *p)
{
    uint64_t bytes = p->whole_bytes + p->leaving_bytes;
    for (unsigned s = 0; s <= joint_line(p); s++) {
        bytes += p->pending_whole[s];
    }
    return sat_add(bytes, pool_room(p));
}

/* ---- finding ----------------------------------------------------------------------------------*/

/* Free, or read only by the copies of pieces that have moved. */
static bool is_gap(const struct pool *p, const struct block *b)
{
    return b->state == BLOCK_READY || (b->state == BLOCK_PENDING && b->stream == p->moving.stream);
}

static bool joins(const struct pool *p, const struct block *b)
{
    switch ((enum block_state)b->state) {
    case BLOCK_READY:
    case BLOCK_PENDING:
        return is_gap(p, b);
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
    if (is_gap(p, b)) {
        s->ready += b->state == BLOCK_READY ? b->size : 0;
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
    if (!effort->pages) {
        return s->end - s->begin >= effort->wanted ? s->end - s->begin - s->live : 0;
    }
    uint64_t at;
    uint64_t pages = page_whole(p, s->begin, s->end, &at);
    return sat_sub(pages, sat_add(s->whole, s->live));
}

/* Is there room outside the stretch for its pieces? Most of a small pool may be one stretch. */
static bool lands(const struct pool *p, const struct stretch *s)
{
    return s->live <= sat_sub(unused(p), sat_add(p->stats.pending, s->ready));
}

/* The stretch from a block on that gains most for each byte moved, of all its lengths. */
static struct stretch best_from(struct pool *p, uint32_t first, struct effort *effort)
{
    struct stretch s = {.first = first, .begin = block_at(&p->blocks, first)->at};
    struct stretch best = {.count = 0};
    uint64_t best_gain = 0;
    for (uint32_t i = first; i != BLOCK_NONE && s.count < STRETCH_BLOCKS;) {
        const struct block *b = block_at(&p->blocks, i);
        bool edge = p->source.blocks != NULL && i != first && b->edge;
        if (edge || !joins(p, b)) {
            break;
        }
        extend(p, &s, b);
        if (s.live > effort->most) {
            effort->cut = effort->limited;
            break;
        }
        uint64_t gain = lands(p, &s) ? gain_of(p, &s, effort) : 0;
        if (gain > 0 &&
            (double)gain * (double)(best.live + 1) > (double)best_gain * (double)(s.live + 1)) {
            best = s;
            best_gain = gain;
        }
        i = b->after;
    }
    moving_spend(p, s.count);
    return best;
}

/* A home is emptied as a whole or not at all: free parts of it serve no larger request. */
static struct stretch home_from(struct pool *p, uint32_t first)
{
    const struct block *b = block_at(&p->blocks, first);
    const struct home *h = records_at(&p->homes, b->home);
    struct stretch s = {.first = first, .begin = b->at};
    bool whole = true;
    for (uint32_t i = first; whole && i != BLOCK_NONE && s.end < h->at + h->bytes; i = b->after) {
        b = block_at(&p->blocks, i);
        whole = joins(p, b) && s.count < STRETCH_BLOCKS;
        if (whole) {
            extend(p, &s, b);
        }
    }
    moving_spend(p, s.count);
    return whole ? s : (struct stretch){.count = 0};
}

#define HOME_LOOKED 256u /* blocks; a home of more counts as full */

/* On sources of blocks a piece moves into a smaller home, or into one with as much in use as its
 * old one; otherwise the pieces of two homes of the same size could swap for ever. A large home may
 * hold more than any small one, and is still emptied. Pieces that went into a smaller home and fill
 * a large one again gained nothing; `spent` ends that. */
bool compact_gains(struct pool *p, uint32_t i)
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
        moving_spend(p, looked);
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
    moving_spend(p, looked);
    return live >= p->moving.least || looked >= HOME_LOOKED;
}

/* ---- moving -----------------------------------------------------------------------------------*/

/* Moves the piece of a LIVE block, which is held then. The caller frees it at *ret_left. */
static int move_block(struct pool *p, uint32_t i, struct point *ret_left)
{
    struct block *b = block_at(&p->blocks, i);
    uint32_t to = BLOCK_NONE;
    const struct pool_ask ask = {.tenant = b->tenant, .align = UINT64_C(1) << b->owner};
    uint64_t calls = p->stats.driver_calls;
    moving_spend(p, MOVE_UNITS);
    if (!space_has_records(p, 12) || pool_take(p, b->size, &ask, TAKE_PAST, &to, NULL) != 0) {
        return ERR_DEVICE_MEMORY;
    }
    struct block *t = block_at(&p->blocks, to);
    struct pool_piece from_piece = pool_piece_of(p, i);
    struct pool_piece to_piece = pool_piece_of(p, to);
    struct pool_move move = {.tag = b->tag, .from = &from_piece, .to = &to_piece};
    int rc = p->mover.move(p->mover.user, &move, NULL);
    if (rc != 0) {
        moving_refused(p, rc);
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
    t->owner = b->owner;
    p->stats.moves++;
    p->stats.moved += b->size;
    event_moved(p, &move, b->at, t->at, calls);
    unsigned stream = move.stream < p->streams ? move.stream : 0;
    p->moving.stream = move.seq > p->done[stream] ? stream : p->moving.stream;
    b->state = BLOCK_HELD;
    *ret_left = (struct point){stream, move.seq};
    return 0;
}

/* The blocks of a stretch while it is emptied. All are held, or the pieces would move into the
 * gaps, or into the places of those before them. */
struct parts {
    uint32_t gap[STRETCH_BLOCKS];
    uint32_t live[STRETCH_BLOCKS];
    struct point left[STRETCH_BLOCKS]; /* where a held block is free; POOL_STREAMS: a slab */
    unsigned gaps, lives;
    unsigned moved; /* of `live` */
};

static void parts_take(struct pool *p, const struct stretch *s, struct parts *parts)
{
    uint32_t i = s->first;
    parts->gaps = parts->lives = parts->moved = 0;
    for (unsigned n = 0; n < s->count; n++, i = block_at(&p->blocks, i)->after) {
        const struct block *b = block_at(&p->blocks, i);
        if (b->state == BLOCK_READY) {
            parts->gap[parts->gaps++] = i;
        } else if (b->state != BLOCK_PENDING) {
            parts->live[parts->lives++] = i;
        }
    }
    for (unsigned n = 0; n < parts->gaps; n++) {
        space_leave(p, parts->gap[n]);
        block_at(&p->blocks, parts->gap[n])->state = BLOCK_HELD;
    }
}

static void parts_give(struct pool *p, const struct parts *parts)
{
    for (unsigned n = 0; n < parts->moved; n++) {
        if (parts->left[n].stream < POOL_STREAMS) {
            (void)space_release(p, parts->live[n], parts->left[n].stream, parts->left[n].seq);
        }
    }
    for (unsigned n = 0; n < parts->gaps; n++) {
        block_at(&p->blocks, parts->gap[n])->state = BLOCK_READY;
        space_enter(p, space_merge(p, parts->gap[n]));
    }
}

/* If this call's part of the work ends before, or the owner takes no more, the sweep goes on at the
 * stretch's beginning. */
static void empty(struct pool *p, const struct stretch *s, struct sweep *sweep,
                  struct effort *effort)
{
    struct parts x;
    uint64_t before = p->stats.moved;
    uint64_t moves = p->stats.moves;
    int rc = 0;
    parts_take(p, s, &x);
    p->moving.least = p->source.blocks != NULL ? s->live : 0;
    p->moving.home = s->end - s->begin;
    while (x.moved < x.lives && rc == 0 && p->moving.units > 0) {
        uint32_t i = x.live[x.moved];
        const struct block *b = block_at(&p->blocks, i);
        struct point *left = &x.left[x.moved];
        left->stream = POOL_STREAMS;
        rc = b->state == BLOCK_LIVE ? move_block(p, i, left) : slab_move(p, b->owner);
        x.moved += rc == 0;
    }
    p->moving.least = 0;
    parts_give(p, &x);
    effort->moved += p->stats.moved - before;
    effort->moves += p->stats.moves - moves;
    effort->most = sat_sub(effort->most, p->stats.moved - before);
    if (x.moved < x.lives && (rc == 0 || p->moving.full)) {
        sweep->at = x.live[x.moved]; /* it did not change */
        while (block_at(&p->blocks, sweep->at)->at > s->begin) {
            sweep->at = block_at(&p->blocks, sweep->at)->before;
        }
    }
}

/* ---- a sweep ----------------------------------------------------------------------------------*/

/* The next block after the stretch that emptying it does not change, if it is near: LIVE or SLAB.
 */
static uint32_t beyond(struct pool *p, const struct stretch *s)
{
    uint32_t i = s->first;
    unsigned n = 0;
    while (i != BLOCK_NONE && n < 2 * STRETCH_BLOCKS &&
           (n < s->count || (block_at(&p->blocks, i)->state != BLOCK_LIVE &&
                             block_at(&p->blocks, i)->state != BLOCK_SLAB))) {
        i = block_at(&p->blocks, i)->after;
        n++;
    }
    moving_spend(p, n);
    return i;
}

static bool worth(const struct pool *p, const struct stretch *s, unsigned pass,
                  const struct effort *effort)
{
    uint64_t gain = p->source.pages != NULL ? gain_of(p, s, effort) : s->end - s->begin - s->live;
    return s->movable > 0 && gain > 0 && gain >= s->live * 4 >> (2 * pass - 1);
}

static bool enough(const struct pool *p, const struct effort *effort)
{
    return effort->pages ? reach(p) >= effort->wanted
                         : fit_find(&p->ready, &p->blocks, effort->wanted) != BLOCK_NONE;
}

/* A stretch with a free part in front gains more than one without. */
static bool begins(const struct pool *p, const struct block *b)
{
    bool roomy = b->state == BLOCK_SLAB && slab_live_bytes(p, b->owner) < b->size;
    bool alone = b->before == BLOCK_NONE || !joins(p, block_at(&p->blocks, b->before));
    return is_gap(p, b) || ((alone || roomy) && joins(p, b));
}

/* Examines a block, and empties the best stretch that begins there. */
static void step(struct pool *p, struct sweep *sweep, struct effort *effort)
{
    uint32_t i = sweep->at;
    const struct block *b = block_at(&p->blocks, i);
    bool start = p->source.pages != NULL ? begins(p, b) : b->edge && b->state != BLOCK_VOID;
    struct stretch s = {.count = 0};
    moving_spend(p, 1);
    sweep->waits |= sweep->pass == sweep->first && b->state == BLOCK_SLAB && slab_busy(p, b->owner);
    if (start) {
        s = p->source.pages != NULL ? best_from(p, i, effort) : home_from(p, i);
    }
    if (s.count > 0 && worth(p, &s, sweep->pass, effort)) {
        sweep->at = beyond(p, &s);
        empty(p, &s, sweep, effort);
        effort->cut = false;
    } else if (!effort->cut || (sweep->ahead && effort->moved == 0)) {
        effort->cut = false; /* no call may move so much */
        sweep->at = b->after;
    }
}

void compact_anew(struct pool *p)
{
    p->moving.vain[0].known = p->moving.vain[1].known = false;
    p->moving.sweep[0].pass = p->moving.sweep[1].pass = 0;
}

void compact_changed(struct pool *p)
{
    p->moving.change++;
    compact_anew(p);
}

void pool_move_anew(struct pool *p)
{
    p->moving.change++;
}

/* What an owner takes and frees in each try counts in all of its requests. */
static uint64_t need_of(const struct pool *p, const struct effort *effort)
{
    return sat_add(p->stats.used, effort->wanted);
}

/* Without a gain each byte and each piece moves so often, on average; in a large pool a sweep's
 * bytes do. */
#define MOVES_MOST 4u

/* The gain of a stretch assumes that all its pieces can lie close together elsewhere. Where they
 * cannot, the same pieces would move in circles for as long as requests come. Whole pages come and
 * go meanwhile, and so do pieces that a job takes and frees in each try. So it is counted what
 * moves while there are never more whole pages than before. A request that needs less is tried all
 * the same. */
static void spend(struct pool *p, const struct effort *effort)
{
    struct spent *s = &p->moving.spent[effort->pages];
    uint64_t all = p->stats.used < p->moving.most ? p->stats.used : p->moving.most;
    uint64_t most = sat_add(p->stats.used, whole(p));
    if (s->change != p->moving.change) {
        *s = (struct spent){.change = p->moving.change, .need = UINT64_MAX};
    }
    if (most > s->most) {
        s->most = most;
        s->moved = s->moves = 0;
        return;
    }
    s->moved += effort->moved;
    s->moves += effort->moves;
    if (s->moved > MOVES_MOST * all || s->moves > MOVES_MOST * p->stats.live) {
        s->moved = s->moves = 0;
        s->need = need_of(p, effort) < s->need ? need_of(p, effort) : s->need;
    }
}

static bool is_spent(const struct pool *p, const struct effort *effort)
{
    const struct spent *s = &p->moving.spent[effort->pages];
    return s->change == p->moving.change && need_of(p, effort) >= s->need;
}

/* An earlier sweep for no more was in vain, and nothing was freed or gained since. A stream or the
 * owner that was in the way then may no longer be: that is tried again, but not while streams still
 * use memory that moved. */
static bool in_vain(const struct pool *p, const struct effort *effort, bool ahead)
{
    const struct vain *v = &p->moving.vain[effort->pages];
    bool waits =
        v->still ? v->advances == p->moving.advances : p->stats.pending > 0 || p->deferred.live > 0;
    bool same = v->change == p->moving.change && v->used <= p->stats.used && v->whole >= whole(p);
    return v->known && same && (v->sure || waits) && (ahead || !v->ahead) &&
           v->wanted <= effort->wanted && v->most >= effort->most;
}

static void sweep_begin(struct pool *p, struct sweep *sweep, bool ahead)
{
    unsigned pass = p->moving.pass[sweep == &p->moving.sweep[1]];
    pass = pass > 1 ? pass - 1 : 1;
    *sweep = (struct sweep){.pass = pass,
                            .first = pass,
                            .at = 0, /* the lowest address, which never disappears */
                            .ahead = ahead,
                            .waits = p->stats.pending > 0,
                            .most = p->moving.most,
                            .limit = p->moving.most,
                            .whole = whole(p),
                            .used = p->stats.used,
                            .change = p->moving.change};
}

/* All passes are over, or the budget is used up. */
static void sweep_end(struct pool *p, struct sweep *sweep, const struct effort *effort)
{
    struct vain *v = &p->moving.vain[effort->pages];
    sweep->pass = 0;
    if (whole(p) > sweep->whole || (sweep->moved == 0 && sweep->refused)) {
        return; /* an earlier one remains valid */
    }
    *v = (struct vain){.known = true,
                       .ahead = sweep->ahead,
                       .sure = !sweep->refused && !sweep->waits,
                       .still = sweep->moved == 0,
                       .wanted = effort->pages ? whole(p) + 1 : effort->wanted,
                       .most = sweep->limit,
                       .whole = sweep->whole,
                       .used = sweep->used > p->stats.used ? sweep->used : p->stats.used,
                       .advances = p->moving.advances,
                       .change = sweep->change};
}

/* Goes on for the present call, until it has enough or has done its part. */
static void sweep_on(struct pool *p, struct sweep *sweep, struct effort *effort)
{
    uint64_t before = reach(p);
    p->moving.refused = false;
    while (sweep->pass <= ROUGH && p->moving.units > 0 && !p->moving.full && !effort->cut &&
           effort->most > 0 && !enough(p, effort)) {
        if (sweep->at == BLOCK_NONE) {
            sweep->at = 0;
            sweep->pass++;
        } else {
            step(p, sweep, effort);
        }
    }
    sweep->refused |= p->moving.refused;
    sweep->gained += sat_sub(reach(p), before);
    sweep->moved += effort->moved;
    sweep->most = sat_sub(sweep->most, effort->moved);
}

static void sweep_join(const struct pool *p, struct sweep *sweep, struct effort *effort)
{
    uint64_t most = effort->most;
    effort->limited = most < p->moving.most;
    effort->most = most < sweep->most ? most : sweep->most;
    sweep->limit = most < sweep->limit ? most : sweep->limit;
    sweep->wanted = effort->wanted > sweep->wanted ? effort->wanted : sweep->wanted;
}

/* Ends the sweep if it is over or no request wants more. Returns whether this call does. */
static bool sweep_rest(struct pool *p, struct sweep *sweep, const struct effort *effort)
{
    bool served = enough(p, effort);
    p->moving.pass[effort->pages] = served ? sweep->pass : p->moving.pass[effort->pages];
    if (sweep->pass > ROUGH || sweep->most == 0) {
        sweep_end(p, sweep, effort);
    } else if (served && effort->wanted >= sweep->wanted) {
        sweep->pass = 0;
    }
    return sweep->pass != 0 && !served;
}

/* A call's slice of its sweep. `most`: bytes; fewer than the sweep's for pool_defragment only.
 * Returns the bytes moved. */
static uint64_t compact(struct pool *p, bool pages, uint64_t wanted, uint64_t most, bool ahead)
{
    struct moving *m = &p->moving;
    struct sweep *sweep = &m->sweep[pages];
    struct effort effort = {.pages = pages, .wanted = wanted, .most = most};
    (void)warm_flush(p);
    m->more = false;
    if (p->mover.move == NULL || enough(p, &effort)) {
        return 0;
    }
    if (sweep->pass == 0 || (sweep->ahead && !ahead)) {
        if (is_spent(p, &effort) || in_vain(p, &effort, ahead)) {
            return 0;
        }
        sweep_begin(p, sweep, ahead);
    }
    sweep_join(p, sweep, &effort);
    sweep_on(p, sweep, &effort);
    spend(p, &effort);
    m->more = sweep_rest(p, sweep, &effort) && !m->full && (!effort.cut || effort.moved > 0);
    return effort.moved;
}

/* Requests of about a page and more need whole pages, or a whole block of the source; smaller ones
 * a row of free bytes. What is kept for other tenants counts in whole pages. */
static bool wants_pages(const struct pool *p, const struct pool_ask *ask)
{
    return p->source.blocks != NULL || ask->size > p->page / 2 || quota_kept(p, ask) > 0;
}

static uint64_t wants(const struct pool *p, const struct pool_ask *ask)
{
    uint64_t bytes = sat_add(ask->size, quota_kept(p, ask));
    return wants_pages(p, ask) ? sat_add(bytes, 2 * p->page) : bytes;
}

bool compact_for(struct pool *p, const struct pool_ask *ask)
{
    struct moving *m = &p->moving;
    if (p->mover.move == NULL || unused(p) < sat_add(ask->size, quota_kept(p, ask))) {
        return false;
    }
    m->units = m->slice;
    return compact(p, wants_pages(p, ask), wants(p, ask), m->most, false) > 0;
}

void compact_served(struct pool *p, const struct pool_ask *ask)
{
    struct sweep *sweep = &p->moving.sweep[wants_pages(p, ask)];
    if (sweep->pass != 0 && !sweep->ahead && wants(p, ask) >= sweep->wanted) {
        sweep->pass = 0;
    }
}

#define AHEAD_SHARE 128u /* share of the limit that is kept in whole pages */
#define AHEAD_PAGES 8u   /* at least */
#define AHEAD_CALM  65536u

void compact_ahead(struct pool *p)
{
    struct moving *m = &p->moving;
    const struct sweep *sweep = &m->sweep[1];
    uint64_t least = p->stats.limit / AHEAD_SHARE;
    least = least > AHEAD_PAGES * p->page ? least : AHEAD_PAGES * p->page;
    bool on = sweep->pass != 0; /* a request's sweep has whole pages as well */
    if (reach(p) + p->warm_bytes >= least || unused(p) < least + least / 2 ||
        (on ? !sweep->ahead : p->stats.frees - m->tried < m->calm)) {
        return;
    }
    m->units = m->slice / AHEAD_SLICES + 1;
    (void)compact(p, true, 2 * least, m->most, true);
    if (!m->more) {
        m->tried = p->stats.frees;
        m->calm = sweep->gained >= least / 2 ? 0
                  : m->calm < AHEAD_CALM     ? 2 * m->calm + 64
                                             : m->calm;
    }
    m->more = false;
}

bool pool_defragment(struct pool *p, uint64_t most, uint64_t *ret_moved)
{
    struct moving *m = &p->moving;
    m->more = m->full = false;
    m->units = m->slice;
    uint64_t moved = compact(p, true, UINT64_MAX, most < m->most ? most : m->most, true);
    if (ret_moved != NULL) {
        *ret_moved = moved;
    }
    guard_check(p, BLOCK_NONE);
    return m->more;
}
