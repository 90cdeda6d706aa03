#include "daemon/front/model/job_state.h"

#include "common/steps.h"

/* A bit for each state that may come next. */
static const unsigned state_steps[JOB_STATES] = {
    [JOB_QUEUED] = STEP_TO(JOB_DISPATCHED) | STEP_TO(JOB_FAILED) | STEP_TO(JOB_CANCELLED),
    [JOB_DISPATCHED] = STEP_TO(JOB_QUEUED) | STEP_TO(JOB_RUNNING) | STEP_TO(JOB_DONE) |
                       STEP_TO(JOB_FAILED) | STEP_TO(JOB_CANCELLED) | STEP_TO(JOB_LOST),
    [JOB_RUNNING] = STEP_TO(JOB_QUEUED) | STEP_TO(JOB_DONE) | STEP_TO(JOB_FAILED) |
                    STEP_TO(JOB_CANCELLED) | STEP_TO(JOB_LOST),
};

/* A bit for each wait that a job in that state may have. */
static const unsigned state_waits[JOB_STATES] = {
    [JOB_QUEUED] = STEP_TO(WAIT_NOTHING) | STEP_TO(WAIT_HAZARD) | STEP_TO(WAIT_WINDOW) |
                   STEP_TO(WAIT_MODULE) | STEP_TO(WAIT_STAGING) | STEP_TO(WAIT_ALONE) |
                   STEP_TO(WAIT_FLIGHT) | STEP_TO(WAIT_TRANSFER) | STEP_TO(WAIT_RESTORE),
    [JOB_DISPATCHED] = STEP_TO(WAIT_NOTHING) | STEP_TO(WAIT_MEMORY),
    [JOB_RUNNING] = STEP_TO(WAIT_NOTHING),
    [JOB_DONE] = STEP_TO(WAIT_NOTHING),
    [JOB_FAILED] = STEP_TO(WAIT_NOTHING),
    [JOB_CANCELLED] = STEP_TO(WAIT_NOTHING),
    [JOB_LOST] = STEP_TO(WAIT_NOTHING),
};

static const unsigned inputs_steps[INPUTS_STATES] = {
    [INPUTS_SOUND] = STEP_TO(INPUTS_SOUND) | STEP_TO(INPUTS_TAINTED) | STEP_TO(INPUTS_STARVED),
    [INPUTS_TAINTED] = STEP_TO(INPUTS_SOUND) | STEP_TO(INPUTS_TAINTED),
    [INPUTS_STARVED] = STEP_TO(INPUTS_STARVED),
};

static const unsigned trust_steps[TRUST_STATES] = {
    [TRUST_SHARED] = STEP_TO(TRUST_SUSPECT) | STEP_TO(TRUST_ALONE),
    [TRUST_SUSPECT] = STEP_TO(TRUST_SUSPECT) | STEP_TO(TRUST_ALONE),
    [TRUST_ALONE] = STEP_TO(TRUST_SUSPECT) | STEP_TO(TRUST_ALONE),
};

static const unsigned answer_steps[ANSWER_STATES] = {
    [ANSWER_OPEN] = STEP_TO(ANSWER_EARLY) | STEP_TO(ANSWER_SENT) | STEP_TO(ANSWER_CLOSED),
    [ANSWER_EARLY] = STEP_TO(ANSWER_EARLY_ACKED) | STEP_TO(ANSWER_SENT) | STEP_TO(ANSWER_CLOSED),
    [ANSWER_EARLY_ACKED] = STEP_TO(ANSWER_CLOSED),
    [ANSWER_SENT] = STEP_TO(ANSWER_KEPT) | STEP_TO(ANSWER_CLOSED),
    [ANSWER_KEPT] = STEP_TO(ANSWER_CLOSED),
};

const char *job_state_name(enum job_state state)
{
    static const char *const names[JOB_STATES] = {
        [JOB_QUEUED] = "queued", [JOB_DISPATCHED] = "dispatched", [JOB_RUNNING] = "running",
        [JOB_DONE] = "done",     [JOB_FAILED] = "failed",         [JOB_CANCELLED] = "cancelled",
        [JOB_LOST] = "lost",
    };
    return names[state];
}

const char *job_wait_name(enum job_wait wait)
{
    static const char *const names[JOB_WAITS] = {
        [WAIT_NOTHING] = "",
        [WAIT_HAZARD] = "buffers",
        [WAIT_WINDOW] = "its turn",
        [WAIT_MODULE] = "kernel",
        [WAIT_RESTORE] = "buffer content",
        [WAIT_STAGING] = "staging memory",
        [WAIT_FLIGHT] = "jobs in flight",
        [WAIT_TRANSFER] = "transfers",
        [WAIT_ALONE] = "to be alone",
        [WAIT_MEMORY] = "device memory",
    };
    return names[wait];
}

void job_state_step(enum job_state *state, enum job_state to)
{
    step_check(state_steps, *state, to);
    *state = to;
}

void job_inputs_step(enum job_inputs *inputs, enum job_inputs to)
{
    step_check(inputs_steps, *inputs, to);
    *inputs = to;
}

void job_trust_step(enum job_trust *trust, enum job_trust to)
{
    step_check(trust_steps, *trust, to);
    *trust = to;
}

void job_answer_step(enum job_answer *answer, enum job_answer to)
{
    step_check(answer_steps, *answer, to);
    *answer = to;
}

void job_wait_check(enum job_state state, enum job_wait wait)
{
    step_check(state_waits, state, wait);
}
