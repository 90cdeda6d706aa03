/*
 * The rights of clients: to control the daemon, to load kernels, to see the work of others. Root
 * and the daemon's own user have all of them. Members of a configured group have one. Clients over
 * tcp have none. Groups are looked up when settings are read, because that may block. Thread: the
 * loop's.
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
    bool look_all;          /* every session sees everything */
};

/* Blocks on the system's data base of groups. On failure *ret_rights is untouched. */
int rights_read(const struct config *config, struct rights *ret_rights, struct err *e);

/* s NULL: a client before HELLO, which has no rights. */
bool rights_admin(const struct rights *a, const struct session *s);
bool rights_loads(const struct rights *a, const struct session *s);
/* The refusal names the users that may, and the setting that says so. */
int rights_refuse_load(const struct config *config, const struct session *s, struct err *e);
/* The same for the end of another user's job, which the session may see. */
int rights_refuse_cancel(const struct config *config, uint64_t job, struct err *e);
bool rights_sees(const struct rights *a, const struct session *s, const struct tenant *t);

#endif
