/*
 * bench_inprocess: the same kernels, buffers and steps through gpud and directly through the
 * vendor's API in this process, taken in turns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/plans.h"
#include "bench/common/sides.h"
#include "common/clock.h"

struct load {
    const char *name;
    enum plans which;
    uint32_t n;
    uint32_t small; /* in a smoke test */
    unsigned runs;
};

static const struct load loads[] = {
    {"empty kernel", PLANS_EMPTY, 1, 1, 1000},
    {"saxpy 1M", PLANS_SAXPY, 1u << 20, 4096, 60},
    {"sum 1M", PLANS_SUM, 1u << 20, 5000, 60},
    {"gemm 256", PLANS_GEMM, 256, 32, 10},
    {"five steps 256K", PLANS_PIPELINE, 1u << 18, 4096, 40},
};

/* Microseconds of a run with so many at once. */
static double timed(const struct side *s, struct work *w, unsigned runs, unsigned outstanding)
{
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < runs + outstanding; i++) {
        if (i >= outstanding) {
            s->kind->take(w, i % outstanding);
        }
        if (i < runs) {
            s->kind->begin(w, i % outstanding);
        }
    }
    return (double)(clock_now_ns() - begin_ns) / 1e3 / runs;
}

static void verify(const struct side *s, struct work *w, const struct planned *p, uint64_t runs)
{
    float *result = s->kind->look(w);
    if (!planned_right(p, result, runs)) {
        bench_die("%s: %s gave a wrong result", s->name, p->plan.name);
    }
    free(result);
}

static void measure(struct bench *b, struct side *sides, unsigned count, const char *part,
                    const struct load *l)
{
    struct planned p;
    struct work *work[2];
    char what[2][FIGURE_TEXT];
    double alone[2] = {0, 0};
    uint64_t runs = 0;
    unsigned each = bench_scale(b, l->runs, 4u);
    planned_init(&p, l->which, bench_scale(b, l->n, l->small));
    for (unsigned i = 0; i < count; i++) {
        work[i] = sides[i].kind->prepare(sides[i].engine, &p.plan);
        (void)timed(&sides[i], work[i], 4, 2);
        (void)snprintf(what[i], sizeof what[i], "%s, %s", l->name, sides[i].name);
    }
    runs += 4;
    for (unsigned k = 0; k < b->repeat; k++) {
        for (unsigned i = 0; i < count; i++) {
            double one = timed(&sides[i], work[i], each, 1);
            double eight = timed(&sides[i], work[i], each, 8);
            report_add(&b->report, part, what[i], "one at a time", "us", one);
            report_add(&b->report, part, what[i], "8 at once", "us", eight);
            alone[i] = one;
        }
        if (count == 2) {
            report_add(&b->report, part, what[0], "added", "us", alone[0] - alone[1]);
        }
        runs += 2 * (uint64_t)each;
    }
    for (unsigned i = 0; i < count; i++) {
        verify(&sides[i], work[i], &p, runs);
        sides[i].kind->release(work[i]);
    }
    if (count == 2) {
        report_against(&b->report, part, what[0], "one at a time", what[1]);
        report_against(&b->report, part, what[0], "8 at once", what[1]);
    }
    planned_finish(&p);
}

static double once(const struct side *s, struct work *w)
{
    uint64_t begin_ns = clock_now_ns();
    s->kind->begin(w, 0);
    s->kind->take(w, 0);
    return (double)(clock_now_ns() - begin_ns) / 1e3;
}

/* An empty kernel after each of the vendor's that went through more memory than caches near a
 * processor hold: what a trip costs where nothing that it needs is in them. */
static void measure_cold(struct bench *b, struct side *sides, const char *part)
{
    struct planned empty, sweep;
    struct work *work[2], *sweeping;
    unsigned each = bench_scale(b, 100u, 4u);
    planned_init(&empty, PLANS_EMPTY, 1);
    planned_init(&sweep, PLANS_SAXPY, bench_scale(b, 1u << 20, 4096u));
    sweeping = sides[1].kind->prepare(sides[1].engine, &sweep.plan);
    for (unsigned i = 0; i < 2; i++) {
        work[i] = sides[i].kind->prepare(sides[i].engine, &empty.plan);
        (void)once(&sides[i], work[i]);
    }
    for (unsigned k = 0; k < b->repeat; k++) {
        double median[2];
        for (unsigned i = 0; i < 2; i++) {
            struct samples times;
            samples_init(&times);
            for (unsigned n = 0; n < each; n++) {
                (void)once(&sides[1], sweeping);
                samples_add(&times, once(&sides[i], work[i]));
            }
            median[i] = samples_median(&times);
            samples_finish(&times);
        }
        report_add(&b->report, part, "empty kernel after saxpy, gpud", "one at a time", "us",
                   median[0]);
        report_add(&b->report, part, "empty kernel after saxpy, gpud", "added", "us",
                   median[0] - median[1]);
    }
    for (unsigned i = 0; i < 2; i++) {
        sides[i].kind->release(work[i]);
    }
    sides[1].kind->release(sweeping);
    planned_finish(&sweep);
    planned_finish(&empty);
}

static void measure_all(struct bench *b, struct side *sides, unsigned count, const struct gpud *g,
                        enum placement place, const char *lane)
{
    char part[FIGURE_TEXT];
    (void)snprintf(part, sizeof part, "%s, %s lane", placement_name(place), lane);
    if (!bench_wants(b, part)) {
        return;
    }
    machine_pin_client(place, getpid());
    gpud_place(g, place);
    for (unsigned i = 0; i < sizeof loads / sizeof loads[0]; i++) {
        measure(b, sides, count, part, &loads[i]);
    }
    if (count == 2) {
        measure_cold(b, sides, part);
    }
    machine_unpin(getpid());
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    bench_begin(&b, "inprocess",
                "The same kernels, buffers and steps through gpud and directly in one process.", 9,
                argc, argv);
    bench_gpud(&b, &g, NULL);
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        (void)setenv("GPUD_LANE", *lane, 1);
        struct side sides[2];
        unsigned count = sides_open(sides, &g, &b.report);
        measure_all(&b, sides, count, &g, PLACE_ONE, *lane);
        measure_all(&b, sides, count, &g, PLACE_ANY, *lane);
        sides_close(sides, count);
    }
    gpud_stop(&g);
    return bench_end(&b);
}
