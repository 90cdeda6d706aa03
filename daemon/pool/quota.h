/*
 * The ledger of tenants: what each may use, what is kept for it, and what it is charged. A tenant
 * is charged for all memory that others cannot use because of it: the blocks of its pieces, the
 * slabs cut for it with their free objects (the slack of a slab is charged to the tenant that
 * allocated from it last), and its unused reservation. All sums saturate. Thread: the pool's owner.
 */
#ifndef POOL_QUOTA_H
#define POOL_QUOTA_H

#include "daemon/pool/pool.h"

struct pool_quota {
    uint64_t hard;       /* most bytes charged; UINT64_MAX: no limit */
    uint64_t soft;       /* bytes above it are reclaimed first; UINT64_MAX: no soft limit */
    uint64_t guaranteed; /* bytes that other tenants leave free for it; 0: none */
};

#define POOL_QUOTA_NONE ((struct pool_quota){UINT64_MAX, UINT64_MAX, 0})

struct pool_account {
    struct pool_meter meter; /* its pieces: asked, rounded up */
    uint64_t mapped;         /* bytes of its blocks and slabs: pieces and slack */
    uint64_t reserved;       /* bytes beyond `mapped`: see pool_reserve */
    uint64_t staying;        /* bytes that are never evicted: see pool_stay */
    struct pool_quota quota;
};

/* Takes effect from the next request on; nothing is reclaimed. ERR_INVALID for an unknown tenant or
 * guaranteed > hard; ERR_LIMIT if all guarantees together exceed the pool's limit. */
int pool_set_quota(struct pool *p, unsigned tenant, const struct pool_quota *quota, struct err *e);
/* Reuses the number for another tenant; the old one must be charged nothing. Memory that holds the
 * old tenant's bytes counts as several tenants' from now on, and the meter starts anew. Walks
 * pages, blocks of the source and slabs. */
void pool_renumber(struct pool *p, unsigned tenant);
/* Zeros for an unknown tenant. */
void pool_account(const struct pool *p, unsigned tenant, struct pool_account *ret_account);
/* Bytes that an ordinary request of the tenant must leave: guaranteed to others, or reserved by any
 * tenant, itself included. */
uint64_t pool_kept(const struct pool *p, unsigned tenant);
/* Charges bytes that have no memory behind them yet, or whose memory lies beside the pool. Other
 * tenants cannot use these bytes; the tenant can only by requests with `reserved` set. The pool
 * gives free memory back that does not fit beside them, which may take long. Empty slabs are
 * reclaimed for it, and the tenant's objects put together where pieces may move. ERR_LIMIT over the
 * tenant's hard limit; ERR_DEVICE_MEMORY if others use, or are guaranteed, too much. */
int pool_reserve(struct pool *p, unsigned tenant, uint64_t bytes, struct err *e);
/* Ends `bytes` of the reservation, or all that is left of it. */
void pool_unreserve(struct pool *p, unsigned tenant, uint64_t bytes);
/* Counts bytes of the tenant's pieces, present or to come, that their owner never takes away to
 * make room: no budget goes below them (lease.h). ERR_LIMIT above the tenant's
 * hard limit or guarantee; or, for a tenant without one, if all such tenants would keep more than
 * pool_stay_most allows. Walks all tenants. */
int pool_stay(struct pool *p, unsigned tenant, uint64_t bytes, struct err *e);
/* `bytes` of them need not stay any more, or are gone. */
void pool_unstay(struct pool *p, unsigned tenant, uint64_t bytes);
/* Bytes that all tenants without a guarantee may let stay, from now on. UINT64_MAX: no limit, which
 * is the initial state. */
void pool_stay_most(struct pool *p, uint64_t bytes);

#endif
