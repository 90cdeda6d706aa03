/*
 * Tenants as the settings want them, and what the workers of devices are told of them. A worker
 * hears of every tenant with a limit before the first request of it: when its pool is there, when
 * such a tenant appears, and when the settings change. Thread: the loop's. Nothing here blocks.
 */
#ifndef FRONT_TENANTS_TENANT_QUOTA_H
#define FRONT_TENANTS_TENANT_QUOTA_H

#include "daemon/front/model/front.h"

/* The name of the tenant that a peer belongs to. */
void quota_name(const struct front *f, const struct tenant_peer *peer,
                char out[PROTO_NAME_MAX + 1]);
/* Finds or makes it, with its limits; NULL when memory is out, or there are TENANTS_MAX. */
struct tenant *quota_tenant(struct front *f, const char *name);

/* Takes the rules over, and makes a tenant for each section: what is guaranteed is kept before
 * anybody comes. On failure all is as before: ERR_LIMIT where a device that is open could not keep
 * what is guaranteed. */
int quota_rules(struct front *f, struct tenant_rules *rules, struct err *e);

/* The worker's pool is there. False: it cannot keep what is guaranteed; the device is absent then.
 * One that was taken over serves on, without guarantees. */
bool quota_open(struct front *f, struct device *d);
/* Devices that are absent for that, whose worker has ended, and that no longer are: they start. */
void quota_retry(struct front *f);

/* Bytes of buffers that a tenant may have on the device beside those there are: what the device and
 * the host have room for, less what is kept for others. Its own limit is not looked at. */
uint64_t quota_room(const struct front *f, const struct device *d, const struct tenant *t);

/* What a worker says that a tenant has. */
void quota_told(struct front *f, struct device *d, const struct msg_w_tenant *m);
/* It does not hold a tenant to all of what it was told: the device's `refused` says so until the
 * settings change or another worker comes. */
void quota_refused(struct front *f, struct device *d, const struct msg_w_tenant_refused *m);
/* Puts what the settings say into a tenant; it keeps what it has. True: its quota is another. */
bool quota_apply(const struct tenant_rules *rules, struct tenant *t);
/* Who belongs to a tenant, for people: cut to the size. */
void quota_users(const struct tenant_rules *rules, const struct tenant *t, char *out, size_t size);

#endif
