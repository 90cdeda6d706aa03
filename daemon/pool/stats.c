#include "daemon/pool/pool_int.h"

static void meter_taken(struct pool_meter *m, const struct pool_piece *piece)
{
    m->live++;
    m->used += piece->size;
    m->asked += piece->asked;
    m->peak = m->used > m->peak ? m->used : m->peak;
    m->allocations++;
    m->total += piece->size;
}

static void meter_given(struct pool_meter *m, const struct pool_piece *piece)
{
    m->live--;
    m->used -= piece->size;
    m->asked -= piece->asked;
}

static enum pool_tier tier_of(const struct pool *p, const struct pool_piece *piece)
{
    if (block_at(&p->blocks, piece->block)->state == BLOCK_SLAB) {
        return POOL_TIER_SLAB;
    }
    return piece->size < POOL_TIER_LARGE_MIN ? POOL_TIER_BLOCK : POOL_TIER_LARGE;
}

void stats_taken(struct pool *p, const struct pool_piece *piece)
{
    struct pool_stats *s = &p->stats;
    enum pool_tier tier = tier_of(p, piece);
    s->used += piece->size;
    s->asked += piece->asked;
    s->peak = s->used > s->peak ? s->used : s->peak;
    s->live++;
    s->allocations++;
    meter_taken(&s->tier[tier], piece);
    meter_taken(&p->account[piece->tenant].meter, piece);
    if (tier == POOL_TIER_SLAB) {
        meter_taken(&p->class[class_of(piece->size)], piece);
    }
}

void stats_given(struct pool *p, const struct pool_piece *piece)
{
    struct pool_stats *s = &p->stats;
    enum pool_tier tier = tier_of(p, piece);
    s->used -= piece->size;
    s->asked -= piece->asked;
    s->live--;
    s->frees++;
    meter_given(&s->tier[tier], piece);
    meter_given(&p->account[piece->tenant].meter, piece);
    if (tier == POOL_TIER_SLAB) {
        meter_given(&p->class[class_of(piece->size)], piece);
    }
}

uint64_t stats_largest_free(const struct pool *p)
{
    uint64_t fit = fit_largest(&p->ready, &p->blocks);
    uint64_t room = pool_room(p);
    uint64_t grown = p->whole_bytes + (room & ~(p->page - 1));
    if (p->source.blocks != NULL && p->source.blocks->max_block != 0 &&
        grown > p->source.blocks->max_block) {
        grown = p->source.blocks->max_block;
    }
    return fit > grown ? fit : grown;
}

void pool_stats(struct pool *p, struct pool_stats *ret_stats)
{
    (void)warm_flush(p);
    *ret_stats = p->stats;
    uint64_t known = p->stats.used + p->whole_bytes + p->stats.pending;
    ret_stats->cached = p->whole_bytes;
    ret_stats->largest_free = stats_largest_free(p);
    ret_stats->vacant = p->vacant.bytes;
    ret_stats->staying = p->staying;
    ret_stats->handles = p->source.pages != NULL ? p->table.frames.handles : p->homes.live;
    ret_stats->internal = p->stats.used - p->stats.asked;
    ret_stats->external = p->stats.size > known ? p->stats.size - known : 0;
}

void pool_class_stats(const struct pool *p, unsigned class, uint64_t *ret_bytes,
                      struct pool_meter *ret_meter)
{
    *ret_bytes = class < SLAB_CLASSES ? class_bytes(class) : 0;
    *ret_meter = (struct pool_meter){.live = 0};
    if (class < SLAB_CLASSES) {
        *ret_meter = p->class[class];
    }
}

void pool_tenant_stats(const struct pool *p, unsigned tenant, struct pool_meter *ret_meter)
{
    *ret_meter = tenant < POOL_TENANTS ? p->account[tenant].meter : (struct pool_meter){0};
}

uint64_t pool_tenant_used(const struct pool *p, unsigned tenant)
{
    return tenant < POOL_TENANTS ? p->account[tenant].meter.used : 0;
}
