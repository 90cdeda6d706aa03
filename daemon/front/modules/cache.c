#include "daemon/front/modules/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define MAGIC       "gpudbin1"
#define FILE_MAX    ((uint64_t)80 * 1024 * 1024) /* bytes */
#define CACHE_NAME  64                           /* "xx/<key>.bin" and temporary names */
#define TEMPORARY   "new."
#define NAME_TRIES  64u
#define LEFT_OVER_S 60 /* age of a temporary file: no write takes so long */

struct cache {
    int dir;
    uint64_t bytes_max;
    uint64_t bytes;
    unsigned serial; /* number of the next temporary file */
};

/* The head of a file, in the host's layout: the same build on the same host writes and reads it. */
struct head {
    char magic[8];
    uint64_t identity_size;
    uint64_t data_size;
    struct hash checksum; /* of identity and data */
};

struct entry {
    char name[CACHE_NAME];
    uint64_t size;
    struct timespec used;
};

static struct hash checksum(struct bytes identity, struct bytes data)
{
    const struct hash_part parts[] = {{identity.data, identity.size}, {data.data, data.size}};
    return hash_parts(parts, 2);
}

static void name_of(struct hash key, char out[CACHE_NAME])
{
    char text[HASH_TEXT_BYTES];
    (void)hash_text(key, text);
    (void)snprintf(out, CACHE_NAME, "%.2s/%s.bin", text, text);
}

/* ---- walking -------------------------------------------------------------------------------- */

typedef int (*visit_fn)(struct cache *c, const struct entry *entry, void *data);

static DIR *open_dir(struct cache *c, const char *name)
{
    int fd = openat(c->dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (dir == NULL && fd >= 0) {
        (void)close(fd);
    }
    return dir;
}

static int visit_folder(struct cache *c, const char *folder, visit_fn visit, void *data)
{
    DIR *dir = open_dir(c, folder);
    int rc = 0;
    const struct dirent *d;
    while (rc == 0 && dir != NULL && (d = readdir(dir)) != NULL) {
        struct entry entry;
        struct stat st;
        int n = snprintf(entry.name, sizeof entry.name, "%s/%s", folder, d->d_name);
        if (d->d_name[0] == '.' || n < 0 || (size_t)n >= sizeof entry.name ||
            fstatat(c->dir, entry.name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode)) {
            continue;
        }
        entry.size = (uint64_t)st.st_size;
        entry.used = st.st_mtim;
        rc = visit(c, &entry, data);
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return rc;
}

/* Another daemon that shares the folder may be writing a younger one. */
static bool is_left_over(const struct cache *c, const char *name)
{
    struct stat st;
    return fstatat(c->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           st.st_mtim.tv_sec < time(NULL) - LEFT_OVER_S;
}

/* Calls visit for each binary; removes temporary files of interrupted writes. */
static int visit_all(struct cache *c, visit_fn visit, void *data)
{
    DIR *dir = open_dir(c, ".");
    int rc = 0;
    const struct dirent *d;
    while (rc == 0 && dir != NULL && (d = readdir(dir)) != NULL) {
        if (strncmp(d->d_name, TEMPORARY, strlen(TEMPORARY)) == 0) {
            if (is_left_over(c, d->d_name)) {
                (void)unlinkat(c->dir, d->d_name, 0);
            }
        } else if (strlen(d->d_name) == 2 && strcmp(d->d_name, "..") != 0) {
            rc = visit_folder(c, d->d_name, visit, data);
        }
    }
    if (dir != NULL) {
        (void)closedir(dir);
    }
    return rc;
}

static int add_size(struct cache *c, const struct entry *entry, void *data)
{
    (void)data;
    c->bytes += entry->size;
    return 0;
}

static bool older(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec != b->tv_sec ? a->tv_sec < b->tv_sec : a->tv_nsec < b->tv_nsec;
}

struct oldest {
    struct entry entry;
    bool found;
};

static int find_oldest(struct cache *c, const struct entry *entry, void *data)
{
    struct oldest *o = data;
    (void)c;
    if (!o->found || older(&entry->used, &o->entry.used)) {
        o->entry = *entry;
        o->found = true;
    }
    return 0;
}

/* Makes room, with a walk over the cache for each file to remove: that is rare, and files are few
 * and large. */
static void trim(struct cache *c, uint64_t room)
{
    while (c->bytes > 0 && (room > c->bytes_max || c->bytes > c->bytes_max - room)) {
        struct oldest o = {.found = false};
        (void)visit_all(c, find_oldest, &o);
        if (!o.found || unlinkat(c->dir, o.entry.name, 0) != 0) {
            return;
        }
        c->bytes -= o.entry.size < c->bytes ? o.entry.size : c->bytes;
    }
}

/* ---- making --------------------------------------------------------------------------------- */

static int check_dir(int fd, const char *dir, struct err *e)
{
    struct stat st;
    if (fstat(fd, &st) != 0) {
        return err_errno(e, ERR_IO, "%s", dir);
    }
    if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
        return err_set(e, ERR_PERMISSION,
                       "%s: the cache folder is not owned by gpud's user, or others may write to "
                       "it (chown, chmod go-w)",
                       dir);
    }
    if (faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0) {
        return err_errno(e, ERR_PERMISSION, "%s", dir);
    }
    return 0;
}

int cache_create(const char *dir, uint64_t bytes_max, struct cache **ret_cache, struct err *e)
{
    if (mkdir(dir, 0700) != 0 && errno != EEXIST) {
        return err_errno(e, ERR_IO, "making %s", dir);
    }
    int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "%s", dir);
    }
    int rc = check_dir(fd, dir, e);
    struct cache *c = rc == 0 ? calloc(1, sizeof *c) : NULL;
    if (c == NULL) {
        (void)close(fd);
        return rc != 0 ? rc : err_set(e, ERR_NOMEM, "no memory for the kernel cache");
    }
    c->dir = fd;
    c->bytes_max = bytes_max;
    (void)visit_all(c, add_size, NULL);
    trim(c, 0);
    *ret_cache = c;
    return 0;
}

void cache_destroy(struct cache *c)
{
    if (c != NULL) {
        (void)close(c->dir);
        free(c);
    }
}

uint64_t cache_bytes(const struct cache *c)
{
    return c->bytes;
}

/* ---- reading -------------------------------------------------------------------------------- */

static bool read_all(int fd, void *out, size_t size)
{
    size_t done = 0;
    while (done < size) {
        ssize_t n = read(fd, (char *)out + done, size - done);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        done += (size_t)n;
    }
    return true;
}

static bool sizes_fit(const struct head *head, uint64_t file)
{
    uint64_t rest = file - sizeof *head;
    return memcmp(head->magic, MAGIC, sizeof head->magic) == 0 && head->identity_size <= rest &&
           head->data_size == rest - head->identity_size;
}

/* Reads and verifies a file of `size` bytes; on a hit the data is moved to the start. */
static int read_file(int fd, uint64_t size, struct bytes identity, uint8_t **ret_data,
                     size_t *ret_size)
{
    struct head head;
    if (size < sizeof head || size > FILE_MAX || !read_all(fd, &head, sizeof head) ||
        !sizes_fit(&head, size)) {
        return CACHE_DAMAGED;
    }
    size_t rest = (size_t)(size - sizeof head);
    uint8_t *all = malloc(rest > 0 ? rest : 1);
    if (all == NULL) {
        return CACHE_MISS;
    }
    int rc = CACHE_DAMAGED;
    if (read_all(fd, all, rest)) {
        struct bytes stored = bytes_of(all, (size_t)head.identity_size);
        struct bytes data = bytes_of(all + stored.size, (size_t)head.data_size);
        if (hash_equal(checksum(stored, data), head.checksum)) {
            rc = bytes_equal(stored, identity) ? CACHE_HIT : CACHE_MISS;
        }
    }
    if (rc != CACHE_HIT) {
        free(all);
        return rc;
    }
    memmove(all, all + head.identity_size, (size_t)head.data_size);
    *ret_data = all;
    *ret_size = (size_t)head.data_size;
    return CACHE_HIT;
}

int cache_load(struct cache *c, struct hash key, struct bytes identity, uint8_t **ret_data,
               size_t *ret_size)
{
    char name[CACHE_NAME];
    name_of(key, name);
    int fd = openat(c->dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return CACHE_MISS;
    }
    struct stat st;
    int rc = CACHE_MISS;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        rc = read_file(fd, (uint64_t)st.st_size, identity, ret_data, ret_size);
        if (rc == CACHE_HIT) {
            /* notes the time of its use; after a failure the file only seems older */
            (void)futimens(fd, NULL);
        } else if (rc == CACHE_DAMAGED && unlinkat(c->dir, name, 0) == 0) {
            uint64_t size = (uint64_t)st.st_size;
            c->bytes -= size < c->bytes ? size : c->bytes;
        }
    }
    (void)close(fd);
    return rc;
}

/* ---- writing -------------------------------------------------------------------------------- */

static int write_all(int fd, struct bytes part, struct err *e)
{
    while (part.size > 0) {
        ssize_t n = write(fd, part.data, part.size);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return err_errno(e, ERR_IO, "writing to the cache");
        }
        part = bytes_of(part.data + n, part.size - (size_t)n);
    }
    return 0;
}

static int write_file(int fd, struct bytes identity, struct bytes data, struct err *e)
{
    struct head head = {.identity_size = identity.size,
                        .data_size = data.size,
                        .checksum = checksum(identity, data)};
    memcpy(head.magic, MAGIC, sizeof head.magic);
    int rc = write_all(fd, bytes_of(&head, sizeof head), e);
    if (rc == 0) {
        rc = write_all(fd, identity, e);
    }
    return rc != 0 ? rc : write_all(fd, data, e);
}

/* The size of the file that is about to be replaced; 0: none. */
static uint64_t size_before(struct cache *c, const char *name)
{
    struct stat st;
    return fstatat(c->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 ? (uint64_t)st.st_size : 0;
}

static int put_in_place(struct cache *c, const char *temporary, const char *name, struct err *e)
{
    char folder[3] = {name[0], name[1], '\0'};
    if (mkdirat(c->dir, folder, 0700) != 0 && errno != EEXIST) {
        return err_errno(e, ERR_IO, "making a folder of the cache");
    }
    if (renameat(c->dir, temporary, c->dir, name) != 0) {
        return err_errno(e, ERR_IO, "naming a file of the cache");
    }
    return 0;
}

/* A process of the same number, before this one or in another container, may have left names. */
static int make_temporary(struct cache *c, char name[CACHE_NAME])
{
    int fd = -1;
    unsigned tries = 0;
    do {
        (void)snprintf(name, CACHE_NAME, TEMPORARY "%d.%u", (int)getpid(), c->serial++);
        fd = openat(c->dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    } while (fd < 0 && errno == EEXIST && ++tries < NAME_TRIES);
    return fd;
}

int cache_try(struct cache *c, uint64_t size, struct err *e)
{
    char name[CACHE_NAME];
    int fd = make_temporary(c, name);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "making a file in the cache");
    }
    int code = posix_fallocate(fd, 0, (off_t)size); /* no errno */
    (void)close(fd);
    (void)unlinkat(c->dir, name, 0);
    return code == 0
               ? 0
               : err_set(e, ERR_IO, "%s: making room for a file in the cache", strerror(code));
}

int cache_store(struct cache *c, struct hash key, struct bytes identity, struct bytes data,
                struct err *e)
{
    char name[CACHE_NAME];
    char temporary[CACHE_NAME];
    uint64_t size = sizeof(struct head) + (uint64_t)identity.size + data.size;
    if (size > FILE_MAX || size > c->bytes_max) {
        return err_set(e, ERR_LIMIT, "a compiled kernel of %llu bytes is too large for the cache",
                       (unsigned long long)size);
    }
    trim(c, size);
    name_of(key, name);
    int fd = make_temporary(c, temporary);
    if (fd < 0) {
        return err_errno(e, ERR_IO, "making a file in the cache");
    }
    int rc = write_file(fd, identity, data, e);
    if (close(fd) != 0 && rc == 0) {
        rc = err_errno(e, ERR_IO, "writing to the cache");
    }
    uint64_t before = size_before(c, name);
    if (rc == 0) {
        rc = put_in_place(c, temporary, name, e);
    }
    if (rc != 0) {
        (void)unlinkat(c->dir, temporary, 0);
        return rc;
    }
    c->bytes += size;
    c->bytes -= before < c->bytes ? before : c->bytes;
    return 0;
}
