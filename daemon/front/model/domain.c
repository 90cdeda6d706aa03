#include "daemon/front/model/domain.h"

#include "daemon/front/model/front.h"

struct device *domain_of(const struct tenant *t, struct device *base)
{
    if (t == NULL || !t->apart) {
        return base;
    }
    struct device *d = base->domains;
    while (d != NULL && d->owner != t) {
        d = d->domain_next;
    }
    return d;
}

struct device_set domain_hopes(const struct front *f, const struct tenant *t, bool cpu)
{
    struct device_set hopes = {0};
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = domain_of(t, f->device[i]);
        if (d != NULL && tenant_may_use(t, i) && device_hopeful(d) && (d->cpu || !cpu)) {
            device_set_put(&hopes, d->index);
        }
    }
    return hopes;
}

/* A submission makes the domain that its job needs (workers/domains.h). No other is made for the
 * job later, so a device without a domain of the tenant is no hope. */
bool domain_hope(const struct front *f, const struct tenant *t)
{
    bool hope = false;
    for (unsigned i = 0; i < f->device_count && !hope; i++) {
        const struct device *d = domain_of(t, f->device[i]);
        hope = d != NULL && tenant_may_use(t, i) && device_hopeful(d);
    }
    return hope;
}

const struct device *domain_drained(const struct front *f, const struct tenant *t, uint64_t wish)
{
    const struct device *drained = NULL;
    for (unsigned i = 0; i < f->device_count && drained == NULL; i++) {
        bool may = (t == NULL || tenant_may_use(t, i)) && (wish == 0 || wish == i + 1);
        drained = may && device_drains(f->device[i]) ? f->device[i] : NULL;
    }
    return drained;
}

uint64_t domain_unbound(const struct front *f, const struct tenant *t)
{
    uint64_t bound = 0;
    for (unsigned i = 0; i < f->device_count; i++) {
        const struct device *d = domain_of(t, f->device[i]);
        bound += d != NULL ? d->jobs : 0;
    }
    return t->held[TENANT_JOBS] > bound ? t->held[TENANT_JOBS] - bound : 0;
}

bool domain_needed(const struct front *f, const struct device *d)
{
    return d->jobs > 0 || domain_unbound(f, d->owner) > 0;
}
