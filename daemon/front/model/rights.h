/*
 * The rights of clients: to control the daemon, to load kernels, to see the work of others. Root
 * and the daemon's own user have all rights. A tenant's section may give it some of them (roles).
 * Members of admin_group may control and see; members of load_group may load, unless a tenant's
 * section decides that. Clients over tcp may neither control nor load. A client on the socket
 * of a tenant has the rights of its section alone, whatever the uid is. Groups are looked up when
 * settings are read, because that may block. Thread: the loop's.
 */
#ifndef FRONT_MODEL_RIGHTS_H
#define FRONT_MODEL_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/front/settings/members.h"

struct config;
struct session;
struct tenant;

struct rights {
    struct members admins;  /* daemon.admin_group */
    struct members loaders; /* tenants.load_group */
    bool look_all;          /* every session sees the work of all tenants */
};

/* Blocks on the system's group database (name services). On failure *ret_rights is untouched. */
int rights_read(const struct config *config, struct rights *ret_rights, struct err *e);

/* s NULL: a client before HELLO, without rights. */
/* An administrator, or a local client of a tenant with one of these roles (enum tenant_role). */
bool rights_may(const struct rights *a, const struct session *s, unsigned roles);
bool rights_admin(const struct rights *a, const struct session *s);
bool rights_loads(const struct rights *a, const struct session *s);
/* Decides whether the tenant of the session is apart (domain.h): it may load kernels and is not
 * trusted. While it has buffers or unfinished jobs it stays where it is, and may not load kernels
 * if it should be apart. True: it changed. */
bool rights_place(const struct rights *a, const struct session *s);
/* Sets ERR_PERMISSION. The text names who may load, and the setting that decides it. */
int rights_refuse_load(const struct rights *a, const struct config *config, const struct session *s,
                       struct err *e);
/* The same for CANCEL of another tenant's job that the session may see. */
int rights_refuse_cancel(const struct config *config, uint64_t job, struct err *e);
bool rights_sees(const struct rights *a, const struct session *s, const struct tenant *t);
/* Whether it may read the programs of the tenant's jobs, with their scalars: its own, or by a role.
 * That every session sees the jobs of all tenants (look_all) is not enough. */
bool rights_reads(const struct rights *a, const struct session *s, const struct tenant *t);
/* Whether it may read content: arrays that travel with jobs, and sources. Of another tenant's,
 * administrators only. */
bool rights_content(const struct rights *a, const struct session *s, const struct tenant *t);

#endif
