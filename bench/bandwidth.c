/*
 * bench_bandwidth: copies between this process' memory and a device, 4 KiB to 256 MiB: gpud_write
 * and gpud_read against the vendor's API in this process. Plain memory is compared with plain
 * memory, an arena with the memory of the vendor's fastest copies (CUDA: registered).
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/plan.h"
#include "common/clock.h"

enum { PLAIN, ARENA, DIRECT_PLAIN, DIRECT_BEST, SIDES };
#define OURS 2u /* the first sides are gpud's; side i is compared with side i + OURS */

struct side {
    const struct engine_kind *kind;
    struct engine *engine;
    bool shared; /* copies use memory of host_alloc, else plain memory */
    struct engine_memory *memory;
    uint8_t *from;
    uint8_t *to;
    const char *name;
};

static uint8_t *host_memory(const struct side *s, size_t bytes, uint8_t seed)
{
    uint8_t *data = s->shared ? s->kind->host_alloc(s->engine, bytes) : malloc(bytes);
    if (data == NULL) {
        bench_die("no memory for %zu bytes", bytes);
    }
    for (size_t i = 0; i < bytes; i++) {
        data[i] =
            (uint8_t)(seed + i + (i >> 12)); /* a page's first access costs more than a copy */
    }
    return data;
}

/* GB/s of `count` copies in a row. */
static double rate_of(const struct side *s, bool in, size_t bytes, unsigned count)
{
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < count; i++) {
        if (in) {
            s->kind->write(s->memory, s->from, bytes);
        } else {
            s->kind->read(s->memory, s->to, bytes);
        }
    }
    return (double)bytes * count / (double)(clock_now_ns() - begin_ns);
}

static void size_name(char *out, size_t size, size_t bytes)
{
    (void)snprintf(out, size, bytes >= 1048576 ? "%zu MiB" : "%zu KiB",
                   bytes >= 1048576 ? bytes >> 20 : bytes >> 10);
}

static void side_begin(struct side *s, size_t bytes)
{
    s->from = host_memory(s, bytes, 1);
    s->to = host_memory(s, bytes, 2);
    s->memory = s->kind->alloc(s->engine, bytes);
    s->kind->write(s->memory, s->from, bytes);
    memset(s->to, 0, bytes);
    s->kind->read(s->memory, s->to, bytes);
    if (memcmp(s->from, s->to, bytes) != 0) {
        bench_die("%s: %zu bytes came back changed", s->name, bytes);
    }
}

static void side_end(struct side *s)
{
    s->kind->free(s->memory);
    if (s->shared) {
        s->kind->host_free(s->engine, s->from);
        s->kind->host_free(s->engine, s->to);
    } else {
        free(s->from);
        free(s->to);
    }
}

static void measure(struct bench *b, struct side *sides, unsigned count, const char *part,
                    size_t bytes)
{
    char what[SIDES][FIGURE_TEXT];
    char size[16];
    size_t budget = (size_t)bench_scale(b, 128u, 1u) << 20;
    unsigned times = bytes >= budget ? 1 : budget / bytes > 200 ? 200 : (unsigned)(budget / bytes);
    size_name(size, sizeof size, bytes);
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(what[i], sizeof what[i], "%s, %s", size, sides[i].name);
        side_begin(&sides[i], bytes);
    }
    for (unsigned k = 0; k < b->repeat; k++) {
        for (unsigned i = 0; i < count; i++) {
            report_add(&b->report, part, what[i], "in", "GB/s",
                       rate_of(&sides[i], true, bytes, times));
            report_add(&b->report, part, what[i], "out", "GB/s",
                       rate_of(&sides[i], false, bytes, times));
        }
    }
    for (unsigned i = 0; i < count; i++) {
        side_end(&sides[i]);
    }
    for (unsigned i = 0; count == SIDES && i < OURS; i++) {
        report_against(&b->report, part, what[i], "in", what[i + OURS]);
        report_against(&b->report, part, what[i], "out", what[i + OURS]);
    }
}

static void measure_all(struct bench *b, struct side *sides, unsigned count, const struct gpud *g,
                        enum placement place)
{
    size_t last = bench_scale(b, (size_t)256 << 20, (size_t)1 << 20);
    if (!bench_wants(b, placement_name(place))) {
        return;
    }
    machine_pin_client(place, getpid());
    gpud_place(g, place);
    for (size_t bytes = 4096; bytes <= last; bytes *= 4) {
        measure(b, sides, count, placement_name(place), bytes);
    }
    machine_unpin(getpid());
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    char best[FIGURE_TEXT / 2];
    const char *why = NULL;
    bench_begin(
        &b, "bandwidth",
        "Copies of 4 KiB to 256 MiB to a device and back: gpud_write and gpud_read against\n"
        "the vendor's API in this process.",
        5, argc, argv);
    bench_gpud(&b, &g, NULL);
    (void)snprintf(best, sizeof best, "%s, best memory", g.backend);
    struct side sides[SIDES] = {
        [PLAIN] = {.kind = &engine_gpud, .name = "gpud"},
        [ARENA] = {.kind = &engine_gpud, .shared = true, .name = "gpud, arena"},
        [DIRECT_PLAIN] = {.name = g.backend},
        [DIRECT_BEST] = {.shared = true, .name = best}};
    sides[PLAIN].engine = engine_gpud.open(g.url, &why);
    sides[ARENA].engine = sides[PLAIN].engine;
    sides[DIRECT_PLAIN].engine = engine_direct_open(g.backend, &sides[DIRECT_PLAIN].kind, &why);
    sides[DIRECT_BEST].engine = sides[DIRECT_PLAIN].engine;
    sides[DIRECT_BEST].kind = sides[DIRECT_PLAIN].kind;
    unsigned count = sides[DIRECT_PLAIN].engine != NULL ? SIDES : OURS;
    if (count < SIDES) {
        report_left_out(&b.report, "in process", why);
    }
    measure_all(&b, sides, count, &g, PLACE_ONE);
    measure_all(&b, sides, count, &g, PLACE_ANY);
    engine_gpud.close(sides[PLAIN].engine);
    if (count == SIDES) {
        sides[DIRECT_PLAIN].kind->close(sides[DIRECT_PLAIN].engine);
    }
    gpud_stop(&g);
    return bench_end(&b);
}
