/*
 * The ledger of tenants. `mapped` is the memory that others cannot use because of the tenant now.
 * `due` is what others leave free for it beyond that: the rest of its guarantee, or of its
 * reservation.
 */
#include "daemon/pool/quota.h"
#include "daemon/pool/pool_int.h"

static uint64_t charged(const struct pool_account *a)
{
    return sat_add(a->mapped, a->reserved);
}

static uint64_t due(const struct pool_account *a)
{
    uint64_t all = charged(a) > a->quota.guaranteed ? charged(a) : a->quota.guaranteed;
    return all - a->mapped;
}

/* A tenant's own reservation is kept from it, too: only requests with `reserved` draw on it. */
uint64_t quota_kept(const struct pool *p, const struct pool_ask *ask)
{
    const struct pool_account *a = &p->account[ask->tenant];
    return sat_add(sat_sub(p->due, due(a)), ask->reserved ? 0 : a->reserved);
}

uint64_t quota_due(const struct pool *p)
{
    uint64_t all = 0;
    for (unsigned t = 0; t < POOL_TENANTS; t++) {
        all = sat_add(all, due(&p->account[t]));
    }
    return all;
}

/* The part of `bytes` beyond the reservation. */
static uint64_t beyond_reserved(const struct pool_account *a, const struct pool_ask *ask,
                                uint64_t bytes)
{
    return ask->reserved ? sat_sub(bytes, a->reserved) : bytes;
}

int quota_within(const struct pool *p, const struct pool_ask *ask, uint64_t bytes, struct err *e)
{
    const struct pool_account *a = &p->account[ask->tenant];
    uint64_t more = beyond_reserved(a, ask, bytes);
    if (sat_add(charged(a), more) > a->quota.hard) {
        return err_set(e, ERR_LIMIT,
                       "tenant %u is charged %llu of its %llu bytes, %llu more wanted", ask->tenant,
                       LL(charged(a)), LL(a->quota.hard), LL(bytes));
    }
    return 0;
}

int quota_admit(const struct pool *p, const struct pool_ask *ask, uint64_t bytes, struct err *e)
{
    int rc = quota_within(p, ask, bytes, e);
    uint64_t kept = quota_kept(p, ask);
    if (rc != 0) {
        return rc;
    }
    if (kept > 0 && sat_add(sat_add(p->mapped, bytes), kept) > p->stats.limit) {
        return err_set(e, ERR_DEVICE_MEMORY, "%llu bytes are kept for other tenants, or reserved",
                       LL(kept));
    }
    if (pool_over(p) > 0 && sat_add(p->mapped, bytes) > pool_most(p)) {
        return err_set(e, ERR_DEVICE_MEMORY, "%llu bytes have to go back to the device",
                       LL(pool_over(p)));
    }
    return 0;
}

/* Updates p->due after a change of the tenant's account. */
static void settle_due(struct pool *p, const struct pool_account *a, uint64_t due_before)
{
    p->due = sat_add(sat_sub(p->due, due_before), due(a));
}

void quota_charge(struct pool *p, const struct pool_ask *ask, uint64_t bytes)
{
    struct pool_account *a = &p->account[ask->tenant];
    uint64_t before = due(a);
    a->mapped += bytes;
    p->mapped += bytes;
    if (ask->reserved) {
        uint64_t taken = bytes < a->reserved ? bytes : a->reserved;
        a->reserved -= taken;
        p->reserved -= taken;
        p->drawn = sat_sub(p->drawn, taken);
    }
    settle_due(p, a, before);
}

void quota_discharge(struct pool *p, unsigned tenant, uint64_t bytes)
{
    struct pool_account *a = &p->account[tenant];
    uint64_t before = due(a);
    a->mapped -= bytes;
    p->mapped -= bytes;
    settle_due(p, a, before);
}

void quota_transfer(struct pool *p, unsigned from, unsigned to, uint64_t bytes)
{
    const struct pool_ask ask = {.tenant = to};
    quota_discharge(p, from, bytes);
    quota_charge(p, &ask, bytes);
}

/* ---- for the owner ----------------------------------------------------------------------------*/

int pool_set_quota(struct pool *p, unsigned tenant, const struct pool_quota *quota, struct err *e)
{
    if (tenant >= POOL_TENANTS || quota->guaranteed > quota->hard) {
        return err_set(e, ERR_INVALID, "tenant %u of %u: %llu bytes guaranteed, %llu at most",
                       tenant, POOL_TENANTS, LL(quota->guaranteed), LL(quota->hard));
    }
    uint64_t all = quota->guaranteed;
    for (unsigned t = 0; t < POOL_TENANTS; t++) {
        all = t == tenant ? all : sat_add(all, p->account[t].quota.guaranteed);
    }
    if (all > p->stats.limit) {
        return err_set(e, ERR_LIMIT, "%llu bytes would be guaranteed of %llu in all", LL(all),
                       LL(p->stats.limit));
    }
    struct pool_account *a = &p->account[tenant];
    uint64_t before = due(a);
    a->quota = *quota;
    settle_due(p, a, before);
    compact_changed(p);
    return 0;
}

void pool_account(const struct pool *p, unsigned tenant, struct pool_account *ret_account)
{
    *ret_account = tenant < POOL_TENANTS ? p->account[tenant] : (struct pool_account){.mapped = 0};
}

uint64_t pool_kept(const struct pool *p, unsigned tenant)
{
    const struct pool_ask plain = {.tenant = tenant};
    return tenant < POOL_TENANTS ? quota_kept(p, &plain) : p->due;
}

static int reserve_admit(const struct pool *p, const struct pool_ask *ask, struct err *e)
{
    int rc = quota_admit(p, ask, ask->size, e);
    uint64_t taken = sat_add(p->mapped, quota_kept(p, ask));
    if (rc == 0 && sat_add(taken, ask->size) > p->stats.limit) {
        rc = err_set(e, ERR_DEVICE_MEMORY, "%llu of %llu bytes are in use or kept for others",
                     LL(taken), LL(p->stats.limit));
    }
    return rc;
}

int pool_reserve(struct pool *p, unsigned tenant, uint64_t bytes, struct err *e)
{
    const struct pool_ask ask = {.size = bytes, .tenant = tenant};
    if (tenant >= POOL_TENANTS) {
        return err_set(e, ERR_INVALID, "tenant %u of %u", tenant, POOL_TENANTS);
    }
    int rc = reserve_admit(p, &ask, e);
    if (rc != 0 && slab_reclaim(p) > 0) { /* empty slabs are charged */
        rc = reserve_admit(p, &ask, e);
    }
    if (rc == ERR_LIMIT && slab_pack(p, &ask)) {
        rc = reserve_admit(p, &ask, e);
    }
    if (rc != 0) {
        return rc;
    }
    struct pool_account *a = &p->account[tenant];
    uint64_t before = due(a);
    a->reserved += bytes; /* cannot overflow: all reservations are within the limit */
    p->reserved += bytes;
    settle_due(p, a, before);
    if (pool_over(p) > 0) {
        (void)warm_flush(p);
        (void)slab_reclaim(p);
        (void)backing_trim(p, sat_sub(p->whole_bytes, pool_over(p)));
    }
    return 0;
}

void pool_unreserve(struct pool *p, unsigned tenant, uint64_t bytes)
{
    if (tenant < POOL_TENANTS) {
        struct pool_account *a = &p->account[tenant];
        uint64_t before = due(a);
        bytes = bytes < a->reserved ? bytes : a->reserved;
        a->reserved -= bytes;
        p->reserved -= bytes;
        settle_due(p, a, before);
    }
}

void pool_stay_most(struct pool *p, uint64_t bytes)
{
    p->stay_most = bytes;
}

int pool_stay(struct pool *p, unsigned tenant, uint64_t bytes, struct err *e)
{
    if (tenant >= POOL_TENANTS) {
        return err_set(e, ERR_INVALID, "tenant %u of %u", tenant, POOL_TENANTS);
    }
    struct pool_account *a = &p->account[tenant];
    uint64_t most = a->quota.guaranteed;
    uint64_t all = a->staying;
    if (most == 0) { /* one share for all of these */
        most = p->stay_most;
        all = 0;
        for (unsigned t = 0; t < POOL_TENANTS; t++) {
            const struct pool_account *x = &p->account[t];
            all = x->quota.guaranteed == 0 ? sat_add(all, x->staying) : all;
        }
    }
    if (sat_add(a->staying, bytes) > a->quota.hard) {
        return err_set(e, ERR_LIMIT, "tenant %u is charged at most %llu bytes", tenant,
                       LL(a->quota.hard));
    }
    if (sat_add(all, bytes) > most) {
        return err_set(e, ERR_LIMIT,
                       "%llu bytes stay on the device already, of at most %llu %s: free some of "
                       "these, or raise that",
                       LL(all), LL(most),
                       a->quota.guaranteed > 0
                           ? "that are guaranteed to the tenant (memory_guaranteed)"
                           : "for all tenants without guaranteed memory (stay_percent)");
    }
    a->staying = sat_add(a->staying, bytes);
    p->staying = sat_add(p->staying, bytes);
    return 0;
}

void pool_unstay(struct pool *p, unsigned tenant, uint64_t bytes)
{
    if (tenant < POOL_TENANTS) {
        struct pool_account *a = &p->account[tenant];
        bytes = bytes < a->staying ? bytes : a->staying;
        a->staying -= bytes;
        p->staying -= bytes;
    }
}
