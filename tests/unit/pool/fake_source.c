#include "tests/unit/pool/fake_source.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/pool/quick.h"

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

static uint64_t slots(const struct fake_source *f, uint64_t bytes)
{
    ck_assert_uint_gt(bytes, 0);
    ck_assert_uint_eq(bytes % f->pages.page_bytes, 0);
    return bytes / f->pages.page_bytes;
}

static bool row_is_free(const struct fake_source *f, uint64_t first, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        if (first + i >= (f->pages_most != 0 ? f->pages_most : FAKE_PAGES) ||
            f->page_live[first + i]) {
            return false;
        }
    }
    return true;
}

/* A handle's name is 1 + its first page. */
static int create(void *user, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    struct fake_source *f = user;
    int rc = fails(f, e);
    uint64_t count = slots(f, bytes);
    ck_assert_uint_eq(count & (count - 1), 0);
    ck_assert(bytes == f->pages.page_bytes || bytes <= f->pages.handle_max);
    if (rc == 0 && f->taken + bytes > f->capacity) {
        rc = err_set(e, ERR_DEVICE_MEMORY, "the device is full");
    }
    if (rc != 0) {
        return rc;
    }
    uint32_t most = f->pages_most != 0 ? f->pages_most : FAKE_PAGES;
    uint32_t tried = 0;
    do {
        f->next_page = (f->next_page + 1) % most;
    } while (!row_is_free(f, f->next_page, count) && ++tried < most);
    if (tried == most) {
        return err_set(e, ERR_DEVICE_MEMORY, "no %llu bytes in a row", (unsigned long long)bytes);
    }
    for (uint64_t i = 0; i < count; i++) {
        f->page_live[f->next_page + i] = true;
    }
    f->handle_bytes[f->next_page] = bytes;
    f->handles++;
    f->taken += bytes;
    *ret_handle = f->next_page + 1;
    return 0;
}

static void destroy(void *user, uint64_t handle, uint64_t bytes)
{
    struct fake_source *f = user;
    ck_assert(handle >= 1 && handle <= FAKE_PAGES);
    ck_assert_uint_eq(f->handle_bytes[handle - 1], bytes);
    ck_assert_uint_eq(f->mapped[handle - 1], 0);
    for (uint64_t i = 0; i < slots(f, bytes); i++) {
        f->page_live[handle - 1 + i] = false;
    }
    f->handle_bytes[handle - 1] = 0;
    f->handles--;
    f->taken -= bytes;
}

static int map(void *user, void *range, uint64_t at, uint64_t handle, uint64_t bytes, struct err *e)
{
    struct fake_source *f = user;
    uint64_t first = at / f->pages.page_bytes;
    ck_assert(range == f && at % f->pages.page_bytes == 0 && at + bytes <= f->space);
    ck_assert_uint_eq(f->handle_bytes[handle - 1], bytes);
    for (uint64_t i = 0; i < slots(f, bytes); i++) {
        ck_assert_uint_eq(f->slot[first + i], 0);
    }
    int rc = fails(f, e);
    if (rc == 0) {
        f->mapped[handle - 1]++;
        f->begins[first] = true;
    }
    for (uint64_t i = 0; rc == 0 && i < slots(f, bytes); i++) {
        f->slot[first + i] = (uint32_t)(handle + i);
        f->accessible[first + i] = false;
    }
    return rc;
}

static int unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    struct fake_source *f = user;
    uint64_t first = at / f->pages.page_bytes;
    ck_assert(range == f && at % f->pages.page_bytes == 0);
    ck_assert_uint_ne(f->slot[first], 0);
    ck_assert(f->begins[first]);
    ck_assert_uint_eq(f->handle_bytes[f->slot[first] - 1], bytes);
    int rc = fails(f, e);
    if (rc == 0) {
        f->mapped[f->slot[first] - 1]--;
        f->begins[first] = false;
    }
    for (uint64_t i = 0; rc == 0 && i < slots(f, bytes); i++) {
        f->slot[first + i] = 0;
        f->accessible[first + i] = false;
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
    f->handle_bytes = calloc(FAKE_PAGES, sizeof *f->handle_bytes);
    f->mapped = calloc(FAKE_PAGES, sizeof *f->mapped);
    f->slot = calloc(FAKE_SLOTS, sizeof *f->slot);
    f->begins = calloc(FAKE_SLOTS, sizeof *f->begins);
    f->accessible = calloc(FAKE_SLOTS, sizeof *f->accessible);
    f->block = calloc(FAKE_PAGES, sizeof *f->block);
    ck_assert(f->page_live != NULL && f->handle_bytes != NULL && f->mapped != NULL &&
              f->slot != NULL && f->begins != NULL && f->accessible != NULL && f->block != NULL);
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
    free(f->handle_bytes);
    free(f->mapped);
    free(f->slot);
    free(f->begins);
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
