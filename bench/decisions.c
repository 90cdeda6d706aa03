/*
 * bench_decisions: what it costs to decide whose job a device gets next, and to charge it, with
 * many jobs and tenants in line, against few. The rules of the daemon alone: nothing runs.
 */
#include <stdio.h>
#include <stdlib.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "common/clock.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/sched/shares.h"

#define WINDOW 8u

struct world {
    struct front f;
    struct device d;
    struct job *job; /* owned */
    uint64_t now_ns;
};

static struct world *world;

static uint64_t now(void)
{
    return world->now_ns;
}

static void line_up(struct world *w, struct job *j)
{
    j->device = j->id % 2 == 0 ? &w->d : NULL; /* half of them may run on any device */
    j->submitted_ns = w->now_ns;
    j->sched.rank = job_rank(j);
    if (!shares_reserve(&w->f, j->tenant, j)) {
        bench_die("no memory");
    }
    shares_put(&w->f, j);
}

static struct world *world_make(unsigned jobs, unsigned tenants)
{
    char name[32];
    struct world *w = calloc(1, sizeof *w);
    struct tenant **tenant = calloc(tenants, sizeof *tenant);
    if (w == NULL || tenant == NULL || (w->job = calloc(jobs, sizeof *w->job)) == NULL) {
        bench_die("no memory");
    }
    world = w;
    w->now_ns = NS_PER_S;
    w->f.io.now_ns = now;
    w->f.wake_ns = NS_NEVER;
    w->f.device_count = 1;
    w->f.device[0] = &w->d;
    w->d.front = &w->f;
    for (unsigned i = 0; i < tenants; i++) {
        (void)snprintf(name, sizeof name, "tenant%u", i);
        tenant[i] = tenant_named(&w->f.tenants, name);
        if (tenant[i] == NULL) {
            bench_die("no memory");
        }
        tenant[i]->limits.weight = 1 + i % 100;
    }
    for (unsigned i = 0; i < jobs; i++) {
        struct job *j = &w->job[i];
        j->id = i + 1;
        j->tenant = tenant[i % tenants];
        j->job_class = CLASS_INTERACTIVE;
        j->deadline_ns = NS_NEVER;
        j->priority = i % 16 == 0 ? (int64_t)(i % 7) : 0;
        w->now_ns += 100;
        line_up(w, j);
    }
    free(tenant);
    return w;
}

static void world_end(struct world *w, unsigned jobs)
{
    for (unsigned i = 0; i < jobs; i++) {
        shares_drop(&w->f, &w->job[i]);
    }
    tenant_destroy_all(&w->f.tenants);
    line_finish(&w->d.line);
    free(w->job);
    free(w);
}

static void take(struct world *w)
{
    struct job *j = shares_head(&w->f, &w->d);
    shares_drop(&w->f, j);
    j->device = &w->d;
    shares_taken(&w->f, j);
    job_join_device(j);
}

/* A job ends, and lines up again as a new one; the next one is taken. */
static double decide(struct world *w, unsigned count)
{
    while (w->d.inflight_count < WINDOW) {
        take(w);
    }
    uint64_t begin = clock_now_ns();
    for (unsigned i = 0; i < count; i++) {
        struct job *j = w->d.inflight;
        uint64_t ran = NS_PER_US * (10 + j->id * 7919 % 1000);
        w->now_ns += ran;
        shares_left(&w->f, j, ran);
        job_leave_device(j);
        line_up(w, j);
        take(w);
    }
    return (double)(clock_now_ns() - begin) / count;
}

static void measure(struct bench *b, const char *what, unsigned jobs, unsigned tenants)
{
    struct world *w = world_make(jobs, tenants);
    unsigned count = bench_scale(b, 1000000, 10000);
    (void)decide(w, count / 10);
    report_add(&b->report, "decision", what, "time", "ns", decide(w, count));
    while (w->d.inflight != NULL) {
        struct job *j = w->d.inflight;
        shares_left(&w->f, j, 1);
        job_leave_device(j);
    }
    world_end(w, jobs);
}

int main(int argc, char **argv)
{
    struct bench b;
    bench_begin(
        &b, "decisions",
        "The cost of a decision: a job ends, is charged and lines up again, and the next one\n"
        "is taken. Many jobs of many tenants in line, against few.",
        5, argc, argv);
    for (unsigned i = 0; i < b.repeat; i++) {
        measure(&b, "1,000 jobs, 10 tenants", 1000, 10);
        measure(&b, "1,000 jobs, 1,000 tenants", 1000, 1000);
        measure(&b, "1,000,000 jobs, 1,000 tenants", bench_scale(&b, 1000000, 10000), 1000);
    }
    report_against(&b.report, "decision", "1,000,000 jobs, 1,000 tenants", "time",
                   "1,000 jobs, 10 tenants");
    report_against(&b.report, "decision", "1,000 jobs, 1,000 tenants", "time",
                   "1,000 jobs, 10 tenants");
    return bench_end(&b);
}
