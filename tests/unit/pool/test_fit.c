/* The fit compared with a walk over all blocks. */
#include <check.h>

#include "daemon/pool/fit.h"

#define BLOCKS 500u

static struct fit fit;
static struct records blocks;
static bool in[BLOCKS];
static uint64_t state;

static uint64_t rnd(uint64_t below)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static uint64_t some_size(void)
{
    return (1 + rnd(UINT64_C(1) << (1 + rnd(30)))) * FIT_UNIT;
}

static void setup(void)
{
    state = 99;
    fit_init(&fit);
    ck_assert_int_eq(records_init(&blocks, sizeof(struct block), BLOCKS, NULL), 0);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        (void)records_take(&blocks);
        in[i] = false;
    }
}

static void teardown(void)
{
    records_finish(&blocks);
}

static void put(uint32_t i, uint64_t size)
{
    block_at(&blocks, i)->size = size;
    fit_insert(&fit, &blocks, i);
    in[i] = true;
}

static uint64_t size_of(uint32_t i)
{
    ck_assert(i < BLOCKS && in[i]);
    return block_at(&blocks, i)->size;
}

/* The smallest that fits size; UINT64_MAX: none. */
static uint64_t best(uint64_t size)
{
    uint64_t found = UINT64_MAX;
    for (uint32_t i = 0; i < BLOCKS; i++) {
        uint64_t s = block_at(&blocks, i)->size;
        found = in[i] && s >= size && s < found ? s : found;
    }
    return found;
}

START_TEST(what_is_found_holds_the_request_and_is_close)
{
    for (unsigned step = 0; step < 5000; step++) {
        uint32_t i = (uint32_t)rnd(BLOCKS);
        if (in[i]) {
            fit_remove(&fit, &blocks, i);
            in[i] = false;
        } else {
            put(i, some_size());
        }
        uint64_t wanted = some_size();
        uint64_t closest = best(wanted);
        uint32_t found = fit_find(&fit, &blocks, wanted);
        if (found == BLOCK_NONE) { /* only a full bin may hide a block; a column is a 32nd wide */
            ck_assert(closest == UINT64_MAX || closest - wanted <= wanted / 16);
            continue;
        }
        ck_assert_uint_ge(size_of(found), wanted);
        ck_assert_uint_le(size_of(found) - closest, closest / 16 + FIT_UNIT);
    }
}
END_TEST

START_TEST(an_empty_one_finds_nothing)
{
    uint32_t top[4];
    ck_assert_uint_eq(fit_find(&fit, &blocks, FIT_UNIT), BLOCK_NONE);
    ck_assert_uint_eq(fit_largest(&fit, &blocks), 0);
    ck_assert_uint_eq(fit_top(&fit, &blocks, top, 4), 0);
    ck_assert_uint_eq(fit_least(&fit, &blocks, FIT_UNIT, top, 4), 0);
    ck_assert_uint_eq(fit_find(&fit, &blocks, UINT64_MAX - FIT_UNIT), BLOCK_NONE);
}
END_TEST

START_TEST(the_largest_can_be_had)
{
    for (unsigned round = 0; round < 500; round++) {
        uint32_t i = (uint32_t)rnd(BLOCKS);
        if (!in[i]) {
            put(i, some_size());
        }
        uint64_t largest = fit_largest(&fit, &blocks);
        ck_assert_uint_ne(fit_find(&fit, &blocks, largest), BLOCK_NONE);
        ck_assert_uint_ge(best(largest), largest);
    }
}
END_TEST

START_TEST(top_and_least_are_in_order_of_size)
{
    uint32_t found[6];
    for (uint32_t i = 0; i < 8; i++) {
        put(i, (UINT64_C(1) << (20 - i)));
    }
    ck_assert_uint_eq(fit_top(&fit, &blocks, found, 6), 6);
    for (uint32_t i = 0; i < 6; i++) {
        ck_assert_uint_eq(found[i], i);
    }
    ck_assert_uint_eq(fit_least(&fit, &blocks, (1u << 15) + 1, found, 6), 5);
    for (uint32_t i = 0; i < 5; i++) {
        ck_assert_uint_eq(found[i], 4 - i);
    }
    ck_assert_uint_eq(fit_least(&fit, &blocks, UINT64_C(1) << 21, found, 6), 0);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("two-level segregated fit");
    TCase *t = tcase_create("fit");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, what_is_found_holds_the_request_and_is_close);
    tcase_add_test(t, an_empty_one_finds_nothing);
    tcase_add_test(t, the_largest_can_be_had);
    tcase_add_test(t, top_and_least_are_in_order_of_size);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
