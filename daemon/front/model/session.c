#include "daemon/front/model/session.h"

#include <string.h>

#include "common/steps.h"
#include "daemon/front/model/tenant.h"

_Static_assert(sizeof(struct session_key) == PROTO_CLIENT_ID_BYTES + 2 * sizeof(uint32_t),
               "padding would take part in the hash");

static const unsigned steps[SESSION_STATES] = {
    [SESSION_LINGERING] = STEP_TO(SESSION_CONNECTED) | STEP_TO(SESSION_ENDING_JOBS),
    [SESSION_CONNECTED] = STEP_TO(SESSION_LINGERING),
    [SESSION_ENDING_JOBS] = STEP_TO(SESSION_ENDING_PROGRAMS),
    [SESSION_ENDING_PROGRAMS] = STEP_TO(SESSION_ENDING_MODULES),
    [SESSION_ENDING_MODULES] = STEP_TO(SESSION_ENDING_OPENINGS),
    [SESSION_ENDING_OPENINGS] = STEP_TO(SESSION_ENDING_BUFFERS),
    [SESSION_ENDING_BUFFERS] = STEP_TO(SESSION_ENDING_ARENAS),
    [SESSION_ENDING_ARENAS] = STEP_TO(SESSION_ENDING_ANSWERS),
    [SESSION_ENDING_ANSWERS] = STEP_TO(SESSION_ENDED),
};

void session_step(struct session *s, enum session_state to)
{
    step_check(steps, s->state, to);
    s->state = to;
}

struct session_key session_key(const uint8_t *client_id, uint64_t user)
{
    struct session_key key = {.uid = (uint32_t)user, .listener = (uint32_t)(user >> 32)};
    memcpy(key.client_id, client_id, sizeof key.client_id);
    return key;
}

struct session *session_find(struct session *all, const struct session_key *key)
{
    struct session *s = NULL;
    HASH_FIND(hh, all, key, sizeof *key, s);
    return s;
}

int session_lacks(const struct session *s, const struct idmap *map, uint64_t handle,
                  const char *noun, struct err *e)
{
    if (map != NULL && idmap_freed_of(map, handle, s->id)) {
        return err_set(e, ERR_STALE_HANDLE, "%s %#llx was freed", noun, (unsigned long long)handle);
    }
    return err_set(e, ERR_BAD_HANDLE, "this session has no %s %#llx", noun,
                   (unsigned long long)handle);
}
