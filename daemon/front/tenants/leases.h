/*
 * Moves memory of a device between its workers (workers/lease.h has the policy). What others give
 * is recalled from them first, by a deadline, and then given on; until then it counts as granted,
 * so all leases together are never more than there is. One lease of a device grows at a time.
 *
 * A worker that does not answer a recall in time is ended as one that hangs, if it is a tenant's
 * own; the shared one keeps its memory. What a worker could not give back it keeps. A worker that
 * gets nothing hears that its budget grows no further, for a while: its job fails with the reason,
 * or its own buffers make room.
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_TENANTS_LEASES_H
#define FRONT_TENANTS_LEASES_H

#include "daemon/front/model/front.h"

/* Serves workers that want memory, and ends what is overdue. */
void leases_watch(struct front *f, uint64_t now);
/* The device's worker has answered for its budget. */
void leases_answered(struct front *f, struct device *d, const struct msg_w_budget *m);

#endif
