#include "daemon/pool/lease.h"
#include "daemon/pool/pool_int.h"

#define HANDLE_SHARE 1024u

uint64_t pool_handle_most(const struct pool_pages *pages, uint64_t budget)
{
    uint64_t most = pages->page_bytes;
    uint64_t share = pages->handle_share != 0 ? pages->handle_share : HANDLE_SHARE;
    while (most < pages->handle_max && 2 * most <= budget / share) {
        most *= 2;
    }
    return most;
}

/* The one place where the state changes. */
static void step(struct pool *p, uint64_t now_ns)
{
    struct lease *l = &p->lease;
    bool held = pool_over(p) == 0;
    l->state = held                      ? POOL_LEASE_HELD
               : now_ns < l->deadline_ns ? POOL_LEASE_RECALLED
                                         : POOL_LEASE_OVERDUE;
    l->deadline_ns = held ? POOL_LEASE_NEVER : l->deadline_ns;
}

static void budget_is(struct pool *p, uint64_t budget)
{
    double share = p->stats.limit > 0 ? (double)p->trimming.keep / (double)p->stats.limit : 0;
    (void)warm_flush(p);
    p->trimming.keep = (uint64_t)((double)budget * share); /* the same share as before */
    p->stats.limit = budget;
    p->handle_max = p->source.pages != NULL ? pool_handle_most(p->source.pages, budget) : 0;
    compact_changed(p);
    event_add(p, POOL_EVENT_LIMIT, (struct pool_event){.size = budget});
}

/* A budget that every tenant's guarantee fits in, beside what no recall can get. */
static int check_floor(const struct pool *p, uint64_t budget, struct err *e)
{
    uint64_t guaranteed = 0;
    uint64_t least = 0;
    for (unsigned t = 0; t < POOL_TENANTS; t++) {
        const struct pool_account *a = &p->account[t];
        uint64_t fixed = sat_add(a->reserved, a->staying);
        guaranteed = sat_add(guaranteed, a->quota.guaranteed);
        least = sat_add(least, fixed > a->quota.guaranteed ? fixed : a->quota.guaranteed);
    }
    if (guaranteed > budget) {
        return err_set(e, ERR_LIMIT,
                       "%llu bytes are guaranteed to tenants: guarantee less, or set at least that",
                       LL(guaranteed));
    }
    if (least > budget) {
        return err_set(e, ERR_LIMIT,
                       "%llu bytes are exported or managed, %llu must stay on the device and %llu "
                       "are guaranteed: free some of these, guarantee less, or set at least %llu",
                       LL(p->reserved), LL(p->staying), LL(guaranteed), LL(least));
    }
    return 0;
}

int pool_lease_set(struct pool *p, uint64_t budget, uint64_t deadline_ns, struct err *e)
{
    if (budget == 0) {
        return err_set(e, ERR_INVALID, "a budget of 0 bytes");
    }
    int rc = check_floor(p, budget, e);
    if (rc != 0) {
        return err_wrap(e, "a budget of %llu bytes", LL(budget));
    }
    budget_is(p, budget);
    p->lease = (struct lease){.asked = pool_over(p), .deadline_ns = deadline_ns};
    step(p, 0);
    return 0;
}

uint64_t pool_lease_tick(struct pool *p, uint64_t most, uint64_t now_ns)
{
    uint64_t given = 0;
    (void)warm_flush(p);
    if (pool_over(p) > 0) {
        (void)slab_reclaim(p);
        given = pool_shrink(p, most);
    }
    if (given > 0) {
        event_add(p, POOL_EVENT_TRIM, (struct pool_event){.size = given});
    }
    step(p, now_ns);
    return given;
}

void pool_lease(struct pool *p, struct pool_lease *ret_lease)
{
    (void)warm_flush(p);
    const struct lease *l = &p->lease;
    uint64_t missing = pool_over(p);
    *ret_lease = (struct pool_lease){
        .state = l->state,
        .budget = p->stats.limit,
        .asked = l->asked,
        .given = sat_sub(l->asked, missing),
        .missing = missing,
        .idle = missing < p->whole_bytes ? missing : p->whole_bytes,
        .excess = sat_sub(p->mapped, pool_most(p)),
        .room = pool_room(p),
        .deadline_ns = l->deadline_ns,
    };
}

uint64_t pool_shrink(struct pool *p, uint64_t most)
{
    uint64_t over = pool_over(p);
    return over == 0 || p->whole_bytes == 0
               ? 0
               : backing_trim(p, sat_sub(p->whole_bytes, over < most ? over : most));
}

/* Without a deadline, and all at once. */
void pool_set_limit(struct pool *p, uint64_t limit)
{
    budget_is(p, limit);
    p->lease = (struct lease){.asked = pool_over(p), .deadline_ns = POOL_LEASE_NEVER};
    if (pool_over(p) > 0) {
        (void)pool_trim(p, sat_sub(p->whole_bytes, pool_over(p)));
    }
    step(p, 0);
}
