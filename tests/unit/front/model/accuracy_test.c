/* The distribution of errors of predictions, against a sorted list. */
#include "daemon/front/model/accuracy.h"

#include <math.h>

#include "tests/unit/common/suite.h"

static struct accuracy a;

START_TEST(parts_are_those_of_the_list)
{
    for (unsigned i = 1; i <= 1000; i++) { /* errors of 0.1 % to 100 % */
        accuracy_note(&a, 1000000 + i * 1000, 1000000);
    }
    static const unsigned percents[] = {10, 50, 90, 99};
    for (unsigned i = 0; i < 4; i++) {
        double got = (double)accuracy_ppm(&a, percents[i]);
        ck_assert_msg(fabs(got / (percents[i] * 1e4) - 1) < 0.15, "%u%%: %f", percents[i], got);
    }
}
END_TEST

START_TEST(errors_count_both_ways_and_have_an_end)
{
    ck_assert_uint_eq(accuracy_ppm(&a, 50), 0);
    accuracy_note(&a, 5, 0);
    ck_assert_uint_eq(a.total, 0);
    accuracy_note(&a, 500000, 1000000);
    ck_assert(fabs((double)accuracy_ppm(&a, 50) / 5e5 - 1) < 0.15);
    for (unsigned i = 0; i < 10; i++) {
        accuracy_note(&a, UINT64_MAX, 1);
    }
    ck_assert_uint_gt(accuracy_ppm(&a, 50), 40000000);
}
END_TEST

START_TEST(old_errors_are_forgotten)
{
    for (unsigned i = 0; i < 100000; i++) {
        accuracy_note(&a, 3000000, 1000000);
    }
    for (unsigned i = 0; i < 20000; i++) {
        accuracy_note(&a, 1010000, 1000000);
    }
    ck_assert_uint_lt(accuracy_ppm(&a, 90), 20000);
    ck_assert_uint_le(a.total, 4096);
}
END_TEST

SUITE_MAIN("accuracy", parts_are_those_of_the_list, errors_count_both_ways_and_have_an_end,
           old_errors_are_forgotten)
