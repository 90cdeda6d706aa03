/*
 * bench_hostile: p99 of a good tenant's jobs beside a hostile tenant, against the same alone. Alone
 * and beside are measured in turns.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "bench/common/partner.h"
#include "bench/common/scratch.h"
#include "bench/hostile/acts.h"
#include "common/clock.h"

#define ITEMS     1000u
#define PAUSE_US  1000u /* between two jobs of the good tenant */
#define BEGUN_MS  500u  /* until the hostile tenant does what it can */
#define PROCESSES 32u
#define FOLDER    64u

/* ---- the good tenant ------------------------------------------------------------------------ */

struct good {
    gpud_client *c;
    gpud_kernel axpy;
    float x[ITEMS], y[ITEMS];
};

static void must(int rc, const char *what)
{
    if (rc != 0) {
        bench_die("the good tenant: %s: %s", what, gpud_last_error()->text);
    }
}

static void good_open(struct good *g, const char *url)
{
    must(gpud_open(url, NULL, &g->c), "opening");
    must(gpud_kernel_find(g->c, "axpy", &g->axpy), "a kernel");
    for (unsigned i = 0; i < ITEMS; i++) {
        g->x[i] = (float)i;
    }
}

/* One job, whose result is right. */
static double good_job_us(struct good *g, unsigned number)
{
    for (unsigned i = 0; i < ITEMS; i++) {
        g->y[i] = (float)number;
    }
    const gpud_arg args[] = {gpud_f32(2), gpud_host(g->x, ITEMS, GPUD_F32),
                             gpud_host(g->y, ITEMS, GPUD_F32)};
    uint64_t begin_ns = clock_now_ns();
    must(gpud_call(g->c, g->axpy, args, 3, NULL), "a job");
    double us = (double)(clock_now_ns() - begin_ns) / 1e3;
    for (unsigned i = 0; i < ITEMS; i++) {
        if (g->y[i] != 2 * (float)i + (float)number) {
            bench_die("the good tenant: element %u of job %u is wrong", i, number);
        }
    }
    return us;
}

static void good_run(struct bench *b, struct good *g, const char *part, const char *what)
{
    struct samples us;
    samples_init(&us);
    for (unsigned i = 0; i < bench_scale(b, 600u, 20u); i++) {
        samples_add(&us, good_job_us(g, i));
        (void)usleep(PAUSE_US);
    }
    report_add(&b->report, part, what, "p50", "us", samples_median(&us));
    report_add(&b->report, part, what, "p99", "us", samples_at(&us, 0.99));
    report_add(&b->report, part, what, "max", "us", samples_at(&us, 1));
    samples_finish(&us);
}

/* ---- the hostile one ------------------------------------------------------------------------ */

struct raid {
    struct act_tally *tally;
    struct partner process[PROCESSES];
    unsigned count;
    uint64_t begin_ns;
};

/* All acts, or one. urls: of tenant `bad`, and of the one that is paused. */
static void raid_begin(struct raid *r, const struct bench *b, const struct act *only,
                       char (*urls)[2 * FOLDER], bool compiles)
{
    static struct hostile h[PROCESSES];
    char byte;
    r->count = 0;
    for (unsigned a = 0; a < act_count; a++) {
        atomic_store(&r->tally[a].done, 0);
        atomic_store(&r->tally[a].refused, 0);
        bool wanted = only != NULL ? only == &acts[a] : !acts[a].paused;
        if (!wanted || (acts[a].compiles && !compiles)) {
            continue;
        }
        for (unsigned i = 0; i < acts[a].processes; i++, r->count++) {
            h[r->count] = (struct hostile){&acts[a], urls[acts[a].paused], &r->tally[a]};
            partner_start(&r->process[r->count], act_work, &h[r->count]);
        }
    }
    for (unsigned i = 0; i < r->count; i++) {
        partner_read(&r->process[i], &byte, 1);
    }
    r->begin_ns = clock_now_ns();
    (void)usleep(bench_scale(b, BEGUN_MS, 10u) * 1000);
}

static void raid_end(struct raid *r, struct bench *b, const char *part)
{
    double seconds = (double)(clock_now_ns() - r->begin_ns) / 1e9;
    for (unsigned a = 0; a < act_count; a++) {
        double done = (double)atomic_load(&r->tally[a].done) * acts[a].each;
        double refused = (double)atomic_load(&r->tally[a].refused);
        if (done + refused > 0) {
            report_add(&b->report, part, acts[a].name, "done", acts[a].unit, done / seconds);
            report_add(&b->report, part, acts[a].name, "refused", "/s", refused / seconds);
        }
    }
    for (unsigned i = 0; i < r->count; i++) {
        partner_kill(&r->process[i]);
    }
}

static void one(struct bench *b, struct good *g, struct raid *r, const struct act *only,
                char (*urls)[2 * FOLDER], bool compiles)
{
    const char *part = only != NULL ? only->name : "all at once";
    if (!bench_wants(b, part) || (only != NULL && only->compiles && !compiles)) {
        return;
    }
    for (unsigned i = 0; i < bench_scale(b, b->repeat, 1u); i++) {
        good_run(b, g, part, "good job, alone");
        raid_begin(r, b, only, urls, compiles);
        good_run(b, g, part, "good job, beside");
        raid_end(r, b, part);
        (void)usleep(bench_scale(b, 2000u, 10u) * 1000); /* what it left is cleared away */
    }
    for (const char *const *f = (const char *const[]){"p50", "p99", "max", NULL}; *f != NULL; f++) {
        report_against(&b->report, part, "good job, beside", *f, "good job, alone");
    }
}

/* ---- the daemon ----------------------------------------------------------------------------- */

/* Hostile tenants have sockets of their own, as their processes have this user. */
static void settings_write(const char *folder, char *config, char (*urls)[2 * FOLDER], size_t size)
{
    (void)snprintf(config, size, "%s/hostile.conf", folder);
    (void)snprintf(urls[0], size, "ipc://%s/bad.sock", folder);
    (void)snprintf(urls[1], size, "ipc://%s/paused.sock", folder);
    FILE *f = fopen(config, "we");
    if (f == NULL ||
        fprintf(f,
                "[tenant good]\nusers = %u\n[tenant bad]\nload_kernels = yes\nlisten = %s\n"
                "[tenant paused]\nload_kernels = yes\nlisten = %s\n",
                (unsigned)getuid(), urls[0], urls[1]) < 0 ||
        fclose(f) != 0) {
        bench_die("%s: %s", config, strerror(errno));
    }
}

int main(int argc, char **argv)
{
    struct bench b;
    struct gpud d;
    static struct good good;
    struct raid raid = {.count = 0};
    char folder[FOLDER] = "/tmp/gpud-bench-hostile-XXXXXX";
    char config[2 * FOLDER];
    char urls[2][2 * FOLDER];
    const char *const args[] = {"--config", config, NULL};
    bench_begin(&b, "hostile",
                "Jobs of a good tenant beside a hostile one that floods, crashes, sends compile\n"
                "bombs, has memory zeroed, opens sessions and runs endless kernels, against the\n"
                "same jobs alone.",
                5, argc, argv);
    raid.tally = mmap(NULL, act_count * sizeof *raid.tally, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (raid.tally == MAP_FAILED) {
        bench_die("shared memory: %s", strerror(errno));
    }
    scratch_folder(folder);
    settings_write(folder, config, urls, sizeof config);
    bench_gpud(&b, &d, args);
    bool compiles = strcmp(d.backend, "sim") != 0;
    good_open(&good, d.url);
    for (unsigned a = 0; a < act_count; a++) {
        one(&b, &good, &raid, &acts[a], urls, compiles);
    }
    one(&b, &good, &raid, NULL, urls, compiles);
    gpud_close(good.c);
    gpud_stop(&d);
    scratch_remove(folder);
    return bench_end(&b);
}
