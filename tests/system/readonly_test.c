/* Buffers that a session may not write keep their contents, even if a kernel writes to an argument
 * that it declares as `in`: sealed buffers, and buffers opened for reading. On OpenCL. */
#include <string.h>

#include "tests/system/harness/harness.h"

#define COUNT 1000u

static struct daemon daemon_of_test;

static const gpud_grid one = {.size = sizeof(gpud_grid), .global = {1}, .local = {1}};

/* Each writes x[0], whatever its declaration says, and stores the value it read in y[0]. */
static const struct {
    int lang;
    const char *source;
} writers[] = {
    {GPUD_LANG_OPENCL, "__kernel void w(__global float *x, __global float *y) {\n"
                       "    y[0] = x[0] + x[999]; x[0] = 9; }\n"},
    {GPUD_LANG_OPENCL, "__kernel void w(__global const float *x, __global float *y) {\n"
                       "    y[0] = x[0] + x[999]; ((__global float *)x)[0] = 9; }\n"},
    {GPUD_LANG_OPENCL, "void put(__global float *p) { *p = 9; }\n"
                       "__kernel void w(__global const float *x, __global float *y) {\n"
                       "    y[0] = x[0] + x[999]; put((__global float *)x); }\n"},
    {GPUD_LANG_OPENCL, "__attribute__((pure, noinline)) int put(__global float *p) {\n"
                       "    *p = 9; return (int)*(volatile __global float *)p - 9; }\n"
                       "__kernel void w(__global const float *x, __global float *y) {\n"
                       "    y[0] = x[0] + x[999] + put((__global float *)x); }\n"},
    {GPUD_LANG_OPENCL, "__kernel void w(__global const float *x, __global float *y) {\n"
                       "    y[0] = x[0] + x[999];\n"
                       "    ulong at = (ulong)x; *(__global float *)at = 9; }\n"},
    {GPUD_LANG_OPENCL, "__kernel void w(__global const float *x, __global float *y) {\n"
                       "    y[0] = x[0] + x[999]; __global const float *p[2];\n"
                       "    p[get_global_id(0) & 1] = x;\n"
                       "    ((__global float *)p[get_global_id(0) & 1])[0] = 9; }\n"},
    {GPUD_LANG_OPENCL, "__kernel void w(__global const int *x, __global float *y) {\n"
                       "    y[0] = as_float(x[0]) + as_float(x[999]);\n"
                       "    atomic_xchg((__global int *)x, 9); }\n"},
    {GPUD_LANG_DIALECT, "//@kernel w(in f32 x[n], out f32 y[1])\n"
                        "{\n    y[0] = x[0] + x[999];\n    ((global f32 *)x)[0] = 9;\n}\n"},
};

static gpud_kernel load(gpud_client *c, int lang, const char *source)
{
    gpud_module m = {0};
    gpud_kernel k = {0};
    gpud_module_options o = {.size = sizeof o, .file = "w.cl", .name = "user"};
    ck_gpud_ok(gpud_module_load(c, lang, source, strlen(source), &o, &m));
    ck_gpud_ok(gpud_module_kernel_at(c, m, 0, &k));
    return k;
}

static gpud_buffer filled(gpud_client *c, int dtype, float value)
{
    gpud_buffer b = {0};
    gpud_arg pattern = dtype == GPUD_F32 ? gpud_f32(value) : gpud_i32(0x3f800000);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(dtype, COUNT), 0, "weights", &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), pattern));
    return b;
}

static float first(gpud_client *c, gpud_buffer b, int dtype)
{
    float got = -1;
    ck_gpud_ok(gpud_read(c, b, dtype, 0, 1, &got, NULL));
    return got;
}

/* FAULT other: a kernel writes an argument that was declared `in`, and the session may not write
 *   that buffer
 * required: its content stays; the launch works on a copy, or is refused with `DEVICE_MEMORY`
 * defence: `front/resolve/resolve_launch.c`: needs_copy, copy_in; `backend/opencl/bitcode.c`:
 *   only_reads
 * also: `test_opencl_compile`: what_is_only_read_is_shown; `test_system_readonly`:
 *   a_kernel_that_only_reads_works_on_it, without_room_for_a_copy_it_is_refused;
 *   `test_system_cuda_modules`: what_is_sealed_stays; `front_resolve_test`:
 *   what_may_not_be_written_is_copied_unless_it_is_shown
 * mutants: read-only, only-reads */
START_TEST(what_may_not_be_written_is_not)
{
    gpud_client *owner = daemon_begin(&daemon_of_test, "--backend", "opencl", NULL);
    gpud_client *other = client_open(daemon_of_test.url);
    int dtype = strstr(writers[_i].source, "int *x") != NULL ? GPUD_I32 : GPUD_F32;
    gpud_buffer sealed = filled(owner, dtype, 1);
    gpud_buffer shared = filled(owner, dtype, 1);
    gpud_buffer plain = filled(owner, dtype, 1);
    gpud_buffer opened = {0};
    ck_gpud_ok(gpud_buffer_seal(owner, sealed));
    ck_gpud_ok(gpud_buffer_publish(owner, shared, "shared", GPUD_IN, 0));
    ck_gpud_ok(gpud_buffer_open(other, "shared", &opened));
    const struct {
        gpud_client *c;
        gpud_buffer x;
    } of[] = {{owner, sealed}, {other, opened}, {owner, plain}};
    for (unsigned i = 0; i < 3; i++) {
        float y[1] = {0};
        gpud_kernel k = load(of[i].c, writers[_i].lang, writers[_i].source);
        gpud_arg in[] = {gpud_in(of[i].x), gpud_host_out(y, 1, GPUD_F32)};
        gpud_arg out[] = {gpud_inout(of[i].x), in[1]};
        if (i < 2 && writers[_i].lang == GPUD_LANG_OPENCL) { /* a signature's `in` is what counts */
            int rc = gpud_call(of[i].c, k, out, 2, &one);
            ck_assert_msg(rc == GPUD_ERR_SEALED || rc == GPUD_ERR_PERMISSION ||
                              rc == GPUD_ERR_ARG_ACCESS,
                          "%s", gpud_err_name(rc));
        }
        ck_gpud_ok(gpud_call(of[i].c, k, in, 2, &one));
        ck_assert_float_eq(y[0], 2);
        /* what the session could have declared as written is believed to be read */
        bool kept = first(of[i].c, of[i].x, dtype) == 1;
        ck_assert_msg(kept == (i < 2), "writer %d, buffer %u", _i, i);
    }
    gpud_close(other);
    daemon_end(&daemon_of_test, owner);
}
END_TEST

/* There is no room for a copy, and none is needed. */
START_TEST(a_kernel_that_only_reads_works_on_it)
{
    static const struct {
        int lang;
        const char *source;
    } readers[] = {
        {GPUD_LANG_OPENCL, "__kernel void r(__global const float *x, __global float *y) {\n"
                           "    y[get_global_id(0)] = x[0] + x[999]; }\n"},
        {GPUD_LANG_DIALECT,
         "//@kernel r(in f32 x[n], out f32 y[1])\n{\n    y[0] = x[0] + x[999];\n}\n"},
    };
    gpud_client *c =
        daemon_begin(&daemon_of_test, "--backend", "opencl", "--set", "jobs.device_memory_max=16M",
                     "--set", "memory.spill_limit=0", NULL);
    gpud_buffer b = {0};
    float y[1] = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 10 << 18), 0, "weights", &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(1)));
    ck_gpud_ok(gpud_buffer_seal(c, b));
    gpud_kernel k = load(c, readers[_i].lang, readers[_i].source);
    gpud_arg args[] = {gpud_in(b), gpud_host_out(y, 1, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, k, args, 2, &one));
    ck_assert_float_eq(y[0], 2);
    daemon_end(&daemon_of_test, c);
}
END_TEST

/* The launch is refused, and says of what a copy was to be made. */
START_TEST(without_room_for_a_copy_it_is_refused)
{
    gpud_client *c =
        daemon_begin(&daemon_of_test, "--backend", "opencl", "--set", "jobs.device_memory_max=16M",
                     "--set", "memory.spill_limit=0", NULL);
    gpud_buffer b = {0};
    gpud_buffer y = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 10 << 18), 0, "weights", &b));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 1), 0, "y", &y));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(1)));
    ck_gpud_ok(gpud_fill(c, gpud_out(y), gpud_f32(5)));
    ck_gpud_ok(gpud_buffer_seal(c, b));
    gpud_kernel k = load(c, GPUD_LANG_OPENCL, writers[0].source);
    gpud_arg args[] = {gpud_in(b), gpud_out(y)};
    ck_gpud_err(gpud_call(c, k, args, 2, &one), GPUD_ERR_DEVICE_MEMORY);
    ck_assert_int_eq(gpud_last_error()->arg, 0);
    ck_assert_msg(strstr(gpud_last_error()->text, "a copy of 10485760 bytes") != NULL, "%s",
                  gpud_last_error()->text);
    float got = 0;
    ck_gpud_ok(gpud_read(c, y, GPUD_F32, 0, 1, &got, NULL));
    ck_assert_float_eq(got, 5);
    daemon_end(&daemon_of_test, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("readonly");
    suite_add_loop(suite, what_may_not_be_written_is_not, sizeof writers / sizeof writers[0]);
    suite_add_loop(suite, a_kernel_that_only_reads_works_on_it, 2);
    suite_add(suite, without_room_for_a_copy_it_is_refused);
    return system_main(suite);
}
