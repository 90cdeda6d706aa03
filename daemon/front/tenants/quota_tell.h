/*
 * What workers are told of a tenant's limits, one device or all. Only a worker whose pool is there
 * is told; a channel that breaks ends it. Thread: the loop's. Nothing here blocks.
 */
#ifndef FRONT_TENANTS_QUOTA_TELL_H
#define FRONT_TENANTS_QUOTA_TELL_H

#include "daemon/front/model/front.h"

/* Has it a limit that a worker has to know? */
bool quota_limited(const struct tenant *t);
/* Its pool is there, and what counted for its worker before this front does not. */
bool quota_reaches(const struct device *d);
void quota_tell(struct front *f, struct device *d, struct tenant *t);
void quota_tell_all(struct front *f, struct tenant *t);
/* It is about to be destroyed: workers, who know it by a number that it would come back with,
 * forget its limits. */
void quota_forget(struct front *f, struct tenant *t);

#endif
