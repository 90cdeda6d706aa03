/* The columns of the table of devices that tell how the hardware is. Thread: the loop's. */
#ifndef FRONT_VIEWS_LOOK_HEALTH_H
#define FRONT_VIEWS_LOOK_HEALTH_H

#include <stddef.h>

#include "daemon/front/views/table.h"

struct front;
struct device;

void look_health_columns(struct table *t);
/* What the driver wants done with the device, for the short note; out stays where that is nothing.
 */
void look_health_note(struct front *f, const struct device *d, char *out, size_t size);
void look_health_cells(struct front *f, const struct device *d, struct table *t);

#endif
