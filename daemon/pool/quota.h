/*
 * What a tenant may hold, what is kept for it, and what it is charged. A tenant is charged what it
 * keeps from others: the blocks of its pieces, and the slabs cut for it with the objects in them
 * that are free (the slack of a slab is charged to who took from it last), and what it has reserved
 * and not taken yet. All sums saturate. Thread: the pool's owner.
 */
#ifndef POOL_QUOTA_H
#define POOL_QUOTA_H

#include "daemon/pool/pool.h"

struct pool_quota {
    uint64_t hard;       /* bytes it is charged at most; UINT64_MAX: no limit */
    uint64_t soft;       /* what is above is taken back first; UINT64_MAX: none is above */
    uint64_t guaranteed; /* bytes that the others leave free for it; 0: none */
};

#define POOL_QUOTA_NONE ((struct pool_quota){UINT64_MAX, UINT64_MAX, 0})

struct pool_account {
    struct pool_meter meter; /* its pieces: asked, rounded up */
    uint64_t mapped;         /* bytes it keeps from others: pieces and slack */
    uint64_t reserved;       /* bytes on top of these: see pool_reserve */
    struct pool_quota quota;
};

/* Takes effect from the next request on; nothing is taken back. ERR_INVALID for a tenant that is
 * none or guaranteed > hard; ERR_LIMIT if the guarantees of all are more than the pool's limit. */
int pool_set_quota(struct pool *p, unsigned tenant, const struct pool_quota *quota, struct err *e);
/* The number is to be another tenant's: it is charged nothing. What lies in memory that it had is
 * nobody's alone from now on, and its meter begins anew. Walks pages, blocks of the source and
 * slabs. */
void pool_renumber(struct pool *p, unsigned tenant);
/* Zeros for a tenant that is none. */
void pool_account(const struct pool *p, unsigned tenant, struct pool_account *ret_account);
/* Bytes that the tenant's pieces do not get: what is guaranteed to others, or reserved by anybody,
 * itself too. */
uint64_t pool_kept(const struct pool *p, unsigned tenant);
/* Charges bytes before there is memory behind them, or where it lies beside the pool: nobody else
 * gets what they need, nor does the tenant, but by requests with `reserved` set, which draw on
 * them. The pool gives back free memory that it cannot keep beside them, which may take long.
 * Empty slabs do not stand in the way, nor do the tenant's free objects where pieces may move.
 * ERR_LIMIT over the tenant's hard limit, ERR_DEVICE_MEMORY if the
 * others have, or are guaranteed, too much. */
int pool_reserve(struct pool *p, unsigned tenant, uint64_t bytes, struct err *e);
/* At most what is reserved. */
void pool_unreserve(struct pool *p, unsigned tenant, uint64_t bytes);
/* The tenant to take from first: the one furthest above its soft limit; if none is above, the one
 * furthest above its guarantee. *ret_over: by how many bytes. False: nobody is charged more than
 * is guaranteed. Walks all tenants. */
bool pool_victim(const struct pool *p, unsigned *ret_tenant, uint64_t *ret_over);

#endif
