#include "bench/pool/source.h"

/* The name of every handle. It only has to differ from "no handle". */
#define SOME_HANDLE 1u

static int reserve(void *user, uint64_t bytes, void **ret_range, struct err *e)
{
    static char range;
    (void)user;
    (void)bytes;
    (void)e;
    *ret_range = &range;
    return 0;
}

static void release(void *user, void *range, uint64_t bytes)
{
    (void)user;
    (void)range;
    (void)bytes;
}

static int create(void *user, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    (void)user;
    (void)bytes;
    (void)e;
    *ret_handle = SOME_HANDLE;
    return 0;
}

static void destroy(void *user, uint64_t handle, uint64_t bytes)
{
    (void)user;
    (void)handle;
    (void)bytes;
}

static int map(void *user, void *range, uint64_t at, uint64_t handle, uint64_t bytes, struct err *e)
{
    (void)user;
    (void)range;
    (void)at;
    (void)handle;
    (void)bytes;
    (void)e;
    return 0;
}

static int unmap(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)user;
    (void)range;
    (void)at;
    (void)bytes;
    (void)e;
    return 0;
}

static int access_range(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
{
    (void)user;
    (void)range;
    (void)at;
    (void)bytes;
    (void)e;
    return 0;
}

static const struct pool_pages pages = {.page_bytes = BENCH_PAGE,
                                        .handle_max = UINT64_C(1) << 30,
                                        .reserve = reserve,
                                        .release = release,
                                        .create = create,
                                        .destroy = destroy,
                                        .map = map,
                                        .unmap = unmap,
                                        .access = access_range,
                                        .aliases = true};

const struct pool_source bench_source = {.pages = &pages};
