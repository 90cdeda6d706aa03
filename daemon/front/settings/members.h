/* A group of local users. Root and the daemon's own user belong to every group. Thread: any. */
#ifndef FRONT_SETTINGS_MEMBERS_H
#define FRONT_SETTINGS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define MEMBERS_MAX 256u

struct members {
    uint32_t uid[MEMBERS_MAX];
    unsigned count;
    uint32_t group; /* its gid, which also counts as a primary group; UINT32_MAX: none */
};

/* Does a local user belong to the group? gid: its primary group. */
bool members_have(const struct members *m, uint32_t uid, uint32_t gid);

#endif
