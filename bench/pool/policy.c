#include "bench/pool/policy.h"

#include <stdio.h>
#include <stdlib.h>

#include "bench/pool/source.h"
#include "daemon/pool/move.h"

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

static bool pool_policy_alloc(void *self, uint64_t size, unsigned stream,
                              struct pool_piece *ret_piece)
{
    const struct pool_ask ask = {.size = size, .stream = stream};
    return pool_alloc(self, &ask, ret_piece, NULL) == 0;
}

/* Pieces move in slices: the request is tried again meanwhile. */
bool policy_pool_get(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece)
{
    struct pool_refusal r = {.moves = true};
    int rc = ERR_DEVICE_MEMORY;
    while (rc == ERR_DEVICE_MEMORY && r.moves) {
        rc = pool_alloc(p, ask, ret_piece, NULL);
        pool_refusal(p, &r);
    }
    return rc == 0;
}

/* The owner of a piece finds it by its tag. */
static bool pool_policy_alloc_moving(void *self, uint64_t size, unsigned stream,
                                     struct pool_piece *ret_piece)
{
    const struct pool_ask ask = {
        .size = size, .stream = stream, .tag = (uint64_t)(uintptr_t)ret_piece};
    return policy_pool_get(self, &ask, ret_piece);
}

static int pool_policy_move(void *user, struct pool_move *move, struct err *e)
{
    (void)user;
    (void)e;
    pool_piece_moved((struct pool_piece *)(uintptr_t)move->tag, move);
    return 0;
}

static void pool_policy_free(void *self, struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    (void)pool_free(self, piece, stream, seq, NULL);
}

static void pool_policy_advance(void *self, unsigned stream, uint64_t seq)
{
    pool_advance(self, stream, seq);
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

static uint64_t pool_policy_waits(void *self)
{
    return stats_of(self).waits;
}

static void pool_policy_destroy(void *self)
{
    pool_destroy(self);
}

void policy_pool(const struct pool_source *source, uint64_t limit, unsigned streams,
                 struct policy *ret_policy)
{
    struct err e = ERR_INIT;
    struct pool *p;
    const struct pool_options options = {.limit = limit, .streams = streams};
    if (pool_create(source, &options, &p, &e) != 0) {
        (void)fprintf(stderr, "bench_pool: %s\n", e.text);
        exit(1);
    }
    *ret_policy = (struct policy){.name = "pool",
                                  .self = p,
                                  .ordered = true,
                                  .alloc = pool_policy_alloc,
                                  .free = pool_policy_free,
                                  .advance = pool_policy_advance,
                                  .peak = pool_policy_peak,
                                  .calls = pool_policy_calls,
                                  .waits = pool_policy_waits,
                                  .destroy = pool_policy_destroy};
}

static void policy_pool_moving(const struct pool_source *source, uint64_t limit, unsigned streams,
                               struct policy *ret_policy)
{
    static const struct pool_mover mover = {.move = pool_policy_move};
    policy_pool(source, limit, streams, ret_policy);
    pool_set_mover(ret_policy->self, &mover);
    ret_policy->name = "pool moving";
    ret_policy->alloc = pool_policy_alloc_moving;
}

/* ---- malloc -----------------------------------------------------------------------------------*/

struct library {
    uint64_t divide;
};

static bool library_alloc(void *self, uint64_t size, unsigned stream, struct pool_piece *ret_piece)
{
    const struct library *l = self;
    (void)stream;
    ret_piece->range = malloc(size / l->divide + 1);
    return ret_piece->range != NULL;
}

static void library_free(void *self, struct pool_piece *piece, unsigned stream, uint64_t seq)
{
    (void)self;
    (void)stream;
    (void)seq;
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

void policy_create(enum policy_kind kind, const struct policy_options *options,
                   struct policy *ret_policy)
{
    unsigned streams = options->streams > 1 ? options->streams : 1;
    const struct pool_source *source = streams > 1 ? &bench_source_waits : &bench_source;
    switch (kind) {
    case POLICY_POOL_MOVING:
        policy_pool_moving(source, options->limit, streams, ret_policy);
        break;
    case POLICY_POOL:
        policy_pool(source, options->limit, streams, ret_policy);
        break;
    case POLICY_BEST_FIT:
        policy_best_fit(options->limit_others, ret_policy);
        break;
    case POLICY_TLSF:
        policy_tlsf(options->limit_others, ret_policy);
        break;
    case POLICY_CACHING:
        policy_caching(options->limit_others, false, ret_policy);
        break;
    case POLICY_EXPANDABLE:
        policy_caching(options->limit_others, true, ret_policy);
        break;
    case POLICY_BINS:
        policy_bins(ret_policy);
        break;
    case POLICY_MALLOC:
        policy_library(options->divide, ret_policy);
        break;
    }
}
