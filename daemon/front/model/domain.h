/*
 * Domains. A tenant that may load kernels, and is not trusted, runs in workers of its own, one for
 * each device that it uses: it is `apart`. Such a worker is a struct device with an owner and a
 * base, the device that clients name. All other tenants share the worker of the device itself.
 *
 * Clients see bases only: requests name a base, and answers do (device_shown).
 *
 * A tenant is apart, or not, for as long as it has buffers or unfinished jobs (rights_place). So
 * all that it has on a device is in one worker. Thread: the loop's.
 */
#ifndef FRONT_MODEL_DOMAIN_H
#define FRONT_MODEL_DOMAIN_H

#include "daemon/front/model/device.h"
#include "daemon/front/model/device_set.h"

struct front;
struct tenant;

/* The name of the tenant that has the spare workers; no other tenant can have it. What the launcher
 * keeps of such a worker begins with it, and differs for each. */
#define DOMAIN_SPARE "(spare)"

/* Where the tenant's work for the device is done. t NULL: the daemon's own work. NULL: the tenant
 * is apart and has no domain there yet. */
struct device *domain_of(const struct tenant *t, struct device *base);
/* The hopeful devices on which the tenant's jobs may run: its domains, or those that it shares.
 * cpu: only those that compute on the host's processor. */
struct device_set domain_hopes(const struct front *f, const struct tenant *t, bool cpu);
/* Whether a job of the tenant that names no device may run some time. */
bool domain_hope(const struct front *f, const struct tenant *t);
/* A device that an operator drains, of those that the tenant may use. wish: as in requests, number
 * + 1; 0: any device. t NULL: all devices. NULL: there is none. */
const struct device *domain_drained(const struct front *f, const struct tenant *t, uint64_t wish);
/* Unfinished jobs of a tenant that is apart, which are bound to no device. */
uint64_t domain_unbound(const struct front *f, const struct tenant *t);
/* Whether jobs wait for the domain's worker, or may run in it. */
bool domain_needed(const struct front *f, const struct device *d);

#endif
