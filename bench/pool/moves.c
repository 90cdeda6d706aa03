/*
 * How long is the owner of the pool away while pieces move? The memory is full of small pieces that
 * may move. Some are freed at random, and one large request has to empty a stretch for itself, in
 * as many calls as that takes. Nothing is copied: the time is the pool's.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/pool/load.h"
#include "bench/pool/parts.h"
#include "bench/pool/policy.h"
#include "bench/pool/source.h"
#include "common/clock.h"
#include "daemon/pool/move.h"

#define KIB     UINT64_C(1024)
#define MIB     (KIB * KIB)
#define GIB     (KIB * MIB)
#define PERCENT 92u /* of the pieces remain alive */
#define WANTED  (64 * MIB)
#define TRIES   24u

struct moves {
    struct pool *pool;
    struct load load;
    struct pool_piece *piece; /* by tag - 1 */
    uint64_t pieces;          /* as many fit */
};

/* The pieces are not used, so there is nothing to copy. */
static int move(void *user, struct pool_move *move, struct err *e)
{
    struct moves *m = user;
    (void)e;
    pool_piece_moved(&m->piece[move->tag - 1], move);
    return 0;
}

static void fill(struct moves *m, uint64_t size)
{
    for (uint64_t i = 0; i < m->pieces; i++) {
        const struct pool_ask ask = {.size = size, .tag = i + 1};
        if (m->piece[i].range == NULL) {
            (void)policy_pool_get(m->pool, &ask, &m->piece[i]);
        }
    }
}

static void thin_out(struct moves *m)
{
    for (uint64_t n = m->pieces * (100 - PERCENT) / 100; n > 0;) {
        struct pool_piece *piece = &m->piece[load_random(&m->load, m->pieces)];
        n -= piece->range != NULL;
        (void)pool_free(m->pool, piece, 0, 0, NULL);
    }
}

struct request {
    double ms;      /* of all its calls */
    double longest; /* of one of them */
    uint64_t calls;
};

/* False: refused. */
static bool get(struct pool *p, const struct pool_ask *ask, struct pool_piece *ret_piece,
                struct request *r)
{
    struct pool_refusal refusal = {.moves = true};
    int rc = ERR_DEVICE_MEMORY;
    while (rc == ERR_DEVICE_MEMORY && refusal.moves) {
        uint64_t from = clock_now_ns();
        rc = pool_alloc(p, ask, ret_piece, NULL);
        double ms = (double)(clock_now_ns() - from) / 1e6;
        pool_refusal(p, &refusal);
        r->ms += ms;
        r->longest = ms > r->longest ? ms : r->longest;
        r->calls++;
    }
    return rc == 0;
}

static int by_value(const void *a, const void *b)
{
    const double *x = a;
    const double *y = b;
    return *x < *y ? -1 : *x > *y;
}

static void run(struct report *r, uint64_t limit, uint64_t size, unsigned tries)
{
    struct moves m = {.pieces = limit / size};
    const struct pool_options options = {.limit = limit, .streams = 1};
    const struct pool_mover mover = {.user = &m, .move = move};
    double ms[TRIES];
    double longest = 0;
    uint64_t calls = 0;
    unsigned refused = 0;
    char name[40];
    struct pool_stats stats;
    load_seed(&m.load, 3);
    m.piece = bench_calloc(m.pieces, sizeof *m.piece);
    if (pool_create(&bench_source, &options, &m.pool, NULL) != 0) {
        abort();
    }
    pool_set_mover(m.pool, &mover);
    for (unsigned n = 0; n < tries; n++) {
        const struct pool_ask ask = {.size = limit / (16 * GIB / WANTED), .tag = m.pieces + 1};
        struct pool_piece large;
        fill(&m, size);
        thin_out(&m);
        pool_stats(m.pool, &stats);
        struct request one = {.calls = 0};
        bool good = get(m.pool, &ask, &large, &one);
        ms[n] = one.ms;
        longest = one.longest > longest ? one.longest : longest;
        calls += one.calls;
        refused += !good;
        if (good) {
            (void)pool_free(m.pool, &large, 0, 0, NULL);
        }
    }
    (void)snprintf(name, sizeof name, "%llu KiB, %llu pieces", (unsigned long long)(size / KIB),
                   (unsigned long long)stats.live);
    pool_stats(m.pool, &stats);
    qsort(ms, tries, sizeof ms[0], by_value);
    report_add(r, "moves", name, "pool", "p50_ms", ms[tries / 2]);
    report_add(r, "moves", name, "pool", "longest_ms", ms[tries - 1]);
    report_add(r, "moves", name, "pool", "longest_call_ms", longest);
    report_add(r, "moves", name, "pool", "calls_a_request", (double)calls / tries);
    report_add(r, "moves", name, "pool", "refused", refused);
    report_add(r, "moves", name, "pool", "moves_a_request", (double)stats.moves / tries);
    pool_destroy(m.pool);
    free(m.piece);
}

void part_moves(const struct settings *s, struct report *r)
{
    uint64_t bytes = s->smoke ? GIB / 4 : 16 * GIB;
    run(r, bytes, 256 * KIB, s->smoke ? 2 : TRIES);
    run(r, bytes, 16 * KIB, s->smoke ? 2 : TRIES);
}
