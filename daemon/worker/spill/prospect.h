/* Estimates how much memory a tenant could get on a full device if all buffers that may go were
 * evicted to the host. Moves nothing. Thread: the loop's. */
#ifndef WORKER_SPILL_PROSPECT_H
#define WORKER_SPILL_PROSPECT_H

#include "daemon/worker/spill/spill_state.h"

/* A request of a tenant for device memory that is not free. */
struct hunger {
    unsigned tenant;
    uint64_t wanted; /* bytes */
    uint64_t back;   /* bytes of the tenant's that return from the host by this request */
    bool own;        /* only the tenant's own buffers may go */
    bool soft;       /* only buffers of tenants above their soft limit may go */
};

/* The memory that evictions could provide. */
struct prospect {
    uint64_t movable; /* bytes of buffers that may go */
    uint64_t own;     /* of `movable`, bytes of the tenant's own buffers */
    /* bytes that the tenant could get if they went, as far as the host has room */
    uint64_t obtainable;
    /* bytes of its own buffers that cannot go because the tenant is at its limit on the host */
    uint64_t kept;
};

/* Bytes that the tenant's hard limit still allows. Free objects in its slabs do not count as
 * used: the pool compacts slabs before a limit refuses a request. */
uint64_t prospect_allowance(const struct spill *s, unsigned tenant);
/* Bytes that the tenant could get without any eviction. */
uint64_t prospect_vacant(const struct spill *s, unsigned tenant);
/* May the buffer be evicted for `tenant`, after `before` bytes of its owner's were evicted? A
 * tenant's own buffers may. Buffers of others may as long as the owner keeps what is guaranteed
 * to it. No buffer that stays may. own: only the tenant's own buffers. */
bool prospect_may_go(const struct spill *s, const struct buffer *b, unsigned tenant, bool own,
                     uint64_t before);
/* Does its limit on the host allow the owner to have the buffer there, beside `before` bytes
 * that go there, too? */
bool prospect_host_allows(const struct spill *s, const struct buffer *b, const struct hunger *h,
                          uint64_t before);
/* Sums up all buffers that may go. Walks the list of buffers. */
void prospect_find(struct spill *s, const struct hunger *h, struct prospect *ret_prospect);

#endif
