/* What devices have in flight, by the front's own count. Thread: one. */
#ifndef TEST_SIM_FLIGHT_H
#define TEST_SIM_FLIGHT_H

struct sim;

void flight_check(struct sim *s); /* at every step */

#endif
