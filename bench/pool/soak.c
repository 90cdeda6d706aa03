/* Does the mapped memory grow over time? Small pieces are allocated and freed; the mapped memory
 * after a tenth of all operations is compared with that at the end. */
#include <stdio.h>
#include <stdlib.h>

#include "bench/pool/load.h"
#include "bench/pool/parts.h"
#include "bench/pool/policy.h"
#include "bench/pool/source.h"

#define MIB     UINT64_C(1048576)
#define LIVE    (1024 * MIB)
#define STREAMS 4u

struct soak {
    struct pool *pool;
    struct load load;
    struct pool_piece *piece;
    uint64_t count, room;
    uint64_t seq[STREAMS];
    uint64_t live;
    uint64_t refused;
};

static void step(struct soak *s)
{
    const struct pool_ask ask = {.size = load_log_uniform(&s->load, 256, MIB),
                                 .stream = (unsigned)load_random(&s->load, STREAMS)};
    while (s->count > 0 && (s->live + ask.size > LIVE || s->count == s->room)) {
        struct pool_piece *piece = &s->piece[load_random(&s->load, s->count)];
        s->live -= piece->asked;
        (void)pool_free(s->pool, piece, ask.stream, ++s->seq[ask.stream], NULL);
        *piece = s->piece[--s->count];
    }
    if (pool_alloc(s->pool, &ask, &s->piece[s->count], NULL) == 0) {
        s->live += s->piece[s->count++].asked;
    } else {
        s->refused++;
    }
    unsigned done = (unsigned)load_random(&s->load, STREAMS);
    pool_advance(s->pool, done, s->seq[done]);
}

static uint64_t taken(const struct soak *s)
{
    struct pool_stats stats;
    pool_stats(s->pool, &stats);
    return stats.size_peak;
}

/* The allowed growth. A short run has not reached its peak after a tenth. */
static double allowed(uint64_t operations)
{
    return operations >= 10000000u ? 0.01 : 0.05;
}

bool soak(uint64_t operations, struct report *r)
{
    struct err e = ERR_INIT;
    struct pool_options options = {.limit = 4 * LIVE, .streams = STREAMS};
    struct soak s = {.room = 1000000};
    s.piece = bench_calloc(s.room, sizeof *s.piece);
    load_seed(&s.load, 5);
    if (pool_create(&bench_source, &options, &s.pool, &e) != 0) {
        abort();
    }
    for (uint64_t i = 0; i < operations / 10; i++) {
        step(&s);
    }
    uint64_t first = taken(&s);
    for (uint64_t i = operations / 10; i < operations; i++) {
        step(&s);
    }
    double drift = (double)taken(&s) / (double)first - 1;
    int rc = pool_check(s.pool, &e);
    if (rc != 0) {
        (void)fprintf(stderr, "bench_pool: %s\n", e.text);
    }
    report_add(r, "soak", "256 B to 1 MiB, 1 GiB", "pool", "operations", (double)operations);
    report_add(r, "soak", "256 B to 1 MiB, 1 GiB", "pool", "refused", (double)s.refused);
    report_add(r, "soak", "256 B to 1 MiB, 1 GiB", "pool", "drift", drift);
    pool_destroy(s.pool);
    free(s.piece);
    return rc == 0 && s.refused == 0 && drift <= allowed(operations);
}
