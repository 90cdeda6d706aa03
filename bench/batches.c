/*
 * bench_batches: many tiny kernels from one session and from many. Jobs that wait at the same time
 * run as one batch of launches. The same kernels are timed one by one, with several of each session
 * in flight, and again with a coalescing window; for comparison, by the vendor's API in this
 * process.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/plans.h"
#include "common/clock.h"

#define SESSIONS_MAX 16u
#define UNDER_WAY    8u
#define WINDOW_US    "200"

/* Sessions of one engine that run the same plan. */
struct crowd {
    const struct engine_kind *kind;
    struct engine *engine[SESSIONS_MAX];
    struct work *work[SESSIONS_MAX];
    unsigned count;
    const char *name;
};

static void crowd_open(struct crowd *c, const char *url, const struct planned *p)
{
    const char *why = NULL;
    for (unsigned i = 0; i < c->count; i++) {
        c->engine[i] = c->kind->open(url, &why);
        if (c->engine[i] == NULL) {
            bench_die("%s: %s", c->name, why);
        }
        c->work[i] = c->kind->prepare(c->engine[i], &p->plan);
    }
}

static void crowd_close(struct crowd *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        c->kind->release(c->work[i]);
        c->kind->close(c->engine[i]);
    }
}

/* Kernels a second: each session runs `rounds`, `under_way` at a time. */
static double rate_of(const struct crowd *c, unsigned rounds, unsigned under_way)
{
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < rounds + under_way; i++) {
        for (unsigned s = 0; s < c->count; s++) {
            if (i >= under_way) {
                c->kind->take(c->work[s], i % under_way);
            }
            if (i < rounds) {
                c->kind->begin(c->work[s], i % under_way);
            }
        }
    }
    return (double)rounds * c->count * 1e9 / (double)(clock_now_ns() - begin_ns);
}

static void one_turn(struct bench *b, const struct crowd *c, const char *part)
{
    unsigned rounds = bench_scale(b, 4000u, 32u) / c->count;
    (void)rate_of(c, UNDER_WAY, UNDER_WAY);
    double one = rate_of(c, rounds / 4 + 1, 1);
    double eight = rate_of(c, rounds, UNDER_WAY);
    report_add(&b->report, part, c->name, "one by one", "/s", one);
    report_add(&b->report, part, c->name, "8 under way", "/s", eight);
    report_add(&b->report, part, c->name, "gain", "x", eight / one);
}

/* Measures gpud, gpud with a window, and the API in this process, which has only one session. */
static void measure(struct bench *b, const struct gpud g[2], const struct planned *p,
                    unsigned sessions)
{
    char part[FIGURE_TEXT];
    struct crowd crowd[3] = {{.kind = &engine_gpud, .count = sessions, .name = "gpud"},
                             {.kind = &engine_gpud, .count = sessions, .name = "gpud, window"},
                             {.kind = engine_direct(g->backend), .count = 1, .name = g->backend}};
    unsigned sides = crowd[2].kind != NULL ? 3 : 2;
    (void)snprintf(part, sizeof part, "%u session%s", sessions, sessions == 1 ? "" : "s");
    if (!bench_wants(b, part)) {
        return;
    }
    if (sides == 2) {
        report_left_out(&b->report, "in process",
                        "the API of gpud's back end is not built into the benchmark");
    }
    for (unsigned i = 0; i < sides; i++) {
        crowd_open(&crowd[i], i < 2 ? g[i].url : NULL, p);
    }
    for (unsigned k = 0; k < b->repeat; k++) {
        for (unsigned i = 0; i < sides; i++) {
            one_turn(b, &crowd[i], part);
        }
    }
    for (unsigned i = 0; i < sides; i++) {
        crowd_close(&crowd[i]);
    }
    report_against(&b->report, part, "gpud, window", "8 under way", "gpud");
    if (sides == 3) {
        report_against(&b->report, part, "gpud", "one by one", g->backend);
        report_against(&b->report, part, "gpud", "8 under way", g->backend);
    }
}

int main(int argc, char **argv)
{
    static const unsigned sessions[] = {1, 4, SESSIONS_MAX};
    static const char *const window[] = {"--set", "jobs.coalesce_window_us=" WINDOW_US, NULL};
    struct bench b;
    struct gpud g[2];
    struct planned p;
    bench_begin(
        &b, "batches",
        "Tiny kernels a second from 1, 4 and 16 sessions, one by one and 8 of each under way,\n"
        "without and with a window of " WINDOW_US " us, against the vendor's API in one process.",
        5, argc, argv);
    (void)setenv("GPUD_LANE", "ring", 1);
    bench_gpud(&b, &g[0], NULL);
    bench_gpud(&b, &g[1], window);
    planned_init(&p, PLANS_EMPTY, 1);
    for (unsigned i = 0; i < sizeof sessions / sizeof sessions[0]; i++) {
        measure(&b, g, &p, sessions[i]);
    }
    planned_finish(&p);
    gpud_stop(&g[1]);
    gpud_stop(&g[0]);
    return bench_end(&b);
}
