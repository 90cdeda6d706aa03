/*
 * The life of domains (model/domain.h): they are made when a tenant that is apart first needs a
 * device, get a worker on demand, and end when idle.
 *
 * A domain without a worker rests. It gets one when something wants it and its device has proven
 * itself. A domain is idle when it has no unfinished jobs, and nothing would be lost with its
 * worker: its buffers go to the host first (evacuate.h), and its next worker restores them. An idle
 * one rests after [domains] idle_s, or sooner to make room: a device has at most [domains]
 * per_device_max with a worker, and the others wait for a place (places.h). A resting domain that
 * has no buffers is removed.
 *
 * With [domains] spare a device has one domain that is no tenant's yet, while memory is free. Its
 * worker is as that of any domain, and has run nothing of a tenant. The next new domain of the
 * device is this one, with another owner. It is the first to end, when memory or its place is
 * wanted. A spare worker that ends by itself is replaced after the usual pause; a new front ends
 * those that it finds, as it does not know what they have run.
 *
 * From when it is wanted until its worker ends, a domain has a lease: a part of its device's
 * memory, which the limit of the shared worker's pool lacks (tenants/budget.h). It begins with
 * [domains] memory_percent of the device, but at least the tenant's guarantee, and at most its hard
 * limit. Then it grows and shrinks with what workers need (tenants/leases.h).
 *
 * Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_WORKERS_DOMAINS_H
#define FRONT_WORKERS_DOMAINS_H

#include "daemon/front/model/front.h"

/* Where the tenant's work for the device is to be done, which gets a worker if it rests. base: no
 * domain. The domain may have to wait for a place. ERR_LIMIT: the device has no memory for another
 * domain, or there may be none, and the text says what would help; ERR_BUSY: no place can come
 * free now; ERR_DRAINING: an operator drains it; ERR_NOMEM. */
int domain_obtain(struct front *f, struct tenant *t, struct device *base,
                  struct device **ret_device, struct err *e);
/* Sees to it that a tenant that is apart has a domain for jobs that name no device. */
int domain_obtain_any(struct front *f, struct tenant *t, struct err *e);
/* The domain gets a worker if it rests. Anything else, and a device that is no domain: nothing
 * happens. Errors as above; ERR_DRAINING: an operator drains the device. */
int domain_want(struct front *f, struct device *d, struct err *e);
/* Finds or makes the domain of a worker that an earlier front started. NULL: no memory, or
 * DOMAINS_MAX. */
struct device *domain_adopt(struct front *f, struct tenant *t, struct device *base);
/* Bytes of the device that its worker, or the shared one, keeps in any case. */
uint64_t domain_floor(const struct front *f, const struct device *d);
/* Bytes of the device that a new domain of the tenant could get if others gave all that they can.
 */
uint64_t domain_most(const struct front *f, const struct tenant *t, struct device *base);
/* Bytes of the device that a new domain of the tenant would get; 0: none are left. */
uint64_t domain_grant(const struct front *f, const struct tenant *t, struct device *base);
/* The domain's worker, which an earlier front started, keeps the lease that this front noted. What
 * the worker itself reports does not count. grant 0: there is no note, and the worker is being
 * ended; the domain rests. No domain: nothing happens. */
void domain_keep(struct front *f, struct device *d, uint64_t grant);
/* The device's worker has ended. What a domain had of the device's memory comes back, unless its
 * next worker is to have it. No domain: nothing happens. */
void domain_lost(struct front *f, struct device *d);
/* Starts and ends workers of domains. */
void domains_watch(struct front *f, uint64_t now);
/* The device cannot be used: domains that want a worker rest. Calls `give_up` for each. */
void domains_give_up(struct front *f, struct device *base,
                     void (*give_up)(struct front *f, struct device *d));

#endif
