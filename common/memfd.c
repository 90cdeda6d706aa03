#include "common/memfd.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

static int fail_close(int fd, struct err *e, const char *what)
{
    int code = err_errno(e, ERR_IO, "%s", what);
    (void)close(fd);
    return code;
}

static int create(const char *name, size_t size, int seals, struct memfd *ret_m, struct err *e)
{
    if (size == 0) {
        return err_set(e, ERR_INVALID, "shared memory of 0 bytes");
    }
    int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) {
        bool full = errno == EMFILE || errno == ENFILE;
        return err_errno(e, full ? ERR_LIMIT : ERR_IO, "memfd_create %s%s", name,
                         full ? " (raise LimitNOFILE= of the unit)" : "");
    }
    if (ftruncate(fd, (off_t)size) != 0) {
        return fail_close(fd, e, "sizing shared memory");
    }
    if (fcntl(fd, F_ADD_SEALS, seals) != 0) {
        return fail_close(fd, e, "sealing shared memory");
    }
    uint8_t *data = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED) {
        return fail_close(fd, e, "mapping shared memory");
    }
    *ret_m = (struct memfd){.fd = fd, .data = data, .size = size};
    return 0;
}

int memfd_create_sealed(const char *name, size_t size, struct memfd *ret_m, struct err *e)
{
    return create(name, size, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL, ret_m, e);
}

int memfd_create_freezable(const char *name, size_t size, struct memfd *ret_m, struct err *e)
{
    return create(name, size, F_SEAL_SHRINK | F_SEAL_GROW, ret_m, e);
}

int memfd_freeze(int fd, struct err *e)
{
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE) == 0) {
        return 0;
    }
    return err_errno(e, errno == EBUSY ? ERR_BUSY : ERR_INVALID, "closing memory against writing");
}

bool memfd_frozen(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_WRITE) != 0;
}

/* Before Linux 6.7 a frozen memfd cannot be mapped as shared. As nothing changes it any more, a
 * private mapping is the same. */
static void *map(int fd, size_t size, bool writable, int seals)
{
    int prot = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void *data = mmap(NULL, size, prot, MAP_SHARED, fd, 0);
    if (data == MAP_FAILED && !writable && (seals & F_SEAL_WRITE) != 0) {
        data = mmap(NULL, size, prot, MAP_PRIVATE, fd, 0);
    }
    return data;
}

int memfd_adopt(int fd, size_t min_size, bool writable, struct memfd *ret_m, struct err *e)
{
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0) {
        return err_errno(e, ERR_INVALID, "shared memory is not a memfd");
    }
    if ((seals & F_SEAL_SHRINK) == 0) {
        return err_set(e, ERR_INVALID, "shared memory is not sealed against shrinking");
    }
    struct stat st;
    struct statfs fs;
    if (fstat(fd, &st) != 0 || fstatfs(fd, &fs) != 0) {
        return err_errno(e, ERR_IO, "reading the size of shared memory");
    }
    if (fs.f_type != TMPFS_MAGIC) { /* a hole is SIGBUS if the host has no huge pages left */
        return err_set(e, ERR_UNSUPPORTED, "shared memory in huge pages");
    }
    if (st.st_size <= 0 || (uint64_t)st.st_size < min_size) {
        return err_set(e, ERR_INVALID, "shared memory of %lld bytes, %zu are needed",
                       (long long)st.st_size, min_size);
    }
    size_t size = (size_t)st.st_size;
    uint8_t *data = map(fd, size, writable, seals);
    if (data == MAP_FAILED) {
        return err_errno(e, ERR_IO, "mapping shared memory");
    }
    *ret_m = (struct memfd){.fd = fd, .data = data, .size = size};
    return 0;
}

void memfd_finish(struct memfd *m)
{
    if (m->data != NULL) {
        (void)munmap(m->data, m->size);
    }
    if (m->fd >= 0) {
        (void)close(m->fd);
    }
    *m = MEMFD_NONE;
}
