#include "tests/unit/pool/real_source.h"

#include <check.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static int reserve(void *user, uint64_t bytes, void **ret_range, struct err *e)
{
    (void)user;
    void *range = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (range == MAP_FAILED) {
        return err_errno(e, ERR_NOMEM, "addresses");
    }
    *ret_range = range;
    return 0;
}

static void release(void *user, void *range, uint64_t bytes)
{
    (void)user;
    ck_assert_int_eq(munmap(range, bytes), 0);
}

static int create(void *user, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    ck_assert_uint_eq(bytes, REAL_PAGE);
    struct real_source *r = user;
    for (unsigned i = 0; i < REAL_PAGES; i++) {
        if (!r->live[i]) {
            r->live[i] = true;
            r->taken++;
            *ret_handle = i + 1;
            return 0;
        }
    }
    return err_set(e, ERR_DEVICE_MEMORY, "no page is left");
}

static void destroy(void *user, uint64_t handle, uint64_t bytes)
{
    ck_assert_uint_eq(bytes, REAL_PAGE);
    struct real_source *r = user;
    r->live[handle - 1] = false;
    r->taken--;
}

static int map(void *user, void *range, uint64_t at, uint64_t handle, uint64_t bytes, struct err *e)
{
    ck_assert_uint_eq(bytes, REAL_PAGE);
    const struct real_source *r = user;
    void *there = mmap((uint8_t *)range + at, REAL_PAGE, PROT_NONE, MAP_SHARED | MAP_FIXED, r->fd,
                       (off_t)((handle - 1) * REAL_PAGE));
    return there != MAP_FAILED ? 0 : err_errno(e, ERR_DEVICE_MEMORY, "map");
}

static int unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    ck_assert_uint_eq(bytes, REAL_PAGE);
    (void)user;
    void *there = mmap((uint8_t *)range + at, REAL_PAGE, PROT_NONE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    return there != MAP_FAILED ? 0 : err_errno(e, ERR_DEVICE_MEMORY, "unmap");
}

static int access_range(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)user;
    int rc = mprotect((uint8_t *)range + at, bytes, PROT_READ | PROT_WRITE);
    return rc == 0 ? 0 : err_errno(e, ERR_DEVICE_MEMORY, "access");
}

void real_init(struct real_source *r)
{
    memset(r, 0, sizeof *r);
    r->fd = memfd_create("pool", MFD_CLOEXEC);
    ck_assert_int_ge(r->fd, 0);
    ck_assert_int_eq(ftruncate(r->fd, (off_t)(REAL_PAGES * REAL_PAGE)), 0);
    r->pages = (struct pool_pages){.page_bytes = REAL_PAGE,
                                   .reserve = reserve,
                                   .release = release,
                                   .create = create,
                                   .destroy = destroy,
                                   .map = map,
                                   .unmap = unmap,
                                   .access = access_range};
    r->source = (struct pool_source){.user = r, .pages = &r->pages};
}

void real_finish(struct real_source *r)
{
    ck_assert_uint_eq(r->taken, 0);
    ck_assert_int_eq(close(r->fd), 0);
}
