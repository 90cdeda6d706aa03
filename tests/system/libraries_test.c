/*
 * Operations that a vendor's library may serve: the results are the same, and the job says which
 * code served it. On the doubles of the driver and of the libraries (tests/fakelibs).
 */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/double.h"

#define COUNT(a)   (sizeof(a) / sizeof((a)[0]))
#define PLANS_MOST 400u

static struct daemon daemon_of_test;
static char served_by[GPUD_NAME];

static gpud_client *begin(const char *libraries, const char *scripted)
{
    char options[64];
    (void)snprintf(options, sizeof options, "libraries=%s", libraries);
    daemon_prepare(&daemon_of_test, "--backend", "cuda", "--backend-options", options, NULL);
    (void)setenv("CUDA_FAKE_LIBS", scripted, 1);
    return double_begin(&daemon_of_test, "");
}

static void end(gpud_client *c)
{
    daemon_end_clean(&daemon_of_test, c);
}

static void call(gpud_client *c, const char *name, const gpud_arg *args, uint32_t count)
{
    gpud_job *job = NULL;
    gpud_job_times times = {.size = sizeof times};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, name), args, count, NULL, NULL, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    ck_gpud_ok(gpud_job_timing(job, &times));
    (void)snprintf(served_by, sizeof served_by, "%s", times.implementation);
    gpud_job_desc d = {.size = sizeof d};
    ck_gpud_ok(gpud_job_info(c, gpud_job_id(job), &d));
    ck_assert_str_eq(d.implementation, times.implementation);
    gpud_job_free(job);
}

#define CALL(c, name, ...)                                                                         \
    do {                                                                                           \
        const gpud_arg call_args[] = {__VA_ARGS__};                                                \
        call(c, name, call_args, COUNT(call_args));                                                \
    } while (0)

static gpud_arg array(float *data, uint64_t a, uint64_t b, uint64_t c)
{
    gpud_shape shape = c != 0   ? gpud_shape_3d(GPUD_F32, a, b, c)
                       : b != 0 ? gpud_shape_2d(GPUD_F32, a, b)
                                : gpud_shape_1d(GPUD_F32, a);
    return gpud_host_shaped(data, shape, GPUD_AS_KERNEL);
}

static void same(const char *what, const float *got, const float *want, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_msg(fabsf(got[i] - want[i]) <= 1e-5f * (1 + fabsf(want[i])),
                      "%s by %s: element %u is %g, not %g", what, served_by, i, (double)got[i],
                      (double)want[i]);
    }
}

#define SAME(what, got, ...)                                                                       \
    do {                                                                                           \
        const float want[] = {__VA_ARGS__};                                                        \
        same(what, got, want, COUNT(want));                                                        \
    } while (0)

/* Every operation that a library can serve, with results that do not depend on the code that
 * computes them. */
static void products(gpud_client *c, const char *by)
{
    float a[] = {1, 2, 3, 4, 5, 6};
    float b[] = {1, 0, 2, 1, 0, 3};
    float sum[] = {1, 1, 1, 1};
    float out[8];
    double wide_a[] = {2, 3};
    double wide_b[] = {5, 7};
    double wide_c[1];
    CALL(c, "gemm", array(a, 2, 3, 0), array(b, 3, 2, 0), array(out, 2, 2, 0));
    SAME("gemm", out, 5, 11, 14, 23);
    ck_assert_str_eq(served_by, by);
    CALL(c, "gemm_add", gpud_f32(2), array(a, 2, 3, 0), array(b, 3, 2, 0), gpud_f32(10),
         array(sum, 2, 2, 0));
    SAME("gemm_add", sum, 20, 32, 38, 56);
    ck_assert_str_eq(served_by, by);
    CALL(c, "gemm_batched", array(a, 3, 1, 2), array(b, 3, 2, 1), array(out, 3, 1, 1));
    SAME("gemm_batched", out, 1, 10, 18);
    ck_assert_str_eq(served_by, by);
    CALL(c, "gemm", gpud_host_shaped(wide_a, gpud_shape_2d(GPUD_F64, 1, 2), GPUD_AS_KERNEL),
         gpud_host_shaped(wide_b, gpud_shape_2d(GPUD_F64, 2, 1), GPUD_AS_KERNEL),
         gpud_host_shaped(wide_c, gpud_shape_2d(GPUD_F64, 1, 1), GPUD_AS_KERNEL));
    ck_assert_double_eq(wide_c[0], 31);
    ck_assert_str_eq(served_by, by);
}

static void transforms(gpud_client *c, const char *by)
{
    float x[] = {1, 0, 2, 0, 3, 0, 4, 0};
    float y[8];
    float back[8];
    CALL(c, "fft", array(x, 4, 2, 0), array(y, 4, 2, 0));
    SAME("fft", y, 10, 0, -2, 2, -2, 0, -2, -2);
    ck_assert_str_eq(served_by, by);
    CALL(c, "ifft", array(y, 4, 2, 0), array(back, 4, 2, 0));
    same("ifft", back, x, 8);
    ck_assert_str_eq(served_by, by);
    CALL(c, "fft_batched", array(x, 2, 2, 2), array(y, 2, 2, 2));
    SAME("fft_batched", y, 3, 0, -1, 0, 7, 0, -1, 0);
    CALL(c, "ifft_batched", array(y, 2, 2, 2), array(back, 2, 2, 2));
    same("ifft_batched", back, x, 8);
    CALL(c, "fft_2d", array(x, 2, 2, 2), array(y, 2, 2, 2));
    SAME("fft_2d", y, 10, 0, -2, 0, -4, 0, 0, 0);
    CALL(c, "ifft_2d", array(y, 2, 2, 2), array(back, 2, 2, 2));
    same("ifft_2d", back, x, 8);
    ck_assert_str_eq(served_by, by);
}

static void lists(gpud_client *c, const char *by)
{
    float x[] = {3, -1, 4, 1, -5};
    float y[5];
    uint32_t keys[] = {5, 1, 4000000000u, 2, 0};
    uint32_t sums[5];
    CALL(c, "reduce_sum", array(x, 5, 0, 0), array(y, 1, 0, 0));
    SAME("reduce_sum", y, 2);
    CALL(c, "reduce_min", array(x, 5, 0, 0), array(y, 1, 0, 0));
    SAME("reduce_min", y, -5);
    CALL(c, "reduce_max", array(x, 5, 0, 0), array(y, 1, 0, 0));
    SAME("reduce_max", y, 4);
    ck_assert_str_eq(served_by, by);
    CALL(c, "scan_inclusive", array(x, 5, 0, 0), array(y, 5, 0, 0));
    SAME("scan_inclusive", y, 3, 2, 6, 7, 2);
    ck_assert_str_eq(served_by, "portable"); /* CUB's sums may differ from run to run */
    CALL(c, "scan_exclusive", array(x, 5, 0, 0), array(y, 5, 0, 0));
    SAME("scan_exclusive", y, 0, 3, 2, 6, 7);
    ck_assert_str_eq(served_by, "portable");
    CALL(c, "scan_exclusive", gpud_host_in(keys, 5, GPUD_U32), gpud_host_out(sums, 5, GPUD_U32));
    ck_assert(sums[0] == 0 && sums[2] == 6 && sums[4] == 4000000008u);
    ck_assert_str_eq(served_by, by);
    CALL(c, "sort", gpud_host(keys, 5, GPUD_U32));
    ck_assert(keys[0] == 0 && keys[1] == 1 && keys[2] == 2 && keys[3] == 5 &&
              keys[4] == 4000000000u);
    ck_assert_str_eq(served_by, by);
}

static void numbers(gpud_client *c, const char *by)
{
    float x[4];
    CALL(c, "random_uniform", gpud_u64(0), array(x, 4, 0, 0));
    ck_assert_str_eq(served_by, ""); /* cuRAND's have another range */
    ck_assert_float_eq(x[0], 0x6627e8 / 16777216.0f);
    CALL(c, "random_normal", gpud_u64(1), gpud_f32(7), gpud_f32(0), array(x, 4, 0, 0));
    SAME("random_normal", x, 7, 7, 7, 7);
    ck_assert_str_eq(served_by, by);
}

/* Slices begin at any element; some libraries store several at once. */
static void slices(gpud_client *c)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 32), 0, NULL, &b));
    for (unsigned first = 0; first < 8; first++) {
        CALL(c, "random_normal", gpud_u64(1), gpud_f32(7), gpud_f32(0),
             gpud_arg_slice(gpud_out(b), first, 8));
        ck_assert_msg(strcmp(served_by, first % 4 == 0 ? "curand" : "portable") == 0, "%u: %s",
                      first, served_by);
    }
    ck_gpud_ok(gpud_buffer_free(c, b));
}

START_TEST(libraries_serve)
{
    gpud_client *c = begin("", "");
    products(c, "cublas");
    transforms(c, "cufft");
    lists(c, "cub");
    numbers(c, "curand");
    slices(c);
    float odd[3]; /* cuRAND makes normal numbers in pairs only */
    CALL(c, "random_normal", gpud_u64(1), gpud_f32(7), gpud_f32(0), array(odd, 3, 0, 0));
    SAME("random_normal", odd, 7, 7, 7);
    ck_assert_str_eq(served_by, "portable");
    float none[1] = {0};
    CALL(c, "scale", gpud_f32(2), array(none, 1, 0, 0), array(none, 1, 0, 0));
    ck_assert_str_eq(served_by, "");
    end(c);
}
END_TEST

/* Switched off, and libraries that fail in their handles and plans, or when work is enqueued. */
START_TEST(portable_kernels_take_over)
{
    static const struct {
        const char *libraries, *scripted;
    } ways[] = {{"off", ""}, {"", "cublas=1;cufft=5;curand=203;cub=101"}};
    gpud_client *c = begin(ways[_i].libraries, ways[_i].scripted);
    products(c, "portable");
    transforms(c, "portable");
    lists(c, "portable");
    numbers(c, "portable");
    end(c);
}
END_TEST

START_TEST(some_libraries_only)
{
    gpud_client *c = begin("cufft+cub", "");
    products(c, "portable");
    transforms(c, "cufft");
    lists(c, "cub");
    end(c);
}
END_TEST

/* A library takes long to open; here until the test releases it. Its own job waits, or the portable
 * kernel runs it; other jobs continue. */
START_TEST(a_library_that_opens_holds_nobody_up)
{
    char way[DAEMON_PATH + 32];
    daemon_prepare(&daemon_of_test, "--backend", "cuda", NULL);
    (void)snprintf(way, sizeof way, "cublas=%s/go", daemon_of_test.dir);
    (void)setenv("CUDA_FAKE_LIBS", way, 1);
    gpud_client *c = double_begin(&daemon_of_test, "");
    float a[] = {1, 2, 3, 4};
    float out[4];
    float x[] = {3};
    const gpud_arg args[] = {array(a, 2, 2, 0), array(a, 2, 2, 0), array(out, 2, 2, 0)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "gemm"), args, COUNT(args), NULL, NULL, &job));
    CALL(c, "scale", gpud_f32(2), array(x, 1, 0, 0), array(x, 1, 0, 0));
    SAME("scale", x, 6);
    file_write(way + strlen("cublas="), "", 0);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    SAME("gemm", out, 7, 10, 15, 22);
    gpud_job_free(job);
    do { /* when it is there it serves */
        call(c, "gemm", args, COUNT(args));
    } while (strcmp(served_by, "cublas") != 0);
    end(c);
}
END_TEST

/* FAULT 13: a device has no memory left when a vendor's library is initialised
 * required: the portable kernels serve; the library is tried again while jobs come, after 1 s
 *   and then at growing intervals
 * defence: `backend/cuda/library/library_call.c`: cuda_library_later;
 *   `backend/cuda/library/library.c`: library_again; `worker/memory/module_cache.c`:
 *   modules_prepare_again
 * also: `worker_module_cache_test`: libraries_are_tried_again
 * mutants: library-again */
/* The device lacked memory for the library when it was opened, for all operations or for a while:
 * the portable kernels serve meanwhile. */
START_TEST(a_library_is_tried_again)
{
    static const char *const NAME[] = {"cublas=3", "cufft=2", "curand=102", "cub=2"};
    static const char *const BY[] = {"cublas", "cufft", "curand", "cub"};
    char way[DAEMON_PATH + 32];
    float a[] = {1, 2, 3, 4};
    float out[4];
    const gpud_arg product[] = {array(a, 2, 2, 0), array(a, 2, 2, 0), array(out, 2, 2, 0)};
    const gpud_arg transform[] = {array(a, 2, 2, 0), array(out, 2, 2, 0)};
    const gpud_arg normal[] = {gpud_u64(1), gpud_f32(7), gpud_f32(0), array(out, 4, 0, 0)};
    const gpud_arg sum[] = {array(a, 4, 0, 0), array(out, 1, 0, 0)};
    const struct {
        const char *kernel;
        const gpud_arg *args;
        uint32_t count;
    } with[] = {{"gemm", product, 3},
                {"fft", transform, 2},
                {"random_normal", normal, 4},
                {"reduce_sum", sum, 2}};
    daemon_prepare(&daemon_of_test, "--backend", "cuda", NULL);
    (void)snprintf(way, sizeof way, "%s%s/there", NAME[_i], daemon_of_test.dir);
    (void)setenv("CUDA_FAKE_LIBS", way, 1);
    gpud_client *c = double_begin(&daemon_of_test, "");
    for (unsigned i = 0; i < 3; i++) {
        call(c, with[_i].kernel, with[_i].args, with[_i].count);
        ck_assert_str_eq(served_by, "portable");
    }
    file_write(strchr(way, '/'), "", 0);
    ck_until((call(c, with[_i].kernel, with[_i].args,
                   with[_i].count), /* the library is tried again on a request only */
              strcmp(served_by, BY[_i]) == 0));
    end(c);
}
END_TEST

static bool transformed_by_cufft(gpud_client *c, uint64_t count)
{
    static float x[4 * PLANS_MOST];
    static float y[4 * PLANS_MOST];
    CALL(c, "fft_batched", array(x, count, 2, 2), array(y, count, 2, 2));
    return strcmp(served_by, "cufft") == 0;
}

/* More shapes than there are plans for. The driver waits for the whole device before it frees a
 * plan's memory, and gpud does not make it while a kernel runs. Too many are not kept: then others
 * do the work, until there is room. */
START_TEST(plans_are_given_up_beside_a_long_kernel)
{
    float y[GATE_ITEMS] = {0};
    uint64_t count = 1;
    daemon_prepare(&daemon_of_test, "--backend", "cuda", "--set", "jobs.window=4", NULL);
    double_state(&daemon_of_test);
    gpud_client *c = double_begin(&daemon_of_test, "");
    ck_until(transformed_by_cufft(c, count)); /* it is ready */
    gpud_job *large = gate_start(&daemon_of_test, c, y);
    while (transformed_by_cufft(c, count) && count < PLANS_MOST) {
        count++;
    }
    ck_assert_str_eq(served_by, "portable");
    ck_assert_uint_gt(count, 70); /* some are in use, and so many are given up */
    ck_assert(gpud_dispatch(c) == 0 && !gpud_job_done(large));
    gate_open(&daemon_of_test);
    ck_gpud_ok(gpud_wait(large, 2 * PATIENCE));
    ck_until(transformed_by_cufft(c, count));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    gpud_job_free(large);
    end(c);
}
END_TEST

/* Each step of a program says which code served it, and a library's step keeps its place in the
 * order. */
START_TEST(steps_in_order)
{
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    char number[32];
    gpud_client *c = begin("", "");
    gpud_buffer x = {0};
    gpud_buffer y = {0};
    gpud_program *p = NULL;
    gpud_job *job = NULL;
    const float a[] = {1, 2, 3, 4};
    float got[4];
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_2d(GPUD_F32, 2, 2), 0, "x", &x));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_2d(GPUD_F32, 2, 2), 0, "y", &y));
    ck_gpud_ok(gpud_write(c, x, GPUD_F32, 0, 4, a, NULL));
    ck_gpud_ok(gpud_program_create(c, "steps", &p));
    for (unsigned i = 0; i < 3; i++) {
        const gpud_arg product[] = {gpud_in(x), gpud_in(x), gpud_out(y)};
        const gpud_arg scale[] = {gpud_f32(0.5f), gpud_in(y), gpud_out(x)};
        (void)gpud_program_launch(p, kernel_find(c, "gemm"), product, 3, NULL);
        (void)gpud_program_launch(p, kernel_find(c, "scale"), scale, 3, NULL);
    }
    ck_gpud_ok(gpud_program_seal(p));
    ck_gpud_ok(gpud_submit(c, p, NULL, 0, NULL, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    ck_gpud_ok(gpud_read(c, x, GPUD_F32, 0, 4, got, NULL));
    float want[] = {1, 2, 3, 4};
    for (unsigned i = 0; i < 3; i++) {
        const float w[] = {want[0], want[1], want[2], want[3]};
        want[0] = (w[0] * w[0] + w[1] * w[2]) / 2;
        want[1] = (w[0] * w[1] + w[1] * w[3]) / 2;
        want[2] = (w[2] * w[0] + w[3] * w[2]) / 2;
        want[3] = (w[2] * w[1] + w[3] * w[3]) / 2;
    }
    same("steps", got, want, 4);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)gpud_job_id(job));
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "job", "show", number, "-o", "json", NULL),
                     0);
    ck_assert_msg(strstr(out, "\"implementation\": \"cublas\"") != NULL, "%s%s", out, err);
    gpud_job_free(job);
    gpud_program_free(p);
    end(c);
}
END_TEST

/* ---- buffers that other processes map -------------------------------------------------------- */

START_TEST(a_buffer_is_exported)
{
    gpud_client *c = begin("off", "");
    gpud_client *other = client_open(daemon_of_test.url);
    gpud_buffer plain = {0};
    gpud_buffer b = {0};
    gpud_export_desc x = {.size = sizeof x};
    gpud_export_desc again = {.size = sizeof again};
    const float a[10] = {1, 2, 3, 4};
    float got[10];
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, "plain", &plain));
    ck_gpud_err(gpud_buffer_export(c, plain, &x), GPUD_ERR_STATE);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 10), GPUD_BUFFER_EXPORT, "x", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, 10, a, NULL));
    ck_gpud_ok(gpud_buffer_export(c, b, &x));
    ck_assert_uint_eq(x.bytes, 2u << 20);
    ck_assert_msg(strncmp(x.device, "uuid=", 5) == 0, "%s", x.device);
    ck_gpud_ok(gpud_buffer_export(c, b, &again));
    ck_assert_int_ne(again.fd, x.fd);
    /* the double's memory is a file */
    float *seen = mmap(NULL, x.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, x.fd, 0);
    ck_assert(seen != MAP_FAILED);
    same("what was written", seen, a, 10);
    for (size_t i = 10; i < x.bytes / sizeof(float); i++) { /* nothing of others lies behind it */
        ck_assert_msg(seen[i] == 0, "word %zu", i);
    }
    CALL(c, "scale", gpud_f32(2), gpud_in(b), gpud_out(b));
    SAME("what a kernel wrote", seen, 2, 4, 6, 8);
    seen[0] = 5;
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 10, got, NULL));
    SAME("what others wrote", got, 5, 4, 6, 8);

    ck_gpud_ok(gpud_buffer_free(c, b));
    ck_gpud_ok(gpud_flush(c, PATIENCE));
    ck_assert_float_eq(seen[3], 8); /* the buffer exists while a session holds it */
    (void)munmap(seen, x.bytes);
    (void)close(x.fd);
    (void)close(again.fd);
    gpud_close(other);
    end(c);
}
END_TEST

/* Restored, a buffer has other memory; one that is not sealed is lost as any other. */
START_TEST(an_exported_buffer_outlives_its_worker)
{
    gpud_client *c = begin("off", "");
    gpud_buffer b = {0};
    gpud_export_desc x = {.size = sizeof x};
    gpud_export_desc y = {.size = sizeof y};
    const float a[] = {1, 2, 3, 4};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_EXPORT, "x", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, 4, a, NULL));
    ck_gpud_ok(gpud_buffer_seal(c, b));
    ck_gpud_ok(gpud_buffer_export(c, b, &x));
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    daemon_wait_worker(&daemon_of_test, 0, worker);
    ck_gpud_ok(gpud_buffer_export(c, b, &y));
    float *old = mmap(NULL, x.bytes, PROT_READ, MAP_SHARED, x.fd, 0);
    float *now = mmap(NULL, y.bytes, PROT_READ, MAP_SHARED, y.fd, 0);
    ck_assert(old != MAP_FAILED && now != MAP_FAILED);
    same("what was", old, a, 4);
    same("what is", now, a, 4);
    struct stat one, two;
    ck_assert(fstat(x.fd, &one) == 0 && fstat(y.fd, &two) == 0 && one.st_ino != two.st_ino);
    (void)munmap(old, x.bytes);
    (void)munmap(now, y.bytes);
    (void)close(x.fd);
    (void)close(y.fd);
    gpud_close(c);
    daemon_stop(&daemon_of_test); /* the worker that was killed had leaks */
}
END_TEST

START_TEST(the_example_maps_a_buffer)
{
    gpud_client *c = begin("off", "");
    const char *argv[] = {SYSTEM_BIN "/example_export", NULL};
    (void)setenv("GPUD_URL", daemon_of_test.url, 1);
    ck_assert_int_eq(run_program(argv, "/dev/null", "/dev/null"), 0);
    end(c);
}
END_TEST

START_TEST(others_export_nothing)
{
    gpud_client *c = daemon_begin(&daemon_of_test, "--backend", "sim", NULL);
    gpud_buffer b = {0};
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_EXPORT, NULL, &b),
                GPUD_ERR_UNSUPPORTED);
    daemon_end(&daemon_of_test, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("libraries");
    suite_add(suite, libraries_serve);
    suite_add_loop(suite, portable_kernels_take_over, 2);
    suite_add(suite, some_libraries_only);
    suite_add(suite, a_library_that_opens_holds_nobody_up);
    suite_add_loop(suite, a_library_is_tried_again, 4);
    suite_add(suite, plans_are_given_up_beside_a_long_kernel);
    suite_add(suite, steps_in_order);
    suite_add(suite, a_buffer_is_exported);
    suite_add(suite, an_exported_buffer_outlives_its_worker);
    suite_add(suite, the_example_maps_a_buffer);
    suite_add(suite, others_export_nothing);
    return system_main(suite);
}
