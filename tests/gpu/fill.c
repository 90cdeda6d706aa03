/* What a fill of device memory gets by the length of its pattern. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/gpu/items.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/record.h"

#define MIB (UINT64_C(1) << 20)

static double rate(struct bench *b, struct backend_stream *s, struct backend_block *block,
                   uint64_t bytes, size_t pattern_size)
{
    static const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
    struct samples times;
    samples_init(&times, record_effort(3, 7));
    for (unsigned i = 0; i < times.room; i++) {
        uint64_t begin_ns = 0;
        uint64_t end_ns = 0;
        must_ok(
            b->b->stream->fill(s, (struct backend_ref){block, 0}, pattern, pattern_size, bytes, e));
        bench_settle(b, bench_mark(b, s), &begin_ns, &end_ns);
        samples_add(&times, end_ns - begin_ns);
    }
    double gb_per_s = (double)bytes / (samples_us(&times, 0.5) * 1e3);
    samples_finish(&times);
    return gb_per_s;
}

void item_fill(void)
{
    static const size_t patterns[] = {1, 4, 8, 16};
    struct bench b;
    struct record r;
    struct backend_block *block = NULL;
    bench_open(&b, "");
    struct backend_stream *s = bench_stream(&b);
    uint64_t bytes = record_is_double() ? 16 * MIB : b.info.memory / 8 / MIB * MIB;
    bytes = bytes < 1024 * MIB ? bytes : 1024 * MIB;
    must_ok(b.b->memory->alloc(b.device, bytes, &block, e));
    record_begin(&r, "fill");
    record_note(&r, "%llu MiB of device memory by the length of the pattern, by recorded times",
                (unsigned long long)(bytes / MIB));
    for (size_t i = 0; i < sizeof patterns / sizeof patterns[0]; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "%zu bytes", patterns[i]);
        record_figure(&r, name, rate(&b, s, block, bytes, patterns[i]), "GB/s");
    }
    (void)record_end(&r);
    b.b->memory->free(b.device, block);
    b.b->stream->destroy(s);
    bench_close(&b);
}
