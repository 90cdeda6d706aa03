/* The table of tenants: who belongs to one, what it has, may have, and waits for. Thread: the
 * loop's. */
#ifndef FRONT_VIEWS_LOOK_TENANTS_H
#define FRONT_VIEWS_LOOK_TENANTS_H

#include "daemon/front/model/front.h"
#include "daemon/front/views/table.h"

/* The columns, and what is counted for all of them. */
void look_tenants_begin(struct front *f, struct table *t);
/* Numbers of devices are as their workers told last, summed up; so are the limits, over the devices
 * that serve. No limit has no value. */
void look_tenants_row(const struct front *f, const struct tenant *x, struct table *t);

#endif
