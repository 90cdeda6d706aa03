/* Copies by the back end, from and to shared memory that was registered as the worker registers
 * arenas and staging memory, against pinned memory of the driver's own, in turns. Shared memory
 * comes in pages of 4 KiB on most systems; what that costs, anonymous memory in huge pages beside
 * it shows. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/clock.h"
#include "common/memfd.h"
#include "tests/gpu/direct.h"
#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

#define MIB       (UINT64_C(1) << 20)
#define HUGE_PAGE (2 * MIB)

struct copies {
    struct direct d;
    struct bench b;
    struct backend_stream *stream;
    struct backend_block *block;
    struct memfd shared;
    void *huge; /* in huge pages, where the system has them */
    void *pinned;
    CUdeviceptr memory;
    uint64_t size;
    unsigned repeats; /* copies between two looks at the clock */
};

static uint64_t plain(struct copies *c, bool to_device)
{
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < c->repeats; i++) {
        must(to_device ? c->d.cu.MemcpyHtoDAsync(c->memory, c->pinned, c->size, c->d.stream)
                       : c->d.cu.MemcpyDtoHAsync(c->pinned, c->memory, c->size, c->d.stream));
    }
    direct_wait(&c->d);
    return clock_now_ns() - begin_ns;
}

static uint64_t ours(struct copies *c, void *host, bool to_device)
{
    const struct backend_ref at = {c->block, 0};
    const struct backend_stream_ops *ops = c->b.b->stream;
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < c->repeats; i++) {
        must_ok(to_device ? ops->write(c->stream, at, host, c->size, e)
                          : ops->read(c->stream, host, at, c->size, e));
    }
    bench_drain(&c->b, c->stream);
    return clock_now_ns() - begin_ns;
}

/* GB/s at the median of the rounds, in which they take turns. */
static void compare(struct copies *c, bool to_device, struct record *r)
{
    struct samples a;
    struct samples b;
    struct samples huge;
    unsigned rounds = record_effort(5, 15);
    samples_init(&a, rounds);
    samples_init(&b, rounds);
    samples_init(&huge, rounds);
    (void)plain(c, to_device);
    (void)ours(c, c->shared.data, to_device);
    (void)ours(c, c->huge, to_device);
    for (unsigned i = 0; i < rounds; i++) {
        samples_add(&a, plain(c, to_device));
        samples_add(&b, ours(c, c->shared.data, to_device));
        samples_add(&huge, ours(c, c->huge, to_device));
    }
    double bytes = (double)c->size * c->repeats;
    double plain_rate = bytes / (samples_us(&a, 0.5) * 1e3);
    double our_rate = bytes / (samples_us(&b, 0.5) * 1e3);
    record_figure(r, "driver, pinned", plain_rate, "GB/s");
    record_figure(r, "back end", our_rate, "GB/s");
    record_figure(r, "back end, huge pages", bytes / (samples_us(&huge, 0.5) * 1e3), "GB/s");
    /* of small copies most of the time is the call's */
    enum record_bound bound = c->size >= 4 * MIB ? RECORD_AT_LEAST : RECORD_FREE;
    record_target(r, "share", our_rate / plain_rate, "", bound, 0.95);
    samples_finish(&a);
    samples_finish(&b);
    samples_finish(&huge);
}

static void one_size(struct copies *c, uint64_t size)
{
    c->size = size;
    c->repeats = size >= 16 * MIB ? 4 : 64;
    for (unsigned to = 0; to < 2; to++) {
        struct record r;
        char name[64];
        (void)snprintf(name, sizeof name, "copy %s, %llu KiB", to ? "to device" : "to host",
                       (unsigned long long)(size >> 10));
        record_begin(&r, name);
        record_note(&r,
                    "share: the back end's rate with registered shared memory, as arenas are, of "
                    "the driver's with pinned memory; huge pages: the same with those");
        compare(c, to != 0, &r);
        (void)record_end(&r);
    }
}

/* Touched and registered. */
static void host_open(struct copies *c, uint64_t bytes)
{
    must_ok(memfd_create_sealed("gpu-copies", bytes, &c->shared, e));
    c->huge = aligned_alloc(HUGE_PAGE, bytes);
    if (c->huge == NULL) {
        perror("memory to copy");
        exit(EXIT_FAILURE);
    }
    (void)madvise(c->huge, bytes, MADV_HUGEPAGE); /* a wish */
    memset(c->huge, 1, bytes);
    memset(c->shared.data, 1, bytes);
    must_ok(c->b.b->memory->register_host(c->b.device, c->huge, bytes, true, e));
    must_ok(c->b.b->memory->register_host(c->b.device, c->shared.data, bytes, true, e));
}

static void host_close(struct copies *c, uint64_t bytes)
{
    c->b.b->memory->unregister_host(c->b.device, c->shared.data, bytes);
    c->b.b->memory->unregister_host(c->b.device, c->huge, bytes);
    memfd_finish(&c->shared);
    free(c->huge);
}

void item_copies(void)
{
    static const uint64_t sizes[] = {256 * MIB, 4 * MIB, MIB / 16};
    struct copies c;
    uint64_t largest = sizes[0];
    direct_open(&c.d);
    bench_open(&c.b, "");
    c.stream = bench_stream(&c.b);
    host_open(&c, largest);
    must_ok(c.b.b->memory->alloc(c.b.device, largest, &c.block, e));
    must(c.d.MemHostAlloc(&c.pinned, largest, 0));
    memset(c.pinned, 1, largest);
    must(c.d.cu.MemAlloc(&c.memory, largest));
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        one_size(&c, sizes[i]);
    }
    must(c.d.cu.MemFree(c.memory));
    must(c.d.MemFreeHost(c.pinned));
    c.b.b->memory->free(c.b.device, c.block);
    host_close(&c, largest);
    c.b.b->stream->destroy(c.stream);
    bench_close(&c.b);
    direct_close(&c.d);
}
