#include "gpuctl/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gpud/gpud.h>

static int read_all(int fd, const char *path, size_t limit, struct file *ret_file,
                    struct ctl_err *e)
{
    size_t room = 65536;
    size_t used = 0;
    char *data = malloc(room);
    while (data != NULL) {
        ssize_t got = read(fd, data + used, room - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            free(data);
            return ctl_err_errno(e, "%s", path);
        }
        if (got == 0) {
            *ret_file = (struct file){.data = data, .size = used, .owned = data};
            return 0;
        }
        used += (size_t)got;
        if (used > limit) {
            free(data);
            return ctl_err_set(e, GPUD_ERR_LIMIT, "%s: more than %zu bytes", path, limit);
        }
        if (used == room) {
            char *more = room > SIZE_MAX / 2 ? NULL : realloc(data, room * 2);
            if (more == NULL) {
                break;
            }
            data = more;
            room *= 2;
        }
    }
    free(data);
    return ctl_err_set(e, GPUD_ERR_NOMEM, "%s: out of memory", path);
}

static int map(int fd, const char *path, size_t size, struct file *ret_file, struct ctl_err *e)
{
    void *data = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (data == MAP_FAILED) {
        return ctl_err_errno(e, "%s", path);
    }
    *ret_file = (struct file){.data = data, .size = size};
    return 0;
}

int file_load(const char *path, size_t limit, struct file *ret_file, struct ctl_err *e)
{
    if (strcmp(path, "-") == 0) {
        return read_all(STDIN_FILENO, "standard input", limit, ret_file, e);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ctl_err_errno(e, "%s", path);
    }
    struct stat st;
    int rc;
    if (fstat(fd, &st) < 0) {
        rc = ctl_err_errno(e, "%s", path);
    } else if (S_ISDIR(st.st_mode)) {
        rc = ctl_err_set(e, GPUD_ERR_IO, "%s: is a directory", path);
    } else if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > limit) {
        rc = ctl_err_set(e, GPUD_ERR_LIMIT, "%s: more than %zu bytes", path, limit);
    } else if (S_ISREG(st.st_mode) && st.st_size > 0) {
        rc = map(fd, path, (size_t)st.st_size, ret_file, e);
    } else {
        rc = read_all(fd, path, limit, ret_file, e);
    }
    close(fd);
    return rc;
}

void file_finish(struct file *file)
{
    if (file->owned != NULL) {
        free(file->owned);
    } else if (file->data != NULL) {
        munmap(file->data, file->size);
    }
    *file = (struct file){0};
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

static int write_parts(int fd, const struct file_part *parts, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (write_all(fd, parts[i].data, parts[i].size) < 0) {
            return -1;
        }
    }
    mode_t mask = umask(0);
    umask(mask);
    return fchmod(fd, 0666 & ~mask);
}

int file_save(const char *path, const struct file_part *parts, unsigned count, struct ctl_err *e)
{
    size_t size = strlen(path) + sizeof ".XXXXXX";
    char *beside = malloc(size);
    if (beside == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "%s: out of memory", path);
    }
    snprintf(beside, size, "%s.XXXXXX", path);
    int fd = mkostemp(beside, O_CLOEXEC);
    if (fd < 0) {
        int rc = ctl_err_errno(e, "%s", path);
        free(beside);
        return rc;
    }
    bool ok = write_parts(fd, parts, count) == 0;
    ok = close(fd) == 0 && ok;
    ok = ok && rename(beside, path) == 0;
    int rc = 0;
    if (!ok) {
        rc = ctl_err_errno(e, "%s", path);
        unlink(beside);
    }
    free(beside);
    return rc;
}

int file_can_save(const char *path, struct ctl_err *e)
{
    const char *slash = strrchr(path, '/');
    size_t length = slash == NULL ? 0 : slash == path ? 1 : (size_t)(slash - path);
    char *folder = slash == NULL ? strdup(".") : strndup(path, length);
    if (folder == NULL) {
        return ctl_err_set(e, GPUD_ERR_NOMEM, "%s: out of memory", path);
    }
    struct stat st;
    int rc = 0;
    if (access(folder, W_OK | X_OK) != 0) {
        rc = ctl_err_errno(e, "%s: cannot be written in %s", path, folder);
    } else if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) {
        rc = ctl_err_set(e, GPUD_ERR_IO, "%s: is a directory", path);
    }
    free(folder);
    return rc;
}
