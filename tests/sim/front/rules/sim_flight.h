/* What devices have in flight, by the front's own count. Thread: one. */
#ifndef TEST_SIM_FLIGHT_H
#define TEST_SIM_FLIGHT_H

#include <stdint.h>

struct device;
struct sim;

void flight_check(struct sim *s); /* at every step */
/* The front sends the job to the worker of the device. */
void flight_sent(struct sim *s, const struct device *d, uint64_t job);

#endif
