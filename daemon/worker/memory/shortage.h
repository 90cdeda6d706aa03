/*
 * Why a request for device memory cannot be served, for people: who wants how much, what there is,
 * and the one useful thing to do. Pure but for reading the pool. Thread: the loop's.
 */
#ifndef WORKER_MEMORY_SHORTAGE_H
#define WORKER_MEMORY_SHORTAGE_H

#include "daemon/worker/memory/memory.h"

struct shortage {
    uint64_t tenant;     /* as the front names it */
    uint64_t wanted;     /* bytes */
    bool own;            /* it is the tenant's hard limit that it met */
    bool behind;         /* what comes free soon is to be others' first: it may be promised */
    uint64_t movable;    /* bytes of buffers that may go to the host for it */
    uint64_t obtainable; /* if all that may go went: of these as much as the host has room for */
    uint64_t held;       /* bytes of its own that stay for its limit on the host */
    uint64_t leaving;    /* on their way to the host */
    uint64_t host_bytes; /* what is on the host, of */
    uint64_t host_limit;
};

/* ERR_LIMIT where it is the tenant's own limit, else ERR_DEVICE_MEMORY. */
int shortage_say(const struct memory *m, const struct shortage *s, struct err *e);

#endif
