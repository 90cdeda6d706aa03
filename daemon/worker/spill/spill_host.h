/*
 * The source of host memory for evicted buffers (spill.h): chunks, registered with the device where
 * the back end does that. A registrar populates and registers them beside the loop: a chunk that is
 * not there is ordered, and its request is refused with ERR_BUSY until it has come. One is ordered
 * at a time.
 *
 * To unregister a chunk a driver may wait for all that the device does. The releases of the
 * device's memory therefore free chunks; until then a chunk counts beside the limit.
 *
 * Thread: the loop's. Blocks for some milliseconds a chunk without a registrar, or if `now`.
 */
#ifndef WORKER_SPILL_SPILL_HOST_H
#define WORKER_SPILL_SPILL_HOST_H

#include "daemon/pool/host.h"
#include "daemon/worker/memory/device.h"
#include "daemon/worker/memory/registrar.h"

/* A chunk that takes longer may never come: it gives no hope. */
#define SPILL_HOST_NS (10 * NS_PER_S)
/* A size that was refused is not asked for again before. */
#define SPILL_HOST_AGAIN_NS (100 * NS_PER_MS)

struct spill_chunk;

struct spill_host {
    struct pool_host pool;       /* the source */
    struct device *device;       /* not owned */
    struct registrar *registrar; /* not owned; NULL: none */
    struct spill_chunk *coming;  /* owned: ordered; NULL: none */
    struct spill_chunk *there;   /* owned: it has come, and waits for a request; NULL: none */
    uint64_t ordered_ns;
    uint64_t refused_ns, refused_bytes; /* the last chunk that failed; 0: none did */
    struct err refusal;
    bool now; /* chunks are made within the request */
    /* A chunk has come, or failed: requests may be tried again. NULL: not asked for. */
    void (*news)(void *data);
    void *data;
};

/* As pool_host_init. registrar NULL: chunks are made within the requests. */
int spill_host_init(struct spill_host *h, struct device *device, struct registrar *registrar,
                    uint64_t chunk, struct err *e);
/* After the pool, with no chunk on its way. */
void spill_host_finish(struct spill_host *h);
/* Is a chunk on its way, which will give memory? */
bool spill_host_grows(const struct spill_host *h);

#endif
