#include "bench/pool/source.h"

#include <stddef.h>

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
    struct bench_counts *counts = user;
    (void)e;
    if (counts != NULL) {
        counts->handles++;
        counts->largest = bytes > counts->largest ? bytes : counts->largest;
    }
    *ret_handle = SOME_HANDLE;
    return 0;
}

static void destroy(void *user, uint64_t handle, uint64_t bytes)
{
    struct bench_counts *counts = user;
    (void)handle;
    (void)bytes;
    if (counts != NULL) {
        counts->handles--;
    }
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

/* Unmapping and access: nothing is there. */
static int nothing(void *user, void *range, uint64_t at, uint64_t bytes, struct err *e)
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
                                        .unmap = nothing,
                                        .access = nothing};

static int wait(void *user, unsigned stream, unsigned on, uint64_t seq, struct err *e)
{
    (void)user;
    (void)stream;
    (void)on;
    (void)seq;
    (void)e;
    return 0;
}

const struct pool_source bench_source = {.pages = &pages};
const struct pool_source bench_source_waits = {.pages = &pages, .wait = wait};

void bench_source_counting(struct bench_counts *counts, struct pool_source *ret_source)
{
    *ret_source = bench_source;
    ret_source->user = counts;
}
