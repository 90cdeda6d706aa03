/*
 * The user that workers and compilers run as. A kernel on a CPU device is native code in a process
 * of that user. The user should therefore differ from the launcher's user, which the front trusts.
 * Thread: one.
 */
#ifndef LAUNCHER_IDENTITY_H
#define LAUNCHER_IDENTITY_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

#define IDENTITY_GROUPS_MAX 64

struct identity {
    uid_t uid; /* 0: the launcher's own user */
    gid_t gid;
    gid_t groups[IDENTITY_GROUPS_MAX];
    int group_count;
};

/* Finds a user by its name or by the numbers UID:GID. Blocks on the system's data base of users.
 * Refuses root, the launcher's own user, and a user that this process cannot become. */
int identity_find(const char *user, struct identity *ret_id, struct err *e);
/* For a child between fork and exec: becomes the user, with its groups, without capabilities and
 * without a way to gain any. Does nothing for uid 0. On false errno has the reason. */
bool identity_become(const struct identity *id);
/* kill(2) for processes of that user. During the call this process has the user's effective uid.
 * Its real and saved uids differ from that, so no process of the user can signal or trace it. */
int identity_kill(const struct identity *id, pid_t pid, int signal);

#endif
