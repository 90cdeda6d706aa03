#include "daemon/front/model/life.h"

#include "common/steps.h"

static const unsigned steps[FRONT_LIVES] = {
    [FRONT_SERVING] = STEP_TO(FRONT_DRAINING) | STEP_TO(FRONT_HANDING_OVER) |
                      STEP_TO(FRONT_ENDING) | STEP_TO(FRONT_STOPPING),
    [FRONT_DRAINING] = STEP_TO(FRONT_SERVING) | STEP_TO(FRONT_HANDING_OVER) |
                       STEP_TO(FRONT_ENDING) | STEP_TO(FRONT_STOPPING),
    [FRONT_HANDING_OVER] =
        STEP_TO(FRONT_HANDING_OVER) | STEP_TO(FRONT_ENDING) | STEP_TO(FRONT_LEAVING),
    [FRONT_ENDING] = STEP_TO(FRONT_HANDING_OVER) | STEP_TO(FRONT_STOPPING),
};

void front_life_step(enum front_life *life, enum front_life to)
{
    step_check(steps, *life, to);
    *life = to;
}
