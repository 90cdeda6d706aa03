#include "daemon/pool/clean.h"
#include "daemon/pool/pool_int.h"

#define PAGES_LOOKED 65536u /* pages examined for one answer */

/* The end of the row of pages from `at` on, up to `end`, that are all clean or all not clean. */
static uint64_t beyond(const struct pool *p, uint64_t at, uint64_t end, bool clean)
{
    uint16_t holder = TENANCY_MIXED;
    while (at < end) {
        uint64_t bytes = tenancy_row(p, at, end, &holder);
        if (bytes == 0 || (holder == TENANCY_CLEAN) != clean) {
            break;
        }
        at += bytes;
    }
    return at;
}

/* The first row of pages in [at, at + bytes) that are not clean. Returns its bytes. */
static uint64_t unclean_run(const struct pool *p, uint64_t at, uint64_t bytes, uint64_t *ret_at)
{
    *ret_at = beyond(p, at, at + bytes, true);
    return beyond(p, *ret_at, at + bytes, false) - *ret_at;
}

static uint64_t unclean_in(const struct pool *p, const struct block *b, uint64_t *ret_at)
{
    uint64_t bytes = space_whole(p, b, ret_at);
    if (p->source.pages != NULL) {
        return unclean_run(p, *ret_at, bytes, ret_at);
    }
    const struct home *h = records_at(&p->homes, b->home);
    return h->tenant == TENANCY_CLEAN ? 0 : bytes;
}

static uint32_t find(const struct pool *p, uint64_t *ret_at, uint64_t *ret_bytes)
{
    uint64_t looked = 0;
    for (unsigned list = WHOLE_LISTS; list-- > 0;) {
        uint32_t i = p->whole[list];
        for (; i != BLOCK_NONE && looked < PAGES_LOOKED; i = block_at(&p->blocks, i)->newer) {
            const struct block *b = block_at(&p->blocks, i);
            *ret_bytes = unclean_in(p, b, ret_at);
            if (*ret_bytes > 0) {
                return i;
            }
            looked += to_pages(p, b->size) + 1;
        }
    }
    return BLOCK_NONE;
}

bool pool_unclean(struct pool *p, uint64_t most, struct pool_piece *ret_piece)
{
    uint64_t at;
    uint64_t bytes;
    (void)warm_flush(p);
    uint32_t i = space_has_records(p, 2) ? find(p, &at, &bytes) : BLOCK_NONE;
    if (i == BLOCK_NONE) {
        return false;
    }
    if (p->source.pages != NULL && bytes > most) {
        bytes = most > p->page ? most & ~(p->page - 1) : p->page;
    }
    space_leave(p, i);
    uint64_t front = at - block_at(&p->blocks, i)->at;
    if (front > 0) {
        uint32_t rest = space_cut(p, i, front);
        space_enter(p, i);
        i = rest;
    }
    if (block_at(&p->blocks, i)->size > bytes) {
        space_enter(p, space_cut(p, i, bytes));
    }
    struct block *b = block_at(&p->blocks, i);
    b->state = BLOCK_AWAY;
    *ret_piece = (struct pool_piece){.offset = b->at,
                                     .size = b->size,
                                     .block = i,
                                     .generation = b->generation,
                                     .tenant = POOL_TENANT_UNKNOWN,
                                     .foreign = true};
    pool_locate(p, ret_piece);
    ret_piece->ticket = pool_ticket(p, ret_piece);
    guard_check(p, i);
    return true;
}

void pool_cleared(struct pool *p, struct pool_piece *piece, bool done, unsigned stream,
                  uint64_t seq)
{
    struct block *b = piece->block < p->blocks.made ? block_at(&p->blocks, piece->block) : NULL;
    if (piece->range == NULL || b == NULL || b->state != BLOCK_AWAY ||
        b->generation != piece->generation || stream >= p->streams) {
        return;
    }
    if (done) {
        tenancy_clean(p, b);
        p->stats.cleared += b->size;
        event_add(
            p, POOL_EVENT_CLEAR,
            (struct pool_event){
                .at = b->at, .size = b->size, .stream = (uint8_t)stream, .value = (uint32_t)seq});
    }
    uint32_t i = space_release(p, piece->block, stream, seq);
    *piece = (struct pool_piece){.range = NULL};
    guard_check(p, i);
}
