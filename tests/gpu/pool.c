/* The pool on real memory against the driver's own (cuMemAllocAsync), with the same requests in the
 * same order. The driver's pool is measured with its default, which gives memory back at each
 * synchronisation, and with a threshold that keeps all of it. */
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "daemon/worker/memory/memory.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

#define LIVE   512u /* pieces that live at once */
#define SYNC   64u  /* requests between two synchronisations */
#define BUDGET (UINT64_C(4) << 30)

/* One allocator. A slot holds its allocation. */
struct way {
    const char *name;
    void (*alloc)(struct way *w, unsigned slot, uint64_t bytes);
    void (*free)(struct way *w, unsigned slot);
    struct direct *d;
    struct memory *memory;
    struct memory_piece piece[LIVE];
    CUdeviceptr at[LIVE];
};

static void ours_alloc(struct way *w, unsigned slot, uint64_t bytes)
{
    const struct memory_ask ask = {.size = bytes};
    must_ok(memory_alloc(w->memory, &ask, &w->piece[slot], e));
    memory_cleaned(&w->piece[slot]); /* there is one tenant */
}

static void ours_free(struct way *w, unsigned slot)
{
    memory_free(w->memory, &w->piece[slot]);
}

static void driver_alloc(struct way *w, unsigned slot, uint64_t bytes)
{
    must(w->d->MemAllocAsync(&w->at[slot], bytes, w->d->stream));
}

static void driver_free(struct way *w, unsigned slot)
{
    must(w->d->MemFreeAsync(w->at[slot], w->d->stream));
}

static uint64_t next(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

/* 256 bytes to 8 MiB, each doubling as likely as the others. */
static uint64_t size_of(uint64_t *state)
{
    uint64_t base = UINT64_C(256) << next(state) % 15;
    return base + next(state) % base;
}

/* Fills the slots, then replaces pieces at random; ns of a pair (free and alloc) in that phase. */
static double churn(struct way *w, unsigned pairs)
{
    uint64_t state = 7;
    for (unsigned i = 0; i < LIVE; i++) {
        w->alloc(w, i, size_of(&state));
    }
    direct_wait(w->d);
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < pairs; i++) {
        unsigned slot = (unsigned)(next(&state) % LIVE);
        w->free(w, slot);
        w->alloc(w, slot, size_of(&state));
        if (i % SYNC == SYNC - 1) {
            direct_wait(w->d);
        }
    }
    uint64_t spent_ns = clock_now_ns() - begin_ns;
    for (unsigned i = 0; i < LIVE; i++) {
        w->free(w, i);
    }
    direct_wait(w->d);
    return (double)spent_ns / pairs;
}

/* One piece, had and given back. */
static double same(struct way *w, uint64_t bytes, unsigned pairs)
{
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < pairs; i++) {
        w->alloc(w, 0, bytes);
        w->free(w, 0);
        if (i % SYNC == SYNC - 1) {
            direct_wait(w->d);
        }
    }
    uint64_t spent_ns = clock_now_ns() - begin_ns;
    return (double)spent_ns / pairs;
}

static void figure(struct record *r, const struct way *w, const char *what, double ns)
{
    char name[64];
    (void)snprintf(name, sizeof name, "%s, %s", what, w->name);
    record_figure(r, name, ns / 1e3, "us");
}

static void measure(struct way *w, struct record *r)
{
    unsigned pairs = record_effort(2000, 20000);
    figure(r, w, "churn, first", churn(w, pairs));
    figure(r, w, "churn", churn(w, pairs));
    figure(r, w, "64 KiB", same(w, 64 << 10, pairs));
    figure(r, w, "4 MiB", same(w, 4 << 20, pairs));
}

static void driver_keeps(struct direct *d, uint64_t bytes)
{
    CUmemoryPool pool = NULL;
    cuuint64_t threshold = bytes;
    must(d->DeviceGetDefaultMemPool(&pool, d->device));
    must(d->MemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &threshold));
    must(d->MemPoolTrimTo(pool, 0));
}

void item_pool(void)
{
    static struct way ours = {.name = "gpud", .alloc = ours_alloc, .free = ours_free};
    static struct way driver = {.alloc = driver_alloc, .free = driver_free};
    struct direct d;
    struct bench b;
    struct memory memory;
    struct record r;
    direct_open(&d);
    bench_open(&b, "");
    uint64_t limit = b.info.memory / 2 < BUDGET ? b.info.memory / 2 : BUDGET;
    struct backend_stream *stream[3]; /* a job's, for service, for new memory */
    for (unsigned i = 0; i < 3; i++) {
        must_ok(b.b->stream->create(b.device, 0, &stream[i], e));
    }
    const struct memory_device on = {
        .b = b.b, .d = b.device, .stream = stream, .streams = 2, .scrub = stream[2]};
    must_ok(memory_init(&memory, &on, limit, b.info.max_alloc, e));
    ours.d = driver.d = &d;
    ours.memory = &memory;
    record_begin(&r, "pool");
    record_note(&r,
                "a pair is one free and one allocation; churn: %u pieces of 256 B to 8 MiB, "
                "a synchronisation every %u pairs; first: with an empty pool",
                LIVE, SYNC);
    measure(&ours, &r);
    driver.name = "driver";
    driver_keeps(&d, 0);
    measure(&driver, &r);
    driver.name = "driver that keeps";
    driver_keeps(&d, UINT64_MAX);
    measure(&driver, &r);
    struct pool_stats stats;
    pool_stats(memory.pool, &stats);
    record_figure(&r, "pages moved by gpud's", (double)stats.remaps, "");
    (void)record_end(&r);
    driver_keeps(&d, 0);
    memory_finish(&memory);
    for (unsigned i = 0; i < 3; i++) {
        b.b->stream->destroy(stream[i]);
    }
    bench_close(&b);
    direct_close(&d);
}
