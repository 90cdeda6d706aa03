/* One round of questions to the management library. Blocks, for ever where the driver hangs. */
#ifndef MONITOR_SAMPLE_H
#define MONITOR_SAMPLE_H

#include "daemon/monitor/nvml.h"
#include "proto/health.h"

/* Fills the devices of `report`, which is the last round's or zero: a GPU that cannot be reached
 * any more keeps the name it had. Instances of MIG are devices of their own, with their GPU's
 * temperature and the like. */
void sample_take(const struct nvml *n, struct health_report *report);

#endif
