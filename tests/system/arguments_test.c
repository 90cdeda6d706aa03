/* Arguments of users' kernels: their number, their types, and how they are converted. On OpenCL. */
#include <stdio.h>
#include <string.h>

#include "tests/system/harness/harness.h"

static struct daemon daemon_of_test;
static const gpud_grid one_item = {.size = sizeof(gpud_grid), .global = {1}, .local = {1}};

static gpud_client *begin(void)
{
    return daemon_begin(&daemon_of_test, "--backend", "opencl", "--set", "jobs.window=4", NULL);
}

static void end(gpud_client *c)
{
    daemon_end(&daemon_of_test, c);
}

static gpud_kernel load_kernel(gpud_client *c, const char *source)
{
    gpud_module_options o = {.size = sizeof o, .file = "user.cl", .name = "user"};
    gpud_module m = {0};
    gpud_kernel k = {0};
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_OPENCL, source, strlen(source), &o, &m));
    ck_gpud_ok(gpud_module_kernel_at(c, m, 0, &k));
    return k;
}

/* As many arguments as there can be: all arrive, each where it belongs. */
START_TEST(a_hundred_and_twenty_eight_arguments)
{
    enum { MOST = 128 };
    char source[8192] = "__kernel void wide(__global int *y";
    int32_t y[MOST] = {0};
    gpud_arg args[MOST] = {gpud_host_inout(y, MOST, GPUD_I32)};
    size_t used = strlen(source);
    for (unsigned i = 1; i < MOST; i++) {
        used += (size_t)snprintf(source + used, sizeof source - used, ", int a%u", i);
        args[i] = gpud_i32((int32_t)(1000 + i));
    }
    used += (size_t)snprintf(source + used, sizeof source - used, ") {");
    for (unsigned i = 1; i < MOST; i++) {
        used += (size_t)snprintf(source + used, sizeof source - used, " y[%u] = a%u;", i, i);
    }
    (void)snprintf(source + used, sizeof source - used, " }");
    gpud_client *c = begin();
    gpud_kernel k = load_kernel(c, source);
    gpud_kernel_desc desc = {.size = sizeof desc};
    gpud_kernel_arg_desc last = {.size = sizeof last};
    ck_gpud_ok(gpud_kernel_info(c, k, &desc));
    ck_assert_uint_eq(desc.arg_count, MOST);
    ck_gpud_ok(gpud_kernel_arg(c, k, MOST - 1, &last));
    ck_assert_str_eq(last.name, "a127");
    ck_gpud_ok(gpud_call(c, k, args, MOST, &one_item));
    for (int32_t i = 1; i < MOST; i++) {
        ck_assert_int_eq(y[i], 1000 + i);
    }
    end(c);
}
END_TEST

/* What stands behind a name is what counts, for values and arrays; bytes are reinterpreted where
 * that is said. */
START_TEST(types_behind_names)
{
    gpud_client *c = begin();
    gpud_kernel k = load_kernel(c, "typedef float DATA_TYPE;\n"
                                   "__kernel void f(__global DATA_TYPE *y, DATA_TYPE a) {\n"
                                   "    y[0] = a; }\n");
    gpud_kernel bytes = load_kernel(c, "__kernel void g(__global uchar *y) { y[3] = 64; }");
    gpud_kernel_arg_desc told = {.size = sizeof told};
    float y[4] = {0};
    int32_t words[4] = {0};
    gpud_arg args[] = {gpud_host_inout(y, 4, GPUD_F32), gpud_i32(2)};
    ck_gpud_ok(gpud_call(c, k, args, 2, &one_item));
    ck_assert_float_eq(y[0], 2);
    ck_gpud_ok(gpud_kernel_arg(c, k, 1, &told));
    ck_assert_str_eq(told.type, "DATA_TYPE");
    ck_assert_uint_eq(told.dtype, GPUD_F32);
    args[1] = gpud_i64(16777217); /* no float is that */
    ck_gpud_err(gpud_call(c, k, args, 2, &one_item), GPUD_ERR_RANGE);
    args[0] = gpud_host_inout(words, 4, GPUD_I32);
    args[1] = gpud_f32(1);
    ck_gpud_err(gpud_call(c, k, args, 2, &one_item), GPUD_ERR_ARG_TYPE);
    ck_assert_msg(strstr(gpud_last_error()->text, "argument 0 (y): i32, the kernel takes f32") !=
                      NULL,
                  "%s", gpud_last_error()->text);
    args[0] = gpud_arg_as(args[0], GPUD_F32);
    ck_gpud_ok(gpud_call(c, k, args, 2, &one_item));
    ck_assert_int_eq(words[0], 0x3f800000);
    args[0] = gpud_host_inout(y, 4, GPUD_F32); /* as in C, a pointer to char takes anything */
    y[0] = 0;
    ck_gpud_ok(gpud_call(c, bytes, args, 1, &one_item));
    ck_assert_float_eq(y[0], 2);
    end(c);
}
END_TEST

/* A view of a buffer, a slice and a parameter: whole elements, from a multiple of one on. */
START_TEST(views_are_checked)
{
    gpud_client *c = begin();
    gpud_kernel k = load_kernel(c, "__kernel void f(__global long *y) { y[0] = -1; }");
    gpud_buffer b = {0};
    int32_t got[7] = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_I32, 7), GPUD_BUFFER_ZERO, NULL, &b));
    gpud_arg whole = gpud_arg_as(gpud_inout(b), GPUD_I64);
    gpud_arg even = gpud_arg_with(gpud_arg_slice(whole, 2, 4), GPUD_INOUT);
    gpud_arg odd = gpud_arg_slice(whole, 1, 4);
    gpud_arg none = gpud_arg_as(gpud_inout(b), 99);
    gpud_arg value = gpud_arg_as(gpud_i32(1), GPUD_I64);
    ck_gpud_err(gpud_call(c, k, &whole, 1, &one_item), GPUD_ERR_ARG_SHAPE);
    ck_gpud_err(gpud_call(c, k, &odd, 1, &one_item), GPUD_ERR_RANGE);
    ck_gpud_err(gpud_call(c, k, &none, 1, &one_item), GPUD_ERR_ARG_TYPE);
    ck_gpud_err(gpud_call(c, k, &value, 1, &one_item), GPUD_ERR_ARG_TYPE);
    ck_gpud_ok(gpud_call(c, k, &even, 1, &one_item));
    ck_gpud_ok(gpud_read(c, b, GPUD_I32, 0, GPUD_REST, got, NULL));
    ck_assert_int_eq(got[1], 0);
    ck_assert_int_eq(got[2], -1);
    ck_assert_int_eq(got[3], -1);
    ck_assert_int_eq(got[4], 0);
    end(c);
}
END_TEST

/* A bare number takes the type behind the name. */
START_TEST(gpuctl_sees_types_and_views)
{
    char cl[DAEMON_PATH + 16];
    char out[4096];
    char err[4096];
    gpud_client *c = begin();
    (void)snprintf(cl, sizeof cl, "%s/t.cl", daemon_of_test.dir);
    static const char source[] =
        "typedef float DATA_TYPE;\n"
        "__kernel void f(__global DATA_TYPE *y, DATA_TYPE a, __local DATA_TYPE *t) {\n"
        "    t[0] = a; y[0] = t[0]; }\n";
    file_write(cl, source, sizeof source - 1);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "run", "--source", cl, "--global", "1",
                            "--arg", "inout:f32:1", "--arg", "2.5", "--arg", "local:64", NULL),
                     0);
    ck_assert_msg(strstr(out, "2.5") != NULL, "%s%s", out, err);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "run", "--source", cl, "--global", "1",
                            "--arg", "inout:i32/f32:1", "--arg", "1", "--arg", "scratch:64", NULL),
                     0);
    ck_assert_msg(strstr(out, "1065353216") != NULL, "%s%s", out, err);
    end(c);
}
END_TEST

/* The numbers of a vector become the kernel's type, or are refused. */
START_TEST(gpuctl_gives_vectors_their_type)
{
    char cl[DAEMON_PATH + 16];
    char out[4096];
    char err[4096];
    gpud_client *c = begin();
    (void)snprintf(cl, sizeof cl, "%s/v.cl", daemon_of_test.dir);
    static const char source[] = "__kernel void f(__global float *y, float4 a, int2 b) {\n"
                                 "    y[0] = a.y + b.y; }\n";
    file_write(cl, source, sizeof source - 1);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "run", "--source", cl, "--global", "1",
                            "--arg", "inout:f32:1", "--arg", "i32:1,700,3,4", "--arg", "u8:1,77",
                            NULL),
                     0);
    ck_assert_msg(strstr(out, "777") != NULL, "%s%s", out, err);
    ck_assert_int_ne(gpuctl(&daemon_of_test, out, err, "run", "--source", cl, "--global", "1",
                            "--arg", "inout:f32:1", "--arg", "f32:1,2,3,4", "--arg", "f32:1.5,2.5",
                            NULL),
                     0);
    ck_assert_msg(strstr(err, "argument 2 (b): element 0: '1.5' is no whole number") != NULL, "%s",
                  err);
    end(c);
}
END_TEST

/* Headers that a source includes come with it, and no file is read. A name that is too long for the
 * wire keeps its end. The error for a kernel that is not found lists the kernels of the module. */
START_TEST(headers_come_with_the_source)
{
    static const char source[] = "#include \"sub/a.h\"\n#include <c.h>\n#include \"sub/../c.h\"\n"
                                 "__kernel void f(__global int *y) { y[0] = A + B + C; }\n"
                                 "__kernel void g(__global int *y) { y[0] = 0; }\n";
    static const char a[] = "#include \"b.h\"\n#define A 1\n";
    static const char b[] = "#pragma once\n#define B 20\n";
    static const char c_h[] = "#ifndef C\n#define C 300\n#endif\n";
    static const char wrong[] = "int nothing = missing;\n";
    gpud_header headers[] = {{"sub/a.h", a, sizeof a - 1},
                             {"b.h", wrong, sizeof wrong - 1},
                             {"./sub/b.h", b, sizeof b - 1},
                             {"c.h", c_h, sizeof c_h - 1}};
    char file[256];
    gpud_client *c = begin();
    gpud_module_options o = {.size = sizeof o, .file = file, .headers = headers, .header_count = 4};
    gpud_module m = {0};
    gpud_kernel k = {0};
    int32_t y = 0;
    gpud_arg arg = gpud_host_inout(&y, 1, GPUD_I32);
    (void)snprintf(file, sizeof file, "/home/%0150d/kernels/last.cl", 7);
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_OPENCL, source, sizeof source - 1, &o, &m));
    ck_gpud_ok(gpud_module_kernel(c, m, "f", &k));
    ck_gpud_ok(gpud_call(c, k, &arg, 1, &one_item));
    ck_assert_int_eq(y, 321);
    ck_gpud_err(gpud_module_kernel(c, m, "h", &k), GPUD_ERR_NOT_FOUND);
    ck_assert_msg(strstr(gpud_last_error()->text, "it has f, g") != NULL, "%s",
                  gpud_last_error()->text);
    headers[0].text = wrong;
    headers[0].bytes = sizeof wrong - 1;
    ck_gpud_err(gpud_module_load(c, GPUD_LANG_OPENCL, source, sizeof source - 1, &o, &m),
                GPUD_ERR_COMPILE);
    ck_assert_msg(strstr(gpud_last_error()->text, "sub/a.h:1:") != NULL, "%s",
                  gpud_last_error()->text);
    o.header_count = 0;
    ck_gpud_err(gpud_module_load(c, GPUD_LANG_OPENCL, source, sizeof source - 1, &o, &m),
                GPUD_ERR_COMPILE);
    ck_assert_msg(strstr(gpud_last_error()->text, "/kernels/last.cl:1") != NULL &&
                      strstr(gpud_last_error()->text, "gpud_module_options.headers") != NULL,
                  "%s", gpud_last_error()->text);
    end(c);
}
END_TEST

/* An error that only the worker finds names the argument, too. */
START_TEST(a_workers_words_name_the_argument)
{
    gpud_client *c = begin();
    gpud_kernel k = load_kernel(c, "__kernel void f(__global int *y, __local int *tile) {\n"
                                   "    tile[0] = 1; y[0] = tile[0]; }\n");
    int32_t y = 0;
    gpud_arg args[] = {gpud_host_inout(&y, 1, GPUD_I32), gpud_local(0)};
    ck_gpud_err(gpud_call(c, k, args, 2, &one_item), GPUD_ERR_RANGE);
    ck_assert_msg(strstr(gpud_last_error()->text, "argument 1 (tile): ") != NULL, "%s",
                  gpud_last_error()->text);
    ck_assert_int_eq(gpud_last_error()->arg, 1);
    end(c);
}
END_TEST

/* Undefined bytes are found when the job is sent, long after its arguments were read. */
START_TEST(undefined_bytes_name_their_reader)
{
    gpud_client *c = begin();
    gpud_buffer b;
    gpud_kernel axpy;
    gpud_program *p = NULL;
    float y[4] = {0};
    ck_gpud_ok(gpud_kernel_find(c, "axpy", &axpy));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b));
    gpud_arg args[] = {gpud_f32(1), gpud_in(b), gpud_host_inout(y, 4, GPUD_F32)};
    ck_gpud_err(gpud_call(c, axpy, args, 3, NULL), GPUD_ERR_UNDEFINED);
    ck_assert_msg(strstr(gpud_last_error()->text, "step 0, launch: axpy: argument 1 (x): ") != NULL,
                  "%s", gpud_last_error()->text);
    ck_assert_int_eq(gpud_last_error()->step, 0);
    ck_assert_int_eq(gpud_last_error()->arg, 1);
    gpud_arg from = gpud_slice(b, 0, 2);
    gpud_arg to = gpud_slice(b, 2, 2);
    ck_gpud_ok(gpud_program_create(c, "copies", &p));
    ck_assert_int_eq(gpud_program_fill(p, gpud_slice(b, 2, 1), gpud_f32(1)), 0);
    ck_assert_int_eq(gpud_program_copy(p, to, from), 1);
    ck_gpud_ok(gpud_program_seal(p));
    ck_gpud_err(gpud_run(c, p, NULL, 0, NULL, NULL), GPUD_ERR_UNDEFINED);
    ck_assert_msg(strncmp(gpud_last_error()->text, "step 1: buffer ", 15) == 0, "%s",
                  gpud_last_error()->text);
    ck_assert_int_eq(gpud_last_error()->arg, -1);
    gpud_program_free(p);
    end(c);
}
END_TEST

/* The limits of the WELCOME reach the program. */
START_TEST(limits_are_told)
{
    gpud_client *c = begin();
    gpud_limits_desc l = {.size = sizeof l};
    ck_gpud_ok(gpud_limits(c, &l));
    ck_assert_uint_ge(l.max_requests, 1024);
    ck_assert_uint_gt(l.max_unacked, 0);
    ck_assert_uint_gt(l.max_kept, 0);
    ck_assert_uint_gt(l.max_early, 0);
    ck_assert_uint_gt(l.max_reorder, 0);
    ck_assert_uint_gt(l.max_buffers, 0);
    ck_assert_uint_gt(l.max_arenas, 0);
    ck_assert_uint_gt(l.max_modules, 0);
    ck_assert_uint_gt(l.max_programs, 0);
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("arguments");
    suite_add(suite, a_hundred_and_twenty_eight_arguments);
    suite_add(suite, types_behind_names);
    suite_add(suite, views_are_checked);
    suite_add(suite, gpuctl_sees_types_and_views);
    suite_add(suite, gpuctl_gives_vectors_their_type);
    suite_add(suite, headers_come_with_the_source);
    suite_add(suite, a_workers_words_name_the_argument);
    suite_add(suite, undefined_bytes_name_their_reader);
    suite_add(suite, limits_are_told);
    return system_main(suite);
}
