/*
 * Records whose bytes memory has. Neighbouring frames (page_table.h) with the same holder are one
 * row, marked at its first frame: a card that one tenant uses is one row.
 */
#include "daemon/pool/pool_int.h"
#include "daemon/pool/quota.h"

/* ---- rows of frames ---------------------------------------------------------------------------*/

/* The value of holder[] where a row begins; 0: no row begins. */
#define ROW_OF(holder) ((uint16_t)((holder) + 3u)) /* TENANCY_CLEAN is 1, TENANCY_MIXED is 2 */

static uint16_t holder_of(const struct page_table *t, uint64_t frame)
{
    uint64_t first = t->holder[frame] != 0 ? frame : marks_last(&t->holders, frame);
    return (uint16_t)(t->holder[first] - ROW_OF(0));
}

#define LOOK_FRAMES 8u /* frames examined before the marks */

/* Where the row ends, or `end`. */
static uint64_t row_end(const struct page_table *t, uint64_t frame, uint64_t end)
{
    for (unsigned n = 0; n < LOOK_FRAMES; n++) {
        if (++frame >= end || t->holder[frame] != 0) {
            return frame;
        }
    }
    uint64_t next = marks_next(&t->holders, frame);
    return next < end ? next : end;
}

static void begin(struct page_table *t, uint64_t frame, uint16_t holder)
{
    if (t->holder[frame] == 0) {
        marks_add(&t->holders, frame);
    }
    t->holder[frame] = ROW_OF(holder);
}

/* Makes [first, end) one row and removes the rows within. Does not merge it with its neighbours. */
static void hold(struct page_table *t, uint64_t first, uint64_t end, uint16_t holder)
{
    if (end < t->frames.max && t->holder[end] == 0) {
        begin(t, end, holder_of(t, end));
    }
    for (uint64_t f = row_end(t, first, end); f < end; f = row_end(t, f, end)) {
        t->holder[f] = 0;
        marks_remove(&t->holders, f);
    }
    begin(t, first, holder);
}

void tenancy_new(struct pool *p, uint64_t frame, uint64_t count)
{
    if (p->table.holder[0] == 0) {
        begin(&p->table, 0, TENANCY_MIXED);
    }
    hold(&p->table, frame, frame + count, TENANCY_MIXED);
}

uint64_t tenancy_row(const struct pool *p, uint64_t at, uint64_t end, uint16_t *ret_holder)
{
    uint32_t frame;
    uint64_t bytes = page_frame(p, at, &frame);
    if (bytes == 0) {
        return 0;
    }
    bytes = bytes < end - at ? bytes : end - at;
    *ret_holder = holder_of(&p->table, frame);
    return (row_end(&p->table, frame, frame + to_pages(p, bytes)) - frame) * p->page;
}

/* ---- claims -----------------------------------------------------------------------------------*/

/* A tenant remains the holder while only it gets parts of the page. A page with others' bytes
 * becomes the new tenant's only if the tenant gets, and so clears, all of it. */
static uint16_t claimed(uint16_t holder, bool cleared, unsigned tenant)
{
    return holder != TENANCY_CLEAN && !cleared ? TENANCY_MIXED : (uint16_t)tenant;
}

/* Claims frames of which the tenant gets all (`cleared`), or parts. */
static bool claim_frames(struct page_table *t, uint64_t first, uint64_t end, bool cleared,
                         unsigned tenant)
{
    bool foreign = false;
    bool other = false;
    for (uint64_t f = first; f < end;) {
        uint64_t next = row_end(t, f, end);
        uint16_t holder = holder_of(t, f);
        other = other || holder != tenant;
        foreign = foreign || (holder != tenant && holder != TENANCY_CLEAN);
        if (holder != tenant && holder != TENANCY_MIXED && !cleared) {
            hold(t, f, next, claimed(holder, false, tenant));
        }
        f = next;
    }
    if (other && cleared) {
        hold(t, first, end, (uint16_t)tenant);
    }
    return foreign;
}

static bool claim_home(struct home *h, bool cleared, unsigned tenant)
{
    uint16_t holder = h->tenant;
    h->tenant = holder != tenant ? claimed(holder, cleared, tenant) : holder;
    return holder != tenant && holder != TENANCY_CLEAN;
}

bool tenancy_claim(struct pool *p, const struct block *b, unsigned tenant, bool clears)
{
    uint64_t end = b->at + b->size;
    if (p->source.pages == NULL) {
        struct home *h = records_at(&p->homes, b->home);
        return claim_home(h, clears && b->size == h->bytes, tenant);
    }
    uint64_t last = (end + p->page - 1) & ~(p->page - 1);
    uint64_t whole = (b->at + p->page - 1) & ~(p->page - 1);
    uint64_t stop = end & ~(p->page - 1);
    bool foreign = false;
    for (uint64_t at = b->at & ~(p->page - 1); at < last;) {
        uint32_t frame;
        uint64_t bytes = page_frame(p, at, &frame);
        bytes = bytes < last - at ? bytes : last - at;
        uint64_t from = at > whole ? at : whole;
        uint64_t to = at + bytes < stop ? at + bytes : stop;
        if (from >= to) { /* only parts of one page or two */
            from = to = at;
        }
        uint64_t begins = frame + to_pages(p, from - at);
        uint64_t ends = frame + to_pages(p, to - at);
        foreign |= claim_frames(&p->table, frame, begins, false, tenant);
        foreign |= claim_frames(&p->table, begins, ends, clears, tenant);
        foreign |= claim_frames(&p->table, ends, frame + to_pages(p, bytes), false, tenant);
        at += bytes;
    }
    return foreign;
}

static void mark(struct pool *p, const struct block *b, uint16_t holder)
{
    if (p->source.pages == NULL) {
        ((struct home *)records_at(&p->homes, b->home))->tenant = holder;
        return;
    }
    uint64_t end = (b->at + b->size + p->page - 1) & ~(p->page - 1);
    for (uint64_t at = b->at & ~(p->page - 1); at < end;) {
        uint32_t frame;
        uint64_t bytes = page_frame(p, at, &frame);
        bytes = bytes < end - at ? bytes : end - at;
        hold(&p->table, frame, frame + to_pages(p, bytes), holder);
        at += bytes;
    }
}

void tenancy_spoil(struct pool *p, const struct block *b)
{
    mark(p, b, TENANCY_MIXED);
}

void tenancy_clean(struct pool *p, const struct block *b)
{
    mark(p, b, TENANCY_CLEAN);
}

static void renumber_pages(struct page_table *t, unsigned tenant)
{
    for (uint64_t f = marks_next(&t->holders, 0); f != MARKS_NONE;
         f = marks_next(&t->holders, f + 1)) {
        t->holder[f] = holder_of(t, f) == tenant ? ROW_OF(TENANCY_MIXED) : t->holder[f];
    }
}

void pool_renumber(struct pool *p, unsigned tenant)
{
    if (p->source.pages != NULL) {
        renumber_pages(&p->table, tenant);
    }
    for (uint32_t i = 0; i < p->homes.made; i++) {
        struct home *h = records_at(&p->homes, i);
        h->tenant = h->tenant == tenant ? TENANCY_MIXED : h->tenant;
    }
    for (uint32_t i = 0; i < p->slabs.made; i++) {
        struct slab *s = records_at(&p->slabs, i);
        s->own = s->tenant == tenant ? 0 : s->own;
    }
    p->account[tenant].meter = (struct pool_meter){.peak = 0};
}
