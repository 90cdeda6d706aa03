/*
 * Memory from a source of blocks. Each source block (a home) has its own addresses between edges
 * that no merge crosses, and goes back as a whole.
 */
#include "daemon/pool/pool_int.h"

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + POOL_ALIGN - 1) & ~(uint64_t)(POOL_ALIGN - 1);
}

uint64_t backing_blocks_drop(struct pool *p, uint32_t i)
{
    struct block *b = block_at(&p->blocks, i);
    struct home *h = records_at(&p->homes, b->home);
    uint64_t bytes = h->bytes;
    event_add(p, POOL_EVENT_UNMAP, (struct pool_event){.at = h->at, .size = bytes});
    space_leave(p, i);
    p->stats.driver_calls++;
    p->source.blocks->free(p->source.user, h->block, bytes);
    p->stats.size -= bytes;
    h->block = NULL;
    records_give(&p->homes, b->home);
    b->state = BLOCK_VOID;
    b->edge = 0;
    b->home = 0;
    space_enter(p, space_merge(p, i));
    return bytes;
}

/* Frees the smallest homes first until `bytes` more fit into the limit. */
static bool make_room(struct pool *p, uint64_t bytes)
{
    if (bytes > pool_most(p)) {
        return false;
    }
    if (bytes > pool_room(p)) {
        uint64_t over = p->stats.size + bytes - pool_most(p);
        if (over > p->whole_bytes) {
            return false;
        }
        (void)backing_trim(p, p->whole_bytes - over);
    }
    return bytes <= pool_room(p);
}

static int source_alloc(struct pool *p, uint64_t bytes, void **ret_block, struct err *e)
{
    if (!make_room(p, bytes)) {
        return err_set(e, ERR_DEVICE_MEMORY, "over the pool's limit of %llu bytes",
                       LL(p->stats.limit));
    }
    p->stats.driver_calls++;
    int rc = p->source.blocks->alloc(p->source.user, bytes, ret_block, e);
    if (rc != ERR_DEVICE_MEMORY || backing_trim(p, 0) == 0) {
        return rc;
    }
    p->stats.driver_calls++;
    return p->source.blocks->alloc(p->source.user, bytes, ret_block, e);
}

static int home_create(struct pool *p, uint64_t bytes, uint32_t *ret_home, struct err *e)
{
    uint32_t index = records_take(&p->homes);
    void *block = NULL;
    if (index == RECORD_NONE) {
        return err_set(e, ERR_NOMEM, "the pool's records are used up");
    }
    int rc = source_alloc(p, bytes, &block, e);
    if (rc != 0) {
        records_give(&p->homes, index);
        return rc;
    }
    struct home *h = records_at(&p->homes, index);
    h->block = block;
    h->bytes = bytes;
    h->tenant = TENANCY_MIXED;
    p->stats.size += bytes;
    p->stats.size_peak = p->stats.size > p->stats.size_peak ? p->stats.size : p->stats.size_peak;
    *ret_home = index;
    return 0;
}

static int place(struct pool *p, uint32_t home, uint32_t *ret_block, struct err *e)
{
    struct home *h = records_at(&p->homes, home);
    uint32_t u = fit_find(&p->void_fit, &p->blocks, h->bytes);
    if (u == BLOCK_NONE || !space_has_records(p, 2)) {
        return err_set(e, ERR_NOMEM, "no %llu bytes of addresses in a row", LL(h->bytes));
    }
    space_leave(p, u);
    struct block *b = block_at(&p->blocks, u);
    if (b->size > h->bytes) {
        space_enter(p, space_cut(p, u, h->bytes));
    }
    h->at = b->at;
    b->home = home;
    b->edge = 1;
    b->state = BLOCK_READY;
    space_enter(p, u);
    *ret_block = u;
    event_add(p, POOL_EVENT_MAP, (struct pool_event){.at = h->at, .size = h->bytes});
    return 0;
}

static int grow(struct pool *p, uint64_t bytes, uint32_t *ret_block, struct err *e)
{
    uint32_t home = RECORD_NONE;
    int rc = home_create(p, bytes, &home, e);
    if (rc != 0) {
        return rc;
    }
    struct home *h = records_at(&p->homes, home);
    rc = place(p, home, ret_block, e);
    if (rc == 0 && p->source.clear != NULL) {
        p->stats.driver_calls++;
        if (p->source.clear(p->source.user, h->block, 0, bytes, NULL) == 0) {
            h->tenant = TENANCY_CLEAN;
        }
    }
    if (rc != 0) {
        p->stats.driver_calls++;
        p->source.blocks->free(p->source.user, h->block, bytes);
        p->stats.size -= bytes;
        h->block = NULL;
        records_give(&p->homes, home);
    }
    return rc;
}

int backing_blocks_grow(struct pool *p, uint64_t size, uint32_t *ret_block, struct err *e)
{
    const struct pool_blocks *o = p->source.blocks;
    size = rounded(size);
    if (o->max_block != 0 && size > o->max_block) {
        return err_set(e, ERR_DEVICE_MEMORY, "the device gives at most %llu bytes in one block",
                       LL(o->max_block));
    }
    bool shares = size < o->chunk && (o->max_block == 0 || o->chunk <= o->max_block);
    if (shares && o->chunk <= pool_room(p) && grow(p, o->chunk, ret_block, NULL) == 0) {
        return 0;
    }
    return grow(p, size, ret_block, e);
}

int backing_blocks_warm(struct pool *p, uint64_t bytes, struct err *e)
{
    uint64_t chunk = p->source.blocks->chunk;
    uint64_t most = p->source.blocks->max_block;
    uint32_t block;
    int rc = 0;
    chunk = chunk == 0 ? bytes : chunk;
    chunk = most != 0 && chunk > most ? most : chunk;
    for (uint64_t got = 0; rc == 0 && got < bytes && chunk <= pool_room(p); got += chunk) {
        rc = grow(p, chunk, &block, e);
    }
    return rc;
}

void backing_blocks_finish(struct pool *p)
{
    for (uint32_t i = 0; i < p->homes.made; i++) {
        const struct home *h = records_at(&p->homes, i);
        if (h->block != NULL) {
            p->source.blocks->free(p->source.user, h->block, h->bytes);
        }
    }
}
