#include "gpuctl/base/save.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gpud/gpud.h>

#define NAMES_TRIED 100u

/* The path with links resolved, so that a link remains a link. NULL with errno. */
static char *real_path(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISLNK(st.st_mode) ? realpath(path, NULL) : strdup(path);
}

static char *folder_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (slash == NULL) {
        return strdup(".");
    }
    return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

/* The name of the unfinished file; number 0 is for mkostemp. */
static char *beside_of(const char *path, unsigned number)
{
    char *beside = NULL;
    const char *slash = strrchr(path, '/'); /* a suffix could make the longest names too long */
    int folder = slash == NULL ? 0 : (int)(slash - path) + 1;
    int n = number > 0
                ? asprintf(&beside, "%.*s.gpuctl.%ld-%u", folder, path, (long)getpid(), number)
                : asprintf(&beside, "%.*s.gpuctl.XXXXXX", folder, path);
    return n >= 0 ? beside : NULL;
}

/* Opens a file without a name (O_TMPFILE), which disappears however gpuctl ends; with a name if the
 * file system does not support that. */
static int open_beside(struct save *save)
{
    char *folder = folder_of(save->path);
    if (folder == NULL) {
        return -1;
    }
    int fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    free(folder);
    if (fd >= 0) {
        return fd;
    }
    save->beside = beside_of(save->path, 0);
    if (save->beside == NULL) {
        return -1;
    }
    fd = mkostemp(save->beside, O_CLOEXEC);
    if (fd < 0) {
        int why = errno;
        free(save->beside);
        save->beside = NULL;
        errno = why;
    }
    return fd;
}

int save_begin(const char *path, struct save *ret_save, struct ctl_err *e)
{
    struct save save = {.path = real_path(path), .fd = -1};
    struct stat st;
    if (save.path == NULL) {
        return ctl_err_errno(e, "%s", path);
    }
    bool there = stat(save.path, &st) == 0;
    if (!there && errno != ENOENT) { /* for example a name too long for this file system */
        int rc = ctl_err_errno(e, "%s: cannot be written there", path);
        free(save.path);
        return rc;
    }
    if (there && !S_ISREG(st.st_mode)) {
        free(save.path);
        return ctl_err_set(e, GPUD_ERR_IO, "%s: is %s", path,
                           S_ISDIR(st.st_mode) ? "a directory" : "no regular file");
    }
    save.fd = open_beside(&save);
    if (save.fd < 0) {
        int rc = ctl_err_errno(e, "%s: cannot be written there", path);
        free(save.path);
        return rc;
    }
    *ret_save = save;
    return 0;
}

int save_begin_stdout(struct save *ret_save, struct ctl_err *e)
{
    struct save save = {.path = strdup("standard output"), .in_place = true};
    save.fd = save.path != NULL ? fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0) : -1;
    if (save.fd < 0) {
        int rc = ctl_err_errno(e, "standard output");
        free(save.path);
        return rc;
    }
    *ret_save = save;
    return 0;
}

static int write_all(int fd, const void *data, size_t size)
{
    const char *from = data;
    while (size > 0) {
        ssize_t done = write(fd, from, size);
        if (done < 0 && errno == EINTR) {
            continue;
        }
        if (done < 0) {
            return -1;
        }
        from += done;
        size -= (size_t)done;
    }
    return 0;
}

static int write_parts(int fd, const struct save_part *parts, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (write_all(fd, parts[i].data, parts[i].size) < 0) {
            return -1;
        }
    }
    return 0;
}

/* Gives the unfinished file its mode and a name, so that rename can replace the old file. */
static int name_it(struct save *save)
{
    char fd[40];
    mode_t mask = umask(0);
    umask(mask);
    if (fchmod(save->fd, 0666 & ~mask) != 0) {
        return -1;
    }
    snprintf(fd, sizeof fd, "/proc/self/fd/%d", save->fd);
    for (unsigned i = 1; save->beside == NULL && i <= NAMES_TRIED; i++) {
        char *beside = beside_of(save->path, i);
        if (beside == NULL) {
            return -1;
        }
        if (linkat(AT_FDCWD, fd, AT_FDCWD, beside, AT_SYMLINK_FOLLOW) == 0) {
            save->beside = beside;
            break;
        }
        bool in_use = errno == EEXIST;
        free(beside);
        if (!in_use) {
            return -1;
        }
    }
    return save->beside != NULL ? 0 : -1;
}

int save_commit(struct save *save, const struct save_part *parts, unsigned count, struct ctl_err *e)
{
    bool ok = write_parts(save->fd, parts, count) == 0 && (save->in_place || name_it(save) == 0);
    int why = errno;
    int closed = close(save->fd);
    save->fd = -1;
    if (ok && closed != 0) { /* some file systems report a full disk only now */
        ok = false;
        why = errno;
    }
    if (ok && !save->in_place && rename(save->beside, save->path) != 0) {
        ok = false;
        why = errno;
    }
    int rc = 0;
    if (ok) {
        free(save->beside);
        save->beside = NULL;
    } else {
        errno = why;
        rc = ctl_err_errno(e, "%s", save->path);
    }
    save_finish(save);
    return rc;
}

void save_finish(struct save *save)
{
    if (save->path == NULL) {
        return;
    }
    if (save->fd >= 0) {
        (void)close(save->fd);
    }
    if (save->beside != NULL) {
        (void)unlink(save->beside);
        free(save->beside);
    }
    free(save->path);
    *save = (struct save){.fd = -1};
}
