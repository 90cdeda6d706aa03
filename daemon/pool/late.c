/*
 * A view (page_table.h) remembers its ticket, the number of the last call that concerns it. A call
 * that failed concerns the views at its addresses with its number or a later one: views with an
 * earlier ticket were there before. A view that came later may be called failed for that, which
 * costs only calls, because its memory was not used yet.
 *
 * Failed pages are given back as soon as no piece has a part of them. Until then their free parts
 * are FAILED blocks, which nobody gets. Views at kept addresses (VACANT) are only marked: a piece
 * that returns there has a ticket, and is found to have failed.
 */
#include "daemon/pool/late.h"
#include "daemon/pool/pool_int.h"

static struct view *view_at(const struct pool *p, uint64_t view)
{
    return &p->table.view[view];
}

static uint64_t pages_of(const struct pool *p, uint64_t view)
{
    const struct run *r = records_at(&p->table.runs, view_at(p, view)->run);
    return r->count;
}

/* The first view that reaches into the slots from s on; MARKS_NONE: there is no such view. */
static uint64_t first_view(const struct pool *p, uint64_t s)
{
    uint64_t over = page_view(p, s);
    return over != MARKS_NONE ? over : marks_next(&p->table.views, s);
}

static uint64_t slot_after(const struct pool *p, uint64_t end)
{
    return to_pages(p, end + p->page - 1);
}

/* ---- what pieces wait for ---------------------------------------------------------------------*/

void late_issue(struct pool *p, uint64_t at, uint64_t bytes)
{
    uint64_t end = slot_after(p, at + bytes);
    uint64_t ticket = late_issued(p);
    for (uint64_t v = first_view(p, to_pages(p, at)); v < end;
         v = marks_next(&p->table.views, v + 1)) {
        view_at(p, v)->ticket = ticket;
    }
}

uint64_t pool_ticket(const struct pool *p, const struct pool_piece *piece)
{
    uint64_t most = 0;
    if (!late_any(p)) {
        return 0;
    }
    uint64_t end = slot_after(p, piece->offset + piece->size);
    for (uint64_t v = first_view(p, to_pages(p, piece->offset)); v < end;
         v = marks_next(&p->table.views, v + 1)) {
        const struct view *view = view_at(p, v);
        uint64_t ticket =
            view->ticket > p->late.done || view->late >= VIEW_FAILED ? view->ticket : 0;
        most = ticket > most ? ticket : most;
    }
    return most;
}

/* The worst of what became of the views in [at, end). */
static enum view_late worst(const struct pool *p, uint64_t at, uint64_t end)
{
    uint8_t most = VIEW_SOUND;
    uint64_t last = slot_after(p, end);
    for (uint64_t v = first_view(p, to_pages(p, at)); v < last;
         v = marks_next(&p->table.views, v + 1)) {
        most = view_at(p, v)->late > most ? view_at(p, v)->late : most;
    }
    return (enum view_late)most;
}

bool late_failed(const struct pool *p, uint64_t at, uint64_t end)
{
    return p->late.failed > 0 && worst(p, at, end) >= VIEW_FAILED;
}

enum pool_late pool_piece_late(const struct pool *p, struct pool_piece *piece)
{
    if (piece->ticket == 0) {
        return POOL_READY;
    }
    if (piece->ticket > p->late.done) {
        return POOL_WAITS;
    }
    enum view_late late = worst(p, piece->offset, piece->offset + piece->size);
    if (late >= VIEW_FAILED) {
        return POOL_FAILED;
    }
    piece->foreign = piece->foreign || late == VIEW_DIRTY;
    piece->ticket = 0;
    return POOL_READY;
}

bool pool_outstanding(const struct pool *p)
{
    return p->late.done < p->late.issued;
}

void pool_mapped(struct pool *p, uint64_t number)
{
    if (number > p->late.done) {
        p->late.done = number;
        compact_anew(p);
    }
}

/* ---- failed memory ----------------------------------------------------------------------------*/

/* Makes [at, end) of a free block FAILED. Without records for the rest all of it is. */
static void take_out(struct pool *p, uint32_t i, uint64_t at, uint64_t end)
{
    struct block *b = block_at(&p->blocks, i);
    space_leave(p, i);
    if (space_has_records(p, 2)) {
        if (b->at < at) {
            uint32_t rest = space_cut(p, i, at - b->at);
            space_enter(p, i);
            i = rest;
        }
        if (block_at(&p->blocks, i)->at + block_at(&p->blocks, i)->size > end) {
            space_enter(p, space_cut(p, i, end - block_at(&p->blocks, i)->at));
        }
    }
    b = block_at(&p->blocks, i);
    b->state = BLOCK_FAILED;
    b->stream = 0;
    b->seq = 0;
    b->viewed = 0;
    space_enter(p, space_merge(p, i));
}

/* What is free in the pages [at, end), which failed, is FAILED from now on. */
static void strike(struct pool *p, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint32_t i = by_address(p, at);
        const struct block *b = block_at(&p->blocks, i);
        uint64_t stop = b->at + b->size;
        const struct slab *s = b->state == BLOCK_SLAB ? records_at(&p->slabs, b->owner) : NULL;
        if (s != NULL && !s->failed) {
            uint32_t slab = b->owner;
            slab_fail(p, slab); /* if it is empty it is a free block now */
            continue;
        }
        if (b->state == BLOCK_READY || b->state == BLOCK_PENDING) {
            take_out(p, i, at, stop < end ? stop : end);
        }
        at = stop;
    }
}

/* Gives back the pages of a FAILED block of which it has all. */
static void drop(struct pool *p, uint32_t i)
{
    uint64_t at;
    uint64_t bytes = space_whole(p, block_at(&p->blocks, i), &at);
    const struct late before = p->late;
    if (bytes == 0 || !space_has_records(p, 2)) {
        return;
    }
    uint64_t view = page_view(p, to_pages(p, at));
    uint64_t row = (view + pages_of(p, view)) * p->page - at;
    bool lost = view_at(p, view)->late == VIEW_LOST;
    bytes = bytes < row ? bytes : row;
    space_leave(p, i);
    uint64_t gone = page_drop(p, at, bytes, NULL);
    p->late.refuses = before.refuses; /* this gave the source no room */
    p->late.order = before.order;
    if (gone == 0) {
        space_enter(p, i);
        return;
    }
    event_add(p, POOL_EVENT_UNMAP, (struct pool_event){.at = at, .size = gone});
    if (block_at(&p->blocks, i)->at < at) {
        uint32_t rest = space_cut(p, i, at - block_at(&p->blocks, i)->at);
        space_enter(p, i);
        i = rest;
    }
    if (block_at(&p->blocks, i)->size > gone) {
        space_enter(p, space_cut(p, i, gone));
    }
    block_at(&p->blocks, i)->state = lost ? BLOCK_LOST : BLOCK_VOID;
    space_enter(p, lost ? i : space_merge(p, i));
}

/* Drops what it can of the FAILED blocks in [at, end). */
static void drop_all(struct pool *p, uint64_t at, uint64_t end)
{
    while (at < end) {
        uint32_t i = by_address(p, at);
        const struct block *b = block_at(&p->blocks, i);
        uint64_t stop = b->at + b->size;
        uint64_t live = p->stats.size;
        if (b->state == BLOCK_FAILED) {
            drop(p, i);
        }
        at = p->stats.size == live ? stop : at; /* a part may be left */
    }
}

static bool used_at(const struct pool *p, uint64_t slot)
{
    uint32_t frame;
    return page_frame(p, slot * p->page, &frame) > 0;
}

void late_strike(struct pool *p, uint64_t at, uint64_t end)
{
    uint64_t last = slot_after(p, end);
    for (uint64_t v = first_view(p, to_pages(p, at)); v < last;
         v = marks_next(&p->table.views, v + 1)) {
        uint64_t from = v * p->page;
        uint64_t to = from + pages_of(p, v) * p->page;
        if (view_at(p, v)->late >= VIEW_FAILED && used_at(p, v)) {
            strike(p, from, to);
            drop_all(p, from, to);
        }
    }
}

void late_sweep(struct pool *p)
{
    if (p->late.failed == 0) {
        return;
    }
    slab_fail_sweep(p);
    for (uint32_t i = p->late.first; i != BLOCK_NONE;) {
        const struct block *b = block_at(&p->blocks, i);
        uint32_t next = b->next;
        drop_all(p, b->at, b->at + b->size);
        i = next;
    }
}

/* Of the handle mapped at slot s or, if there is none, of the next one: *ret_first and, returned,
 * the slot behind it. All of it becomes one view. MARKS_NONE: there is none before `end`. */
static uint64_t handle_from(struct pool *p, uint64_t s, uint64_t end, uint64_t *ret_first)
{
    uint64_t v = first_view(p, s);
    if (v >= end) {
        return MARKS_NONE;
    }
    s = v > s ? v : s;
    *ret_first = s - to_pages(p, page_inside(p, s * p->page));
    return s + to_pages(p, page_rest(p, s * p->page));
}

/* No request counts on memory that the source refused lately: pages would move for it in vain. */
uint64_t pool_room(const struct pool *p)
{
    return p->late.refuses ? 0 : sat_sub(pool_most(p), p->stats.size);
}

/* After a failure smaller handles are tried, then none. */
static void ask_less(struct pool *p, uint64_t bytes)
{
    unsigned order = 63u - (unsigned)__builtin_clzll(to_pages(p, bytes));
    p->late.refuses = p->late.refuses || order == 0 || p->late.order == 0;
    if (order <= p->late.order) {
        p->late.order = order > 0 ? order - 1 : 0;
    }
}

void pool_failed(struct pool *p, uint64_t number, uint64_t at, uint64_t bytes, bool lost)
{
    uint64_t end = to_pages(p, at + bytes);
    uint64_t first;
    (void)warm_flush(p);
    for (uint64_t s = to_pages(p, at); s < end;) {
        uint64_t next = handle_from(p, s, end, &first);
        if (next == MARKS_NONE) {
            break;
        }
        s = next;
        const struct view *over = view_at(p, page_view(p, first));
        if (over->ticket < number || over->late >= VIEW_FAILED) {
            continue;
        }
        page_view_cut(p, first, next);
        view_at(p, first)->late = lost ? VIEW_LOST : VIEW_FAILED;
        p->late.failed += (next - first) * p->page;
        if (!used_at(p, first)) {
            page_view_clear(p, first); /* its memory is used elsewhere */
        } else {
            late_strike(p, first * p->page, next * p->page);
        }
    }
    ask_less(p, bytes);
    compact_anew(p);
    guard_check(p, BLOCK_NONE);
}

void pool_lost(struct pool *p, uint64_t bytes)
{
    p->late.lost += bytes;
}

/* Objects that are handed out from now on may hold anybody's bytes. */
static void own_nothing(struct pool *p, const struct block *pages)
{
    for (uint64_t at = pages->at; at < pages->at + pages->size;) {
        const struct block *b = block_at(&p->blocks, by_address(p, at));
        if (b->state == BLOCK_SLAB) {
            struct slab *s = records_at(&p->slabs, b->owner);
            s->own &= s->live;
        }
        at = b->at + b->size;
    }
}

void pool_uncleared(struct pool *p, uint64_t number, uint64_t at, uint64_t bytes)
{
    uint64_t end = to_pages(p, at + bytes);
    uint64_t first;
    for (uint64_t s = to_pages(p, at); s < end;) {
        uint64_t next = handle_from(p, s, end, &first);
        if (next == MARKS_NONE) {
            break;
        }
        s = next;
        if (view_at(p, page_view(p, first))->ticket < number || !used_at(p, first)) {
            continue;
        }
        page_view_cut(p, first, next);
        struct view *view = view_at(p, first);
        view->late = view->late == VIEW_SOUND ? VIEW_DIRTY : view->late;
        const struct block dirty = {.at = first * p->page, .size = (next - first) * p->page};
        tenancy_spoil(p, &dirty);
        own_nothing(p, &dirty);
    }
}
