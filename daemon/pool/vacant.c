/*
 * VACANT blocks keep addresses of whole pages for a piece whose bytes are elsewhere (place.h).
 * Memory in such a block is free and may be used elsewhere; the page remains mapped here, so that
 * it returns without a call. A VACANT block is never cut or merged.
 *
 * Pages that a stream may still use can go, too: their new user comes after that stream's use, as
 * with any PENDING block. Until then the mapping here must remain, so no other page can be mapped
 * in its place, and the addresses cannot be given up.
 *
 * Any failure leaves a VACANT block with some pages in it.
 */
#include "daemon/pool/pool_int.h"

#define SHARE 4u /* share of the address space that is kept at most */

static bool settled(const struct pool *p, const struct block *b)
{
    return b->seq <= p->done[b->stream];
}

static uint64_t memory_of(const struct pool *p, const struct block *b)
{
    return b->owner * p->page;
}

/* ---- the list of places -----------------------------------------------------------------------*/

static uint32_t pages_in(const struct pool *p, const struct block *b)
{
    uint64_t end = b->at + b->size;
    uint64_t bytes = 0;
    for (uint64_t at = b->at; at < end;) {
        uint64_t there = page_used(p, at, end);
        bytes += there;
        at += there + page_unused(p, at + there, end);
    }
    return (uint32_t)to_pages(p, bytes);
}

/* A held block becomes VACANT with the pages that are in it. */
static void park(struct pool *p, uint32_t i, const struct point *point)
{
    struct block *b = block_at(&p->blocks, i);
    struct vacant *v = &p->vacant;
    b->state = BLOCK_VACANT;
    b->owner = pages_in(p, b);
    b->stream = (uint8_t)point->stream;
    b->seq = point->seq > p->done[point->stream] ? point->seq : 0;
    b->prev = v->newest;
    b->next = BLOCK_NONE;
    *(v->newest != BLOCK_NONE ? &block_at(&p->blocks, v->newest)->next : &v->oldest) = i;
    v->newest = i;
    v->bytes += b->size;
    space_enter(p, i);
}

static struct point unpark(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    struct vacant *v = &p->vacant;
    space_leave(p, i);
    v->stuck = v->stuck == i ? b->prev : v->stuck;
    *(b->next != BLOCK_NONE ? &block_at(&p->blocks, b->next)->prev : &v->newest) = b->prev;
    *(b->prev != BLOCK_NONE ? &block_at(&p->blocks, b->prev)->next : &v->oldest) = b->next;
    v->bytes -= b->size;
    b->state = BLOCK_HELD;
    return (struct point){b->stream, settled(p, b) ? 0 : b->seq};
}

bool vacant_give_up(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    bool all = memory_of(p, b) == b->size;
    if (!space_has_records(p, (uint32_t)to_pages(p, b->size) + 4) ||
        (!settled(p, b) && (!all || page_access(p, b->at, b->size, NULL) != 0))) {
        return false;
    }
    const struct point point = unpark(p, i);
    p->stats.given_up++;
    b->generation++;
    if (point.seq != 0) {
        b->state = BLOCK_PENDING;
        space_enter(p, space_merge(p, i));
        return true;
    }
    b->seq = 0;
    b->stream = 0;
    backing_pages_unwind(p, i);
    return true;
}

bool vacant_give_up_oldest(struct pool *p)
{
    struct vacant *v = &p->vacant;
    bool stuck = true;
    uint32_t i = v->stuck != BLOCK_NONE ? block_at(&p->blocks, v->stuck)->next : v->oldest;
    while (i != BLOCK_NONE && !vacant_give_up(p, i)) {
        const struct block *b = block_at(&p->blocks, i);
        stuck = stuck && !settled(p, b);
        v->stuck = stuck ? i : v->stuck;
        i = b->next;
    }
    return i != BLOCK_NONE;
}

bool vacant_keep(struct pool *p, uint32_t i, unsigned stream, uint64_t seq,
                 struct pool_place *ret_place)
{
    struct block *b = block_at(&p->blocks, i);
    uint64_t most = p->space / SHARE;
    uint64_t at;
    if (p->source.pages == NULL || space_whole(p, b, &at) != b->size || b->size > most ||
        pool_over(p) > 0 || late_failed(p, b->at, b->at + b->size)) {
        return false;
    }
    while (p->vacant.bytes > most - b->size) {
        if (!vacant_give_up_oldest(p)) {
            return false;
        }
    }
    struct point point = {stream, seq};
    space_point(p, b, &point.stream, &point.seq);
    b->generation++;
    park(p, i, &point);
    *ret_place = (struct pool_place){
        .offset = b->at, .size = b->size, .block = i, .generation = b->generation};
    return true;
}

/* ---- pages for others -------------------------------------------------------------------------*/

/* Breaks the handle used at `at` in a block whose pages no stream uses. */
static bool break_at(struct pool *p, uint32_t i, uint64_t at)
{
    struct err why = ERR_INIT;
    const struct block *b = block_at(&p->blocks, i);
    uint64_t size = p->stats.size;
    if (b->seq != 0) {
        return false;
    }
    int rc = page_break(p, at, false, &why);
    space_lose_pages(p, i, size - p->stats.size);
    return rc == 0;
}

/* Moves whole handles of one block to `to`, at most `most` bytes. */
static uint64_t pages_from(struct pool *p, uint32_t i, uint64_t to, uint64_t most, struct err *e)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t end = b->at + b->size;
    uint64_t used = 0;
    uint64_t at = b->at + page_unused(p, b->at, end);
    while (at < end && used < most) {
        uint64_t there = page_used(p, at, end);
        there = backing_pages_fit(p, at, there, most - used);
        if (there == 0 && break_at(p, i, at + most - used)) {
            there = most - used;
        }
        if (there == 0) {
            break;
        }
        const struct page_way way = {at, to + used, there, true, b->stream, b->seq};
        uint64_t moved = page_move(p, &way, e);
        space_lose_pages(p, i, moved);
        used += moved;
        if (moved < there) {
            break;
        }
        at += moved;
        at += page_unused(p, at, end);
    }
    if (used > 0) {
        event_add(p, POOL_EVENT_REMAP, (struct pool_event){.at = to, .size = used});
    }
    return used;
}

uint64_t vacant_pages(struct pool *p, uint64_t to, uint64_t most, struct err *e)
{
    uint64_t used = 0;
    uint64_t got = 1;
    while (used < most && p->idle.oldest != BLOCK_NONE && got > 0) {
        got = pages_from(p, p->idle.oldest, to + used, most - used, e);
        used += got;
    }
    return used;
}

uint64_t vacant_drop(struct pool *p, uint64_t most)
{
    uint64_t gone = 0;
    while (gone < most && p->idle.oldest != BLOCK_NONE) {
        uint32_t i = p->idle.oldest;
        const struct block *b = block_at(&p->blocks, i);
        uint64_t end = b->at + b->size;
        uint64_t at = b->at + page_unused(p, b->at, end);
        uint64_t there = page_used(p, at, end);
        uint64_t dropped = page_drop(p, at, backing_pages_reach(p, at, there, most - gone), NULL);
        if (dropped == 0) {
            break;
        }
        space_lose_pages(p, i, dropped);
        event_add(p, POOL_EVENT_UNMAP, (struct pool_event){.at = at, .size = dropped});
        gone += dropped;
    }
    return gone;
}

/* Moves one handle that reaches beyond the need. Returns bytes. */
static uint64_t handle_from(struct pool *p, uint32_t i, const struct want *w, struct err *e)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t at = b->at + page_unused(p, b->at, b->at + b->size);
    uint64_t bytes = page_rest(p, at);
    return bytes <= w->room - w->got ? pages_from(p, i, w->to + w->got, bytes, e) : 0;
}

/* The oldest vacated block with pages that streams may still use. */
static uint32_t first_leaving(const struct pool *p)
{
    uint32_t i = p->vacant.newest;
    for (uint32_t n = p->leaving; n > 0 && i != BLOCK_NONE;) { /* they are the end of the list */
        const struct block *b = block_at(&p->blocks, i);
        n -= b->owner > 0 && b->seq != 0;
        i = n > 0 ? b->prev : i;
    }
    return i;
}

/* Moves vacated pages that streams may still use, oldest first, all of one stream (LINE_NONE: of
 * any one). `over`: only handles that reach beyond the need. */
static void pages_leaving(struct pool *p, unsigned stream, struct point *point, struct want *w,
                          bool over, struct err *e)
{
    for (uint32_t i = first_leaving(p); i != BLOCK_NONE && w->got < w->need;) {
        const struct block *b = block_at(&p->blocks, i);
        bool fits = b->owner > 0 && b->seq != 0 &&
                    (point->seq == 0 || point->stream == b->stream) &&
                    (stream == LINE_NONE || stream == b->stream);
        const struct point its = {b->stream, b->seq};
        uint32_t next = b->next;
        uint64_t got = 0;
        if (fits) {
            got = over ? handle_from(p, i, w, e)
                       : pages_from(p, i, w->to + w->got, w->need - w->got, e);
        }
        if (got > 0) {
            *point = (struct point){its.stream, its.seq > point->seq ? its.seq : point->seq};
        }
        w->got += got;
        i = next;
    }
}

/* Fills a range: with free pages, new ones, pages that `stream` freed and may still use
 * (LINE_NONE: none), then vacated pages that streams may still use. ERR_STATE: too few. */
static int fill(struct pool *p, struct want *w, unsigned stream, struct point *point, struct err *e)
{
    uint64_t past = sat_add(p->whole_bytes, pool_room(p) & ~(p->page - 1));
    past = past < w->need ? past : w->need;
    int rc = past > 0 ? backing_pages_fill(p, w->to, past, e) : 0;
    if (rc != 0) {
        return rc;
    }
    struct err why = ERR_INIT;
    w->got = past;
    if (stream != LINE_NONE && (point->seq == 0 || point->stream == stream)) {
        uint64_t before = w->got;
        backing_pages_pending(p, stream, w, &point->seq, &why);
        point->stream = w->got > before ? stream : point->stream;
    }
    pages_leaving(p, stream, point, w, false, &why);
    pages_leaving(p, stream, point, w, true, &why);
    if (w->got >= w->need) {
        return 0;
    }
    return why.code != 0
               ? err_set(e, why.code, "%s", why.text)
               : err_set(e, ERR_STATE, "%llu bytes of pages are missing", LL(w->need - w->got));
}

/* The same for a piece: other pieces may get parts of its last page, which is a handle of its own
 * if possible. */
static int fill_shared(struct pool *p, struct want *w, uint64_t size, unsigned stream,
                       struct point *point, struct err *e)
{
    uint64_t need = w->need;
    bool shared = size % p->page != 0 && need > p->page;
    w->need -= shared ? p->page : 0;
    int rc = fill(p, w, stream, point, e);
    w->need = need;
    if (rc != 0 || w->got >= need) {
        return rc;
    }
    struct want last = {.to = w->to + w->got, .need = need - w->got, .room = w->room - w->got};
    rc = fill(p, &last, stream, point, e);
    w->got += last.got;
    return rc;
}

/* Orders later commands of the stream after `point`. */
static int ordered(struct pool *p, unsigned stream, const struct point *point, struct err *e)
{
    return point->seq == 0 || point->stream == stream
               ? 0
               : pool_wait(p, stream, point->stream, point->seq, e);
}

/* The stream whose pages suffice together with those that are past: this one, or another for a
 * wait; LINE_NONE: none. */
static unsigned whose(const struct pool *p, unsigned stream, uint64_t need)
{
    uint64_t past = sat_add(p->whole_bytes, pool_room(p) & ~(p->page - 1));
    unsigned last = p->source.wait != NULL ? joint_line(p) : 0; /* the first is its own */
    if (p->source.pages == NULL) {
        return LINE_NONE;
    }
    for (unsigned n = 0; n <= last; n++) {
        unsigned of = n == 0 ? stream : n <= stream ? n - 1 : n;
        if (sat_add(past, p->pending_whole[of] + p->leaving_of[of]) >= need) {
            return of;
        }
    }
    return LINE_NONE;
}

/* Cuts a held block after `bytes`; the rest is VOID. */
static void void_rest(struct pool *p, uint32_t i, uint64_t bytes)
{
    if (block_at(&p->blocks, i)->size > bytes) {
        uint32_t rest = space_cut(p, i, bytes);
        block_at(&p->blocks, rest)->state = BLOCK_VOID;
        space_enter(p, space_merge(p, rest));
    }
}

/* Takes a VOID block to fill: held, with room for a handle that reaches beyond the need if there
 * are addresses for that. */
static uint32_t void_for(struct pool *p, struct want *w)
{
    uint64_t most = p->handle_max;
    uint32_t i = fit_find(&p->void_fit, &p->blocks, w->need + most);
    w->room = i != BLOCK_NONE ? w->need + most : w->need;
    i = i != BLOCK_NONE ? i : fit_find(&p->void_fit, &p->blocks, w->need);
    if (i != BLOCK_NONE) {
        space_leave(p, i);
        block_at(&p->blocks, i)->state = BLOCK_HELD;
        void_rest(p, i, w->room);
        w->to = block_at(&p->blocks, i)->at;
    }
    return i;
}

int vacant_grow(struct pool *p, uint64_t size, unsigned stream, uint32_t *ret_block, struct err *e)
{
    struct want w = {.need = (size + p->page - 1) & ~(p->page - 1)};
    unsigned from = whose(p, stream, w.need);
    uint32_t i = BLOCK_NONE;
    if (from != LINE_NONE && space_has_records(p, 8)) {
        do {
            i = void_for(p, &w);
        } while (i == BLOCK_NONE && (recall_forget(p) || vacant_give_up_oldest(p)));
    }
    if (i == BLOCK_NONE) {
        return ERR_DEVICE_MEMORY;
    }
    struct point point = {0, 0};
    struct err why = ERR_INIT;
    int rc = fill_shared(p, &w, size, from, &point, &why);
    void_rest(p, i, w.got > w.need ? w.got : w.need);
    struct block *b = block_at(&p->blocks, i);
    rc = rc == 0 ? page_access(p, b->at, b->size, &why) : rc;
    if (rc != 0) {
        rc = rc == ERR_STATE ? ERR_DEVICE_MEMORY : rc;
        b->generation++;
        park(p, i, &point);
        (void)vacant_give_up(p, i); /* or later: no piece has this place */
        return e != NULL ? err_set(e, rc, "%s", why.text) : rc;
    }
    b->stream = (uint8_t)point.stream;
    b->seq = point.seq;
    b->state = point.seq != 0 ? BLOCK_PENDING : BLOCK_READY;
    i = space_merge(p, i);
    space_enter(p, i);
    b = block_at(&p->blocks, i);
    const struct point joined = {b->stream, b->seq};
    rc = ordered(p, stream, &joined, e);
    if (rc == 0) {
        *ret_block = i;
    }
    return rc;
}

/* ---- returning --------------------------------------------------------------------------------*/

static bool is_of(const struct pool *p, const struct pool_place *place)
{
    const struct block *b = place->size != 0 && place->block < p->blocks.made
                                ? block_at(&p->blocks, place->block)
                                : NULL;
    return b != NULL && b->state == BLOCK_VACANT && b->generation == place->generation;
}

uint32_t vacant_find(const struct pool *p, const struct pool_ask *ask)
{
    bool kept = ask->place != NULL && is_of(p, ask->place) && ask->place->size >= ask->size &&
                ask->place->size - ask->size < POOL_ALIGN;
    return kept ? ask->place->block : BLOCK_NONE;
}

/* Uses pages that are mapped here and free elsewhere at this place again. Returns bytes. */
static uint64_t bring(struct pool *p, uint64_t at, uint64_t most, struct point *point)
{
    uint64_t from;
    uint32_t source;
    uint64_t got = backing_pages_back(p, at, most);
    uint64_t free = got > 0 ? 0 : backing_pages_free(p, at, LINE_NONE, &from, &source);
    if (free == 0) {
        return got;
    }
    const struct block *b = block_at(&p->blocks, source);
    const struct point its = {b->stream, b->seq};
    if (b->state != BLOCK_VACANT ||
        (its.seq != 0 && point->seq != 0 && its.stream != point->stream)) {
        return 0;
    }
    const uint64_t bytes = backing_pages_fit(p, from, free, most);
    const struct page_way way = {from, at, bytes, true, its.stream, its.seq};
    got = page_move(p, &way, NULL);
    if (got == 0) {
        return 0;
    }
    space_lose_pages(p, source, got);
    if (its.seq != 0) {
        *point = (struct point){its.stream, its.seq > point->seq ? its.seq : point->seq};
    }
    event_add(p, POOL_EVENT_REMAP, (struct pool_event){.at = at, .size = got});
    return got;
}

/* Are all pages mapped here free, and for one stream? */
static bool all_free(const struct pool *p, const struct block *b, const struct point *point)
{
    uint64_t end = b->at + b->size;
    for (uint64_t at = b->at + page_used(p, b->at, end); at < end;) {
        uint64_t from;
        uint32_t source;
        uint64_t free = backing_pages_free(p, at, LINE_NONE, &from, &source);
        const struct block *s = free > 0 ? block_at(&p->blocks, source) : NULL;
        if (s == NULL || (s->state == BLOCK_VACANT && s->seq != 0 && s->stream != point->stream)) {
            return false;
        }
        at += free;
        at += at < end ? page_used(p, at, end) : 0;
    }
    return true;
}

static int in_use(const struct block *b, struct err *e)
{
    return err_set(e, ERR_STATE, "a stream still uses %llu bytes at %#llx", LL(b->size), LL(b->at));
}

static int populate(struct pool *p, const struct block *b, struct point *point, struct err *e)
{
    uint64_t end = b->at + b->size;
    bool busy = point->seq != 0; /* a stream may use these mappings */
    uint64_t missing = 0;
    if (busy && !all_free(p, b, point)) {
        return in_use(b, e);
    }
    for (uint64_t at = b->at; at < end;) {
        uint64_t gap = page_unused(p, at, end);
        uint64_t got = gap > 0 ? bring(p, at, gap, point) : page_used(p, at, end);
        missing += got == 0;
        at += got > 0 ? got : p->page;
    }
    if (busy && missing > 0) {
        return in_use(b, e);
    }
    int rc = 0;
    for (uint64_t at = b->at; at < end && missing > 0 && rc == 0;) {
        uint64_t gap = page_unused(p, at, end);
        struct want w = {.to = at, .need = gap, .room = gap};
        rc = gap > 0 ? fill(p, &w, LINE_NONE, point, e) : 0;
        at += gap > 0 ? gap : page_used(p, at, end);
    }
    return rc == 0 ? page_access(p, b->at, b->size, e) : rc;
}

/* Are there enough pages for it? Its own are included. Vacated pages that streams may still use may
 * be of several streams, and then too few; so they do not count if a free block fits the request as
 * it is. */
static int pages_suffice(const struct pool *p, const struct block *b, struct err *e)
{
    uint64_t sure = sat_add(p->whole_bytes, pool_room(p) & ~(p->page - 1));
    uint64_t there = sat_add(sure, p->leaving_bytes);
    uint64_t own = b->seq != 0 ? memory_of(p, b) : 0;
    bool fits = fit_find(&p->ready, &p->blocks, b->size) != BLOCK_NONE;
    return b->size <= (fits ? sat_add(sure, own) : there)
               ? 0
               : err_set(e, ERR_STATE, "%llu bytes of pages are missing, %llu are free",
                         LL(b->size), LL(there));
}

int vacant_occupy(struct pool *p, uint32_t i, const struct pool_ask *ask, struct err *e)
{
    struct block *b = block_at(&p->blocks, i);
    int enough = pages_suffice(p, b, e);
    if (enough != 0) {
        return enough;
    }
    struct err why = ERR_INIT;
    struct point point = unpark(p, i);
    int rc = populate(p, b, &point, &why);
    rc = rc == 0 ? ordered(p, ask->stream, &point, &why) : rc;
    if (rc == 0 && !pool_leaves_enough(p, ask)) {
        rc = err_set(&why, ERR_STATE, "%llu bytes are kept for other tenants, or reserved",
                     LL(quota_kept(p, ask)));
    }
    if (rc != 0) {
        park(p, i, &point);
        if (e != NULL) {
            *e = why;
        }
        return rc;
    }
    b->stream = (uint8_t)point.stream;
    b->seq = point.seq;
    b->generation++;
    p->stats.came_back++;
    return 0;
}

/* ---- for the owner ----------------------------------------------------------------------------*/

bool pool_place_kept(const struct pool *p, const struct pool_place *place)
{
    return is_of(p, place);
}

void pool_place_leave(struct pool *p, struct pool_place *place)
{
    if (is_of(p, place)) {
        (void)vacant_give_up(p, place->block); /* or later, when addresses are wanted */
    }
    *place = (struct pool_place){.size = 0};
}
