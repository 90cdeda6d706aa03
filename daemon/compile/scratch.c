#include "daemon/compile/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define PREFIX     "gpud-compile."
#define LOCK       "lock"
#define SWEPT_MAX  16 /* limit of abandoned directories removed by one compilation */
#define OPEN_FILES 16
#define NO_LOCK_S  600 /* seconds; an older directory without a lock is abandoned */

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)ftw;
    /* Not remove(): it gives up on a folder when unlink() is refused, as in a confined process.
     * The next sweep retries what is left. */
    (void)(type == FTW_DP ? rmdir(path) : unlink(path));
    return 0;
}

static void remove_tree(const char *path)
{
    (void)nftw(path, remove_entry, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
}

/* The lock file gets its name only after it is locked, so a new directory never seems abandoned. */
static int lock_make(const char *dir, struct err *e)
{
    char made[PATH_MAX];
    char final[PATH_MAX];
    if ((size_t)snprintf(made, sizeof made, "%s/new", dir) >= sizeof made ||
        (size_t)snprintf(final, sizeof final, "%s/" LOCK, dir) >= sizeof final) {
        return err_set(e, ERR_INVALID, "%s: path too long", dir);
    }
    int fd = open(made, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB) != 0 || rename(made, final) != 0) {
        int rc = err_errno(e, ERR_IO, "%s", made);
        if (fd >= 0) {
            (void)close(fd);
        }
        return rc;
    }
    return fd;
}

static bool abandoned(const char *dir)
{
    char path[PATH_MAX];
    struct stat st;
    if ((size_t)snprintf(path, sizeof path, "%s/" LOCK, dir) >= sizeof path ||
        lstat(dir, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid()) {
        return false;
    }
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        return errno == ENOENT && st.st_mtime < time(NULL) - NO_LOCK_S;
    }
    bool free_now = flock(fd, LOCK_EX | LOCK_NB) == 0;
    (void)close(fd);
    return free_now;
}

static void sweep(const char *base)
{
    char path[PATH_MAX];
    DIR *d = opendir(base);
    const struct dirent *entry;
    int swept = 0;
    while (d != NULL && swept < SWEPT_MAX && (entry = readdir(d)) != NULL) {
        if (strncmp(entry->d_name, PREFIX, strlen(PREFIX)) == 0 &&
            (size_t)snprintf(path, sizeof path, "%s/%s", base, entry->d_name) < sizeof path &&
            abandoned(path)) {
            remove_tree(path);
            swept++;
        }
    }
    if (d != NULL) {
        (void)closedir(d);
    }
}

int scratch_enter(struct scratch *s, struct err *e)
{
    const char *base = getenv("TMPDIR");
    base = base != NULL && base[0] == '/' ? base : "/tmp";
    sweep(base);
    if ((size_t)snprintf(s->path, sizeof s->path, "%s/" PREFIX "XXXXXX", base) >= sizeof s->path) {
        return err_set(e, ERR_INVALID, "TMPDIR is too long");
    }
    if (mkdtemp(s->path) == NULL) {
        return err_errno(e, ERR_IO, "making a directory in %s", base);
    }
    s->lock_fd = lock_make(s->path, e);
    if (s->lock_fd < 0 || chdir(s->path) != 0) {
        int rc = s->lock_fd < 0 ? s->lock_fd : err_errno(e, ERR_IO, "entering %s", s->path);
        remove_tree(s->path);
        return rc;
    }
    return 0;
}

void scratch_remove(struct scratch *s)
{
    int left = chdir("/"); /* without it the folder is removed all the same */
    (void)left;
    remove_tree(s->path);
    (void)close(s->lock_fd);
}
