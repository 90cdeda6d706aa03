#include "daemon/worker/memory.h"

#include "proto/frames.h"

#define CHUNK_BYTES (2u << 20) /* what smaller requests share */

static int block_alloc(void *user, uint64_t size, void **ret_block, struct err *e)
{
    struct memory *m = user;
    struct backend_block *block = NULL;
    int rc = m->b->memory->alloc(m->d, size, &block, e);
    if (rc == 0) {
        *ret_block = block;
    }
    return rc;
}

static void block_free(void *user, void *block, uint64_t size)
{
    struct memory *m = user;
    (void)size;
    m->b->memory->free(m->d, block);
}

int memory_init(struct memory *m, const struct backend *b, struct backend_device *d, uint64_t limit,
                uint64_t max_alloc, struct err *e)
{
    *m = (struct memory){.b = b, .d = d};
    m->blocks = (struct pool_blocks){
        .alloc = block_alloc, .free = block_free, .max_block = max_alloc, .chunk = CHUNK_BYTES};
    const struct pool_source source = {.user = m, .blocks = &m->blocks};
    const struct pool_options options = {.limit = limit, .streams = 1};
    return pool_create(&source, &options, &m->pool, e);
}

void memory_finish(struct memory *m)
{
    pool_destroy(m->pool);
    m->pool = NULL;
}

int memory_alloc(struct memory *m, uint64_t size, struct memory_piece *ret_piece, struct err *e)
{
    struct memory_piece piece = {.ref = {.block = NULL}};
    const struct pool_ask ask = {.size = size};
    int rc = pool_alloc(m->pool, &ask, &piece.pool, e);
    if (rc == 0) {
        piece.ref = (struct backend_ref){.block = piece.pool.range, .offset = piece.pool.offset};
        *ret_piece = piece;
    }
    return rc;
}

void memory_free(struct memory *m, struct memory_piece *piece)
{
    if (piece->ref.block != NULL) {
        (void)pool_free(m->pool, &piece->pool, 0, 0, NULL); /* fails for what is not live only */
        piece->ref.block = NULL;
    }
}

void memory_trim(struct memory *m)
{
    (void)pool_trim(m->pool, 0);
}

void memory_stats(const struct memory *m, struct msg_w_pool *ret_stats)
{
    struct pool_stats s;
    pool_stats(m->pool, &s);
    *ret_stats = (struct msg_w_pool){.size = s.size,
                                     .used = s.used,
                                     .peak = s.peak,
                                     .cached = s.cached,
                                     .largest_free = s.largest_free,
                                     .allocations = s.allocations,
                                     .frees = s.frees,
                                     .hits = s.hits,
                                     .failures = s.failures,
                                     .driver_calls = s.driver_calls,
                                     .live = s.live};
}
