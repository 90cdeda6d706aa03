/* Temporaries that share memory: none that are needed at once overlap. */
#include "common/lifetime.h"

#include <check.h>
#include <stdlib.h>
#include <string.h>

#define MOST 1024u

static uint32_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

static uint64_t rounded(uint64_t bytes)
{
    return (bytes + LIFETIME_ALIGN - 1) / LIFETIME_ALIGN * LIFETIME_ALIGN;
}

static uint64_t plan(struct lifetime *items, unsigned count)
{
    uint64_t total = UINT64_MAX;
    struct err e = ERR_INIT;
    ck_assert_msg(lifetime_plan(items, count, &total, &e) == 0, "%s", e.text);
    return total;
}

static bool used(const struct lifetime *i)
{
    return i->size > 0 && i->first <= i->last;
}

static void check_plan(const struct lifetime *items, unsigned count, uint64_t total)
{
    uint64_t sum = 0;
    uint64_t largest = 0;
    const char *wrong = NULL;
    for (unsigned i = 0; i < count; i++) {
        const struct lifetime *a = &items[i];
        uint64_t size = used(a) ? rounded(a->size) : 0;
        sum += size;
        largest = size > largest ? size : largest;
        wrong = a->offset % LIFETIME_ALIGN != 0 || a->offset + size > total ? "place" : wrong;
        for (unsigned k = 0; k < i && size > 0; k++) {
            const struct lifetime *b = &items[k];
            bool together = used(b) && a->first <= b->last && b->first <= a->last;
            bool overlap = a->offset < b->offset + b->size && b->offset < a->offset + a->size;
            wrong = together && overlap ? "overlap" : wrong;
        }
    }
    ck_assert_msg(wrong == NULL, "%s", wrong);
    ck_assert_uint_le(total, sum);
    ck_assert_uint_ge(total, largest);
    ck_assert_uint_eq(total % LIFETIME_ALIGN, 0);
}

START_TEST(a_chain_takes_two)
{
    struct lifetime items[100];
    for (unsigned i = 0; i < 100; i++) {
        lifetime_init(&items[i], 1000);
        lifetime_mention(&items[i], i + 1);
        lifetime_mention(&items[i], i);
    }
    uint64_t total = plan(items, 100);
    check_plan(items, 100, total);
    ck_assert_uint_eq(total, 2 * 1024);
}
END_TEST

START_TEST(what_is_needed_at_once_adds_up)
{
    struct lifetime items[3];
    for (unsigned i = 0; i < 3; i++) {
        lifetime_init(&items[i], 256 << i);
        lifetime_mention(&items[i], 7);
    }
    uint64_t total = plan(items, 3);
    check_plan(items, 3, total);
    ck_assert_uint_eq(total, 7 * 256);
}
END_TEST

START_TEST(what_is_not_used_takes_nothing)
{
    struct lifetime items[3];
    lifetime_init(&items[0], 4096);
    lifetime_init(&items[1], 0);
    lifetime_mention(&items[1], 3);
    lifetime_init(&items[2], 1);
    lifetime_mention(&items[2], 0);
    ck_assert_uint_eq(plan(items, 3), 256);
    ck_assert_uint_eq(plan(items, 2), 0);
    ck_assert_uint_eq(plan(items, 0), 0);
}
END_TEST

/* Free parts that lie together serve as one. */
START_TEST(neighbours_join)
{
    struct lifetime items[5];
    for (unsigned i = 0; i < 4; i++) {
        lifetime_init(&items[i], 1024);
        lifetime_mention(&items[i], 0);
    }
    lifetime_init(&items[4], 4096);
    lifetime_mention(&items[4], 1);
    ck_assert_uint_eq(plan(items, 5), 4096);
    ck_assert_uint_eq(items[4].offset, 0);
}
END_TEST

START_TEST(too_much_is_refused)
{
    struct lifetime items[2];
    struct err e = ERR_INIT;
    uint64_t total = 5;
    for (unsigned i = 0; i < 2; i++) {
        lifetime_init(&items[i], UINT64_C(1) << 62);
        lifetime_mention(&items[i], 0);
    }
    items[1].size = UINT64_MAX;
    ck_assert_int_eq(lifetime_plan(items, 2, &total, &e), ERR_RANGE);
    items[1].size = UINT64_C(1) << 62;
    ck_assert_int_eq(lifetime_plan(items, 2, &total, &e), ERR_RANGE);
    ck_assert_uint_eq(total, 5);
}
END_TEST

/* Seeded: sizes and lifetimes of all kinds, up to as many as a job may have; twice the same. */
START_TEST(any_plan_holds)
{
    static struct lifetime items[MOST];
    static struct lifetime again[MOST];
    for (uint64_t seed = 1; seed <= 120; seed++) {
        uint64_t state = seed * 977;
        unsigned count = seed % 40 == 0 ? MOST : 1 + next(&state) % 90;
        unsigned steps = 1 + next(&state) % 200;
        for (unsigned i = 0; i < count; i++) {
            lifetime_init(&items[i], next(&state) >> next(&state) % 31);
            for (unsigned k = next(&state) % 4; k > 0; k--) {
                lifetime_mention(&items[i], next(&state) % steps);
            }
        }
        memcpy(again, items, sizeof items);
        uint64_t total = plan(items, count);
        check_plan(items, count, total);
        ck_assert_uint_eq(plan(again, count), total);
        ck_assert_int_eq(memcmp(again, items, count * sizeof items[0]), 0);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lifetime");
    TCase *plans = tcase_create("plans");
    tcase_set_timeout(plans, 60);
    tcase_add_test(plans, a_chain_takes_two);
    tcase_add_test(plans, what_is_needed_at_once_adds_up);
    tcase_add_test(plans, what_is_not_used_takes_nothing);
    tcase_add_test(plans, neighbours_join);
    tcase_add_test(plans, too_much_is_refused);
    tcase_add_test(plans, any_plan_holds);
    suite_add_tcase(suite, plans);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
