#include "daemon/pool/pool_int.h"

/* A page that is one tenant's stays so while only this tenant gets parts of it. What is of others
 * is the new tenant's only if it gets, and so clears, all of the page. */
static bool claim(uint16_t *holder, bool all_of_it, unsigned tenant)
{
    if (*holder == tenant) {
        return false;
    }
    bool foreign = *holder != TENANCY_CLEAN;
    *holder = foreign && !all_of_it ? TENANCY_MIXED : (uint16_t)tenant;
    return foreign;
}

bool tenancy_claim(struct pool *p, const struct block *b, unsigned tenant)
{
    bool foreign = false;
    uint64_t end = b->at + b->size;
    if (p->source.pages == NULL) {
        struct home *h = records_at(&p->homes, b->home);
        return claim(&h->tenant, b->size == h->bytes, tenant);
    }
    for (uint64_t at = b->at & ~(p->page - 1); at < end; at += p->page) {
        bool all_of_it = at >= b->at && end - at >= p->page;
        foreign = claim(&p->slot_tenant[at / p->page], all_of_it, tenant) || foreign;
    }
    return foreign;
}

void tenancy_clean(struct pool *p, const struct block *b)
{
    for (uint64_t i = b->at / p->page; i < (b->at + b->size) / p->page; i++) {
        p->slot_tenant[i] = TENANCY_CLEAN;
    }
}
