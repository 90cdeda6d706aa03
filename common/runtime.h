/*
 * The runtime folder, in which sockets and locks of one daemon lie. A user that may write into it
 * could put a socket or a link there. Blocks on the file system only.
 */
#ifndef COMMON_RUNTIME_H
#define COMMON_RUNTIME_H

#include "common/err.h"

/* Takes the lock `name` in `dir`; ret_fd holds it until it is closed, however the process ends.
 * A folder that is missing is made (0750). ERR_EXISTS: `owner` holds the lock already.
 * ERR_PERMISSION: the folder is another user's (root's is none), or others may write into it. */
int runtime_lock(const char *dir, const char *name, const char *owner, int *ret_fd, struct err *e);

#endif
