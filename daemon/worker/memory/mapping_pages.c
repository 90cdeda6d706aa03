#include "daemon/worker/memory/mapping_pages.h"

static int range_reserve(void *user, uint64_t bytes, void **ret_range, struct err *e)
{
    return mapping_reserve(user, bytes, ret_range, e);
}

static void range_release(void *user, void *range, uint64_t bytes)
{
    (void)range;
    (void)bytes;
    mapping_release(user);
}

static int handle_create(void *user, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    return mapping_create(user, bytes, ret_handle, e);
}

static void handle_destroy(void *user, uint64_t handle, uint64_t bytes)
{
    mapping_destroy(user, handle, bytes);
}

static int handle_map(void *user, void *range, uint64_t at, uint64_t handle, uint64_t bytes,
                      struct err *e)
{
    (void)range;
    return mapping_map(user, at, handle, bytes, e);
}

static int handle_unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)range;
    return mapping_unmap(user, at, bytes, e);
}

static int range_access(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)range;
    return mapping_access(user, at, bytes, e);
}

struct pool_pages mapping_pages(const struct mapping *m, uint64_t page)
{
    const struct backend_page_ops *ops = page != 0 ? m->b->pages : NULL;
    return (struct pool_pages){.page_bytes = page,
                               .handle_max = ops != NULL ? ops->handle_max(m->d) : 0,
                               .reserve = range_reserve,
                               .release = range_release,
                               .create = handle_create,
                               .destroy = handle_destroy,
                               .map = handle_map,
                               .unmap = handle_unmap,
                               .access = range_access};
}
