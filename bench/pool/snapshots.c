/* The cost of the pool's reports: of an event of the log, and of a snapshot. */
#include <stdlib.h>
#include <string.h>

#include "bench/pool/load.h"
#include "bench/pool/parts.h"
#include "bench/pool/policy.h"
#include "bench/pool/source.h"
#include "common/clock.h"

static void event(const struct settings *s, struct report *r, struct pool *p)
{
    uint64_t from = clock_now_ns();
    for (uint64_t i = 1; i <= s->pairs; i++) {
        pool_advance(p, 0, i);
    }
    report_add(r, "snapshots", "advance", "pool", "ns",
               (double)(clock_now_ns() - from) / (double)s->pairs);
}

static void snapshot(struct report *r, const struct pool *p)
{
    uint64_t bytes = pool_snapshot_bytes(p);
    void *buffer = bench_calloc(1, bytes);
    uint64_t extents = 0;
    struct pool_cursor cursor = {0};
    struct pool_extent extent;
    memset(buffer, 1, bytes); /* as if it had been used before */
    uint64_t from = clock_now_ns();
    (void)pool_snapshot(p, buffer, bytes, NULL);
    uint64_t taken = clock_now_ns();
    while (pool_snapshot_next(buffer, &cursor, &extent)) {
        extents++;
    }
    uint64_t read = clock_now_ns();
    report_add(r, "snapshots", "snapshot", "pool", "extents", (double)extents);
    report_add(r, "snapshots", "snapshot", "pool", "pause_ms", (double)(taken - from) / 1e6);
    report_add(r, "snapshots", "snapshot", "pool", "all_ms", (double)(read - from) / 1e6);
    free(buffer);
}

void part_snapshots(const struct settings *s, struct report *r)
{
    struct load l;
    struct pool *p;
    struct pool_options options = {.limit = UINT64_C(1) << 40, .streams = 1};
    uint64_t count = s->live_max < 100000 ? s->live_max : 100000;
    struct pool_piece *piece = bench_calloc(count, sizeof *piece);
    load_seed(&l, 3);
    if (pool_create(&bench_source, &options, &p, NULL) != 0) {
        abort();
    }
    event(s, r, p);
    for (uint64_t i = 0; i < count; i++) { /* a block for each: the most that a snapshot copies */
        const struct pool_ask ask = {.size = load_log_uniform(&l, 65 << 10, 1 << 20)};
        (void)pool_alloc(p, &ask, &piece[i], NULL);
    }
    for (uint64_t i = 0; i < count; i += 10) {
        (void)pool_free(p, &piece[i], 0, 0, NULL);
    }
    snapshot(r, p);
    pool_destroy(p);
    free(piece);
}
