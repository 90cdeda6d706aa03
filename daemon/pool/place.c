/*
 * Places: addresses that large pieces of one size have to themselves, where the source allows a
 * page to be mapped at several places at once. A job that comes again asks for the same sizes in
 * the same order: a request that came before, after the same two, gets the place that it had then,
 * and the pages that were its own there are taken back without a call of the driver. If some of
 * them are in use, a new place is made, so that nothing is unmapped and in the end each request has
 * its own. A place is page-aligned, its blocks are merged among themselves only, and its VOID
 * blocks serve no other request. Where that does not lead to fewer calls it ends after some
 * thousand requests.
 */
#include "daemon/pool/pool_int.h"

#define PLACE_PAGES  4u  /* smaller requests have no places */
#define PLACE_BLOCKS 64u /* a place in more blocks is passed over */
#define PLACE_LOOK   32u /* places looked at for one request */
#define CREDIT_MAX   4096u

static uint64_t in_pages(const struct pool *p, uint64_t bytes)
{
    return (bytes + p->page - 1) & ~(p->page - 1);
}

static struct place *place_at(const struct pool *p, uint32_t i)
{
    return records_at(&p->places, i);
}

bool place_serves(const struct pool *p, uint64_t size)
{
    return p->source.pages != NULL && p->source.pages->aliases && p->place_credit > 0 &&
           size >= PLACE_PAGES * p->page && size < p->space / 2;
}

/* ---- by size, the one that was used longest ago first -----------------------------------------*/

static struct place_list *list_of(struct pool *p, uint64_t bytes)
{
    return &p->place_list[bytes / p->page % PLACE_LISTS];
}

static void list_append(struct pool *p, uint32_t i)
{
    struct place_list *l = list_of(p, place_at(p, i)->bytes);
    place_at(p, i)->newer = RECORD_NONE;
    place_at(p, i)->older = l->newest;
    *(l->newest != RECORD_NONE ? &place_at(p, l->newest)->newer : &l->oldest) = i;
    l->newest = i;
}

static void list_remove(struct pool *p, uint32_t i)
{
    const struct place *o = place_at(p, i);
    struct place_list *l = list_of(p, o->bytes);
    *(o->newer != RECORD_NONE ? &place_at(p, o->newer)->older : &l->newest) = o->older;
    *(o->older != RECORD_NONE ? &place_at(p, o->older)->newer : &l->oldest) = o->newer;
}

/* ---- what is in a place -----------------------------------------------------------------------*/

struct content {
    uint32_t block[PLACE_BLOCKS];
    unsigned count;
    uint64_t missing; /* bytes without memory */
    uint64_t whole;   /* bytes of whole free pages */
};

/* False: something in it is in use, or it is in too many blocks. */
static bool look(const struct pool *p, const struct place *o, struct content *c)
{
    uint32_t i = o->first;
    *c = (struct content){.count = 0};
    for (uint64_t at = o->at; at < o->at + o->bytes; c->count++) {
        const struct block *b = block_at(&p->blocks, i);
        uint64_t whole_at;
        if ((b->state != BLOCK_VOID && b->state != BLOCK_READY) || c->count == PLACE_BLOCKS) {
            return false;
        }
        c->missing += b->state == BLOCK_VOID ? b->size : 0;
        c->whole += b->state == BLOCK_READY ? space_whole(p, b, &whole_at) : 0;
        c->block[c->count] = i;
        at += b->size;
        i = b->after;
    }
    return true;
}

/* Makes all of it READY. */
static int complete(struct pool *p, const struct content *c, struct err *e)
{
    bool is_void[PLACE_BLOCKS];
    int rc = 0;
    for (unsigned n = 0; n < c->count; n++) { /* or its own pages might be taken for it */
        struct block *b = block_at(&p->blocks, c->block[n]);
        space_leave(p, c->block[n]);
        is_void[n] = b->state == BLOCK_VOID;
        b->state = BLOCK_HELD;
    }
    for (unsigned n = 0; n < c->count; n++) {
        if (is_void[n]) {
            rc = rc != 0 ? rc : backing_pages_fill(p, c->block[n], e);
            if (rc != 0) {
                is_void[n] = false;
                backing_pages_unwind(p, c->block[n]);
                continue;
            }
        }
    }
    for (unsigned n = 0; n < c->count; n++) {
        struct block *b = block_at(&p->blocks, c->block[n]);
        if (b->state == BLOCK_HELD) {
            b->state = BLOCK_READY;
            space_enter(p, space_merge(p, c->block[n]));
        }
    }
    return rc;
}

/* Marks the pages that are free as a whole: they can go to another place. */
static void mark_free(struct pool *p)
{
    p->place_mark++;
    for (unsigned list = 0; list < WHOLE_LISTS; list++) {
        for (uint32_t i = p->whole[list]; i != BLOCK_NONE; i = block_at(&p->blocks, i)->newer) {
            uint64_t at;
            uint64_t bytes = space_whole(p, block_at(&p->blocks, i), &at);
            for (uint64_t end = at + bytes; at < end; at += p->page) {
                struct page *g = records_at(&p->pages, p->slot[at / p->page] - 1);
                g->mark = p->place_mark;
            }
        }
    }
}

/* Pages that have to be mapped: those that are not there, and not free where they are now. */
static uint64_t calls_for(const struct pool *p, const struct place *o)
{
    uint64_t calls = 0;
    for (uint64_t s = o->at / p->page; s < (o->at + o->bytes) / p->page; s++) {
        uint32_t page = p->view[s].page;
        const struct page *g = page != 0 ? records_at(&p->pages, page - 1) : NULL;
        calls += p->slot[s] == 0 && (g == NULL || g->mark != p->place_mark);
    }
    return calls;
}

/* May it serve now? *ret_calls: how many pages would have to be mapped. */
static bool usable(const struct pool *p, uint32_t i, uint64_t bytes, struct content *c,
                   uint64_t *ret_calls)
{
    const struct place *o = place_at(p, i);
    uint64_t room = pool_room(p) & ~(p->page - 1);
    if (o->bytes != bytes || !look(p, o, c) || c->missing > p->whole_bytes - c->whole + room) {
        return false;
    }
    *ret_calls = calls_for(p, o);
    return true;
}

bool place_repeats(struct pool *p, uint64_t size)
{
    uint64_t key = (size * 31 + p->place_last[0]) * 1000003 + p->place_last[1];
    p->place_now = &p->place_guess[(key * UINT64_C(0x9E3779B97F4A7C15)) >> 52];
    p->place_last[1] = p->place_last[0];
    p->place_last[0] = size;
    bool known = p->place_now->key == key;
    if (!known) {
        *p->place_now = (struct place_guess){.key = key};
    }
    return known;
}

static uint32_t remember(struct pool *p, uint32_t i)
{
    p->place_now->place = i + 1;
    list_remove(p, i);
    list_append(p, i);
    return place_at(p, i)->first;
}

/* The place that needs the fewest calls; of those the one that was used longest ago. */
static uint32_t best_place(struct pool *p, uint64_t bytes, struct content *ret_content,
                           uint64_t *ret_calls)
{
    struct content c;
    uint64_t calls;
    uint32_t best = RECORD_NONE;
    uint32_t guess = p->place_now->place;
    *ret_calls = UINT64_MAX;
    if (guess != 0 && guess <= p->places.made && usable(p, guess - 1, bytes, ret_content, &calls) &&
        calls == 0) {
        *ret_calls = 0;
        return guess - 1;
    }
    unsigned looked = 0;
    uint32_t i = list_of(p, bytes)->oldest;
    for (; i != RECORD_NONE && looked<PLACE_LOOK && * ret_calls> 0; i = place_at(p, i)->newer) {
        looked++;
        if (usable(p, i, bytes, &c, &calls) && calls < *ret_calls) {
            *ret_calls = calls;
            best = i;
            *ret_content = c;
        }
    }
    return best;
}

/* As many requests without calls as with calls keep it going. */
static void judge(struct pool *p, bool good)
{
    p->place_credit += good && p->place_credit < CREDIT_MAX;
    p->place_credit -= !good && p->place_credit > 0;
}

uint32_t place_again(struct pool *p, uint64_t size)
{
    struct content c = {.count = 0};
    uint64_t calls;
    uint64_t bytes = in_pages(p, size);
    uint32_t made;
    (void)warm_flush(p);
    if (list_of(p, bytes)->oldest == RECORD_NONE || !space_has_records(p, 2 * PLACE_BLOCKS)) {
        return BLOCK_NONE;
    }
    mark_free(p);
    uint32_t i = best_place(p, bytes, &c, &calls);
    judge(p, calls == 0);
    if (i == RECORD_NONE) {
        return BLOCK_NONE;
    }
    if (calls > 0) { /* rather a new one: what is mapped here stays so */
        if (place_new(p, size, false, &made, NULL) == 0) {
            return made;
        }
        if (!usable(p, i, bytes, &c, &calls)) { /* memory came free, or went, on the way */
            return BLOCK_NONE;
        }
    }
    return c.missing == 0 || complete(p, &c, NULL) == 0 ? remember(p, i) : BLOCK_NONE;
}

/* ---- making and ending ------------------------------------------------------------------------*/

/* At the end of the largest void, while addresses abound. */
static bool make(struct pool *p, uint64_t bytes, uint32_t *ret_place)
{
    uint32_t u;
    if (fit_top(&p->void_fit, &p->blocks, &u, 1) == 0 || !space_has_records(p, PLACE_BLOCKS) ||
        block_at(&p->blocks, u)->size < sat_add(2 * bytes, p->stats.limit)) {
        return false;
    }
    uint32_t i = records_take(&p->places);
    if (i == RECORD_NONE) {
        return false;
    }
    space_leave(p, u);
    uint32_t first = space_cut(p, u, block_at(&p->blocks, u)->size - bytes);
    space_enter(p, u);
    struct block *b = block_at(&p->blocks, first);
    b->home = i + 1;
    b->edge = 1;
    *place_at(p, i) = (struct place){.first = first, .at = b->at, .bytes = bytes};
    list_append(p, i);
    space_enter(p, first);
    *ret_place = i;
    return true;
}

bool place_dissolve(struct pool *p)
{
    bool any = false;
    for (unsigned n = 0; n < PLACE_LISTS; n++) {
        for (uint32_t i = p->place_list[n].oldest; i != RECORD_NONE;) {
            uint32_t newer = place_at(p, i)->newer;
            uint32_t first = place_at(p, i)->first;
            struct block *b = block_at(&p->blocks, first);
            if (b->state == BLOCK_VOID && b->size == place_at(p, i)->bytes) {
                list_remove(p, i);
                space_leave(p, first);
                b->home = 0;
                b->edge = 0;
                space_enter(p, space_merge(p, first));
                place_at(p, i)->bytes = 0; /* no guess is right any more */
                records_give(&p->places, i);
                any = true;
            }
            i = newer;
        }
    }
    return any;
}

int place_new(struct pool *p, uint64_t size, bool dissolve, uint32_t *ret_block, struct err *e)
{
    uint32_t i;
    struct content c;
    uint64_t bytes = in_pages(p, size);
    (void)warm_flush(p);
    if (bytes > sat_add(p->whole_bytes, pool_room(p) & ~(p->page - 1))) {
        return err_set(e, ERR_DEVICE_MEMORY, "%llu bytes of pages are missing, %llu are free",
                       LL(bytes), LL(p->whole_bytes));
    }
    if (!make(p, bytes, &i) && (!dissolve || !place_dissolve(p) || !make(p, bytes, &i))) {
        return err_set(e, ERR_NOMEM, "no addresses for a place of %llu bytes", LL(bytes));
    }
    int rc = look(p, place_at(p, i), &c) ? complete(p, &c, e) : ERR_INTERNAL;
    if (rc == 0) {
        *ret_block = remember(p, i);
    }
    return rc;
}
