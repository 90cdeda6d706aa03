/* The table of tenants: who belongs to one, what it has, may have, and waits for. Thread: the
 * loop's. */
#ifndef FRONT_LOOK_TENANTS_H
#define FRONT_LOOK_TENANTS_H

#include "daemon/front/front.h"
#include "daemon/front/table.h"

/* As far as the session may see them; s NULL: none. Numbers of devices are as their workers told
 * last, summed up; so are the limits, over the devices that serve. No limit has no value. */
void look_tenants_fill(struct front *f, const struct session *s, struct table *t);

#endif
