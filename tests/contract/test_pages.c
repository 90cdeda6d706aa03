#include <stdlib.h>
#include <string.h>

#include "contract.h"

/* Pages of memory at places of our choice: for back ends and devices that have them. */

#define PAGES 8u

struct range {
    const struct backend_page_ops *o;
    uint64_t page; /* bytes */
    struct backend_block *block;
    uint64_t id[PAGES];
};

static bool has_pages(void)
{
    return bench.b->pages && bench.b->pages->page_bytes(bench.device) != 0;
}

static void range_open(struct range *r)
{
    *r = (struct range){.o = bench.b->pages, .page = bench.b->pages->page_bytes(bench.device)};
    ck_assert_uint_eq(r->page & (r->page - 1), 0);
    ok(r->o->reserve(bench.device, 4 * PAGES * r->page, &r->block, e));
    for (unsigned i = 0; i < PAGES; i++) {
        ok(r->o->create(bench.device, r->page, &r->id[i], e));
        ck_assert_uint_ne(r->id[i], 0);
    }
}

static void range_close(struct range *r)
{
    for (unsigned i = 0; i < PAGES; i++) {
        r->o->destroy(bench.device, r->id[i], r->page);
    }
    r->o->release(bench.device, r->block);
}

static void map(struct range *r, unsigned place, unsigned page)
{
    ok(r->o->map(bench.device, r->block, place * r->page, r->id[page], r->page, e));
    ok(r->o->access(bench.device, r->block, place * r->page, r->page, e));
}

static void unmap(struct range *r, unsigned place)
{
    ok(r->o->unmap(bench.device, r->block, place * r->page, r->page, e));
}

START_TEST(commands_cross_borders_of_pages)
{
    struct range r;
    if (!has_pages()) {
        return;
    }
    range_open(&r);
    for (unsigned i = 0; i < PAGES; i++) {
        ok(r.o->map(bench.device, r.block, (PAGES + i) * r.page, r.id[PAGES - 1 - i], r.page, e));
    }
    ok(r.o->access(bench.device, r.block, PAGES * r.page, PAGES * r.page, e));
    size_t size = (size_t)(PAGES * r.page);
    uint8_t *out = malloc(size);
    uint8_t *in = calloc(1, size);
    ck_assert(out && in);
    for (size_t i = 0; i < size; i++) {
        out[i] = (uint8_t)(i * 31 + (i >> 13));
    }
    put(at(r.block, PAGES * r.page), out, size);
    get(in, at(r.block, PAGES * r.page), size);
    ck_assert(memcmp(in, out, size) == 0);
    get(in, at(r.block, PAGES * r.page + r.page - 100), 200);
    ck_assert_mem_eq(in, out + r.page - 100, 200);
    free(out);
    free(in);
    for (unsigned i = 0; i < PAGES; i++) {
        unmap(&r, PAGES + i);
    }
    range_close(&r);
}
END_TEST

START_TEST(a_page_keeps_its_bytes_when_it_moves)
{
    struct range r;
    uint8_t out[300];
    uint8_t in[300];
    if (!has_pages()) {
        return;
    }
    range_open(&r);
    for (unsigned i = 0; i < PAGES; i++) {
        memset(out, (int)(i + 1), sizeof out);
        map(&r, i, i);
        put(at(r.block, i * r.page + 1000), out, sizeof out);
    }
    for (unsigned i = 0; i < PAGES; i++) { /* each to another place, in another order */
        unmap(&r, i);
        map(&r, 4 * PAGES - 1 - i, i);
    }
    for (unsigned i = 0; i < PAGES; i++) {
        memset(out, (int)(i + 1), sizeof out);
        get(in, at(r.block, (4 * PAGES - 1 - i) * r.page + 1000), sizeof in);
        ck_assert_mem_eq(in, out, sizeof in);
    }
    for (unsigned i = 0; i < PAGES; i++) {
        unmap(&r, 4 * PAGES - 1 - i);
    }
    range_close(&r);
}
END_TEST

/* Bytes written at one address are read at the other, both ways. */
START_TEST(a_page_is_the_same_at_two_places)
{
    struct range r;
    uint8_t out[300];
    uint8_t in[300];
    if (!has_pages()) {
        return;
    }
    range_open(&r);
    for (unsigned i = 0; i < PAGES; i++) {
        map(&r, i, i);
        map(&r, 2 * PAGES + i, i);
    }
    for (unsigned i = 0; i < 2 * PAGES; i++) {
        unsigned from = i < PAGES ? i : 2 * PAGES + i % PAGES;
        unsigned to = i < PAGES ? 2 * PAGES + i : i % PAGES;
        memset(out, (int)(i + 1), sizeof out);
        put(at(r.block, from * r.page + 1000), out, sizeof out);
        get(in, at(r.block, to * r.page + 1000), sizeof in);
        ck_assert_mem_eq(in, out, sizeof in);
    }
    for (unsigned i = 0; i < PAGES; i++) {
        unmap(&r, i);
        get(in, at(r.block, (2 * PAGES + i) * r.page + 1000), sizeof in);
        ck_assert_uint_eq(in[0], PAGES + i + 1);
        unmap(&r, 2 * PAGES + i);
    }
    range_close(&r);
}
END_TEST

/* What a device has beyond this much is taken in one block: page by page would take minutes. NULL:
 * it has no more. */
static struct backend_block *all_but(uint64_t left)
{
    const struct backend_memory_ops *o = bench.b->memory;
    struct backend_block *block = NULL;
    struct err e = ERR_INIT;
    uint64_t room = 0;
    if (o->room == NULL || o->room(bench.device, &room, &e) != 0 || room <= left) {
        return NULL;
    }
    uint64_t size = room - left;
    while (size >= left && o->alloc(bench.device, size, &block, &e) != 0) {
        size -= size / 8; /* not in one piece */
    }
    return block;
}

START_TEST(pages_run_out_and_come_back)
{
    struct range r;
    if (!has_pages()) {
        return;
    }
    range_open(&r);
    struct backend_block *rest = all_but(UINT64_C(1) << 30);
    uint64_t most = bench.info.memory / r.page + 1;
    uint64_t *id = calloc(most, sizeof *id);
    uint64_t count = 0;
    int rc = 0;
    struct err why = ERR_INIT;
    ck_assert_ptr_nonnull(id);
    while (rc == 0 && count < most) {
        rc = r.o->create(bench.device, r.page, &id[count], &why);
        count += rc == 0;
    }
    ck_assert_int_eq(rc, ERR_DEVICE_MEMORY);
    ck_assert_uint_ge(count, 1);
    r.o->destroy(bench.device, id[--count], r.page);
    ok(r.o->create(bench.device, r.page, &id[count++], e));
    while (count > 0) {
        r.o->destroy(bench.device, id[--count], r.page);
    }
    free(id);
    if (rest != NULL) {
        block_free(rest);
    }
    range_close(&r);
}
END_TEST

void contract_pages(Suite *s)
{
    TCase *t = tcase_create("pages");
    tcase_add_checked_fixture(t, bench_open, bench_close);
    tcase_set_timeout(t, 180);
    tcase_add_test(t, commands_cross_borders_of_pages);
    tcase_add_test(t, a_page_keeps_its_bytes_when_it_moves);
    tcase_add_test(t, a_page_is_the_same_at_two_places);
    tcase_add_test(t, pages_run_out_and_come_back);
    suite_add_tcase(s, t);
}
