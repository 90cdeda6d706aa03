#include "bench/pool/policy.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/pool/source.h"

void *bench_calloc(size_t count, size_t bytes)
{
    void *p = calloc(count, bytes);
    if (p == NULL) {
        (void)fprintf(stderr, "bench_pool: no memory for %zu times %zu bytes\n", count, bytes);
        exit(1);
    }
    return p;
}

/* ---- the pool ---------------------------------------------------------------------------------*/

static bool pool_policy_alloc(void *self, uint64_t size, struct pool_piece *ret_piece)
{
    const struct pool_ask ask = {.size = size};
    return pool_alloc(self, &ask, ret_piece, NULL) == 0;
}

static void pool_policy_free(void *self, struct pool_piece *piece)
{
    (void)pool_free(self, piece, 0, 0, NULL);
}

static struct pool_stats stats_of(void *self)
{
    struct pool_stats s;
    pool_stats(self, &s);
    return s;
}

static uint64_t pool_policy_peak(void *self)
{
    return stats_of(self).size_peak;
}

static uint64_t pool_policy_calls(void *self)
{
    return stats_of(self).driver_calls;
}

static void pool_policy_destroy(void *self)
{
    pool_destroy(self);
}

static void policy_pool(uint64_t limit, struct policy *ret_policy)
{
    struct err e = ERR_INIT;
    struct pool *p;
    struct pool_options options = {.limit = limit, .streams = 1};
    if (pool_create(&bench_source, &options, &p, &e) != 0) {
        (void)fprintf(stderr, "bench_pool: %s\n", e.text);
        exit(1);
    }
    *ret_policy = (struct policy){.name = "pool",
                                  .self = p,
                                  .alloc = pool_policy_alloc,
                                  .free = pool_policy_free,
                                  .peak = pool_policy_peak,
                                  .calls = pool_policy_calls,
                                  .destroy = pool_policy_destroy};
}

/* ---- malloc -----------------------------------------------------------------------------------*/

struct library {
    uint64_t divide;
};

static bool library_alloc(void *self, uint64_t size, struct pool_piece *ret_piece)
{
    const struct library *l = self;
    ret_piece->range = malloc(size / l->divide + 1);
    return ret_piece->range != NULL;
}

static void library_free(void *self, struct pool_piece *piece)
{
    (void)self;
    free(piece->range);
    piece->range = NULL;
}

static void policy_library(uint64_t divide, struct policy *ret_policy)
{
    struct library *l = bench_calloc(1, sizeof *l);
    l->divide = divide;
    *ret_policy = (struct policy){
        .name = "malloc", .self = l, .alloc = library_alloc, .free = library_free, .destroy = free};
}

void policy_create(unsigned number, uint64_t limit, uint64_t divide, struct policy *ret_policy)
{
    switch (number) {
    case 0:
        policy_pool(limit, ret_policy);
        break;
    case 1:
        policy_best_fit(UINT64_MAX, ret_policy);
        break;
    case 2:
        policy_bins(ret_policy);
        break;
    default:
        policy_library(divide, ret_policy);
        break;
    }
}
