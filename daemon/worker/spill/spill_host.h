/*
 * Host memory that buffers move to (spill.h): a source of chunks, registered with the device where
 * the back end does that. A driver may wait for all that the device does before it lets go of one.
 * A chunk is therefore freed by the releases of the device's memory, and counts beside the limit
 * until then. Thread: the loop's.
 */
#ifndef WORKER_SPILL_SPILL_HOST_H
#define WORKER_SPILL_SPILL_HOST_H

#include "daemon/pool/host.h"
#include "daemon/worker/memory/device.h"

/* `device` is not owned. As pool_host_init. */
int spill_host_init(struct pool_host *h, struct device *device, uint64_t chunk, struct err *e);

#endif
