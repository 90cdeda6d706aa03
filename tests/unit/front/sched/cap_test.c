/* A tenant gets no more of a device than its cap, and the others get the rest. */
#include <math.h>

#include "daemon/front/sched/cap.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/sched/market.h"

#define RUN_NS (100 * NS_PER_S)

static struct market *m;

static struct seller *sells(uint64_t weight, unsigned cap, uint64_t least_ns, uint64_t most_ns)
{
    struct seller *s = market_add(m, weight, CLASS_INTERACTIVE);
    s->tenant->limits.device_share = cap;
    s->least_ns = least_ns;
    s->most_ns = most_ns;
    s->backlog = 32;
    return s;
}

/* The time that it had, in percent of the time that passed. */
static double part_of(const struct seller *s, uint64_t ns)
{
    return (double)s->tenant->account->device_ns / (double)ns * 100;
}

static void expect(const struct seller *s, double part)
{
    double had = part_of(s, RUN_NS);
    ck_assert_msg(fabs(had / part - 1) <= 0.03, "%.2f%%, not %.2f%%", had, part);
}

/* FAULT other: a tenant that would use all of a device
 * required: with `device_share` it gets that part of each device's time, alone and beside others,
 *   from its own worker as from the shared one, and others get the rest
 * defence: `front/sched/cap.c`: cap_holds; `front/sched/shares.c`: search
 * also: `front_cap_test`: over_a_short_time
 * mutants: cap-holds, cap-back, cap-burst */
START_TEST(alone_on_a_device)
{
    static const unsigned caps[] = {1, 10, 50, 100};
    for (unsigned i = 0; i < 4; i++) {
        for (unsigned streams = 1; streams <= 4; streams += 3) {
            m = market_create(1, streams, 2 * streams);
            struct seller *s = sells(100, caps[i], 100 * NS_PER_US, 5 * NS_PER_MS);
            market_run(m, RUN_NS);
            expect(s, caps[i]);
            market_destroy(m);
        }
    }
}
END_TEST

START_TEST(beside_others)
{
    m = market_create(1, 2, 4);
    struct seller *capped = sells(500, 20, NS_PER_MS, 20 * NS_PER_MS);
    struct seller *small = sells(100, 60, NS_PER_MS, 20 * NS_PER_MS); /* its weight gives 26 % */
    struct seller *other = sells(200, 0, NS_PER_MS, 20 * NS_PER_MS);
    market_run(m, RUN_NS);
    expect(capped, 20);
    expect(small, 80.0 / 3);
    expect(other, 160.0 / 3);
    market_destroy(m);
}
END_TEST

/* Jobs that any device may run go to one that the cap leaves. */
START_TEST(on_each_of_several_devices)
{
    m = market_create(3, 2, 4);
    struct seller *s = sells(100, 30, NS_PER_MS, 5 * NS_PER_MS);
    s->device = -1;
    market_run(m, RUN_NS);
    expect(s, 90);
    market_destroy(m);
}
END_TEST

START_TEST(in_a_worker_of_its_own)
{
    m = market_create(1, 2, 4);
    m->switch_ns = 100 * NS_PER_US;
    struct seller *apart = sells(100, 25, NS_PER_MS, 5 * NS_PER_MS);
    struct seller *other = sells(100, 0, NS_PER_MS, 5 * NS_PER_MS);
    market_apart(m, apart);
    market_run(m, RUN_NS);
    expect(apart, 25);
    ck_assert_msg(part_of(other, RUN_NS) >= 70, "%.2f%%", part_of(other, RUN_NS));
    market_destroy(m);
}
END_TEST

/* Also within a second, but for the time in advance and the job that went last. What the tenant did
 * not use is not saved up. */
START_TEST(over_a_short_time)
{
    m = market_create(1, 1, 2);
    struct seller *s = sells(100, 40, NS_PER_MS, 4 * NS_PER_MS);
    s->backlog = 0;
    market_run(m, 50 * NS_PER_S);
    s->backlog = 32;
    for (unsigned i = 0; i < 60; i++) {
        uint64_t before = s->tenant->account->device_ns;
        market_run(m, NS_PER_S);
        uint64_t had = s->tenant->account->device_ns - before;
        ck_assert_uint_le(had, (400 + 40 + 8) * NS_PER_MS);
        ck_assert_uint_ge(had, (400 - 20) * NS_PER_MS);
    }
    market_destroy(m);
}
END_TEST

/* The end of a job is known beforehand at a cap, too. */
START_TEST(ends_are_predicted)
{
    m = market_create(1, 1, 2);
    struct seller *s = sells(100, 20, 4 * NS_PER_MS, 5 * NS_PER_MS);
    s->kind = 1;
    s->backlog = 8;
    market_run(m, RUN_NS);
    uint64_t half = accuracy_ppm(&s->ends, 50);
    ck_assert_msg(half <= 200000, "%u ppm off", (unsigned)half);
    market_destroy(m);
}
END_TEST

/* Without the cap the tenant goes on at once. */
START_TEST(a_reload_changes_it)
{
    m = market_create(1, 1, 2);
    struct seller *s = sells(100, 1, 10 * NS_PER_MS, 10 * NS_PER_MS);
    market_run(m, RUN_NS);
    expect(s, 1);
    s->tenant->limits.device_share = 0;
    share_look(&s->tenant->share);
    uint64_t before = s->tenant->account->device_ns;
    market_run(m, RUN_NS);
    ck_assert_uint_ge(s->tenant->account->device_ns - before, RUN_NS - 20 * NS_PER_MS);
    market_destroy(m);
}
END_TEST

SUITE_MAIN("cap", alone_on_a_device, beside_others, on_each_of_several_devices,
           in_a_worker_of_its_own, over_a_short_time, ends_are_predicted, a_reload_changes_it)
