/*
 * Gives repeated requests the addresses they had. A job that repeats itself asks for the same sizes
 * in the same order. All requests above slabs are noted with their addresses. When the last three
 * requests came before, the request that followed them then is expected now, and each request that
 * meets the expectation leads to the next. An expected request gets its former addresses if they
 * are free. So a round in which each request gets its former addresses needs no call of the source,
 * and the next round is the same again.
 *
 * For that, pages moved elsewhere remain mapped at their old addresses (page_table.c). Such VOID
 * blocks are `viewed` and serve only repeated requests. Other requests get addresses where nothing
 * is mapped, until those are used up. A load that does not repeat itself would use up addresses in
 * vain, so pages remain mapped only while there is credit, at first for some thousand requests.
 */
#include <stdlib.h>

#include "daemon/pool/pool_int.h"

#define GUESSES      65536u /* a power of two */
#define ALIKE_ENOUGH 4u     /* expected requests in a row before one is served so */
#define ALIKE_LONG   64u    /* and before the load counts as one that repeats itself */
#define CREDIT       4096u  /* requests; initial and highest */
#define PAUSE_MAX    (1u << 20)
#define LOOK_BLOCKS  256u /* VOID blocks examined for one request */

int recall_init(struct pool *p, struct err *e)
{
    struct recall *r = &p->recall;
    r->past = calloc(RECALL_REQUESTS, sizeof *r->past);
    r->guess = calloc(GUESSES, sizeof *r->guess);
    r->credit = CREDIT;
    if (r->past == NULL || r->guess == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a record of %u requests", RECALL_REQUESTS);
    }
    return by_address_init(p, e);
}

void recall_finish(struct pool *p)
{
    free(p->recall.past);
    free(p->recall.guess);
    by_address_finish(p);
}

bool recall_keeps(const struct pool *p)
{
    return p->recall.credit > 0;
}

/* ---- what is expected -------------------------------------------------------------------------*/

static struct recalled *past(const struct recall *r, uint64_t number)
{
    return &r->past[number % RECALL_REQUESTS];
}

static uint64_t key_of(uint64_t size, unsigned stream)
{
    return size | stream;
}

/* The guess by the last three requests. */
static uint32_t *guess_of(const struct recall *r)
{
    uint64_t key = 0;
    for (unsigned n = 1; n <= 3; n++) {
        key = (key + past(r, r->count - n)->key) * UINT64_C(0x9E3779B97F4A7C15);
    }
    return &r->guess[(key >> 40) % GUESSES];
}

/* Still in the record, and followed by another request. */
static bool known(const struct recall *r, uint64_t number)
{
    return number < r->count && r->count - number < RECALL_REQUESTS;
}

uint64_t recall_expect(const struct pool *p, uint64_t size, unsigned stream)
{
    const struct recall *r = &p->recall;
    bool expected = r->past != NULL && r->credit > 0 && r->alike >= ALIKE_ENOUGH &&
                    known(r, r->next) && past(r, r->next)->key == key_of(size, stream);
    return expected ? past(r, r->next)->at : RECALL_NOWHERE;
}

bool recall_repeats(const struct pool *p)
{
    return p->recall.alike >= ALIKE_LONG;
}

void recall_note(struct pool *p, uint64_t size, unsigned stream, uint64_t at)
{
    struct recall *r = &p->recall;
    if (r->past == NULL) {
        return;
    }
    uint64_t key = key_of(size, stream);
    bool alike = known(r, r->next) && past(r, r->next)->key == key;
    r->alike = alike ? r->alike + 1 : 0;
    bool earns = alike && r->credit < CREDIT && r->count >= r->resume;
    r->credit = earns ? r->credit + 1 : r->credit;
    r->credit -= !alike && r->credit > 0;
    *past(r, r->count++) = (struct recalled){.key = key, .at = at};
    uint32_t *guess = guess_of(r);
    r->next = alike ? r->next + 1 : r->count - ((uint32_t)r->count - *guess);
    *guess = (uint32_t)r->count;
}

/* ---- taking it --------------------------------------------------------------------------------*/

static bool usable(const struct block *b, unsigned stream)
{
    return b->state == BLOCK_READY || (b->state == BLOCK_PENDING && b->stream == stream);
}

static uint64_t last_point(const struct pool *p, uint64_t at, uint64_t end, bool *ret_mixed)
{
    uint64_t seq = 0;
    bool ready = false;
    for (uint32_t i = by_address(p, at); i != BLOCK_NONE && block_at(&p->blocks, i)->at < end;) {
        const struct block *b = block_at(&p->blocks, i);
        seq = b->seq > seq ? b->seq : seq;
        ready = ready || b->state == BLOCK_READY;
        i = b->after;
    }
    *ret_mixed = ready && seq != 0;
    return seq;
}

/* READY parts wait with PENDING ones, so that all becomes one block. False: no mixture, nothing was
 * changed. */
static bool unite(struct pool *p, uint64_t at, uint64_t end, unsigned stream)
{
    bool mixed;
    uint64_t seq = last_point(p, at, end, &mixed);
    while (mixed && at < end && space_has_records(p, 2)) {
        uint32_t i = by_address(p, at);
        uint64_t next = block_at(&p->blocks, i)->at + block_at(&p->blocks, i)->size;
        if (block_at(&p->blocks, i)->state == BLOCK_READY) {
            space_leave(p, i);
            if (block_at(&p->blocks, i)->at < at) {
                uint32_t rest = space_cut(p, i, at - block_at(&p->blocks, i)->at);
                space_enter(p, i);
                i = rest;
            }
            if (next > end) {
                space_enter(p, space_cut(p, i, end - at));
            }
            struct block *b = block_at(&p->blocks, i);
            b->state = BLOCK_PENDING;
            b->stream = (uint8_t)stream;
            b->seq = seq;
            space_enter(p, space_merge(p, i));
        }
        at = next;
    }
    return mixed;
}

/* The handle mapped from `at` on may be free in parts, READY and PENDING: unites them. */
static bool mend(struct pool *p, uint64_t at, unsigned stream)
{
    uint64_t from;
    if (page_where(p, at, &from) == 0) {
        return false;
    }
    uint64_t end = from + page_rest(p, from);
    for (uint64_t next = from; next < end;) {
        const struct block *b = block_at(&p->blocks, by_address(p, next));
        if (!usable(b, stream)) {
            return false;
        }
        next = b->at + b->size;
    }
    return unite(p, from, end, stream);
}

/* Where the handle mapped at `at` begins; without one, the page. */
static uint64_t handle_at(const struct pool *p, uint64_t at)
{
    at &= ~(p->page - 1);
    return page_mapped(p, at) ? at - page_inside(p, at) : at;
}

/* Where the handle that has the byte before `end` ends. */
static uint64_t handle_behind(const struct pool *p, uint64_t end)
{
    uint64_t last = (end - 1) & ~(p->page - 1);
    return last + (page_mapped(p, last) ? page_rest(p, last) : p->page);
}

/* Brings handles back that are mapped there but used elsewhere. */
static bool gather(struct pool *p, uint64_t at, uint64_t size, unsigned stream)
{
    uint64_t end = at + size;
    unsigned looked = 0;
    while (at < end) {
        uint32_t i = by_address(p, at);
        const struct block *b = block_at(&p->blocks, i);
        if (usable(b, stream)) {
            at = b->at + b->size;
        } else if (b->state == BLOCK_VOID && looked++ < LOOK_BLOCKS) {
            uint64_t from = handle_at(p, at);
            if (from < b->at) {
                return false;
            }
            uint64_t most = b->at + b->size - from;
            uint64_t wanted = handle_behind(p, end) - from;
            most = most < wanted ? most : wanted;
            uint64_t got = backing_pages_return(p, from, most, stream);
            if (got == 0 && mend(p, from, stream)) {
                got = backing_pages_return(p, from, most, stream);
            }
            at = from + got;
            if (got == 0) {
                return false;
            }
        } else {
            return false;
        }
    }
    return true;
}

/* The block that contains all of it, free for the stream. */
static uint32_t whole_at(const struct pool *p, uint64_t at, uint64_t size, unsigned stream)
{
    uint32_t i = by_address(p, at);
    const struct block *b = block_at(&p->blocks, i);
    return usable(b, stream) && b->at + b->size >= at + size ? i : BLOCK_NONE;
}

uint32_t recall_take(struct pool *p, uint64_t at, uint64_t size, unsigned stream)
{
    uint32_t i = whole_at(p, at, size, stream);
    if (i == BLOCK_NONE && gather(p, at, size, stream)) {
        (void)unite(p, at, at + size, stream);
        i = whole_at(p, at, size, stream);
    }
    if (i == BLOCK_NONE || !space_has_records(p, 2)) {
        return BLOCK_NONE;
    }
    const struct block *b = block_at(&p->blocks, i);
    if (b->at < at) {
        space_leave(p, i);
        uint32_t rest = space_cut(p, i, at - b->at);
        space_enter(p, i);
        space_enter(p, rest);
        i = rest;
    }
    return i;
}

/* The addresses are used up. If that happened recently, a round needs more addresses than there
 * are. */
static void relent(struct recall *r)
{
    bool soon = r->forgot != 0 && r->count - r->forgot < RECALL_REQUESTS;
    r->pause = !soon ? 0 : r->pause < PAUSE_MAX / 2 ? 2 * r->pause + CREDIT : PAUSE_MAX;
    r->resume = r->count + r->pause;
    r->credit = soon ? 0 : r->credit;
    r->forgot = r->count;
}

/* Opens the parts of a viewed VOID block that no stream may use. */
static bool open_idle(struct pool *p, uint32_t i)
{
    bool any = false;
    for (uint32_t rest = i; rest != BLOCK_NONE; i = rest) {
        struct block *b = block_at(&p->blocks, i);
        uint64_t end = b->at + b->size;
        uint64_t idle = page_idle(p, b->at, end);
        uint64_t part = idle > 0 ? idle : page_busy(p, b->at, end);
        if (part < b->size && !space_has_records(p, 1)) {
            break;
        }
        rest = part < b->size ? space_cut(p, i, part) : BLOCK_NONE;
        if (idle > 0) {
            b->viewed = 0;
            space_enter(p, space_merge(p, i));
            any = true;
        }
    }
    return any;
}

bool recall_forget(struct pool *p)
{
    bool any = false;
    for (uint32_t i = 0; i != BLOCK_NONE; i = block_at(&p->blocks, i)->after) {
        const struct block *b = block_at(&p->blocks, i);
        uint64_t at = b->at;
        if (p->source.pages != NULL && b->state == BLOCK_VOID && b->viewed && open_idle(p, i)) {
            any = true;
            i = by_address(p, at); /* it may be part of the block before now */
        }
    }
    if (any) {
        relent(&p->recall);
    }
    return any;
}
