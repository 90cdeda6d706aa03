/*
 * Which workers of a device give memory to which. Each worker of a device has a lease: bytes that
 * its pool may have. All of a device is leased; what no domain has, the shared worker has. A worker
 * whose jobs wait for memory wants more, and others give:
 *
 *   1. what they do not use, the one with most of it first, so no worker hoards;
 *   2. what they use and have no jobs for, the one idle for longest first: buffers go to the host;
 *   3. what they use beyond an equal part, if the worker that wants has less than that.
 *
 * No worker gives what is below its floor: what its tenants are guaranteed, and a little. Workers
 * that want are served one by one, the one that waits for longest first, so none starves. Each gets
 * all that it wants or nothing, as a part of it would not let its job run.
 *
 * Pure: no I/O and no clock. Thread: any.
 */
#ifndef FRONT_WORKERS_LEASE_H
#define FRONT_WORKERS_LEASE_H

#include <stdbool.h>
#include <stdint.h>

#define LEASE_UNIT (UINT64_C(2) << 20) /* bytes: leases change by multiples of it */

/* All in bytes, unless stated otherwise. */
struct lease_holder {
    uint64_t lease;
    uint64_t used;     /* of `lease` */
    uint64_t floor;    /* that it keeps */
    uint64_t most;     /* that it may have */
    bool gives;        /* its worker can be asked, or there is none */
    bool busy;         /* it has jobs in flight */
    uint64_t used_ns;  /* when it last had one */
    uint64_t wanted;   /* more than its lease; 0: nothing */
    uint64_t since_ns; /* since when */
};

/* The one to be served next. count: none wants anything. */
unsigned lease_next(const struct lease_holder *h, unsigned count);
/* Fills in what each gives to `wanter`. Returns the sum, at least what it wants; 0: it cannot have
 * that. */
uint64_t lease_plan(const struct lease_holder *h, unsigned count, unsigned wanter,
                    uint64_t *ret_take);
/* What a worker keeps whose tenants are guaranteed so many bytes. whole: of the device. */
uint64_t lease_floor(uint64_t whole, uint64_t guaranteed);

#endif
