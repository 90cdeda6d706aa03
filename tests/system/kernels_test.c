/* Kernels from users: what does not compile, does not end, or ends its worker. On OpenCL. */
#include <stdio.h>
#include <string.h>

#include "tests/system/harness.h"

#define ITEMS 64u

static struct daemon daemon_of_test;

static gpud_client *begin(const char *option, const char *value)
{
    daemon_start(&daemon_of_test, "--backend", "opencl", option, value, NULL);
    return client_open(daemon_of_test.url);
}

static void end(gpud_client *c)
{
    gpud_close(c);
    daemon_stop(&daemon_of_test);
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
        ck_assert_ptr_null(strstr(gpud_last_error()->text, "root:"));
        ck_assert_ptr_null(strstr(log, "root:"));
    }
    end(c);
}
END_TEST

START_TEST(compile_bomb)
{
    /* expands to nothing, 8 to the power of 16 times */
    char bomb[2048] = "#define A0\n";
    for (unsigned i = 1; i <= 16; i++) {
        char line[96];
        unsigned k = i - 1;
        (void)snprintf(line, sizeof line, "#define A%u A%u A%u A%u A%u A%u A%u A%u A%u\n", i, k, k,
                       k, k, k, k, k, k);
        (void)strncat(bomb, line, sizeof bomb - strlen(bomb) - 1);
    }
    (void)strncat(bomb, "A16\n__kernel void f(__global float *y) { y[0] = 1.0f; }\n",
                  sizeof bomb - strlen(bomb) - 1);
    gpud_client *c = begin("--set", "compile.cpu_s=4");
    gpud_module m = {0};
    ck_gpud_err(load(c, bomb, "bomb.cl", &m), GPUD_ERR_COMPILE_LIMIT);
    float y[ITEMS] = {0, 1};
    ck_gpud_ok(launch_one(c, load_kernel(c, good), y, 0, NULL));
    ck_assert_float_eq(y[0], 2);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

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

/* The first time it may have been another's fault, so it runs again, alone; then it is convicted;
 * the third conviction takes the kernel out of service, and only that one. */
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
    end(c);
}
END_TEST

/* Those that were in flight beside it are run again and come to no harm. */
START_TEST(crash_beside_others)
{
    gpud_client *c = begin("--set", "jobs.window=8");
    gpud_kernel bad = load_kernel(c, crash);
    gpud_kernel fine = load_kernel(c, good);
    float y[ITEMS] = {0, 1};
    float z[8][ITEMS];
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

/* A dialect kernel needs no sizes; its mistakes are told with file and line, too. */
START_TEST(dialect)
{
    static const char source[] = "//@kernel triple(in f32 x[n], out f32 y[n]) over n\n"
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
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("kernels");
    suite_add(suite, compile_error);
    suite_add(suite, include_refused);
    suite_add(suite, compile_bomb);
    suite_add(suite, endless_loop);
    suite_add(suite, crash_and_quarantine);
    suite_add(suite, crash_beside_others);
    suite_add(suite, arguments_of_plain_opencl);
    suite_add(suite, dialect);
    return system_main(suite);
}
