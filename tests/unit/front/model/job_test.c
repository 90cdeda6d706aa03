/* A job: the tables of its states, the times that they stamp, and what can run again. */
#include <signal.h>
#include <stdlib.h>

#include "common/shape.h"
#include "daemon/front/model/job.h"
#include "tests/unit/common/suite.h"

/* ---- steps -------------------------------------------------------------------------------- */

#define STATES_MAX 8u
#define TO(state)  (1u << (state))

/* A table of steps, written down once more: a bit for each state that may come next. */
struct machine {
    unsigned states;
    unsigned targets; /* numbers that may come next; 0: states */
    unsigned steps[STATES_MAX];
    unsigned (*step)(unsigned from, unsigned to);
};

static unsigned step_state(unsigned from, unsigned to)
{
    enum job_state state = (enum job_state)from;
    job_state_step(&state, (enum job_state)to);
    return state;
}

static unsigned step_inputs(unsigned from, unsigned to)
{
    enum job_inputs inputs = (enum job_inputs)from;
    job_inputs_step(&inputs, (enum job_inputs)to);
    return inputs;
}

static unsigned step_trust(unsigned from, unsigned to)
{
    enum job_trust trust = (enum job_trust)from;
    job_trust_step(&trust, (enum job_trust)to);
    return trust;
}

static unsigned step_answer(unsigned from, unsigned to)
{
    enum job_answer answer = (enum job_answer)from;
    job_answer_step(&answer, (enum job_answer)to);
    return answer;
}

/* Not a step: a state, and what a job in it may wait for. */
static unsigned wait_in_state(unsigned state, unsigned wait)
{
    job_wait_check((enum job_state)state, (enum job_wait)wait);
    return wait;
}

static const struct machine machines[] = {
    {.states = JOB_STATES,
     .step = step_state,
     .steps = {[JOB_QUEUED] = TO(JOB_DISPATCHED) | TO(JOB_FAILED) | TO(JOB_CANCELLED),
               [JOB_DISPATCHED] = TO(JOB_QUEUED) | TO(JOB_RUNNING) | TO(JOB_DONE) | TO(JOB_FAILED) |
                                  TO(JOB_CANCELLED) | TO(JOB_LOST),
               [JOB_RUNNING] = TO(JOB_QUEUED) | TO(JOB_DONE) | TO(JOB_FAILED) | TO(JOB_CANCELLED) |
                               TO(JOB_LOST)}},
    {.states = INPUTS_STATES,
     .step = step_inputs,
     .steps = {[INPUTS_SOUND] = TO(INPUTS_SOUND) | TO(INPUTS_TAINTED) | TO(INPUTS_STARVED),
               [INPUTS_TAINTED] = TO(INPUTS_SOUND) | TO(INPUTS_TAINTED),
               [INPUTS_STARVED] = TO(INPUTS_STARVED)}},
    {.states = TRUST_STATES,
     .step = step_trust,
     .steps = {[TRUST_SHARED] = TO(TRUST_SUSPECT) | TO(TRUST_ALONE),
               [TRUST_SUSPECT] = TO(TRUST_SUSPECT) | TO(TRUST_ALONE),
               [TRUST_ALONE] = TO(TRUST_SUSPECT) | TO(TRUST_ALONE)}},
    {.states = ANSWER_STATES,
     .step = step_answer,
     .steps = {[ANSWER_OPEN] = TO(ANSWER_EARLY) | TO(ANSWER_SENT) | TO(ANSWER_CLOSED),
               [ANSWER_EARLY] = TO(ANSWER_EARLY_ACKED) | TO(ANSWER_SENT) | TO(ANSWER_CLOSED),
               [ANSWER_EARLY_ACKED] = TO(ANSWER_CLOSED),
               [ANSWER_SENT] = TO(ANSWER_KEPT) | TO(ANSWER_CLOSED),
               [ANSWER_KEPT] = TO(ANSWER_CLOSED)}},
    {.states = JOB_STATES,
     .targets = JOB_WAITS,
     .step = wait_in_state,
     .steps = {[JOB_QUEUED] = TO(WAIT_NOTHING) | TO(WAIT_HAZARD) | TO(WAIT_WINDOW) |
                              TO(WAIT_MODULE) | TO(WAIT_STAGING) | TO(WAIT_FLIGHT) |
                              TO(WAIT_TRANSFER) | TO(WAIT_ALONE) | TO(WAIT_RESTORE),
               [JOB_DISPATCHED] = TO(WAIT_NOTHING) | TO(WAIT_MEMORY),
               [JOB_RUNNING] = TO(WAIT_NOTHING),
               [JOB_DONE] = TO(WAIT_NOTHING),
               [JOB_FAILED] = TO(WAIT_NOTHING),
               [JOB_CANCELLED] = TO(WAIT_NOTHING),
               [JOB_LOST] = TO(WAIT_NOTHING)}},
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
        unsigned targets = machines[m].targets > 0 ? machines[m].targets : states;
        for (unsigned i = 0; i < states * targets; i++) {
            struct pair p = {&machines[m], i / targets, i % targets};
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

START_TEST(a_state_stamps_its_time)
{
    struct pair p;
    ck_assert(pair_at(_i, true, &p));
    enum job_state to = (enum job_state)p.to;
    struct job j = {
        .state = (enum job_state)p.from, .dispatched_ns = 1, .started_ns = 2, .wait = WAIT_WINDOW};
    job_set_state(&j, to, 9);
    ck_assert_int_eq(j.state, to);
    ck_assert_int_eq(job_ended(&j), to >= JOB_DONE);
    if (job_ended(&j)) {
        ck_assert_uint_eq(j.ended_ns, 9);
    }
    ck_assert_int_eq(j.wait, WAIT_NOTHING);
    ck_assert_uint_eq(j.dispatched_ns, to == JOB_QUEUED ? 0 : to == JOB_DISPATCHED ? 9 : 1);
    ck_assert_uint_eq(j.started_ns, to == JOB_QUEUED ? 0 : to == JOB_RUNNING ? 9 : 2);
}
END_TEST

/* ---- the job ------------------------------------------------------------------------------ */

START_TEST(only_what_writes_nothing_is_repeatable)
{
    struct work_use uses[] = {{.access = ACCESS_IN}, {.access = ACCESS_IN}};
    struct job j = {.work = {.uses = uses, .use_count = 2}};
    ck_assert(job_repeatable(&j));
    uses[1].access = ACCESS_INOUT;
    ck_assert(!job_repeatable(&j));
    uses[1].access = ACCESS_OUT;
    ck_assert(!job_repeatable(&j));
    uses[1].access = ACCESS_IN;
    j.origin = ORIGIN_ADOPTED;
    ck_assert(!job_repeatable(&j));
    for (int i = JOB_QUEUED; i <= JOB_LOST; i++) {
        ck_assert_ptr_nonnull(job_state_name((enum job_state)i));
    }
    for (int i = WAIT_NOTHING; i <= WAIT_ALONE; i++) {
        ck_assert_ptr_nonnull(job_wait_name((enum job_wait)i));
    }
    job_destroy(NULL);
}
END_TEST

int main(void)
{
    enum { STATE_PAIRS = 14 }; /* the first pairs are those of the first machine */
    Suite *suite = suite_create("job");
    TCase *tcase = tcase_create("job");
    tcase_add_loop_test(tcase, a_step_of_the_table_is_made, 0, pair_count(true));
    tcase_add_loop_test_raise_signal(tcase, another_step_ends_the_process, SIGABRT, 0,
                                     pair_count(false));
    tcase_add_loop_test(tcase, a_state_stamps_its_time, 0, STATE_PAIRS);
    tcase_add_test(tcase, only_what_writes_nothing_is_repeatable);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
