#include "daemon/front/rights.h"

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/session.h"

int rights_read(const char *group, bool look_all, struct rights *ret_rights, struct err *e)
{
    struct rights a = {.group = UINT32_MAX, .look_all = look_all};
    errno = 0;
    const struct group *g = group[0] != '\0' ? getgrnam(group) : NULL;
    if (group[0] != '\0' && g == NULL) {
        return err_set(e, ERR_NOT_FOUND, "admin_group = %s: %s", group,
                       errno != 0 ? strerror(errno) : "there is no such group");
    }
    if (g != NULL) {
        a.group = g->gr_gid;
    }
    for (char **name = g != NULL ? g->gr_mem : NULL; name != NULL && *name != NULL; name++) {
        const struct passwd *p = getpwnam(*name);
        if (p != NULL && a.admin_count == ADMINS_MAX) {
            return err_set(e, ERR_LIMIT, "admin_group = %s: over %u members", group, ADMINS_MAX);
        }
        if (p != NULL) { /* a member who was deleted is nobody */
            a.admin[a.admin_count++] = p->pw_uid;
        }
    }
    *ret_rights = a;
    return 0;
}

bool rights_admin(const struct rights *a, const struct session *s)
{
    if (s == NULL || !s->local) {
        return false;
    }
    bool admin = s->key.uid == 0 || s->key.uid == geteuid() ||
                 (a->group != UINT32_MAX && s->gid == a->group);
    for (unsigned i = 0; !admin && i < a->admin_count; i++) {
        admin = a->admin[i] == s->key.uid;
    }
    return admin;
}

bool rights_sees(const struct rights *a, const struct session *s, const struct tenant *t)
{
    return s != NULL && (s->tenant == t || a->look_all || rights_admin(a, s));
}
