/* What the front says of processes that it cannot end, in worlds with a monitor. */
#ifndef TEST_SIM_FRONT_SIM_SAID_H
#define TEST_SIM_FRONT_SIM_SAID_H

#include "tests/sim/front/sim.h"

void said_begin(struct sim *s);
void said_finish(void);
/* The launcher took no order to end the monitor: the front says so. */
void said_refused(void);
/* At every step. */
void said_check(struct sim *s);

#endif
