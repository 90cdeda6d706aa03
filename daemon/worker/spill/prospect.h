/*
 * What could be had of a device that is full, if all buffers went to the host that may go for a
 * tenant: reckoned, and nothing is moved. Thread: the loop's.
 */
#ifndef WORKER_SPILL_PROSPECT_H
#define WORKER_SPILL_PROSPECT_H

#include "daemon/worker/spill/spill_state.h"

/* Who lacks room. */
struct hunger {
    unsigned tenant;
    uint64_t wanted; /* bytes */
    uint64_t back;   /* bytes of its own that leave the host for that */
    bool own;        /* only what is its own helps */
    bool soft;       /* only what is of tenants above their soft limit */
};

/* What could be had. */
struct prospect {
    uint64_t movable;    /* bytes of buffers that may go */
    uint64_t own;        /* of these, the tenant's */
    uint64_t obtainable; /* if they went, as far as the host has room for them */
    uint64_t held;       /* bytes of its own that stay for its limit on the host */
};

/* Bytes that a tenant, by its number, could have beside what it has: what is free in its slabs does
 * not count, since the pool puts them together before a limit is in the way. */
uint64_t prospect_allowance(const struct spill *s, unsigned tenant);
/* What is free for it without moving anything. */
uint64_t prospect_vacant(const struct spill *s, unsigned tenant);
/* May it go for a tenant, when `before` bytes of the same tenant's have gone? Its own may, and of
 * others' what they have in use beyond what is guaranteed to them. own: only its own. */
bool prospect_may_go(const struct spill *s, const struct buffer *b, unsigned tenant, bool own,
                     uint64_t before);
/* May its tenant have that much on the host, beside `before` bytes that go there, too? */
bool prospect_host_allows(const struct spill *s, const struct buffer *b, const struct hunger *h,
                          uint64_t before);
/* Walks all buffers that could go. */
void prospect_look(struct spill *s, const struct hunger *h, struct prospect *ret_prospect);

#endif
