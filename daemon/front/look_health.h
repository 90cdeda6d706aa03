/* The columns of the table of devices that tell how the hardware is. Thread: the loop's. */
#ifndef FRONT_LOOK_HEALTH_H
#define FRONT_LOOK_HEALTH_H

#include "daemon/front/table.h"

struct front;
struct device;

void look_health_columns(struct table *t);
void look_health_cells(struct front *f, const struct device *d, struct table *t);

#endif
