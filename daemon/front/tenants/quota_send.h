/*
 * Sends a tenant's limits to the worker of one device or of all devices. A worker without a pool
 * gets none. A channel that fails ends its worker. Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_TENANTS_QUOTA_SEND_H
#define FRONT_TENANTS_QUOTA_SEND_H

#include "daemon/front/model/front.h"

/* Does the tenant have a limit that workers enforce? */
bool quota_limited(const struct tenant *t);
/* Does the device's worker have a pool, with this front's limits in force? */
bool quota_reaches(const struct device *d);
void quota_send(struct front *f, struct device *d, struct tenant *t);
void quota_send_all(struct front *f, struct tenant *t);
/* The tenant is about to be destroyed: workers drop its limits, because a later tenant of the same
 * name gets the same number. */
void quota_forget(struct front *f, struct tenant *t);

#endif
