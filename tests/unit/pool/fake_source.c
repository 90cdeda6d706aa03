#include "tests/unit/pool/fake_source.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

static int fails(struct fake_source *f, struct err *e)
{
    f->calls++;
    return f->calls == f->fail_at || f->calls == f->fail_again
               ? err_set(e, f->fail_code, "call %llu fails", (unsigned long long)f->calls)
               : 0;
}

static int reserve(void *user, uint64_t bytes, void **ret_range, struct err *e)
{
    struct fake_source *f = user;
    int rc = fails(f, e);
    if (rc == 0 && f->space_most != 0 && bytes > f->space_most) {
        rc = err_set(e, ERR_NOMEM, "no %llu bytes of addresses", (unsigned long long)bytes);
    }
    if (rc == 0) {
        ck_assert(!f->reserved);
        ck_assert_uint_le(bytes, FAKE_SLOTS * f->pages.page_bytes);
        f->reserved = true;
        f->space = bytes;
        *ret_range = f;
    }
    return rc;
}

static void release(void *user, void *range, uint64_t bytes)
{
    struct fake_source *f = user;
    ck_assert(range == f && f->reserved && bytes == f->space);
    for (uint64_t i = 0; i < bytes / f->pages.page_bytes; i++) {
        ck_assert_uint_eq(f->slot[i], 0);
    }
    f->reserved = false;
}

static int create(void *user, uint64_t *ret_page, struct err *e)
{
    struct fake_source *f = user;
    int rc = fails(f, e);
    if (rc == 0 && f->taken + f->pages.page_bytes > f->capacity) {
        rc = err_set(e, ERR_DEVICE_MEMORY, "the device is full");
    }
    if (rc != 0) {
        return rc;
    }
    do {
        f->next_page = (f->next_page + 1) % (f->pages_most != 0 ? f->pages_most : FAKE_PAGES);
    } while (f->page_live[f->next_page]);
    f->page_live[f->next_page] = true;
    f->taken += f->pages.page_bytes;
    *ret_page = f->next_page + 1;
    return 0;
}

static void destroy(void *user, uint64_t page)
{
    struct fake_source *f = user;
    ck_assert(page >= 1 && page <= FAKE_PAGES && f->page_live[page - 1]);
    ck_assert_uint_eq(f->mapped[page - 1], 0);
    f->page_live[page - 1] = false;
    f->taken -= f->pages.page_bytes;
}

static int map(void *user, void *range, uint64_t at, uint64_t page, struct err *e)
{
    struct fake_source *f = user;
    ck_assert(range == f && at % f->pages.page_bytes == 0 && at < f->space);
    ck_assert(f->page_live[page - 1]);
    ck_assert_uint_eq(f->slot[at / f->pages.page_bytes], 0);
    ck_assert(f->pages.aliases || f->mapped[page - 1] == 0);
    int rc = fails(f, e);
    if (rc == 0) {
        f->mapped[page - 1]++;
        f->slot[at / f->pages.page_bytes] = (uint32_t)page;
        f->accessible[at / f->pages.page_bytes] = false;
    }
    return rc;
}

static int unmap(void *user, void *range, uint64_t at, struct err *e)
{
    struct fake_source *f = user;
    ck_assert(range == f && at % f->pages.page_bytes == 0);
    ck_assert_uint_ne(f->slot[at / f->pages.page_bytes], 0);
    int rc = fails(f, e);
    if (rc == 0) {
        f->mapped[f->slot[at / f->pages.page_bytes] - 1]--;
        f->slot[at / f->pages.page_bytes] = 0;
        f->accessible[at / f->pages.page_bytes] = false;
    }
    return rc;
}

static int access_range(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    struct fake_source *f = user;
    ck_assert(range == f && at % f->pages.page_bytes == 0 && bytes % f->pages.page_bytes == 0);
    int rc = fails(f, e);
    for (uint64_t i = at / f->pages.page_bytes; rc == 0 && i < (at + bytes) / f->pages.page_bytes;
         i++) {
        ck_assert_uint_ne(f->slot[i], 0);
        f->accessible[i] = true;
    }
    return rc;
}

static int block_alloc(void *user, uint64_t bytes, void **ret_block, struct err *e)
{
    struct fake_source *f = user;
    int rc = fails(f, e);
    if (rc == 0 && bytes > f->capacity - f->taken) {
        rc = err_set_vendor(e, ERR_DEVICE_MEMORY, -4, "the device is full");
    }
    if (rc == 0) {
        ck_assert_uint_eq(bytes % POOL_ALIGN, 0);
        ck_assert_uint_lt(f->blocks_made, FAKE_PAGES);
        f->taken += bytes;
        f->block[f->blocks_made] = (struct fake_block){.bytes = bytes, .live = true};
        *ret_block = &f->block[f->blocks_made++];
    }
    return rc;
}

static void block_free(void *user, void *block, uint64_t bytes)
{
    struct fake_source *f = user;
    struct fake_block *b = block;
    ck_assert(b->live && b->bytes == bytes);
    b->live = false;
    f->taken -= bytes;
}

static int wait_stream(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    struct fake_source *f = user;
    int rc = fails(f, e);
    if (rc == 0 && f->waited[stream][on] < seq) {
        f->waited[stream][on] = seq;
    }
    return rc;
}

static int clear(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    struct fake_source *f = user;
    struct pool_piece all = {.range = range, .offset = at, .size = bytes};
    ck_assert(fake_usable(f, &all));
    f->cleared += bytes;
    return fails(f, e);
}

static void init(struct fake_source *f, uint64_t capacity)
{
    memset(f, 0, sizeof *f);
    f->capacity = capacity;
    f->fail_code = ERR_DEVICE_MEMORY;
    f->page_live = calloc(FAKE_PAGES, sizeof *f->page_live);
    f->mapped = calloc(FAKE_PAGES, sizeof *f->mapped);
    f->slot = calloc(FAKE_SLOTS, sizeof *f->slot);
    f->accessible = calloc(FAKE_SLOTS, sizeof *f->accessible);
    f->block = calloc(FAKE_PAGES, sizeof *f->block);
    ck_assert(f->page_live != NULL && f->mapped != NULL && f->slot != NULL &&
              f->accessible != NULL && f->block != NULL);
    f->pages = (struct pool_pages){.page_bytes = FAKE_PAGE,
                                   .reserve = reserve,
                                   .release = release,
                                   .create = create,
                                   .destroy = destroy,
                                   .map = map,
                                   .unmap = unmap,
                                   .access = access_range};
    f->blocks =
        (struct pool_blocks){.alloc = block_alloc, .free = block_free, .chunk = UINT64_C(2) << 20};
    f->source = (struct pool_source){.user = f, .wait = wait_stream, .clear = clear};
}

void fake_pages_init(struct fake_source *f, uint64_t capacity)
{
    init(f, capacity);
    f->source.pages = &f->pages;
}

void fake_blocks_init(struct fake_source *f, uint64_t capacity)
{
    init(f, capacity);
    f->source.blocks = &f->blocks;
}

void fake_finish(struct fake_source *f)
{
    ck_assert_uint_eq(f->taken, 0);
    ck_assert(!f->reserved);
    free(f->page_live);
    free(f->mapped);
    free(f->slot);
    free(f->accessible);
    free(f->block);
}

bool fake_usable(const struct fake_source *f, const struct pool_piece *piece)
{
    if (piece->size == 0) {
        return false;
    }
    if (f->source.pages == NULL) {
        const struct fake_block *b = piece->range;
        return b->live && piece->offset <= b->bytes && piece->size <= b->bytes - piece->offset;
    }
    uint64_t last = (piece->offset + piece->size - 1) / f->pages.page_bytes;
    for (uint64_t i = piece->offset / f->pages.page_bytes; i <= last; i++) {
        if (!f->accessible[i]) {
            return false;
        }
    }
    return true;
}
