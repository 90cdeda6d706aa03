#include "client/src/base/state.h"

#include "common/steps.h"

static const unsigned session_steps[] = {
    [SESSION_DOWN] = STEP_TO(SESSION_DOWN) | STEP_TO(SESSION_HELLO),
    [SESSION_HELLO] = STEP_TO(SESSION_DOWN) | STEP_TO(SESSION_RESTORE) | STEP_TO(SESSION_READY),
    [SESSION_RESTORE] = STEP_TO(SESSION_DOWN) | STEP_TO(SESSION_READY),
    [SESSION_READY] = STEP_TO(SESSION_DOWN),
};

void session_step(struct session *s, enum session_state to)
{
    step_assert(session_steps, s->state, to);
    s->state = to;
}

static const unsigned lane_steps[] = {
    [LANE_OFF] = STEP_TO(LANE_OFF) | STEP_TO(LANE_ASKING) | STEP_TO(LANE_REFUSED),
    [LANE_ASKING] = STEP_TO(LANE_OFF) | STEP_TO(LANE_CLAIMING) | STEP_TO(LANE_REFUSED),
    [LANE_CLAIMING] = STEP_TO(LANE_OFF) | STEP_TO(LANE_UP) | STEP_TO(LANE_REFUSED),
    [LANE_UP] = STEP_TO(LANE_OFF) | STEP_TO(LANE_REFUSED),
    [LANE_REFUSED] = STEP_TO(LANE_OFF) | STEP_TO(LANE_REFUSED),
};

void lane_step(struct lane *l, enum lane_state to)
{
    step_assert(lane_steps, l->state, to);
    l->state = to;
}
