/* How many strikes tenants may have, by what their workers ended for. Thread: one. */
#ifndef TEST_SIM_RULES_SIM_CONDUCT_H
#define TEST_SIM_RULES_SIM_CONDUCT_H

struct device;
struct sim;
struct sim_worker;

void conduct_anew(void); /* the front is new, and knows of no strikes */
/* A kernel of the worker failed, and it says so. */
void conduct_fault(struct sim *s, struct sim_worker *x);
/* The front ends the worker of the device; its `ending` says why. */
void conduct_killed(struct sim *s, const struct device *d, struct sim_worker *x);
/* The worker ends with this status, and the front does not know yet. */
void conduct_ended(struct sim *s, struct sim_worker *x, int status);
void conduct_check_strikes(struct sim *s);

#endif
