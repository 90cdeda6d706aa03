/* The table of steps in the life of a worker's job. */
#include <check.h>
#include <signal.h>
#include <stdlib.h>

#include "daemon/worker/run/job.h"

#define PAIRS ((int)(JOB_STATES * JOB_STATES))

/* One row for each state that a job leaves: where it may go. */
static const bool POSSIBLE[JOB_STATES][JOB_STATES] = {
    [JOB_ADMITTED] = {[JOB_WAITING] = true, [JOB_STARTED] = true},
    [JOB_WAITING] = {[JOB_ADMITTED] = true},
    [JOB_STARTED] =
        {[JOB_GRAPH] = true, [JOB_ENQUEUED] = true, [JOB_GIVEN_UP] = true, [JOB_FINISHED] = true},
    [JOB_GRAPH] = {[JOB_ENQUEUED] = true, [JOB_GIVEN_UP] = true, [JOB_FINISHED] = true},
    [JOB_ENQUEUED] = {[JOB_FINISHED] = true},
    [JOB_GIVEN_UP] = {[JOB_REPORTED] = true, [JOB_FINISHED] = true},
    [JOB_REPORTED] = {[JOB_RETIRED] = true, [JOB_FINISHED] = true},
    [JOB_RETIRED] = {[JOB_FINISHED] = true},
};

#define POSSIBLE_PAIRS   16
#define IMPOSSIBLE_PAIRS (PAIRS - POSSIBLE_PAIRS)

/* The n-th pair of states that is possible, or not. */
static void pair_at(int n, bool wanted, enum job_state *ret_from, enum job_state *ret_to)
{
    for (int i = 0; i < PAIRS; i++) {
        unsigned from = (unsigned)i / JOB_STATES;
        unsigned to = (unsigned)i % JOB_STATES;
        if (POSSIBLE[from][to] == wanted && n-- == 0) {
            *ret_from = (enum job_state)from;
            *ret_to = (enum job_state)to;
            return;
        }
    }
    ck_abort_msg("there are fewer pairs");
}

START_TEST(possible_steps_change_the_state)
{
    enum job_state from = JOB_ADMITTED;
    enum job_state to = JOB_ADMITTED;
    pair_at(_i, true, &from, &to);
    struct job j = {.state = from};
    job_set_state(&j, to);
    ck_assert_int_eq(j.state, to);
}
END_TEST

/* FAULT 49: a worker's own fault: an impossible step in the life of a job
 * required: the worker ends, as after a crash: the job runs again, and none is answered twice
 * defence: `worker/run/job.c`: job_set_state; `worker/run/job_state.c`
 * mutants: job-steps */
START_TEST(impossible_steps_end_the_process)
{
    enum job_state from = JOB_ADMITTED;
    enum job_state to = JOB_ADMITTED;
    pair_at(_i, false, &from, &to);
    struct job j = {.state = from};
    job_set_state(&j, to);
}
END_TEST

/* What the front asks of a job, and what completion does with it, depends on these. */
START_TEST(states_that_have_something_in_common)
{
    static const struct {
        bool given_up, reported;
    } want[JOB_STATES] = {[JOB_GIVEN_UP] = {true, false},
                          [JOB_REPORTED] = {true, true},
                          [JOB_RETIRED] = {true, true},
                          [JOB_FINISHED] = {false, true}};
    ck_assert_int_eq(job_state_given_up((enum job_state)_i), want[_i].given_up);
    ck_assert_int_eq(job_state_reported((enum job_state)_i), want[_i].reported);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job state");
    TCase *tcase = tcase_create("job state");
    tcase_add_loop_test(tcase, possible_steps_change_the_state, 0, POSSIBLE_PAIRS);
    tcase_add_loop_test_raise_signal(tcase, impossible_steps_end_the_process, SIGABRT, 0,
                                     IMPOSSIBLE_PAIRS);
    tcase_add_loop_test(tcase, states_that_have_something_in_common, 0, (int)JOB_STATES);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
