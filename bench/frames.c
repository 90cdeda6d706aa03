/*
 * bench_frames: a video's frames of 2 MB at a fixed rate. Each frame is uploaded, weighted by a
 * user's kernel with sealed weights on the device, summed, and answered. Times count from the
 * moment at which the frame should have been sent, so a late frame also delays the frames after it.
 * For comparison, the vendor's API in this process.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/plans.h"
#include "bench/common/sides.h"
#include "common/clock.h"

#define ITEMS   524288u /* 2 MiB */
#define AT_ONCE 8u

/* Frames in flight: one thread sends them at their times, another receives the answers. */
struct player {
    const struct side *side;
    unsigned count;
    uint64_t due_ns[AT_ONCE];
    sem_t room;           /* free slots */
    sem_t begun;          /* frames that wait to be taken */
    struct samples times; /* belongs to the receiving thread until that ends */
};

static void sleep_until(uint64_t at_ns)
{
    struct timespec t = {.tv_sec = (time_t)(at_ns / NS_PER_S), .tv_nsec = (long)(at_ns % NS_PER_S)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL) != 0) {
    }
}

static void await(sem_t *s)
{
    while (sem_wait(s) != 0) { /* EINTR */
    }
}

static void *take_all(void *data)
{
    struct player *p = data;
    for (unsigned i = 0; i < p->count; i++) {
        await(&p->begun);
        p->side->kind->take(p->side->work, i % AT_ONCE);
        samples_add(&p->times, (double)(clock_now_ns() - p->due_ns[i % AT_ONCE]) / 1e6);
        (void)sem_post(&p->room);
    }
    return NULL;
}

/* Plays `count` frames at `rate` a second; late frames wait for their turn. */
static void play(struct bench *b, const struct side *s, const char *part, unsigned count,
                 unsigned rate)
{
    struct player p = {.side = s, .count = count};
    pthread_t taker;
    samples_init(&p.times);
    (void)sem_init(&p.room, 0, AT_ONCE);
    (void)sem_init(&p.begun, 0, 0);
    if (pthread_create(&taker, NULL, take_all, &p) != 0) {
        bench_die("a thread");
    }
    uint64_t begin_ns = clock_now_ns() + NS_PER_S / 100;
    for (unsigned i = 0; i < count; i++) {
        uint64_t due_ns = begin_ns + (uint64_t)i * NS_PER_S / rate;
        sleep_until(due_ns);
        await(&p.room);
        p.due_ns[i % AT_ONCE] = due_ns;
        s->kind->begin(s->work, i % AT_ONCE);
        (void)sem_post(&p.begun);
    }
    (void)pthread_join(taker, NULL);
    double seconds = (double)(clock_now_ns() - begin_ns) / 1e9;
    report_add(&b->report, part, s->name, "p50", "ms", samples_median(&p.times));
    report_add(&b->report, part, s->name, "p99", "ms", samples_at(&p.times, 0.99));
    report_add(&b->report, part, s->name, "rate", "/s", count / seconds);
    samples_finish(&p.times);
}

static void verify(const struct side *s, const struct planned *p)
{
    float *result = s->kind->fetch(s->work);
    if (!planned_right(p, result, 1)) {
        bench_die("%s gave a wrong result", s->name);
    }
    free(result);
}

static void measure(struct bench *b, struct side *sides, unsigned sides_count, const char *part)
{
    struct planned p;
    unsigned rate = 500;
    unsigned count = bench_scale(b, 1500u, 20u);
    planned_init(&p, PLANS_FRAME, bench_scale(b, ITEMS, 8192u));
    for (unsigned i = 0; i < sides_count; i++) {
        sides[i].work = sides[i].kind->prepare(sides[i].engine, &p.plan);
        sides[i].kind->begin(sides[i].work, 0);
        sides[i].kind->take(sides[i].work, 0);
    }
    for (unsigned k = 0; k < b->repeat; k++) {
        for (unsigned i = 0; i < sides_count; i++) {
            play(b, &sides[i], part, count, rate);
        }
    }
    for (unsigned i = 0; i < sides_count; i++) {
        verify(&sides[i], &p);
        sides[i].kind->release(sides[i].work);
    }
    if (sides_count == 2) {
        report_against(&b->report, part, sides[0].name, "p50", sides[1].name);
        report_against(&b->report, part, sides[0].name, "p99", sides[1].name);
    }
    planned_finish(&p);
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud g;
    bench_begin(
        &b, "frames",
        "Frames of 2 MB at 500/s with sealed weights and a user's kernel, against the same\n"
        "in one process.",
        5, argc, argv);
    bench_gpud(&b, &g, NULL);
    for (const char *const *lane = bench_lanes; *lane != NULL; lane++) {
        char part[FIGURE_TEXT];
        (void)snprintf(part, sizeof part, "%s, %s lane", placement_name(PLACE_ANY), *lane);
        (void)setenv("GPUD_LANE", *lane, 1);
        struct side sides[2];
        unsigned count = sides_open(sides, &g, &b.report);
        measure(&b, sides, count, part);
        sides_close(sides, count);
    }
    gpud_stop(&g);
    return bench_end(&b);
}
