/*
 * Who may control the daemon, who may load kernels and who sees whose work. Root and the daemon's
 * own user may all of it, members of a configured group one of it, and nobody over tcp. Members are
 * looked up when settings are read, not when somebody asks: that may block. Thread: the loop's.
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
    bool look_all;          /* everybody who said HELLO sees everything */
};

/* Blocks on the system's data base of groups. On failure *ret_rights is untouched. */
int rights_read(const struct config *config, struct rights *ret_rights, struct err *e);

/* s NULL: before HELLO, that is nobody. */
bool rights_admin(const struct rights *a, const struct session *s);
bool rights_loads(const struct rights *a, const struct session *s);
/* The refusal names the users that may, and the setting that says so. */
int rights_refuse_load(const struct config *config, const struct session *s, struct err *e);
/* Likewise for ending another user's job, which the session may see. */
int rights_refuse_cancel(const struct config *config, uint64_t job, struct err *e);
bool rights_sees(const struct rights *a, const struct session *s, const struct tenant *t);

#endif
