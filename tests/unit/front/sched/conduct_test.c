/* The strikes against a tenant, and its pauses. */
#include "daemon/front/sched/conduct.h"
#include "tests/unit/common/suite.h"

#define BEGIN (7 * NS_PER_S)

/* So many strikes in one moment; the pause after the last one. */
static uint64_t strike(struct conduct *c, uint64_t now_ns, unsigned count)
{
    uint64_t pause = 0;
    for (unsigned i = 0; i < count; i++) {
        pause = conduct_strike(c, now_ns);
    }
    return pause;
}

START_TEST(one_strike_too_many_pauses)
{
    struct conduct c = {0};
    ck_assert_uint_eq(conduct_strikes(&c, BEGIN), 0);
    ck_assert_uint_eq(strike(&c, BEGIN, CONDUCT_STRIKES - 1), 0);
    ck_assert_uint_eq(conduct_strikes(&c, BEGIN), CONDUCT_STRIKES - 1);
    ck_assert_uint_eq(conduct_paused_ns(&c, BEGIN), 0);
    ck_assert_uint_eq(strike(&c, BEGIN, 1), CONDUCT_PAUSE_NS);
    ck_assert_uint_eq(conduct_paused_ns(&c, BEGIN), CONDUCT_PAUSE_NS);
    ck_assert_uint_eq(conduct_paused_ns(&c, BEGIN + CONDUCT_PAUSE_NS - 1), 1);
    ck_assert_uint_eq(conduct_paused_ns(&c, BEGIN + CONDUCT_PAUSE_NS), 0);
}
END_TEST

START_TEST(each_further_strike_doubles_the_pause)
{
    struct conduct c = {0};
    uint64_t now = BEGIN;
    uint64_t pause = strike(&c, now, CONDUCT_STRIKES);
    for (unsigned i = 0; i < CONDUCT_DOUBLINGS; i++) {
        now += pause;
        ck_assert_uint_eq(strike(&c, now, 1), 2 * pause);
        pause *= 2;
    }
    ck_assert_uint_eq(strike(&c, now + pause, 1), pause); /* and no more */
    ck_assert_uint_eq(strike(&c, now + 2 * pause, 100), pause);
    ck_assert_uint_eq(conduct_paused_ns(&c, now + 2 * pause), pause);
}
END_TEST

/* A job that was in flight when the pause began. */
START_TEST(a_strike_in_a_pause_shortens_it_never)
{
    struct conduct c = {0};
    (void)strike(&c, BEGIN, CONDUCT_STRIKES);
    ck_assert_uint_eq(strike(&c, BEGIN + 1, 1), 2 * CONDUCT_PAUSE_NS);
    ck_assert_uint_eq(conduct_paused_ns(&c, BEGIN + 1), 2 * CONDUCT_PAUSE_NS);
    ck_assert_uint_eq(conduct_strikes(&c, BEGIN + 1), CONDUCT_STRIKES + 1);
}
END_TEST

START_TEST(time_forgives_strikes_one_by_one)
{
    struct conduct c = {0};
    uint64_t now = BEGIN + strike(&c, BEGIN, CONDUCT_STRIKES);
    ck_assert_uint_eq(conduct_strikes(&c, now + CONDUCT_FORGIVE_NS - 1), CONDUCT_STRIKES);
    now += CONDUCT_FORGIVE_NS;
    ck_assert_uint_eq(conduct_strikes(&c, now), CONDUCT_STRIKES - 1);
    ck_assert_uint_eq(strike(&c, now, 1), CONDUCT_PAUSE_NS); /* the next one pauses again */
    now += CONDUCT_PAUSE_NS + 2 * CONDUCT_FORGIVE_NS;
    ck_assert_uint_eq(conduct_strikes(&c, now), CONDUCT_STRIKES - 2);
    ck_assert_uint_eq(strike(&c, now, 1), 0);
    now += (CONDUCT_STRIKES + 1) * CONDUCT_FORGIVE_NS;
    ck_assert_uint_eq(conduct_strikes(&c, now), 0);
    ck_assert_uint_eq(strike(&c, now, 1), 0);
    ck_assert_uint_eq(conduct_strikes(&c, now), 1);
}
END_TEST

SUITE_MAIN("conduct", one_strike_too_many_pauses, each_further_strike_doubles_the_pause,
           a_strike_in_a_pause_shortens_it_never, time_forgives_strikes_one_by_one)
