/*
 * The pool's budget: the bytes that it may take from its source. Its owner may raise the budget, or
 * recall a part by a deadline.
 *
 * A lower budget counts at once: no request is served beyond it. Memory above it goes back step by
 * step: whole free handles first, then what becomes free, at each free and each tick. The pool
 * neither moves nor ends pieces for that. Its owner does (move.h, spilling), as `missing` and
 * `excess` say.
 *
 * Thread: the pool's owner. pool_lease_tick calls the source; nothing else here does.
 */
#ifndef POOL_LEASE_H
#define POOL_LEASE_H

#include "daemon/pool/pool.h"

#define POOL_LEASE_NEVER UINT64_MAX /* no deadline */

enum pool_lease_state {
    POOL_LEASE_HELD,     /* the pool has no more than its budget */
    POOL_LEASE_RECALLED, /* it has more, and the deadline is to come */
    POOL_LEASE_OVERDUE,  /* it has more, and the deadline has passed */
};

/* All bytes, unless stated otherwise. */
struct pool_lease {
    enum pool_lease_state state;
    uint64_t budget;
    uint64_t asked;       /* that the pool had above the budget when that was set */
    uint64_t given;       /* of these, given back so far */
    uint64_t missing;     /* above the budget now */
    uint64_t idle;        /* of `missing`, free in whole handles: the next ticks give them back */
    uint64_t excess;      /* handed out above the budget: pieces must go for these */
    uint64_t room;        /* that the pool may still take */
    uint64_t deadline_ns; /* of the owner's clock; POOL_LEASE_NEVER: none */
};

/* Sets the budget. More counts at once and ends a recall. Less begins a recall, or replaces the one
 * under way. A deadline that has passed lets the first tick be the only one before the state is
 * OVERDUE. ERR_INVALID: a budget of 0. ERR_LIMIT: less than the sum over tenants of what is
 * guaranteed, or of what is reserved and stays (quota.h) if that is more; the budget is unchanged.
 */
int pool_lease_set(struct pool *p, uint64_t budget, uint64_t deadline_ns, struct err *e);
/* Gives back at most `most` bytes, rounded up to a handle, of what is missing. Call it until the
 * state is HELD, also when it is OVERDUE. Returns bytes given back. */
uint64_t pool_lease_tick(struct pool *p, uint64_t most, uint64_t now_ns);
void pool_lease(struct pool *p, struct pool_lease *ret_lease);

/* Bytes of the largest handle that a pool with this budget takes: 1/1024 of it, but at least a
 * page. A piece may keep the rest of one handle from moving, and from going back in a recall, and
 * pools are used to 97 % (docs/pool.md). */
uint64_t pool_handle_most(const struct pool_pages *pages, uint64_t budget);

#endif
