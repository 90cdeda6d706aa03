/*
 * The budget of device memory that the settings give to the worker of each device. It changes while
 * the worker runs: more counts at once; less is recalled from the worker by a deadline. Guarantees
 * of tenants must fit into it, so growing budgets go before growing guarantees, and shrinking
 * guarantees before shrinking budgets. Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_TENANTS_BUDGET_H
#define FRONT_TENANTS_BUDGET_H

#include "daemon/front/model/front.h"

/* The device's budget in bytes if the settings' device_memory_max is `memory_max`: at most the
 * memory of the device; 0: as much as a worker takes by itself. Less what its domains are granted,
 * but at least what each worker keeps (lease_floor): 0 would be no limit. The budget of a domain is
 * its grant. */
uint64_t budget_of(const struct device *d, uint64_t memory_max);
/* What the device's budget may become, in bytes: what the floors of the other workers of the
 * hardware leave, and its tenant may have. Its budget, if its lease was denied to grow. */
uint64_t budget_most(const struct front *f, const struct device *d);
/* Sends d->pool_limit and the settings about it, if the worker does not have them yet. */
void budget_settle(struct front *f, struct device *d);
/* The worker has met its budget, or could not in time, or refuses it: d->refused says so then.
 * Returns true if the worker keeps another budget than the front had sent. */
bool budget_reported(struct device *d, const struct msg_w_budget *m);

#endif
