#include <stdio.h>
#include <stdlib.h>

#include "bench/pool/load.h"
#include "bench/pool/parts.h"
#include "bench/pool/policy.h"
#include "common/clock.h"

#define KIB        UINT64_C(1024)
#define LIMIT      (UINT64_C(1) << 40)
#define DIVIDE     64u /* sizes for malloc are divided by this to fit into host memory */
#define CACHE_LINE 64u

static const struct policy_options all = {
    .limit = LIMIT, .limit_others = UINT64_MAX, .divide = DIVIDE};

/* ---- the clock --------------------------------------------------------------------------------*/

#if defined(__x86_64__)
/* The fence keeps the measured code between the two readings. */
static inline uint64_t ticks(void)
{
    __builtin_ia32_lfence();
    return __builtin_ia32_rdtsc();
}
#else
static inline uint64_t ticks(void)
{
    return clock_now_ns();
}
#endif

static double ns_per_tick(void)
{
    uint64_t from = clock_now_ns();
    uint64_t first = ticks();
    while (clock_now_ns() - from < 20000000u) {
    }
    return (double)(clock_now_ns() - from) / (double)(ticks() - first);
}

static int by_value(const void *a, const void *b)
{
    const uint64_t *x = a;
    const uint64_t *y = b;
    return *x < *y ? -1 : *x > *y;
}

struct samples {
    uint64_t *value; /* ticks */
    uint64_t count;
    double ns;      /* of a tick */
    uint64_t clock; /* ticks: the least difference of two readings */
};

static void samples_init(struct samples *s, uint64_t room)
{
    s->value = bench_calloc(room, sizeof *s->value);
    s->count = 0;
    s->ns = ns_per_tick();
    s->clock = UINT64_MAX;
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t from = ticks();
        uint64_t took = ticks() - from;
        s->clock = took < s->clock ? took : s->clock;
    }
}

static void samples_add(struct samples *s, uint64_t from, uint64_t to)
{
    s->value[s->count++] = to - from > s->clock ? to - from - s->clock : 0;
}

static void samples_tell(struct samples *s, struct report *r, const char *name, const char *policy,
                         const char *p50, const char *p99)
{
    size_t half = s->count / 2;
    size_t last = s->count * 99 / 100;
    qsort(s->value, s->count, sizeof *s->value, by_value);
    report_add(r, "latency", name, policy, p50, (double)s->value[half] * s->ns);
    report_add(r, "latency", name, policy, p99, (double)s->value[last] * s->ns);
    s->count = 0;
}

/* ---- latency ----------------------------------------------------------------------------------*/

struct latency {
    struct samples alloc, free;
    struct pool_piece *piece;
};

static uint64_t some_size(struct load *l)
{
    return load_log_uniform(l, 256, 64 * KIB);
}

static void latency_of(struct latency *t, const struct policy *p, uint64_t live, uint64_t samples)
{
    struct load l;
    load_seed(&l, live);
    for (uint64_t i = 0; i < live; i++) {
        (void)p->alloc(p->self, some_size(&l), 0, &t->piece[i]);
    }
    uint64_t warm = 2 * live + 1000;
    for (uint64_t i = 0; i < warm; i++) {
        struct pool_piece *piece = &t->piece[load_random(&l, live)];
        p->free(p->self, piece, 0, 0);
        (void)p->alloc(p->self, some_size(&l), 0, piece);
    }
    for (uint64_t i = 0; i < samples; i++) {
        struct pool_piece *piece = &t->piece[load_random(&l, live)];
        uint64_t size = some_size(&l);
        uint64_t a = ticks();
        p->free(p->self, piece, 0, 0);
        uint64_t b = ticks();
        (void)p->alloc(p->self, size, 0, piece);
        uint64_t c = ticks();
        samples_add(&t->free, a, b);
        samples_add(&t->alloc, b, c);
    }
    for (uint64_t i = 0; i < live; i++) {
        p->free(p->self, &t->piece[i], 0, 0);
    }
}

#define REFUSALS 100u

/* Requests for all of the memory, while two thirds of the pieces are alive. */
static void refusals_of(struct latency *t, const struct policy *p, uint64_t live)
{
    struct load l;
    load_seed(&l, live);
    for (uint64_t i = 0; i < live; i++) {
        (void)p->alloc(p->self, some_size(&l), 0, &t->piece[i]);
    }
    for (uint64_t i = 0; i < live; i += 3) {
        p->free(p->self, &t->piece[i], 0, 0);
    }
    for (unsigned n = 0; n < REFUSALS; n++) {
        struct pool_piece piece;
        uint64_t a = ticks();
        (void)p->alloc(p->self, LIMIT, 0, &piece);
        samples_add(&t->alloc, a, ticks());
    }
}

/* Cache lines that no bookkeeping on the host can avoid: of the caller's piece, its block, its slab
 * and the preceding slab of a list. They are read one after another: each has the next's address.
 */
#define FLOOR_LINES 4u

static void latency_floor(struct latency *t, uint64_t live, uint64_t samples)
{
    uint64_t lines = live * (sizeof(struct pool_piece) + 24) / CACHE_LINE + FLOOR_LINES;
    uint64_t *table = bench_calloc(lines, CACHE_LINE);
    struct load l;
    load_seed(&l, live);
    for (uint64_t i = 0; i < lines; i++) {
        table[i * (CACHE_LINE / 8)] = load_random(&l, lines);
    }
    for (uint64_t i = 0; i < samples + 1000; i++) {
        uint64_t at = load_random(&l, lines);
        uint64_t a = ticks();
        for (unsigned n = 0; n < FLOOR_LINES; n++) {
            uint64_t *line = &table[at * (CACHE_LINE / 8)];
            at = *line;
            line[1] = i;
        }
        uint64_t b = ticks();
        table[2] = at; /* a use of the result, so that the walk is not optimised away */
        if (i >= 1000) {
            samples_add(&t->free, a, b);
        }
    }
    free(table);
}

void part_latency(const struct settings *s, struct report *r)
{
    static const uint64_t curve[] = {10, 1000, 10000, 100000, 1000000};
    struct latency t;
    samples_init(&t.alloc, s->samples);
    samples_init(&t.free, s->samples);
    t.piece = bench_calloc(s->live_max, sizeof *t.piece);
    report_add(r, "latency", "clock", "-", "ns", (double)t.free.clock * t.free.ns);
    for (unsigned i = 0; i < sizeof curve / sizeof curve[0] && curve[i] <= s->live_max; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "%llu live", (unsigned long long)curve[i]);
        for (enum policy_kind kind = POLICY_POOL; kind <= POLICY_MALLOC; kind++) {
            struct policy p;
            policy_create(kind, &all, &p);
            latency_of(&t, &p, curve[i], s->samples);
            samples_tell(&t.alloc, r, name, p.name, "alloc_p50_ns", "alloc_p99_ns");
            samples_tell(&t.free, r, name, p.name, "free_p50_ns", "free_p99_ns");
            p.destroy(p.self);
        }
        struct policy pool;
        policy_create(POLICY_POOL, &all, &pool);
        refusals_of(&t, &pool, curve[i]);
        samples_tell(&t.alloc, r, name, pool.name, "refused_p50_ns", "refused_p99_ns");
        pool.destroy(pool.self);
        latency_floor(&t, curve[i], s->samples);
        samples_tell(&t.free, r, name, "floor", "p50_ns", "p99_ns");
    }
    free(t.piece);
    free(t.alloc.value);
    free(t.free.value);
}

/* ---- pairs ------------------------------------------------------------------------------------*/

void part_pairs(const struct settings *s, struct report *r)
{
    static const uint64_t size[] = {1000, 50000, 300000, 5000000};
    for (unsigned i = 0; i < sizeof size / sizeof size[0]; i++) {
        char name[40];
        (void)snprintf(name, sizeof name, "%llu bytes", (unsigned long long)size[i]);
        for (enum policy_kind kind = POLICY_POOL; kind <= POLICY_MALLOC; kind++) {
            struct policy p;
            struct pool_piece piece = {.range = NULL};
            policy_create(kind, &all, &p);
            uint64_t from = clock_now_ns();
            for (uint64_t n = 0; n < s->pairs; n++) {
                (void)p.alloc(p.self, size[i], 0, &piece);
                p.free(p.self, &piece, 0, 0);
            }
            double ns = (double)(clock_now_ns() - from) / (double)s->pairs;
            report_add(r, "pairs", name, p.name, "pair_ns", ns);
            report_add(r, "pairs", name, p.name, "million_pairs_a_second", 1000.0 / ns);
            p.destroy(p.self);
        }
    }
}
