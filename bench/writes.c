/*
 * bench_writes: 64 writes of 4 KiB into one buffer: as jobs one by one, with a wait after each; as
 * jobs in flight at once; and as steps of one job, where the worker merges adjacent writes and
 * passes the others to the device in one call if the back end supports that.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "common/clock.h"

#define WRITES 64u /* the most parameters of a program */
#define EACH   4096u
#define GAPS   2u /* scattered: the distance of writes, in units of EACH */

struct run {
    gpud_client *client;
    gpud_buffer buffer;
    gpud_program *one;    /* any write */
    gpud_program *all[2]; /* neighbours, scattered */
    uint8_t *from;        /* shared memory, WRITES * EACH bytes */
    gpud_arg given[WRITES];
};

static void must(int rc, const char *what)
{
    if (rc < 0) {
        bench_die("gpud: %s: %s", what, gpud_last_error()->text);
    }
}

static uint64_t place(unsigned i, bool scattered)
{
    return (uint64_t)i * EACH * (scattered ? GAPS : 1);
}

static gpud_program *program_of_all(const struct run *r, bool scattered)
{
    gpud_program *p = NULL;
    must(gpud_program_create(r->client, scattered ? "scattered" : "adjacent", &p), "a program");
    for (unsigned i = 0; i < WRITES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "data%u", i);
        gpud_arg data = gpud_program_param(p, name, GPUD_PARAM_DATA, gpud_shape_1d(GPUD_U8, EACH));
        gpud_arg to = gpud_slice(r->buffer, place(i, scattered), EACH);
        must(gpud_program_write(p, gpud_arg_with(to, GPUD_OUT), data), "a write");
    }
    must(gpud_program_seal(p), "a program");
    return p;
}

static gpud_program *program_of_one(const struct run *r)
{
    gpud_program *p = NULL;
    gpud_shape shape = gpud_shape_1d(GPUD_U8, EACH);
    must(gpud_program_create(r->client, "one", &p), "a program");
    gpud_arg to = gpud_program_param(p, "to", GPUD_PARAM_BUFFER, shape);
    gpud_arg data = gpud_program_param(p, "data", GPUD_PARAM_DATA, shape);
    must(gpud_program_write(p, gpud_arg_with(to, GPUD_OUT), data), "a write");
    must(gpud_program_seal(p), "a program");
    return p;
}

static void run_init(struct run *r, const char *url)
{
    void *memory = NULL;
    *r = (struct run){.client = NULL};
    must(gpud_open(url, NULL, &r->client), "opening");
    must(gpud_host_alloc(r->client, WRITES * EACH, &memory), "shared memory");
    r->from = memory;
    gpud_shape shape = gpud_shape_1d(GPUD_U8, (uint64_t)WRITES * EACH * GAPS);
    must(gpud_buffer_create(r->client, shape, GPUD_BUFFER_ZERO, NULL, &r->buffer), "a buffer");
    for (unsigned i = 0; i < WRITES; i++) {
        r->given[i] = gpud_host_in(r->from + (size_t)i * EACH, EACH, GPUD_U8);
    }
    r->one = program_of_one(r);
    r->all[0] = program_of_all(r, false);
    r->all[1] = program_of_all(r, true);
}

static void run_finish(struct run *r)
{
    gpud_program_free(r->one);
    gpud_program_free(r->all[0]);
    gpud_program_free(r->all[1]);
    gpud_close(r->client);
}

/* ---- three ways ---------------------------------------------------------------------------- */

static void one_by_one(const struct run *r, bool scattered)
{
    for (unsigned i = 0; i < WRITES; i++) {
        must(gpud_write(r->client, r->buffer, GPUD_U8, place(i, scattered), EACH,
                        r->from + (size_t)i * EACH, NULL),
             "writing");
    }
}

static void at_once(const struct run *r, bool scattered)
{
    static const gpud_submit_options o = {.size = sizeof o,
                                          .flags = GPUD_SUBMIT_HELD | GPUD_SUBMIT_BLOCK};
    gpud_job *job[WRITES];
    for (unsigned i = 0; i < WRITES; i++) {
        gpud_arg to = gpud_slice(r->buffer, place(i, scattered), EACH);
        gpud_arg args[] = {gpud_arg_with(to, GPUD_OUT), r->given[i]};
        must(gpud_submit(r->client, r->one, args, 2, &o, &job[i]), "a job");
    }
    for (unsigned i = 0; i < WRITES; i++) {
        must(gpud_wait(job[i], GPUD_FOREVER), "a job's end");
        gpud_job_free(job[i]);
    }
}

static void in_one_job(const struct run *r, bool scattered)
{
    static const gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_HELD};
    gpud_job *job = NULL;
    must(gpud_submit(r->client, r->all[scattered], r->given, WRITES, &o, &job), "a job");
    must(gpud_wait(job, GPUD_FOREVER), "a job's end");
    gpud_job_free(job);
}

/* ---- measuring ----------------------------------------------------------------------------- */

typedef void (*way_fn)(const struct run *r, bool scattered);

static const struct way {
    const char *name;
    way_fn run;
} ways[] = {{"one by one", one_by_one}, {"jobs at once", at_once}, {"one job", in_one_job}};

#define WAYS (sizeof ways / sizeof ways[0])

static void verify(const struct run *r, const struct way *w, bool scattered)
{
    static uint8_t got[WRITES * EACH * GAPS];
    for (unsigned i = 0; i < WRITES * EACH; i++) {
        r->from[i] = (uint8_t)(r->from[i] + 1 + i / 7);
    }
    w->run(r, scattered);
    must(gpud_read(r->client, r->buffer, GPUD_U8, 0, GPUD_REST, got, NULL), "reading");
    for (unsigned i = 0; i < WRITES; i++) {
        if (memcmp(got + place(i, scattered), r->from + (size_t)i * EACH, EACH) != 0) {
            bench_die("%s: write %u did not arrive", w->name, i);
        }
    }
}

/* Microseconds of a write. */
static double timed(const struct run *r, const struct way *w, bool scattered, unsigned passes)
{
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < passes; i++) {
        w->run(r, scattered);
    }
    return (double)(clock_now_ns() - begin_ns) / 1e3 / passes / WRITES;
}

static void measure(struct bench *b, const char *part, const char *const *args)
{
    static const char *const kind[] = {"adjacent", "scattered"};
    struct gpud g;
    struct run r;
    unsigned passes = bench_scale(b, 20u, 1u);
    bench_gpud(b, &g, args);
    run_init(&r, g.url);
    for (unsigned s = 0; s < 2; s++) {
        char what[WAYS][FIGURE_TEXT];
        for (unsigned i = 0; i < WAYS; i++) {
            (void)snprintf(what[i], sizeof what[i], "%s, %s", kind[s], ways[i].name);
            verify(&r, &ways[i], s);
        }
        for (unsigned k = 0; k < b->repeat; k++) {
            double alone = 0;
            for (unsigned i = 0; i < WAYS; i++) {
                double us = timed(&r, &ways[i], s, passes);
                alone = i == 0 ? us : alone;
                report_add(&b->report, part, what[i], "a write", "us", us);
                report_add(&b->report, part, what[i], "gain", "x", alone / us);
            }
        }
    }
    run_finish(&r);
    gpud_stop(&g);
}

int main(int argc, char **argv)
{
    static const char *const simulated[] = {"--backend", "sim", NULL};
    struct bench b;
    bench_begin(&b, "writes",
                "64 writes of 4 KiB into one buffer: each waited for, all at once, all in one job.",
                9, argc, argv);
    const char *backend = b.backend;
    if (bench_wants(&b, "simulated device")) {
        b.backend = NULL;
        measure(&b, "simulated device", simulated);
        b.backend = backend;
    }
    if (bench_wants(&b, "gpud's device")) {
        measure(&b, "gpud's device", NULL);
    }
    return bench_end(&b);
}
