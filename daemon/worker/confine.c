#include "daemon/worker/confine.h"

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/confine/filter.h"
#include "daemon/confine/landlock.h"

#define LANDLOCK_GOOD 6 /* the version that has all that is used here */

static bool setting_is(const char *value)
{
    const char *setting = getenv("GPUD_CONFINE");
    return setting != NULL && strcmp(setting, value) == 0;
}

static void missing_add(struct confine *c, const char *what)
{
    size_t used = strlen(c->missing);
    (void)snprintf(c->missing + used, sizeof c->missing - used, "%s%s", used > 0 ? "; " : "", what);
}

/* Drivers keep what they compile below these, unless the operator names folders. */
static int home_make(const char *cache, struct err *e)
{
    if (cache[0] == '\0') {
        return 0;
    }
    char below[PATH_MAX];
    (void)snprintf(below, sizeof below, "%s/.cache", cache);
    return setenv("HOME", cache, 1) == 0 && setenv("XDG_CACHE_HOME", below, 1) == 0 &&
                   setenv("TMPDIR", cache, 1) == 0
               ? 0
               : err_errno(e, ERR_NOMEM, "setting the folders of drivers");
}

/* The libraries that are installed beside this program. */
static int allow_beside(const struct landlock *l)
{
    char path[PATH_MAX];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "/../lib");
    if (n <= 0) {
        return 0;
    }
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    *slash = '\0';
    int rc = slash != path ? landlock_allow(l, path, LANDLOCK_READ) : 0;
    (void)snprintf(slash, sizeof path - (size_t)(slash - path), "/../lib");
    return rc == 0 ? landlock_allow(l, path, LANDLOCK_READ) : rc;
}

/* What drivers read of the system when they open a device, and of this process. The descriptor of
 * the last stays open: a rule is for a node of /proc, which lives as long as a descriptor of it. */
static int allow_proc(const struct landlock *l)
{
    static const char *const paths[] = {
        "/proc/devices",    "/proc/modules",     "/proc/version", "/proc/sys/vm",
        "/proc/sys/kernel", "/proc/filesystems", "/sys/module",   "/sys/kernel/mm",
        "/sys/fs/cgroup",   "/etc/passwd",       "/etc/group",    "/etc/nsswitch.conf",
        "/etc/localtime",   "/proc/self",
    };
    int rc = 0;
    (void)open("/proc/self", O_PATH | O_CLOEXEC);
    for (size_t i = 0; rc == 0 && i < sizeof paths / sizeof paths[0]; i++) {
        rc = landlock_allow(l, paths[i], LANDLOCK_READ);
    }
    return rc;
}

/* Folders that may be written: the worker's own, and those that the operator or the back end names.
 */
static int allow_written(const struct confine *c, const struct landlock *l, struct err *e)
{
    char folder[PATH_MAX] = "";
    int rc = c->cache[0] != '\0' ? landlock_allow(l, c->cache, LANDLOCK_ALL) : 0;
    if (rc == 0 && c->backend != NULL && c->backend->folder != NULL) {
        rc = c->backend->folder(folder, sizeof folder, e);
    }
    rc = rc == 0 && folder[0] != '\0' ? landlock_allow(l, folder, LANDLOCK_ALL) : rc;
    rc = rc == 0 ? landlock_allow_list(l, getenv("CUDA_CACHE_PATH"), "", false, LANDLOCK_ALL) : rc;
    return rc == 0 ? landlock_allow_list(l, getenv("GPUD_CONFINE_WRITE"), ":", false, LANDLOCK_ALL)
                   : rc;
}

static int allow_all(const struct confine *c, const struct landlock *l, struct err *e)
{
    bool programs = c->backend != NULL && c->backend->programs;
    int rc = landlock_allow_system(l, c->options, LANDLOCK_READ | (programs ? LANDLOCK_RUN : 0));
    rc = rc == 0 ? allow_beside(l) : rc;
    rc = rc == 0 ? allow_proc(l) : rc;
    rc = rc == 0 ? landlock_allow_list(l, getenv("GPUD_CONFINE_READ"), ":", false, LANDLOCK_READ)
                 : rc;
    return rc == 0 ? allow_written(c, l, e) : rc;
}

static void landlock_judge(struct confine *c, int abi)
{
    if (abi == 0) {
        missing_add(c, "not confined to its files: this kernel has no Landlock");
    } else if (abi < LANDLOCK_GOOD) {
        /* the filter of system calls and a user of its own stand in for what it lacks */
        log_say(LOG_CONFINED, "this kernel's Landlock has version %d of %d", abi, LANDLOCK_GOOD);
    }
}

int confine_files(struct confine *c, struct err *e)
{
    struct landlock l;
    c->missing[0] = '\0';
    int rc = home_make(c->cache, e);
    if (rc != 0) {
        return rc;
    }
    if (setting_is("off")) {
        missing_add(c, "not confined: GPUD_CONFINE=off");
        return 0;
    }
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0) {
        return err_errno(e, ERR_INTERNAL, "confining the worker");
    }
    rc = landlock_begin(&l, e);
    rc = rc == 0 ? allow_all(c, &l, e) : rc;
    if (rc == 0) {
        rc = landlock_enforce(&l);
    }
    landlock_finish(&l);
    landlock_judge(c, l.abi);
    return rc == 0 ? 0 : err_wrap(e, "confining the worker");
}

int confine_calls(struct confine *c, bool native, struct err *e)
{
    bool on = false;
    if (setting_is("off")) {
        log_say(LOG_NOT_CONFINED, "%s", c->missing);
        return 0;
    }
    const struct filter f = {.programs = c->backend != NULL && c->backend->programs,
                             .named = native || setting_is("strict")};
    int rc = filter_install(&f, &on, e);
    if (rc != 0) {
        return err_wrap(e, "confining the worker");
    }
    if (!on && filter_built()) {
        missing_add(c, "not confined in system calls: this kernel has no seccomp");
    }
    if (c->missing[0] != '\0') {
        log_say(LOG_NOT_CONFINED, "%s", c->missing);
    } else {
        log_say(LOG_CONFINED, "this worker is confined: files, system calls%s",
                on ? "" : " (not in a build with sanitizers)");
    }
    return 0;
}

void confine_note(const struct confine *c, char *note, size_t size)
{
    size_t used = strlen(note);
    if (c->missing[0] != '\0' && used < size) {
        (void)snprintf(note + used, size - used, "%s%s", used > 0 ? "; " : "", c->missing);
    }
}
