/* The allocator of arenas against a plain list of what it handed out. */
#include "client/src/wire/heap.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/suite.h"

#define SIZE   (1u << 20)
#define PIECES 512

static struct heap heap;

static void begin(uint64_t size)
{
    ck_assert(heap_init(&heap, size));
}

START_TEST(pieces_are_rounded_and_apart)
{
    begin(SIZE);
    uint64_t a = heap_alloc(&heap, 0);
    uint64_t b = heap_alloc(&heap, 1);
    uint64_t c = heap_alloc(&heap, HEAP_ALIGN + 1);
    ck_assert_uint_eq(a, 0);
    ck_assert_uint_eq(b, HEAP_ALIGN);
    ck_assert_uint_eq(c, 2 * HEAP_ALIGN);
    ck_assert_uint_eq(heap_size(&heap, c), 2 * HEAP_ALIGN);
    ck_assert_uint_eq(heap_size(&heap, c + HEAP_ALIGN), 0);
    ck_assert_uint_eq(heap_size(&heap, 1), 0);
    ck_assert_uint_eq(heap_size(&heap, UINT64_MAX), 0);
    ck_assert_uint_eq(heap.used, 4 * HEAP_ALIGN);
    heap_finish(&heap);
}
END_TEST

START_TEST(what_is_free_becomes_one_again)
{
    begin(SIZE);
    uint64_t at[16];
    for (unsigned i = 0; i < 16; i++) {
        at[i] = heap_alloc(&heap, SIZE / 16);
        ck_assert_uint_ne(at[i], HEAP_NONE);
    }
    ck_assert_uint_eq(heap_alloc(&heap, 1), HEAP_NONE);
    for (unsigned i = 0; i < 16; i += 2) {
        ck_assert(heap_free(&heap, at[i]));
    }
    ck_assert_uint_eq(heap_alloc(&heap, SIZE / 8), HEAP_NONE);
    for (unsigned i = 1; i < 16; i += 2) {
        ck_assert(heap_free(&heap, at[i]));
    }
    ck_assert_uint_eq(heap.used, 0);
    ck_assert_uint_eq(heap_alloc(&heap, SIZE), 0);
    heap_finish(&heap);
}
END_TEST

START_TEST(wrong_frees_are_refused)
{
    begin(SIZE);
    uint64_t a = heap_alloc(&heap, 1000);
    ck_assert(!heap_free(&heap, a + HEAP_ALIGN));
    ck_assert(!heap_free(&heap, a + 1));
    ck_assert(!heap_free(&heap, SIZE));
    ck_assert(!heap_free(&heap, UINT64_MAX));
    ck_assert(heap_free(&heap, a));
    ck_assert(!heap_free(&heap, a));
    heap_finish(&heap);
}
END_TEST

START_TEST(what_is_too_large_is_refused)
{
    begin(SIZE);
    ck_assert_uint_eq(heap_alloc(&heap, SIZE + 1), HEAP_NONE);
    ck_assert_uint_eq(heap_alloc(&heap, UINT64_MAX), HEAP_NONE);
    ck_assert_uint_eq(heap_alloc(&heap, UINT64_MAX - HEAP_ALIGN + 1), HEAP_NONE);
    ck_assert_uint_eq(heap_rounded(UINT64_MAX), 0);
    ck_assert_uint_eq(heap_rounded(0), HEAP_ALIGN);
    heap_finish(&heap);
}
END_TEST

static struct {
    uint64_t offset;
    uint64_t size;
} piece[PIECES];
static unsigned count;
static uint8_t map[SIZE / HEAP_ALIGN]; /* 1: handed out */

static void take(uint64_t size)
{
    uint64_t offset = heap_alloc(&heap, size);
    if (offset == HEAP_NONE) {
        return;
    }
    uint64_t units = heap_rounded(size) / HEAP_ALIGN;
    ck_assert_uint_eq(heap_size(&heap, offset), units * HEAP_ALIGN);
    ck_assert_uint_le(offset + units * HEAP_ALIGN, SIZE);
    for (uint64_t i = 0; i < units; i++) {
        if (map[offset / HEAP_ALIGN + i] != 0) {
            ck_abort_msg("handed out twice");
        }
    }
    memset(map + offset / HEAP_ALIGN, 1, units);
    piece[count].offset = offset;
    piece[count++].size = units * HEAP_ALIGN;
}

static void give(unsigned i)
{
    ck_assert(heap_free(&heap, piece[i].offset));
    memset(map + piece[i].offset / HEAP_ALIGN, 0, piece[i].size / HEAP_ALIGN);
    piece[i] = piece[--count];
}

START_TEST(nothing_overlaps_and_nothing_is_lost)
{
    uint64_t used = 0;
    begin(SIZE);
    srand((unsigned)_i + 1);
    for (unsigned step = 0; step < 20000; step++) {
        uint64_t size = (uint64_t)rand() % (rand() % 8 == 0 ? SIZE / 4 : 4096);
        if (count < PIECES && rand() % 2 == 0) {
            take(size);
        } else if (count > 0) {
            give((unsigned)rand() % count);
        }
    }
    for (unsigned i = 0; i < count; i++) {
        used += piece[i].size;
    }
    ck_assert_uint_eq(heap.used, used);
    while (count > 0) {
        give(count - 1);
    }
    ck_assert_uint_eq(heap.used, 0);
    ck_assert_uint_eq(heap_alloc(&heap, SIZE), 0);
    heap_finish(&heap);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("heap");
    TCase *tcase = tcase_create("heap");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, pieces_are_rounded_and_apart);
    tcase_add_test(tcase, what_is_free_becomes_one_again);
    tcase_add_test(tcase, wrong_frees_are_refused);
    tcase_add_test(tcase, what_is_too_large_is_refused);
    tcase_add_loop_test(tcase, nothing_overlaps_and_nothing_is_lost, 0, 5);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
