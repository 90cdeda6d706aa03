/* Points of streams: which are past, and what to wait for until one is. */
#include <check.h>
#include <stdlib.h>

#include "daemon/backend/backend.h"
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

static uintptr_t over; /* markers up to this one are */
static uintptr_t broken;
static unsigned asked;

static enum backend_state state(struct backend_marker *m, struct err *e)
{
    uintptr_t n = (uintptr_t)m;
    (void)e;
    asked++;
    return n == broken ? BACKEND_FAILED : n <= over ? BACKEND_DONE : BACKEND_RUNNING;
}

static const struct backend_marker_ops ops = {.state = state};

/* What the device says in advance; the points are passed later. */
START_TEST(a_marker_that_is_over_is_asked_once)
{
    static struct timeline_point p[2 * TIMELINE_ASKED];
    struct timeline t = {0};
    const unsigned count = 2 * TIMELINE_ASKED;
    over = broken = asked = 0;
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 0);
    ck_assert_uint_eq(asked, 0);
    for (unsigned i = 0; i < count; i++) {
        timeline_add(&t, 1, marker(i + 1), &p[i]);
    }
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 0);
    ck_assert_uint_eq(asked, 1);
    over = 3;
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 3);
    ck_assert_uint_eq(asked, 5);
    ck_assert_ptr_eq(timeline_marker(&t, 1, 1), marker(1)); /* not passed yet */
    ck_assert_uint_eq(timeline_pass(&t, &p[0]), 1);
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 3);
    ck_assert_uint_eq(timeline_pass(&t, &p[4]), 5); /* more than was asked about */
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 5);
    over = count;
    asked = 0;
    broken = 8;
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 7);
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 7);
    ck_assert_uint_eq(timeline_pass(&t, &p[7]), 8);
    asked = 0;
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), 8 + TIMELINE_ASKED);
    ck_assert_uint_eq(asked, TIMELINE_ASKED);
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), count);
    for (unsigned i = 0; i < count; i++) {
        (void)timeline_pass(&t, &p[i]);
    }
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), count);
    timeline_add(&t, 1, marker(count + 1), &p[0]);
    ck_assert_uint_eq(timeline_ask(&t, 1, &ops), count);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("timeline");
    TCase *points = tcase_create("points");
    tcase_add_test(points, a_point_is_past_with_those_before_it);
    tcase_add_test(points, streams_count_on_their_own);
    tcase_add_test(points, a_marker_that_is_over_is_asked_once);
    suite_add_tcase(suite, points);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
