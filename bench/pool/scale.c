/*
 * The pool at the size of a real card: public and generated traces, scaled to 4 … 192 GiB, with 3%
 * more memory than their peak. Measures the cost of an operation when a trace is repeated, the
 * calls of the driver, and the refused requests if a free completes only some frees later.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/pool/load.h"
#include "bench/pool/parts.h"
#include "bench/pool/policy.h"
#include "bench/pool/source.h"
#include "common/clock.h"

#define GIB    (UINT64_C(1) << 30)
#define ROUNDS 8u
#define SMOKE  1u /* --gib of a smoke run: one size, one trace */

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

/* A percentile of `count` sorted values. */
static uint64_t percentile(const uint64_t *sorted, size_t count, unsigned percent)
{
    size_t rank = count * percent / 100;
    return sorted[rank < count ? rank : count - 1];
}

static struct pool *make_pool(uint64_t limit)
{
    struct pool *p;
    struct err e = ERR_INIT;
    const struct pool_options o = {.limit = limit, .streams = 1};
    if (pool_create(&bench_source, &o, &p, &e) != 0) {
        (void)fprintf(stderr, "bench_pool: %s\n", e.text);
        exit(1);
    }
    return p;
}

struct run {
    struct pool *pool;
    struct pool_piece *piece;
    uint64_t *ns; /* of each operation of the last round */
    uint64_t refused;
    uint64_t point;  /* of the stream: frees so far */
    uint64_t behind; /* frees that are not complete */
};

static void operation(struct run *r, const struct event *v)
{
    if (v->size != 0) {
        const struct pool_ask ask = {.size = v->size};
        r->refused += pool_alloc(r->pool, &ask, &r->piece[v->id], NULL) != 0;
        return;
    }
    if (r->piece[v->id].range != NULL) {
        r->point++;
        (void)pool_free(r->pool, &r->piece[v->id], 0, r->behind != 0 ? r->point : 0, NULL);
        if (r->behind != 0 && r->point > r->behind) {
            pool_advance(r->pool, 0, r->point - r->behind);
        }
    }
}

static struct pool_stats stats_of(struct pool *p)
{
    struct pool_stats s;
    pool_stats(p, &s);
    return s;
}

static void at_rest(struct report *rep, const char *name, const struct trace *t, uint64_t gib)
{
    struct run r = {.pool = make_pool(gib * GIB / 100 * 103),
                    .piece = bench_calloc(t->buffers, sizeof *r.piece),
                    .ns = bench_calloc(t->count, sizeof *r.ns)};
    uint64_t calls = 0;
    unsigned busy = 0;
    double first = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        calls = stats_of(r.pool).driver_calls;
        for (size_t i = 0; i < t->count; i++) {
            uint64_t from = clock_now_ns();
            operation(&r, &t->event[i]);
            r.ns[i] = clock_now_ns() - from;
        }
        calls = stats_of(r.pool).driver_calls - calls;
        busy = calls > 0 ? round + 1 : busy;
        first = round == 0 ? (double)calls : first;
    }
    qsort(r.ns, t->count, sizeof *r.ns, by_value);
    report_add(rep, "scale", name, "pool", "p50_ns", (double)percentile(r.ns, t->count, 50));
    report_add(rep, "scale", name, "pool", "p99_ns", (double)percentile(r.ns, t->count, 99));
    report_add(rep, "scale", name, "pool", "first_round_calls_a_gib", first / (double)gib);
    report_add(rep, "scale", name, "pool", "rounds_with_calls", busy);
    report_add(rep, "scale", name, "pool", "last_round_calls", (double)calls);
    report_add(rep, "scale", name, "pool", "refused", (double)r.refused);
    pool_destroy(r.pool);
    free(r.piece);
    free(r.ns);
}

static void pending(struct report *rep, const char *name, const struct trace *t, uint64_t behind)
{
    struct run r = {.pool = make_pool(t->peak / 97 * 100),
                    .piece = bench_calloc(t->buffers, sizeof *r.piece),
                    .behind = behind};
    uint64_t calls = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        calls = stats_of(r.pool).driver_calls;
        for (size_t i = 0; i < t->count; i++) {
            operation(&r, &t->event[i]);
        }
    }
    calls = stats_of(r.pool).driver_calls - calls;
    report_add(rep, "scale", name, "pool", behind == 8 ? "refused_8_behind" : "refused_32_behind",
               (double)r.refused);
    report_add(rep, "scale", name, "pool",
               behind == 8 ? "last_round_calls_8_behind" : "last_round_calls_32_behind",
               (double)calls);
    pool_destroy(r.pool);
    free(r.piece);
}

#define SMALL 24u /* objects beside each piece */

/* Each piece comes with objects of 256 bytes to 64 KiB, which end with it: as many rounds, the same
 * each time. */
static void small(struct report *rep, const char *name, const struct trace *t)
{
    struct run r = {.pool = make_pool(t->peak / 97 * 100),
                    .piece = bench_calloc(t->buffers, sizeof *r.piece)};
    struct pool_piece(*object)[SMALL] = bench_calloc(t->buffers, sizeof *object);
    uint64_t calls = 0;
    unsigned busy = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct load l;
        load_seed(&l, 7);
        calls = stats_of(r.pool).driver_calls;
        for (size_t i = 0; i < t->count; i++) {
            const struct event *v = &t->event[i];
            operation(&r, v);
            for (unsigned n = 0; n < SMALL; n++) {
                struct pool_piece *piece = &object[v->id][n];
                const struct pool_ask ask = {.size = load_log_uniform(&l, 256, 65536)};
                if (v->size == 0) {
                    (void)pool_free(r.pool, piece, 0, 0, NULL);
                } else {
                    r.refused += pool_alloc(r.pool, &ask, piece, NULL) != 0;
                }
            }
        }
        calls = stats_of(r.pool).driver_calls - calls;
        busy = calls > 0 ? round + 1 : busy;
    }
    report_add(rep, "scale", name, "pool", "with_small_refused", (double)r.refused);
    report_add(rep, "scale", name, "pool", "with_small_rounds_with_calls", busy);
    report_add(rep, "scale", name, "pool", "with_small_last_round_calls", (double)calls);
    pool_destroy(r.pool);
    free(r.piece);
    free(object);
}

/* Runs best_fit for comparison. It reuses freed addresses at once: no frees are pending. */
static void reference(struct report *rep, const char *name, const struct trace *t)
{
    struct policy p;
    uint64_t refused = 0;
    struct pool_piece *piece = bench_calloc(t->buffers, sizeof *piece);
    bool *live = bench_calloc(t->buffers, sizeof *live);
    policy_best_fit(t->peak / 97 * 100, &p);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (size_t i = 0; i < t->count; i++) {
            const struct event *v = &t->event[i];
            if (v->size != 0) {
                live[v->id] = p.alloc(p.self, v->size, &piece[v->id]);
                refused += !live[v->id];
            } else if (live[v->id]) {
                p.free(p.self, &piece[v->id]);
            }
        }
    }
    report_add(rep, "scale", name, p.name, "refused", (double)refused);
    p.destroy(p.self);
    free(piece);
    free(live);
}

static void all_of(const struct settings *s, struct report *rep, const char *name, struct trace *t)
{
    static const uint64_t sizes[] = {4, 16, 64, 128, 192};
    unsigned count = s->gib == SMOKE ? 1 : sizeof sizes / sizeof sizes[0];
    for (unsigned i = 0; i < count; i++) {
        char row[40];
        (void)snprintf(row, sizeof row, "%.24s, %u GiB", name, (unsigned)sizes[i]);
        trace_scale(t, sizes[i] * GIB);
        at_rest(rep, row, t, sizes[i]);
    }
    trace_scale(t, s->gib * GIB);
    pending(rep, name, t, 8);
    pending(rep, name, t, 32);
    small(rep, name, t);
    reference(rep, name, t);
    trace_finish(t);
}

struct folder {
    const struct settings *settings;
    struct report *report;
};

static void of_file(void *user, const char *name, struct trace *t)
{
    const struct folder *f = user;
    all_of(f->settings, f->report, name, t);
}

void part_scale(const struct settings *s, struct report *rep)
{
    for (uint64_t seed = 1; seed <= (s->gib == SMOKE ? 1 : 3); seed++) {
        char name[40];
        struct trace t;
        (void)snprintf(name, sizeof name, "made trace %u", (unsigned)seed);
        trace_make(&t, seed);
        all_of(s, rep, name, &t);
    }
    if (s->traces != NULL) {
        struct folder f = {s, rep};
        trace_folder(s->traces, of_file, &f);
    }
}
