#include "daemon/front/tenants/leases.h"

#include <inttypes.h>

#include "common/log.h"
#include "common/saturate.h"
#include "daemon/front/model/about.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/tenants/budget.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/lease.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/worker_end.h"

#define HOLDERS_MAX (DOMAINS_MAX + 1)
#define GRACE_NS    (2 * NS_PER_S) /* for the answer to a recall, after its deadline */
#define DENIED_NS   NS_PER_S       /* until a lease that found nothing may grow again */
/* Without a job for so long a worker counts as idle. Two that work in turn would else take each
 * other's memory all the time. */
#define IDLE_NS NS_PER_S

struct holders {
    struct device *device[HOLDERS_MAX];
    struct lease_holder of[HOLDERS_MAX];
    unsigned count;
};

/* ---- leases and needs ------------------------------------------------------------------------ */

/* Jobs that waited may have ended. A domain that is to start wants its first lease. */
static bool still_wants(const struct device *d)
{
    const struct job *j = d->inflight;
    while (j != NULL && j->wait != WAIT_MEMORY) {
        j = j->device_next;
    }
    return j != NULL || (d->state == DEVICE_RESTING && d->worker == 0 && d->wanted);
}

static void add(const struct front *f, struct holders *h, struct device *d, uint64_t now)
{
    struct lease *l = &d->lease;
    bool asked = d->link != NULL && d->progress >= WORKER_UP && d->state == DEVICE_READY &&
                 d->killed_ns == 0;
    uint64_t fixed = sat_add(d->pool.staying, d->pool.managed);
    uint64_t floor = domain_floor(f, d);
    uint64_t used_ns = d->ran_ns > d->used_ns ? d->ran_ns : d->used_ns;
    if (l->wanted > 0 && !still_wants(d)) {
        l->wanted = 0;
    }
    h->device[h->count] = d;
    h->of[h->count++] = (struct lease_holder){
        .lease = d->base != NULL ? d->grant : device_pool_limit(d),
        .used = d->worker != 0 ? d->pool.used : 0,
        .floor = floor > fixed ? floor : fixed,
        .most = budget_most(f, d),
        .gives = asked || (d->worker == 0 && device_base(d)->lease.owed == 0),
        .busy = d->inflight_count > 0 || now < ns_add(used_ns, IDLE_NS),
        .used_ns = used_ns,
        .wanted = now >= l->denied_ns ? l->wanted : 0,
        .since_ns = l->since_ns,
    };
}

static void gather(const struct front *f, struct device *base, uint64_t now,
                   struct holders *ret_holders)
{
    ret_holders->count = 0;
    add(f, ret_holders, base, now);
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        if (d->grant > 0 || d->lease.wanted > 0) {
            add(f, ret_holders, d, now);
        }
    }
}

/* ---- memory changes hands -------------------------------------------------------------------- */

/* The next front goes on from what the worker of a domain may have: what is recalled from it, too,
 * until it has given that. */
static void note(struct device *d)
{
    if (d->base != NULL) {
        record_set_lease(d->record, d->grant + d->lease.taken);
    }
}

/* Between the lease of the worker and what is on its way to another. bytes > 0: the worker gives.
 */
static void move(struct front *f, struct device *d, uint64_t bytes, bool gives)
{
    struct device *base = device_base(d);
    base->growth.coming += gives ? bytes : -bytes;
    if (d->base == NULL) {
        base->granted += gives ? bytes : -bytes;
        f->hooks.budget_changed(f, base);
    } else {
        d->grant += gives ? -bytes : bytes;
        d->memory_limit = d->pool_limit = d->grant;
        note(d);
        budget_settle(f, d);
    }
}

static void recall(struct front *f, struct device *d, uint64_t bytes)
{
    d->lease.taken = bytes;
    move(f, d, bytes, true);
    if (d->worker == 0) {
        d->lease.taken = 0; /* nothing is in use */
    }
}

/* The worker keeps a part of what it was to give. */
static void keep(struct front *f, struct device *d, uint64_t bytes)
{
    uint64_t taken = d->lease.taken;
    d->lease.taken = 0;
    if (bytes > 0) {
        move(f, d, bytes < taken ? bytes : taken, false);
    }
    note(d);
    wake_at(f, front_now(f));
}

static void deny(struct front *f, struct device *d, uint64_t now)
{
    log_debug("device %u: %s%s gets no more memory: its jobs lack %" PRIu64
              " bytes, and others have no more to give",
              device_shown(d), d->owner != NULL ? "tenant " : "the shared worker",
              d->owner != NULL ? d->owner->name : "", d->lease.wanted);
    d->lease.wanted = 0;
    d->lease.denied_ns = ns_add(now, DENIED_NS);
    wake_at(f, d->lease.denied_ns);
}

static void begin(struct front *f, struct device *base, const struct holders *h, unsigned wanter,
                  const uint64_t *take, uint64_t now)
{
    base->growth.wanter = h->device[wanter];
    base->growth.until_ns = ns_add(now, f->config.recall_ms * NS_PER_MS + GRACE_NS);
    wake_at(f, base->growth.until_ns);
    for (unsigned i = 0; i < h->count; i++) {
        if (take[i] > 0) {
            recall(f, h->device[i], take[i]);
        }
    }
}

static void serve(struct front *f, struct device *base, uint64_t now)
{
    struct holders h;
    uint64_t take[HOLDERS_MAX];
    unsigned wanter;
    gather(f, base, now, &h);
    while (base->growth.wanter == NULL && (wanter = lease_next(&h.of[0], h.count)) < h.count) {
        if (lease_plan(h.of, h.count, wanter, take) > 0) {
            begin(f, base, &h, wanter, take, now);
        } else {
            deny(f, h.device[wanter], now);
            h.of[wanter].wanted = 0;
        }
    }
}

/* ---- a lease grows --------------------------------------------------------------------------- */

/* Has it given what it was asked for? A worker that has ended owes nothing (worker_ended). */
static bool has_given(struct front *f, struct device *d, uint64_t now)
{
    if (d->lease.taken == 0) {
        return true;
    }
    if (now < device_base(d)->growth.until_ns) {
        return false;
    }
    if (d->owner != NULL && d->state != DEVICE_STUCK) {
        worker_end(f, d, NULL, "it does not give memory back that was recalled");
        return false;
    }
    log_about(LOG_MEMORY_OVER, about_device(d),
              "device %u: a worker gives no memory back, and keeps it", device_shown(d));
    keep(f, d, d->lease.taken);
    return true;
}

static void finish(struct front *f, struct device *base)
{
    struct device *d = base->growth.wanter;
    uint64_t bytes = base->growth.coming;
    bool there = d != NULL && (d->worker != 0 || d->wanted);
    base->growth.wanter = NULL;
    move(f, there ? d : base, bytes, false);
    if (there && bytes == 0) { /* the others have kept all of it */
        deny(f, d, front_now(f));
    } else if (there) {
        log_debug("device %u: %s%s gets %" PRIu64 " bytes more of memory", device_shown(d),
                  d->owner != NULL ? "tenant " : "the shared worker",
                  d->owner != NULL ? d->owner->name : "", bytes);
        d->lease.wanted = 0;
        wake_at(f, front_now(f));
    }
}

static void go_on(struct front *f, struct device *base, uint64_t now)
{
    bool over = has_given(f, base, now);
    for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
        over = has_given(f, d, now) && over;
    }
    if (over) {
        finish(f, base);
    } else {
        wake_at(f, now < base->growth.until_ns ? base->growth.until_ns : ns_add(now, NS_PER_S));
    }
}

/* The one that wanted it may be gone. Others want it all the same only when those that give have
 * answered, or were ended: each growth has its own deadline. */
static bool is_growing(const struct device *base)
{
    return base->growth.wanter != NULL || base->growth.coming > 0;
}

void leases_watch(struct front *f, uint64_t now)
{
    for (unsigned i = 0; i < f->device_count; i++) {
        struct device *base = f->device[i];
        if (is_growing(base)) {
            go_on(f, base, now);
        }
        if (base->domains == NULL) {
            continue;
        }
        if (!is_growing(base)) {
            serve(f, base, now);
        }
        budget_settle(f, base);
        for (struct device *d = base->domains; d != NULL; d = d->domain_next) {
            budget_settle(f, d);
        }
    }
}

void leases_answered(struct front *f, struct device *d, const struct msg_w_budget *m)
{
    if (d->lease.taken > 0) {
        keep(f, d, m->code != 0 ? d->lease.taken : m->missing);
    }
}
