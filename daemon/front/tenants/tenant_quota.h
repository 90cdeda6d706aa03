/*
 * Applies the rules of the settings to tenants and workers. A worker gets a tenant's limits before
 * the tenant's first request: when the pool is open, when the tenant appears, and when the settings
 * change. Thread: the loop's. Nothing blocks.
 */
#ifndef FRONT_TENANTS_TENANT_QUOTA_H
#define FRONT_TENANTS_TENANT_QUOTA_H

#include "daemon/front/model/front.h"

/* The name of a peer's tenant. */
void quota_name(const struct front *f, const struct tenant_peer *peer,
                char out[PROTO_NAME_MAX + 1]);
/* Finds or creates a tenant with its limits; NULL: no memory, or TENANTS_MAX are in use. */
struct tenant *quota_tenant(struct front *f, const char *name);

/* Takes the rules over and creates a tenant for each section, so guarantees hold before its first
 * session. memory_max: device_memory_max of the same settings; budgets that grow are sent, others
 * by budget_settle. A failure changes nothing. ERR_LIMIT: the budget of an open device is too small
 * for all guarantees. */
int quota_rules(struct front *f, struct tenant_rules *rules, uint64_t memory_max, struct err *e);

/* The worker's pool is open. False: it is too small for all guarantees, and the device becomes
 * absent. An adopted worker continues without guarantees. */
bool quota_open(struct front *f, struct device *d);
/* Starts devices that were too small for the guarantees of former settings. */
void quota_retry(struct front *f);

/* What the device gives to its domains changed. */
void quota_granted(struct front *f, struct device *base);
/* Decides whether the session's tenant is apart (rights_place). */
void quota_place(struct front *f, const struct session *s);

/* Bytes that a tenant's new buffers may have on the device: the room of device and host, less the
 * guarantees of other tenants. The tenant's own limit does not count here. */
uint64_t quota_room(const struct front *f, const struct device *d, const struct tenant *t);

/* A worker reports what a tenant has. */
void quota_reported(struct front *f, struct device *d, const struct msg_w_tenant *m);
/* A worker cannot enforce all limits of a tenant: the device's `refused` says so until the settings
 * change or another worker starts. */
void quota_refused(struct front *f, struct device *d, const struct msg_w_tenant_refused *m);
/* A worker reports about its budget. */
void quota_budget(struct front *f, struct device *d, const struct msg_w_budget *m);
/* Puts the rules into a tenant, which keeps what it has. True: its quota changed. */
bool quota_apply(const struct tenant_rules *rules, struct tenant *t);
/* The users of a tenant for tables, cut to the size. */
void quota_users(const struct tenant_rules *rules, const struct tenant *t, char *out, size_t size);

#endif
