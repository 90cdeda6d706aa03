/*
 * The runtime folder contains the sockets and locks of one daemon. It must be safe, because a user
 * who may write into it could put a socket or a link there. Blocks on the file system and
 * on a lock.
 */
#ifndef COMMON_RUNTIME_H
#define COMMON_RUNTIME_H

#include "common/err.h"

/* Takes the lock `name` in `dir`. The lock lasts until ret_fd is closed or the process ends. A
 * missing folder is made (0750). Waits up to a second for a process that ends. ERR_EXISTS: `owner`
 * has the lock. ERR_PERMISSION: the folder belongs to another user than this one or root, or others
 * may write into it. */
int runtime_lock(const char *dir, const char *name, const char *owner, int *ret_fd, struct err *e);

#endif
