/* Jobs that do not stay (sim_visit.c). Thread: one. */
#ifndef TEST_SIM_SIM_VISIT_H
#define TEST_SIM_SIM_VISIT_H

#include "tests/sim/front/sim.h"

#define VISIT_COPIES_NS (1200 * NS_PER_MS) /* of a job that copies for all of its time */

/* No kernel of it is seen to run. */
static inline bool visit_is_unseen(const struct sim_job *j)
{
    return j != NULL && j->run_ns == VISIT_COPIES_NS;
}

#endif
