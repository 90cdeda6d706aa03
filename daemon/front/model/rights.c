#include "daemon/front/model/rights.h"

#include <errno.h>
#include <grp.h>
#include <inttypes.h>
#include <pwd.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/model/session.h"
#include "daemon/front/model/tenant.h"
#include "daemon/front/settings/config.h"

static int members_read(const char *setting, const char *group, struct members *ret_members,
                        struct err *e)
{
    struct members m = {.group = UINT32_MAX};
    errno = 0;
    const struct group *g = group[0] != '\0' ? getgrnam(group) : NULL;
    if (group[0] != '\0' && g == NULL) {
        return err_set(e, ERR_NOT_FOUND, "%s = %s: %s", setting, group,
                       errno != 0 ? strerror(errno) : "there is no such group");
    }
    if (g != NULL) {
        m.group = g->gr_gid;
    }
    for (char **name = g != NULL ? g->gr_mem : NULL; name != NULL && *name != NULL; name++) {
        const struct passwd *p = getpwnam(*name);
        if (p != NULL && m.count == MEMBERS_MAX) {
            return err_set(e, ERR_LIMIT, "%s = %s: over %u members", setting, group, MEMBERS_MAX);
        }
        if (p != NULL) { /* members without a user are skipped */
            m.uid[m.count++] = p->pw_uid;
        }
    }
    *ret_members = m;
    return 0;
}

int rights_read(const struct config *config, struct rights *ret_rights, struct err *e)
{
    struct rights a = {.look_all = strcmp(config->look, "all") == 0};
    int rc = members_read("admin_group", config->admin_group, &a.admins, e);
    if (rc == 0) {
        rc = members_read("load_group", config->load_group, &a.loaders, e);
    }
    if (rc == 0) {
        *ret_rights = a;
    }
    return rc;
}

static bool belongs(const struct members *m, const struct session *s)
{
    return s != NULL && s->client.local && s->key.listener == 0 &&
           members_have(m, s->key.uid, s->client.gid);
}

bool rights_admin(const struct rights *a, const struct session *s)
{
    return belongs(&a->admins, s);
}

bool rights_may(const struct rights *a, const struct session *s, unsigned roles)
{
    bool given = s != NULL && s->client.local && (s->tenant->limits.roles & roles) != 0;
    return given || rights_admin(a, s);
}

/* Root and the daemon's own user. */
static const struct members NOBODY = {.group = UINT32_MAX};

/* A tenant's section decides before load_group. Root and the daemon's user may always load. A
 * client over tcp may only if a token names its tenant. */
static bool may_load(const struct rights *a, const struct session *s)
{
    if (s == NULL || s->tenant->limits.load == TENANT_LOAD_BY_GROUP) {
        return belongs(&a->loaders, s);
    }
    return (s->client.local || s->client.by_token) &&
           (s->tenant->limits.load == TENANT_LOAD_YES || belongs(&NOBODY, s));
}

/* A section decides for all its users alike, since they share their buffers: it is apart if any of
 * them may load. Root and the daemon's user are trusted where no section has them. */
static bool is_apart(const struct rights *a, const struct session *s)
{
    const struct tenant *t = s->tenant;
    bool group = a->loaders.group != UINT32_MAX || a->loaders.count > 0;
    if (!s->client.local && !s->client.by_token) {
        return t->apart; /* it may not load */
    }
    if (t->limits.trusted || t->limits.load == TENANT_LOAD_NO) {
        return false;
    }
    if (t->ruled) {
        return t->limits.load == TENANT_LOAD_YES || group;
    }
    return may_load(a, s) && !belongs(&NOBODY, s);
}

bool rights_loads(const struct rights *a, const struct session *s)
{
    return may_load(a, s) && (s->tenant->apart || !is_apart(a, s));
}

bool rights_place(const struct rights *a, const struct session *s)
{
    struct tenant *t = s->tenant;
    bool apart = is_apart(a, s);
    bool may = t->held[TENANT_BUFFERS] == 0 && t->held[TENANT_JOBS] == 0;
    if (apart == t->apart || !may) {
        return false;
    }
    t->apart = apart;
    return true;
}

static const char *settings_file(const struct config *config)
{
    return config->file[0] != '\0' ? config->file : CONFIG_SYSTEM_ROOT "/" CONFIG_FILE;
}

int rights_refuse_cancel(const struct config *config, uint64_t job, struct err *e)
{
    static const char WHO[] = "may be ended by those who submitted it, root and the daemon's user";
    if (config->admin_group[0] == '\0') {
        return err_set(e, ERR_PERMISSION,
                       "job %" PRIu64 " %s: no admin_group is set in section [daemon] of %s", job,
                       WHO, settings_file(config));
    }
    return err_set(e, ERR_PERMISSION,
                   "job %" PRIu64 " %s, and by members of group %s, the admin_group in section "
                   "[daemon] of %s (members are read at a reload)",
                   job, WHO, config->admin_group, settings_file(config));
}

int rights_refuse_load(const struct rights *a, const struct config *config, const struct session *s,
                       struct err *e)
{
    const char *file = settings_file(config);
    const char *tenant = s->tenant->name;
    if (!s->client.local && !s->client.by_token) {
        return err_set(e, ERR_PERMISSION,
                       "nobody may load kernels over tcp without a token: connect to the daemon's "
                       "local socket");
    }
    if (s->tenant->limits.load == TENANT_LOAD_NO) {
        return err_set(e, ERR_PERMISSION,
                       "tenant %s may not load kernels of its own: its section has load_kernels = "
                       "no",
                       tenant);
    }
    if (may_load(a, s)) {
        return err_set(e, ERR_PERMISSION,
                       "tenant %s may load kernels only in workers of its own, and has buffers or "
                       "jobs in those that tenants share: free them, and load again",
                       tenant);
    }
    if (!s->client.local) {
        return err_set(e, ERR_PERMISSION,
                       "tenant %s may not load kernels of its own over tcp: its section needs "
                       "load_kernels = yes",
                       tenant);
    }
    if (config->load_group[0] == '\0') {
        return err_set(e, ERR_PERMISSION,
                       "tenant %s may not load kernels of its own: no section gives it "
                       "load_kernels = yes, and no load_group is set in section [tenants] of %s",
                       tenant, file);
    }
    return err_set(e, ERR_PERMISSION,
                   "tenant %s may not load kernels of its own: it is not in group %s, the "
                   "load_group in section [tenants] of %s (members are read at a reload)",
                   tenant, config->load_group, file);
}

bool rights_sees(const struct rights *a, const struct session *s, const struct tenant *t)
{
    return s != NULL && (s->tenant == t || a->look_all || rights_may(a, s, ROLE_SEE | ROLE_CANCEL));
}

bool rights_reads(const struct rights *a, const struct session *s, const struct tenant *t)
{
    return s != NULL && (s->tenant == t || rights_may(a, s, ROLE_SEE | ROLE_CANCEL));
}

bool rights_content(const struct rights *a, const struct session *s, const struct tenant *t)
{
    return s != NULL && (s->tenant == t || rights_admin(a, s));
}
