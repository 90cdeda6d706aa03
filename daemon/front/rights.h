/*
 * Who may control the daemon and who sees whose work. Administrators are root, the daemon's own
 * user and the members of the configured group; nobody over tcp is one. Members are looked up when
 * settings are read, not when somebody asks: that may block. Thread: the loop's.
 */
#ifndef FRONT_RIGHTS_H
#define FRONT_RIGHTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define ADMINS_MAX 256u

struct session;
struct tenant;

struct rights {
    uint32_t admin[ADMINS_MAX]; /* uids of the group's members */
    unsigned admin_count;
    uint32_t group; /* its gid: whose primary group it is counts, too; UINT32_MAX: none */
    bool look_all;  /* everybody who said HELLO sees everything */
};

/* Blocks on the system's data base of groups. On failure *ret_rights is untouched. */
int rights_read(const char *group, bool look_all, struct rights *ret_rights, struct err *e);

/* s NULL: before HELLO, that is nobody. */
bool rights_admin(const struct rights *a, const struct session *s);
bool rights_sees(const struct rights *a, const struct session *s, const struct tenant *t);

#endif
