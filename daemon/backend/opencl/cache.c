/* PoCL's cache of compiled kernels, and a replacement if its usual folder is full or not
 * writable. */
#include <errno.h>
#include <ftw.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "daemon/backend/opencl/opencl.h"

/* PoCL aborts the process when it cannot write a kernel of some 100 KB. This many bytes suffice
 * for the kernels of a day. */
#define ROOM_BYTES (16u * 1024u * 1024u)
#define ROOM_FILES 256u
#define OTHER_NAME "/gpud-kernels-"

static uint32_t hash_of(const char *text)
{
    uint32_t h = 2166136261u; /* FNV-1a */
    for (; *text != '\0'; text++) {
        h = (h ^ (uint8_t)*text) * 16777619u;
    }
    return h;
}

/* PoCL's default folder of kernels, found as PoCL finds it. */
static bool usual_folder(char *out, size_t size)
{
    const char *cache = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    int n = cache != NULL && cache[0] == '/' ? snprintf(out, size, "%s/pocl/kcache", cache)
            : home != NULL && home[0] == '/' ? snprintf(out, size, "%s/.cache/pocl/kcache", home)
                                             : snprintf(out, size, "/tmp/pocl/kcache");
    return n > 0 && (size_t)n < size;
}

enum fitness { FIT, FULL, CLOSED };

/* Why a folder, or the nearest existing parent of a missing one, is unusable; NULL: it is
 * usable. */
static const char *const reasons[] = {
    [FIT] = NULL,
    [FULL] = "no space on",
    [CLOSED] = "this user may not write to",
};

/* Returns FIT also if the state is unknown. *ret_runs: files there may be executed. */
static enum fitness folder_fitness(const char *folder, bool *ret_runs)
{
    char path[PATH_MAX];
    struct statvfs fs;
    (void)snprintf(path, sizeof path, "%s", folder);
    while (statvfs(path[0] != '\0' ? path : "/", &fs) != 0) {
        char *slash = strrchr(path, '/');
        if (errno != ENOENT || slash == NULL) {
            return errno == EACCES ? CLOSED : FIT;
        }
        *slash = '\0';
    }
    *ret_runs = (fs.f_flag & ST_NOEXEC) == 0;
    if (access(path[0] != '\0' ? path : "/", W_OK | X_OK) != 0) {
        return CLOSED;
    }
    return (uint64_t)fs.f_bavail * fs.f_frsize >= ROOM_BYTES &&
                   (fs.f_files == 0 || fs.f_favail >= ROOM_FILES)
               ? FIT
               : FULL;
}

/* Makes a folder for this user alone, or reuses the folder of an earlier worker. */
static bool make_private(const char *path)
{
    struct stat st;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) {
        return false;
    }
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

/* usual: each worker with a folder of its own gets another one of its own here, too. */
static bool take_other(const char *usual, char *out, size_t size)
{
    static const char *const folders[] = {"/dev/shm", "/tmp"};
    for (unsigned i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        bool runs = false;
        (void)snprintf(out, size, "%s" OTHER_NAME "%u-%08x", folders[i], (unsigned)geteuid(),
                       hash_of(usual));
        if (folder_fitness(folders[i], &runs) == FIT && runs && make_private(out) &&
            setenv("POCL_CACHE_DIR", out, 1) == 0) {
            return true;
        }
    }
    return false;
}

int opencl_cache_choose(char *ret_note, size_t size, struct err *e)
{
    char usual[PATH_MAX];
    char other[64];
    bool runs = false;
    ret_note[0] = '\0';
    const char *named = getenv("POCL_CACHE_DIR"); /* perhaps set by an earlier call */
    if ((named != NULL && strstr(named, OTHER_NAME) == NULL) ||
        !usual_folder(usual, sizeof usual)) {
        return 0;
    }
    const char *reason = reasons[folder_fitness(usual, &runs)];
    if (reason == NULL) {
        return 0;
    }
    if (!take_other(usual, other, sizeof other)) {
        return err_set(e, ERR_NO_DEVICE,
                       "%s %s, and no space in /dev/shm or in /tmp: OpenCL kernels need %u MiB to "
                       "be compiled",
                       reason, usual, ROOM_BYTES / (1024 * 1024));
    }
    (void)snprintf(ret_note, size, "%s %s: compiled kernels are stored in %s", reason, usual,
                   other);
    return 0;
}

/* Makes a folder and those above it. */
static bool make_all(const char *path)
{
    char part[PATH_MAX];
    for (const char *end = path; end != NULL;) {
        end = strchr(end + 1, '/');
        int n = end != NULL ? (int)(end - path) : (int)strlen(path);
        (void)snprintf(part, sizeof part, "%.*s", n, path);
        if (mkdir(part, 0700) != 0 && errno != EEXIST && end == NULL) {
            return false;
        }
    }
    return true;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    return at->level > 0 ? remove(path) : 0;
}

/* A replacement may be a former worker's, of another tenant. Nothing of it is kept, because this
 * worker would run it. */
static int replacement_empty(const char *path, struct err *e)
{
    return nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT) == 0
               ? 0
               : err_errno(e, ERR_IO, "emptying %s, where compiled kernels are stored", path);
}

int opencl_cache_folder(char *ret_path, size_t size, struct err *e)
{
    char note[sizeof((struct backend_info *)0)->note];
    int rc = opencl_cache_choose(note, sizeof note, e);
    if (rc != 0) {
        return rc;
    }
    const char *named = getenv("POCL_CACHE_DIR");
    ret_path[0] = '\0';
    if (named != NULL && strstr(named, OTHER_NAME) != NULL) {
        rc = replacement_empty(named, e);
        if (rc != 0) {
            return rc;
        }
    }
    if (named != NULL && strlen(named) < size) {
        (void)snprintf(ret_path, size, "%s", named);
    } else if (named == NULL && !usual_folder(ret_path, size)) {
        ret_path[0] = '\0';
    }
    if (ret_path[0] != '/' || !make_all(ret_path)) {
        ret_path[0] = '\0'; /* the driver says what it cannot write */
    }
    return 0;
}
