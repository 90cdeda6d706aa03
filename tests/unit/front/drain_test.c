/* How long the daemon's end waits for jobs. */
#include "common/clock.h"
#include "daemon/front/drain.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct job *limited(uint64_t limit_ns)
{
    struct job *j = fake_job(k, 0);
    j->limit_ns = limit_ns;
    (void)fake_submit(k, j);
    return j;
}

START_TEST(the_longest_time_limit_counts)
{
    k = fake_create();
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MIN_NS);
    struct job *brief = limited(NS_PER_S);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MIN_NS);
    struct job *some = limited(2 * DRAIN_MIN_NS);
    struct job *other = limited(DRAIN_MIN_NS + 1);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + 2 * DRAIN_MIN_NS);
    struct job *day = limited(24 * 3600 * NS_PER_S);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MAX_NS);
    fake_turn(k);
    fake_done(k, day, 0);
    fake_done(k, some, 0);
    ck_assert_uint_eq(drain_until(&k->f, 5), 5 + DRAIN_MIN_NS + 1); /* ended ones do not */
    fake_done(k, brief, 0);
    fake_done(k, other, 0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("drain", the_longest_time_limit_counts)
