/*
 * What the launcher does beside the workers that run: a process for each device that waits to
 * replace its worker; and what must hold of the starts that a front asks for. Thread: one.
 */
#ifndef TEST_SIM_LAUNCHES_H
#define TEST_SIM_LAUNCHES_H

#include <stdbool.h>
#include <stdint.h>

#include "common/bytes.h"
#include "daemon/front/workers/launcher_link.h"

struct sim;
struct sim_worker;

void launches_asked(struct sim *s, const struct worker_order *w);
/* The front has the processes ended that wait for the device. */
void launches_vacate(struct sim *s, uint64_t id, struct bytes device);
void launches_lost(struct sim *s); /* the launcher ends */
/* The worker is to be a tenant's; NULL: none runs that has the id. */
void launches_named(struct sim *s, uint64_t id, const struct sim_worker *x);
/* Of a device of which no process has the driver loaded. */
void launches_released(struct sim *s, unsigned number);
/* Which hardware a worker with these arguments opens. number: the front's, among its devices. */
unsigned launches_hardware(const struct sim *s, const char *const *args, unsigned number);
bool launches_fails(const struct sim *s, const struct sim_worker *x); /* to start */
/* There is no device of the worker's back end. */
bool launches_unfit(const struct sim *s, const struct sim_worker *x);

#endif
