#include "daemon/front/tenants/budget.h"

#include <stdio.h>

#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/lease.h"
#include "daemon/front/workers/worker_end.h"
#include "proto/codec.h"

uint64_t budget_of(const struct device *d, uint64_t memory_max)
{
    if (d->owner != NULL) {
        return d->grant;
    }
    uint64_t own = d->pool_default > 0 ? d->pool_default : device_pool_limit(d);
    uint64_t most = d->memory > 0 && d->memory < memory_max ? d->memory : memory_max;
    uint64_t all = memory_max > 0 ? most : own;
    uint64_t least = lease_floor(all, 0); /* domains have more than all if that was lowered */
    uint64_t left = sat_sub(all, d->granted);
    least = least < all ? least : all;
    return left > least ? left : least;
}

static uint64_t stay_of(const struct front *f, const struct device *d)
{
    return device_stay(d->pool_limit, f->config.stay_percent);
}

/* A worker that has no memory yet, and is not to have any, keeps none. */
static uint64_t floor_beside(const struct front *f, const struct device *d, const struct device *x)
{
    bool holds = x->base == NULL || x->grant > 0 || x->lease.wanted > 0;
    return x != d && holds ? domain_floor(f, x) : 0;
}

uint64_t budget_most(const struct front *f, const struct device *d)
{
    const struct device *base = d->base != NULL ? d->base : d;
    uint64_t limit = d->base != NULL ? d->grant : device_pool_limit(d);
    uint64_t whole = device_whole(d);
    uint64_t others = floor_beside(f, d, base);
    for (const struct device *x = base->domains; x != NULL; x = x->domain_next) {
        others = sat_add(others, floor_beside(f, d, x));
    }
    uint64_t most = sat_sub(whole, others);
    uint64_t hard = d->owner != NULL ? amount_of(&d->owner->limits.hard, whole) : UINT64_MAX;
    most = most < hard ? most : hard;
    return most > limit && front_now(f) >= d->lease.denied_ns ? most : limit;
}

/* Before the worker gets another budget. What it has beyond a smaller one is not known yet. */
static void owes(struct device *d, uint64_t limit)
{
    if (limit < d->budget) {
        d->lease.owed = UINT64_MAX;
    } else if (d->lease.owed != UINT64_MAX) {
        d->lease.owed = sat_sub(d->lease.owed, limit - d->budget);
    }
}

void budget_settle(struct front *f, struct device *d)
{
    const struct msg_f_budget m = {.limit = d->pool_limit,
                                   .deadline_ms = f->config.recall_ms,
                                   .stay = stay_of(f, d),
                                   .most = budget_most(f, d)};
    struct err e = ERR_INIT;
    bool recalls = d->lease.taken > 0; /* another frame would begin the recall anew */
    bool known =
        d->budget == m.limit && d->stay == m.stay && (recalls || device_pool_most(d) == m.most);
    if (d->link == NULL || d->progress < WORKER_UP || d->pool_limit == 0 || known) {
        return;
    }
    owes(d, m.limit);
    d->budget = m.limit;
    d->stay = m.stay;
    d->lease.most = m.most;
    wake_for_pool(f, d);
    if (f->io.send(d->link, &schema_msg_f_budget, &m, NULL, &e) != 0) {
        worker_end(f, d, NULL, e.text);
    }
}

bool budget_reported(struct device *d, const struct msg_w_budget *m)
{
    const unsigned long long limit = m->limit;
    if (m->asked != d->budget) { /* the answer to a newer budget is on its way */
        return false;
    }
    d->lease.owed = m->code != 0 ? UINT64_MAX : m->missing;
    wake_at(d->front, front_now(d->front)); /* a domain may wait for it */
    if (m->code != 0) {
        (void)snprintf(d->refused, sizeof d->refused, "its memory stays at %llu bytes: %.*s", limit,
                       (int)m->text.size, (const char *)m->text.data);
        log_about(LOG_MEMORY_BUDGET, about_device(d), "device %u: %s", device_shown(d), d->refused);
        d->pool_limit = d->budget = m->limit;
        return true;
    }
    bool same = d->pool.limit == m->limit; /* only what it may become is another */
    d->pool.limit = m->limit;
    d->pool.size = m->size;
    d->pool.missing = m->missing;
    if (m->missing > 0) {
        log_about(LOG_MEMORY_OVER, about_device(d),
                  "device %u: its worker has %llu bytes of memory, %llu more than it may",
                  device_shown(d), (unsigned long long)m->size, (unsigned long long)m->missing);
    } else if (!same) {
        log_about(LOG_MEMORY_SHARE, about_device(d),
                  "device %u: its worker has %llu bytes of memory, of %llu that it may have",
                  device_shown(d), (unsigned long long)m->size, limit);
    }
    return false;
}
