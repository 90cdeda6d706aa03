/* The tables of steps of sessions, their requests and devices: each step of the tables is made, and
 * each other one ends the process. */
#include <signal.h>
#include <stdlib.h>

#include "daemon/front/model/device.h"
#include "daemon/front/model/life.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/session.h"
#include "tests/unit/common/suite.h"

#define STATES_MAX 16u
#define TO(state)  (1u << (state))

/* A table of steps, written down once more: a bit for each state that may come next. */
struct machine {
    unsigned states;
    unsigned steps[STATES_MAX];
    unsigned (*step)(unsigned from, unsigned to);
};

static unsigned step_session(unsigned from, unsigned to)
{
    struct session s = {.state = (enum session_state)from};
    session_step(&s, (enum session_state)to);
    return s.state;
}

static unsigned step_op(unsigned from, unsigned to)
{
    struct op o = {.state = (enum op_state)from};
    op_step(&o, (enum op_state)to);
    return o.state;
}

static unsigned step_life(unsigned from, unsigned to)
{
    enum front_life life = (enum front_life)from;
    front_life_step(&life, (enum front_life)to);
    return life;
}

static unsigned step_device(unsigned from, unsigned to)
{
    struct device d = {.state = (enum device_state)from};
    device_set_state(&d, (enum device_state)to, NULL);
    return d.state;
}

static unsigned step_drain(unsigned from, unsigned to)
{
    struct device d = {.drain = {.state = (enum drain_state)from}};
    device_set_drain(&d, (enum drain_state)to);
    return d.drain.state;
}

#define END  (TO(DEVICE_WAITING) | TO(DEVICE_STUCK))
#define REST TO(DEVICE_RESTING)

static const struct machine machines[] = {
    {.states = SESSION_STATES,
     .step = step_session,
     .steps = {[SESSION_LINGERING] = TO(SESSION_CONNECTED) | TO(SESSION_ENDING_JOBS),
               [SESSION_CONNECTED] = TO(SESSION_LINGERING),
               [SESSION_ENDING_JOBS] = TO(SESSION_ENDING_PROGRAMS),
               [SESSION_ENDING_PROGRAMS] = TO(SESSION_ENDING_MODULES),
               [SESSION_ENDING_MODULES] = TO(SESSION_ENDING_OPENINGS),
               [SESSION_ENDING_OPENINGS] = TO(SESSION_ENDING_BUFFERS),
               [SESSION_ENDING_BUFFERS] = TO(SESSION_ENDING_ARENAS),
               [SESSION_ENDING_ARENAS] = TO(SESSION_ENDING_ANSWERS),
               [SESSION_ENDING_ANSWERS] = TO(SESSION_ENDED)}},
    {.states = FRONT_LIVES,
     .step = step_life,
     .steps = {[FRONT_SERVING] = TO(FRONT_DRAINING) | TO(FRONT_HANDING_OVER) | TO(FRONT_ENDING) |
                                 TO(FRONT_STOPPING),
               [FRONT_DRAINING] = TO(FRONT_SERVING) | TO(FRONT_HANDING_OVER) | TO(FRONT_ENDING) |
                                  TO(FRONT_STOPPING),
               [FRONT_HANDING_OVER] = TO(FRONT_HANDING_OVER) | TO(FRONT_ENDING) | TO(FRONT_LEAVING),
               [FRONT_ENDING] = TO(FRONT_HANDING_OVER) | TO(FRONT_STOPPING)}},
    {.states = OP_STATES,
     .step = step_op,
     .steps = {[OP_PENDING] = TO(OP_ANSWERED),
               [OP_ANSWERED] = TO(OP_IN_RING),
               [OP_IN_RING] = TO(OP_ANSWERED)}},
    {.states = DEVICE_STATES,
     .step = step_device,
     .steps = {[DEVICE_STARTING] = TO(DEVICE_STARTING) | TO(DEVICE_ADOPTING) | TO(DEVICE_OPENED) |
                                   TO(DEVICE_ABSENT) | TO(DEVICE_REPLACED) | REST | END,
               [DEVICE_OPENED] = TO(DEVICE_PROBING) | TO(DEVICE_ABSENT) | END,
               [DEVICE_ADOPTING] = TO(DEVICE_OPENED) | REST | END,
               [DEVICE_PROBING] = TO(DEVICE_PROBING) | TO(DEVICE_READY) | TO(DEVICE_ABSENT) |
                                  TO(DEVICE_REPLACED) | END,
               [DEVICE_READY] = REST | END,
               [DEVICE_WAITING] =
                   TO(DEVICE_STARTING) | TO(DEVICE_ADOPTING) | TO(DEVICE_WAITING) | REST,
               [DEVICE_REPLACED] = END,
               [DEVICE_ABSENT] =
                   TO(DEVICE_STARTING) | TO(DEVICE_ADOPTING) | TO(DEVICE_ABSENT) | REST | END,
               [DEVICE_STUCK] = TO(DEVICE_WAITING),
               [DEVICE_RESTING] = TO(DEVICE_STARTING) | TO(DEVICE_ADOPTING) | TO(DEVICE_STUCK) |
                                  TO(DEVICE_READY) | TO(DEVICE_WAITING) | REST}},
    {.states = DRAIN_STATES,
     .step = step_drain,
     .steps = {[DRAIN_NONE] = TO(DRAIN_HOLDS) | TO(DRAIN_FINISHES),
               [DRAIN_HOLDS] = TO(DRAIN_FINISHES) | TO(DRAIN_RELEASED) | TO(DRAIN_NONE),
               [DRAIN_FINISHES] = TO(DRAIN_HOLDS) | TO(DRAIN_RELEASED) | TO(DRAIN_NONE),
               [DRAIN_RELEASED] = TO(DRAIN_NONE)}},
};

struct pair {
    const struct machine *machine;
    unsigned from, to;
};

/* The n-th pair of states that the tables allow, or do not. false: there are fewer. */
static bool pair_at(int n, bool allowed, struct pair *ret_pair)
{
    for (unsigned m = 0; m < sizeof machines / sizeof machines[0]; m++) {
        unsigned states = machines[m].states;
        for (unsigned i = 0; i < states * states; i++) {
            struct pair p = {&machines[m], i / states, i % states};
            if ((p.machine->steps[p.from] >> p.to & 1) == allowed && n-- == 0) {
                *ret_pair = p;
                return true;
            }
        }
    }
    return false;
}

static int pair_count(bool allowed)
{
    struct pair p;
    int count = 0;
    while (pair_at(count, allowed, &p)) {
        count++;
    }
    return count;
}

START_TEST(a_step_of_the_table_is_made)
{
    struct pair p;
    ck_assert(pair_at(_i, true, &p));
    ck_assert_uint_eq(p.machine->step(p.from, p.to), p.to);
}
END_TEST

START_TEST(another_step_ends_the_process)
{
    struct pair p;
    if (pair_at(_i, false, &p)) {
        (void)p.machine->step(p.from, p.to);
    }
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("states");
    TCase *tcase = tcase_create("states");
    tcase_add_loop_test(tcase, a_step_of_the_table_is_made, 0, pair_count(true));
    tcase_add_loop_test_raise_signal(tcase, another_step_ends_the_process, SIGABRT, 0,
                                     pair_count(false));
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
