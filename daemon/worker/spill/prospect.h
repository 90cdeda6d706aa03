/* Estimates how much memory a full device could have for a tenant if all buffers that may go moved
 * to the host. Nothing is moved. Thread: the loop's. */
#ifndef WORKER_SPILL_PROSPECT_H
#define WORKER_SPILL_PROSPECT_H

#include "daemon/worker/spill/spill_state.h"

/* A tenant that lacks device memory. */
struct hunger {
    unsigned tenant;
    uint64_t wanted; /* bytes */
    uint64_t back;   /* bytes of the tenant's that leave the host for that */
    bool own;        /* only its own buffers may go */
    bool soft;       /* only buffers of tenants above their soft limit may go */
};

/* The memory that could be had. */
struct prospect {
    uint64_t movable;    /* bytes of buffers that may go */
    uint64_t own;        /* of these, bytes of the tenant's own buffers */
    uint64_t obtainable; /* bytes free for it if they went, as far as the host has room */
    uint64_t kept; /* bytes of its own buffers that cannot go, as it is at its limit on the host */
};

/* Bytes that a tenant may take beside what it has. Free objects in its slabs do not count: the pool
 * compacts slabs before a limit refuses a request. */
uint64_t prospect_allowance(const struct spill *s, unsigned tenant);
/* Bytes that are free for a tenant without moving anything. */
uint64_t prospect_vacant(const struct spill *s, unsigned tenant);
/* May the buffer go for a tenant, when `before` bytes of its owner's have gone? A tenant's own
 * buffers may. Others' may as long as their owner keeps what is guaranteed to it. own: only its
 * own. */
bool prospect_may_go(const struct spill *s, const struct buffer *b, unsigned tenant, bool own,
                     uint64_t before);
/* May the buffer's owner have it on the host, beside `before` bytes that go there, too? */
bool prospect_host_allows(const struct spill *s, const struct buffer *b, const struct hunger *h,
                          uint64_t before);
/* Walks all buffers that may go. */
void prospect_find(struct spill *s, const struct hunger *h, struct prospect *ret_prospect);

#endif
