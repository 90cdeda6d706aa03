/* Runs against a plain array: random changes of contenders that come and go. */
#include <stdint.h>
#include <string.h>

#include "common/tournament.h"
#include "tests/unit/common/suite.h"

enum { MOST = 300, STEPS = 100000 };

/* A seat as the test knows it. */
static struct {
    bool given;
    bool in;
    uint64_t key, tie;
} own[1024];

static unsigned at_random(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

static bool first_of(uint32_t *ret_seat)
{
    bool found = false;
    for (uint32_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        bool less =
            found && (own[i].key < own[*ret_seat].key ||
                      (own[i].key == own[*ret_seat].key && own[i].tie < own[*ret_seat].tie));
        if (own[i].in && (!found || less)) {
            *ret_seat = i;
            found = true;
        }
    }
    return found;
}

static unsigned given_seats(void)
{
    unsigned count = 0;
    for (uint32_t i = 0; i < sizeof own / sizeof own[0]; i++) {
        count += own[i].given;
    }
    return count;
}

static void compare(const struct tournament *t)
{
    uint32_t seat = 0;
    const void *first = first_of(&seat) ? &own[seat] : NULL;
    ck_assert_ptr_eq(tournament_first(t), first);
}

static void change(struct tournament *t, uint32_t seat, unsigned *random)
{
    if (at_random(random, 4) == 0) {
        tournament_drop(t, seat);
        own[seat].in = false;
    } else { /* equal keys are frequent, and 0 and the largest occur */
        uint64_t key = at_random(random, 50);
        own[seat].key = key == 49 ? UINT64_MAX : key;
        own[seat].tie = key == 49 ? UINT64_MAX - seat : seat * 7 % 1024;
        own[seat].in = true;
        tournament_put(t, seat, own[seat].key, own[seat].tie, &own[seat]);
    }
    ck_assert(tournament_has(t, seat) == own[seat].in);
}

START_TEST(the_first_is_that_of_an_array)
{
    struct tournament t = {.seats = 0};
    unsigned random = 7;
    memset(own, 0, sizeof own);
    compare(&t);
    for (unsigned step = 0; step < STEPS; step++) {
        uint32_t seat = at_random(&random, 1024);
        if (own[seat].given && at_random(&random, 20) > 0) {
            change(&t, seat, &random);
        } else if (own[seat].given) {
            tournament_leave(&t, seat);
            memset(&own[seat], 0, sizeof own[seat]);
        } else if (given_seats() < MOST) {
            ck_assert(tournament_join(&t, &seat));
            ck_assert_uint_lt(seat, MOST); /* seats that were given back are given first */
            ck_assert(!own[seat].given);
            ck_assert(!tournament_has(&t, seat));
            own[seat].given = true;
        }
        compare(&t);
    }
    tournament_finish(&t);
    ck_assert_ptr_null(tournament_first(&t));
}
END_TEST

START_TEST(one_alone)
{
    struct tournament t = {.seats = 0};
    uint32_t seat;
    ck_assert(tournament_join(&t, &seat));
    ck_assert_uint_eq(seat, 0);
    tournament_put(&t, seat, UINT64_MAX, UINT64_MAX, &t);
    ck_assert_ptr_eq(tournament_first(&t), &t);
    ck_assert_uint_eq(t.count, 1);
    tournament_put(&t, seat, 1, 1, &t);
    ck_assert_uint_eq(t.count, 1);
    tournament_drop(&t, seat);
    tournament_drop(&t, seat);
    ck_assert_uint_eq(t.count, 0);
    ck_assert_ptr_null(tournament_first(&t));
    tournament_leave(&t, seat);
    tournament_finish(&t);
}
END_TEST

SUITE_MAIN("tournament", the_first_is_that_of_an_array, one_alone)
