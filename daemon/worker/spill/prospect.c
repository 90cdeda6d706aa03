#include "daemon/worker/spill/prospect.h"

#include <string.h>

#include "common/saturate.h"

uint64_t prospect_allowance(const struct spill *s, unsigned tenant)
{
    struct pool_account a;
    pool_account(s->device->memory.pool, tenant, &a);
    return sat_sub(a.quota.hard, sat_add(a.meter.used, a.reserved));
}

uint64_t prospect_vacant(const struct spill *s, unsigned tenant)
{
    struct pool_stats stats;
    pool_stats(s->device->memory.pool, &stats);
    uint64_t taken = sat_add(stats.used, pool_kept(s->device->memory.pool, tenant));
    uint64_t free_bytes = sat_sub(stats.limit, taken);
    uint64_t allowed = prospect_allowance(s, tenant);
    return free_bytes < allowed ? free_bytes : allowed;
}

bool prospect_may_go(const struct spill *s, const struct buffer *b, unsigned tenant, bool own,
                     uint64_t before)
{
    struct pool_account a;
    if (b->stays) {
        return false;
    }
    if (b->piece.pool.tenant == tenant || own) {
        return b->piece.pool.tenant == tenant;
    }
    pool_account(s->device->memory.pool, b->piece.pool.tenant, &a);
    uint64_t less = sat_add(before, b->piece.pool.size);
    return a.quota.guaranteed == 0 || sat_sub(a.meter.used, less) >= a.quota.guaranteed;
}

bool prospect_host_allows(const struct spill *s, const struct buffer *b, const struct hunger *h,
                          uint64_t before)
{
    unsigned of = b->piece.pool.tenant;
    uint64_t room = memory_host_room(&s->device->memory, of, of == h->tenant ? h->back : 0);
    return buffer_keeps_itself(b) || sat_add(before, b->size) <= room;
}

void prospect_find(struct spill *s, const struct hunger *h, struct prospect *ret_prospect)
{
    struct prospect p = {.movable = 0};
    uint64_t room = sat_sub(s->limit, s->bytes); /* the limit may have been higher when they came */
    uint64_t bytes = 0;
    memset(s->going, 0, sizeof s->going);
    memset(s->hosted, 0, sizeof s->hosted);
    for (const struct buffer *b = s->buffers->cold; b != NULL; b = b->cold_next) {
        unsigned of = b->piece.pool.tenant;
        uint64_t size = b->piece.pool.size;
        if (b->loss != BUFFER_WHOLE || !prospect_may_go(s, b, h->tenant, false, s->going[of])) {
            continue;
        }
        if (!prospect_host_allows(s, b, h, s->hosted[of])) {
            p.kept += of == h->tenant ? size : 0;
            continue;
        }
        p.movable += size;
        p.own += of == h->tenant ? size : 0;
        s->going[of] += size;
        if (buffer_keeps_itself(b)) {
            bytes += size;
        } else if (b->size <= room) {
            bytes += size;
            room -= b->size;
            s->hosted[of] += b->size;
        }
    }
    uint64_t allowed = sat_add(prospect_allowance(s, h->tenant), p.own);
    p.obtainable = sat_add(bytes, prospect_vacant(s, h->tenant));
    p.obtainable = p.obtainable < allowed ? p.obtainable : allowed;
    *ret_prospect = p;
}
