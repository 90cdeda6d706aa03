/* Whether brief jobs wait for more: the rule alone, and with its timer. */
#include <check.h>
#include <stdlib.h>
#include <sys/timerfd.h>

#include "daemon/worker/run/batch.h"
#include "daemon/worker/run/coalesce.h"

#define WINDOW 200000u

START_TEST(on_an_idle_device_nothing_waits)
{
    struct coalesce_rule r = {.window_ns = WINDOW};
    ck_assert(!coalesce_rule_wants(&r, false));
    ck_assert(!coalesce_rule_keeps(&r, 5, false, 1));
    ck_assert_uint_eq(r.start_ns, 0);
}
END_TEST

START_TEST(without_a_window_nothing_waits)
{
    struct coalesce_rule r = {.window_ns = 0};
    ck_assert(!coalesce_rule_wants(&r, true));
    ck_assert(!coalesce_rule_keeps(&r, 5, true, 1));
}
END_TEST

/* The window begins with the first job: later jobs do not make it longer. */
START_TEST(they_wait_a_window_at_most)
{
    struct coalesce_rule r = {.window_ns = WINDOW};
    ck_assert(coalesce_rule_wants(&r, true));
    ck_assert(coalesce_rule_keeps(&r, 1, true, 1000));
    ck_assert(coalesce_rule_keeps(&r, 2, true, 1000 + WINDOW - 1));
    ck_assert(!coalesce_rule_keeps(&r, 3, true, 1000 + WINDOW));
    coalesce_rule_end(&r, 3, 1000 + WINDOW);
    ck_assert(coalesce_rule_keeps(&r, 1, true, 5 * WINDOW));
    ck_assert_uint_eq(r.start_ns, 6 * WINDOW);
}
END_TEST

START_TEST(they_start_when_the_device_is_idle_or_they_are_many)
{
    struct coalesce_rule r = {.window_ns = WINDOW};
    ck_assert(coalesce_rule_keeps(&r, 1, true, 1000));
    ck_assert(!coalesce_rule_keeps(&r, 1, false, 1001));
    ck_assert(coalesce_rule_keeps(&r, 1, true, 1002));
    ck_assert(!coalesce_rule_keeps(&r, 64, true, 1003));
    ck_assert(!coalesce_rule_keeps(&r, 0, true, 1004)); /* none of them may wait */
}
END_TEST

/* Number of jobs that wait, of `count` that come alone, each after the window of the one before. */
static unsigned kept_alone(struct coalesce_rule *r, unsigned count)
{
    unsigned kept = 0;
    uint64_t now = 1000;
    for (unsigned i = 0; i < count; i++, now += 2 * WINDOW) {
        if (coalesce_rule_wants(r, true) && coalesce_rule_keeps(r, 1, true, now)) {
            kept++;
            coalesce_rule_end(r, 1, now + WINDOW);
        }
    }
    return kept;
}

START_TEST(jobs_that_come_alone_soon_start_at_once)
{
    struct coalesce_rule r = {.window_ns = WINDOW};
    ck_assert_uint_le(kept_alone(&r, 128), 7);
    ck_assert_uint_le(kept_alone(&r, 64), 1);
    ck_assert_uint_eq(kept_alone(&r, 64 * 10), 10);
    r.left = 0;
    ck_assert(coalesce_rule_wants(&r, true)); /* others came: waiting is worth while again */
    ck_assert(coalesce_rule_keeps(&r, 2, true, 1000));
    coalesce_rule_end(&r, 2, 2000);
    ck_assert(coalesce_rule_wants(&r, true));
    ck_assert_uint_eq(r.skip, 0);
}
END_TEST

/* A window that was ended early says nothing about the jobs to come. */
START_TEST(an_early_end_teaches_nothing)
{
    struct coalesce_rule r = {.window_ns = WINDOW};
    ck_assert(coalesce_rule_keeps(&r, 1, true, 1000));
    coalesce_rule_end(&r, 1, 1001);
    ck_assert_uint_eq(r.left, 0);
    ck_assert(coalesce_rule_wants(&r, true));
}
END_TEST

START_TEST(a_near_deadline_ends_the_wait)
{
    struct coalesce_rule r = {.window_ns = WINDOW};
    ck_assert(coalesce_rule_hurries(&r, 1, 1000)); /* it passed */
    ck_assert(coalesce_rule_hurries(&r, 1000 + WINDOW - 1, 1000));
    ck_assert(!coalesce_rule_hurries(&r, 1000 + WINDOW, 1000));
    ck_assert(!coalesce_rule_hurries(&r, UINT64_MAX, 1000));
    r.window_ns = 0;
    ck_assert(!coalesce_rule_hurries(&r, 1, 1000));
}
END_TEST

static int mark(struct backend_stream *s, struct backend_marker **ret_marker, struct err *e)
{
    (void)s;
    (void)e;
    *ret_marker = NULL;
    return 0;
}

/* A job that came earlier is put behind jobs that wait for more: it starts with them, at once. */
START_TEST(a_start_meanwhile_ends_their_wait)
{
    static const struct backend_stream_ops stream = {.mark = mark};
    static const struct backend backend = {.stream = &stream};
    static struct device device = {.b = &backend, .stream_count = 1};
    static struct job one = {.step_count = 1};
    static struct job other = {.step_count = 1};
    static struct ledger ledger;
    struct backend_marker *marker;
    struct batch b;
    batch_init(&b, &device, &ledger);
    batch_open(&b);
    batch_join(&b, &one);
    batch_enter(&b, &one);
    ck_assert_int_eq(batch_mark(&b, &one, &marker, NULL), 0);
    ck_assert_uint_eq(batch_pending(&b), 1);
    ck_assert_int_eq(batch_mark(&b, &other, &marker, NULL), 0);
    ck_assert_uint_eq(batch_pending(&b), 0);
}
END_TEST

struct started {
    struct coalesce coalesce;
    uv_loop_t loop;
    unsigned times;
};

static void on_start(void *data)
{
    struct started *s = data;
    s->times++;
    coalesce_end(&s->coalesce, 1);
    uv_stop(&s->loop);
}

/* The second window begins while the timer of the first one, which is over, still runs. */
START_TEST(the_timer_starts_those_that_wait)
{
    struct started s = {.times = 0};
    ck_assert_int_eq(uv_loop_init(&s.loop), 0);
    coalesce_init(&s.coalesce, &s.loop, on_start, &s);
    coalesce_set_window(&s.coalesce, UINT64_MAX);
    ck_assert_uint_eq(s.coalesce.rule.window_ns, COALESCE_WINDOW_NS);
    ck_assert(coalesce_keeps(&s.coalesce, 1, true));
    coalesce_end(&s.coalesce, 2);
    ck_assert(coalesce_keeps(&s.coalesce, 1, true));
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    ck_assert_uint_eq(s.times, 1);
    ck_assert_uint_eq(s.coalesce.rule.start_ns, 0);
    coalesce_set_window(&s.coalesce, 0);
    ck_assert(!coalesce_keeps(&s.coalesce, 1, true));
    coalesce_finish(&s.coalesce);
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&s.loop), 0);
}
END_TEST

/* The timer of a longer window does not count for a shorter one. */
START_TEST(a_shorter_window_counts_at_once)
{
    struct started s = {.times = 0};
    struct itimerspec left;
    ck_assert_int_eq(uv_loop_init(&s.loop), 0);
    coalesce_init(&s.coalesce, &s.loop, on_start, &s);
    coalesce_set_window(&s.coalesce, COALESCE_WINDOW_NS);
    ck_assert(coalesce_keeps(&s.coalesce, 1, true));
    coalesce_end(&s.coalesce, 2);
    coalesce_set_window(&s.coalesce, COALESCE_WINDOW_NS / 100);
    if (coalesce_keeps(&s.coalesce, 1, true)) { /* else it has passed already */
        ck_assert_int_eq(timerfd_gettime(s.coalesce.fd, &left), 0);
        ck_assert_int_le(left.it_value.tv_nsec, (long)(COALESCE_WINDOW_NS / 100));
    }
    coalesce_finish(&s.coalesce);
    (void)uv_run(&s.loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&s.loop), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("coalesce");
    TCase *tcase = tcase_create("coalesce");
    tcase_add_test(tcase, on_an_idle_device_nothing_waits);
    tcase_add_test(tcase, without_a_window_nothing_waits);
    tcase_add_test(tcase, they_wait_a_window_at_most);
    tcase_add_test(tcase, they_start_when_the_device_is_idle_or_they_are_many);
    tcase_add_test(tcase, jobs_that_come_alone_soon_start_at_once);
    tcase_add_test(tcase, an_early_end_teaches_nothing);
    tcase_add_test(tcase, a_near_deadline_ends_the_wait);
    tcase_add_test(tcase, a_start_meanwhile_ends_their_wait);
    tcase_add_test(tcase, the_timer_starts_those_that_wait);
    tcase_add_test(tcase, a_shorter_window_counts_at_once);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
