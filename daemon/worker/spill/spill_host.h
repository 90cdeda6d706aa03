/*
 * Host memory that buffers move to (spill.h): a source of chunks that the device knows, where the
 * back end has that. Before a driver lets go of one it may wait for all that the device does: so a
 * chunk goes by the releases of the device's memory, and is there beside the limit until then.
 * Thread: the loop's.
 */
#ifndef WORKER_SPILL_SPILL_HOST_H
#define WORKER_SPILL_SPILL_HOST_H

#include "daemon/pool/host.h"
#include "daemon/worker/memory/device.h"

/* `device` is not owned. As pool_host_init. */
int spill_host_init(struct pool_host *h, struct device *device, uint64_t chunk, struct err *e);

#endif
