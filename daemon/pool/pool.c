#include <stdlib.h>
#include <string.h>

#include "daemon/pool/pool_int.h"

#define BLOCKS_MAX   4194304u
#define EVENTS       16384u
#define EVENTS_MAX   (1u << 24)
#define SPACE_FACTOR 8u
#define SPACE_MIN    (UINT64_C(1) << 30)
#define SPACE_BLOCKS (UINT64_C(1) << 50) /* addresses of a source of blocks cost nothing */

/* ---- create, destroy --------------------------------------------------------------------------*/

static int tables_init(struct pool *p, const struct pool_options *o, struct err *e)
{
    uint32_t blocks = o->max_blocks != 0 ? o->max_blocks : BLOCKS_MAX;
    int rc = records_init(&p->blocks, sizeof(struct block), blocks, e);
    rc = rc != 0 ? rc : records_init(&p->slabs, sizeof(struct slab), blocks, e);
    rc = rc != 0 ? rc : records_init(&p->deferred, sizeof(struct deferred), blocks, e);
    rc = rc != 0 ? rc : records_init(&p->homes, sizeof(struct home), blocks, e);
    fit_init(&p->void_fit);
    fit_init(&p->ready);
    for (unsigned s = 0; s < POOL_STREAMS; s++) {
        fit_init(&p->pending[s]);
        p->line[s] = (struct line){RECORD_NONE, RECORD_NONE, RECORD_NONE, RECORD_NONE};
        for (unsigned c = 0; c < SLAB_CLASSES; c++) {
            p->partial[s][c] = RECORD_NONE;
        }
    }
    for (unsigned i = 0; i < WHOLE_LISTS; i++) {
        p->whole[i] = BLOCK_NONE;
    }
    memset(p->tenant_limit, 0xff, sizeof p->tenant_limit);
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
    return p->event != NULL ? 0 : err_set(e, ERR_NOMEM, "a log of %u events", count);
}

static int space_init(struct pool *p, const struct pool_options *o, struct err *e)
{
    int rc = 0;
    p->page = p->source.pages != NULL ? p->source.pages->page_bytes : POOL_ALIGN;
    p->space = SPACE_BLOCKS;
    if (p->source.pages != NULL) {
        uint64_t wanted = o->limit > UINT64_MAX / 16 ? UINT64_MAX / 2 : o->limit * SPACE_FACTOR;
        wanted = wanted < SPACE_MIN ? SPACE_MIN : wanted;
        wanted = o->address_bytes != 0 ? o->address_bytes : wanted;
        p->space = wanted & ~(p->page - 1);
        p->slot = calloc(p->space / p->page, sizeof *p->slot);
        p->slot_tenant = calloc(p->space / p->page, sizeof *p->slot_tenant);
        rc = p->slot == NULL || p->slot_tenant == NULL
                 ? err_set(e, ERR_NOMEM, "a table of pages")
                 : p->source.pages->reserve(p->source.user, p->space, &p->range, e);
    }
    if (rc == 0) {
        uint32_t all = records_take(&p->blocks);
        *block_at(&p->blocks, all) = (struct block){
            .size = p->space, .before = BLOCK_NONE, .after = BLOCK_NONE, .state = BLOCK_VOID};
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
        return err_set(e, ERR_NOMEM, "a pool");
    }
    p->source = *source;
    p->streams = options->streams;
    p->stats.limit = options->limit;
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
    records_finish(&p->deferred);
    records_finish(&p->homes);
    free(p->slot);
    free(p->slot_tenant);
    free(p->event);
    free(p);
}

/* ---- blocks -----------------------------------------------------------------------------------*/

int pool_wait(struct pool *p, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    if (p->source.wait == NULL) {
        return err_set(e, ERR_UNSUPPORTED, "waits between streams");
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

/* The closer fit of what the stream freed itself and of what is free for all. */
static uint32_t find_now(const struct pool *p, uint64_t size, unsigned stream)
{
    uint32_t own = fit_find(&p->pending[stream], &p->blocks, size);
    uint32_t ready = fit_find(&p->ready, &p->blocks, size);
    return size_of(p, own) <= size_of(p, ready) ? own : ready;
}

static uint32_t find_waiting(struct pool *p, uint64_t size, unsigned stream)
{
    for (unsigned other = 0; other < p->streams; other++) {
        uint32_t i = other == stream ? BLOCK_NONE : fit_find(&p->pending[other], &p->blocks, size);
        if (i != BLOCK_NONE &&
            pool_wait(p, stream, other, block_at(&p->blocks, i)->seq, NULL) == 0) {
            return i;
        }
    }
    return BLOCK_NONE;
}

/* A source's block that is free as a whole could go back to it; a small piece would hold it. */
static bool wasteful(const struct pool *p, uint32_t i, uint64_t size)
{
    const struct block *b = block_at(&p->blocks, i);
    uint64_t at;
    return p->source.blocks != NULL && b->size > p->source.blocks->chunk &&
           b->size - size > size / 8 && space_whole(p, b, &at) != 0;
}

int pool_take(struct pool *p, uint64_t size, unsigned stream, unsigned flags, uint32_t *ret_block,
              struct err *e)
{
    if (!space_has_records(p, 1)) {
        return err_set(e, ERR_NOMEM, "the pool's records are used up");
    }
    bool grows = (flags & TAKE_GROW) != 0;
    uint32_t i = find_now(p, size, stream);
    if (i != BLOCK_NONE && grows && wasteful(p, i, size) && backing_grow(p, size, &i, NULL) != 0) {
        i = find_now(p, size, stream); /* what was free may have gone back to the source */
    }
    if (i == BLOCK_NONE && (flags & TAKE_WAIT) != 0) {
        i = find_waiting(p, size, stream);
    }
    int rc = i != BLOCK_NONE ? 0 : grows ? backing_grow(p, size, &i, e) : ERR_DEVICE_MEMORY;
    if (rc != 0) {
        return rc;
    }
    space_leave(p, i);
    if (block_at(&p->blocks, i)->size > size) {
        space_enter(p, space_cut(p, i, size));
    }
    *ret_block = i;
    return 0;
}

static int block_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
                       struct err *e)
{
    uint64_t size = (ask->size + POOL_ALIGN - 1) & ~(uint64_t)(POOL_ALIGN - 1);
    uint32_t i = BLOCK_NONE;
    int rc = pool_take(p, size, ask->stream, TAKE_WAIT | TAKE_GROW, &i, e);
    if (rc != 0) {
        return rc;
    }
    struct block *b = block_at(&p->blocks, i);
    *ret_piece = (struct pool_piece){.offset = b->at,
                                     .size = size,
                                     .block = i,
                                     .generation = b->generation,
                                     .foreign = tenancy_claim(p, b, ask->tenant)};
    b->state = BLOCK_LIVE;
    b->tenant = (uint16_t)ask->tenant;
    return 0;
}

/* ---- pieces -----------------------------------------------------------------------------------*/

static int ask_check(const struct pool *p, const struct pool_ask *ask, struct err *e)
{
    if (ask->size == 0 || ask->stream >= p->streams || ask->tenant >= POOL_TENANTS) {
        return err_set(e, ERR_INVALID, "%llu bytes for stream %u of %u, tenant %u of %u",
                       LL(ask->size), ask->stream, p->streams, ask->tenant, POOL_TENANTS);
    }
    uint64_t used = p->tenant[ask->tenant].used;
    uint64_t limit = p->tenant_limit[ask->tenant];
    if (limit != UINT64_MAX && (used > limit || ask->size > limit - used)) {
        return err_set(e, ERR_LIMIT, "tenant %u holds %llu of its %llu bytes, %llu more wanted",
                       ask->tenant, LL(used), LL(limit), LL(ask->size));
    }
    return 0;
}

static int refuse(struct pool *p, const struct pool_ask *ask, int rc, struct err *e)
{
    p->stats.failures++;
    event_add(p, POOL_EVENT_REFUSE,
              (struct pool_event){.size = ask->size,
                                  .tenant = (uint16_t)ask->tenant,
                                  .stream = (uint8_t)ask->stream,
                                  .value = (uint32_t)-rc});
    if (rc != ERR_DEVICE_MEMORY || e == NULL) {
        return rc;
    }
    return err_wrap(e,
                    "%llu bytes wanted by tenant %u (holds %llu); largest free %llu; pool has %llu "
                    "of %llu, %llu wait for streams",
                    LL(ask->size), ask->tenant, LL(pool_tenant_used(p, ask->tenant)),
                    LL(stats_largest_free(p)), LL(p->stats.size), LL(p->stats.limit),
                    LL(p->stats.pending));
}

static int tier_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
                      struct err *e)
{
    if (ask->size > p->space - p->page) {
        return err_set(e, ERR_DEVICE_MEMORY, "more than the address space of %llu bytes",
                       LL(p->space));
    }
    int rc = ask->size <= POOL_SLAB_MAX ? slab_alloc(p, ask, ret_piece, e) : ERR_DEVICE_MEMORY;
    if (rc != ERR_DEVICE_MEMORY) {
        return rc;
    }
    /* a small one, too, where no slab has room any more */
    return block_alloc(p, ask, ret_piece, e);
}

/* Range and offset as the source knows them. */
static void locate(const struct pool *p, struct pool_piece *piece)
{
    piece->range = p->range;
    if (p->source.blocks != NULL) {
        const struct home *h = records_at(&p->homes, block_at(&p->blocks, piece->block)->home);
        piece->range = h->block;
        piece->offset -= h->at;
    }
}

int pool_alloc(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
               struct err *e)
{
    struct pool_piece piece;
    uint64_t calls = p->stats.driver_calls;
    int rc = ask_check(p, ask, e);
    if (rc == 0) {
        rc = tier_alloc(p, ask, &piece, e);
        if (rc == ERR_DEVICE_MEMORY && slab_reclaim(p) > 0) {
            rc = tier_alloc(p, ask, &piece, e);
        }
    }
    if (rc != 0) {
        return refuse(p, ask, rc, e);
    }
    piece.asked = ask->size;
    piece.tenant = (uint16_t)ask->tenant;
    bool hit = calls == p->stats.driver_calls;
    p->stats.hits += hit;
    stats_taken(p, &piece);
    event_add(p, hit ? POOL_EVENT_HIT : POOL_EVENT_ALLOC,
              (struct pool_event){.at = piece.offset,
                                  .size = piece.size,
                                  .tenant = piece.tenant,
                                  .stream = (uint8_t)ask->stream});
    locate(p, &piece);
    *ret_piece = piece;
    return 0;
}

static int release(struct pool *p, const struct pool_piece *piece, unsigned stream, uint64_t seq,
                   struct err *e)
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
    (void)space_release(p, piece->block, stream, seq);
    return 0;
}

int pool_free(struct pool *p, struct pool_piece *piece, unsigned stream, uint64_t seq,
              struct err *e)
{
    if (piece->range == NULL) {
        return 0;
    }
    int rc = stream < p->streams ? release(p, piece, stream, seq, e)
                                 : err_set(e, ERR_INVALID, "stream %u of %u", stream, p->streams);
    if (rc != 0) {
        p->stats.refused_frees++;
        return rc;
    }
    *piece = (struct pool_piece){.range = NULL};
    if (p->stats.size > p->stats.limit && p->whole_bytes > 0) {
        uint64_t over = p->stats.size - p->stats.limit;
        (void)backing_trim(p, p->whole_bytes > over ? p->whole_bytes - over : 0);
    }
    return 0;
}

/* ---- limits -----------------------------------------------------------------------------------*/

uint64_t pool_trim(struct pool *p, uint64_t keep)
{
    (void)slab_reclaim(p);
    uint64_t given = backing_trim(p, keep);
    event_add(p, POOL_EVENT_TRIM, (struct pool_event){.size = given});
    return given;
}

void pool_set_limit(struct pool *p, uint64_t limit)
{
    p->stats.limit = limit;
    event_add(p, POOL_EVENT_LIMIT, (struct pool_event){.size = limit});
    if (p->stats.size > limit) {
        uint64_t over = p->stats.size - limit;
        (void)pool_trim(p, p->whole_bytes > over ? p->whole_bytes - over : 0);
    }
}

void pool_set_tenant_limit(struct pool *p, unsigned tenant, uint64_t bytes)
{
    if (tenant < POOL_TENANTS) {
        p->tenant_limit[tenant] = bytes;
    }
}
