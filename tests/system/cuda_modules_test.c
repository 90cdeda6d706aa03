/* Modules on CUDA, with the double of the driver: variables as buffers, and modules and launches
 * that are refused. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/double.h"

#define HEAD  ".version 8.0\n.target sm_80\n.address_size 64\n"
#define TABLE 4u

static struct daemon daemon_of_test;

static gpud_client *begin(const char *script)
{
    daemon_prepare(&daemon_of_test, "--backend", "cuda", NULL);
    return double_begin(&daemon_of_test, script);
}

static void end(gpud_client *c)
{
    daemon_end_clean(&daemon_of_test, c);
}

/* A table of constants, a counter, and kernels that the double knows by their names. */
static const char source[] =
    HEAD ".const .align 4 .u32 table[4] = {1, 2, 3, 4};\n"
         ".global .align 4 .u32 hits;\n"
         ".visible .entry fake_sleep(.param .u32 ms)\n{\n\tret;\n}\n"
         ".visible .entry fake_increment(.param .u64 p, .param .u64 n)\n{\n\tret;\n}\n";

static gpud_module load(gpud_client *c)
{
    gpud_module m = {0};
    gpud_module_options o = {.size = sizeof o, .file = "user.ptx", .name = "user"};
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_PTX, source, strlen(source), &o, &m));
    return m;
}

static gpud_buffer variable(gpud_client *c, gpud_module m, const char *name, uint64_t count,
                            int kernels)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_module_variable(c, m, name, gpud_shape_1d(GPUD_U32, count), kernels, 0, &b));
    return b;
}

static const gpud_grid one_item = {.size = sizeof(gpud_grid), .global = {1}, .local = {1}};

static gpud_job *sleeper(gpud_client *c, gpud_module m, int ms)
{
    gpud_kernel k = {0};
    gpud_job *job = NULL;
    const gpud_arg args[] = {gpud_i32(ms)};
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_sleep", &k));
    ck_gpud_ok(gpud_launch(c, k, args, 1, &one_item, NULL, &job));
    return job;
}

static void increment(gpud_client *c, gpud_module m, gpud_buffer b)
{
    gpud_kernel k = {0};
    gpud_job *job = NULL;
    const gpud_arg args[] = {gpud_inout(b), gpud_u64(TABLE)};
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_increment", &k));
    ck_gpud_ok(gpud_launch(c, k, args, 2, &one_item, NULL, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
}

/* PTX does not say which arrays are only read. This kernel adds 1 to an array that is declared
 * `in`. */
START_TEST(what_is_sealed_stays)
{
    gpud_client *c = begin("");
    gpud_module m = load(c);
    gpud_kernel k = {0};
    gpud_buffer b = {0};
    uint32_t got = 0;
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_increment", &k));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, TABLE), 0, "weights", &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_u32(7)));
    for (uint32_t i = 0; i < 2; i++) {
        const gpud_arg in[] = {gpud_in(b), gpud_u64(TABLE)};
        const gpud_arg inout[] = {gpud_inout(b), gpud_u64(TABLE)};
        ck_gpud_ok(gpud_call(c, k, in, 2, &one_item));
        ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, 1, &got, NULL));
        ck_assert_uint_eq(got, 8); /* believed the first time, sealed the second one */
        if (i == 0) {
            ck_gpud_ok(gpud_buffer_seal(c, b));
        }
        ck_assert_int_eq(gpud_call(c, k, inout, 2, &one_item), GPUD_ERR_SEALED);
    }
    end(c);
}
END_TEST

static void table_is(gpud_client *c, gpud_buffer b, uint32_t first)
{
    uint32_t got[TABLE] = {0};
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, got, NULL));
    for (uint32_t i = 0; i < TABLE; i++) {
        ck_assert_uint_eq(got[i], first + i);
    }
}

START_TEST(a_variable_is_a_buffer)
{
    static const uint32_t tens[TABLE] = {10, 11, 12, 13};
    uint32_t hits = 77;
    gpud_client *c = begin("");
    gpud_module m = load(c);
    gpud_buffer table = variable(c, m, "table", TABLE, GPUD_INOUT);
    gpud_buffer counter = variable(c, m, "hits", 1, GPUD_INOUT);
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_info(c, table, &desc));
    ck_assert_uint_eq(desc.flags, GPUD_BUFFER_VARIABLE);
    ck_assert_uint_eq(desc.state, GPUD_BUFFER_DEFINED);
    table_is(c, table, 1);
    ck_gpud_ok(gpud_read(c, counter, GPUD_U32, 0, GPUD_REST, &hits, NULL));
    ck_assert_uint_eq(hits, 0);
    ck_gpud_ok(gpud_write(c, table, GPUD_U32, 0, GPUD_REST, tens, NULL));
    increment(c, m, table);
    table_is(c, table, 11);
    ck_gpud_ok(gpud_buffer_free(c, table)); /* the value stays */
    table = variable(c, m, "table", TABLE, GPUD_IN);
    table_is(c, table, 11);
    ck_gpud_ok(gpud_module_unload(c, m)); /* the memory stays as long as its buffers do */
    table_is(c, table, 11);
    end(c);
}
END_TEST

/* As NVRTC names them. Without it the source is refused, and the refusal says that. */
START_TEST(variables_of_cuda_c)
{
    static const char text[] = "__constant__ unsigned table[4] = {1, 2, 3, 4};\n"
                               "namespace deep { __device__ unsigned hits; }\n"
                               "extern \"C\" __global__ void fake_nothing(unsigned *y)\n"
                               "{ y[0] = table[threadIdx.x & 3]; deep::hits++; }\n";
    static const uint32_t tens[TABLE] = {10, 11, 12, 13};
    gpud_client *c = begin("");
    gpud_module m = {0};
    gpud_module_options o = {.size = sizeof o, .file = "user.cu", .name = "user"};
    int rc = gpud_module_load(c, GPUD_LANG_CUDA, text, strlen(text), &o, &m);
    if (rc == GPUD_ERR_UNSUPPORTED) {
        const char *why = gpud_last_error()->text;
        ck_assert_msg(strstr(why, "NVRTC") != NULL || strstr(why, "nvrtc") != NULL, "%s", why);
        (void)fprintf(stderr, "variables_of_cuda_c: names are not checked: %s\n", why);
    } else {
        ck_gpud_ok(rc);
        gpud_buffer table = variable(c, m, "table", TABLE, GPUD_IN);
        gpud_buffer hits = variable(c, m, "_ZN4deep4hitsE", 1, GPUD_INOUT);
        table_is(c, table, 1);
        ck_gpud_ok(gpud_write(c, table, GPUD_U32, 0, GPUD_REST, tens, NULL));
        table_is(c, table, 10);
        ck_gpud_ok(gpud_buffer_free(c, hits));
    }
    end(c);
}
END_TEST

/* `gpuctl run` writes variables before the job, and prints and saves them after it. */
START_TEST(variables_by_gpuctl)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    char file[DAEMON_PATH + 16];
    char saved[DAEMON_PATH + 16];
    char save[DAEMON_PATH + 32];
    uint32_t got[TABLE + 1] = {0};
    gpud_client *c = begin("");
    (void)snprintf(file, sizeof file, "%s/user.ptx", daemon_of_test.dir);
    (void)snprintf(saved, sizeof saved, "%s/table", daemon_of_test.dir);
    (void)snprintf(save, sizeof save, "table=raw:%s", saved);
    file_write(file, source, strlen(source));
    int rc = gpuctl(&daemon_of_test, out, err, "-o", "csv", "run", "fake_increment", "--source",
                    file, "--variable", "table=inout:u32=10,11,12,13", "--variable", "hits=u32:7",
                    "--arg", "inout:u32=1,2,3,4", "--arg", "u64:4", "--global", "1", "--local", "1",
                    "--repeat", "2", "--save", save, NULL);
    ck_assert_msg(rc == 0, "%d: %s", rc, err);
    ck_assert_msg(strstr(out, "2 3 4 5") != NULL, "%s", out);
    ck_assert_msg(strstr(out, "table") != NULL && strstr(out, "hits") == NULL, "%s", out);
    FILE *f = fopen(saved, "re");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fread(got, sizeof got[0], TABLE + 1, f), TABLE);
    (void)fclose(f);
    ck_assert_uint_eq(got[0], 10);
    ck_assert_uint_eq(got[TABLE - 1], 13);
    rc = gpuctl(&daemon_of_test, out, err, "run", "fake_increment", "--source", file, "--variable",
                "tables=u32:1", "--arg", "inout:u32=1", "--arg", "u64:1", "--global", "1", NULL);
    ck_assert_msg(rc == 1 && strstr(err, "variable tables") != NULL, "%d: %s", rc, err);
    end(c);
}
END_TEST

/* A program as it is, with a header of its own: NVRTC makes its kernel, which the double knows. */
START_TEST(a_program_by_gpuctl)
{
    static const char program[] =
        "#include <vector>\n#include \"program.h\"\n"
        "static std::vector<unsigned> all(COUNT);\n"
        "extern \"C\" __global__ void fake_increment(item *p, size n)\n"
        "{ if (threadIdx.x < n) p[threadIdx.x] += 1; }\n"
        "int main() { fake_increment<<<1, COUNT>>>(all.data(), COUNT); }\n";
    static const char header[] = "#pragma once\n#define COUNT 2\ntypedef unsigned item;\n"
                                 "typedef unsigned long long size;\n";
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    char file[DAEMON_PATH + 16];
    gpud_client *c = begin("");
    (void)snprintf(file, sizeof file, "%s/program.h", daemon_of_test.dir);
    file_write(file, header, strlen(header));
    (void)snprintf(file, sizeof file, "%s/program.cu", daemon_of_test.dir);
    file_write(file, program, strlen(program));
    int rc = gpuctl(&daemon_of_test, out, err, "-o", "csv", "run", "--source", file, "--arg",
                    "inout:u32=1,2", "--arg", "u64:2", "--global", "2", "--local", "2", NULL);
    if (strstr(err, "NVRTC") == NULL && strstr(err, "nvrtc") == NULL) {
        ck_assert_msg(rc == 0, "%d: %s", rc, err);
        ck_assert_msg(strstr(out, "2 3") != NULL, "%s", out);
        ck_assert_msg(strstr(err, "program.cu:3:1: note: host code") != NULL, "%s", err);
    }
    end(c);
}
END_TEST

/* Fatbins of nvcc, compressed and not, of code and of PTX only: the driver gets each as it is. */
START_TEST(fatbins_of_nvcc)
{
    static const char *const modes[] = {"size", "speed", "none"};
    static const char *const made[] = {"-arch=sm_90", "-gencode=arch=compute_90,code=compute_90"};
    static const char program[] =
        "extern \"C\" __global__ void fake_increment(unsigned *p, unsigned long "
        "long n)\n{ if (threadIdx.x < n) p[threadIdx.x] += 1; }\n";
    static char fat[65536];
    char mode[32], file[DAEMON_PATH + 16], out[DAEMON_PATH + 16];
    gpud_client *c = begin("");
    (void)snprintf(file, sizeof file, "%s/k.cu", daemon_of_test.dir);
    (void)snprintf(out, sizeof out, "%s/k.fatbin", daemon_of_test.dir);
    (void)snprintf(mode, sizeof mode, "--compress-mode=%s", modes[_i / 2]);
    file_write(file, program, strlen(program));
    const char *argv[] = {NVCC, "-fatbin", made[_i % 2], mode, "--fatbin-options=-compress-all",
                          "-o", out,       file,         NULL};
    ck_assert_int_eq(run_program(argv, "/dev/null", "/dev/null"), 0);
    FILE *f = fopen(out, "rbe");
    ck_assert_ptr_nonnull(f);
    size_t size = fread(fat, 1, sizeof fat, f);
    (void)fclose(f);

    uint32_t data[TABLE] = {1, 2, 3, 4};
    const gpud_arg args[] = {gpud_host_inout(data, TABLE, GPUD_U32), gpud_u64(TABLE)};
    gpud_module m = {0};
    gpud_kernel k = {0};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_CUBIN, fat, size, NULL, &m));
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_increment", &k));
    ck_gpud_ok(gpud_launch(c, k, args, 2, &one_item, NULL, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    ck_assert_uint_eq(data[0], 2);
    ck_assert_uint_eq(data[TABLE - 1], 5);
    end(c);
}
END_TEST

/* Each load has variables of its own, in one session and in several. */
START_TEST(loads_share_nothing)
{
    static const uint32_t tens[TABLE] = {10, 11, 12, 13};
    gpud_client *c = begin("");
    gpud_client *other = client_open(daemon_of_test.url);
    gpud_buffer mine = variable(c, load(c), "table", TABLE, GPUD_IN);
    gpud_buffer again = variable(c, load(c), "table", TABLE, GPUD_IN);
    gpud_buffer theirs = variable(other, load(other), "table", TABLE, GPUD_IN);
    ck_gpud_ok(gpud_write(c, mine, GPUD_U32, 0, GPUD_REST, tens, NULL));
    table_is(c, mine, 10);
    table_is(c, again, 1);
    table_is(other, theirs, 1);
    gpud_close(other);
    end(c);
}
END_TEST

static void refuses(gpud_client *c, gpud_module m, const char *name, uint64_t count, int code)
{
    gpud_buffer b = {0};
    ck_gpud_err(gpud_module_variable(c, m, name, gpud_shape_1d(GPUD_U32, count), GPUD_IN, 0, &b),
                code);
}

START_TEST(refusals)
{
    gpud_client *c = begin("devices=2");
    gpud_module m = load(c);
    gpud_module gone = load(c);
    gpud_buffer b = {0};
    refuses(c, m, "table", TABLE + 1, GPUD_ERR_ARG_SHAPE);
    refuses(c, m, "table", TABLE - 1, GPUD_ERR_ARG_SHAPE);
    refuses(c, m, "tables", TABLE, GPUD_ERR_NOT_FOUND);
    refuses(c, m, "fake_sleep", TABLE, GPUD_ERR_NOT_FOUND);
    refuses(c, m, "", 1, GPUD_ERR_INVALID);
    refuses(c, m, "caf\xe9", 1, GPUD_ERR_INVALID); /* texts are UTF-8 */
    ck_gpud_ok(gpud_module_unload(c, gone));
    refuses(c, gone, "table", TABLE, GPUD_ERR_STALE_HANDLE);
    gpud_buffer table = variable(c, m, "table", TABLE, GPUD_IN);
    refuses(c, m, "table", TABLE, GPUD_ERR_EXISTS);
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_info(c, table, &desc));
    ck_gpud_err(gpud_module_variable(c, m, "hits", gpud_shape_1d(GPUD_U32, 1), GPUD_IN,
                                     2 - desc.device, &b),
                GPUD_ERR_STATE);
    ck_gpud_err(gpud_buffer_seal(c, table), GPUD_ERR_UNSUPPORTED);
    ck_gpud_err(gpud_buffer_publish(c, table, "t", GPUD_IN, 0), GPUD_ERR_UNSUPPORTED);
    table_is(c, table, 1);
    end(c);
}
END_TEST

/* A write to a variable comes after earlier launches, although none of them names the variable. */
START_TEST(launches_are_ordered_with_it)
{
    static const uint32_t tens[TABLE] = {10, 11, 12, 13};
    enum { LONG_MS = 5000 }; /* a busy host reads in less */
    gpud_client *c = begin("");
    gpud_module m = load(c);
    gpud_job *early = sleeper(c, m, 200); /* before the variable was asked for */
    gpud_buffer table = variable(c, m, "table", TABLE, _i == 0 ? GPUD_IN : GPUD_INOUT);
    ck_gpud_ok(gpud_write(c, table, GPUD_U32, 0, GPUD_REST, tens, NULL));
    ck_assert_uint_eq(query_value(c, "status", NULL, "in_flight"), 0);
    gpud_job *late = sleeper(c, m, 200);
    ck_gpud_ok(gpud_write(c, table, GPUD_U32, 0, GPUD_REST, tens, NULL));
    ck_assert_uint_eq(query_value(c, "status", NULL, "in_flight"), 0);
    late = (gpud_job_free(late), sleeper(c, m, _i == 0 ? LONG_MS : 200));
    table_is(c, table, 10);
    /* reading waits for kernels that write it only */
    ck_assert_uint_eq(query_value(c, "status", NULL, "in_flight"), _i == 0 ? 1 : 0);
    ck_gpud_ok(gpud_wait(late, PATIENCE));
    gpud_job_free(late);
    gpud_job_free(early);
    end(c);
}
END_TEST

/* A new worker loads the module with its initial values. A job that relies on written values fails
 * with an error. */
START_TEST(lost_with_its_worker)
{
    static const uint32_t tens[TABLE] = {10, 11, 12, 13};
    gpud_client *c = begin("");
    gpud_module m = load(c);
    gpud_kernel k = {0};
    gpud_job *job = NULL;
    const gpud_arg args[] = {gpud_i32(1)};
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_sleep", &k));
    gpud_buffer table = variable(c, m, "table", TABLE, GPUD_IN);
    ck_gpud_ok(gpud_write(c, table, GPUD_U32, 0, GPUD_REST, tens, NULL));
    if (_i == 0) {
        pid_t worker = daemon_worker(&daemon_of_test, 0);
        ck_assert_int_eq(kill(worker, SIGKILL), 0);
        ck_until(daemon_worker(&daemon_of_test, 0) != worker);
    } else {
        daemon_hand_over(&daemon_of_test);
        daemon_spawn(&daemon_of_test);
        daemon_wait_ready(&daemon_of_test);
    }
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_until(gpud_buffer_info(c, table, &desc) == 0 && desc.state == GPUD_BUFFER_LOST);
    if (_i == 0) {
        int rc = gpud_launch(c, k, args, 1, &one_item, NULL, &job);
        rc = rc == 0 ? gpud_wait(job, PATIENCE) : rc;
        ck_gpud_err(rc, GPUD_ERR_BUFFER_LOST);
        gpud_job_free(job);
    }
    ck_gpud_ok(gpud_buffer_free(c, table));
    job = sleeper(c, m, 1);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    table = variable(c, m, "table", TABLE, GPUD_IN);
    table_is(c, table, 1);
    end(c);
}
END_TEST

/* ---- managed memory -------------------------------------------------------------------------- */

static gpud_client *begin_limited(const char *limit, const char *most, const char *script)
{
    daemon_prepare(&daemon_of_test, "--backend", "cuda", "--set", limit, "--set", most, NULL);
    return double_begin(&daemon_of_test, script);
}

static gpud_client *begin_managed(const char *limit, const char *script)
{
    return begin_limited(limit, "memory.spill_limit=0", script);
}

START_TEST(managed_memory_is_bounded)
{
    static const uint32_t tens[TABLE] = {10, 11, 12, 13};
    gpud_client *c = begin_managed("memory.managed_limit=1M", "");
    gpud_module m = load(c);
    gpud_buffer a = {0};
    gpud_buffer b = {0};
    const gpud_shape half = gpud_shape_1d(GPUD_U32, 150000);
    const uint32_t both = GPUD_BUFFER_MANAGED | GPUD_BUFFER_EXPORT;
    ck_gpud_ok(gpud_buffer_create(c, half, GPUD_BUFFER_MANAGED | GPUD_BUFFER_ZERO, "a", &a));
    ck_gpud_err(gpud_buffer_create(c, half, GPUD_BUFFER_MANAGED, "b", &b), GPUD_ERR_DEVICE_MEMORY);
    ck_gpud_err(gpud_buffer_create(c, half, both, "b", &b), GPUD_ERR_INVALID);
    ck_gpud_ok(gpud_write(c, a, GPUD_U32, 0, TABLE, tens, NULL));
    increment(c, m, a);
    uint32_t got[TABLE + 1] = {0};
    ck_gpud_ok(gpud_read(c, a, GPUD_U32, 0, TABLE + 1, got, NULL));
    ck_assert_uint_eq(got[0], 11);
    ck_assert_uint_eq(got[TABLE], 0);
    ck_until(query_value(c, "pool", "0", "managed") == 600064);
    ck_assert_uint_eq(query_value(c, "pool", "0", "managed_limit"), 1 << 20);
    ck_gpud_ok(gpud_buffer_free(c, a));
    ck_gpud_ok(gpud_buffer_create(c, half, GPUD_BUFFER_MANAGED, "b", &b));
    end(c);
}
END_TEST

/* Each job that names it asks the driver to bring it. */
START_TEST(managed_memory_is_brought)
{
    uint32_t values[4] = {1, 2, 3, 4};
    gpud_client *c = begin_managed("memory.managed_limit=1M", "cuMemPrefetchAsync@2=1");
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 4), GPUD_BUFFER_MANAGED, "b", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, values, NULL));
    ck_assert_int_ne(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, values, NULL), 0);
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, values, NULL));
    ck_assert_uint_eq(values[3], 4);
    end(c);
}
END_TEST

/* Beside the pool, but of the same memory: also for the tenant that has it. */
START_TEST(managed_memory_counts_as_the_devices)
{
    gpud_client *c = begin_limited("memory.managed_limit=48M", "jobs.device_memory_max=64M", "");
    gpud_buffer m = {0};
    gpud_buffer b = {0};
    const gpud_shape most = gpud_shape_1d(GPUD_U8, 40u << 20);
    const gpud_shape some = gpud_shape_1d(GPUD_U8, 16u << 20);
    ck_gpud_ok(gpud_buffer_create(c, most, GPUD_BUFFER_MANAGED, "m", &m));
    for (unsigned i = 0; i < 3; i++) { /* all but the first lie on the host */
        ck_gpud_ok(gpud_buffer_create(c, some, GPUD_BUFFER_ZERO, "b", &b));
    }
    ck_until(query_value(c, "pool", "0", "size") >= 16u << 20);
    ck_assert_uint_le(query_value(c, "pool", "0", "size"), 24u << 20);
    ck_gpud_ok(gpud_buffer_free(c, m));
    ck_gpud_ok(gpud_buffer_create(c, some, GPUD_BUFFER_ZERO, "b", &b));
    /* what lies on the device makes room for it */
    ck_gpud_ok(gpud_buffer_create(c, most, GPUD_BUFFER_MANAGED, "m", &m));
    ck_until(query_value(c, "pool", "0", "managed") >= 40u << 20);
    ck_assert_uint_le(query_value(c, "pool", "0", "size"), 24u << 20);
    end(c);
}
END_TEST

/* Sizes that no pattern fits, and which the driver rounds up. */
START_TEST(managed_and_exported_buffers_have_any_size)
{
    static const uint32_t flags[] = {GPUD_BUFFER_MANAGED, GPUD_BUFFER_EXPORT};
    static const uint64_t sizes[] = {1, 40, 100001};
    gpud_client *c = begin_managed("memory.managed_limit=1M", "");
    for (unsigned i = 0; i < 6; i++) {
        gpud_buffer b = {0};
        uint8_t last = 7;
        const gpud_shape shape = gpud_shape_1d(GPUD_U8, sizes[i / 2]);
        ck_gpud_ok(gpud_buffer_create(c, shape, flags[i % 2] | GPUD_BUFFER_ZERO, "b", &b));
        ck_gpud_ok(gpud_read(c, b, GPUD_U8, sizes[i / 2] - 1, 1, &last, NULL));
        ck_assert_uint_eq(last, 0);
        ck_gpud_ok(gpud_buffer_free(c, b));
    }
    end(c);
}
END_TEST

/* An exported buffer takes, and is charged for, whole pages. */
START_TEST(exported_memory_counts_in_pages)
{
    gpud_client *c = begin_limited("memory.spill_limit=0", "jobs.device_memory_max=16M", "");
    gpud_buffer b = {0};
    const gpud_shape one = gpud_shape_1d(GPUD_U8, 1);
    unsigned n = 0;
    while (n < 9 && gpud_buffer_create(c, one, GPUD_BUFFER_EXPORT, "b", &b) == 0) {
        n++;
    }
    ck_assert_uint_ge(n, 6);
    ck_assert_uint_le(n, 8);
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    char exported[40];
    (void)snprintf(exported, sizeof exported, "\"exported\":%u,", n << 21);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "pool", "-o", "json", NULL), 0);
    ck_assert_msg(strstr(out, exported) != NULL, "%s", out);
    end(c);
}
END_TEST

START_TEST(a_managed_buffer_is_restored_as_one)
{
    uint32_t values[10] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
    gpud_client *c = begin_managed("memory.managed_limit=1M", "");
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 10), GPUD_BUFFER_MANAGED, "b", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, values, NULL));
    ck_gpud_ok(gpud_buffer_seal(c, b));
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    daemon_wait_worker(&daemon_of_test, 0, worker);
    memset(values, 0, sizeof values);
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, values, NULL));
    ck_assert_uint_eq(values[9], 10);
    ck_until(query_value(c, "pool", "0", "managed") == 256);
    end(c);
}
END_TEST

/* The stream of a job that is cancelled brings its managed memory already: that is waited for
 * before the memory goes, which the double of the driver watches. */
START_TEST(what_is_being_brought_stays)
{
    enum { COUNT = 1 << 20 };
    uint32_t *words = calloc(COUNT, sizeof *words);
    ck_assert_ptr_nonnull(words);
    gpud_client *c = begin_managed("memory.managed_limit=64M", "copy_rate=16000000");
    gpud_module m = load(c);
    gpud_buffer b = {0};
    gpud_program *p = NULL;
    gpud_job *job = NULL;
    gpud_kernel k = {0};
    const gpud_arg ms = gpud_i32(400);
    const gpud_shape shape = gpud_shape_1d(GPUD_U32, COUNT);
    ck_gpud_ok(gpud_buffer_create(c, shape, GPUD_BUFFER_MANAGED, "b", &b));
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_sleep", &k));
    ck_gpud_ok(gpud_wait(job = sleeper(c, m, 1), PATIENCE)); /* it is known as one that is brief */
    gpud_job_free(job);
    ck_gpud_ok(gpud_program_create(c, "long", &p));
    ck_assert_int_ge(gpud_program_launch(p, k, &ms, 1, &one_item), 0);
    ck_assert_int_ge(gpud_program_fill(p, gpud_out(b), gpud_u32(0)), 0);
    ck_gpud_ok(gpud_program_seal(p));
    gpud_job *before = NULL;
    ck_gpud_ok(gpud_submit(c, p, NULL, 0, NULL, &before));
    const gpud_arg in = gpud_host(words, COUNT, GPUD_U32);
    gpud_program *w = NULL;
    ck_gpud_ok(gpud_program_create(c, "write", &w));
    ck_assert_int_ge(gpud_program_write(w, gpud_out(b), in), 0);
    ck_gpud_ok(gpud_program_seal(w));
    ck_gpud_ok(gpud_submit(c, w, NULL, 0, NULL, &job));
    job_await_dispatch(c, job);
    (void)gpud_job_cancel(c, gpud_job_id(job));
    ck_gpud_ok(gpud_buffer_free(c, b));
    (void)gpud_wait(job, PATIENCE);
    gpud_job_free(job);
    ck_gpud_ok(gpud_wait(before, PATIENCE));
    gpud_job_free(before);
    gpud_program_free(p);
    gpud_program_free(w);
    free(words);
    end(c);
}
END_TEST

/* ---- small writes -------------------------------------------------------------------------- */

/* Writes of one job that meet keep their order, while others may go together. */
START_TEST(small_writes_keep_their_order)
{
    enum { COUNT = 1024 };
    uint8_t all[COUNT];
    uint8_t part[64];
    uint8_t got[COUNT];
    gpud_client *c = begin("");
    gpud_buffer b = {0};
    gpud_program *p = NULL;
    memset(all, 1, sizeof all);
    memset(part, 2, sizeof part);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, COUNT), GPUD_BUFFER_ZERO, "b", &b));
    ck_gpud_ok(gpud_program_create(c, "patch", &p));
    gpud_arg temp = gpud_program_temp(p, gpud_shape_1d(GPUD_U8, COUNT));
    const gpud_arg to = _i == 0 ? gpud_out(b) : gpud_arg_with(temp, GPUD_OUT);
    const gpud_arg patch = gpud_arg_slice(to, 100, sizeof part);
    ck_assert_int_ge(gpud_program_write(p, to, gpud_host(all, COUNT, GPUD_U8)), 0);
    ck_assert_int_ge(gpud_program_write(p, patch, gpud_host(part, sizeof part, GPUD_U8)), 0);
    if (_i == 1) {
        ck_assert_int_ge(gpud_program_copy(p, gpud_out(b), gpud_arg_with(temp, GPUD_IN)), 0);
    }
    ck_gpud_ok(gpud_program_seal(p));
    ck_gpud_ok(gpud_run(c, p, NULL, 0, NULL, NULL));
    ck_gpud_ok(gpud_read(c, b, GPUD_U8, 0, GPUD_REST, got, NULL));
    memcpy(all + 100, part, sizeof part);
    ck_assert_mem_eq(got, all, COUNT);
    gpud_program_free(p);
    end(c);
}
END_TEST

START_TEST(managed_memory_is_off)
{
    gpud_client *c = begin("");
    gpud_buffer b = {0};
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 4), GPUD_BUFFER_MANAGED, "b", &b),
                GPUD_ERR_UNSUPPORTED);
    end(c);
}
END_TEST

/* ---- invalid input --------------------------------------------------------------------------- */

static int load_as(gpud_client *c, int lang, const void *text, size_t size)
{
    char log[4096];
    gpud_module m = {0};
    gpud_module_options o = {.size = sizeof o, .file = "user", .log = log, .log_bytes = sizeof log};
    return gpud_module_load(c, lang, text, size, &o, &m);
}

static int launch_as(gpud_client *c, gpud_kernel k, const gpud_grid *grid)
{
    const gpud_arg args[] = {gpud_i32(1)};
    gpud_job *job = NULL;
    int rc = gpud_launch(c, k, args, 1, grid, NULL, &job);
    rc = rc == 0 ? gpud_wait(job, PATIENCE) : rc;
    gpud_job_free(job);
    return rc;
}

/* Each is refused with its own error, and the worker is the same afterwards. */
START_TEST(bad_images)
{
    static const char elf[] = "\177ELF\2\1\1";
    static const uint8_t fatbin[64] = {0x50, 0xed, 0x55, 0xba, 1, 0, 16, 0, 0xff, 0xff};
    static const char newer[] = ".version 99.0\n.target sm_80\n.address_size 64\n"
                                ".visible .entry f()\n{\n\tret;\n}\n";
    static const char arch[] = ".version 8.0\n.target sm_999\n.address_size 64\n"
                               ".visible .entry f()\n{\n\tret;\n}\n";
    gpud_client *c = begin("");
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    ck_gpud_err(load_as(c, GPUD_LANG_CUBIN, elf, sizeof elf), GPUD_ERR_INVALID);
    ck_gpud_err(load_as(c, GPUD_LANG_CUBIN, fatbin, sizeof fatbin), GPUD_ERR_INVALID);
    ck_gpud_err(load_as(c, GPUD_LANG_CUBIN, "", 1), GPUD_ERR_INVALID);
    ck_gpud_err(load_as(c, GPUD_LANG_PTX, "no PTX", 6), GPUD_ERR_INVALID);
    ck_gpud_err(load_as(c, GPUD_LANG_PTX, source, sizeof source / 2), GPUD_ERR_INVALID);
    for (unsigned i = 0; i < 2; i++) { /* the driver's word, at the first launch */
        gpud_module m = {0};
        gpud_kernel k = {0};
        const char *text = i == 0 ? newer : arch;
        int rc = gpud_module_load(c, GPUD_LANG_PTX, text, strlen(text), NULL, &m);
        if (rc == 0) {
            ck_gpud_ok(gpud_module_kernel(c, m, "f", &k));
            gpud_job *job = NULL;
            ck_gpud_ok(gpud_launch(c, k, NULL, 0, &one_item, NULL, &job));
            rc = gpud_wait(job, PATIENCE);
            gpud_job_free(job);
        }
        ck_assert_msg(rc == GPUD_ERR_COMPILE || rc == GPUD_ERR_UNSUPPORTED ||
                          rc == GPUD_ERR_INVALID,
                      "%s: %d", text, rc);
    }
    ck_gpud_ok(load_as(c, GPUD_LANG_PTX, source, strlen(source))); /* no NUL behind it */
    ck_assert_int_eq(daemon_worker(&daemon_of_test, 0), worker);
    end(c);
}
END_TEST

START_TEST(bad_launches)
{
    static const struct {
        gpud_grid grid;
        int code;
    } bad[] = {
        {{.size = sizeof(gpud_grid), .global = {0}, .local = {1}}, GPUD_ERR_INVALID},
        {{.size = sizeof(gpud_grid), .global = {2048}, .local = {2048}}, GPUD_ERR_LAUNCH},
        {{.size = sizeof(gpud_grid), .global = {64, 64}, .local = {64, 64}}, GPUD_ERR_LAUNCH},
        {{.size = sizeof(gpud_grid), .global = {1, 1, 128}, .local = {1, 1, 128}}, GPUD_ERR_LAUNCH},
        {{.size = sizeof(gpud_grid), .global = {7}, .local = {2}}, GPUD_ERR_INVALID},
        {{.size = sizeof(gpud_grid), .global = {UINT64_C(1) << 33}, .local = {1}}, GPUD_ERR_RANGE},
        {{.size = sizeof(gpud_grid), .global = {1, 1 << 20}, .local = {1, 1}}, GPUD_ERR_LAUNCH},
        {{.size = sizeof(gpud_grid), .global = {UINT64_MAX, 2}, .local = {1, 1}}, GPUD_ERR_RANGE},
        {{.size = sizeof(gpud_grid), .global = {1}, .local = {1}, .shared_bytes = 1 << 20},
         GPUD_ERR_RANGE},
        {{.size = sizeof(gpud_grid), .global = {1}, .local = {1}, .shared_bytes = UINT64_MAX},
         GPUD_ERR_RANGE},
    };
    gpud_client *c = begin("");
    gpud_module m = load(c);
    gpud_kernel k = {0};
    gpud_buffer b = {0};
    ck_gpud_err(gpud_module_kernel(c, m, "no_such", &k), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_module_kernel(c, m, "caf\xe9", &k), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_module_kernel(c, m, "", &k), GPUD_ERR_NOT_FOUND);
    ck_gpud_ok(gpud_module_kernel(c, m, "fake_sleep", &k));
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        int rc = launch_as(c, k, &bad[i].grid);
        ck_assert_msg(rc == bad[i].code, "%u: %s instead of %s", i, gpud_err_name(rc),
                      gpud_err_name(bad[i].code));
    }
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, UINT64_C(1) << 40), 0, NULL, &b),
                GPUD_ERR_DEVICE_MEMORY);
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, UINT64_MAX / 2), 0, NULL, &b),
                GPUD_ERR_ARG_SHAPE);
    ck_gpud_ok(launch_as(c, k, &one_item));
    ck_assert_int_eq(daemon_worker(&daemon_of_test, 0), worker);
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("cuda modules");
    suite_add(suite, what_is_sealed_stays);
    suite_add(suite, a_variable_is_a_buffer);
    suite_add(suite, variables_of_cuda_c);
    suite_add(suite, variables_by_gpuctl);
    suite_add(suite, a_program_by_gpuctl);
    suite_add(suite, loads_share_nothing);
    suite_add(suite, refusals);
    suite_add_loop(suite, fatbins_of_nvcc, access(NVCC, X_OK) == 0 ? 6 : 0);
    suite_add_loop(suite, launches_are_ordered_with_it, 2);
    suite_add_loop(suite, lost_with_its_worker, 2);
    suite_add(suite, managed_memory_is_bounded);
    suite_add(suite, managed_memory_is_brought);
    suite_add(suite, managed_memory_counts_as_the_devices);
    suite_add(suite, managed_and_exported_buffers_have_any_size);
    suite_add(suite, exported_memory_counts_in_pages);
    suite_add(suite, a_managed_buffer_is_restored_as_one);
    suite_add(suite, managed_memory_is_off);
    suite_add(suite, what_is_being_brought_stays);
    suite_add_loop(suite, small_writes_keep_their_order, 2);
    suite_add(suite, bad_images);
    suite_add(suite, bad_launches);
    return system_main(suite);
}
