#include "daemon/launcher/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/log.h"
#include "daemon/launcher/driver_cache.h"

#define PREPARE_MS 2000 /* for one folder; the service manager misses the launcher after 20 s */

/* ---- users ---------------------------------------------------------------------------------- */

/* USER0 for a name, the next numbers for UID:GID. */
static int pool_user(const struct identity *common, const char *user, unsigned i,
                     struct identity *ret_id, struct err *e)
{
    char name[256];
    const bool numbers = strchr(user, ':') != NULL;
    int n = numbers ? snprintf(name, sizeof name, "%u:%u", (unsigned)common->uid + 1 + i,
                               (unsigned)common->gid)
                    : snprintf(name, sizeof name, "%s%u", user, i);
    if (n < 0 || (size_t)n >= sizeof name) {
        return err_set(e, ERR_INVALID, "the name of user %s is too long", user);
    }
    int rc = identity_find(name, ret_id, e);
    if (rc == 0 && ret_id->gid != common->gid) {
        /* by the group the front knows whom it has to refuse */
        return err_set(e, ERR_INVALID, "user %s of workers has group %u, not %s's, %u", name,
                       (unsigned)ret_id->gid, user, (unsigned)common->gid);
    }
    return rc;
}

static int pool_open(struct slots *s, const char *user, unsigned users, struct err *e)
{
    if (users > SLOT_USERS_MAX || (users > 0 && user == NULL)) {
        return err_set(e, ERR_INVALID, "at most %u users of workers, and --worker-user with them",
                       SLOT_USERS_MAX);
    }
    for (unsigned i = 0; i < users; i++) {
        int rc = pool_user(s->common, user, i, &s->user[i], e);
        if (rc != 0) {
            return rc;
        }
    }
    s->users = users;
    return 0;
}

static bool base_make(char *out, size_t size, bool own, bool pool)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    bool has_home = home != NULL && home[0] == '/';
    int n = -1;
    if (!own) {
        n = has_home ? snprintf(out, size, "%s%s", home, pool ? "" : "/workers") : -1;
    } else if (cache != NULL && cache[0] == '/') {
        n = snprintf(out, size, "%s/gpud-workers", cache);
    } else if (has_home) {
        n = snprintf(out, size, "%s/.cache/gpud-workers", home);
    }
    return n > 0 && (size_t)n + sizeof "/255/owner" < size;
}

int slots_open(struct slots *s, const struct identity *common, const char *user, unsigned users,
               struct err *e)
{
    s->common = common;
    s->prepare_ms = PREPARE_MS;
    for (unsigned i = 0; i < SLOTS_MAX; i++) {
        s->slot[i].taken = 0;
        s->slot[i].lock_fd = -1;
    }
    int rc = pool_open(s, user, users, e);
    if (rc == 0 && !base_make(s->base, sizeof s->base, user == NULL, users > 0)) {
        s->base[0] = '\0';
    }
    return rc;
}

/* ---- folders, as their user ------------------------------------------------------------------ */

static bool folder_make(const char *path)
{
    struct stat st;
    if ((mkdir(path, 0700) != 0 && errno != EEXIST) || lstat(path, &st) != 0) {
        return false;
    }
    errno = EPERM; /* another user could write there */
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() && (st.st_mode & 077) == 0;
}

/* Makes what is missing of the folders around a slot. */
static void parents_make(const char *folder)
{
    char part[PATH_MAX];
    for (const char *end = strchr(folder + 1, '/'); end != NULL; end = strchr(end + 1, '/')) {
        (void)snprintf(part, sizeof part, "%.*s", (int)(end - folder), folder);
        (void)mkdir(part, 0700); /* folder_make says whether it was enough */
    }
}

static bool owner_is(const char *path, const char *owner)
{
    char text[HASH_TEXT_BYTES] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    ssize_t n = fd >= 0 ? read(fd, text, sizeof text - 1) : -1;
    if (fd >= 0) {
        (void)close(fd);
    }
    return n == (ssize_t)sizeof text - 1 && strcmp(text, owner) == 0;
}

static bool owner_write(const char *path, const char *owner)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool ok = fd >= 0 && write(fd, owner, strlen(owner)) == (ssize_t)strlen(owner);
    return fd >= 0 && close(fd) == 0 && ok;
}

/* What is left of a cache is trimmed another time. */
static void on_time_up(int number)
{
    (void)number;
    _exit(0);
}

/* The worker gets `home` below the folder, and cannot write beside it. Each step leaves a folder
 * that the next try empties. */
static bool folder_prepare(const char *folder, const char *owner)
{
    char path[PATH_MAX];
    char home[PATH_MAX];
    struct stat st;
    parents_make(folder);
    if (!folder_make(folder)) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%s/owner", folder);
    (void)snprintf(home, sizeof home, "%s/home", folder);
    if (!owner_is(path, owner)) {
        (void)unlink(path);
        driver_cache_remove(home);
        if (lstat(home, &st) == 0) {
            errno = ENOTEMPTY;
            return false;
        }
        if (!owner_write(path, owner)) {
            return false;
        }
    }
    if (!folder_make(home)) {
        return false;
    }
    (void)signal(SIGALRM, on_time_up);
    (void)driver_cache_trim(home, SLOT_BYTES);
    return true;
}

/* The same as its user, in a process of its own, whose time is limited: a kernel may have left more
 * files than can be removed before the launcher is missed. */
static bool folder_prepare_as(const struct identity *id, const char *folder, const char *owner,
                              unsigned time_ms)
{
    const struct itimerval time = {
        .it_value = {.tv_sec = time_ms / 1000, .tv_usec = (suseconds_t)(time_ms % 1000) * 1000}};
    int status = 0;
    pid_t pid = fork();
    if (pid == 0) {
        (void)signal(SIGALRM, SIG_DFL);
        bool done = setitimer(ITIMER_REAL, &time, NULL) == 0 && identity_become(id) &&
                    folder_prepare(folder, owner);
        _exit(done ? 0 : errno > 0 && errno < 128 ? errno : EIO);
    }
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR) {
    }
    if (pid > 0) {
        errno = WIFEXITED(status) ? WEXITSTATUS(status) : ETIME;
    }
    return pid > 0 && status == 0;
}

/* ---- slots ---------------------------------------------------------------------------------- */

static void in_use(const struct children *c, bool ret_used[SLOTS_MAX])
{
    memset(ret_used, 0, SLOTS_MAX * sizeof *ret_used);
    for (unsigned i = 0; i < CHILDREN_MAX; i++) {
        const struct child *child = &c->child[i];
        if (child_works(child)) {
            ret_used[child->slot] = true;
        }
    }
}

/* Other launchers of this user have their workers in the same folders. False: one has this slot. */
static bool lock(struct slots *s, unsigned i)
{
    char path[PATH_MAX];
    if (s->common->uid != 0 || s->base[0] == '\0' || s->slot[i].lock_fd >= 0) {
        return true;
    }
    (void)snprintf(path, sizeof path, "%.*s/%u.lock", PATH_MAX - 16, s->base, i);
    parents_make(path);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
        (void)close(fd);
        return false;
    }
    s->slot[i].lock_fd = fd; /* < 0: the folder cannot be used either */
    return true;
}

/* The slot that this owner had last, else a fresh one, else the one whose last take is oldest;
 * SLOTS_MAX: none is free. */
static unsigned choose(struct slots *s, const bool *used, struct hash owner)
{
    unsigned count = s->users > 0 ? s->users : SLOTS_MAX;
    unsigned fresh = SLOTS_MAX;
    unsigned oldest = SLOTS_MAX;
    for (unsigned i = 0; i < count; i++) {
        bool known = s->slot[i].taken > 0;
        if (!used[i] && known && hash_equal(s->slot[i].owner, owner)) {
            return i; /* its lock is held since then */
        }
        if (!used[i] && known &&
            (oldest == SLOTS_MAX || s->slot[i].taken < s->slot[oldest].taken)) {
            oldest = i;
        }
        if (!known && fresh == SLOTS_MAX && lock(s, i)) {
            fresh = i;
        }
    }
    return fresh < SLOTS_WARM || oldest == SLOTS_MAX ? fresh : oldest;
}

int slots_take(struct slots *s, const struct children *children, struct bytes owner,
               struct slot *ret_slot, struct err *e)
{
    bool used[SLOTS_MAX];
    char folder[PATH_MAX];
    char text[HASH_TEXT_BYTES];
    struct hash hash = hash_of(owner.data, owner.size);
    in_use(children, used);
    unsigned i = choose(s, used, hash);
    if (i == SLOTS_MAX) {
        return err_set(e, ERR_LIMIT,
                       "each of the %u users of workers has one: raise --worker-users of "
                       "gpud-launcher, or have fewer workers",
                       s->users);
    }
    *ret_slot = (struct slot){.number = i, .identity = s->users > 0 ? &s->user[i] : s->common};
    s->slot[i].taken = ++s->takes;
    s->slot[i].owner = hash;
    if (s->base[0] == '\0') {
        return 0;
    }
    (void)snprintf(folder, sizeof folder, "%.*s/%u", PATH_MAX - 16, s->base, i);
    if (folder_prepare_as(ret_slot->identity, folder, hash_text(hash, text), s->prepare_ms)) {
        (void)snprintf(ret_slot->cache, sizeof ret_slot->cache, "%.*s/home", PATH_MAX - 8, folder);
    } else {
        log_say(LOG_CACHE_BAD, "%s: %s: the worker keeps no compiled kernels there", folder,
                strerror(errno));
    }
    return 0;
}
