/* Jobs whose buffers are on two devices. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/harness/harness.h"

#define N 1024u

static struct daemon d;

static gpud_client *begin(void)
{
    return daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0,devices=2", "--set",
                        "daemon.min_devices=2", NULL);
}

static gpud_buffer make(gpud_client *c, uint64_t device, uint64_t n, uint32_t flags, float value)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create_on(c, device, gpud_shape_1d(GPUD_F32, n), flags, NULL, &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(value)));
    return b;
}

static uint64_t device_of(gpud_client *c, gpud_buffer b)
{
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_info(c, b, &desc));
    return desc.device;
}

static void has(gpud_client *c, gpud_buffer b, uint64_t n, float value)
{
    float *out = malloc(n * sizeof *out);
    ck_assert_ptr_nonnull(out);
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, out, NULL));
    for (uint64_t i = 0; i < n; i++) {
        ck_assert_float_eq(out[i], value);
    }
    free(out);
}

/* The smaller one moves to the larger one, and
 * content is as if they had been there. _i: 1: the front is replaced in between. */
START_TEST(the_smaller_one_moves)
{
    gpud_client *c = begin();
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_kernel sum = kernel_find(c, "reduce_sum");
    gpud_buffer x = make(c, 0, N, 0, 2);
    gpud_buffer y = make(c, 1, N, 0, 3);
    gpud_buffer other = make(c, 1, 1, 0, 0);
    const gpud_arg reduce[] = {gpud_in(x), gpud_out(other)};
    ck_gpud_ok(gpud_call(c, sum, reduce, 2, NULL));
    ck_assert_uint_eq(device_of(c, x), 0);
    ck_assert_uint_eq(device_of(c, other), 0);
    has(c, other, 1, 2 * N);
    if (_i == 1) {
        daemon_kill(&d);
        daemon_spawn(&d);
        daemon_wait_ready(&d);
    }
    const gpud_arg args[] = {gpud_f32(5), gpud_in(x), gpud_inout(y)};
    for (unsigned i = 0; i < 10; i++) { /* there and back */
        gpud_job *job = NULL;
        gpud_submit_options o = {.size = sizeof o, .device = GPUD_ON(i % 2)};
        ck_gpud_ok(gpud_launch(c, axpy, args, 3, NULL, &o, &job));
        ck_gpud_ok(gpud_wait(job, PATIENCE));
        gpud_job_free(job);
        ck_assert_uint_eq(device_of(c, x), i % 2);
        ck_assert_uint_eq(device_of(c, y), i % 2);
    }
    has(c, x, N, 2);
    has(c, y, N, 103);
    daemon_end(&d, c);
}
END_TEST

/* They stay sealed, and come back after the end of the worker where they went. */
START_TEST(sealed_ones_move_too)
{
    gpud_client *c = begin();
    gpud_buffer x = make(c, 0, N, 0, 2);
    gpud_buffer y = make(c, 1, 2 * N, 0, 3);
    ck_gpud_ok(gpud_buffer_seal(c, x));
    const gpud_arg args[] = {gpud_f32(5), gpud_in(x), gpud_arg_slice(gpud_inout(y), 0, N)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL));
    ck_assert_uint_eq(device_of(c, x), 1);
    pid_t before = daemon_worker(&d, 1);
    ck_assert_int_eq(kill(before, SIGKILL), 0);
    daemon_wait_worker(&d, 1, before);
    has(c, x, N, 2);
    ck_gpud_err(gpud_fill(c, gpud_out(x), gpud_f32(1)), GPUD_ERR_SEALED);
    daemon_end(&d, c);
}
END_TEST

/* Published buffers may be in use by others. The error names one. */
START_TEST(published_ones_stay)
{
    gpud_client *c = begin();
    gpud_buffer x = make(c, 0, N, 0, 2);
    gpud_buffer y = make(c, 1, N, 0, 3);
    ck_gpud_ok(gpud_buffer_publish(c, x, "x", GPUD_INOUT, 0));
    const gpud_arg args[] = {gpud_f32(5), gpud_in(x), gpud_inout(y)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL));
    ck_assert_uint_eq(device_of(c, y), 0);
    gpud_buffer z = make(c, 1, N, 0, 3);
    ck_gpud_ok(gpud_buffer_publish(c, z, "z", GPUD_INOUT, 0));
    const gpud_arg both[] = {gpud_f32(5), gpud_in(x), gpud_inout(z)};
    ck_gpud_err(gpud_call(c, kernel_find(c, "axpy"), both, 3, NULL), GPUD_ERR_STATE);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "cannot move"));
    daemon_end(&d, c);
}
END_TEST

/* A copy is how a client puts content on another device. */
START_TEST(a_copy_moves_nothing)
{
    gpud_client *c = begin();
    gpud_buffer x = make(c, 0, N, 0, 2);
    gpud_buffer y = make(c, 1, N, 0, 3);
    ck_gpud_ok(gpud_copy(c, gpud_out(y), gpud_in(x)));
    ck_assert_uint_eq(device_of(c, x), 0);
    ck_assert_uint_eq(device_of(c, y), 1);
    has(c, y, N, 2);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("moves");
    TCase *tc = tcase_create("moves");
    tcase_add_loop_test(tc, the_smaller_one_moves, 0, 2);
    tcase_add_test(tc, sealed_ones_move_too);
    tcase_add_test(tc, published_ones_stay);
    tcase_add_test(tc, a_copy_moves_nothing);
    suite_add_tcase(suite, tc);
    return system_main(suite);
}
