#include "daemon/compile/confine.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "daemon/confine/landlock.h"

/* Allows the scratch folder, and in its parent the right to remove it. */
static int allow_scratch(const struct landlock *l, const char *scratch)
{
    char around[PATH_MAX];
    (void)snprintf(around, sizeof around, "%s", scratch);
    *strrchr(around, '/') = '\0';
    int rc = landlock_allow(l, around[0] != '\0' ? around : "/", LANDLOCK_REMOVE);
    return rc == 0 ? landlock_allow(l, scratch, LANDLOCK_ALL) : rc;
}

int confine(const struct confine *c, bool *ret_confined, struct err *e)
{
    struct landlock l;
    int rc = landlock_begin(&l, e);
    rc = rc == 0 ? landlock_allow_system(&l, c->options, LANDLOCK_READ | LANDLOCK_RUN) : rc;
    rc = rc == 0 && c->cache[0] != '\0' ? landlock_allow(&l, c->cache, LANDLOCK_ALL) : rc;
    rc = rc == 0 ? allow_scratch(&l, c->scratch) : rc;
    if (rc == 0) {
        rc = landlock_enforce(&l);
    }
    landlock_finish(&l);
    *ret_confined = rc == 0 && l.abi > 0;
    return rc == 0 ? 0 : err_wrap(e, "confining the compiler");
}
