#include "daemon/worker/run/job_state.h"

#define TO(state) (1u << JOB_##state)

_Static_assert(JOB_FINISHED + 1 == JOB_STATES, "every state has a row");

static const unsigned STEPS[JOB_STATES] = {
    [JOB_ADMITTED] = TO(WAITING) | TO(STARTED),
    [JOB_WAITING] = TO(ADMITTED),
    [JOB_STARTED] = TO(GRAPH) | TO(ENQUEUED) | TO(GIVEN_UP) | TO(FINISHED),
    [JOB_GRAPH] = TO(ENQUEUED) | TO(GIVEN_UP) | TO(FINISHED),
    [JOB_ENQUEUED] = TO(FINISHED),
    [JOB_GIVEN_UP] = TO(REPORTED) | TO(FINISHED),
    [JOB_REPORTED] = TO(RETIRED) | TO(FINISHED),
    [JOB_RETIRED] = TO(FINISHED),
    [JOB_FINISHED] = 0, /* the end is final */
};

bool job_state_possible(enum job_state from, enum job_state to)
{
    return (STEPS[from] >> to & 1u) != 0;
}

bool job_state_given_up(enum job_state state)
{
    return state == JOB_GIVEN_UP || state == JOB_REPORTED || state == JOB_RETIRED;
}

bool job_state_reported(enum job_state state)
{
    return state == JOB_REPORTED || state == JOB_RETIRED || state == JOB_FINISHED;
}
