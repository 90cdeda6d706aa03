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
    struct {
        unsigned index, next; /* of a job: decided on, and the next one of its tenant */
    } * taken;                /* owned: by decision */
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

static struct world *world_make(unsigned jobs, unsigned tenants, unsigned count)
{
    char name[32];
    struct world *w = calloc(1, sizeof *w);
    struct tenant **tenant = calloc(tenants, sizeof *tenant);
    if (w == NULL || tenant == NULL || (w->job = calloc(jobs, sizeof *w->job)) == NULL ||
        (w->taken = calloc(count, sizeof *w->taken)) == NULL) {
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

static void world_end(struct world *w)
{
    tenant_destroy_all(&w->f.tenants);
    line_finish(&w->d.line);
    free(w->taken);
    free(w->job);
    free(w);
}

static struct job *take(struct world *w)
{
    struct job *j = shares_head(&w->f, &w->d);
    shares_drop(&w->f, j);
    j->device = &w->d;
    shares_taken(&w->f, j);
    job_join_device(j);
    return j;
}

/* A job ends, and lines up again as a new one; the next one is taken. */
static double decide(struct world *w, unsigned count)
{
    while (w->d.inflight_count < WINDOW) {
        (void)take(w);
    }
    uint64_t begin = clock_now_ns();
    for (unsigned i = 0; i < count; i++) {
        struct job *j = w->d.inflight;
        uint64_t ran = NS_PER_US * (10 + j->id * 7919 % 1000);
        w->now_ns += ran;
        shares_left(&w->f, j, ran);
        job_leave_device(j);
        line_up(w, j);
        w->taken[i].index = (unsigned)(take(w) - w->job);
    }
    return (double)(clock_now_ns() - begin) / count;
}

/* The part of a job that a decision reads and changes, as lines of the cache. */
#define LINE_BYTES 64u
#define JOB_LINES  (sizeof(struct job_hot) / LINE_BYTES)
struct job_hot {
    char bytes[(offsetof(struct job, clock) + sizeof(struct job_clock) + LINE_BYTES - 1) /
               LINE_BYTES * LINE_BYTES];
};

/* What memory alone costs: the jobs that were decided on, in the same order, are read and changed,
 * and the next one of the tenant is fetched; nothing is decided. */
static double touch(struct world *w, unsigned count)
{
    uint64_t begin = clock_now_ns();
    for (unsigned i = 0; i < count; i++) {
        volatile char *at = (volatile char *)&w->job[w->taken[i].index];
        job_fetch(&w->job[w->taken[i].next]);
        for (unsigned line = 0; line < JOB_LINES; line++) {
            at[line * LINE_BYTES]++;
        }
    }
    return (double)(clock_now_ns() - begin) / count;
}

/* Which job of the same tenant each decision was followed by. */
static void find_next(struct world *w, unsigned tenants, unsigned count)
{
    unsigned *latest = calloc(tenants, sizeof *latest);
    if (latest == NULL) {
        bench_die("no memory");
    }
    for (unsigned i = count; i-- > 0;) {
        unsigned tenant = w->taken[i].index % tenants;
        w->taken[i].next = latest[tenant];
        latest[tenant] = w->taken[i].index;
    }
    free(latest);
}

static void measure(struct bench *b, const char *what, unsigned jobs, unsigned tenants)
{
    if (!bench_wants(b, what)) {
        return;
    }
    unsigned count = bench_scale(b, 1000000, 10000);
    struct world *w = world_make(jobs, tenants, count);
    (void)decide(w, count / 10);
    report_add(&b->report, "decision", what, "time", "ns", decide(w, count));
    while (w->d.inflight != NULL) {
        struct job *j = w->d.inflight;
        shares_left(&w->f, j, 1);
        job_leave_device(j);
    }
    for (unsigned i = 0; i < jobs; i++) {
        shares_drop(&w->f, &w->job[i]);
    }
    find_next(w, tenants, count);
    (void)touch(w, count / 10);
    report_add(&b->report, "its memory alone", what, "time", "ns", touch(w, count));
    world_end(w);
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
    report_against(&b.report, "its memory alone", "1,000,000 jobs, 1,000 tenants", "time",
                   "1,000 jobs, 10 tenants");
    return bench_end(&b);
}
