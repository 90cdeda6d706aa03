#include "daemon/launcher/identity.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static bool number(const char *text, char ends_with, unsigned *ret_number, const char **ret_end)
{
    char *end = NULL;
    errno = 0;
    unsigned long value = strtoul(text, &end, 10);
    if (errno != 0 || end == text || text[0] == '-' || *end != ends_with || value >= UINT32_MAX) {
        return false;
    }
    *ret_number = (unsigned)value;
    *ret_end = end;
    return true;
}

static bool by_numbers(const char *user, struct identity *id)
{
    const char *end = NULL;
    return number(user, ':', &id->uid, &end) && number(end + 1, '\0', &id->gid, &end);
}

static int by_name(const char *user, struct identity *id, struct err *e)
{
    errno = 0;
    const struct passwd *found = getpwnam(user);
    if (found == NULL && errno != 0) {
        return err_errno(e, ERR_IO, "looking up user %s", user);
    }
    if (found == NULL) {
        return err_set(e, ERR_NOT_FOUND,
                       "there is no user %s for workers to run as: systemd-sysusers creates it",
                       user);
    }
    id->uid = found->pw_uid;
    id->gid = found->pw_gid;
    id->group_count = IDENTITY_GROUPS_MAX;
    if (getgrouplist(user, found->pw_gid, id->groups, &id->group_count) < 0) {
        return err_set(e, ERR_LIMIT, "user %s is in more than %d groups", user,
                       IDENTITY_GROUPS_MAX);
    }
    return 0;
}

/* True for root, and for a process with both capabilities, which the unit gives. */
static bool may_become_others(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct data[2] = {{0}};
    const unsigned wanted = 1u << CAP_SETUID | 1u << CAP_SETGID;
    return syscall(SYS_capget, &head, data) == 0 && (data[0].effective & wanted) == wanted;
}

int identity_find(const char *user, struct identity *ret_id, struct err *e)
{
    struct identity id = {.uid = 0};
    int rc = by_numbers(user, &id) ? 0 : by_name(user, &id, e);
    if (rc != 0) {
        return rc;
    }
    if (id.uid == 0 || id.gid == 0 || id.uid == geteuid()) {
        return err_set(e, ERR_INVALID,
                       "workers cannot run as %s: it is root or the daemon's own user", user);
    }
    if (!may_become_others()) {
        return err_set(e, ERR_PERMISSION,
                       "workers cannot run as %s: that takes CAP_SETUID and CAP_SETGID, which the "
                       "installed unit gives",
                       user);
    }
    *ret_id = id;
    return 0;
}

/* Needed because capabilities survive a change between two users that are not root. */
static bool capabilities_drop(void)
{
    struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
    const struct __user_cap_data_struct none[2] = {{0}};
    return syscall(SYS_capset, &head, none) == 0;
}

bool identity_become(const struct identity *id)
{
    if (id->uid == 0) {
        return true;
    }
    return setgroups((size_t)id->group_count, id->groups) == 0 &&
           setresgid(id->gid, id->gid, id->gid) == 0 && setresuid(id->uid, id->uid, id->uid) == 0 &&
           capabilities_drop() && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
}

int identity_kill(const struct identity *id, pid_t pid, int signal)
{
    if (id->uid == 0 || geteuid() == 0) {
        return kill(pid, signal);
    }
    uid_t own = geteuid();
    if (setresuid((uid_t)-1, id->uid, (uid_t)-1) != 0) {
        return -1;
    }
    int rc = kill(pid, signal);
    int why = errno;
    if (setresuid((uid_t)-1, own, (uid_t)-1) != 0) {
        /* Cannot fail, because it is the saved uid. This process must not go on as the other
         * user. */
        abort();
    }
    errno = why;
    return rc;
}
