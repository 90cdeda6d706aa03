/* Which workers of a device give memory to which. */
#include "daemon/front/workers/lease.h"
#include "tests/unit/common/suite.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define ALL (16 * GIB)

static struct lease_holder h[5];
static uint64_t take[5];

static void begin(void)
{
    for (unsigned i = 0; i < 4; i++) {
        h[i] = (struct lease_holder){.lease = 4 * GIB,
                                     .used = 4 * GIB,
                                     .floor = GIB,
                                     .most = ALL,
                                     .gives = true,
                                     .busy = true,
                                     .used_ns = 10 + i};
    }
}

static uint64_t plan(unsigned wanter, uint64_t wanted)
{
    h[wanter].wanted = wanted;
    uint64_t sum = lease_plan(h, 4, wanter, take);
    uint64_t taken = 0;
    for (unsigned i = 0; i < 4; i++) {
        ck_assert(sum == 0 || h[i].lease - take[i] >= h[i].floor || take[i] == 0);
        ck_assert_uint_eq(take[i] % LEASE_UNIT, 0);
        taken += take[i];
    }
    ck_assert(sum == 0 || taken == sum);
    ck_assert_uint_eq(take[wanter], 0);
    return sum;
}

/* What no worker uses goes first, the most of it before the rest; no jobs suffer. */
START_TEST(nobody_hoards)
{
    begin();
    h[1].used = 3 * GIB;
    h[2].used = 2 * GIB;
    h[3].busy = false;
    ck_assert_uint_eq(plan(0, GIB), GIB + GIB / 16);
    ck_assert_uint_eq(take[2], GIB + GIB / 16);
    ck_assert_uint_eq(plan(0, 3 * GIB), 3 * GIB); /* no more than there is */
    ck_assert_uint_eq(take[1], GIB);
    ck_assert_uint_eq(take[2], 2 * GIB);
    ck_assert_uint_eq(take[3], 0);
}
END_TEST

/* Then what idle ones use, the one that was used least lately before the others, down to what they
 * are guaranteed. */
START_TEST(idle_ones_make_room)
{
    begin();
    h[1].busy = h[2].busy = false;
    h[1].used_ns = 50;
    ck_assert_uint_eq(plan(0, 3 * GIB), 3 * GIB);
    ck_assert_uint_eq(take[2], 3 * GIB);
    ck_assert_uint_eq(plan(0, 5 * GIB), 5 * GIB);
    ck_assert_uint_eq(take[2], 3 * GIB);
    ck_assert_uint_eq(take[1], 2 * GIB);
    ck_assert_uint_eq(plan(0, 6 * GIB + 1), 0); /* all or nothing */
    h[2].gives = false;
    ck_assert_uint_eq(plan(0, 3 * GIB + 1), 0);
    ck_assert_uint_eq(plan(0, 3 * GIB), 3 * GIB);
    ck_assert_uint_eq(take[1], 3 * GIB);
}
END_TEST

/* One that has less than an equal part gets that from those that have more, busy or not. */
START_TEST(nobody_starves)
{
    begin();
    ck_assert_uint_eq(plan(0, MIB), 0); /* all are busy, and have as much as it has */
    h[0].lease = h[0].used = GIB;
    h[3].lease = h[3].used = 7 * GIB;
    ck_assert_uint_eq(plan(0, 3 * GIB), 3 * GIB);
    ck_assert_uint_eq(take[3], 3 * GIB);
    ck_assert_uint_eq(plan(0, 3 * GIB + 1), 0); /* more than an equal part */
    h[3].floor = 6 * GIB;
    ck_assert_uint_eq(plan(0, GIB), GIB);
    ck_assert_uint_eq(plan(0, GIB + 1), 0); /* what is guaranteed stays */
}
END_TEST

START_TEST(limits_hold)
{
    begin();
    h[1].used = 0;
    h[0].most = 5 * GIB;
    ck_assert_uint_eq(plan(0, GIB + 1), 0);
    ck_assert_uint_eq(plan(0, GIB), GIB);
    ck_assert_uint_eq(plan(0, 1), LEASE_UNIT);
    ck_assert_uint_eq(plan(0, 0), 0);
    ck_assert_uint_eq(plan(0, UINT64_MAX), 0);
    h[0].most = 0; /* its tenant's limit was lowered */
    ck_assert_uint_eq(plan(0, 1), 0);
    ck_assert_uint_eq(lease_floor(64 * GIB, 0), GIB);
    ck_assert_uint_eq(lease_floor(64 * GIB, 3 * GIB), 3 * GIB);
    ck_assert_uint_eq(lease_floor(0, 0), 0);
}
END_TEST

START_TEST(the_oldest_is_next)
{
    begin();
    ck_assert_uint_eq(lease_next(h, 4), 4);
    for (unsigned i = 0; i < 4; i++) {
        h[i].wanted = i != 1;
        h[i].since_ns = 100 - i;
    }
    ck_assert_uint_eq(lease_next(h, 4), 3);
    h[3].since_ns = 200;
    ck_assert_uint_eq(lease_next(h, 4), 2);
}
END_TEST

SUITE_MAIN("lease", nobody_hoards, idle_ones_make_room, nobody_starves, limits_hold,
           the_oldest_is_next)
