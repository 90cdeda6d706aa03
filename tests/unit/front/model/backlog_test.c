/* How much is ready, against a plain list of jobs. */
#include "daemon/front/model/backlog.h"

#include <stdlib.h>

#include "common/saturate.h"
#include "tests/unit/common/suite.h"

enum { JOBS = 300, STEPS = 50000 };

static struct item {
    struct backlog_place place;
    uint64_t due_ns, ns, order;
} item[JOBS];

static struct backlog b;
static uint64_t now_ns;

static uint64_t at_random(uint64_t below)
{
    static uint64_t state = 88172645463325252u;
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state % below;
}

static void put(struct item *x, uint64_t due_ns, uint64_t ns)
{
    static uint64_t order;
    x->due_ns = due_ns;
    x->ns = ns;
    x->order = ++order;
    backlog_add(&b, &x->place, due_ns, now_ns, ns, true);
}

/* Of the jobs that are before it by time, with an allowance for the width of slots. */
static uint64_t sum_before(const struct item *x, uint64_t due_ns)
{
    uint64_t sum = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        const struct item *y = &item[i];
        bool plain = x->due_ns == NS_NEVER && y->due_ns == NS_NEVER && y->order < x->order;
        sum += y->place.in && y != x && (plain || (y->due_ns != NS_NEVER && y->due_ns <= due_ns))
                   ? y->ns
                   : 0;
    }
    return sum;
}

static void check(const struct item *x)
{
    uint64_t got = backlog_before(&b, &x->place, x->due_ns);
    uint64_t width = (uint64_t)4096 * NS_PER_MS;
    ck_assert(x->place.due == (x->due_ns != NS_NEVER));
    bool due = x->due_ns != NS_NEVER;
    ck_assert_uint_ge(got,
                      due ? sum_before(x, sat_sub(x->due_ns, width)) : sum_before(x, NS_NEVER));
    ck_assert_uint_le(got, due ? sum_before(x, x->due_ns + width) : sum_before(x, NS_NEVER));
}

/* The front ends jobs whose deadlines have passed. */
static void expire(void)
{
    for (unsigned i = 0; i < JOBS; i++) {
        if (item[i].due_ns < now_ns) {
            backlog_drop(&b, &item[i].place);
        }
    }
}

/* Of the jobs without deadlines the first; the item itself if it has one. */
static struct item *leaves(struct item *x)
{
    for (unsigned i = 0; x->due_ns == NS_NEVER && i < JOBS; i++) {
        bool plain = item[i].place.in && item[i].due_ns == NS_NEVER;
        x = plain && item[i].order < x->order ? &item[i] : x;
    }
    return x;
}

static void check_all(void)
{
    uint64_t ns = 0;
    unsigned jobs = 0;
    for (unsigned i = 0; i < JOBS; i++) {
        ns += item[i].place.in ? item[i].ns : 0;
        jobs += item[i].place.in;
    }
    ck_assert_uint_eq(b.ns, ns);
    ck_assert_uint_eq(b.jobs, jobs);
}

START_TEST(sums_are_those_of_the_list)
{
    now_ns = 1000 * NS_PER_S;
    for (unsigned i = 0; i < STEPS; i++) {
        struct item *x = &item[at_random(JOBS)];
        now_ns += at_random(NS_PER_MS);
        expire();
        if (i % 8 == 0) {
            backlog_pass(&b, now_ns);
        }
        if (!x->place.in) {
            put(x, at_random(4) == 0 ? NS_NEVER : now_ns + at_random(59 * NS_PER_S),
                1 + at_random(NS_PER_MS));
        } else if (x->due_ns != NS_NEVER || at_random(2) == 0) {
            backlog_drop(&b, &leaves(x)->place);
        }
        if (i % 16 == 0 && x->place.in) {
            check(x);
        }
    }
    check_all();
    for (unsigned i = 0; i < JOBS; i++) {
        backlog_drop(&b, &item[i].place);
        backlog_drop(&b, &item[i].place);
    }
    ck_assert_uint_eq(b.ns, 0);
    ck_assert_uint_eq(b.jobs + b.unsure, 0);
    for (unsigned level = 0; level < DUES_LEVELS; level++) {
        ck_assert_uint_eq(b.dues->used[level], 0);
    }
    backlog_finish(&b);
}
END_TEST

static const struct backlog_pace alone = {.times = 1, .part = 1};

static bool fits(uint64_t due_in_ns, uint64_t ns, uint64_t begin_in_ns,
                 const struct backlog_pace *pace, uint64_t *ret_late)
{
    return backlog_fits(&b, now_ns + due_in_ns, ns, now_ns, now_ns + begin_in_ns, pace, ret_late);
}

/* Ten jobs of 10 ms, of which each is due to begin when the one before it ends. */
START_TEST(a_job_that_delays_others_too_far_does_not_fit)
{
    uint64_t late = 0;
    now_ns = 1000 * NS_PER_S;
    ck_assert(fits(NS_PER_MS, NS_PER_S, 0, &alone, &late));
    for (unsigned i = 0; i < 10; i++) {
        put(&item[i], now_ns + 20 * NS_PER_MS + i * 10 * NS_PER_MS, 10 * NS_PER_MS);
    }
    ck_assert(fits(0, 8 * NS_PER_MS, 0, &alone, &late));
    ck_assert(!fits(0, 40 * NS_PER_MS, 0, &alone, &late));
    ck_assert_uint_le(late, now_ns + 40 * NS_PER_MS);
    /* behind all of them it delays none */
    ck_assert(fits(NS_PER_S, 40 * NS_PER_MS, 0, &alone, &late));
    /* they take twice as long at a cap, and the device is busy until then */
    const struct backlog_pace capped = {.times = 1, .least = 2, .part = 1};
    ck_assert(!fits(0, NS_PER_MS, 0, &capped, &late));
    ck_assert(!fits(0, NS_PER_MS, 60 * NS_PER_MS, &alone, &late));
    for (unsigned i = 0; i < 10; i++) {
        backlog_drop(&b, &item[i].place);
    }
    backlog_finish(&b);
}
END_TEST

/* Jobs of another tenant go beside the first ones: the last ones wait for no more than these. */
START_TEST(others_delay_the_first_jobs_most)
{
    const struct backlog_pace beside = {.times = 2, .others_ns = 20.0 * NS_PER_MS, .part = 1};
    uint64_t late = 0;
    now_ns = 1000 * NS_PER_S;
    put(&item[0], now_ns + 30 * NS_PER_MS, NS_PER_MS);
    put(&item[1], now_ns + 200 * NS_PER_MS, 100 * NS_PER_MS);
    ck_assert(fits(0, 10 * NS_PER_MS, 0, &beside, &late));
    ck_assert(!fits(0, 18 * NS_PER_MS, 0, &beside, &late));
    ck_assert_uint_le(late, now_ns + 30 * NS_PER_MS);
    ck_assert(fits(60 * NS_PER_MS, 140 * NS_PER_MS, 0, &beside, &late));
    for (unsigned i = 0; i < 2; i++) {
        backlog_drop(&b, &item[i].place);
    }
    backlog_finish(&b);
}
END_TEST

SUITE_MAIN("backlog", sums_are_those_of_the_list, a_job_that_delays_others_too_far_does_not_fit,
           others_delay_the_first_jobs_most)
