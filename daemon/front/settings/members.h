/* A group of local users. Root and the daemon's own user belong to every group. Thread: any. */
#ifndef FRONT_SETTINGS_MEMBERS_H
#define FRONT_SETTINGS_MEMBERS_H

#include <stdbool.h>
#include <stdint.h>

#define MEMBERS_MAX 256u

struct members {
    uint32_t uid[MEMBERS_MAX];
    unsigned count;
    uint32_t group; /* its gid: whose primary group it is counts, too; UINT32_MAX: none */
};

/* A local user, by uid and primary group. */
bool members_have(const struct members *m, uint32_t uid, uint32_t gid);

#endif
