/*
 * A tenant's own socket, as its section names it: clients that connect there belong to the
 * tenant, whatever their uid. So containers whose users have equal uids get a socket each.
 *
 * The socket for descriptors (clients/shm.h) lies beside it: its path ends with TENANT_SOCKET_SHM.
 * Whether a folder exists is asked of the system; the rest is pure. Thread: any.
 */
#ifndef FRONT_SETTINGS_TENANT_SOCKET_H
#define FRONT_SETTINGS_TENANT_SOCKET_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "proto/limits.h"

#define TENANT_SOCKET_SHM PROTO_SOCKET_SHM
#define TENANT_SOCKET_PATH                                                                         \
    (PROTO_SOCKET_MAX + 1 - (sizeof TENANT_SOCKET_SHM - 1)) /* with its NUL */
#define TENANT_SOCKETS_MAX  64u                             /* each takes two descriptors */
#define TENANT_SOCKET_MODE  0660u                           /* unless the section has another */
#define TENANT_SOCKET_GROUP UINT32_MAX                      /* the daemon's */

struct tenant_socket {
    char path[TENANT_SOCKET_PATH]; /* "": none */
    uint32_t mode;                 /* of both files */
    uint32_t gid;                  /* of both files */
};

#define TENANT_SOCKET_NONE                                                                         \
    ((struct tenant_socket){.mode = TENANT_SOCKET_MODE, .gid = TENANT_SOCKET_GROUP})

/* Is it a key of a tenant's socket: listen, listen_mode or listen_group? */
bool tenant_socket_key(const char *key);
/* Sets one of these keys. The path may begin with ipc://, and "" means none. A group is looked up,
 * which blocks on the system's group database. ERR_INVALID, ERR_LIMIT: a path too long for a
 * socket; ERR_NOT_FOUND: no such group. */
int tenant_socket_set(struct tenant_socket *s, const char *key, const char *value, struct err *e);
/* Is it the path of the tenant's socket, or of the one for descriptors? */
bool tenant_socket_has(const struct tenant_socket *s, const char *path);
/* Makes the folder of the socket, if only this folder is missing. Blocks on the file system. */
int tenant_socket_folder(const struct tenant_socket *s, struct err *e);
/* Could tenant_socket_folder succeed? Folders below `runtime_dir`, which exists only while the
 * daemon runs, are not looked for. */
int tenant_socket_check_folder(const struct tenant_socket *s, const char *runtime_dir,
                               struct err *e);
/* What stands for the socket in the keys of sessions: derived from the name of the tenant, the same
 * in every front, never 0. */
uint32_t tenant_socket_number(const char *tenant);

#endif
