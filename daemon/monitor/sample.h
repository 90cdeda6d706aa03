/* One round of questions to the management library. Blocks, for ever where the driver hangs. */
#ifndef MONITOR_SAMPLE_H
#define MONITOR_SAMPLE_H

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/monitor/nvml.h"
#include "proto/health.h"

/* Fills the devices of `report`, which is the last round's or zero: a GPU that cannot be reached
 * any more keeps the name it had. Instances of MIG are devices of their own, with their GPU's
 * temperature and the like. `asking_ns` is set anew before each GPU: an idle GPU may take the
 * driver seconds to start, and that is no hang. */
void sample_take(const struct nvml *n, _Atomic uint64_t *asking_ns, struct health_report *report);

#endif
