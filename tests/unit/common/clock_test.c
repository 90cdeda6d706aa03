#include "common/clock.h"

#include <time.h>

#include "tests/unit/common/suite.h"

START_TEST(sums_saturate_at_never)
{
    ck_assert_uint_eq(ns_add(1, 2), 3);
    ck_assert_uint_eq(ns_add(NS_NEVER, 0), NS_NEVER);
    ck_assert_uint_eq(ns_add(NS_NEVER, 1), NS_NEVER);
    ck_assert_uint_eq(ns_add(1, NS_NEVER), NS_NEVER);
    ck_assert_uint_eq(ns_add(NS_NEVER - 1, 1), NS_NEVER);
    ck_assert_uint_eq(ns_add(NS_NEVER, NS_NEVER), NS_NEVER);
}
END_TEST

START_TEST(monotonic_time_is_the_kernels)
{
    struct timespec ts;
    uint64_t before = clock_now_ns();
    ck_assert_int_eq(clock_gettime(CLOCK_MONOTONIC, &ts), 0);
    uint64_t after = clock_now_ns();
    uint64_t now = (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
    ck_assert_uint_le(before, now);
    ck_assert_uint_le(now, after);
}
END_TEST

START_TEST(wall_time_is_the_epochs)
{
    uint64_t before = (uint64_t)time(NULL);
    uint64_t wall = clock_wall_ns();
    ck_assert_uint_ge(wall / NS_PER_S + 1, before);
}
END_TEST

SUITE_MAIN("clock", sums_saturate_at_never, monotonic_time_is_the_kernels, wall_time_is_the_epochs)
