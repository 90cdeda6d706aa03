/* What the way through the daemon costs, beside the same work done in this process; and NVRTC, if
 * it is here. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/gpu/direct.h"
#include "tests/gpu/measure.h"
#include "tests/gpu/system.h"

#define SMALL 16u /* elements of the small arrays */
#define LARGE (UINT64_C(256) << 20)
#define WARM  50u /* launches that do not count */

/* ---- latency --------------------------------------------------------------------------------- */

static void direct_latency(struct direct *d, unsigned count, struct record *r, double *ret_p50)
{
    struct samples s;
    CUfunction nothing = direct_kernel(d, "nothing");
    samples_init(&s, count);
    for (unsigned i = 0; i < count + WARM; i++) {
        uint64_t begin_ns = now_ns();
        direct_launch(d, nothing, 0, 0);
        direct_wait(d);
        if (i >= WARM) {
            samples_add(&s, now_ns() - begin_ns);
        }
    }
    *ret_p50 = samples_us(&s, 0.5);
    record_figure(r, "in process, p50", *ret_p50, "us");
    record_figure(r, "in process, p99", samples_us(&s, 0.99), "us");
    samples_finish(&s);
}

static void daemon_latency(gpud_client *c, unsigned count, struct record *r, double *ret_p50)
{
    struct samples s;
    const gpud_grid one = {.size = sizeof one, .global = {1, 1, 1}, .local = {1, 1, 1}};
    const gpud_submit_options held = {.size = sizeof held, .flags = GPUD_SUBMIT_HELD};
    gpud_kernel nothing = gpu_kernel(c, gpu_module(c), "nothing");
    samples_init(&s, count);
    for (unsigned i = 0; i < count + WARM; i++) {
        gpud_job *job = NULL;
        uint64_t begin_ns = now_ns();
        ck_gpud_ok(gpud_launch(c, nothing, NULL, 0, &one, &held, &job));
        ck_gpud_ok(gpud_wait(job, PATIENCE));
        if (i >= WARM) {
            samples_add(&s, now_ns() - begin_ns);
        }
        gpud_job_free(job);
    }
    *ret_p50 = samples_us(&s, 0.5);
    record_figure(r, "gpud, p50", *ret_p50, "us");
    record_figure(r, "gpud, p99", samples_us(&s, 0.99), "us");
    samples_finish(&s);
}

START_TEST(launch_latency)
{
    struct daemon d;
    struct direct direct;
    struct record r;
    double in_process = 0;
    double through = 0;
    unsigned count = record_effort(300, 3000);
    gpud_client *c = gpu_begin(&d);
    record_begin(&r, "launch latency");
    record_note(&r, "an empty kernel, launched and waited for, one at a time; by gpud, then "
                    "in this process");
    daemon_latency(c, count, &r, &through);
    daemon_end(&d, c);
    direct_open(&direct);
    direct_latency(&direct, count, &r, &in_process);
    direct_close(&direct);
    record_figure(&r, "gpud adds, p50", through - in_process, "us");
    (void)record_end(&r);
}
END_TEST

/* ---- a library's first call ------------------------------------------------------------------ */

#define SIDE 64u

static double launched(gpud_client *c, gpud_kernel k, const gpud_arg *args, uint32_t count,
                       char implementation[GPUD_NAME])
{
    gpud_job *job = NULL;
    gpud_job_times times = {.size = sizeof times};
    uint64_t begin_ns = now_ns();
    ck_gpud_ok(gpud_launch(c, k, args, count, NULL, NULL, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    uint64_t end_ns = now_ns();
    ck_gpud_ok(gpud_job_timing(job, &times));
    (void)snprintf(implementation, GPUD_NAME, "%s", times.implementation);
    gpud_job_free(job);
    return (double)(end_ns - begin_ns) / 1e6;
}

/* Empty jobs of another session, one after the other, until the job is over: how long they took. */
static void beside(struct daemon *d, gpud_job *job, struct record *r)
{
    gpud_client *other = client_open(d->url);
    gpud_kernel nothing = gpu_kernel(other, gpu_module(other), "nothing");
    uint64_t most_ns = 0;
    unsigned count = 0;
    while (gpud_wait(job, 0) == GPUD_ERR_TIMEOUT || count == 0) {
        uint64_t begin_ns = now_ns();
        gpud_job *empty = gpu_launch(other, nothing, NULL, 0, 0);
        ck_gpud_ok(gpud_wait(empty, PATIENCE));
        uint64_t spent_ns = now_ns() - begin_ns;
        gpud_job_free(empty);
        most_ns = spent_ns > most_ns ? spent_ns : most_ns;
        count++;
    }
    record_figure(r, "empty jobs beside it", count, "");
    record_figure(r, "the longest of them", (double)most_ns / 1e6, "ms");
    gpud_close(other);
}

/* A library is opened for the operation: jobs that do not need it continue meanwhile. */
START_TEST(first_gemm)
{
    static float a[SIDE * SIDE], b[SIDE * SIDE];
    struct daemon d;
    struct record r;
    char by[2][GPUD_NAME];
    gpud_job *job = NULL;
    gpud_job_times times = {.size = sizeof times};
    gpud_client *c = gpu_begin(&d);
    const gpud_shape square = gpud_shape_2d(GPUD_F32, SIDE, SIDE);
    const gpud_arg args[] = {gpud_host_shaped(a, square, GPUD_AS_KERNEL),
                             gpud_host_shaped(a, square, GPUD_AS_KERNEL),
                             gpud_host_shaped(b, square, GPUD_AS_KERNEL)};
    gpud_kernel gemm = kernel_find(c, "gemm");
    (void)gpu_module(c); /* loaded before */
    record_begin(&r, "first gemm");
    uint64_t begin_ns = now_ns();
    ck_gpud_ok(gpud_launch(c, gemm, args, 3, NULL, NULL, &job));
    beside(&d, job, &r);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    record_figure(&r, "the first, at most", (double)(now_ns() - begin_ns) / 1e6, "ms");
    ck_gpud_ok(gpud_job_timing(job, &times));
    gpud_job_free(job);
    record_figure(&r, "the second", launched(c, gemm, args, 3, by[0]), "ms");
    record_figure(&r, "the third", launched(c, gemm, args, 3, by[1]), "ms");
    record_note(&r, "64 x 64 by a daemon that has just started: by %s, %s, %s",
                times.implementation, by[0], by[1]);
    (void)record_end(&r);
    daemon_end(&d, c);
}
END_TEST

/* ---- copies ---------------------------------------------------------------------------------- */

/* GB/s of the driver with pinned memory: to the device and back. */
static void pinned_rates(double ret_rate[2])
{
    struct direct d;
    void *host = NULL;
    CUdeviceptr memory = 0;
    direct_open(&d);
    must(d.MemHostAlloc(&host, LARGE, 0));
    must(d.cu.MemAlloc(&memory, LARGE));
    for (unsigned way = 0; way < 2; way++) {
        struct samples s;
        samples_init(&s, 5);
        for (unsigned i = 0; i < 6; i++) {
            uint64_t begin_ns = now_ns();
            must(way == 0 ? d.cu.MemcpyHtoDAsync(memory, host, LARGE, d.stream)
                          : d.cu.MemcpyDtoHAsync(host, memory, LARGE, d.stream));
            direct_wait(&d);
            if (i > 0) {
                samples_add(&s, now_ns() - begin_ns);
            }
        }
        ret_rate[way] = (double)LARGE / (samples_us(&s, 0.5) * 1e3);
        samples_finish(&s);
    }
    must(d.cu.MemFree(memory));
    must(d.MemFreeHost(host));
    direct_close(&d);
}

static double daemon_rate(gpud_client *c, gpud_buffer b, void *host, bool to_device)
{
    struct samples s;
    samples_init(&s, 5);
    for (unsigned i = 0; i < 6; i++) { /* the first one warms up */
        uint64_t begin_ns = now_ns();
        ck_gpud_ok(to_device ? gpud_write(c, b, GPUD_U8, 0, LARGE, host, NULL)
                             : gpud_read(c, b, GPUD_U8, 0, LARGE, host, NULL));
        if (i > 0) {
            samples_add(&s, now_ns() - begin_ns);
        }
    }
    double rate = (double)LARGE / (samples_us(&s, 0.5) * 1e3);
    samples_finish(&s);
    return rate;
}

/* All of the way, from the client's own memory. */
START_TEST(client_copies)
{
    struct daemon d;
    struct record r;
    double pinned[2];
    double ours[2];
    gpud_buffer b = {0};
    gpud_client *c = gpu_begin(&d);
    void *host = malloc(LARGE);
    ck_assert_ptr_nonnull(host);
    memset(host, 1, LARGE); /* untouched memory is one page of zeros, read again and again */
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, LARGE), 0, NULL, &b));
    ours[0] = daemon_rate(c, b, host, true);
    ours[1] = daemon_rate(c, b, host, false);
    free(host);
    daemon_end(&d, c);
    pinned_rates(pinned);
    record_begin(&r, "copy by a client");
    record_note(&r, "gpud_write and gpud_read of 256 MiB of plain memory against the driver's "
                    "copies of pinned memory");
    record_figure(&r, "gpud_write", ours[0], "GB/s");
    record_figure(&r, "driver, to device", pinned[0], "GB/s");
    record_figure(&r, "share, to device", ours[0] / pinned[0], "");
    record_figure(&r, "gpud_read", ours[1], "GB/s");
    record_figure(&r, "driver, to host", pinned[1], "GB/s");
    record_figure(&r, "share, to host", ours[1] / pinned[1], "");
    (void)record_end(&r);
}
END_TEST

/* ---- the recorded timeline ------------------------------------------------------------------- */

#define JOBS  16u
#define BYTES (UINT64_C(1) << 20)

struct pass {
    double wall_ms;
    double busy; /* sum of the jobs' times over the time from the first's begin to the last's end */
};

/* JOBS jobs of write, kernel, read; `together` of them under way at a time. */
static struct pass pass_run(gpud_client *c, const gpud_program *p, unsigned together)
{
    gpud_job *job[JOBS];
    uint64_t first_ns = UINT64_MAX;
    uint64_t last_ns = 0;
    uint64_t sum_ns = 0;
    uint64_t begin_ns = now_ns();
    for (unsigned i = 0; i < JOBS; i++) {
        ck_gpud_ok(gpud_submit(c, p, NULL, 0, NULL, &job[i]));
        if (together == 1) {
            ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        }
    }
    for (unsigned i = 0; i < JOBS; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
    }
    uint64_t end_ns = now_ns();
    gpud_table *t = NULL;
    ck_gpud_ok(gpud_query(c, "timeline", NULL, &t));
    uint32_t started = (uint32_t)gpud_table_find(t, "started_at");
    uint32_t ended = (uint32_t)gpud_table_find(t, "ended_at");
    for (unsigned i = 0; i < JOBS; i++) {
        for (uint32_t row = 0; row < gpud_table_rows(t); row++) {
            if (gpud_table_value(t, row, 0) == gpud_job_id(job[i])) {
                uint64_t from = gpud_table_value(t, row, started);
                uint64_t to = gpud_table_value(t, row, ended);
                first_ns = from < first_ns ? from : first_ns;
                last_ns = to > last_ns ? to : last_ns;
                sum_ns += to - from;
            }
        }
        gpud_job_free(job[i]);
    }
    gpud_table_free(t);
    struct pass pass = {.wall_ms = (double)(end_ns - begin_ns) / 1e6};
    pass.busy = last_ns > first_ns ? (double)sum_ns / (double)(last_ns - first_ns) : 0;
    return pass;
}

START_TEST(timeline)
{
    struct daemon d;
    struct record r;
    const gpud_grid one = {.size = sizeof one, .global = {1, 1, 1}, .local = {1, 1, 1}};
    gpud_program *p = NULL;
    gpud_client *c = gpu_begin(&d);
    uint8_t *host = calloc(1, BYTES);
    ck_assert_ptr_nonnull(host);
    gpud_kernel spin = gpu_kernel(c, gpu_module(c), "spin");
    ck_gpud_ok(gpud_program_create(c, "pass", &p));
    gpud_arg room = gpud_program_temp(p, gpud_shape_1d(GPUD_U8, BYTES));
    const gpud_arg ns = gpud_u64(MS);
    ck_assert_int_ge(gpud_program_write(p, room, gpud_host_in(host, BYTES, GPUD_U8)), 0);
    ck_assert_int_ge(gpud_program_launch(p, spin, &ns, 1, &one), 0);
    ck_assert_int_ge(gpud_program_read(p, gpud_arg_with(room, GPUD_IN)), 0);
    ck_gpud_ok(gpud_program_seal(p));
    (void)pass_run(c, p, 1);
    struct pass single = pass_run(c, p, 1);
    struct pass many = pass_run(c, p, JOBS);
    record_begin(&r, "timeline");
    record_note(&r,
                "%u jobs: 1 MiB to the device, a kernel of 1 ms, 1 MiB back; at once: the mean "
                "number under way, by the daemon's recorded times (0: they were gone already)",
                JOBS);
    record_figure(&r, "one at a time", single.wall_ms, "ms");
    record_figure(&r, "together", many.wall_ms, "ms");
    record_figure(&r, "gain", single.wall_ms / many.wall_ms, "x");
    record_figure(&r, "at once", many.busy, "");
    (void)record_end(&r);
    gpud_program_free(p);
    free(host);
    daemon_end(&d, c);
}
END_TEST

/* ---- NVRTC ----------------------------------------------------------------------------------- */

START_TEST(cuda_source)
{
    static const char source[] = "extern \"C\" __global__ void triple(float *y, const float *x)\n"
                                 "{\n    y[threadIdx.x] = 3 * x[threadIdx.x];\n}\n";
    struct daemon d;
    struct record r;
    gpud_module module = {0};
    float x[SMALL];
    float y[SMALL] = {0};
    const gpud_grid grid = {.size = sizeof grid, .global = {SMALL, 1, 1}, .local = {SMALL, 1, 1}};
    gpud_client *c = gpu_begin(&d);
    record_begin(&r, "CUDA C by NVRTC");
    for (unsigned i = 0; i < SMALL; i++) {
        x[i] = (float)i;
    }
    uint64_t begin_ns = now_ns();
    int rc = gpud_module_load(c, GPUD_LANG_CUDA, source, sizeof source - 1, NULL, &module);
    record_figure(&r, "compiled in", (double)(now_ns() - begin_ns) / 1e6, "ms");
    if (rc == GPUD_ERR_UNSUPPORTED) {
        record_skipped(&r, gpud_last_error()->text);
    } else {
        ck_gpud_ok(rc);
        const gpud_arg args[] = {gpud_host_out(y, SMALL, GPUD_F32),
                                 gpud_host_in(x, SMALL, GPUD_F32)};
        ck_gpud_ok(gpud_call(c, gpu_kernel(c, module, "triple"), args, 2, &grid));
        for (unsigned i = 0; i < SMALL && !record_is_double(); i++) {
            ck_assert_msg(y[i] == 3 * x[i], "element %u is %g", i, (double)y[i]);
        }
        if (record_is_double()) {
            record_skipped(&r, "it was compiled; the double executes no device code");
        } else {
            (void)record_end(&r);
        }
    }
    daemon_end(&d, c);
}
END_TEST

/* ---- a user's first look ------------------------------------------------------------------ */

/* A photograph through several kernels, which the command itself compares with the processor's. */
START_TEST(demo)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    struct daemon d;
    struct record r;
    char picture[DAEMON_PATH + 16];
    gpud_client *c = gpu_begin(&d);
    (void)snprintf(picture, sizeof picture, "%s/edges.png", d.dir);
    uint64_t begin_ns = now_ns();
    const char *photograph = getenv("GPU_PICTURE");
    int status = photograph != NULL
                     ? gpuctl(&d, out, err, "demo", "-f", picture, "--image", photograph, NULL)
                     : gpuctl(&d, out, err, "demo", "-f", picture, NULL);
    uint64_t end_ns = now_ns();
    (void)fprintf(stderr, "%s%s", out, err);
    record_begin(&r, "demo");
    if (status != 0 && strstr(err, "libnvrtc") != NULL) {
        record_skipped(&r, "one of its kernels is compiled on the way, and NVRTC is not here");
    } else if (status != 0 && strstr(err, "no photograph") != NULL) {
        record_skipped(&r, "no photograph was here when the bundle was made, nor is one now");
    } else if (record_is_double()) {
        record_skipped(&r, "the double executes no device code, which one of its kernels is");
    } else {
        ck_assert_msg(status == 0, "gpuctl demo ended with %d: %s", status, err);
        record_note(&r, "gpuctl demo compares its picture with the processor's");
        record_figure(&r, "took", (double)(end_ns - begin_ns) / 1e6, "ms");
        (void)record_end(&r);
    }
    daemon_end(&d, c);
}
END_TEST

Suite *demo_suite(void)
{
    Suite *s = suite_create("demo");
    gpu_add(s, "demo", demo, 0);
    return s;
}

Suite *speed_suite(void)
{
    Suite *s = suite_create("speed");
    gpu_add(s, "launch latency", launch_latency, 0);
    gpu_add(s, "first gemm", first_gemm, 0);
    gpu_add(s, "copy by a client", client_copies, 0);
    gpu_add(s, "timeline", timeline, 0);
    gpu_add(s, "CUDA C by NVRTC", cuda_source, 0);
    return s;
}
