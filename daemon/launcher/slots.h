/*
 * Slots of workers: each running worker has one, with a folder of its own for what its driver
 * compiles, and a user of its own where there is a pool of users. A folder serves workers of one
 * owner; it is emptied before another owner's worker gets it, since a worker runs what it finds
 * there. The folder of slot N is N in $HOME for a pool of users; workers/N in $HOME for one user
 * that is not the launcher's; else gpud-workers/N in $XDG_CACHE_HOME or $HOME/.cache, where other
 * launchers of this user take other slots. Thread: one.
 */
#ifndef LAUNCHER_SLOTS_H
#define LAUNCHER_SLOTS_H

#include <limits.h>
#include <stdbool.h>

#include "common/bytes.h"
#include "common/hash.h"
#include "daemon/launcher/children.h"

#define SLOT_USERS_MAX 64u
#define SLOTS_MAX      CHILDREN_MAX
#define SLOTS_WARM     64u /* beyond so many, another owner's slot is taken before a new one */
#define SLOT_BYTES     (UINT64_C(64) << 20) /* of a driver's programs that a slot keeps */

struct slots {
    unsigned users; /* of the pool; 0: all workers run as `common` */
    struct identity user[SLOT_USERS_MAX];
    const struct identity *common; /* not owned */
    char base[PATH_MAX];           /* holds the folders; "": there are none */
    uint64_t takes;                /* so far */
    unsigned prepare_ms;           /* the longest that a folder is prepared */
    struct {
        uint64_t taken;    /* the number of the last take; 0: none */
        struct hash owner; /* of the last worker */
        int lock_fd;       /* of the folder, -1: not locked by this launcher */
    } slot[SLOTS_MAX];
};

struct slot {
    unsigned number;
    const struct identity *identity; /* lives as long as the slots */
    char cache[PATH_MAX];            /* folder of the worker alone; "": it has none */
};

/* common: the workers' user, named `user` (NULL: the launcher's own). users: how many of a pool,
 * USER0, USER1, … or the numbers behind UID:GID; all have the group of `user`. Blocks on the data
 * base of users. NOT_FOUND, INVALID, PERMISSION. */
int slots_open(struct slots *s, const struct identity *common, const char *user, unsigned users,
               struct err *e);
/* Takes a slot that no running worker has. owner: of the worker; equal bytes share a folder. A
 * folder that cannot be used is logged. LIMIT: all users of the pool have a worker. Blocks on
 * files, for prepare_ms at most; a folder that takes longer is emptied further next time. */
int slots_take(struct slots *s, const struct children *children, struct bytes owner,
               struct slot *ret_slot, struct err *e);

#endif
