/* The window that is found: devices as models, by a clock of the test's. */
#include "daemon/front/model/window.h"
#include "tests/unit/common/suite.h"

/* A device that takes `latency` for a job and has `slots` at once. Its rate with w jobs in flight
 * is min(w, slots) / latency. Runs for so many jobs, all the time with more waiting. */
static uint64_t run(struct window *w, unsigned slots, double latency_ns, unsigned jobs,
                    uint64_t now_ns)
{
    double now = (double)now_ns;
    for (unsigned i = 0; i < jobs; i++) {
        unsigned busy = window_size(w) < slots ? window_size(w) : slots;
        now += latency_ns / busy;
        window_done(w, true, (uint64_t)now);
    }
    return (uint64_t)now;
}

START_TEST(it_grows_while_that_helps)
{
    struct window w = {0};
    (void)run(&w, 40, 1e6, 200000, 1);
    ck_assert_uint_ge(w.size, 32);
    ck_assert_uint_le(w.size, WINDOW_MAX);
}
END_TEST

START_TEST(it_shrinks_where_nothing_is_lost)
{
    struct window w = {0};
    (void)run(&w, 2, 1e5, 200000, 1);
    ck_assert_uint_eq(w.size, 2);
    ck_assert_uint_eq(window_size(&w) >= WINDOW_MIN, 1);
}
END_TEST

/* Most of the time it is where it belongs: what is tried in vain is tried seldom. */
START_TEST(trials_are_few)
{
    struct window w = {0};
    uint64_t now = run(&w, 8, 1e5, 100000, 1);
    unsigned trials = 0;
    enum { JOBS = 200000 };
    for (unsigned i = 0; i < JOBS; i++) {
        now = run(&w, 8, 1e5, 1, now);
        trials += w.trial != 0;
    }
    ck_assert_uint_eq(w.size, 8);
    ck_assert_uint_gt(trials, 0);
    ck_assert_uint_lt(trials, JOBS / 10);
}
END_TEST

START_TEST(it_follows_a_change)
{
    struct window w = {0};
    uint64_t now = run(&w, 32, 1e6, 100000, 1);
    ck_assert_uint_ge(w.size, 16);
    now = run(&w, 4, 1e6, 200000, now);
    ck_assert_uint_le(w.size, 8);
    (void)run(&w, 32, 1e6, 200000, now);
    ck_assert_uint_ge(w.size, 16);
}
END_TEST

/* Where nobody waits nothing is learned, and a trial is given up. */
START_TEST(an_idle_device_teaches_nothing)
{
    struct window w = {0};
    uint64_t now = 1;
    for (unsigned i = 0; i < 100000; i++) {
        now += 1000000;
        window_done(&w, i % 7 != 0, now);
        ck_assert_uint_eq(window_size(&w), WINDOW_START);
    }
}
END_TEST

SUITE_MAIN("window", it_grows_while_that_helps, it_shrinks_where_nothing_is_lost, trials_are_few,
           it_follows_a_change, an_idle_device_teaches_nothing)
