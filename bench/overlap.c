/*
 * bench_overlap: upload, two kernels, download: step by step (with a wait after each), and as jobs
 * that are all in flight at once. On simulated devices, whose model gives the three parts the same
 * time, so that 3 is the best factor; and on gpud's own choice of device.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/common/bench.h"
#include "bench/common/echo.h"
#include "common/clock.h"

#define AT_ONCE 8u
#define FACTOR  1.5f

struct run {
    gpud_client *client;
    gpud_kernel scale;
    gpud_program *program;
    gpud_buffer x;
    gpud_buffer y;
    float *from;
    float *to;
    uint32_t count; /* elements */
};

static void must(int rc, const char *what)
{
    if (rc < 0) {
        bench_die("gpud: %s: %s", what, gpud_last_error()->text);
    }
}

static void verify(const struct run *r, const float *data)
{
    for (uint32_t i = 0; i < r->count; i += 97) {
        float right = FACTOR * FACTOR * r->from[i];
        if (!(fabsf(data[i] - right) <= 1e-4f * fabsf(right))) {
            bench_die("element %u is %g instead of %g", i, (double)data[i], (double)right);
        }
    }
}

static void run_init(struct run *r, const char *url, uint32_t count)
{
    gpud_shape shape = gpud_shape_1d(GPUD_F32, count);
    *r = (struct run){.count = count};
    r->from = malloc(count * sizeof *r->from);
    r->to = malloc(count * sizeof *r->to);
    if (r->from == NULL || r->to == NULL) {
        bench_die("no memory");
    }
    for (uint32_t i = 0; i < count; i++) {
        r->from[i] = (float)(i % 100);
    }
    must(gpud_open(url, NULL, &r->client), "opening");
    must(gpud_kernel_find(r->client, "scale", &r->scale), "a kernel");
    must(gpud_buffer_create(r->client, shape, 0, NULL, &r->x), "a buffer");
    must(gpud_buffer_create(r->client, shape, 0, NULL, &r->y), "a buffer");
    must(gpud_program_create(r->client, "overlap", &r->program), "a program");
    gpud_arg data = gpud_program_param(r->program, "data", GPUD_PARAM_DATA, shape);
    gpud_arg a = gpud_program_temp(r->program, shape);
    gpud_arg b = gpud_program_temp(r->program, shape);
    gpud_arg there[] = {gpud_f32(FACTOR), gpud_arg_with(a, GPUD_IN), gpud_arg_with(b, GPUD_OUT)};
    gpud_arg back[] = {gpud_f32(FACTOR), gpud_arg_with(b, GPUD_IN), gpud_arg_with(a, GPUD_OUT)};
    must(gpud_program_write(r->program, gpud_arg_with(a, GPUD_OUT), data), "a write");
    must(gpud_program_launch(r->program, r->scale, there, 3, NULL), "a launch");
    must(gpud_program_launch(r->program, r->scale, back, 3, NULL), "a launch");
    must(gpud_program_read(r->program, gpud_arg_with(a, GPUD_IN)), "a read");
    must(gpud_program_seal(r->program), "a program");
}

static void run_finish(struct run *r)
{
    gpud_program_free(r->program);
    gpud_close(r->client);
    free(r->from);
    free(r->to);
}

/* Milliseconds of a pass, one step after the other. */
static double step_by_step(const struct run *r, unsigned passes)
{
    gpud_arg there[] = {gpud_f32(FACTOR), gpud_in(r->x), gpud_out(r->y)};
    gpud_arg back[] = {gpud_f32(FACTOR), gpud_in(r->y), gpud_out(r->x)};
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < passes; i++) {
        must(gpud_write(r->client, r->x, GPUD_F32, 0, GPUD_REST, r->from, NULL), "writing");
        must(gpud_call(r->client, r->scale, there, 3, NULL), "a kernel");
        must(gpud_call(r->client, r->scale, back, 3, NULL), "a kernel");
        must(gpud_read(r->client, r->x, GPUD_F32, 0, GPUD_REST, r->to, NULL), "reading");
    }
    double ms = (double)(clock_now_ns() - begin_ns) / 1e6 / passes;
    verify(r, r->to);
    return ms;
}

static void take(const struct run *r, gpud_job *job)
{
    const void *data = NULL;
    size_t bytes = 0;
    must(gpud_wait(job, GPUD_FOREVER), "a job's end");
    must(gpud_job_output(job, 3, 0, &data, &bytes), "a job's output");
    if (bytes != r->count * sizeof(float)) {
        bench_die("%zu bytes came back", bytes);
    }
    verify(r, data);
    gpud_job_free(job);
}

static double all_at_once(const struct run *r, unsigned passes)
{
    gpud_job *job[AT_ONCE];
    const gpud_arg data = gpud_host_in(r->from, r->count, GPUD_F32);
    uint64_t begin_ns = clock_now_ns();
    for (unsigned i = 0; i < passes + AT_ONCE; i++) {
        if (i >= AT_ONCE) {
            take(r, job[i % AT_ONCE]);
        }
        if (i < passes) {
            must(gpud_submit(r->client, r->program, &data, 1, NULL, &job[i % AT_ONCE]), "a job");
        }
    }
    return (double)(clock_now_ns() - begin_ns) / 1e6 / passes;
}

static void measure(struct bench *b, const char *part, const char *const *args, uint32_t count)
{
    struct gpud g;
    struct run r;
    unsigned passes = bench_scale(b, 40u, 10u);
    bench_gpud(b, &g, args);
    run_init(&r, g.url, count);
    (void)step_by_step(&r, 2);
    for (unsigned i = 0; i < b->repeat; i++) {
        double sync = step_by_step(&r, passes);
        double async = all_at_once(&r, passes);
        report_add(&b->report, part, "step by step", "a pass", "ms", sync);
        report_add(&b->report, part, "all at once", "a pass", "ms", async);
        report_add(&b->report, part, "all at once", "throughput", "x", sync / async);
    }
    report_against(&b->report, part, "all at once", "a pass", "step by step");
    run_finish(&r);
    gpud_stop(&g);
}

int main(int argc, char **argv)
{
    /* 64 KiB at 6.25 MiB/s: 10 ms each way; 2 x 16 Ki items at 3.1 Mi/s: 10 ms */
    static const char *const simulated[] = {"--backend", "sim", "--backend-options",
                                            "bandwidth=6553600,items=3276800,launch_ns=0,kernels=1",
                                            NULL};
    static const char *const quick[] = {"--backend", "sim", "--backend-options",
                                        "bandwidth=65536000,items=32768000,launch_ns=0,kernels=1",
                                        NULL};
    struct bench b;
    bench_begin(&b, "overlap",
                "Upload, two kernels, download: step by step against jobs that are under way at\n"
                "once.",
                5, argc, argv);
    const char *backend = b.backend;
    if (bench_wants(&b, "simulated")) {
        b.backend = NULL;
        measure(&b, "simulated device", bench_scale(&b, simulated, quick), 1u << 14);
        b.backend = backend;
    }
    if (bench_wants(&b, "gpud's device")) {
        measure(&b, "gpud's device", NULL, bench_scale(&b, 1u << 18, 4096u));
    }
    return bench_end(&b);
}
