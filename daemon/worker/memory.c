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

static int range_reserve(void *user, uint64_t bytes, void **ret_range, struct err *e)
{
    struct memory *m = user;
    struct backend_block *range = NULL;
    int rc = m->b->pages->reserve(m->d, bytes, &range, e);
    if (rc == 0) {
        *ret_range = range;
    }
    return rc;
}

static void range_release(void *user, void *range, uint64_t bytes)
{
    struct memory *m = user;
    (void)bytes;
    m->b->pages->release(m->d, range);
}

static int page_create(void *user, uint64_t *ret_page, struct err *e)
{
    struct memory *m = user;
    return m->b->pages->create(m->d, ret_page, e);
}

static void page_destroy(void *user, uint64_t page)
{
    struct memory *m = user;
    m->b->pages->destroy(m->d, page);
}

static int page_map(void *user, void *range, uint64_t at, uint64_t page, struct err *e)
{
    struct memory *m = user;
    return m->b->pages->map(m->d, range, at, page, e);
}

static int page_unmap(void *user, void *range, uint64_t at, struct err *e)
{
    struct memory *m = user;
    return m->b->pages->unmap(m->d, range, at, e);
}

static int pages_access(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    struct memory *m = user;
    return m->b->pages->access(m->d, range, at, bytes, e);
}

/* Pages where the device has them: then no request fails for want of memory in one piece. */
int memory_init(struct memory *m, const struct backend *b, struct backend_device *d, uint64_t limit,
                uint64_t max_alloc, struct err *e)
{
    *m = (struct memory){.b = b, .d = d};
    uint64_t page = b->pages != NULL ? b->pages->page_bytes(d) : 0;
    m->pages = (struct pool_pages){.page_bytes = page,
                                   .reserve = range_reserve,
                                   .release = range_release,
                                   .create = page_create,
                                   .destroy = page_destroy,
                                   .map = page_map,
                                   .unmap = page_unmap,
                                   .access = pages_access};
    m->blocks = (struct pool_blocks){
        .alloc = block_alloc, .free = block_free, .max_block = max_alloc, .chunk = CHUNK_BYTES};
    const struct pool_source source = {
        .user = m, .pages = page != 0 ? &m->pages : NULL, .blocks = page != 0 ? NULL : &m->blocks};
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
