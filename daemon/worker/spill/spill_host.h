/*
 * The source of host memory for evicted buffers (spill.h): chunks, registered with the device where
 * the back end does that. To unregister a chunk a driver may wait for all that the device does. The
 * releases of the device's memory therefore free chunks; until then a chunk counts beside the
 * limit. Thread: the loop's.
 */
#ifndef WORKER_SPILL_SPILL_HOST_H
#define WORKER_SPILL_SPILL_HOST_H

#include "daemon/pool/host.h"
#include "daemon/worker/memory/device.h"

/* As pool_host_init; `device` is not owned. */
int spill_host_init(struct pool_host *h, struct device *device, uint64_t chunk, struct err *e);

#endif
