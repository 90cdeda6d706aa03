/* Points of streams: which are past, and what to wait for until one is. */
#include <check.h>
#include <stdlib.h>

#include "daemon/worker/memory/timeline.h"

static struct backend_marker *marker(uintptr_t n)
{
    return (struct backend_marker *)n; /* only passed on */
}

START_TEST(a_point_is_past_with_those_before_it)
{
    struct timeline t = {0};
    struct timeline_point p[3];
    for (unsigned i = 0; i < 3; i++) {
        timeline_add(&t, 2, marker(i + 1), &p[i]);
        ck_assert_uint_eq(p[i].seq, i + 1);
    }
    ck_assert_ptr_eq(timeline_marker(&t, 2, 1), marker(1));
    ck_assert_ptr_eq(timeline_marker(&t, 2, 3), marker(3));
    ck_assert_ptr_null(timeline_marker(&t, 2, 0));
    ck_assert_ptr_null(timeline_marker(&t, 1, 1));
    /* the second was looked at first: the first is past as well */
    ck_assert_uint_eq(timeline_pass(&t, &p[1]), 2);
    ck_assert_ptr_null(timeline_marker(&t, 2, 1));
    ck_assert_ptr_eq(timeline_marker(&t, 2, 3), marker(3));
    ck_assert_uint_eq(timeline_pass(&t, &p[0]), 2);
    ck_assert_uint_eq(timeline_pass(&t, &p[0]), 0);
    ck_assert_uint_eq(timeline_pass(&t, &p[2]), 3);
    ck_assert_ptr_null(timeline_marker(&t, 2, 3));
}
END_TEST

START_TEST(streams_count_on_their_own)
{
    struct timeline t = {0};
    struct timeline_point a;
    struct timeline_point b;
    timeline_add(&t, 0, marker(1), &a);
    timeline_add(&t, 1, marker(2), &b);
    ck_assert_uint_eq(a.seq, 1);
    ck_assert_uint_eq(b.seq, 1);
    ck_assert_uint_eq(timeline_pass(&t, &b), 1);
    ck_assert_ptr_eq(timeline_marker(&t, 0, 1), marker(1));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timeline");
    TCase *points = tcase_create("points");
    tcase_add_test(points, a_point_is_past_with_those_before_it);
    tcase_add_test(points, streams_count_on_their_own);
    suite_add_tcase(suite, points);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
