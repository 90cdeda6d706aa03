/*
 * What jobs change in the account of their tenant. A job that the worker runs again has several
 * runs, and each is charged. Jobs of the daemon itself are in no account. Thread: the loop's.
 */
#ifndef FRONT_SCHED_CHARGE_H
#define FRONT_SCHED_CHARGE_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/front/model/front.h"

/* A run of the job left its device. device_ns: its part of the device's time (shares_left).
 * moved: its copies count, all of them, since the worker does not say how far it came. */
void charge_run(struct job *j, uint64_t device_ns, bool moved);
/* The job has its final state and error. */
void charge_end(const struct job *j);
/* A submission of the tenant was answered with this error: there is no job. */
void charge_refused(struct front *f, struct tenant *t, int code);

#endif
