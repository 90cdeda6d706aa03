#include <stdlib.h>
#include <utlist.h>

#include "daemon/pool/pool_int.h"

#define LL(bytes) ((unsigned long long)(bytes))

int pool_create(const struct pool_source *source, uint64_t limit, struct pool **ret_pool,
                struct err *e)
{
    struct pool *p = calloc(1, sizeof *p);
    if (!p) {
        return err_set(e, ERR_NOMEM, "a pool");
    }
    p->source = *source;
    p->stats.limit = limit;
    *ret_pool = p;
    return 0;
}

/* ---- blocks of the source ------------------------------------------------------------------ */

static void run_release(struct pool *p, struct run *r)
{
    DL_DELETE2(p->all, r, all_prev, all_next);
    p->source.free(p->source.user, r->block, r->size);
    p->stats.driver_calls++;
    p->stats.size -= r->size;
    free(r->pieces);
    free(r);
}

static struct run **cache_list(struct pool *p, const struct run *r)
{
    return r->pieces ? &p->empty : &p->cached[r->class];
}

static void cache_add(struct pool *p, struct run *r)
{
    struct run **list = cache_list(p, r);
    r->state = RUN_CACHED;
    DL_PREPEND(*list, r);
    DL_APPEND2(p->by_age, r, age_prev, age_next);
    p->stats.cached += r->size;
}

static void cache_remove(struct pool *p, struct run *r)
{
    struct run **list = cache_list(p, r);
    DL_DELETE(*list, r);
    DL_DELETE2(p->by_age, r, age_prev, age_next);
    p->stats.cached -= r->size;
}

uint64_t pool_trim(struct pool *p, uint64_t keep)
{
    uint64_t before = p->stats.size;
    while (p->by_age && p->stats.cached > keep) {
        struct run *r = p->by_age;
        cache_remove(p, r);
        run_release(p, r);
    }
    return before - p->stats.size;
}

static uint64_t room(const struct pool *p)
{
    return p->stats.size < p->stats.limit ? p->stats.limit - p->stats.size : 0;
}

/* Bytes of the largest block that the limits allow once all that is cached was given back. */
static uint64_t reachable(const struct pool *p)
{
    uint64_t kept = p->stats.size - p->stats.cached;
    uint64_t most = kept < p->stats.limit ? p->stats.limit - kept : 0;
    return p->source.max_block && p->source.max_block < most ? p->source.max_block : most;
}

static int source_alloc(struct pool *p, uint64_t size, void **ret_block, struct err *e)
{
    if (size > reachable(p)) {
        return err_set(e, ERR_DEVICE_MEMORY, "over the limit");
    }
    while (size > room(p)) {
        pool_trim(p, p->stats.cached - 1);
    }
    p->stats.driver_calls++;
    int rc = p->source.alloc(p->source.user, size, ret_block, e);
    if (rc != ERR_DEVICE_MEMORY || !p->by_age) {
        return rc;
    }
    pool_trim(p, 0);
    p->stats.driver_calls++;
    return p->source.alloc(p->source.user, size, ret_block, e);
}

static int run_create(struct pool *p, uint64_t size, bool chunk, struct run **ret_run,
                      struct err *e)
{
    struct run *r = calloc(1, sizeof *r);
    struct pieces *pieces = chunk ? calloc(1, sizeof *pieces) : NULL;
    int rc = !r || (chunk && !pieces) ? err_set(e, ERR_NOMEM, "a block's description")
                                      : source_alloc(p, size, &r->block, e);
    if (rc != 0) {
        free(pieces);
        free(r);
        return rc;
    }
    r->size = size;
    r->pieces = pieces;
    p->stats.size += size;
    DL_APPEND2(p->all, r, all_prev, all_next);
    *ret_run = r;
    return 0;
}

void pool_destroy(struct pool *p)
{
    if (!p) {
        return;
    }
    while (p->all) {
        run_release(p, p->all);
    }
    free(p);
}

/* ---- small pieces -------------------------------------------------------------------------- */

static void chunk_start(struct pool *p, struct run *r, unsigned class)
{
    r->class = class;
    r->state = RUN_PARTIAL;
    r->pieces->count = (uint32_t)(POOL_CHUNK_BYTES / class_bytes(class));
    r->pieces->fresh = 0;
    r->pieces->stack_used = 0;
    DL_PREPEND(p->partial[class], r);
}

static int chunk_find(struct pool *p, unsigned class, struct run **ret_run, struct err *e)
{
    struct run *r = p->partial[class];
    if (r) {
        *ret_run = r;
        return 0;
    }
    if (p->empty) {
        r = p->empty;
        cache_remove(p, r);
    } else {
        int rc = run_create(p, POOL_CHUNK_BYTES, true, &r, e);
        if (rc != 0) {
            return rc;
        }
    }
    chunk_start(p, r, class);
    *ret_run = r;
    return 0;
}

static struct pool_piece chunk_take(struct pool *p, struct run *r)
{
    struct pieces *c = r->pieces;
    uint32_t index = c->stack_used > 0 ? c->stack[--c->stack_used] : c->fresh++;
    c->is_live[index / WORD_BITS] |= UINT64_C(1) << index % WORD_BITS;
    c->live++;
    if (c->live == c->count) {
        DL_DELETE(p->partial[r->class], r);
        r->state = RUN_FULL;
    }
    uint64_t size = class_bytes(r->class);
    return (struct pool_piece){r->block, index * size, size, r};
}

static void chunk_give(struct pool *p, struct run *r, uint64_t offset)
{
    struct pieces *c = r->pieces;
    uint32_t index = (uint32_t)(offset / class_bytes(r->class));
    c->is_live[index / WORD_BITS] &= ~(UINT64_C(1) << index % WORD_BITS);
    c->live--;
    c->stack[c->stack_used++] = (uint16_t)index;
    if (r->state == RUN_FULL) {
        r->state = RUN_PARTIAL;
        DL_PREPEND(p->partial[r->class], r);
    }
    if (c->live == 0) {
        DL_DELETE(p->partial[r->class], r);
        cache_add(p, r);
    }
}

/* ---- own blocks ---------------------------------------------------------------------------- */

static struct pool_piece own_take(struct run *r)
{
    r->state = RUN_LIVE;
    return (struct pool_piece){r->block, 0, r->size, r};
}

/* Near the limits the class may not fit where the request does. */
static uint64_t own_bytes(const struct pool *p, uint64_t size, unsigned class)
{
    uint64_t whole = class_bytes(class);
    return whole <= reachable(p) ? whole : (size + POOL_ALIGN - 1) / POOL_ALIGN * POOL_ALIGN;
}

static int own_alloc(struct pool *p, uint64_t size, unsigned class, struct pool_piece *ret_piece,
                     struct err *e)
{
    struct run *r = p->cached[class];
    if (r) {
        cache_remove(p, r);
        *ret_piece = own_take(r);
        return 0;
    }
    uint64_t bytes = own_bytes(p, size, class);
    int rc = run_create(p, bytes, false, &r, e);
    if (rc != 0) {
        return rc;
    }
    r->class = class;
    r->odd = bytes != class_bytes(class);
    *ret_piece = own_take(r);
    return 0;
}

static void own_give(struct pool *p, struct run *r)
{
    if (r->odd) {
        run_release(p, r);
    } else {
        cache_add(p, r);
    }
}

/* ---- requests ------------------------------------------------------------------------------ */

static int piece_find(struct pool *p, uint64_t size, struct pool_piece *ret_piece, struct err *e)
{
    unsigned class = class_of(size);
    if (class >= CLASS_SMALL_COUNT) {
        return own_alloc(p, size, class, ret_piece, e);
    }
    struct run *r = NULL;
    int rc = chunk_find(p, class, &r, e);
    if (rc == ERR_DEVICE_MEMORY) {
        return own_alloc(p, size, class, ret_piece, e);
    }
    if (rc == 0) {
        *ret_piece = chunk_take(p, r);
    }
    return rc;
}

static uint64_t largest_free(const struct pool *p)
{
    uint64_t most = reachable(p) / POOL_ALIGN * POOL_ALIGN;
    for (unsigned class = CLASS_SMALL_COUNT; class -- > 0 && class_bytes(class) > most;) {
        if (p->partial[class]) {
            return class_bytes(class);
        }
    }
    return most;
}

static int refuse(struct pool *p, uint64_t size, int rc, struct err *e)
{
    p->stats.failures++;
    if (rc != ERR_DEVICE_MEMORY) {
        return rc;
    }
    int vendor = e ? e->vendor : 0;
    return err_set_vendor(e, ERR_DEVICE_MEMORY, vendor,
                          "%llu bytes of device memory wanted, the largest free are %llu of %llu",
                          LL(size), LL(largest_free(p)), LL(p->stats.limit));
}

int pool_alloc(struct pool *p, uint64_t size, struct pool_piece *ret_piece, struct err *e)
{
    if (size == 0) {
        return err_set(e, ERR_INVALID, "0 bytes of device memory wanted");
    }
    if (size > CLASS_BYTES_MAX) {
        return refuse(p, size, ERR_DEVICE_MEMORY, e);
    }
    uint64_t calls = p->stats.driver_calls;
    struct pool_piece piece;
    int rc = piece_find(p, size, &piece, e);
    if (rc != 0) {
        return refuse(p, size, rc, e);
    }
    p->stats.allocations++;
    p->stats.live++;
    p->stats.hits += calls == p->stats.driver_calls;
    p->stats.used += piece.size;
    if (p->stats.used > p->stats.peak) {
        p->stats.peak = p->stats.used;
    }
    *ret_piece = piece;
    return 0;
}

void pool_free(struct pool *p, struct pool_piece *piece)
{
    struct run *r = piece->owner;
    if (!r) {
        return;
    }
    p->stats.frees++;
    p->stats.live--;
    p->stats.used -= piece->size;
    if (r->pieces) {
        chunk_give(p, r, piece->offset);
    } else {
        own_give(p, r);
    }
    *piece = (struct pool_piece){0};
    pool_set_limit(p, p->stats.limit);
}

void pool_set_limit(struct pool *p, uint64_t limit)
{
    p->stats.limit = limit;
    while (p->stats.size > limit && p->by_age) {
        pool_trim(p, p->stats.cached - 1);
    }
}

void pool_stats(const struct pool *p, struct pool_stats *ret_stats)
{
    *ret_stats = p->stats;
    ret_stats->largest_free = largest_free(p);
}
