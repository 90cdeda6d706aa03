/* Users' kernels that do not compile, do not end, or end their worker. On OpenCL. */
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define ITEMS 64u

static struct daemon daemon_of_test;
static unsigned flipped; /* files of the cache */

static gpud_client *begin(const char *option, const char *value)
{
    return daemon_begin(&daemon_of_test, "--backend", "opencl", option, value, NULL);
}

static void end(gpud_client *c)
{
    daemon_end(&daemon_of_test, c);
}

static int load(gpud_client *c, const char *source, const char *file, gpud_module *ret_module)
{
    gpud_module_options o = {.size = sizeof o, .file = file, .name = "user"};
    return gpud_module_load(c, GPUD_LANG_OPENCL, source, strlen(source), &o, ret_module);
}

static gpud_kernel load_kernel(gpud_client *c, const char *source)
{
    gpud_module m = {0};
    gpud_kernel k = {0};
    ck_gpud_ok(load(c, source, "user.cl", &m));
    ck_gpud_ok(gpud_module_kernel_at(c, m, 0, &k));
    return k;
}

static const gpud_grid one_item = {.size = sizeof(gpud_grid), .global = {1}, .local = {1}};

static int launch_one(gpud_client *c, gpud_kernel k, float *y, uint64_t limit_ns, gpud_error *error)
{
    gpud_arg args[] = {gpud_host_inout(y, ITEMS, GPUD_F32)};
    gpud_submit_options o = {.size = sizeof o, .time_limit_ns = limit_ns};
    gpud_job *job = NULL;
    int rc = gpud_launch(c, k, args, 1, &one_item, &o, &job);
    if (rc == 0) {
        rc = gpud_wait(job, 2 * PATIENCE);
        if (error != NULL) {
            error->size = sizeof *error;
            ck_gpud_ok(gpud_job_error(job, error));
        }
        gpud_job_free(job);
    }
    return rc;
}

static const char good[] = "__kernel void good(__global float *y) { y[0] = y[1] + 1.0f; }";
static const char endless[] =
    "__kernel void endless(__global volatile float *y) { while (y[0] < 1.0f) { y[1] += 1.0f; } }";
static const char slow[] = "__kernel void slow(__global volatile float *y) {\n"
                           "    float sum = 0.0f;\n"
                           "    for (int i = 0; i < 20000000; i++) { sum += y[2]; }\n"
                           "    y[0] = y[1] + 1.0f + sum;\n}\n";
static const char crash[] = "__kernel void crash(__global float *y) {\n"
                            "    __global float *p = (__global float *)(y[0] < 1.0f ? 16 : 0);\n"
                            "    *p = 1.0f;\n}\n";

START_TEST(compile_error)
{
    char log[4096] = "";
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_module m = {0};
    gpud_module_options o = {
        .size = sizeof o, .file = "blur.cl", .log = log, .log_bytes = sizeof log};
    const char source[] = "__kernel void f(__global float *y)\n{\n    y[0] = nothing;\n}\n";
    ck_gpud_err(gpud_module_load(c, GPUD_LANG_OPENCL, source, strlen(source), &o, &m),
                GPUD_ERR_COMPILE);
    const char *text = gpud_last_error()->text;
    ck_assert_msg(strstr(text, "blur.cl:3:12: ") != NULL, "%s", text);
    ck_assert_msg(strstr(log, "nothing") != NULL, "%s", log);
    end(c);
}
END_TEST

/* FAULT 18: `#include` of a local file
 * required: refused, by two readers of the source; for NVRTC all but the toolkit's headers;
 *   nvcc may read nothing else (Landlock), and without Landlock its messages are withheld
 * defence: `compile/source.c`: source_check; `backend/opencl/source.c`: word_check;
 *   `backend/cuda/source/scan.c`: header_check
 * also: `test_cuda_source`: refuses; `test_cuda_nvcc`: no_compiler_shows_a_file_of_the_host
 * mutants: include, confine */
/* No file of this machine comes into a kernel or into a message. */
START_TEST(include_refused)
{
    static const char *const sources[] = {
        "#include \"/etc/passwd\"\n",     "#include </etc/passwd>\n",
        "#  include \"/etc/passwd\"\n",   "#define F \"/etc/passwd\"\n#include F\n",
        "#inc\\\nlude \"/etc/passwd\"\n", "%:include \"/etc/passwd\"\n"};
    gpud_client *c = begin("--set", "jobs.window=4");
    for (unsigned i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        char source[512];
        char log[8192] = "";
        gpud_module m = {0};
        gpud_module_options o = {
            .size = sizeof o, .file = "u.cl", .log = log, .log_bytes = sizeof log};
        (void)snprintf(source, sizeof source, "%s%s", sources[i], good);
        ck_gpud_err(gpud_module_load(c, GPUD_LANG_OPENCL, source, strlen(source), &o, &m),
                    GPUD_ERR_COMPILE);
        ck_assert_msg(strstr(gpud_last_error()->text, "is not allowed") != NULL, "%s",
                      gpud_last_error()->text); /* not read and then found wrong */
        ck_assert_ptr_null(strstr(gpud_last_error()->text, "root:"));
        ck_assert_ptr_null(strstr(log, "root:"));
    }
    end(c);
}
END_TEST

/* Sources that the host's compiler shares have such includes. */
START_TEST(an_include_that_is_left_out)
{
    static const char *const heads[] = {
        "#ifndef __OPENCL_VERSION__\n#include <stdint.h>\n#include \"host.h\"\n#endif\n",
        "#if 0 /* it's\n*/\n# include <a> /* for\nmore */ \n#endif\n"};
    gpud_client *c = begin("--set", "jobs.window=4");
    for (unsigned i = 0; i < 2; i++) {
        char source[512];
        gpud_module m = {0};
        (void)snprintf(source, sizeof source, "%s%s", heads[i], good);
        ck_gpud_ok(gpud_module_load(c, GPUD_LANG_OPENCL, source, strlen(source), NULL, &m));
        ck_gpud_ok(gpud_module_unload(c, m));
    }
    end(c);
}
END_TEST

/* Source that expands to nothing, 8 to the power of 16 times. */
static const char *bomb(void)
{
    static char text[2048];
    (void)snprintf(text, sizeof text, "#define A0\n");
    for (unsigned i = 1; i <= 16; i++) {
        char line[96];
        unsigned k = i - 1;
        (void)snprintf(line, sizeof line, "#define A%u A%u A%u A%u A%u A%u A%u A%u A%u\n", i, k, k,
                       k, k, k, k, k, k);
        (void)strncat(text, line, sizeof text - strlen(text) - 1);
    }
    (void)strncat(text, "A16\n__kernel void f(__global float *y) { y[0] = 1.0f; }\n",
                  sizeof text - strlen(text) - 1);
    return text;
}

/* A good kernel still compiles and runs, on the worker there was. */
static void unharmed(gpud_client *c)
{
    float y[ITEMS] = {0, 1};
    ck_gpud_ok(launch_one(c, load_kernel(c, good), y, 0, NULL));
    ck_assert_float_eq(y[0], 2);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
}

/* FAULT 17: compile bomb
 * required: stopped by a limit of processor time or a limit of elapsed time, each sufficient
 *   alone
 * defence: `launcher/spawn.c`: limits_set; `launcher/children.c`: children_expire
 * also: `test_cuda_process`: a_bomb_ends_at_its_limit
 * mutants: compile-cpu, compile-wall */
/* Each of the two limits alone, and the error names it. The good kernel is in the cache already, so
 * its compiler does not race with the other one. */
START_TEST(compile_bomb)
{
    static const char *const limits[][2] = {{"compile.cpu_s=3", "CPU time"},
                                            {"compile.wall_ms=6000", "ended after 6000 ms"}};
    gpud_client *c = begin("--set", "jobs.window=4");
    unharmed(c);
    end(c);
    c = daemon_begin(&daemon_of_test, "--backend", "opencl", "--set",
                     _i == 0 ? "compile.wall_ms=600000" : "compile.cpu_s=600", "--set",
                     limits[_i][0], NULL);
    gpud_module m = {0};
    ck_gpud_err(load(c, bomb(), "bomb.cl", &m), GPUD_ERR_COMPILE_LIMIT);
    ck_assert_msg(strstr(gpud_last_error()->text, limits[_i][1]) != NULL, "%s",
                  gpud_last_error()->text);
    unharmed(c);
    end(c);
}
END_TEST

/* The compiler's other limits: each has its own message. */
static void check_limit(const char *setting, const char *source, const char *says)
{
    daemon_start(&daemon_of_test, "--backend", "opencl", "--set", "compile.cpu_s=60", "--set",
                 "compile.wall_ms=600000", "--set", setting, NULL);
    gpud_client *c = client_open(daemon_of_test.url);
    gpud_module m = {0};
    ck_gpud_err(load(c, source, "limit.cl", &m), GPUD_ERR_COMPILE_LIMIT);
    const char *text = gpud_last_error()->text;
    ck_assert_msg(strstr(text, says) != NULL, "%s", text);
    unharmed(c);
    end(c);
}

#define LARGE(bytes)                                                                               \
    "__constant char large[" bytes "] = {1};\n"                                                    \
    "__kernel void f(__global float *y) { y[0] = large[(int)y[1]]; }\n"

START_TEST(compile_memory)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they get no limit */
    check_limit("compile.memory_bytes=1G", LARGE("900000000"), "it may take 1024 MiB");
#endif
}
END_TEST

START_TEST(compile_stack)
{
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* they report a crash */
    enum { DEPTH = 200000 };
    static char source[DEPTH + 128] = "__kernel void f(__global float *y) { y[0] = ";
    size_t at = strlen(source);
    memset(source + at, '-', DEPTH); /* "--": of no variable, but it is parsed first */
    for (size_t i = at + 1; i < at + DEPTH; i += 2) {
        source[i] = ' ';
    }
    memcpy(source + at + DEPTH, "y[1]; }", sizeof "y[1]; }");
    check_limit("compile.memory_bytes=4G", source, "nests too deeply");
#endif
}
END_TEST

START_TEST(compile_output)
{
    check_limit("compile.memory_bytes=8G", LARGE("70000000"), "the binary takes 70");
}
END_TEST

/* By a signal that LLVM does not handle: its handlers return when another process sent the signal,
 * and the compiler goes on. */
static int end_compiler(void *data)
{
    (void)data;
    pid_t pid = 0;
    ck_until((pid = daemon_compiler(&daemon_of_test)) != 0);
    return kill(pid, SIGSTKFLT);
}

/* FAULT 16: compiler crash
 * required: an error for its caller only
 * defence: `front/modules/compiler.c`: judge_signal, compiler_ended
 * mutants: compiler-crash */
/* A compiler that crashes costs its caller an answer, and other clients nothing. */
START_TEST(compiler_crash)
{
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_module m = {0};
    pid_t pid = process_start(end_compiler, NULL);
    ck_gpud_err(load(c, bomb(), "bomb.cl", &m), GPUD_ERR_COMPILE);
    ck_assert_msg(strstr(gpud_last_error()->text, "crashed") != NULL, "%s",
                  gpud_last_error()->text);
    ck_assert_int_eq(process_wait(pid), 0);
    unharmed(c);
    end(c);
}
END_TEST

/* ---- the cache and the log ---------------------------------------------------------------- */

static void prepare_cache(char *dir, char *set, size_t size)
{
    daemon_prepare(&daemon_of_test, "--backend", "opencl", "--set", set, NULL);
    (void)snprintf(dir, size, "%s/cache", daemon_of_test.dir);
    (void)snprintf(set, size, "daemon.cache_dir=%s", dir);
}

/* Changes one byte in the middle of each file, and counts them. */
static int flip(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)where;
    char byte = 0;
    int fd = kind == FTW_F && st->st_size > 0 ? open(path, O_RDWR | O_CLOEXEC) : -1;
    if (fd >= 0) {
        ck_assert_int_eq(pread(fd, &byte, 1, st->st_size / 2), 1);
        byte = (char)~byte;
        ck_assert_int_eq(pwrite(fd, &byte, 1, st->st_size / 2), 1);
        (void)close(fd);
        flipped++;
    }
    return 0;
}

/* FAULT 19: damaged cache of binaries
 * required: compiled again; so are binaries of a replaced compiler
 * defence: `front/modules/cache.c`: read_file; `front/modules/compiler.c`: outdated
 * also: `front_cache_test`; `front_compiler_test`: another_compiler_makes_it_again
 * mutants: cache-checksum */
/* Binaries that changed on the disk are not believed but made again. */
START_TEST(damaged_cache)
{
    char dir[DAEMON_PATH + 16];
    char set[DAEMON_PATH + 40];
    prepare_cache(dir, set, sizeof dir);
    for (unsigned round = 0; round < 2; round++) {
        flipped = 0;
        ck_assert_int_eq(round == 0 ? 0 : nftw(dir, flip, 8, FTW_PHYS), 0);
        ck_assert_uint_eq(flipped > 0, round > 0);
        daemon_spawn(&daemon_of_test);
        daemon_wait_ready(&daemon_of_test);
        gpud_client *c = client_open(daemon_of_test.url);
        unharmed(c);
        end(c);
    }
}
END_TEST

static int drop(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    return remove(path);
}

/* FAULT 36: full disk
 * required: the daemon goes on without the cache and the log
 * defence: `front/modules/compiler.c`: judge_exit; `common/log.c`
 * mutants: cache-full, log-full */
/* No byte of the log can be written, nor any file of the cache: service goes on. */
START_TEST(full_disk)
{
    char dir[DAEMON_PATH + 16];
    char set[DAEMON_PATH + 40];
    prepare_cache(dir, set, sizeof dir);
    (void)snprintf(daemon_of_test.log, sizeof daemon_of_test.log, "/dev/full");
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    ck_assert_int_eq(nftw(dir, drop, 8, FTW_PHYS | FTW_DEPTH), 0);
    gpud_client *c = client_open(daemon_of_test.url);
    unharmed(c);
    end(c);
}
END_TEST

/* FAULT 8: endless kernel
 * required: time limit, its worker is ended, others unharmed
 * defence: `front/workers/worker.c`: check_limits
 * also: `test_system_jobs`: hanging_device; `test_system_cuda`: endless_kernel, blocked_driver
 * mutants: time-limit */
START_TEST(endless_loop)
{
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_kernel bad = load_kernel(c, endless);
    gpud_kernel axpy = kernel_find(c, "axpy");
    float y[ITEMS] = {0};
    float x[3] = {1, 2, 3};
    float z[8][3] = {{0}};
    gpud_arg args[] = {gpud_host_inout(y, ITEMS, GPUD_F32)};
    gpud_submit_options o = {.size = sizeof o, .time_limit_ns = SECOND};
    gpud_job *culprit = NULL;
    gpud_job *other[8];
    ck_gpud_ok(gpud_launch(c, bad, args, 1, &one_item, &o, &culprit));
    for (unsigned i = 0; i < 8; i++) {
        gpud_arg more[] = {gpud_f32((float)i), gpud_host(x, 3, GPUD_F32),
                           gpud_host(z[i], 3, GPUD_F32)};
        ck_gpud_ok(gpud_launch(c, axpy, more, 3, NULL, NULL, &other[i]));
    }
    ck_gpud_err(gpud_wait(culprit, PATIENCE), GPUD_ERR_TIME_LIMIT);
    for (unsigned i = 0; i < 8; i++) {
        ck_gpud_ok(gpud_wait(other[i], PATIENCE));
        ck_assert_float_eq(z[i][2], 3 * (float)i);
        gpud_job_free(other[i]);
    }
    gpud_job_free(culprit);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 1);
    end(c);
}
END_TEST

/* FAULT 15: a kernel that crashes repeatedly
 * required: convicted alone, quarantined after three convictions; other kernels run on
 * defence: `front/sched/completion.c`: convict; `front/sched/conclude.c`: job_strike;
 *   `front/model/tenant.c`: tenant_strike, tenant_quarantined
 * also: `test_system_cuda`: crash_loop; `front_suspect_test`
 * mutants: conviction, strikes, suspect, quarantine */
/* The first end of the worker may be another job's fault, so the kernel runs again, alone. Then it
 * is convicted. The third conviction takes the kernel, and no other, out of service. */
START_TEST(crash_and_quarantine)
{
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_kernel bad = load_kernel(c, crash);
    gpud_kernel fine = load_kernel(c, good);
    float y[ITEMS] = {0, 1};
    gpud_error error;
    for (unsigned i = 0; i < 3; i++) {
        ck_gpud_err(launch_one(c, bad, y, 0, &error), GPUD_ERR_KERNEL_FAULT);
        ck_assert_msg(strstr(error.text, "crash") != NULL, "%s", error.text);
        ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 2 * (i + 1));
    }
    ck_gpud_err(launch_one(c, bad, y, 0, NULL), GPUD_ERR_QUARANTINED);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 6);
    ck_gpud_ok(launch_one(c, fine, y, 0, NULL));
    ck_assert_float_eq(y[0], 2);
    ck_assert_uint_eq(query_value(c, "tenants", NULL, "struck_kernels"), 1);
    ck_assert(daemon_logged(&daemon_of_test, "ended workers 3 times"));
    end(c);
}
END_TEST

/* Jobs that were in flight when another job ended their worker run again and succeed. */
START_TEST(crash_beside_others)
{
    gpud_client *c = begin("--set", "jobs.window=9");
    gpud_kernel bad = load_kernel(c, crash);
    gpud_kernel fine = load_kernel(c, slow);
    float y[ITEMS] = {0, 1};
    float z[8][ITEMS] = {{0}};
    gpud_job *job[8];
    gpud_job *culprit = NULL;
    for (unsigned i = 0; i < 8; i++) {
        z[i][1] = (float)i;
        gpud_arg args[] = {gpud_host_inout(z[i], ITEMS, GPUD_F32)};
        ck_gpud_ok(gpud_launch(c, fine, args, 1, &one_item, NULL, &job[i]));
        if (i == 3) {
            gpud_arg its[] = {gpud_host_inout(y, ITEMS, GPUD_F32)};
            ck_gpud_ok(gpud_launch(c, bad, its, 1, &one_item, NULL, &culprit));
        }
    }
    ck_gpud_err(gpud_wait(culprit, PATIENCE), GPUD_ERR_KERNEL_FAULT);
    for (unsigned i = 0; i < 8; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        ck_assert_float_eq(z[i][0], (float)i + 1);
        gpud_job_free(job[i]);
    }
    gpud_job_free(culprit);
    end(c);
}
END_TEST

/* What OpenCL reports about a kernel without a signature is enough to refuse wrong arguments. */
START_TEST(arguments_of_plain_opencl)
{
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_kernel k =
        load_kernel(c, "__kernel void two(__global float *y, int n) { y[0] = (float)n; }");
    float y[4] = {0};
    gpud_arg right[] = {gpud_host_inout(y, 4, GPUD_F32), gpud_i32(7)};
    gpud_arg swapped[] = {gpud_i32(7), gpud_host_inout(y, 4, GPUD_F32)};
    ck_gpud_err(gpud_call(c, k, right, 1, &one_item), GPUD_ERR_ARG_COUNT);
    ck_gpud_err(gpud_call(c, k, swapped, 2, &one_item), GPUD_ERR_ARG_TYPE);
    ck_gpud_ok(gpud_call(c, k, right, 2, &one_item));
    ck_assert_float_eq(y[0], 7);
    static const gpud_grid grids[] = {
        {.size = sizeof(gpud_grid), .global = {UINT64_MAX, 1, 1}, .local = {1, 1, 1}},
        {.size = sizeof(gpud_grid), .global = {1, UINT64_MAX, UINT64_MAX}},
        {.size = sizeof(gpud_grid), .global = {1u << 20, 1, 1}, .local = {1u << 20, 1, 1}},
        {.size = sizeof(gpud_grid)},
    };
    for (unsigned i = 0; i < sizeof grids / sizeof grids[0]; i++) {
        int rc = gpud_call(c, k, right, 2, &grids[i]);
        ck_assert_msg(rc == GPUD_ERR_RANGE || rc == GPUD_ERR_LAUNCH || rc == GPUD_ERR_INVALID,
                      "grid %u: %s: %s", i, gpud_err_name(rc), gpud_last_error()->text);
    }
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

/* A struct of another size never reaches the device: the argument is named. */
START_TEST(structs_have_their_size)
{
    static const char source[] =
        "typedef struct { float scale; int count; float offset[3]; } params;\n"
        "__kernel void apply(__global float *y, params p) {\n"
        "    for (int i = 0; i < p.count; i++) { y[i] = y[i] * p.scale + p.offset[2]; }\n}\n";
    struct params {
        float scale;
        int32_t count;
        float offset[3];
    } p = {2.0f, 3, {0, 0, 0.5f}};
    static const size_t wrong[] = {1, 4, 8, sizeof p - 1, sizeof p + 1, sizeof p + 4, 1024};
    uint8_t bytes[1024] = {0};
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_kernel k = load_kernel(c, source);
    float y[4] = {1, 2, 3, 4};
    for (unsigned i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        gpud_arg args[] = {gpud_host_inout(y, 4, GPUD_F32), gpud_bytes(bytes, wrong[i])};
        ck_gpud_err(gpud_call(c, k, args, 2, &one_item), GPUD_ERR_ARG_TYPE);
        ck_assert_msg(strstr(gpud_last_error()->text, "argument 1 (p): ") != NULL, "%s",
                      gpud_last_error()->text);
        ck_assert_int_eq(gpud_last_error()->arg, 1);
    }
    gpud_arg args[] = {gpud_host_inout(y, 4, GPUD_F32), gpud_bytes(&p, sizeof p)};
    ck_gpud_ok(gpud_call(c, k, args, 2, &one_item));
    ck_assert_float_eq(y[2], 6.5f);
    ck_assert_float_eq(y[3], 4);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

/* The error for a kernel that cannot be launched gives the reason; the other kernels of its module
 * can be used. */
START_TEST(unfit_kernels_say_why)
{
    static const char source[] =
        "__kernel void shrink(__global float *y, __read_only image2d_t picture) {\n"
        "    y[0] = (float)get_image_width(picture);\n}\n";
    char both[1024];
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_module m = {0};
    gpud_kernel k = {0};
    ck_gpud_err(load(c, source, "image.cl", &m), GPUD_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(gpud_last_error()->text, "kernel shrink: argument 1 (picture) is an "
                                                  "image2d_t, which gpud does not take") != NULL,
                  "%s", gpud_last_error()->text);
    (void)snprintf(both, sizeof both, "%s%s", source, good);
    ck_gpud_ok(load(c, both, "image.cl", &m));
    ck_gpud_err(gpud_module_kernel(c, m, "shrink", &k), GPUD_ERR_UNSUPPORTED);
    ck_assert_msg(strstr(gpud_last_error()->text, "image2d_t") != NULL, "%s",
                  gpud_last_error()->text);
    ck_gpud_err(gpud_module_kernel(c, m, "nothing", &k), GPUD_ERR_NOT_FOUND);
    ck_gpud_ok(gpud_module_kernel_at(c, m, 0, &k));
    ck_gpud_err(gpud_module_kernel_at(c, m, 1, &k), GPUD_ERR_NOT_FOUND);
    ck_gpud_ok(gpud_module_kernel(c, m, "good", &k));
    float y[ITEMS] = {0, 1};
    ck_gpud_ok(launch_one(c, k, y, 0, NULL));
    ck_assert_float_eq(y[0], 2);
    end(c);
}
END_TEST

/* Local memory beyond a group's is refused before the launch. */
START_TEST(local_memory_is_bounded)
{
    static const uint64_t sizes[] = {UINT64_C(1) << 63, UINT64_MAX, UINT64_C(1) << 40};
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_kernel k = load_kernel(c, "__kernel void two(__global float *y, __local float *t) {\n"
                                   "    t[0] = y[0]; y[1] = t[0];\n}\n");
    float y[4] = {3};
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        gpud_grid grid = one_item;
        gpud_arg args[] = {gpud_host_inout(y, 4, GPUD_F32), gpud_local(sizes[i])};
        ck_gpud_err(gpud_call(c, k, args, 2, &grid), GPUD_ERR_RANGE);
        args[1] = gpud_local(64);
        grid.shared_bytes = sizes[i];
        ck_gpud_err(gpud_call(c, k, args, 2, &grid), GPUD_ERR_RANGE);
    }
    gpud_arg args[] = {gpud_host_inout(y, 4, GPUD_F32), gpud_local(64)};
    ck_gpud_ok(gpud_call(c, k, args, 2, &one_item));
    ck_assert_float_eq(y[1], 3);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

/* A dialect kernel needs no sizes; errors in its source name file and line, too. */
/* FAULT other: the device refuses a launch: local size, local memory, ranges
 * required: `effects` is none, and every buffer stays unchanged and defined; jobs sent behind
 *   it to read its outputs fail
 * defence: `worker/run/job.c`: job_create, before anything is enqueued;
 *   `front/sched/conclude.c`: mark_buffers
 * also: `front_conclude_test`: a_refused_write_changes_nothing
 * mutants: refused */
/* A launch that the device refuses has no effects: its outputs, and those of earlier steps of the
 * job, keep their contents and stay defined. */
START_TEST(a_refused_launch_changes_nothing)
{
    static const char any[] =
        "__kernel void two(__global float *y, __local float *t) { t[0] = 1; y[0] = t[0]; }";
    static const char fixed[] =
        "__kernel __attribute__((reqd_work_group_size(4, 2, 1)))\n"
        "void two(__global float *y, __local float *t) { t[0] = 1; y[0] = t[0]; }";
    static const struct {
        gpud_grid grid;
        uint64_t local; /* bytes */
        const char *source, *says;
    } refused[] = {
        {{.size = sizeof(gpud_grid), .global = {32768}, .local = {32768}}, 4, any, "32768"},
        {{.size = sizeof(gpud_grid), .global = {1}, .local = {1}}, UINT64_C(1) << 40, any, "local"},
        {{.size = sizeof(gpud_grid), .global = {1}, .shared_bytes = UINT64_C(1) << 40},
         4,
         any,
         "local"},
        {{.size = sizeof(gpud_grid), .global = {8, 8}, .local = {8, 2}},
         4,
         fixed,
         "local size 8,2,1, the kernel requires 4,2,1"},
        {{.size = sizeof(gpud_grid), .global = {8, 7}},
         4,
         fixed,
         "global size 7 in dimension 1, the kernel requires a multiple of its local size 2"},
    };
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, ITEMS), 0, "kept", &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(5)));
    for (unsigned i = 0; i < 2 * sizeof refused / sizeof refused[0]; i++) {
        gpud_program *p = NULL;
        float y[ITEMS] = {0};
        const gpud_arg args[] = {i % 2 == 0 ? gpud_out(b) : gpud_inout(b),
                                 gpud_local(refused[i / 2].local)};
        gpud_kernel k = load_kernel(c, refused[i / 2].source);
        ck_gpud_ok(gpud_program_create(c, NULL, &p));
        ck_assert_int_ge(gpud_program_fill(p, gpud_out(b), gpud_f32(6)), 0);
        ck_assert_int_ge(gpud_program_launch(p, k, args, 2, &refused[i / 2].grid), 0);
        ck_gpud_ok(gpud_program_seal(p));
        int rc = gpud_call(c, k, args, 2, &refused[i / 2].grid);
        ck_assert_msg(rc == GPUD_ERR_LAUNCH || rc == GPUD_ERR_RANGE, "%s", gpud_err_name(rc));
        ck_assert_msg(strstr(gpud_last_error()->text, refused[i / 2].says) != NULL, "%s",
                      gpud_last_error()->text);
        ck_assert_int_eq(gpud_last_error()->effects, GPUD_EFFECTS_NONE);
        rc = gpud_run(c, p, NULL, 0, NULL, NULL);
        ck_assert_msg(rc == GPUD_ERR_LAUNCH || rc == GPUD_ERR_RANGE, "%s", gpud_err_name(rc));
        ck_assert_int_eq(gpud_last_error()->effects, GPUD_EFFECTS_NONE);
        ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, y, NULL));
        ck_assert(y[0] == 5 && y[ITEMS - 1] == 5);
        gpud_program_free(p);
    }
    end(c);
}
END_TEST

START_TEST(dialect)
{
    static const char source[] = "//@kernel triple(in f32 x[n], out f32 y[n]) over n\n"
                                 "{\n    y[i] = 3.0f * x[i];\n}\n";
    static const char allowing[] = "//@kernel triple(in f32 x[n], out f32 y[n]) over n alias same\n"
                                   "{\n    y[i] = 3.0f * x[i];\n}\n";
    static const char wrong[] = "//@kernel triple(in f32 x[n], out f32 y[n]) over m\n{\n}\n";
    gpud_client *c = begin("--set", "jobs.window=4");
    gpud_module m = {0};
    gpud_kernel k = {0};
    gpud_module_options o = {.size = sizeof o, .file = "t.gk"};
    ck_gpud_err(gpud_module_load(c, GPUD_LANG_DIALECT, wrong, strlen(wrong), &o, &m),
                GPUD_ERR_COMPILE);
    ck_assert_msg(strstr(gpud_last_error()->text, "t.gk:1:") != NULL, "%s",
                  gpud_last_error()->text);
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, source, strlen(source), &o, &m));
    ck_gpud_ok(gpud_module_kernel(c, m, "triple", &k));
    float x[3] = {1, 2, 3};
    float y[3] = {0};
    gpud_arg args[] = {gpud_host(x, 3, GPUD_F32), gpud_host(y, 3, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, k, args, 2, NULL));
    ck_assert_float_eq(y[2], 9);
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 3), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, x, NULL));
    const gpud_arg in_place[] = {gpud_inout(b), gpud_inout(b)};
    ck_gpud_err(gpud_call(c, k, in_place, 2, NULL), GPUD_ERR_RANGE); /* it does not say alias */
    ck_assert_msg(strstr(gpud_last_error()->text, "arguments x and y") != NULL, "%s",
                  gpud_last_error()->text);
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, allowing, strlen(allowing), &o, &m));
    ck_gpud_ok(gpud_module_kernel(c, m, "triple", &k));
    ck_gpud_ok(gpud_call(c, k, in_place, 2, NULL));
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, y, NULL));
    ck_assert_float_eq(y[1], 6);
    end(c);
}
END_TEST

static const char tiled[] =
    "__kernel void tiled(__global float *y) {\n"
    "    __local float tile[256];\n"
    "    tile[get_local_id(0)] = y[get_global_id(0)];\n"
    "    barrier(CLK_LOCAL_MEM_FENCE);\n"
    "    y[get_global_id(0)] = tile[get_local_size(0) - 1 - get_local_id(0)];\n}\n"
    "__kernel void bare(__global float *y) { y[0] = 1.0f; }\n";

/* From the compiler at once, from its cache, and from the worker. */
START_TEST(needs_are_told)
{
    gpud_client *c = begin("--set", "jobs.window=4");
    for (int i = 0; i < 2; i++) {
        gpud_module m = {0};
        gpud_kernel k = {0};
        gpud_kernel_desc d = {.size = sizeof d};
        ck_gpud_ok(load(c, tiled, "tiled.cl", &m));
        ck_gpud_ok(gpud_module_kernel(c, m, "bare", &k));
        ck_gpud_ok(gpud_kernel_info(c, k, &d));
        ck_assert_uint_lt(d.group_bytes, 1024);
        ck_gpud_ok(gpud_module_kernel(c, m, "tiled", &k));
        ck_gpud_ok(gpud_kernel_info(c, k, &d));
        ck_assert_uint_ge(d.group_bytes, 1024);
        ck_assert_uint_ge(d.max_group, 1);
        ck_assert_uint_ge(d.group_multiple, 1);
        ck_assert_uint_ge(query_value(c, "kernels", "tiled", "group_memory"), 1024);
        float y[ITEMS] = {0};
        ck_gpud_ok(launch_one(c, k, y, 0, NULL));
        ck_assert_uint_ge(query_value(c, "kernels", "tiled", "group_memory"), 1024);
        ck_gpud_ok(gpud_module_unload(c, m));
    }
    char text[8];
    query_text(c, "kernels", "axpy", "max_group", text, sizeof text);
    ck_assert_str_eq(text, "-"); /* made for nothing yet */
    float x[1] = {1};
    float y[1] = {1};
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, 1, GPUD_F32), gpud_host(y, 1, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL));
    ck_assert_uint_ge(query_value(c, "kernels", "axpy", "max_group"), 1);
    end(c);
}
END_TEST

/* gpuctl shows it before anything ran. */
START_TEST(needs_are_shown)
{
    char file[DAEMON_PATH + 16];
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    gpud_client *c = begin("--set", "jobs.window=4");
    snprintf(file, sizeof file, "%s/tiled.cl", daemon_of_test.dir);
    file_write(file, tiled, sizeof tiled - 1);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "kernel", "check", file, "-o", "json", NULL),
                     0);
    ck_assert_msg(strstr(out, "\"group_memory\": 1024") != NULL, "%s", out);
    ck_assert_msg(strstr(out, "\"registers\": null") != NULL, "%s", out);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "kernels", "axpy", "-o", "json", NULL), 0);
    ck_assert_msg(strstr(out, "\"group_memory\": null") != NULL, "%s", out);
    end(c);
}
END_TEST

/* A struct by value as it lies in a file, and invalid ones. */
START_TEST(a_struct_from_a_file)
{
    static const char source[] =
        "typedef struct { float a; int at; float b[2]; } S;\n"
        "__kernel void put(__global float *y, S s) { y[s.at] = s.a + s.b[1]; }\n";
    const struct {
        float a;
        int at;
        float b[2];
    } s = {1.5f, 2, {0, 4}};
    char cl[DAEMON_PATH + 16];
    char bin[DAEMON_PATH + 16];
    char arg[DAEMON_PATH + 32];
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    gpud_client *c = begin("--set", "jobs.window=4");
    snprintf(cl, sizeof cl, "%s/put.cl", daemon_of_test.dir);
    snprintf(bin, sizeof bin, "%s/s.bin", daemon_of_test.dir);
    snprintf(arg, sizeof arg, "bytes:@%s", bin);
    file_write(cl, source, sizeof source - 1);
    const struct {
        size_t bytes;
        int status;
        const char *says;
    } rows[] = {{sizeof s, 0, ""}, {8, 1, "16"}, {0, 1, "empty"}};
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        file_write(bin, &s, rows[i].bytes);
        int status = gpuctl(&daemon_of_test, out, err, "run", "--source", cl, "--global", "1",
                            "--arg", "inout:f32:4", "--arg", arg, NULL);
        ck_assert_msg(status == rows[i].status, "%u: %d: %s", i, status, err);
        ck_assert_msg(strstr(err, rows[i].says) != NULL, "%u: %s", i, err);
        ck_assert_msg(status != 0 || strstr(out, "5.5") != NULL, "%s", out);
    }
    end(c);
}
END_TEST

/* ---- tiny jobs of many sessions ------------------------------------------------------------- */

enum { SESSIONS = 6, EACH = 8, WRONG = 3 };

struct tiny {
    gpud_client *c;
    gpud_kernel k;
    gpud_job *job[EACH];
    float y[EACH][ITEMS];
};

static void tiny_submit(struct tiny *t, unsigned n, bool wrong)
{
    static const gpud_grid too_wide = {
        .size = sizeof too_wide, .global = {1 << 24}, .local = {1 << 24}};
    gpud_arg args[] = {gpud_host_inout(t->y[n], ITEMS, GPUD_F32)};
    t->y[n][0] = 0;
    t->y[n][1] = (float)n;
    ck_gpud_ok(gpud_launch(t->c, t->k, args, 1, wrong ? &too_wide : &one_item, NULL, &t->job[n]));
}

/* The one that is wrong fails, and all others have their results and times. */
static void tiny_round(struct tiny *all)
{
    for (unsigned n = 0; n < EACH; n++) {
        for (unsigned i = 0; i < SESSIONS; i++) {
            tiny_submit(&all[i], n, i == WRONG && n == WRONG);
        }
    }
    for (unsigned n = 0; n < EACH * SESSIONS; n++) {
        struct tiny *t = &all[n % SESSIONS];
        unsigned at = n / SESSIONS;
        bool wrong = n % SESSIONS == WRONG && at == WRONG;
        gpud_job_times times = {.size = sizeof times};
        ck_gpud_err(gpud_wait(t->job[at], 2 * PATIENCE), wrong ? GPUD_ERR_RANGE : 0);
        ck_gpud_ok(gpud_job_timing(t->job[at], &times));
        ck_assert(wrong || (times.executed_ns > 0 && times.step_count > 0));
        ck_assert_float_eq(t->y[at][0], wrong ? 0.0f : (float)at + 1.0f);
        gpud_job_free(t->job[at]);
    }
}

/* Jobs that wait together start together once their kernel is known to be brief; with a coalescing
 * window jobs wait for each other as well. */
START_TEST(tiny_jobs_go_together)
{
    static struct tiny all[SESSIONS];
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    bool waits = _i == 1;
    gpud_client *c = begin("--set", waits ? "jobs.coalesce_window_us=10000" : "jobs.window=64");
    for (unsigned i = 0; i < SESSIONS; i++) {
        all[i].c = client_open(daemon_of_test.url);
        all[i].k = load_kernel(all[i].c, good);
    }
    ck_until((tiny_round(all), query_value(c, "devices", "0", "batched") > 0));
    ck_assert_uint_gt(query_value(c, "devices", "0", "batches"), 0);
    ck_until((tiny_round(all), !waits || query_value(c, "devices", "0", "held") > 0));
    ck_assert(waits || query_value(c, "devices", "0", "held") == 0);
    ck_assert_uint_eq(query_value(c, "devices", "0", "restarts"), 0);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "devices", "-o", "wide", NULL), 0);
    ck_assert_msg(strcasestr(out, "batched") != NULL, "%s", out);
    for (unsigned i = 0; i < SESSIONS; i++) {
        gpud_close(all[i].c);
    }
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels");
    suite_add(suite, compile_error);
    suite_add(suite, include_refused);
    suite_add(suite, an_include_that_is_left_out);
    suite_add_loop(suite, compile_bomb, 2);
    suite_add(suite, compile_memory);
    suite_add(suite, compile_stack);
    suite_add(suite, compile_output);
    suite_add(suite, compiler_crash);
    suite_add(suite, damaged_cache);
    suite_add(suite, full_disk);
    suite_add(suite, endless_loop);
    suite_add(suite, crash_and_quarantine);
    suite_add(suite, crash_beside_others);
    suite_add(suite, arguments_of_plain_opencl);
    suite_add(suite, structs_have_their_size);
    suite_add(suite, unfit_kernels_say_why);
    suite_add(suite, local_memory_is_bounded);
    suite_add(suite, a_refused_launch_changes_nothing);
    suite_add(suite, dialect);
    suite_add(suite, needs_are_told);
    suite_add(suite, needs_are_shown);
    suite_add(suite, a_struct_from_a_file);
    suite_add_loop(suite, tiny_jobs_go_together, 2);
    return system_main(suite);
}
