/* Explains why a request for device memory cannot be served: how much which tenant wants, what
 * there is, and the one thing that helps. Only reads the pool. Thread: the loop's. */
#ifndef WORKER_MEMORY_SHORTAGE_H
#define WORKER_MEMORY_SHORTAGE_H

#include "daemon/worker/memory/memory.h"

struct shortage {
    uint64_t tenant;  /* the front's key */
    uint64_t wanted;  /* bytes */
    bool own;         /* the tenant's hard limit is in the way */
    bool behind;      /* memory that becomes free soon may be reserved for others */
    uint64_t movable; /* bytes of buffers that can be evicted for it */
    /* bytes that it would have after those evictions, as far as the host has room */
    uint64_t obtainable;
    /* bytes of its own buffers that cannot be evicted because of its limit on the host */
    uint64_t kept;
    uint64_t leaving;    /* bytes on their way to the host */
    uint64_t host_bytes; /* bytes in use on the host, of host_limit */
    uint64_t host_limit;
};

/* Sets e: ERR_LIMIT if the tenant's own limit is in the way, else ERR_DEVICE_MEMORY. */
int shortage_say(const struct memory *m, const struct shortage *s, struct err *e);

#endif
