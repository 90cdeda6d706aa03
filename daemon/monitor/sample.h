/* One round of queries to the management library. Blocks; for ever if the driver hangs. */
#ifndef MONITOR_SAMPLE_H
#define MONITOR_SAMPLE_H

#include <stdatomic.h>
#include <stdint.h>

#include "daemon/monitor/nvml.h"
#include "proto/health.h"

/* Fills in the devices of `report`, which has the last round's devices or is zero: a GPU that
 * cannot be reached any more keeps its name. MIG instances are devices of their own, with the
 * temperature and other figures of their GPU. *asking_ns is set to the present time before each
 * GPU, because the driver may take seconds to start an idle GPU, which is no hang. */
void sample_take(const struct nvml *n, _Atomic uint64_t *asking_ns, struct health_report *report);

#endif
