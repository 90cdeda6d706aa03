#include "daemon/pool/pool_int.h"
#include "daemon/pool/quota.h"

/* A page that is one tenant's stays so while only this tenant gets parts of it. What is of others
 * is the new tenant's only if it gets, and so clears, all of the page. */
static bool claim(uint16_t *holder, bool cleared, unsigned tenant)
{
    if (*holder == tenant) {
        return false;
    }
    bool foreign = *holder != TENANCY_CLEAN;
    *holder = foreign && !cleared ? TENANCY_MIXED : (uint16_t)tenant;
    return foreign;
}

bool tenancy_claim(struct pool *p, const struct block *b, unsigned tenant, bool clears)
{
    bool foreign = false;
    uint64_t end = b->at + b->size;
    if (p->source.pages == NULL) {
        struct home *h = records_at(&p->homes, b->home);
        return claim(&h->tenant, clears && b->size == h->bytes, tenant);
    }
    for (uint64_t at = b->at & ~(p->page - 1); at < end; at += p->page) {
        bool cleared = clears && at >= b->at && end - at >= p->page;
        foreign = claim(&p->slot_tenant[at / p->page], cleared, tenant) || foreign;
    }
    return foreign;
}

static void mark(struct pool *p, const struct block *b, uint16_t holder)
{
    if (p->source.pages == NULL) {
        ((struct home *)records_at(&p->homes, b->home))->tenant = holder;
        return;
    }
    for (uint64_t at = b->at & ~(p->page - 1); at < b->at + b->size; at += p->page) {
        p->slot_tenant[at / p->page] = holder;
    }
}

void tenancy_spoil(struct pool *p, const struct block *b)
{
    mark(p, b, TENANCY_MIXED);
}

void tenancy_clean(struct pool *p, const struct block *b)
{
    mark(p, b, TENANCY_CLEAN);
}

void pool_renumber(struct pool *p, unsigned tenant)
{
    for (uint64_t i = 0; p->source.pages != NULL && i < p->space / p->page; i++) {
        p->slot_tenant[i] = p->slot_tenant[i] == tenant ? TENANCY_MIXED : p->slot_tenant[i];
    }
    for (uint32_t i = 0; i < p->homes.made; i++) {
        struct home *h = records_at(&p->homes, i);
        h->tenant = h->tenant == tenant ? TENANCY_MIXED : h->tenant;
    }
    for (uint32_t i = 0; i < p->slabs.made; i++) {
        struct slab *s = records_at(&p->slabs, i);
        s->own = s->tenant == tenant ? 0 : s->own;
    }
    p->account[tenant].meter = (struct pool_meter){.peak = 0};
}
