/* How long a kernel is expected to run. */
#include <check.h>
#include <stdlib.h>

#include "daemon/worker/memory/pace.h"

START_TEST(a_kernel_that_never_ran_is_unknown)
{
    const struct pace p = {.ns = {0}};
    ck_assert_uint_eq(pace_expect(&p, 0), PACE_UNKNOWN);
    ck_assert_uint_eq(pace_expect(&p, 1), PACE_UNKNOWN);
    ck_assert_uint_eq(pace_expect(&p, UINT64_MAX), PACE_UNKNOWN);
}
END_TEST

START_TEST(sizes_have_times_of_their_own)
{
    struct pace p = {.ns = {0}};
    pace_note(&p, 5000, 1000);
    ck_assert_uint_eq(pace_expect(&p, 1000), 5000);
    ck_assert_uint_eq(pace_expect(&p, 1), 5000);           /* at most */
    ck_assert_uint_eq(pace_expect(&p, 5000), 16 * 5000);   /* in proportion */
    ck_assert_uint_eq(pace_expect(&p, 70000), 256 * 5000); /* likewise */
    pace_note(&p, 900000, 70000);
    ck_assert_uint_eq(pace_expect(&p, 70000), 900000);
    ck_assert_uint_eq(pace_expect(&p, 5000), 900000);
    ck_assert_uint_eq(pace_expect(&p, 1000), 5000);
}
END_TEST

START_TEST(the_expected_does_not_wrap)
{
    struct pace p = {.ns = {0}};
    pace_note(&p, UINT64_MAX, 1);
    ck_assert_uint_lt(pace_expect(&p, UINT64_MAX), PACE_UNKNOWN);
    ck_assert_uint_gt(pace_expect(&p, UINT64_MAX), UINT64_MAX / 2);
}
END_TEST

START_TEST(a_shorter_time_counts_at_once)
{
    struct pace p = {.ns = {0}};
    pace_note(&p, 0, 64); /* by a clock that is too coarse */
    ck_assert_uint_ge(pace_expect(&p, 64), 1);
    pace_note(&p, 8001, 64);
    ck_assert_uint_lt(pace_expect(&p, 64), 8001);
    for (int i = 0; i < 200; i++) {
        pace_note(&p, 8001, 64);
    }
    ck_assert_uint_gt(pace_expect(&p, 64), 7000);
    pace_note(&p, 100, 64);
    ck_assert_uint_eq(pace_expect(&p, 64), 100);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("pace");
    TCase *tcase = tcase_create("pace");
    tcase_add_test(tcase, a_kernel_that_never_ran_is_unknown);
    tcase_add_test(tcase, sizes_have_times_of_their_own);
    tcase_add_test(tcase, the_expected_does_not_wrap);
    tcase_add_test(tcase, a_shorter_time_counts_at_once);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
