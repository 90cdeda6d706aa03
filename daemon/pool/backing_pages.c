/*
 * Memory from a source of pages. A page is in one of these states, and every failure unwinds to one
 * of them: absent; created (in a run that is not used); mapped (used at an address); accessible (in
 * a block that is not VOID).
 */
#include "daemon/pool/pool_int.h"

#define LOOK_MAX   32u /* free blocks examined in one search */
#define PAGES_GONE UINT64_MAX
/* of so many handles, one would do: they are traded */
#define SMALL_HANDLES 4u

static uint64_t in_pages(const struct pool *p, uint64_t bytes)
{
    return (bytes + p->page - 1) & ~(p->page - 1);
}

static uint64_t room(const struct pool *p)
{
    return pool_room(p) & ~(p->page - 1);
}

static void hold(struct pool *p, uint32_t i)
{
    space_leave(p, i);
    block_at(&p->blocks, i)->state = BLOCK_HELD;
}

static uint32_t make_ready(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    b->state = BLOCK_READY;
    i = space_merge(p, i);
    space_enter(p, i);
    return i;
}

/* ---- pages out of a free block ----------------------------------------------------------------*/

/* Makes [at, at + bytes) of a held block VOID: whole pages that are no longer used there. Indexes
 * the parts before and behind. */
static void make_void(struct pool *p, uint32_t i, uint64_t at, uint64_t bytes, bool viewed)
{
    uint64_t ragged = at - block_at(&p->blocks, i)->at;
    if (ragged > 0) {
        uint32_t rest = space_cut(p, i, ragged);
        space_enter(p, i);
        i = rest;
    }
    if (block_at(&p->blocks, i)->size > bytes) {
        space_enter(p, space_cut(p, i, bytes));
    }
    struct block *b = block_at(&p->blocks, i);
    b->state = BLOCK_VOID;
    b->viewed = viewed;
    b->stream = 0;
    b->seq = 0;
    space_enter(p, space_merge(p, i));
}

uint64_t backing_pages_fit(const struct pool *p, uint64_t at, uint64_t bytes, uint64_t most)
{
    return bytes <= most ? bytes : most - page_inside(p, at + most);
}

uint64_t backing_pages_reach(const struct pool *p, uint64_t at, uint64_t bytes, uint64_t least)
{
    least = in_pages(p, least);
    if (least >= bytes) {
        return bytes;
    }
    return least + (page_inside(p, at + least) != 0 ? page_rest(p, at + least) : 0);
}

/* Whole handles at one end of a block. */
struct end {
    uint64_t at, bytes;
};

/* Moves whole handles of a READY or PENDING block to `to`, or destroys them (PAGES_GONE, READY
 * only). Returns the bytes moved or destroyed. */
static uint64_t pages_take(struct pool *p, uint32_t i, const struct end *from, uint64_t to,
                           struct err *e)
{
    uint64_t gone = 0;
    bool keep = to != PAGES_GONE && recall_keeps(p);
    space_leave(p, i);
    if (to == PAGES_GONE) {
        gone = page_drop(p, from->at, from->bytes, e);
    } else {
        const struct block *b = block_at(&p->blocks, i);
        const struct page_way way = {from->at, to, from->bytes, keep, b->stream, b->seq};
        gone = page_move(p, &way, e);
        keep = keep || b->seq != 0; /* a stream may use this mapping */
    }
    if (gone > 0) {
        make_void(p, i, from->at, gone, keep);
    } else {
        space_enter(p, i);
    }
    return gone;
}

/* Whole handles for `most` bytes at the end of the block whose handle is larger, if it fits; else
 * at the other. bytes 0: neither fits. */
static struct end end_of(const struct pool *p, uint32_t i, uint64_t most)
{
    const struct handles h = space_handles(p, block_at(&p->blocks, i));
    if (h.bytes <= most) {
        return (struct end){h.at, h.bytes};
    }
    if (h.front <= most && (h.front >= h.back || h.back > most)) {
        return (struct end){h.at, backing_pages_fit(p, h.at, h.bytes, most)};
    }
    if (h.back > most) {
        return (struct end){h.at, 0};
    }
    uint64_t begin = h.at + h.bytes - most;
    begin += page_inside(p, begin) != 0 ? page_rest(p, begin) : 0;
    return (struct end){begin, h.at + h.bytes - begin};
}

static uint64_t smaller_end(const struct handles *h)
{
    return h->front < h->back ? h->front : h->back;
}

uint64_t backing_pages_drop(struct pool *p, uint32_t i, uint64_t most)
{
    if (!space_has_records(p, 2)) {
        return 0;
    }
    struct end from;
    from.bytes = space_whole(p, block_at(&p->blocks, i), &from.at);
    from.bytes = backing_pages_reach(p, from.at, from.bytes, most);
    uint64_t gone = pages_take(p, i, &from, PAGES_GONE, NULL);
    event_add(p, POOL_EVENT_UNMAP, (struct pool_event){.at = from.at, .size = gone});
    return gone;
}

/* ---- breaking handles -------------------------------------------------------------------------*/

/* The parts of what remains after a failure need records. */
int backing_pages_break(struct pool *p, uint32_t i, uint64_t at, bool alone, struct err *e)
{
    uint64_t begin = at - page_inside(p, at);
    uint64_t end = at + page_rest(p, at);
    block_at(&p->blocks, i)->state = BLOCK_HELD;
    int rc = page_break(p, at, alone, e);
    if (rc == 0) {
        return 0;
    }
    if (block_at(&p->blocks, i)->at < begin) {
        uint32_t rest = space_cut(p, i, begin - block_at(&p->blocks, i)->at);
        (void)make_ready(p, i);
        i = rest;
    }
    if (block_at(&p->blocks, i)->size > end - begin) {
        (void)make_ready(p, space_cut(p, i, end - begin));
    }
    backing_pages_unwind(p, i);
    return rc;
}

/* Breaks the handle at the front of a READY block, so that `most` bytes of it can go. */
static int break_front(struct pool *p, uint32_t i, uint64_t most, struct err *e)
{
    uint64_t at;
    (void)space_whole(p, block_at(&p->blocks, i), &at);
    if (!space_has_records(p, BREAK_RECORDS)) {
        return err_set(e, ERR_NOMEM, "the pool's records are used up");
    }
    space_leave(p, i);
    int rc = backing_pages_break(p, i, at + most, false, e);
    if (rc == 0) {
        (void)make_ready(p, i);
    }
    return rc;
}

/* ---- pages into a void block ------------------------------------------------------------------*/

/* Of the first few blocks of a list, the one with the largest end handle of at most `most` bytes;
 * of these the one with the fewest bytes outside whole pages. */
static uint32_t best_in(const struct pool *p, unsigned list, uint64_t most)
{
    uint32_t best = BLOCK_NONE;
    uint64_t largest = 0;
    uint64_t least = UINT64_MAX;
    unsigned n = 0;
    for (uint32_t i = p->whole[list]; i != BLOCK_NONE && n < LOOK_MAX; n++) {
        const struct block *b = block_at(&p->blocks, i);
        const struct handles h = space_handles(p, b);
        uint64_t handle = smaller_end(&h);
        bool better = handle > largest || (handle == largest && b->size - h.bytes < least);
        if (handle <= most && better) {
            best = i;
            largest = handle;
            least = b->size - h.bytes;
        }
        i = b->newer;
    }
    return best;
}

/* The block with the largest end handle that fits. */
static uint32_t fitting(const struct pool *p, uint64_t most)
{
    uint32_t best = BLOCK_NONE;
    for (unsigned list = space_whole_list(p, most) + 1; list-- > 0 && best == BLOCK_NONE;) {
        best = best_in(p, list, most);
    }
    return best;
}

/* The block with the smallest handles. */
static uint32_t smallest(const struct pool *p)
{
    unsigned list = 0;
    while (list < WHOLE_LISTS && p->whole[list] == BLOCK_NONE) {
        list++;
    }
    return list < WHOLE_LISTS ? p->whole[list] : BLOCK_NONE;
}

/* Where moved pages do not stay mapped, giving a small handle back costs no more calls than moving
 * it. So a load that does not repeat itself gets large handles for small ones. */
static bool trades(const struct pool *p, uint32_t i, uint64_t need)
{
    if (recall_keeps(p)) {
        return false;
    }
    const struct handles h = space_handles(p, block_at(&p->blocks, i));
    return smaller_end(&h) * SMALL_HANDLES <= frames_largest(p, need);
}

/* Gives small free handles back until the source may give `need` bytes of new memory. */
static void trade(struct pool *p, uint64_t need)
{
    while (room(p) < need && space_has_records(p, 2)) {
        uint32_t i = fitting(p, need - room(p));
        if (i == BLOCK_NONE || !trades(p, i, need)) {
            break;
        }
        const struct end from = end_of(p, i, need - room(p));
        uint64_t gone = pages_take(p, i, &from, PAGES_GONE, NULL);
        event_add(p, POOL_EVENT_UNMAP, (struct pool_event){.at = from.at, .size = gone});
        if (gone == 0) {
            break;
        }
    }
}

/* Moves up to `need` bytes of free pages to `to`. Returns the bytes moved. */
static uint64_t fill_moved(struct pool *p, uint64_t to, uint64_t need, struct err *e)
{
    uint64_t got = 0;
    bool traded = false;
    while (got < need) {
        uint32_t i = fitting(p, need - got);
        if (i == BLOCK_NONE) {
            i = smallest(p);
            if (i == BLOCK_NONE) {
                break;
            }
            if (break_front(p, i, need - got, e) != 0) {
                return got;
            }
            continue;
        }
        if (!traded && trades(p, i, need - got)) {
            trade(p, need - got);
            traded = true;
            if (room(p) >= need - got) {
                return got;
            }
            continue;
        }
        if (!space_has_records(p, 4)) {
            (void)err_set(e, ERR_NOMEM, "the pool's records are used up");
            return got;
        }
        const struct end from = end_of(p, i, need - got);
        uint64_t taken = pages_take(p, i, &from, to + got, e);
        if (taken == 0) {
            return got;
        }
        event_add(p, POOL_EVENT_REMAP, (struct pool_event){.at = to + got, .size = taken});
        got += taken;
    }
    return got + vacant_pages(p, to + got, need - got, e);
}

/* Moves whole handles of a PENDING block. Returns bytes. */
static uint64_t pending_take(struct pool *p, uint32_t i, const struct end *from, struct want *w,
                             uint64_t *seq, struct err *e)
{
    uint64_t its = block_at(&p->blocks, i)->seq;
    uint64_t taken = pages_take(p, i, from, w->to + w->got, e);
    if (taken > 0) {
        event_add(p, POOL_EVENT_REMAP, (struct pool_event){.at = w->to + w->got, .size = taken});
        *seq = its > *seq ? its : *seq;
        w->got += taken;
    }
    return taken;
}

/* The smallest handle at an end of a PENDING block: it may reach beyond the need. */
static uint32_t pending_smallest(const struct pool *p, unsigned stream, struct end *ret_from)
{
    uint32_t best = BLOCK_NONE;
    uint64_t least = UINT64_MAX;
    for (uint32_t i = p->line[stream].oldest; i != BLOCK_NONE; i = block_at(&p->blocks, i)->newer) {
        const struct block *b = block_at(&p->blocks, i);
        struct handles h = {.bytes = 0};
        if (b->state == BLOCK_PENDING) {
            h = space_handles(p, b);
        }
        if (h.bytes > 0 && smaller_end(&h) < least) {
            least = smaller_end(&h);
            best = i;
            *ret_from = (struct end){h.front == least ? h.at : h.at + h.bytes - least, least};
        }
    }
    return best;
}

void backing_pages_pending(struct pool *p, unsigned stream, struct want *w, uint64_t *seq,
                           struct err *e)
{
    uint32_t i = p->pending_whole[stream] > 0 ? p->line[stream].oldest : BLOCK_NONE;
    while (w->got < w->need && i != BLOCK_NONE && space_has_records(p, 4)) {
        const struct block *b = block_at(&p->blocks, i);
        uint32_t next = b->newer;
        const struct end from =
            b->state == BLOCK_PENDING ? end_of(p, i, w->need - w->got) : (struct end){0, 0};
        if (from.bytes > 0 && pending_take(p, i, &from, w, seq, e) == 0) {
            return;
        }
        i = next;
    }
    while (w->got < w->need && space_has_records(p, 4)) {
        struct end from;
        i = pending_smallest(p, stream, &from);
        if (i == BLOCK_NONE || from.bytes > w->room - w->got ||
            pending_take(p, i, &from, w, seq, e) == 0) {
            return;
        }
    }
}

/* Maps new pages at [to + got, to + need). Returns `got` plus the bytes mapped. */
static uint64_t fill_new(struct pool *p, uint64_t to, uint64_t got, uint64_t need, struct err *e)
{
    while (got < need) {
        uint32_t run;
        uint64_t made = page_create(p, need - got, &run, e);
        uint64_t there = made > 0 ? page_put(p, to + got, run, e) : 0;
        got += there;
        if (made == 0 || there < made) {
            return got;
        }
    }
    return got;
}

int backing_pages_fill(struct pool *p, uint64_t to, uint64_t need, struct err *e)
{
    uint64_t moved = fill_moved(p, to, need, e);
    if (moved < need && p->whole_bytes > 0 && room(p) < need - moved) {
        return e->code != 0 ? e->code : err_set(e, ERR_DEVICE_MEMORY, "a free page is in use");
    }
    uint64_t got = fill_new(p, to, moved, need, e);
    if (got > moved) {
        event_add(p, POOL_EVENT_MAP, (struct pool_event){.at = to + moved, .size = got - moved});
    }
    return got == need ? 0 : e->code;
}

/* Zeros new pages and pages of several tenants now; otherwise each piece in them would be cleared
 * on its own. */
static void clear_unknown(struct pool *p, const struct block *b)
{
    uint64_t end = b->at + b->size;
    struct block dirty = {.at = b->at};
    while (p->source.clear != NULL && dirty.at < end) {
        uint16_t holder = TENANCY_MIXED;
        uint64_t bytes = 0;
        for (dirty.size = 0; dirty.at + dirty.size < end; dirty.size += bytes) {
            bytes = tenancy_row(p, dirty.at + dirty.size, end, &holder);
            if (holder != TENANCY_MIXED) {
                break;
            }
        }
        if (dirty.size > 0) {
            p->stats.driver_calls++;
            if (p->source.clear(p->source.user, p->range, dirty.at, dirty.size, NULL) == 0) {
                tenancy_clean(p, &dirty);
                late_issue(p, dirty.at, dirty.size);
            }
        }
        dirty.at += dirty.size + (holder != TENANCY_MIXED ? bytes : 0);
    }
}

/* Drops pages that were mapped and did not become accessible. Pages that cannot be unmapped are
 * LOST. */
static void unfill(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    uint64_t gone = page_drop(p, b->at, b->size, NULL);
    event_add(p, POOL_EVENT_UNMAP, (struct pool_event){.at = b->at, .size = gone});
    if (gone < b->size) {
        uint32_t rest = gone > 0 ? space_cut(p, i, gone) : i;
        block_at(&p->blocks, rest)->state = BLOCK_LOST;
    }
    if (gone > 0) {
        b->state = BLOCK_VOID;
        space_enter(p, space_merge(p, i));
    }
}

void backing_pages_unwind(struct pool *p, uint32_t i)
{
    while (i != BLOCK_NONE) {
        struct block *b = block_at(&p->blocks, i);
        uint64_t run = page_used(p, b->at, b->at + b->size);
        bool there = run > 0;
        run = there ? run : page_unused(p, b->at, b->at + b->size);
        uint32_t rest = run < b->size ? space_cut(p, i, run) : BLOCK_NONE;
        if (there && page_access(p, b->at, b->size, NULL) != 0) {
            unfill(p, i);
        } else {
            b->state = there ? BLOCK_READY : BLOCK_VOID;
            space_enter(p, space_merge(p, i));
        }
        i = rest;
    }
}

/* `shared`: other pieces may get parts of the last page, so it is a handle of its own. */
static int fill_block(struct pool *p, uint32_t i, bool shared, struct err *e)
{
    const struct block *b = block_at(&p->blocks, i);
    struct err why = ERR_INIT;
    uint64_t last = shared && b->size > p->page ? p->page : 0;
    int rc = backing_pages_fill(p, b->at, b->size - last, &why);
    rc = rc == 0 && last > 0 ? backing_pages_fill(p, b->at + b->size - last, last, &why) : rc;
    rc = rc != 0 ? rc : page_access(p, b->at, b->size, &why);
    if (rc == 0) {
        clear_unknown(p, b);
    } else if (e != NULL) {
        *e = why;
    }
    return rc;
}

/* Gives the held block u `need` bytes of pages from its start on, and makes the rest VOID. On
 * success u is held; on failure its parts are READY and VOID blocks. */
static int populate(struct pool *p, uint32_t u, uint64_t need, bool shared, struct err *e)
{
    if (block_at(&p->blocks, u)->size > need) {
        uint32_t rest = space_cut(p, u, need);
        block_at(&p->blocks, rest)->state = BLOCK_VOID;
        space_enter(p, space_merge(p, rest));
    }
    int rc = fill_block(p, u, shared, e);
    if (rc != 0) {
        backing_pages_unwind(p, u);
    }
    return rc;
}

/* ---- pages that return ------------------------------------------------------------------------*/

uint64_t backing_pages_free(const struct pool *p, uint64_t at, unsigned stream, uint64_t *ret_from,
                            uint32_t *ret_block)
{
    uint64_t from;
    uint64_t bytes = page_where(p, at, &from);
    if (bytes == 0) {
        return 0;
    }
    uint32_t i = by_address(p, from);
    const struct block *b = block_at(&p->blocks, i);
    bool free = b->state == BLOCK_VACANT || b->state == BLOCK_READY ||
                (b->state == BLOCK_PENDING && b->stream == stream);
    if (!free || b->at > from) {
        return 0;
    }
    uint64_t first;
    uint64_t end = b->at + b->size < from + bytes ? b->at + b->size : from + bytes;
    uint64_t whole = page_whole(p, from, end, &first);
    *ret_from = from;
    *ret_block = i;
    return first == from ? whole : 0;
}

/* Pages are used in [at, at + bytes) of a VOID block now: makes that part READY or PENDING, and the
 * rest VOID. */
static void make_used(struct pool *p, uint32_t i, uint64_t at, uint64_t bytes,
                      const struct point *point)
{
    space_leave(p, i);
    if (block_at(&p->blocks, i)->at < at) {
        uint32_t rest = space_cut(p, i, at - block_at(&p->blocks, i)->at);
        space_enter(p, i);
        i = rest;
    }
    if (block_at(&p->blocks, i)->size > bytes) {
        space_enter(p, space_cut(p, i, bytes));
    }
    struct block *b = block_at(&p->blocks, i);
    b->viewed = 0;
    b->state = point->seq != 0 ? BLOCK_PENDING : BLOCK_READY;
    b->stream = (uint8_t)point->stream;
    b->seq = point->seq;
    space_enter(p, space_merge(p, i));
}

/* Uses pages of a READY or PENDING block from `from` on at `at`, as far as they are mapped there
 * and, with `ready`, accessible. Access may have failed before. Returns bytes. */
static uint64_t pages_back(struct pool *p, uint32_t source, uint64_t from, uint64_t at,
                           uint64_t bytes, bool ready)
{
    const struct block *b = block_at(&p->blocks, source);
    uint64_t first;
    uint64_t whole = page_whole(p, from, b->at + b->size, &first);
    uint64_t most = backing_pages_fit(p, from, whole, bytes);
    const unsigned stream = b->stream;
    const uint64_t seq = b->seq;
    uint64_t got = 0;
    uint64_t moved = 1;
    space_leave(p, source);
    while (got < most && moved > 0) {
        uint64_t where = 0;
        uint64_t row = page_where(p, at + got, &where);
        row = row > 0 && where == from + got ? backing_pages_fit(p, where, row, most - got) : 0;
        const struct page_way way = {where, at + got, row, true, stream, seq};
        bool fits = row > 0 && (!ready || page_wake(p, at + got, row));
        moved = fits ? page_move(p, &way, NULL) : 0;
        got += moved;
    }
    if (got == 0) {
        space_enter(p, source);
        return 0;
    }
    event_add(p, POOL_EVENT_REMAP, (struct pool_event){.at = at, .size = got});
    make_void(p, source, from, got, true);
    return got;
}

static uint64_t back(struct pool *p, uint64_t at, uint64_t bytes, unsigned stream, bool ready,
                     struct point *ret_point)
{
    uint64_t from;
    uint32_t source;
    if (!space_has_records(p, 4) || backing_pages_free(p, at, stream, &from, &source) == 0 ||
        block_at(&p->blocks, source)->state == BLOCK_VACANT) {
        return 0;
    }
    const struct block *b = block_at(&p->blocks, source);
    *ret_point = (struct point){b->stream, b->seq};
    return pages_back(p, source, from, at, bytes, ready);
}

uint64_t backing_pages_back(struct pool *p, uint64_t at, uint64_t bytes)
{
    struct point point;
    return back(p, at, bytes, LINE_NONE, false, &point);
}

uint64_t backing_pages_return(struct pool *p, uint64_t at, uint64_t bytes, unsigned stream)
{
    struct point point = {0, 0};
    uint64_t got = back(p, at, bytes, stream, true, &point);
    if (got > 0) { /* the VOID may have merged with the block the pages came from */
        make_used(p, by_address(p, at), at, got, &point);
    }
    return got;
}

/* ---- where to grow ----------------------------------------------------------------------------*/

/* A VOID to fill: at its start, or at its end if the free block that saves pages lies behind it. */
struct spot {
    uint32_t u;
    uint32_t free;  /* a READY neighbour, or BLOCK_NONE */
    uint64_t gap;   /* bytes of the VOID left in front */
    bool behind;    /* `free` lies behind the VOID */
    bool shared;    /* the request ends within the last page that is mapped */
    uint64_t need;  /* bytes of pages to map */
    uint64_t cost;  /* bytes of whole pages that this uses up, those in `free` included */
    uint64_t there; /* bytes of pages available for it */
};

static bool is(const struct pool *p, uint32_t i, enum block_state state)
{
    return i != BLOCK_NONE && block_at(&p->blocks, i)->state == state;
}

static void consider(const struct pool *p, uint64_t size, uint32_t free, uint32_t u, bool behind,
                     struct spot *best)
{
    uint64_t at;
    const struct block *b = block_at(&p->blocks, free);
    uint64_t need = b->size < size ? in_pages(p, size - b->size) : 0;
    uint64_t whole = space_whole(p, b, &at);
    bool usable = is(p, u, BLOCK_VOID) && !block_at(&p->blocks, u)->viewed;
    if (usable && block_at(&p->blocks, u)->size >= need &&
        (need + whole < best->cost || (need + whole == best->cost && need < best->need))) {
        *best = (struct spot){.u = u,
                              .free = free,
                              .behind = behind,
                              .shared = !behind && (b->at + size) % p->page != 0,
                              .need = need,
                              .cost = need + whole,
                              .there = p->whole_bytes - whole + room(p)};
    }
}

static void consider_both(const struct pool *p, uint64_t size, uint32_t free, struct spot *best)
{
    consider(p, size, free, block_at(&p->blocks, free)->after, false, best);
    consider(p, size, free, block_at(&p->blocks, free)->before, true, best);
}

/* While addresses are plentiful, a piece of more than a page leaves as many free in front of it as
 * it has. It shares the pages at its ends with others; when the piece is freed, others fit there
 * only if there is room. */
static uint64_t gap_for(const struct pool *p, uint64_t size, uint32_t *ret_void)
{
    uint32_t u;
    uint64_t gap = in_pages(p, size);
    if (size <= p->page || fit_top(&p->void_fit, &p->blocks, &u, 1) == 0 ||
        block_at(&p->blocks, u)->size < 2 * gap + p->stats.limit) {
        return 0;
    }
    *ret_void = u;
    return gap;
}

static void consider_void(const struct pool *p, uint64_t size, struct spot *best)
{
    uint32_t u = fit_find(&p->void_fit, &p->blocks, in_pages(p, size));
    if (u == BLOCK_NONE) {
        return;
    }
    *best = (struct spot){.free = BLOCK_NONE,
                          .gap = gap_for(p, size, &u),
                          .shared = size % p->page != 0,
                          .need = in_pages(p, size),
                          .cost = in_pages(p, size),
                          .there = p->whole_bytes + room(p)};
    best->u = u;
    uint32_t before = block_at(&p->blocks, u)->before;
    if (is(p, before, BLOCK_READY)) {
        consider(p, size, before, u, false, best);
    }
}

/* Next to a free block only the missing bytes are mapped. A large free block saves calls of the
 * driver. A small one that just fits the request's odd tail saves a page that only small requests
 * could use. */
static int choose(const struct pool *p, uint64_t size, struct spot *ret_spot, struct err *e)
{
    uint32_t top[LOOK_MAX];
    struct spot best = {.need = UINT64_MAX, .cost = UINT64_MAX};
    consider_void(p, size, &best);
    unsigned n = fit_top(&p->ready, &p->blocks, top, LOOK_MAX);
    for (unsigned i = 0; i < n && block_at(&p->blocks, top[i])->size >= p->page; i++) {
        consider_both(p, size, top[i], &best);
    }
    uint64_t odd = size & (p->page - 1);
    n = odd == 0 ? 0 : fit_least(&p->ready, &p->blocks, odd, top, LOOK_MAX);
    for (unsigned i = 0; i < n; i++) {
        consider_both(p, size, top[i], &best);
    }
    if (best.need == UINT64_MAX) {
        return err_set(e, ERR_DEVICE_MEMORY, "no %llu bytes of addresses in a row", LL(size));
    }
    *ret_spot = best;
    return 0;
}

static int grow_at(struct pool *p, const struct spot *at, uint32_t *ret_block, struct err *e)
{
    uint32_t u = at->u;
    hold(p, u);
    if (at->free != BLOCK_NONE) { /* or its own pages would fill u */
        hold(p, at->free);
    }
    uint64_t front = at->behind ? block_at(&p->blocks, u)->size - at->need : at->gap;
    if (front > 0) {
        uint32_t rest = space_cut(p, u, front);
        block_at(&p->blocks, u)->state = BLOCK_VOID;
        space_enter(p, space_merge(p, u));
        u = rest;
    }
    int rc = populate(p, u, at->need, at->shared, e);
    uint32_t made = at->free != BLOCK_NONE ? make_ready(p, at->free) : BLOCK_NONE;
    if (rc == 0) {
        made = make_ready(p, u);
    }
    if (rc == 0) {
        *ret_block = made;
    }
    return rc;
}

int backing_pages_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e)
{
    struct spot at = {.u = BLOCK_NONE};
    int rc = choose(p, size, &at, e);
    while (rc != 0 && (recall_forget(p) || vacant_give_up_oldest(p))) {
        rc = choose(p, size, &at, e);
    }
    if (rc != 0 && backing_trim(p, 0) > 0) { /* all VOIDs are one then */
        (void)recall_forget(p);
        rc = choose(p, size, &at, e);
    }
    if (rc != 0) {
        return rc;
    }
    if (at.need == 0) {
        *ret_block = at.free;
        return 0;
    }
    if (at.need > at.there) {
        return err_set(e, ERR_DEVICE_MEMORY, "%llu bytes of pages are missing, %llu are free",
                       LL(at.need), LL(at.there));
    }
    if (!space_has_records(p, 8)) {
        return err_set(e, ERR_NOMEM, "the pool's records are used up");
    }
    return grow_at(p, &at, ret_block, e);
}
