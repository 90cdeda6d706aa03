/*
 * bench_inprocess: the same kernels, buffers and steps, alternately through gpud and through the
 * vendor's API in this process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/plans.h"
#include "bench/common/sides.h"
#include "bench/common/trial.h"
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

/* Microseconds of a run, with `outstanding` runs at a time. */
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
    float *result = s->kind->fetch(w);
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

/* A trip of ECHO_BYTES through two processes and back, by sockets only. */
static double once_relayed(struct echo *c)
{
    uint64_t begin_ns = clock_now_ns();
    echo_relay.send(c, 0);
    echo_relay.take(c, 0);
    return (double)(clock_now_ns() - begin_ns) / 1e3;
}

/* Trips with cold caches: each is measured after a kernel of the vendor's API that reads more
 * memory than the processor's caches can store. */
struct cold {
    struct side *sides;
    struct work *work[2]; /* an empty kernel of each side */
    struct work *sweep;   /* of the vendor's */
    struct echo *relay;
};

enum { COLD_GPUD, COLD_VENDOR, COLD_RELAY, COLDS };

static double once_cold(const struct cold *c, unsigned what)
{
    (void)once(&c->sides[1], c->sweep);
    return what == COLD_RELAY ? once_relayed(c->relay) : once(&c->sides[what], c->work[what]);
}

static void add_cold(struct bench *b, const struct cold *c, const char *part)
{
    unsigned each = bench_scale(b, 100u, 4u);
    double median[COLDS];
    for (unsigned what = 0; what < COLDS; what++) {
        struct samples times;
        samples_init(&times);
        for (unsigned n = 0; n < each; n++) {
            samples_add(&times, once_cold(c, what));
        }
        median[what] = samples_median(&times);
        samples_finish(&times);
    }
    double added = median[COLD_GPUD] - median[COLD_VENDOR];
    report_add(&b->report, part, "empty kernel after saxpy, gpud", "one at a time", "us",
               median[COLD_GPUD]);
    report_add(&b->report, part, "empty kernel after saxpy, gpud", "added", "us", added);
    report_add(&b->report, part, "empty kernel after saxpy, gpud", "added over relay", "x",
               added / median[COLD_RELAY]);
    report_add(&b->report, part, "relay after saxpy", "one at a time", "us", median[COLD_RELAY]);
}

/* Measures the cost of a trip with cold caches, and of the same way by sockets only. */
static void measure_cold(struct bench *b, struct side *sides, enum placement place,
                         const char *part, struct server *relay)
{
    struct planned empty, sweep;
    struct cold c = {.sides = sides};
    machine_pin_server(place, relay->pid); /* before it forks */
    c.relay = echo_relay.open(relay->address, 1);
    planned_init(&empty, PLANS_EMPTY, 1);
    planned_init(&sweep, PLANS_SAXPY, bench_scale(b, 1u << 20, 4096u));
    c.sweep = sides[1].kind->prepare(sides[1].engine, &sweep.plan);
    for (unsigned i = 0; i < 2; i++) {
        c.work[i] = sides[i].kind->prepare(sides[i].engine, &empty.plan);
        (void)once(&sides[i], c.work[i]);
    }
    for (unsigned k = 0; k < b->repeat; k++) {
        add_cold(b, &c, part);
    }
    for (unsigned i = 0; i < 2; i++) {
        sides[i].kind->release(c.work[i]);
    }
    sides[1].kind->release(c.sweep);
    echo_relay.close(c.relay);
    machine_unpin(relay->pid);
    planned_finish(&sweep);
    planned_finish(&empty);
}

static void measure_all(struct bench *b, struct side *sides, unsigned count, const struct gpud *g,
                        enum placement place, const char *lane, struct server *relay)
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
        measure_cold(b, sides, place, part, relay);
    }
    machine_unpin(getpid());
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    struct server relay;
    bench_begin(&b, "inprocess",
                "The same kernels, buffers and steps through gpud and directly in one process.", 9,
                argc, argv);
    bench_gpud(&b, &g, NULL);
    server_start(&relay, &echo_relay, g.dir);
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        (void)setenv("GPUD_LANE", *lane, 1);
        struct side sides[2];
        unsigned count = sides_open(sides, &g, &b.report);
        measure_all(&b, sides, count, &g, PLACE_ONE, *lane, &relay);
        measure_all(&b, sides, count, &g, PLACE_ANY, *lane, &relay);
        sides_close(sides, count);
    }
    server_stop(&relay);
    gpud_stop(&g);
    return bench_end(&b);
}
