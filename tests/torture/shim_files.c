#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tests/torture/shim.h"

/* ---- descriptors ---------------------------------------------------------------------------- */

SHIM int open(const char *path, int flags, ...)
{
    static int (*next)(const char *, int, ...);
    va_list list;
    va_start(list, flags);
    mode_t mode = va_arg(list, mode_t); /* without meaning where no file is made */
    va_end(list);
    if (FAILS(KIND_OPEN, "open")) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("open");
    }
    return next(path, flags, mode);
}

SHIM int openat(int dir, const char *path, int flags, ...)
{
    static int (*next)(int, const char *, int, ...);
    va_list list;
    va_start(list, flags);
    mode_t mode = va_arg(list, mode_t);
    va_end(list);
    if (FAILS(KIND_OPEN, "openat")) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("openat");
    }
    return next(dir, path, flags, mode);
}

SHIM int fcntl(int fd, int command, ...)
{
    static int (*next)(int, int, ...);
    va_list list;
    va_start(list, command);
    void *value = va_arg(list, void *);
    va_end(list);
    if (FAILS(command == F_DUPFD || command == F_DUPFD_CLOEXEC ? KIND_DUP : KIND_CONTROL,
              "fcntl")) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("fcntl");
    }
    return next(fd, command, value);
}

STAND_IN(int, dup, KIND_DUP, -1, (int fd), (fd))
STAND_IN(int, dup2, KIND_DUP, -1, (int fd, int to), (fd, to))
STAND_IN(int, memfd_create, KIND_MEMFD, -1, (const char *name, unsigned flags), (name, flags))
STAND_IN(int, pipe2, KIND_PIPE, -1, (int ends[2], int flags), (ends, flags))

/* ---- streams and folders -------------------------------------------------------------------- */

STAND_IN(FILE *, fopen, KIND_OPEN, NULL, (const char *path, const char *mode), (path, mode))
STAND_IN(FILE *, fdopen, KIND_STREAM, NULL, (int fd, const char *mode), (fd, mode))
STAND_IN(FILE *, open_memstream, KIND_STREAM, NULL, (char **data, size_t *size), (data, size))
STAND_IN(DIR *, opendir, KIND_OPEN, NULL, (const char *path), (path))
STAND_IN(DIR *, fdopendir, KIND_STREAM, NULL, (int fd), (fd))
STAND_IN(int, scandir, KIND_STREAM, -1,
         (const char *path, struct dirent ***list, int (*wants)(const struct dirent *),
          int (*order)(const struct dirent **, const struct dirent **)),
         (path, list, wants, order))
STAND_IN(char *, realpath, KIND_STREAM, NULL, (const char *path, char *out), (path, out))

SHIM int fflush(FILE *f)
{
    static int (*next)(FILE *);
    if (f != NULL && f != stderr && f != stdout && FAILS(KIND_WRITE, "fflush")) {
        return EOF;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("fflush");
    }
    return next(f);
}

SHIM int fclose(FILE *f)
{
    static int (*next)(FILE *);
    bool failed = FAILS(KIND_WRITE, "fclose");
    int reason = errno;
    if (next == NULL) {
        *(void **)&next = shim_next("fclose");
    }
    int rc = next(f);
    errno = failed ? reason : errno;
    return failed ? EOF : rc;
}

/* ---- files ---------------------------------------------------------------------------------- */

/* Calls that fail on files of a file system only. */
#define STAND_IN_FILE(type, name, kind, params, args)                                              \
    SHIM type name params                                                                          \
    {                                                                                              \
        static type(*next) params;                                                                 \
        if (FAILS_ON(kind, #name, fd)) {                                                           \
            return -1;                                                                             \
        }                                                                                          \
        if (next == NULL) {                                                                        \
            *(void **)&next = shim_next(#name);                                                    \
        }                                                                                          \
        return next args;                                                                          \
    }

STAND_IN_FILE(ssize_t, write, KIND_WRITE, (int fd, const void *data, size_t size), (fd, data, size))
STAND_IN_FILE(ssize_t, pread, KIND_READ, (int fd, void *data, size_t size, off_t at),
              (fd, data, size, at))
STAND_IN_FILE(ssize_t, preadv2, KIND_READ,
              (int fd, const struct iovec *v, int count, off_t at, int flags),
              (fd, v, count, at, flags))

SHIM ssize_t read(int fd, void *data, size_t size)
{
    static ssize_t (*next)(int, void *, size_t);
    if (FAILS_ON(KIND_READ, "read", fd) ||
        shim_interrupts("read", fd, 0, __builtin_return_address(0))) {
        return -1;
    }
    if (next == NULL) {
        *(void **)&next = shim_next("read");
    }
    return next(fd, data, size);
}

STAND_IN(int, ftruncate, KIND_SPACE, -1, (int fd, off_t size), (fd, size))
STAND_IN(int, fallocate, KIND_SPACE, -1, (int fd, int mode, off_t at, off_t size),
         (fd, mode, at, size))

STAND_IN(int, rename, KIND_NAME, -1, (const char *from, const char *to), (from, to))
STAND_IN(int, renameat, KIND_NAME, -1, (int dir, const char *from, int to_dir, const char *to),
         (dir, from, to_dir, to))
STAND_IN(int, mkdir, KIND_NAME, -1, (const char *path, mode_t mode), (path, mode))
STAND_IN(int, mkdirat, KIND_NAME, -1, (int dir, const char *path, mode_t mode), (dir, path, mode))
STAND_IN(char *, mkdtemp, KIND_NAME, NULL, (char *path), (path))
STAND_IN(int, unlink, KIND_NAME, -1, (const char *path), (path))
STAND_IN(int, unlinkat, KIND_NAME, -1, (int dir, const char *path, int flags), (dir, path, flags))
STAND_IN(int, chmod, KIND_NAME, -1, (const char *path, mode_t mode), (path, mode))
STAND_IN(int, fchmod, KIND_NAME, -1, (int fd, mode_t mode), (fd, mode))
STAND_IN(int, chdir, KIND_NAME, -1, (const char *path), (path))
STAND_IN(int, flock, KIND_NAME, -1, (int fd, int operation), (fd, operation))
STAND_IN(int, futimens, KIND_NAME, -1, (int fd, const struct timespec times[2]), (fd, times))
STAND_IN(int, access, KIND_NAME, -1, (const char *path, int mode), (path, mode))
STAND_IN(int, stat, KIND_NAME, -1, (const char *path, struct stat *out), (path, out))
STAND_IN(int, lstat, KIND_NAME, -1, (const char *path, struct stat *out), (path, out))
STAND_IN(int, fstatat, KIND_NAME, -1, (int dir, const char *path, struct stat *out, int flags),
         (dir, path, out, flags))
