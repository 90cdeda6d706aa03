#include "common/range.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/common/suite.h"

START_TEST(ranges_are_aligned_and_disjoint)
{
    struct range r;
    range_init(&r, 1024, 64);
    ck_assert_uint_eq(range_alloc(&r, 1), 0);
    ck_assert_uint_eq(range_alloc(&r, 65), 64);
    ck_assert_uint_eq(range_alloc(&r, 64), 192);
    ck_assert_uint_eq(range_alloc(&r, 0), 256);
    ck_assert_uint_eq(r.used, 320);
    ck_assert_uint_eq(range_largest_free(&r), 1024 - 320);
    range_finish(&r);
}
END_TEST

START_TEST(holes_are_used_again)
{
    struct range r;
    range_init(&r, 1024, 64);
    uint64_t a = range_alloc(&r, 256);
    uint64_t b = range_alloc(&r, 256);
    uint64_t c = range_alloc(&r, 512);
    ck_assert_uint_eq(range_alloc(&r, 1), RANGE_NONE);
    ck_assert(range_free(&r, b));
    ck_assert(!range_free(&r, b));
    ck_assert(!range_free(&r, a + 1));
    ck_assert_uint_eq(range_alloc(&r, 257), RANGE_NONE);
    ck_assert_uint_eq(range_alloc(&r, 256), b);
    ck_assert(range_free(&r, a));
    ck_assert(range_free(&r, b));
    ck_assert_uint_eq(range_largest_free(&r), 512);
    ck_assert_uint_eq(range_alloc(&r, 512), 0);
    ck_assert(range_free(&r, c));
    range_finish(&r);
}
END_TEST

START_TEST(absurd_sizes_do_not_wrap)
{
    struct range r;
    range_init(&r, 1000, 64);
    ck_assert_uint_eq(range_alloc(&r, UINT64_MAX), RANGE_NONE);
    ck_assert_uint_eq(range_alloc(&r, UINT64_MAX - 63), RANGE_NONE);
    ck_assert_uint_eq(range_alloc(&r, UINT64_C(1) << 63), RANGE_NONE);
    ck_assert_uint_eq(range_alloc(&r, 1001), RANGE_NONE);
    ck_assert_msg(range_alloc(&r, 1000) == RANGE_NONE, "rounded up it does not fit");
    ck_assert_uint_eq(range_alloc(&r, 960), 0);
    ck_assert(!range_take(&r, UINT64_MAX - 63, 64));
    range_finish(&r);
}
END_TEST

START_TEST(taken_ranges_are_respected)
{
    struct range r;
    range_init(&r, 1024, 64);
    ck_assert(range_take(&r, 128, 100));
    ck_assert(!range_take(&r, 192, 1));
    ck_assert(!range_take(&r, 128, 1));
    ck_assert(!range_take(&r, 64, 65));
    ck_assert(!range_take(&r, 1, 1));
    ck_assert(!range_take(&r, 1024, 1));
    ck_assert(!range_take(&r, 960, 65));
    ck_assert(range_take(&r, 256, 64));
    ck_assert(range_take(&r, 64, 64));
    ck_assert_uint_eq(range_alloc(&r, 64), 0);
    ck_assert_uint_eq(range_alloc(&r, 64), 320);
    range_finish(&r);
    ck_assert_ptr_null(r.first);
}
END_TEST

/* A map of bytes is the simplest correct model. */
#define MODEL_SIZE 4096u
static unsigned char model[MODEL_SIZE];

static bool model_free_run(uint64_t size)
{
    uint64_t run = 0;
    for (uint64_t i = 0; i < MODEL_SIZE; i++) {
        run = model[i] != 0 ? 0 : run + 1;
        if (run >= size) {
            return true;
        }
    }
    return false;
}

START_TEST(agrees_with_a_map_of_bytes)
{
    struct range r;
    range_init(&r, MODEL_SIZE, 16);
    uint64_t offset[64];
    uint64_t size[64] = {0};
    memset(model, 0, sizeof model);
    unsigned seed = 1;
    for (int round = 0; round < 20000; round++) {
        int i = rand_r(&seed) % 64;
        if (size[i] > 0) {
            ck_assert(range_free(&r, offset[i]));
            memset(model + offset[i], 0, size[i]);
            size[i] = 0;
            continue;
        }
        uint64_t wanted = (uint64_t)(rand_r(&seed) % 200 + 1);
        uint64_t whole = (wanted + 15) / 16 * 16;
        offset[i] = range_alloc(&r, wanted);
        if (offset[i] == RANGE_NONE) {
            ck_assert_msg(!model_free_run(whole), "refused though there is room");
            continue;
        }
        size[i] = whole;
        ck_assert_uint_le(offset[i] + whole, MODEL_SIZE);
        for (uint64_t at = offset[i]; at < offset[i] + whole; at++) {
            ck_assert_msg(model[at] == 0, "given out twice");
            model[at] = 1;
        }
    }
    range_finish(&r);
}
END_TEST

SUITE_MAIN("range", ranges_are_aligned_and_disjoint, holes_are_used_again, absurd_sizes_do_not_wrap,
           taken_ranges_are_respected, agrees_with_a_map_of_bytes)
