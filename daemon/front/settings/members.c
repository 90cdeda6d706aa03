#include "daemon/front/settings/members.h"

#include <unistd.h>

bool members_have(const struct members *m, uint32_t uid, uint32_t gid)
{
    bool found = uid == 0 || uid == geteuid() || (m->group != UINT32_MAX && gid == m->group);
    for (unsigned i = 0; !found && i < m->count; i++) {
        found = m->uid[i] == uid;
    }
    return found;
}
