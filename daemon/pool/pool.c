#include <stdlib.h>
#include <string.h>

#include "daemon/pool/pool_int.h"

#define BLOCKS_MAX   4194304u
#define EVENTS       16384u
#define EVENTS_MAX   (1u << 24)
#define SPACE_FACTOR 32u /* pages remain mapped where they were (recall.c) */
#define SPACE_MIN    (UINT64_C(1) << 30)
#define SPACE_BLOCKS (UINT64_C(1) << 50) /* addresses of a source of blocks cost nothing */
#define TRIM_RATE    (UINT64_C(1) << 30) /* bytes a second */
#define MOVE_MOST    (UINT64_C(1) << 30) /* bytes */

/* ---- create, destroy --------------------------------------------------------------------------*/

static int tables_init(struct pool *p, const struct pool_options *o, struct err *e)
{
    uint32_t blocks = o->max_blocks != 0 ? o->max_blocks : BLOCKS_MAX;
    int rc = records_init(&p->blocks, sizeof(struct block), blocks, e);
    rc = rc != 0 ? rc : records_init(&p->slabs, sizeof(struct slab), blocks, e);
    rc = rc != 0 ? rc : records_init(&p->tags, SLAB_OBJECTS * sizeof(uint64_t), blocks, e);
    rc = rc != 0 ? rc : records_init(&p->deferred, sizeof(struct deferred), blocks, e);
    rc = rc != 0 ? rc : records_init(&p->homes, sizeof(struct home), blocks, e);
    p->late.first = BLOCK_NONE;
    late_room(p);
    p->idle = (struct line){.oldest = BLOCK_NONE, .newest = BLOCK_NONE};
    p->vacant = (struct vacant){.oldest = BLOCK_NONE, .newest = BLOCK_NONE, .stuck = BLOCK_NONE};
    fit_init(&p->void_fit);
    fit_init(&p->ready);
    for (unsigned s = 0; s < LINES; s++) {
        fit_init(&p->pending[s]);
        p->line[s] = (struct line){RECORD_NONE, RECORD_NONE, RECORD_NONE, RECORD_NONE};
    }
    for (unsigned s = 0; s < POOL_STREAMS; s++) {
        for (unsigned c = 0; c < SLAB_CLASSES; c++) {
            p->partial[s][c] = RECORD_NONE;
        }
    }
    for (unsigned i = 0; i < WHOLE_LISTS; i++) {
        p->whole[i] = BLOCK_NONE;
    }
    for (unsigned i = 0; i < WARM_BLOCKS; i++) {
        p->warm[i] = BLOCK_NONE;
    }
    for (unsigned t = 0; t < POOL_TENANTS; t++) {
        p->account[t].quota = POOL_QUOTA_NONE;
    }
    return rc;
}

static int events_init(struct pool *p, const struct pool_options *o, struct err *e)
{
    uint32_t wanted = o->events == 0 ? EVENTS : o->events < EVENTS_MAX ? o->events : EVENTS_MAX;
    uint32_t count = 1;
    while (count < wanted) {
        count *= 2;
    }
    p->event = calloc(count, sizeof *p->event);
    p->event_mask = count - 1;
    return p->event != NULL ? 0 : err_set(e, ERR_NOMEM, "no memory for a log of %u events", count);
}

/* Reserves the addresses wanted, or half of them, and so on, down to twice the limit: there may be
 * fewer (RLIMIT_AS, or the device). An explicit `address_bytes` is never reduced. */
static int space_reserve(struct pool *p, const struct pool_options *o, struct err *e)
{
    uint64_t least = o->limit > UINT64_MAX / 2 ? UINT64_MAX : 2 * o->limit;
    struct err why = ERR_INIT;
    int rc = p->source.pages->reserve(p->source.user, p->space, &p->range, &why);
    while (rc != 0 && o->address_bytes == 0 && p->space / 2 >= least && p->space / 2 > p->page) {
        struct err again = ERR_INIT;
        p->space = (p->space / 2) & ~(p->page - 1);
        rc = p->source.pages->reserve(p->source.user, p->space, &p->range, &again);
    }
    if (rc != 0 && e != NULL) {
        *e = why;
    }
    return rc;
}

static int space_init(struct pool *p, const struct pool_options *o, struct err *e)
{
    int rc = 0;
    p->page = p->source.pages != NULL ? p->source.pages->page_bytes : POOL_ALIGN;
    p->page_log = pool_log(p->page);
    p->space = SPACE_BLOCKS;
    if (p->source.pages != NULL) {
        uint64_t most = UINT64_MAX / 2 / SPACE_FACTOR;
        uint64_t wanted = (o->limit < most ? o->limit : most) * SPACE_FACTOR;
        wanted = wanted < SPACE_MIN ? SPACE_MIN : wanted;
        wanted = o->address_bytes != 0 ? o->address_bytes : wanted;
        p->space = wanted & ~(p->page - 1);
        rc = space_reserve(p, o, e);
        rc = rc != 0 ? rc : page_table_init(p, o->max_blocks != 0 ? o->max_blocks : BLOCKS_MAX, e);
        rc = rc != 0 ? rc : recall_init(p, e);
        if (rc != 0 && p->range != NULL) {
            p->source.pages->release(p->source.user, p->range, p->space);
        }
    }
    if (rc == 0) {
        uint32_t all = records_take(&p->blocks);
        *block_at(&p->blocks, all) = (struct block){
            .size = p->space, .before = BLOCK_NONE, .after = BLOCK_NONE, .state = BLOCK_VOID};
        by_address_add(p, all);
        space_enter(p, all);
    }
    return rc;
}

int pool_create(const struct pool_source *source, const struct pool_options *options,
                struct pool **ret_pool, struct err *e)
{
    bool one_kind = (source->pages == NULL) != (source->blocks == NULL);
    if (!one_kind || options->streams == 0 || options->streams > POOL_STREAMS) {
        return err_set(e, ERR_INVALID, "a pool of %u streams over %s", options->streams,
                       one_kind ? "a source" : "no source, or two");
    }
    struct pool *p = calloc(1, sizeof *p);
    if (p == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a pool");
    }
    p->source = *source;
    p->streams = options->streams;
    p->stats.limit = options->limit;
    p->handle_max = source->pages != NULL ? pool_handle_most(source->pages, options->limit) : 0;
    p->lease.deadline_ns = POOL_LEASE_NEVER;
    p->stay_most = UINT64_MAX;
    p->trimming =
        (struct trimming){.age_ns = options->trim_age_ns,
                          .rate = options->trim_rate != 0 ? options->trim_rate : TRIM_RATE,
                          .keep = options->keep,
                          .budget = UINT64_MAX};
    p->moving.most = options->move_most != 0 ? options->move_most : MOVE_MOST;
    p->moving.slice = options->slice != 0 ? options->slice : POOL_SLICE;
    p->moving.stream = LINE_NONE;
    int rc = tables_init(p, options, e);
    rc = rc != 0 ? rc : events_init(p, options, e);
    rc = rc != 0 ? rc : space_init(p, options, e);
    if (rc != 0) {
        p->range = NULL;
        pool_destroy(p);
        return rc;
    }
    *ret_pool = p;
    return 0;
}

void pool_destroy(struct pool *p)
{
    if (p == NULL) {
        return;
    }
    backing_finish(p);
    records_finish(&p->blocks);
    records_finish(&p->slabs);
    records_finish(&p->tags);
    records_finish(&p->deferred);
    records_finish(&p->homes);
    recall_finish(p);
    free(p->event);
    free(p);
}

/* ---- blocks -----------------------------------------------------------------------------------*/

int pool_wait(struct pool *p, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    if (p->source.wait == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "waits between streams");
    }
    if (on == joint_line(p)) {
        return joint_wait(p, stream, seq, e);
    }
    int rc = p->source.wait(p->source.user, stream, on, seq, e);
    p->stats.waits += rc == 0;
    event_add(p, POOL_EVENT_WAIT,
              (struct pool_event){
                  .stream = (uint8_t)stream, .tenant = (uint16_t)on, .value = (uint32_t)seq});
    return rc;
}

static uint64_t size_of(const struct pool *p, uint32_t i)
{
    return i == BLOCK_NONE ? UINT64_MAX : block_at(&p->blocks, i)->size;
}

/* A page that pieces share is a handle of its own: a small piece in it would keep a larger handle
 * from being used elsewhere. Where a block that is cut after `size` bytes would be an exception:
 * the address at which to break. UINT64_MAX: nowhere. */
static uint64_t torn_at(const struct pool *p, uint32_t i, uint64_t size)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t at;
    if (p->source.pages == NULL || b->size == size) {
        return UINT64_MAX;
    }
    uint64_t page = (b->at + size) & ~(p->page - 1);
    uint64_t whole = space_whole(p, b, &at);
    if (page < at || page >= at + whole) {
        return UINT64_MAX;
    }
    bool shared = page != b->at + size;
    bool torn = page_inside(p, page) != 0 || (shared && page_rest(p, page) != p->page);
    return torn ? page : UINT64_MAX;
}

static bool tears(const struct pool *p, uint32_t i, uint64_t size)
{
    return torn_at(p, i, size) != UINT64_MAX;
}

/* The closest fit of memory that a stream freed, unless it would be torn: it cannot be broken yet.
 */
static uint32_t find_pending(const struct pool *p, uint64_t size, unsigned stream)
{
    uint32_t i = fit_find(&p->pending[stream], &p->blocks, size);
    return i != BLOCK_NONE && tears(p, i, size) ? BLOCK_NONE : i;
}

/* The closer fit of memory that the stream freed and memory free for every stream. */
static uint32_t find_now(const struct pool *p, uint64_t size, unsigned stream)
{
    uint32_t own = find_pending(p, size, stream);
    uint32_t ready = fit_find(&p->ready, &p->blocks, size);
    return size_of(p, own) <= size_of(p, ready) ? own : ready;
}

static uint32_t find_waiting(struct pool *p, uint64_t size, unsigned stream)
{
    for (unsigned other = 0; other <= joint_line(p); other++) {
        uint32_t i = other == stream ? BLOCK_NONE : find_pending(p, size, other);
        if (i != BLOCK_NONE &&
            pool_wait(p, stream, other, block_at(&p->blocks, i)->seq, NULL) == 0) {
            return i;
        }
    }
    return BLOCK_NONE;
}

/* A whole free block of a source could go back to it; a small piece in it would prevent that. */
static bool wasteful(const struct pool *p, uint32_t i, uint64_t size)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t at;
    return p->source.blocks != NULL && b->size > p->source.blocks->chunk &&
           b->size - size > size / 8 && space_whole(p, b, &at) != 0;
}

/* Whole pages that one request could get. Pages that streams may still use can be mapped elsewhere
 * meanwhile. */
static uint64_t whole_left(const struct pool *p)
{
    uint64_t room = sat_sub(p->stats.limit, p->stats.size) & ~(p->page - 1);
    uint64_t waits = 0;
    for (unsigned s = 0; s <= joint_line(p); s++) {
        waits += p->pending_whole[s] + p->leaving_of[s];
    }
    return sat_add(room, p->whole_bytes + waits);
}

/* Is enough for other tenants left, now that a block has been removed? */
bool pool_leaves_enough(const struct pool *p, const struct pool_ask *ask)
{
    uint64_t kept = quota_kept(p, ask);
    if (kept == 0 || p->source.pages != NULL) {
        return kept == 0 || whole_left(p) >= (sat_add(kept, p->page - 1) & ~(p->page - 1));
    }
    uint64_t left = p->whole_bytes; /* blocks of the source that could go back to it, soon */
    for (unsigned s = 0; s <= joint_line(p); s++) {
        left += p->pending_whole[s];
    }
    return sat_add(left, sat_sub(p->stats.limit, p->stats.size)) >= kept;
}

/* The address of such a request before, if all of it is free. */
static uint32_t find_again(struct pool *p, uint64_t size, uint64_t align, unsigned stream)
{
    uint64_t at = recall_expect(p, size, stream);
    if (at == RECALL_NOWHERE || (at & (align - 1)) != 0) {
        return BLOCK_NONE;
    }
    (void)warm_flush(p);
    return recall_take(p, at, size, stream);
}

#define GAPS_LOOKED 32u /* free parts examined for one piece that moves */

/* The closest fit that compact_gains allows. */
static uint32_t find_gaining(struct pool *p, uint64_t size)
{
    uint32_t gap[GAPS_LOOKED];
    unsigned count = fit_least(&p->ready, &p->blocks, size, gap, GAPS_LOOKED);
    for (unsigned n = 0; n < count; n++) {
        if (compact_gains(p, gap[n])) {
            return gap[n];
        }
    }
    return BLOCK_NONE;
}

/* Only memory that no stream uses any more. */
static int find_past(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e)
{
    (void)warm_flush(p);
    *ret_block = fit_find(&p->ready, &p->blocks, size);
    if (*ret_block != BLOCK_NONE && !compact_gains(p, *ret_block)) {
        *ret_block = find_gaining(p, size);
    }
    if (*ret_block != BLOCK_NONE) {
        return 0;
    }
    return p->source.pages != NULL ? backing_grow(p, size, ret_block, e) : ERR_DEVICE_MEMORY;
}

/* Cuts an indexed free block so that `size` bytes begin at a multiple of `align`, if there is room
 * for that. */
static uint32_t aligned(struct pool *p, uint32_t i, uint64_t size, uint64_t align)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t odd = b->at & (align - 1);
    if (odd == 0 || b->size - size < align - odd || !space_has_records(p, 2)) {
        return i;
    }
    space_leave(p, i);
    uint32_t rest = space_cut(p, i, align - odd);
    space_enter(p, i);
    space_enter(p, rest);
    return rest;
}

/* Free memory, perhaps after a wait for another stream. A whole block of the source that a small
 * piece would waste comes last. */
static uint32_t find_free(struct pool *p, uint64_t size, unsigned stream, unsigned flags)
{
    bool grows = (flags & TAKE_GROW) != 0;
    bool waits = (flags & TAKE_WAIT) != 0 && !(grows && (flags & TAKE_LATE) != 0);
    uint32_t i = find_now(p, size, stream);
    if (i == BLOCK_NONE && warm_flush(p)) {
        i = find_now(p, size, stream);
    }
    if (i != BLOCK_NONE && grows && wasteful(p, i, size) && backing_grow(p, size, &i, NULL) != 0) {
        i = find_now(p, size, stream); /* growing may trim free blocks */
    }
    return i == BLOCK_NONE && waits ? find_waiting(p, size, stream) : i;
}

/* Memory that streams may still use, and that is torn. */
static uint32_t find_torn(struct pool *p, uint64_t size, unsigned stream)
{
    uint32_t i = fit_find(&p->pending[stream], &p->blocks, size);
    for (unsigned other = 0; other <= joint_line(p) && i == BLOCK_NONE; other++) {
        i = fit_find(&p->pending[other], &p->blocks, size);
        if (i != BLOCK_NONE &&
            pool_wait(p, stream, other, block_at(&p->blocks, i)->seq, NULL) != 0) {
            i = BLOCK_NONE;
        }
    }
    return i;
}

/* New memory, or else memory that streams may still use. */
static int find_more(struct pool *p, uint64_t size, unsigned stream, unsigned flags,
                     uint32_t *ret_block, struct err *e)
{
    int rc = backing_grow(p, size, ret_block, e);
    if (rc != ERR_DEVICE_MEMORY || (flags & TAKE_WAIT) == 0) {
        return rc;
    }
    uint32_t i = (flags & TAKE_LATE) != 0 ? find_waiting(p, size, stream) : BLOCK_NONE;
    if (i == BLOCK_NONE) {
        return vacant_grow(p, size, stream, ret_block, e);
    }
    *ret_block = i;
    return 0;
}

/* Of at least `size` bytes, at any address. */
static int find_any(struct pool *p, uint64_t size, unsigned stream, unsigned flags,
                    uint32_t *ret_block, struct err *e)
{
    if ((flags & TAKE_PAST) != 0) {
        return find_past(p, size, ret_block, e);
    }
    uint32_t i = find_free(p, size, stream, flags);
    int rc = i != BLOCK_NONE ? 0 : ERR_DEVICE_MEMORY;
    if (rc != 0 && (flags & TAKE_GROW) != 0) {
        rc = find_more(p, size, stream, flags, &i, e);
    }
    if (rc == ERR_DEVICE_MEMORY && (flags & TAKE_WAIT) != 0) {
        i = find_torn(p, size, stream);
        rc = i != BLOCK_NONE ? 0 : rc;
    }
    *ret_block = i;
    return rc;
}

/* A request of several whole pages begins at a page border, if there is room for that. It shares no
 * page then, and can return to its addresses (place.h). One page may begin anywhere: a free part at
 * each side of it would cost more than its return elsewhere. */
static uint32_t at_page(struct pool *p, uint32_t i, uint64_t size, unsigned flags)
{
    bool begins = (flags & TAKE_PAST) == 0 && size % p->page == 0 && (size > p->page || p->due > 0);
    return begins ? aligned(p, i, size, p->page) : i;
}

/* While whole pages are kept for others, a piece of a quarter of a page or more begins at a
 * multiple of its size, rounded up to a power of two, if there is room. Else its page may be free
 * in parts that are too small for another such piece. */
static uint32_t at_part(struct pool *p, const struct pool_ask *ask, uint32_t i, uint64_t size)
{
    if (p->source.pages == NULL || size < p->page / 4 || size >= p->page ||
        quota_kept(p, ask) == 0) {
        return i;
    }
    uint64_t part = p->page / 4 > pool_align(ask) ? p->page / 4 : pool_align(ask);
    while (part < size) {
        part *= 2;
    }
    return aligned(p, i, size, part);
}

/* The border at which a piece begins if possible. Whole pages of a tenant with a guarantee share no
 * page: else its frees would leave fewer whole pages than the guarantee has. */
static uint64_t border(const struct pool *p, const struct pool_ask *ask, uint64_t size)
{
    uint64_t align = pool_align(ask);
    bool whole = p->source.pages != NULL && size % p->page == 0 && align < p->page &&
                 p->account[ask->tenant].quota.guaranteed > 0;
    return whole ? p->page : align;
}

static bool begins_at(const struct pool *p, uint32_t i, uint64_t align)
{
    return (block_at(&p->blocks, i)->at & (align - 1)) == 0;
}

/* At a page border: free memory as it comes, then with room for any address, then new memory. */
static int find_whole(struct pool *p, uint64_t size, const struct pool_ask *ask, unsigned flags,
                      uint32_t *ret_block)
{
    const uint64_t room[] = {size, size + p->page - POOL_ALIGN};
    unsigned found = flags & ~(unsigned)TAKE_GROW;
    for (unsigned n = 0; n < 2; n++) {
        if (find_any(p, room[n], ask->stream, found, ret_block, NULL) == 0) {
            *ret_block = aligned(p, *ret_block, size, p->page);
            if (begins_at(p, *ret_block, p->page)) {
                return 0;
            }
        }
    }
    bool grows =
        (flags & TAKE_GROW) != 0 && find_more(p, size, ask->stream, flags, ret_block, NULL) == 0;
    return grows && begins_at(p, *ret_block, p->page) ? 0 : ERR_DEVICE_MEMORY;
}

/* First with as much room as any address needs to be aligned, then as it comes: new memory begins
 * at a page border. */
static int find(struct pool *p, uint64_t size, const struct pool_ask *ask, unsigned flags,
                uint32_t *ret_block, struct err *e)
{
    uint64_t align = pool_align(ask);
    uint64_t whole = border(p, ask, size);
    uint32_t i = BLOCK_NONE;
    if ((flags & TAKE_RECALL) != 0) {
        i = find_again(p, size, whole, ask->stream);
    }
    if (i != BLOCK_NONE || (whole > align && find_whole(p, size, ask, flags, &i) == 0)) {
        *ret_block = i;
        return 0;
    }
    int rc = ERR_DEVICE_MEMORY;
    if (whole > align && (flags & TAKE_PAST) != 0) {
        return err_set(e, rc, "a piece that moves keeps its pages to itself");
    }
    if (align > POOL_ALIGN) {
        rc = find_any(p, size + align - POOL_ALIGN, ask->stream, flags, &i, NULL);
    }
    rc = rc != 0 ? find_any(p, size, ask->stream, flags, &i, e) : 0;
    if (rc != 0) {
        return rc;
    }
    i = aligned(p, at_part(p, ask, at_page(p, i, size, flags), size), size, align);
    *ret_block = i;
    return begins_at(p, i, align)
               ? 0
               : err_set(e, ERR_DEVICE_MEMORY, "no free part begins at a multiple of %llu bytes",
                         LL(align));
}

/* Breaks the handle that would be torn when a held READY block is cut, if it can be broken now. On
 * failure the block is indexed. */
static int break_for(struct pool *p, uint32_t i, uint64_t size, struct err *e)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t torn = b->state == BLOCK_READY ? torn_at(p, i, size) : UINT64_MAX;
    if (torn == UINT64_MAX || !space_has_records(p, BREAK_RECORDS) || !page_breakable(p, torn)) {
        return 0;
    }
    struct err why = ERR_INIT;
    int rc = backing_pages_break(p, i, torn, torn != b->at + size, &why);
    if (rc != 0) {
        return err_set(e, rc, "%s", why.text);
    }
    block_at(&p->blocks, i)->state = BLOCK_READY;
    return 0;
}

int pool_take(struct pool *p, uint64_t size, const struct pool_ask *ask, unsigned flags,
              uint32_t *ret_block, struct err *e)
{
    uint32_t i = BLOCK_NONE;
    if (!space_has_records(p, 1)) {
        return err_set(e, ERR_NOMEM, "the pool's records are used up");
    }
    if (quota_kept(p, ask) > 0) { /* warm blocks are not counted as whole pages */
        (void)warm_flush(p);
    }
    flags |= ask->prompt ? TAKE_LATE : 0u;
    int rc = find(p, size, ask, flags, &i, e);
    if (rc != 0) {
        return rc;
    }
    space_leave(p, i);
    rc = break_for(p, i, size, e);
    if (rc != 0) {
        return rc;
    }
    if (block_at(&p->blocks, i)->size > size) {
        space_enter(p, space_cut(p, i, size));
    }
    if (!pool_leaves_enough(p, ask)) {
        space_enter(p, space_merge(p, i));
        return err_set(e, ERR_DEVICE_MEMORY, "%llu bytes are kept for other tenants, or reserved",
                       LL(quota_kept(p, ask)));
    }
    *ret_block = i;
    return 0;
}

/* The former address may lie in a whole page that is kept for others; another place may not. */
static int take_now(struct pool *p, uint64_t size, const struct pool_ask *ask, uint32_t *ret_block,
                    struct err *e)
{
    const unsigned anywhere = TAKE_WAIT | TAKE_GROW;
    int rc = pool_take(p, size, ask, anywhere | TAKE_RECALL, ret_block, e);
    return rc == ERR_DEVICE_MEMORY && quota_kept(p, ask) > 0
               ? pool_take(p, size, ask, anywhere, ret_block, e)
               : rc;
}

/* Returns a piece to its kept place, or elsewhere: whole pages may be too few for the place, while
 * a free part of other pages is large enough. If the source has no more pages, only free memory
 * will do: growing would use up pages that are mapped at the place, in vain. */
static int come_back(struct pool *p, uint64_t size, const struct pool_ask *ask, uint32_t *ret_block,
                     struct err *e)
{
    struct err why = ERR_INIT;
    uint32_t kept = vacant_find(p, ask);
    (void)warm_flush(p);
    int rc = vacant_occupy(p, kept, ask, &why);
    if (rc == 0) {
        *ret_block = kept;
        return 0;
    }
    if (rc != ERR_DEVICE_MEMORY) {
        return take_now(p, size, ask, ret_block, e);
    }
    rc = pool_take(p, size, ask, TAKE_WAIT, ret_block, NULL);
    return rc == 0 ? 0 : err_set(e, ERR_DEVICE_MEMORY, "%s", why.text);
}

static int block_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
                       struct err *e)
{
    uint64_t size = (ask->size + POOL_ALIGN - 1) & ~(uint64_t)(POOL_ALIGN - 1);
    uint32_t i = BLOCK_NONE;
    int rc = quota_admit(p, ask, size, e);
    bool kept = rc == 0 && vacant_find(p, ask) != BLOCK_NONE;
    if (rc == 0 && !kept && quota_kept(p, ask) == 0) {
        i = warm_take(p, size, ask->stream, border(p, ask, size));
    }
    if (rc == 0 && i == BLOCK_NONE) {
        rc = kept ? come_back(p, size, ask, &i, e) : take_now(p, size, ask, &i, e);
    }
    if (rc != 0) {
        return rc;
    }
    recall_note(p, size, ask->stream, block_at(&p->blocks, i)->at);
    quota_charge(p, ask, size);
    struct block *b = block_at(&p->blocks, i);
    *ret_piece = (struct pool_piece){.offset = b->at,
                                     .size = size,
                                     .block = i,
                                     .generation = b->generation,
                                     .foreign = tenancy_claim(p, b, ask->tenant, true)};
    b->state = BLOCK_LIVE;
    b->tag = ask->tag;
    b->tenant = (uint16_t)ask->tenant;
    b->owner = pool_log(pool_align(ask));
    return 0;
}

/* ---- pieces -----------------------------------------------------------------------------------*/

static int ask_check(const struct pool *p, const struct pool_ask *ask, struct err *e)
{
    if ((ask->align & (ask->align - 1)) != 0 || ask->align > p->page) {
        return err_set(e, ERR_INVALID, "an alignment of %llu bytes: a power of two up to %llu",
                       LL(ask->align), LL(p->page));
    }
    if (ask->size == 0 || ask->stream >= p->streams || ask->tenant >= POOL_TENANTS) {
        return err_set(e, ERR_INVALID, "%llu bytes for stream %u of %u, tenant %u of %u",
                       LL(ask->size), ask->stream, p->streams, ask->tenant, POOL_TENANTS);
    }
    const struct pool_account *a = &p->account[ask->tenant];
    if (sat_add(a->meter.used, ask->size) > a->quota.hard) {
        return err_set(e, ERR_LIMIT, "tenant %u holds %llu of its %llu bytes", ask->tenant,
                       LL(a->meter.used), LL(a->quota.hard));
    }
    return 0;
}

static int tier_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
                      struct err *e)
{
    if (ask->size > sat_sub(p->space, 2 * p->page)) { /* of which its alignment may take one */
        return err_set(e, ERR_DEVICE_MEMORY, "more than the address space of %llu bytes",
                       LL(p->space));
    }
    bool small = ask->size <= POOL_SLAB_MAX && pool_align(ask) <= POOL_SLAB_MAX;
    int rc = small ? slab_alloc(p, ask, ret_piece, e) : ERR_DEVICE_MEMORY;
    if (rc != ERR_DEVICE_MEMORY && rc != ERR_LIMIT) {
        return rc;
    }
    /* small pieces, too, if no slab has room, or a new slab is over a limit */
    return block_alloc(p, ask, ret_piece, e);
}

/* Range and offset as the source knows them. */
void pool_locate(const struct pool *p, struct pool_piece *piece)
{
    piece->range = p->range;
    if (p->source.blocks != NULL) {
        const struct home *h = records_at(&p->homes, block_at(&p->blocks, piece->block)->home);
        piece->range = h->block;
        piece->offset -= h->at;
    }
}

struct pool_piece pool_piece_of(const struct pool *p, uint32_t block)
{
    const struct block *b = block_at(&p->blocks, block);
    struct pool_piece piece = {.offset = b->at,
                               .size = b->size,
                               .block = block,
                               .generation = b->generation,
                               .tenant = b->tenant};
    pool_locate(p, &piece);
    return piece;
}

/* Asks the device how far the streams have come that memory waits for. True: one has advanced. */
static bool streams_ask(struct pool *p)
{
    uint64_t before = p->moving.advances;
    for (unsigned s = 0; p->source.reached != NULL && s < p->streams; s++) {
        uint64_t seq;
        bool waits = p->line[s].oldest != BLOCK_NONE || p->line[s].oldest_deferred != RECORD_NONE ||
                     joint_needs(p, s);
        if (waits && p->source.reached(p->source.user, s, &seq, NULL) == 0) {
            pool_advance(p, s, seq);
        }
    }
    return p->moving.advances > before;
}

/* The last resorts: uses that may be over, empty slabs, memory of several streams, then pieces that
 * may move. Free objects are charged, so they are put together before a limit refuses the request.
 */
static int alloc_hard(struct pool *p, const struct pool_ask *ask, int rc,
                      struct pool_piece *ret_piece, struct err *e)
{
    if ((rc == ERR_DEVICE_MEMORY || rc == ERR_LIMIT) && streams_ask(p)) {
        rc = tier_alloc(p, ask, ret_piece, e);
    }
    if ((rc == ERR_DEVICE_MEMORY || rc == ERR_LIMIT) && slab_reclaim(p) > 0) {
        rc = tier_alloc(p, ask, ret_piece, e);
    }
    if (rc == ERR_DEVICE_MEMORY && joint_pages(p, ask)) {
        rc = tier_alloc(p, ask, ret_piece, e);
    }
    if (rc == ERR_DEVICE_MEMORY && joint_row(p, ask)) {
        rc = tier_alloc(p, ask, ret_piece, e);
    }
    if (rc == ERR_LIMIT && slab_pack(p, ask)) {
        rc = tier_alloc(p, ask, ret_piece, e);
    }
    if (rc == ERR_DEVICE_MEMORY && compact_for(p, ask)) {
        rc = tier_alloc(p, ask, ret_piece, e);
    }
    return rc;
}

/* A tenant's reservation is room for a request that draws on it. */
static int alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
                 struct err *e)
{
    const struct pool_account *a = &p->account[ask->tenant];
    p->moving.more = p->moving.full = false;
    if (p->mover.move != NULL) {
        compact_ahead(p);
    }
    p->drawn = ask->reserved ? a->reserved : 0;
    int rc = tier_alloc(p, ask, ret_piece, e);
    rc = rc != 0 ? alloc_hard(p, ask, rc, ret_piece, e) : 0;
    p->drawn = 0;
    if (rc == 0 && p->mover.move != NULL) {
        compact_served(p, ask);
    }
    return rc;
}

int pool_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
               struct err *e)
{
    struct pool_piece piece;
    uint64_t calls = p->stats.driver_calls;
    int rc = ask_check(p, ask, e);
    rc = rc == 0 ? alloc(p, ask, &piece, e) : rc;
    if (rc != 0) {
        return refuse(p, ask, rc, e);
    }
    piece.asked = ask->size;
    piece.change = p->moving.change;
    piece.tenant = (uint16_t)ask->tenant;
    uint32_t left = ask->place != NULL ? vacant_find(p, ask) : BLOCK_NONE;
    if (left != BLOCK_NONE) { /* the piece returned elsewhere */
        (void)vacant_give_up(p, left);
    }
    pressure_note(p);
    bool hit = calls == p->stats.driver_calls;
    p->stats.hits += hit;
    stats_taken(p, &piece);
    event_add(p, hit ? POOL_EVENT_HIT : POOL_EVENT_ALLOC,
              (struct pool_event){.at = piece.offset,
                                  .size = piece.size,
                                  .tenant = piece.tenant,
                                  .stream = (uint8_t)ask->stream});
    pool_locate(p, &piece);
    piece.ticket = pool_ticket(p, &piece);
    guard_check(p, piece.block);
    *ret_piece = piece;
    return 0;
}

/* ret_place NULL: the addresses are not kept. */
static int release(struct pool *p, const struct pool_piece *piece, unsigned stream, uint64_t seq,
                   struct pool_place *ret_place, struct err *e)
{
    struct block *b = piece->block < p->blocks.made ? block_at(&p->blocks, piece->block) : NULL;
    bool used = b != NULL && (b->state == BLOCK_LIVE || b->state == BLOCK_SLAB);
    if (!used || b->generation != piece->generation) {
        return err_set(e, ERR_BAD_HANDLE, "a piece of %llu bytes at %#llx was freed before",
                       LL(piece->size), LL(piece->offset));
    }
    if (b->state == BLOCK_SLAB) {
        return slab_free(p, piece, stream, seq, e);
    }
    event_add(p, POOL_EVENT_FREE,
              (struct pool_event){.at = b->at,
                                  .size = b->size,
                                  .tenant = piece->tenant,
                                  .stream = (uint8_t)stream,
                                  .value = (uint32_t)seq});
    stats_given(p, piece);
    quota_discharge(p, b->tenant, b->size);
    if (piece->foreign || piece->ticket != 0) { /* with a ticket it may hold any bytes */
        tenancy_spoil(p, b);
    }
    if (ret_place != NULL && vacant_keep(p, piece->block, stream, seq, ret_place)) {
        guard_check(p, BLOCK_NONE);
        return 0;
    }
    if (pool_over(p) == 0 && p->late.failed == 0) {
        warm_keep(p, piece->block, stream, seq);
    } else {
        (void)space_release(p, piece->block, stream, seq);
    }
    guard_check(p, BLOCK_NONE);
    return 0;
}

static int give(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
                struct pool_place *ret_place, struct err *e)
{
    if (piece->range == NULL) {
        return 0;
    }
    int rc = stream < p->streams ? release(p, piece, stream, seq, ret_place, e)
                                 : err_set(e, ERR_INVALID, "stream %u of %u", stream, p->streams);
    if (rc != 0) {
        p->stats.refused_frees++;
        return rc;
    }
    p->moving.change += piece->change != p->moving.change;
    *piece = (struct pool_piece){.range = NULL};
    (void)pool_shrink(p, p->lease.deadline_ns == POOL_LEASE_NEVER ? UINT64_MAX : SHRINK_BYTES);
    return 0;
}

int pool_free(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
              struct err *e)
{
    return give(p, piece, stream, seq, NULL, e);
}

int pool_vacate(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
                struct pool_place *ret_place, struct err *e)
{
    *ret_place = (struct pool_place){.size = 0};
    return give(p, piece, stream, seq, ret_place, e);
}

/* ---- limits -----------------------------------------------------------------------------------*/

uint64_t pool_trim(struct pool *p, uint64_t keep)
{
    (void)warm_flush(p);
    (void)slab_reclaim(p);
    uint64_t given = backing_trim(p, keep);
    event_add(p, POOL_EVENT_TRIM, (struct pool_event){.size = given});
    return given;
}

int pool_warm(struct pool *p, uint64_t bytes, struct err *e)
{
    if (p->source.pages != NULL) {
        return err_set(e, ERR_UNSUPPORTED, "memory ahead of requests from a source of pages");
    }
    bytes = bytes < pool_most(p) ? bytes : pool_most(p);
    return bytes > p->stats.size ? backing_blocks_warm(p, bytes - p->stats.size, e) : 0;
}
