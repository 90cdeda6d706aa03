/* Rules about why workers are ended, and for what they are not. Thread: one. */
#ifndef TEST_SIM_RULES_SIM_ENDINGS_H
#define TEST_SIM_RULES_SIM_ENDINGS_H

struct device;
struct sim;
struct sim_worker;

/* The front ends the worker of the device; its `ending` says why. */
void endings_killed(struct sim *s, const struct device *d, struct sim_worker *x);
/* The worker ends with this status, and the front does not know yet. */
void endings_ended(struct sim *s, const struct sim_worker *x, int status);
/* The whole machine has stood still, and goes on: for what its jobs may be blamed. */
void endings_sleep(struct sim *s);
void endings_check(struct sim *s, const struct sim_worker *x); /* at every time */

#endif
