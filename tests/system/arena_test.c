/* Arenas: memory shared between client, front and workers. Jobs compute in it, limits bound its
 * size, and nothing of it is left behind. Each test runs on simulated devices and on OpenCL. */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define N 100000u /* elements: beyond what travels with a job */

static struct daemon daemon_of_test;

static const char *const backends[] = {"sim", "opencl"};

static gpud_client *begin(int backend, const char *setting, const char *other)
{
    const char *options = backend == 0 ? "speed=0" : "";
    struct daemon *d = &daemon_of_test;
    return daemon_begin(d, "--backend", backends[backend], "--backend-options", options, "--set",
                        setting != NULL ? setting : "jobs.window=8", "--set",
                        other != NULL ? other : "jobs.queue_max=4096", "--set",
                        "compile.wall_ms=120000", NULL);
}

static void end(gpud_client *c)
{
    daemon_end(&daemon_of_test, c);
}

static void *alloc(gpud_client *c, size_t bytes)
{
    void *memory = NULL;
    ck_gpud_ok(gpud_host_alloc(c, bytes, &memory));
    ck_assert_uint_eq((uintptr_t)memory % 256, 0);
    return memory;
}

static void count_up(float *x, unsigned n, float by)
{
    for (unsigned i = 0; i < n; i++) {
        x[i] = (float)(i % 1000) * by;
    }
}

/* y = 2x + y on n elements of host memory. */
static int axpy(gpud_client *c, const float *x, float *y, unsigned n)
{
    gpud_arg args[] = {gpud_f32(2), gpud_host_in(x, n, GPUD_F32), gpud_host_inout(y, n, GPUD_F32)};
    return gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL);
}

static void check_sum(const float *x, const float *y, unsigned n, float times)
{
    unsigned i = 0;
    while (i < n && y[i] == times * x[i]) {
        i++;
    }
    ck_assert_msg(i == n, "%u: %g for %g", i, i < n ? y[i] : 0, i < n ? x[i] : 0);
}

/* Entries of a folder of /proc. */
static unsigned entries(pid_t pid, const char *what)
{
    char path[64];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, what);
    DIR *dir = opendir(path);
    ck_assert_msg(dir != NULL, "%s", path);
    while (readdir(dir) != NULL) {
        count++;
    }
    (void)closedir(dir);
    return count;
}

/* Mappings of arenas in a process. */
static unsigned mappings(pid_t pid)
{
    char path[64];
    char line[512];
    unsigned count = 0;
    (void)snprintf(path, sizeof path, "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "r");
    ck_assert_ptr_nonnull(file);
    while (fgets(line, sizeof line, file) != NULL) {
        count += strstr(line, "gpud-arena") != NULL;
    }
    (void)fclose(file);
    return count;
}

static int memfd_of(size_t bytes, int seals)
{
    int fd = memfd_create("own", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(ftruncate(fd, (off_t)bytes), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    return fd;
}

/* ---- work ---------------------------------------------------------------------------------- */

START_TEST(kernels_work_on_shared_memory)
{
    gpud_client *c = begin(_i, NULL, NULL);
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    count_up(x, N, 1);
    count_up(y, N, 1);
    ck_gpud_ok(axpy(c, x, y, N));
    check_sum(x, y, N, 3);
    ck_gpud_ok(axpy(c, x + 77, y + 77, 1001)); /* wherever it begins */
    check_sum(x, y, 77, 3);
    check_sum(x + 77, y + 77, 1001, 5);
    check_sum(x + 1078, y + 1078, N - 1078, 3);
    ck_assert_uint_eq(mappings(daemon_worker(&daemon_of_test, 0)), 1);
    ck_gpud_ok(gpud_host_free(c, x));
    ck_gpud_ok(gpud_host_free(c, y));
    end(c);
}
END_TEST

/* The first job uses a copy of the arena; after it the workers have reported that kernels can use
 * the arena directly. */
START_TEST(kernels_work_without_a_copy)
{
    gpud_client *c = begin(_i, NULL, NULL);
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    count_up(x, N, 1);
    for (unsigned round = 0; round < 20; round++) {
        count_up(y, N, 1);
        gpud_arg args[] = {gpud_f32(2), gpud_arg_direct(gpud_host_in(x, N, GPUD_F32)),
                           gpud_arg_direct(gpud_host_inout(y, N, GPUD_F32))};
        ck_gpud_ok(gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL));
        check_sum(x, y, N, 3);
        ck_gpud_ok(axpy(c, x + 1, y + 1, N - 1)); /* where no driver would begin */
        check_sum(x, y, 1, 3);
        check_sum(x + 1, y + 1, N - 1, 5);
    }
    float sum[64] = {0};
    float expected = 0;
    gpud_arg args[] = {gpud_host_in(x, 1000, GPUD_F32), gpud_host_out(sum, 1, GPUD_F32)};
    for (unsigned i = 0; i < 1000; i++) {
        expected += x[i];
    }
    ck_gpud_ok(gpud_call(c, kernel_find(c, "reduce_sum"), args, 2, NULL));
    ck_assert_float_eq(sum[0], expected);
    ck_gpud_ok(gpud_host_free(c, x));
    ck_gpud_ok(gpud_host_free(c, y));
    end(c);
}
END_TEST

START_TEST(buffers_are_filled_from_shared_memory)
{
    gpud_client *c = begin(_i, NULL, NULL);
    size_t n = 9u << 20; /* several parts */
    uint32_t *from = alloc(c, n * sizeof *from);
    uint32_t *to = alloc(c, n * sizeof *to);
    gpud_buffer b = {0};
    for (uint32_t i = 0; i < n; i++) {
        from[i] = i * 2654435761u;
    }
    memset(to, 0, n * sizeof *to);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, n), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, from, NULL));
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, to, NULL));
    ck_assert_mem_eq(from, to, n * sizeof *to);
    memset(to, 0, n * sizeof *to);
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 1000, 5, to + 3, NULL));
    ck_assert_mem_eq(from + 1000, to + 3, 5 * sizeof *to);
    ck_assert_uint_eq(to[2] | to[8], 0);
    end(c);
}
END_TEST

/* What the user did not allocate here goes through staging memory by itself. */
START_TEST(plain_memory_goes_through_staging)
{
    static float x[3000000];
    static float y[3000000];
    gpud_client *c = begin(_i, NULL, NULL);
    gpud_buffer b = {0};
    count_up(x, N, 1);
    count_up(y, N, 1);
    ck_gpud_ok(axpy(c, x, y, N));
    check_sum(x, y, N, 3);
    ck_assert_uint_ge(mappings(daemon_worker(&daemon_of_test, 0)), 1);
    count_up(x, 3000000, 0.5f);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 3000000), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, x, NULL));
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, y, NULL));
    ck_assert_mem_eq(x, y, sizeof x);
    count_up(y, 3000000, 0.5f);
    ck_gpud_ok(axpy(c, x, y, 3000000)); /* more than a message */
    check_sum(x, y, 3000000, 3);
    end(c);
}
END_TEST

/* Submitting does not wait for staging memory to be made; what found none travels with the job, and
 * the next wait makes some. */
START_TEST(submitted_jobs_get_staging_memory)
{
    static float x[N];
    static float y[N];
    gpud_client *c = begin(_i, NULL, NULL);
    gpud_arg args[] = {gpud_f32(2), gpud_host_in(x, N, GPUD_F32), gpud_host_inout(y, N, GPUD_F32)};
    gpud_kernel axpy_kernel = kernel_find(c, "axpy");
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    count_up(x, N, 1);
    count_up(y, N, 1);
    for (unsigned round = 0; round < 2; round++) {
        gpud_job *job = NULL;
        ck_gpud_ok(gpud_launch(c, axpy_kernel, args, 3, NULL, NULL, &job));
        ck_gpud_ok(gpud_wait(job, GPUD_FOREVER));
        gpud_job_free(job);
        check_sum(x, y, N, (float)(3 + 2 * round));
        ck_assert_uint_eq(mappings(worker) > 0, round > 0);
    }
    end(c);
}
END_TEST

START_TEST(programs_read_and_write_there)
{
    gpud_client *c = begin(_i, NULL, NULL);
    gpud_shape shape = gpud_shape_1d(GPUD_F32, N);
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_program_create(c, "frame", &p));
    gpud_arg in = gpud_program_param(p, "in", GPUD_PARAM_DATA, shape);
    gpud_arg out = gpud_program_param(p, "out", GPUD_PARAM_DATA, shape);
    gpud_arg copy = gpud_program_param(p, "copy", GPUD_PARAM_DATA, shape);
    gpud_arg temp = gpud_program_temp(p, shape);
    gpud_arg scale[] = {gpud_f32(3), in, temp};
    gpud_arg again[] = {gpud_f32(2), temp, out};
    ck_assert_int_eq(gpud_program_launch(p, kernel_find(c, "scale"), scale, 3, NULL), 0);
    ck_assert_int_eq(gpud_program_launch(p, kernel_find(c, "scale"), again, 3, NULL), 1);
    ck_assert_int_eq(gpud_program_read_to(p, copy, temp), 2);
    ck_gpud_ok(gpud_program_seal(p));
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    float *z = alloc(c, N * sizeof *z);
    for (unsigned round = 1; round < 4; round++) {
        count_up(x, N, (float)round);
        gpud_arg args[] = {gpud_host_in(x, N, GPUD_F32), gpud_host_out(y, N, GPUD_F32),
                           gpud_host_out(z, N, GPUD_F32)};
        ck_gpud_ok(gpud_run(c, p, args, 3, NULL, NULL));
        check_sum(x, y, N, 6);
        check_sum(x, z, N, 3);
        args[1] = gpud_host_in(y, N, GPUD_F32);
        ck_gpud_err(gpud_run(c, p, args, 3, NULL, NULL), GPUD_ERR_ARG_ACCESS);
    }
    static float own[N];
    gpud_arg args[] = {gpud_host_in(x, N, GPUD_F32), gpud_host_out(own, N, GPUD_F32),
                       gpud_host_out(z, N, GPUD_F32)};
    ck_gpud_err(gpud_run(c, p, args, 3, NULL, NULL), GPUD_ERR_ARG_ACCESS);
    gpud_program_free(p);
    end(c);
}
END_TEST

/* Many concurrent jobs on parts of one arena: jobs whose parts overlap keep their order. */
START_TEST(overlapping_parts_keep_their_order)
{
    enum { JOBS = 60 };
    gpud_client *c = begin(_i, NULL, NULL);
    float *y = alloc(c, N * sizeof *y);
    gpud_kernel scale = kernel_find(c, "scale");
    gpud_job *job[JOBS] = {NULL};
    count_up(y, N, 1);
    for (unsigned i = 0; i < JOBS; i++) { /* ten times from one half to the other and back */
        float *from = i % 2 == 0 ? y : y + N / 2;
        float *to = i % 2 == 0 ? y + N / 2 : y;
        gpud_arg args[] = {gpud_f32(i % 2 == 0 ? 2 : 0.5f), gpud_host_in(from, N / 2, GPUD_F32),
                           gpud_host_out(to, N / 2, GPUD_F32)};
        gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
        ck_gpud_ok(gpud_launch(c, scale, args, 3, NULL, &o, &job[i]));
    }
    for (unsigned i = 0; i < JOBS; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        gpud_job_free(job[i]);
    }
    static float was[N];
    count_up(was, N, 1);
    check_sum(was, y, N / 2, 1);
    check_sum(was, y + N / 2, N / 2, 2);
    end(c);
}
END_TEST

START_TEST(ones_own_memfd_is_used)
{
    gpud_client *c = begin(_i, NULL, NULL);
    size_t bytes = 2 * N * sizeof(float);
    int fd = memfd_of(bytes, F_SEAL_SHRINK);
    float *own = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    void *memory = NULL;
    size_t size = 0;
    ck_assert_ptr_ne(own, MAP_FAILED);
    ck_gpud_ok(gpud_host_import(c, fd, &memory, &size));
    ck_assert_uint_eq(size, bytes);
    float *x = memory;
    count_up(own, 2 * N, 1);
    ck_gpud_ok(axpy(c, x, x + N, N));
    check_sum(own, own + N, N, 3);
    /* a hole reads as zeros */
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes), 0);
    ck_gpud_ok(axpy(c, x, x + N, N));
    ck_assert_float_eq(own[N - 1], 0);
    ck_assert_float_eq(own[2 * N - 1], 0);
    ck_gpud_ok(gpud_host_free(c, memory));
    ck_gpud_err(gpud_host_free(c, memory), GPUD_ERR_INVALID);
    own[0] = 1; /* still one's own */
    (void)munmap(own, bytes);
    (void)close(fd);
    end(c);
}
END_TEST

/* ---- refusals ------------------------------------------------------------------------------ */

static void refused(gpud_client *c, int fd, int code, const char *word)
{
    void *memory = NULL;
    ck_gpud_err(gpud_host_import(c, fd, &memory, NULL), code);
    ck_assert_msg(strstr(gpud_last_error()->text, word) != NULL, "%s", gpud_last_error()->text);
    ck_assert_ptr_null(memory);
    (void)close(fd);
}

static void refuse_all(gpud_client *c)
{
    char path[64];
    refused(c, memfd_of(4096, 0), GPUD_ERR_INVALID, "F_SEAL_SHRINK");
    refused(c, memfd_of(4096, F_SEAL_GROW), GPUD_ERR_INVALID, "F_SEAL_SHRINK");
    refused(c, memfd_of(4096, F_SEAL_SHRINK | F_SEAL_WRITE), GPUD_ERR_INVALID, "written");
    refused(c, memfd_of(0, F_SEAL_SHRINK), GPUD_ERR_INVALID, "size");
    refused(c, open("/dev/null", O_RDWR | O_CLOEXEC), GPUD_ERR_INVALID, "size");
    int fd = memfd_of(4096, F_SEAL_SHRINK);
    (void)snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    refused(c, open(path, O_RDONLY | O_CLOEXEC), GPUD_ERR_INVALID, "written");
    (void)close(fd);
    fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd >= 0 && ftruncate(fd, 2 << 20) == 0 && fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0) {
        refused(c, fd, GPUD_ERR_UNSUPPORTED, "huge");
    } else if (fd >= 0) {
        (void)close(fd);
    }
}

START_TEST(memory_that_could_harm_is_refused)
{
    gpud_client *c = begin(_i, NULL, NULL);
    pid_t front = daemon_of_test.pid;
    refuse_all(c);
    refuse_all(c);
    unsigned before = entries(front, "fd"); /* of the session, too */
    for (int i = 0; i < 5; i++) {
        refuse_all(c);
    }
    ck_until(entries(front, "fd") <= before);
    ck_gpud_err(gpud_host_free(c, &before), GPUD_ERR_INVALID);
    ck_gpud_ok(gpud_host_free(c, NULL));
    end(c);
}
END_TEST

START_TEST(there_is_so_much_for_a_session)
{
    gpud_client *c = begin(_i, "jobs.arena_bytes_max=8M", "jobs.arenas_max=3");
    void *a = NULL;
    void *b = NULL;
    gpud_limits_desc limits = {.size = sizeof limits};
    ck_gpud_ok(gpud_limits(c, &limits));
    ck_assert_uint_eq(limits.max_arena, 8u << 20);
    ck_gpud_err(gpud_host_alloc(c, 9u << 20, &a), GPUD_ERR_LIMIT);
    ck_gpud_ok(gpud_host_alloc(c, 6u << 20, &a));
    ck_gpud_err(gpud_host_alloc(c, 3u << 20, &b), GPUD_ERR_LIMIT);
    ck_assert_msg(strstr(gpud_last_error()->text, "8388608") != NULL, "%s",
                  gpud_last_error()->text);
    ck_gpud_ok(gpud_host_free(c, a));
    ck_gpud_ok(gpud_host_alloc(c, 8u << 20, &a));
    ck_gpud_err(gpud_host_alloc(c, (size_t)-1, &b), GPUD_ERR_NOMEM);
    gpud_client *other = client_open(daemon_of_test.url);
    void *fine = alloc(other, 1u << 20); /* each session has its own */
    ck_gpud_ok(gpud_host_free(other, fine));
    /* what goes without staging memory goes inline */
    static float x[N];
    static float y[N];
    count_up(x, N, 1);
    count_up(y, N, 1);
    ck_gpud_ok(axpy(c, x, y, N));
    check_sum(x, y, N, 3);
    int fd[4];
    void *memory[4];
    for (int i = 0; i < 4; i++) {
        fd[i] = memfd_of(4096, F_SEAL_SHRINK);
        if (i < 2) { /* one is kept for the next request */
            ck_gpud_ok(gpud_host_import(other, fd[i], &memory[i], NULL));
        }
    }
    ck_gpud_err(gpud_host_import(other, fd[2], &memory[2], NULL), GPUD_ERR_LIMIT);
    for (int i = 0; i < 4; i++) {
        (void)close(fd[i]);
    }
    gpud_close(other);
    end(c);
}
END_TEST

START_TEST(tenants_have_a_limit_of_their_own)
{
    gpud_client *c = begin(_i, "tenants.arena_bytes_max=8M", NULL);
    gpud_client *other = client_open(daemon_of_test.url);
    void *a = alloc(c, 5u << 20);
    void *b = NULL;
    ck_gpud_err(gpud_host_alloc(other, 5u << 20, &b), GPUD_ERR_LIMIT);
    ck_assert_msg(strstr(gpud_last_error()->text, "tenant") != NULL, "%s", gpud_last_error()->text);
    ck_gpud_ok(gpud_host_free(c, a));
    ck_until(gpud_host_alloc(other, 5u << 20, &b) == 0);
    gpud_close(other);
    end(c);
}
END_TEST

START_TEST(over_tcp_it_is_plain_memory)
{
    struct daemon *d = &daemon_of_test;
    static char url[64];
    static char local[DAEMON_PATH];
    tcp_url(url, sizeof url);
    daemon_prepare(d, "--backend", backends[_i], "--backend-options", _i == 0 ? "speed=0" : "",
                   "--listen", url, "--listen", local, NULL);
    (void)snprintf(local, sizeof local, "%s", d->url);
    daemon_spawn(d);
    daemon_wait_ready(d);
    gpud_client *c = client_open(url);
    gpud_limits_desc limits = {.size = sizeof limits};
    ck_gpud_ok(gpud_limits(c, &limits));
    ck_assert_uint_eq(limits.max_arena, 0);
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    count_up(x, N, 1);
    count_up(y, N, 1);
    ck_gpud_ok(axpy(c, x, y, N));
    check_sum(x, y, N, 3);
    gpud_buffer b = {0};
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), GPUD_BUFFER_ZERO, NULL, &b));
    ck_gpud_ok(gpud_program_create(c, NULL, &p));
    ck_gpud_err(gpud_program_read_to(p, gpud_host_out(y, N, GPUD_F32), gpud_in(b)),
                GPUD_ERR_ARG_TYPE); /* programs cannot write there, and it says why */
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "tcp"));
    gpud_program_free(p);
    ck_gpud_ok(gpud_host_free(c, x));
    ck_gpud_ok(gpud_host_free(c, y));
    void *memory = NULL;
    int fd = memfd_of(4096, F_SEAL_SHRINK);
    ck_gpud_err(gpud_host_import(c, fd, &memory, NULL), GPUD_ERR_UNSUPPORTED);
    (void)close(fd);
    gpud_close(c);
    daemon_stop(d);
}
END_TEST

/* ---- ends ---------------------------------------------------------------------------------- */

/* Input and output in different places of one arena: the client does not notice that the worker is
 * killed. */
START_TEST(a_workers_end_is_not_noticed)
{
    gpud_client *c = begin(_i, NULL, NULL);
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    gpud_kernel scale = kernel_find(c, "scale");
    count_up(x, N, 1);
    for (unsigned kill_at = 0; kill_at < 3; kill_at++) {
        pid_t worker = daemon_worker(&daemon_of_test, 0);
        gpud_job *job[32];
        memset(y, 0, N * sizeof *y);
        for (unsigned i = 0; i < 32; i++) {
            size_t part = N / 32;
            gpud_arg args[] = {gpud_f32(2), gpud_host_in(x + i * part, part, GPUD_F32),
                               gpud_host_out(y + i * part, part, GPUD_F32)};
            gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
            ck_gpud_ok(gpud_launch(c, scale, args, 3, NULL, &o, &job[i]));
            if (i == 5 + 10 * kill_at) {
                ck_assert_int_eq(kill(worker, SIGKILL), 0);
            }
        }
        for (unsigned i = 0; i < 32; i++) {
            ck_gpud_ok(gpud_wait(job[i], PATIENCE));
            gpud_job_free(job[i]);
        }
        check_sum(x, y, N / 32 * 32, 2);
        daemon_wait_worker(&daemon_of_test, 0, worker);
    }
    end(c);
}
END_TEST

static void go_on_after(void (*how)(struct daemon *d), int backend)
{
    struct daemon *d = &daemon_of_test;
    gpud_client *c = begin(backend, NULL, NULL);
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    size_t bytes = N * sizeof *x;
    int fd = memfd_of(bytes, F_SEAL_SHRINK);
    void *memory = NULL;
    static float own[N];
    ck_gpud_ok(gpud_host_import(c, fd, &memory, NULL));
    count_up(x, N, 1);
    count_up(y, N, 1);
    count_up(own, N, 1);
    ck_gpud_ok(axpy(c, x, y, N));
    ck_gpud_ok(axpy(c, x, own, N));
    pid_t worker = daemon_worker(d, 0);
    how(d);
    daemon_spawn(d);
    ck_gpud_ok(axpy(c, x, y, N)); /* the same memory, by its new name */
    check_sum(x, y, N, 5);
    ck_gpud_ok(axpy(c, x, own, N));
    check_sum(x, own, N, 5);
    memset(memory, 0, bytes);
    ck_gpud_ok(axpy(c, x, memory, N));
    check_sum(x, memory, N, 2);
    ck_assert_int_eq(daemon_worker(d, 0), worker); /* it was taken over */
    ck_until(mappings(worker) <=
             3); /* the new front knows nothing of what the old one sent to the worker */
    ck_gpud_ok(gpud_host_free(c, memory));
    ck_gpud_ok(gpud_host_free(c, x));
    ck_gpud_ok(gpud_host_free(c, y));
    (void)close(fd);
    end(c);
}

START_TEST(a_killed_front_gets_the_memory_again)
{
    go_on_after(daemon_kill, _i);
}
END_TEST

START_TEST(the_next_front_gets_the_memory_again)
{
    go_on_after(daemon_hand_over, _i);
}
END_TEST

/* FAULT 22: front and worker end together
 * required: the launcher keeps the record of the worker's jobs. Those that may not run twice end
 *   with `WORKER_LOST`, `effects = maybe`; the client's next request runs the others
 * defence: `front/devices/adopt.c`: adopt_record, take_departed; `front/workers/record.c`:
 *   record_begin, record_departed; `launcher/children.c`: child_departed, children_replace
 * also: `test_launcher`: an_ended_workers_record_is_kept; `front_record_test`:
 *   jobs_outlive_their_worker; `front_courses_test`: kept_courses_break_no_rule
 * mutants: departed-jobs, record-kept, record-begin, record-freed */
/* Front and worker end while a job adds to the client's memory in place. The next front finds the
 * job in the record that the launcher kept: it may have run, so it does not run again. */
START_TEST(a_job_in_place_runs_once)
{
    struct daemon *d = &daemon_of_test;
    enum { ITEMS = 1000 };
    gpud_client *c = daemon_begin(d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    float *x = alloc(c, ITEMS * sizeof *x);
    float *y = alloc(c, ITEMS * sizeof *y);
    count_up(x, ITEMS, 1);
    count_up(y, ITEMS, 1);
    gpud_arg args[] = {gpud_f32(1), gpud_host_in(x, ITEMS, GPUD_F32),
                       gpud_host_inout(y, ITEMS, GPUD_F32)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &job));
    job_await_dispatch(c, job);
    uint64_t id = gpud_job_id(job);
    pid_t worker = daemon_worker(d, 0);
    daemon_kill(d);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    if (_i == 1) { /* the launcher has seen its end, or not */
        ck_until(kill(worker, 0) != 0);
    }
    daemon_spawn(d);
    ck_gpud_err(gpud_wait(job, PATIENCE), GPUD_ERR_WORKER_LOST);
    ck_assert_int_eq(gpud_last_error()->effects, GPUD_EFFECTS_MAYBE);
    gpud_job_free(job);
    float times = y[ITEMS - 1] / x[ITEMS - 1];
    ck_assert(times == 1 || times == 2);
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    ck_assert_uint_gt(gpud_job_id(job), id);
    gpud_job_free(job);
    end(c);
}
END_TEST

/* More clients of one user want memory at once than the daemon hands some to at once. */
#define CROWD        40
#define SECOND_BYTES ((size_t)5 << 20) /* more than came with the first */

static pthread_barrier_t together;

static void *one_of_the_crowd(void *data)
{
    const struct daemon *d = data;
    gpud_options options = {.size = sizeof options, .reconnect_ns = PATIENCE};
    gpud_client *c = NULL;
    ck_gpud_ok(gpud_open(d->url, &options, &c));
    for (unsigned i = 0; i < 2; i++) { /* the second time by the next front */
        (void)pthread_barrier_wait(&together);
        float *x = alloc(c, i == 0 ? N * sizeof *x : SECOND_BYTES);
        float *y = alloc(c, N * sizeof *y);
        count_up(x, N, 1);
        count_up(y, N, 1);
        ck_gpud_ok(axpy(c, x, y, N));
        check_sum(x, y, N, 3);
        (void)pthread_barrier_wait(&together);
        (void)pthread_barrier_wait(&together);
    }
    gpud_close(c);
    return NULL;
}

START_TEST(a_crowd_gets_memory)
{
    struct daemon *d = &daemon_of_test;
    gpud_client *c = begin(0, "jobs.arena_bytes_max=1g", NULL);
    pthread_t thread[CROWD];
    ck_assert_int_eq(pthread_barrier_init(&together, NULL, CROWD + 1), 0);
    for (unsigned i = 0; i < CROWD; i++) {
        ck_assert_int_eq(pthread_create(&thread[i], NULL, one_of_the_crowd, d), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        (void)pthread_barrier_wait(&together); /* all have a client */
        (void)pthread_barrier_wait(&together); /* all were served */
        if (i == 0) {
            daemon_hand_over(d);
            daemon_spawn(d);
        }
        (void)pthread_barrier_wait(&together);
    }
    for (unsigned i = 0; i < CROWD; i++) {
        ck_assert_int_eq(pthread_join(thread[i], NULL), 0);
    }
    (void)pthread_barrier_destroy(&together);
    end(c);
}
END_TEST

/* Jobs under way when the front dies end right, or say that they may not have. */
START_TEST(jobs_outlive_the_front)
{
    enum { JOBS = 40 };
    struct daemon *d = &daemon_of_test;
    gpud_client *c = begin(_i, NULL, NULL);
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    gpud_kernel scale = kernel_find(c, "scale");
    gpud_job *job[JOBS];
    count_up(x, N, 1);
    memset(y, 0, N * sizeof *y);
    size_t part = N / JOBS;
    for (unsigned i = 0; i < JOBS; i++) {
        gpud_arg args[] = {gpud_f32(2), gpud_host_in(x + i * part, part, GPUD_F32),
                           gpud_host_out(y + i * part, part, GPUD_F32)};
        gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
        ck_gpud_ok(gpud_launch(c, scale, args, 3, NULL, &o, &job[i]));
    }
    daemon_kill(d);
    daemon_spawn(d);
    for (unsigned i = 0; i < JOBS; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        check_sum(x + i * part, y + i * part, (unsigned)part, 2);
        gpud_job_free(job[i]);
    }
    end(c);
}
END_TEST

START_TEST(nothing_is_left_of_a_thousand_sessions)
{
    gpud_client *c = begin(_i, NULL, NULL);
    pid_t front = daemon_of_test.pid;
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    unsigned fds = 0;
    unsigned worker_fds = 0;
    for (unsigned i = 0; i < 1000; i++) {
        gpud_client *one = client_open(daemon_of_test.url);
        float *x = alloc(one, 4096);
        float *y = alloc(one, 4096);
        count_up(x, 1000, 1);
        count_up(y, 1000, 1);
        if (i % 10 == 0) {
            ck_gpud_ok(axpy(one, x, y, 1000));
            check_sum(x, y, 1000, 3);
        }
        gpud_close(one); /* without freeing */
        if (i == 100) {
            fds = entries(front, "fd");
            worker_fds = entries(worker, "fd");
        }
    }
    ck_until(entries(front, "fd") <= fds + 2);
    ck_until(mappings(worker) == 0);
    ck_until(entries(worker, "fd") <= worker_fds);
    ck_assert_uint_eq(mappings(front), 0);
    end(c);
}
END_TEST

/* A client that is killed leaves nothing either. */
static int die_with_memory(void *data)
{
    gpud_client *c = client_open(data);
    float *x = alloc(c, N * sizeof *x);
    float *y = alloc(c, N * sizeof *y);
    count_up(x, N, 1);
    (void)axpy(c, x, y, N);
    (void)raise(SIGKILL);
    return 1;
}

START_TEST(a_killed_client_leaves_nothing)
{
    gpud_client *c = begin(_i, NULL, NULL);
    pid_t front = daemon_of_test.pid;
    float one[] = {1};
    ck_gpud_ok(axpy(c, one, one, 1)); /* kernels that are loaded keep a descriptor */
    unsigned before = entries(front, "fd");
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(process_wait(process_start(die_with_memory, daemon_of_test.url)),
                         128 + SIGKILL);
    }
    ck_until(entries(front, "fd") <= before);
    ck_until(mappings(daemon_worker(&daemon_of_test, 0)) == 0);
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arenas");
    suite_add_loop(suite, kernels_work_on_shared_memory, 2);
    suite_add_loop(suite, kernels_work_without_a_copy, 2);
    suite_add_loop(suite, buffers_are_filled_from_shared_memory, 2);
    suite_add_loop(suite, plain_memory_goes_through_staging, 2);
    suite_add_loop(suite, submitted_jobs_get_staging_memory, 2);
    suite_add_loop(suite, programs_read_and_write_there, 2);
    suite_add_loop(suite, overlapping_parts_keep_their_order, 2);
    suite_add_loop(suite, ones_own_memfd_is_used, 2);
    suite_add(suite, memory_that_could_harm_is_refused);
    suite_add(suite, there_is_so_much_for_a_session);
    suite_add(suite, tenants_have_a_limit_of_their_own);
    suite_add_loop(suite, over_tcp_it_is_plain_memory, 2);
    suite_add_loop(suite, a_workers_end_is_not_noticed, 2);
    suite_add_loop(suite, a_killed_front_gets_the_memory_again, 2);
    suite_add_loop(suite, a_job_in_place_runs_once, 2);
    suite_add(suite, the_next_front_gets_the_memory_again);
    suite_add(suite, a_crowd_gets_memory);
    suite_add_loop(suite, jobs_outlive_the_front, 2);
    suite_add(suite, nothing_is_left_of_a_thousand_sessions);
    suite_add(suite, a_killed_client_leaves_nothing);
    return system_main(suite);
}
