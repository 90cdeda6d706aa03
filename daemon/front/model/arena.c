#include "daemon/front/model/arena.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "common/descriptors.h"
#include "common/memfd.h"
#include "daemon/front/model/session.h"

#define TMPFS 0x01021994 /* TMPFS_MAGIC of <linux/magic.h> */

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

struct arena *arena_create(uint64_t bytes)
{
    struct arena *a = calloc(1, sizeof *a);
    if (a != NULL) {
        a->bytes = bytes;
        a->fd = -1;
    }
    return a;
}

void arena_destroy(struct arena *a)
{
    if (a == NULL) {
        return;
    }
    if (a->fd >= 0) {
        (void)close(a->fd);
    }
    free(a);
}

static int refuse_kept(struct err *e)
{
    return err_set(
        e, ERR_LIMIT,
        "no descriptor is free for an arena: free arenas, or raise LimitNOFILE= of the unit");
}

int arena_make_memory(struct arena *a, struct err *e)
{
    struct memfd m = MEMFD_NONE;
    if (!descriptors_spare()) {
        return refuse_kept(e);
    }
    int rc = memfd_create_sealed("gpud-arena", a->bytes, &m, e);
    if (rc != 0) {
        return err_wrap(e, "arena of %llu bytes", (unsigned long long)a->bytes);
    }
    a->fd = m.fd;
    m.fd = -1; /* only the mapping is released below */
    memfd_finish(&m);
    return 0;
}

int arena_check_memory(const struct arena *a, int fd, struct err *e)
{
    struct stat st;
    struct statfs fs;
    int seals = fcntl(fd, F_GET_SEALS);
    int flags = fcntl(fd, F_GETFL);
    if (seals < 0 || flags < 0 || fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0) {
        return err_errno(e, ERR_INVALID, "not a memfd");
    }
    if ((seals & F_SEAL_SHRINK) == 0) {
        return err_set(e, ERR_INVALID,
                       "the memfd is not sealed against shrinking: add F_SEAL_SHRINK");
    }
    if (fs.f_type != TMPFS) {
        return err_set(
            e, ERR_UNSUPPORTED,
            "the memfd has huge pages, which may run out in use: create it without MFD_HUGETLB");
    }
    if ((flags & O_ACCMODE) != O_RDWR || (seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE)) != 0) {
        return err_set(e, ERR_INVALID, "the memfd cannot be written");
    }
    if (st.st_size < 0 || (uint64_t)st.st_size < a->bytes) { /* it can only grow from here on */
        return err_set(e, ERR_INVALID, "the memfd has %lld bytes, the arena %llu",
                       (long long)st.st_size, (unsigned long long)a->bytes);
    }
    return descriptors_spare() ? 0 : refuse_kept(e);
}

int arena_find(const struct idmap *arenas, uint64_t handle, const struct session *s,
               struct arena **ret_arena, struct err *e)
{
    struct arena *a = arenas != NULL ? idmap_get(arenas, handle) : NULL;
    if (a == NULL || a->owner == NULL || a->owner != s) {
        return session_lacks(s, arenas, handle, "arena", e);
    }
    if (a->fd < 0) {
        return err_set(e, ERR_STATE,
                       "arena %#llx has no memory yet: its client has to pass the memfd first",
                       (unsigned long long)handle);
    }
    *ret_arena = a;
    return 0;
}
