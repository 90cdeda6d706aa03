#include "daemon/launcher/driver_cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FOLDER      "/.cache/pocl/kcache"
#define ENTRY_LEVEL 2 /* kcache/XX/<program> contains everything of one program */

struct entry {
    char *path;
    uint64_t bytes;
    time_t used;
};

struct entries {
    struct entry *item;
    size_t count;
    size_t room;
    uint64_t bytes;
};

static void entries_finish(struct entries *all)
{
    for (size_t i = 0; i < all->count; i++) {
        free(all->item[i].path);
    }
    free(all->item);
}

static bool entries_add(struct entries *all, const char *path)
{
    if (all->count == all->room) {
        size_t room = all->room > 0 ? 2 * all->room : 64;
        struct entry *item = realloc(all->item, room * sizeof *item);
        if (item == NULL) {
            return false;
        }
        all->item = item;
        all->room = room;
    }
    char *copy = strdup(path);
    if (copy == NULL) {
        return false;
    }
    all->item[all->count++] = (struct entry){.path = copy};
    return true;
}

static FTS *open_tree(char *path)
{
    char *const paths[] = {path, NULL};
    return fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
}

/* Counts one file or folder of the walk. Returns false when memory is out. */
static bool take(struct entries *all, const FTSENT *at)
{
    bool file = at->fts_info == FTS_F || at->fts_info == FTS_SL || at->fts_info == FTS_SLNONE;
    bool begins = at->fts_level == ENTRY_LEVEL && at->fts_info == FTS_D;
    if (begins || (file && at->fts_level > 0 && at->fts_level <= ENTRY_LEVEL)) {
        if (!entries_add(all, at->fts_path)) {
            return false;
        }
    }
    if (file && at->fts_level > 0) {
        struct entry *e = &all->item[all->count - 1];
        /* 0 for a file that fits into its directory's entry */
        blkcnt_t blocks = at->fts_statp->st_blocks;
        uint64_t bytes = (uint64_t)(blocks > 0 ? blocks : 1) * 512;
        e->bytes += bytes;
        all->bytes += bytes;
        e->used = at->fts_statp->st_mtime > e->used ? at->fts_statp->st_mtime : e->used;
    }
    return true;
}

static bool entries_read(char *folder, struct entries *all)
{
    FTS *tree = open_tree(folder);
    bool ok = tree != NULL;
    const FTSENT *at;
    while (ok && (at = fts_read(tree)) != NULL) {
        ok = take(all, at);
    }
    if (tree != NULL) {
        (void)fts_close(tree);
    }
    return ok;
}

static void remove_tree(char *path)
{
    FTS *tree = open_tree(path);
    const FTSENT *at;
    while (tree != NULL && (at = fts_read(tree)) != NULL) {
        if (at->fts_info == FTS_DP) {
            (void)rmdir(at->fts_accpath);
        } else if (at->fts_info == FTS_D) {
            (void)chmod(at->fts_accpath, 0700); /* a worker may have closed its own folders */
        } else {
            (void)unlink(at->fts_accpath);
        }
    }
    if (tree != NULL) {
        (void)fts_close(tree);
    }
}

static int oldest_first(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    return (x->used > y->used) - (x->used < y->used);
}

uint64_t driver_cache_trim(const char *cache_dir, uint64_t bytes_max)
{
    char folder[PATH_MAX];
    struct entries all = {.count = 0};
    uint64_t removed = 0;
    int n = snprintf(folder, sizeof folder, "%s" FOLDER, cache_dir);
    if (n > 0 && (size_t)n < sizeof folder && entries_read(folder, &all) && all.count > 0) {
        qsort(all.item, all.count, sizeof *all.item, oldest_first);
        for (size_t i = 0; i < all.count && all.bytes - removed > bytes_max; i++) {
            remove_tree(all.item[i].path);
            removed += all.item[i].bytes;
        }
    }
    entries_finish(&all);
    return removed;
}

/* ---- removal of all -------------------------------------------------------------------------- */

static DIR *folder_open(int around, const char *name)
{
    int fd = openat(around, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (dir == NULL && fd >= 0) {
        (void)close(fd);
    }
    return dir;
}

static const char *next_name(DIR *dir)
{
    const struct dirent *at = NULL;
    do {
        at = dir != NULL ? readdir(dir) : NULL;
    } while (at != NULL && (strcmp(at->d_name, ".") == 0 || strcmp(at->d_name, "..") == 0));
    return at != NULL ? at->d_name : NULL;
}

/* Removes a file; false: it is none. A folder is made one that can be emptied and moved. */
static bool file_remove(int around, const char *name)
{
    return unlinkat(around, name, 0) == 0 || fchmodat(around, name, 0700, 0) != 0;
}

/* Moves a folder into `top` under a new name. */
static void lift(int around, const char *name, int top, unsigned *count)
{
    char free_name[32];
    int rc;
    do {
        (void)snprintf(free_name, sizeof free_name, "lifted-%u", ++*count);
        rc = renameat(around, name, top, free_name);
    } while (rc != 0 && (errno == ENOTEMPTY || errno == EEXIST || errno == ENOTDIR));
}

/* Removes what is in `top`, and moves the folders in its folders up. False: nothing was removed. */
static bool level_remove(int top, unsigned *count)
{
    DIR *dir = folder_open(top, ".");
    bool some = false;
    for (const char *name; (name = next_name(dir)) != NULL;) {
        bool gone = file_remove(top, name);
        DIR *below = gone ? NULL : folder_open(top, name);
        for (const char *part; (part = next_name(below)) != NULL;) {
            if (!file_remove(dirfd(below), part)) {
                lift(dirfd(below), part, top, count);
            }
        }
        if (below != NULL) {
            (void)closedir(below);
        }
        some = gone || unlinkat(top, name, AT_REMOVEDIR) == 0 || some;
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return some;
}

/* A kernel may have nested folders beyond any length of a path and any stack, so that none is
 * walked into. */
void driver_cache_remove(const char *folder)
{
    unsigned count = 0;
    if (file_remove(AT_FDCWD, folder)) {
        return;
    }
    int top = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    while (top >= 0 && level_remove(top, &count)) {
    }
    if (top >= 0) {
        (void)close(top);
    }
    (void)rmdir(folder);
}
