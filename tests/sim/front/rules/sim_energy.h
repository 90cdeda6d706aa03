/* The energy of devices, in worlds with a monitor (WORLD_HELD). Thread: the simulation's. */
#ifndef TEST_SIM_ENERGY_H
#define TEST_SIM_ENERGY_H

#include "tests/sim/front/sim.h"

void energy_anew(void); /* a world begins */
/* What the monitor reports of the device. */
void energy_tell(const struct sim *s, unsigned device, struct health_device *health);
void energy_check(struct sim *s); /* at every step */

#endif
