/*
 * Memory that goes back to the CUDA driver beside a long kernel, on the double of the driver. Like
 * the driver, the double waits for all work of the device before it frees. So gpud frees when
 * nothing is in flight, other jobs do not wait for it, and memory that is about to be freed makes
 * room for new requests.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/double.h"

#define ITEMS GATE_ITEMS
#define MIB   (UINT64_C(1) << 20)
#define MOST  200000u /* floats: more than half of the managed memory that there may be */

static struct daemon daemon_of_test;

static gpud_client *begin(const char *options, const char *setting)
{
    daemon_prepare(&daemon_of_test, "--backend", "cuda", "--backend-options", options, "--set",
                   "jobs.window=4", "--set", "memory.spill_limit=0", "--set", setting, NULL);
    double_state(&daemon_of_test);
    return double_begin(&daemon_of_test, "units=1");
}

static gpud_buffer filled(gpud_client *c, uint64_t items, uint32_t flags, float value)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, items), flags, "values", &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(value)));
    return b;
}

static float first_of(gpud_client *c, gpud_buffer b)
{
    float value = 0;
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 1, &value, NULL));
    return value;
}

static gpud_job *fill_start(gpud_client *c, gpud_buffer b, float value)
{
    gpud_arg args[] = {gpud_f32(value), gpud_out(b)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, NULL, &job));
    return job;
}

/* The long kernel ends, and then the job that waited for memory. */
static void gate_end(gpud_client *c, gpud_job *large, gpud_job *waits)
{
    ck_assert(gpud_dispatch(c) == 0 && !gpud_job_done(large) && !gpud_job_done(waits));
    gate_open(&daemon_of_test);
    ck_gpud_ok(gpud_wait(large, 2 * PATIENCE));
    ck_gpud_ok(gpud_wait(waits, 2 * PATIENCE));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    gpud_job_free(large);
    gpud_job_free(waits);
}

/* A session with managed memory ends. Its memory counts until it is freed. A request for as much
 * waits and then gets it; for a larger one there is no room. */
START_TEST(managed_memory)
{
    float y[ITEMS] = {0};
    gpud_client *c = begin("", "memory.managed_limit=1M");
    gpud_client *other = client_open(daemon_of_test.url);
    const gpud_shape most = gpud_shape_1d(GPUD_F32, MOST);
    gpud_buffer there = filled(c, ITEMS, 0, 7);
    gpud_buffer more = {0};
    ck_assert_float_eq(first_of(other, filled(other, MOST, GPUD_BUFFER_MANAGED, 5)), 5);
    gpud_job *large = gate_start(&daemon_of_test, c, y);
    gpud_close(other);
    ck_until(query_value(c, "status", NULL, "sessions") == 1);
    ck_assert_float_eq(first_of(c, there), 7);
    ck_until(query_value(c, "pool", "0", "managed") == MOST * sizeof(float));
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, most, GPUD_BUFFER_MANAGED, "b", &b));
    ck_gpud_err(gpud_buffer_create(c, most, GPUD_BUFFER_MANAGED, "more", &more),
                GPUD_ERR_DEVICE_MEMORY);
    gate_end(c, large, fill_start(c, b, 3));
    ck_assert_float_eq(first_of(c, b), 3);
    ck_assert_float_eq(first_of(c, there), 7);
    ck_until(query_value(c, "pool", "0", "managed") == MOST * sizeof(float));
    daemon_end_clean(&daemon_of_test, c);
}
END_TEST

/* Blocks of the pool where it has no pages: they are given back on demand, or since room is wanted
 * for a larger one. */
START_TEST(blocks_of_the_pool)
{
    float y[ITEMS] = {0};
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    gpud_client *c = begin("vmm=off", "jobs.device_memory_max=16M");
    gpud_buffer there = filled(c, ITEMS, 0, 7);
    gpud_buffer b = filled(c, 2 * MIB, 0, 5);
    ck_assert_float_eq(first_of(c, b), 5);
    gpud_job *large = gate_start(&daemon_of_test, c, y);
    ck_gpud_ok(gpud_buffer_free(c, b));
    if (_i == 0) {
        ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "pool", "trim", NULL), 0);
    }
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 3 * MIB), 0, "b", &b));
    ck_assert_float_eq(first_of(c, there), 7);
    gate_end(c, large, fill_start(c, b, 3));
    ck_assert_float_eq(first_of(c, b), 3);
    ck_assert_float_eq(first_of(c, there), 7);
    daemon_end_clean(&daemon_of_test, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("CUDA memory");
    suite_add(suite, managed_memory);
    suite_add_loop(suite, blocks_of_the_pool, 2);
    return system_main(suite);
}
