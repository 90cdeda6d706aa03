#include "gpuctl/base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <gpud/gpud.h>

/* bytes allocated at first for a stream, whose size is not known */
#define ROOM_FIRST 65536u

static int too_large(const char *path, size_t limit, struct ctl_err *e)
{
    return ctl_err_set(e, GPUD_ERR_LIMIT, "%s: more than %zu bytes", path, limit);
}

static int no_memory(const char *path, struct ctl_err *e)
{
    return ctl_err_set(e, GPUD_ERR_NOMEM, "%s: out of memory", path);
}

/* Reads `size` bytes, or fewer at the end of the file; -1 with errno. */
static ssize_t read_full(int fd, char *out, size_t size)
{
    size_t used = 0;
    while (used < size) {
        ssize_t got = read(fd, out + used, size - used);
        if (got < 0 && errno == EINTR) {
            continue;
        }
        if (got < 0) {
            return -1;
        }
        if (got == 0) {
            break;
        }
        used += (size_t)got;
    }
    return (ssize_t)used;
}

/* Reads a stream, whose size is not known: at most one byte beyond the limit. */
static int read_stream(int fd, const char *path, size_t limit, struct file *ret_file,
                       struct ctl_err *e)
{
    size_t most = limit < SIZE_MAX ? limit + 1 : limit;
    size_t room = most < ROOM_FIRST ? most : ROOM_FIRST;
    size_t used = 0;
    char *data = malloc(room);
    while (data != NULL) {
        ssize_t got = read_full(fd, data + used, room - used);
        if (got < 0 || used + (size_t)got > limit) {
            free(data);
            return got < 0 ? ctl_err_errno(e, "%s", path) : too_large(path, limit, e);
        }
        used += (size_t)got;
        if (used < room) {
            *ret_file = (struct file){.data = data, .size = used};
            return 0;
        }
        room = room <= most / 2 ? room * 2 : most;
        char *more = realloc(data, room);
        if (more == NULL) {
            break;
        }
        data = more;
    }
    free(data);
    return no_memory(path, e);
}

/* Reads a file of known size. Bytes that are appended meanwhile are not read. */
static int read_known(int fd, const char *path, size_t size, struct file *ret_file,
                      struct ctl_err *e)
{
    char *data = malloc(size);
    if (data == NULL) {
        return no_memory(path, e);
    }
    ssize_t got = read_full(fd, data, size);
    if (got < 0 || (size_t)got < size) {
        free(data);
        return got < 0 ? ctl_err_errno(e, "%s", path)
                       : ctl_err_set(e, GPUD_ERR_IO, "%s: became shorter while it was read", path);
    }
    *ret_file = (struct file){.data = data, .size = size};
    return 0;
}

static int load(int fd, const char *path, struct file_limit limit, struct file *ret_file,
                struct ctl_err *e)
{
    struct stat st;
    if (fstat(fd, &st) < 0) {
        return ctl_err_errno(e, "%s", path);
    }
    if (S_ISDIR(st.st_mode)) {
        return ctl_err_set(e, GPUD_ERR_IO, "%s: is a directory", path);
    }
    /* Standard input may be positioned inside a file. Files of /proc have size 0 but content. */
    off_t at = S_ISREG(st.st_mode) ? lseek(fd, 0, SEEK_CUR) : 0;
    if (!S_ISREG(st.st_mode) || at < 0 || st.st_size <= at) {
        return read_stream(fd, path, limit.stream, ret_file, e);
    }
    uint64_t size = (uint64_t)(st.st_size - at);
    return size > limit.file ? too_large(path, limit.file, e)
                             : read_known(fd, path, (size_t)size, ret_file, e);
}

int file_load(const char *path, struct file_limit limit, struct file *ret_file, struct ctl_err *e)
{
    if (strcmp(path, "-") == 0) {
        return load(STDIN_FILENO, "standard input", limit, ret_file, e);
    }
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return ctl_err_errno(e, "%s", path);
    }
    int rc = load(fd, path, limit, ret_file, e);
    close(fd);
    return rc;
}

void file_finish(struct file *file)
{
    free(file->data);
    *file = (struct file){0};
}
