/* Whether brief jobs wait for more of them: the rule by itself, and its timer. */
#include <check.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "daemon/worker/run/batch.h"
#include "daemon/worker/run/hold.h"

#define WINDOW 200000u

START_TEST(an_idle_device_holds_nothing)
{
    struct hold_rule r = {.window_ns = WINDOW};
    ck_assert(!hold_rule_wants(&r, false));
    ck_assert(!hold_rule_keeps(&r, 5, false, 1));
    ck_assert_uint_eq(r.due_ns, 0);
}
END_TEST

START_TEST(without_a_window_nothing_is_held)
{
    struct hold_rule r = {.window_ns = 0};
    ck_assert(!hold_rule_wants(&r, true));
    ck_assert(!hold_rule_keeps(&r, 5, true, 1));
}
END_TEST

/* The window is that of the first one: those that come later do not make it longer. */
START_TEST(they_wait_a_window_at_most)
{
    struct hold_rule r = {.window_ns = WINDOW};
    ck_assert(hold_rule_wants(&r, true));
    ck_assert(hold_rule_keeps(&r, 1, true, 1000));
    ck_assert(hold_rule_keeps(&r, 2, true, 1000 + WINDOW - 1));
    ck_assert(!hold_rule_keeps(&r, 3, true, 1000 + WINDOW));
    hold_rule_end(&r, 3, 1000 + WINDOW);
    ck_assert(hold_rule_keeps(&r, 1, true, 5 * WINDOW));
    ck_assert_uint_eq(r.due_ns, 6 * WINDOW);
}
END_TEST

START_TEST(they_start_when_the_device_is_idle_or_they_are_many)
{
    struct hold_rule r = {.window_ns = WINDOW};
    ck_assert(hold_rule_keeps(&r, 1, true, 1000));
    ck_assert(!hold_rule_keeps(&r, 1, false, 1001));
    ck_assert(hold_rule_keeps(&r, 1, true, 1002));
    ck_assert(!hold_rule_keeps(&r, 64, true, 1003));
    ck_assert(!hold_rule_keeps(&r, 0, true, 1004)); /* none of them may wait */
}
END_TEST

/* How many of `count` that come alone, each after the window of the one before, are held. */
static unsigned held_alone(struct hold_rule *r, unsigned count)
{
    unsigned held = 0;
    uint64_t now = 1000;
    for (unsigned i = 0; i < count; i++, now += 2 * WINDOW) {
        if (hold_rule_wants(r, true) && hold_rule_keeps(r, 1, true, now)) {
            held++;
            hold_rule_end(r, 1, now + WINDOW);
        }
    }
    return held;
}

START_TEST(who_comes_alone_is_soon_let_through)
{
    struct hold_rule r = {.window_ns = WINDOW};
    ck_assert_uint_le(held_alone(&r, 128), 7);
    ck_assert_uint_le(held_alone(&r, 64), 1);
    ck_assert_uint_eq(held_alone(&r, 64 * 10), 10);
    r.left = 0;
    ck_assert(hold_rule_wants(&r, true)); /* others came: they are worth waiting for again */
    ck_assert(hold_rule_keeps(&r, 2, true, 1000));
    hold_rule_end(&r, 2, 2000);
    ck_assert(hold_rule_wants(&r, true));
    ck_assert_uint_eq(r.skip, 0);
}
END_TEST

/* One that was started before its window was over says nothing about who comes. */
START_TEST(an_early_end_teaches_nothing)
{
    struct hold_rule r = {.window_ns = WINDOW};
    ck_assert(hold_rule_keeps(&r, 1, true, 1000));
    hold_rule_end(&r, 1, 1001);
    ck_assert_uint_eq(r.left, 0);
    ck_assert(hold_rule_wants(&r, true));
}
END_TEST

START_TEST(who_has_no_time_hurries)
{
    struct hold_rule r = {.window_ns = WINDOW};
    ck_assert(hold_rule_hurries(&r, 1, 1000)); /* it passed */
    ck_assert(hold_rule_hurries(&r, 1000 + WINDOW - 1, 1000));
    ck_assert(!hold_rule_hurries(&r, 1000 + WINDOW, 1000));
    ck_assert(!hold_rule_hurries(&r, UINT64_MAX, 1000));
    r.window_ns = 0;
    ck_assert(!hold_rule_hurries(&r, 1, 1000));
}
END_TEST

static int mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e)
{
    (void)s;
    (void)e;
    *ret_marker = NULL;
    return 0;
}

/* One that came earlier, and was waiting, is behind those that wait for more: it starts with them,
 * and that is now. */
START_TEST(what_is_begun_meanwhile_ends_their_wait)
{
    static const struct backend_stream_ops stream = {.mark = mark};
    static const struct backend backend = {.stream = &stream};
    static struct device device = {.b = &backend, .stream_count = 1};
    static struct job one = {.checked = 1};
    static struct job other = {.checked = 1};
    static struct ledger ledger;
    struct backend_marker *marker;
    struct batch b;
    batch_init(&b, &device, &ledger);
    batch_open(&b);
    batch_join(&b, &one);
    batch_enter(&b, &one);
    ck_assert_int_eq(batch_mark(&b, &one, &marker, NULL), 0);
    ck_assert_uint_eq(batch_held(&b), 1);
    ck_assert_int_eq(batch_mark(&b, &other, &marker, NULL), 0);
    ck_assert_uint_eq(batch_held(&b), 0);
}
END_TEST

struct started {
    struct hold hold;
    uv_loop_t loop;
    unsigned times;
};

static void on_start(void *data)
{
    struct started *s = data;
    s->times++;
    hold_end(&s->hold, 1);
    uv_stop(&s->loop);
}

/* The second one begins while the timer of the first, which is over, still runs. */
START_TEST(the_timer_starts_those_that_are_held)
{
    struct started s = {.times = 0};
    ck_assert_int_eq(uv_loop_init(&s.loop), 0);
    hold_init(&s.hold, &s.loop, on_start, &s);
    hold_set(&s.hold, UINT64_MAX);
    ck_assert_uint_eq(s.hold.rule.window_ns, HOLD_WINDOW_NS);
    ck_assert(hold_keeps(&s.hold, 1, true));
    hold_end(&s.hold, 2);
    ck_assert(hold_keeps(&s.hold, 1, true));
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(s.times, 1);
    ck_assert_uint_eq(s.hold.rule.due_ns, 0);
    hold_set(&s.hold, 0);
    ck_assert(!hold_keeps(&s.hold, 1, true));
    hold_finish(&s.hold);
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&s.loop), 0);
}
END_TEST

/* What the timer was set to for a longer window does not count for a shorter one. */
START_TEST(a_shorter_window_counts_at_once)
{
    struct started s = {.times = 0};
    struct itimerspec left;
    ck_assert_int_eq(uv_loop_init(&s.loop), 0);
    hold_init(&s.hold, &s.loop, on_start, &s);
    hold_set(&s.hold, HOLD_WINDOW_NS);
    ck_assert(hold_keeps(&s.hold, 1, true));
    hold_end(&s.hold, 2);
    hold_set(&s.hold, HOLD_WINDOW_NS / 100);
    if (hold_keeps(&s.hold, 1, true)) { /* else it has passed already */
        ck_assert_int_eq(timerfd_gettime(s.hold.fd, &left), 0);
        ck_assert_int_le(left.it_value.tv_nsec, (long)(HOLD_WINDOW_NS / 100));
    }
    hold_finish(&s.hold);
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&s.loop), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("hold");
    TCase *tcase = tcase_create("hold");
    tcase_add_test(tcase, an_idle_device_holds_nothing);
    tcase_add_test(tcase, without_a_window_nothing_is_held);
    tcase_add_test(tcase, they_wait_a_window_at_most);
    tcase_add_test(tcase, they_start_when_the_device_is_idle_or_they_are_many);
    tcase_add_test(tcase, who_comes_alone_is_soon_let_through);
    tcase_add_test(tcase, an_early_end_teaches_nothing);
    tcase_add_test(tcase, who_has_no_time_hurries);
    tcase_add_test(tcase, what_is_begun_meanwhile_ends_their_wait);
    tcase_add_test(tcase, the_timer_starts_those_that_are_held);
    tcase_add_test(tcase, a_shorter_window_counts_at_once);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
