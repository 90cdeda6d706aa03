/* Buffers: their operations, their refusals, and that a refusal changes nothing. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/harness/harness.h"

static struct daemon daemon_of_test;

static gpud_client *begin(void)
{
    return daemon_begin(&daemon_of_test, "--backend", "sim", "--backend-options", "speed=0", NULL);
}

static void end(gpud_client *c)
{
    daemon_end(&daemon_of_test, c);
}

static gpud_buffer make(gpud_client *c, uint64_t count)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, count), 0, "test", &b));
    return b;
}

static void check_at(gpud_client *c, gpud_buffer b, uint64_t index, float expected)
{
    float got = -1;
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, index, 1, &got, NULL));
    ck_assert_float_eq(got, expected);
}

START_TEST(contents)
{
    gpud_client *c = begin();
    float values[100];
    for (unsigned i = 0; i < 100; i++) {
        values[i] = (float)i;
    }
    gpud_buffer a = make(c, 100);
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 100), GPUD_BUFFER_ZERO, "zeros", &b));
    ck_gpud_ok(gpud_write(c, a, GPUD_F32, 0, GPUD_REST, values, NULL));
    check_at(c, b, 99, 0);
    ck_gpud_ok(gpud_copy(c, gpud_slice(b, 10, 5), gpud_slice(a, 90, 5)));
    check_at(c, b, 9, 0);
    check_at(c, b, 10, 90);
    check_at(c, b, 14, 94);
    check_at(c, b, 15, 0);
    ck_gpud_ok(gpud_fill(c, gpud_slice(b, 0, 11), gpud_f32(7)));
    check_at(c, b, 10, 7);
    check_at(c, b, 11, 91);
    ck_gpud_ok(gpud_fill(c, gpud_slice(b, 20, 0), gpud_f32(7))); /* none */
    ck_gpud_ok(gpud_copy(c, gpud_slice(b, 30, 0), gpud_slice(a, 0, 0)));
    check_at(c, b, 20, 0);
    check_at(c, b, 99, 0);
    ck_gpud_err(gpud_copy(c, gpud_slice(b, 30, 0), gpud_in(a)), GPUD_ERR_ARG_SHAPE);
    gpud_buffer half = make(c, 10); /* an empty write leaves defined bytes defined */
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_program_create(c, NULL, &p));
    ck_assert_int_ge(gpud_program_fill(p, gpud_slice(half, 0, 4), gpud_f32(6)), 0);
    ck_assert_int_ge(gpud_program_fill(p, gpud_slice(half, 7, 0), gpud_f32(6)), 0);
    ck_gpud_ok(gpud_program_seal(p));
    ck_gpud_ok(gpud_run(c, p, NULL, 0, NULL, NULL));
    gpud_program_free(p);
    check_at(c, half, 3, 6);
    ck_gpud_ok(gpud_fill(c, gpud_slice(b, 95, GPUD_REST), gpud_f32(3)));
    check_at(c, b, 94, 0);
    check_at(c, b, 99, 3);
    gpud_arg args[] = {gpud_f32(2), gpud_arg_with(gpud_slice(a, 50, 10), GPUD_IN),
                       gpud_arg_with(gpud_slice(b, 50, 10), GPUD_OUT)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "scale"), args, 3, NULL));
    check_at(c, b, 49, 0);
    check_at(c, b, 59, 118);
    check_at(c, b, 60, 0);
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_info(c, b, &desc));
    ck_assert_str_eq(desc.label, "zeros");
    ck_assert_uint_eq(gpud_shape_bytes(desc.shape), 400);
    end(c);
}
END_TEST

/* Larger than a message. */
START_TEST(large)
{
    gpud_client *c = begin();
    static uint32_t values[3000000];
    static uint32_t back[3000000];
    gpud_buffer b = {0};
    for (uint32_t i = 0; i < 3000000; i++) {
        values[i] = i * 2654435761u;
    }
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 3000000), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, values, NULL));
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, back, NULL));
    ck_assert_mem_eq(values, back, sizeof values);
    end(c);
}
END_TEST

START_TEST(refusals)
{
    gpud_client *c = begin();
    float v[16] = {0};
    gpud_buffer a = make(c, 16);
    gpud_buffer none = {UINT64_C(0xfedcba9876543210)};
    gpud_buffer made = {0};
    ck_gpud_err(gpud_read(c, a, GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_UNDEFINED);
    ck_gpud_ok(gpud_write(c, a, GPUD_F32, 0, 8, v, NULL));
    ck_gpud_err(gpud_read(c, a, GPUD_F32, 0, 9, v, NULL), GPUD_ERR_UNDEFINED);
    ck_gpud_err(gpud_buffer_seal(c, a), GPUD_ERR_UNDEFINED);
    ck_gpud_ok(gpud_fill(c, gpud_out(a), gpud_f32(5)));
    ck_gpud_err(gpud_write(c, a, GPUD_I32, 0, GPUD_REST, v, NULL), GPUD_ERR_ARG_TYPE);
    ck_gpud_err(gpud_write(c, a, GPUD_F32, 10, 7, v, NULL), GPUD_ERR_RANGE);
    ck_gpud_err(gpud_read(c, a, GPUD_F32, UINT64_MAX, 2, v, NULL), GPUD_ERR_RANGE);
    ck_gpud_err(gpud_copy(c, gpud_slice(a, 0, 4), gpud_slice(a, 14, 4)), GPUD_ERR_RANGE);
    ck_gpud_err(gpud_fill(c, gpud_out(none), gpud_f32(0)), GPUD_ERR_BAD_HANDLE);
    check_at(c, a, 15, 5);
    /* 2^62 bytes, 2^63, and shapes that wrap around */
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, UINT64_C(1) << 60), 0, NULL, &made),
                GPUD_ERR_DEVICE_MEMORY);
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, UINT64_C(1) << 61), 0, NULL, &made),
                GPUD_ERR_ARG_SHAPE);
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_2d(GPUD_F32, UINT64_C(1) << 32, UINT64_C(1) << 32),
                                   0, NULL, &made),
                GPUD_ERR_ARG_SHAPE);
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(99, 1), 0, NULL, &made), GPUD_ERR_ARG_TYPE);
    ck_assert_uint_eq(made.id, 0);
    ck_assert_uint_eq(query_value(c, "devices", "0", "buffers"), 16 * sizeof(float));
    ck_gpud_ok(gpud_buffer_free(c, a));
    ck_gpud_err(gpud_buffer_free(c, a), GPUD_ERR_STALE_HANDLE);
    ck_gpud_err(gpud_read(c, a, GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_STALE_HANDLE);
    ck_until(query_value(c, "devices", "0", "buffers") == 0);
    end(c);
}
END_TEST

/* FAULT other: wrong count, type, shape or access of arguments; scalars and slices out of range;
 *   sizes of 2^63 bytes
 * required: an error for each, nothing changed
 * defence: `kernels/signature_bind.c`, `kernels/scalar.c`, `front/resolve/resolve_operand.c`
 * also: `test_system_buffers`: refusals; `test_system_kernels`: arguments_of_plain_opencl
 * mutants: arg-count, arg-type, array-type, scalar-range, slice-range */
/* Wrong arguments for a kernel: each with its own error, and the arrays as they were. */
START_TEST(wrong_arguments)
{
    gpud_client *c = begin();
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_kernel clamp = kernel_find(c, "clamp");
    gpud_kernel none = {0};
    float x[4] = {1, 2, 3, 4};
    float y[5] = {9, 9, 9, 9, 9};
    uint8_t bytes[4] = {0};
    gpud_arg X = gpud_host_in(x, 4, GPUD_F32);
    gpud_arg Y = gpud_host_inout(y, 4, GPUD_F32);
    gpud_arg few[] = {gpud_f32(1), X};
    gpud_arg scalar[] = {X, gpud_f32(1), Y};
    gpud_arg type[] = {gpud_f32(1), gpud_host_in(bytes, 4, GPUD_U8), Y};
    gpud_arg shape[] = {gpud_f32(1), X, gpud_host_inout(y, 5, GPUD_F32)};
    gpud_arg access[] = {gpud_f32(1), X, gpud_host_in(y, 4, GPUD_F32)};
    gpud_arg range[] = {gpud_f64(1e300), X, Y};
    gpud_arg value[] = {gpud_f32(1), gpud_f32(1), Y};
    gpud_arg element[] = {gpud_f32(1), X, gpud_host_out(y, 4, GPUD_F32)}; /* bytes are wanted */
    ck_gpud_err(gpud_kernel_find(c, "no_such_kernel", &none), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_call(c, axpy, few, 2, NULL), GPUD_ERR_ARG_COUNT);
    ck_gpud_err(gpud_call(c, axpy, scalar, 3, NULL), GPUD_ERR_ARG_TYPE);
    ck_assert_int_eq(gpud_last_error()->arg, 0);
    ck_gpud_err(gpud_call(c, axpy, type, 3, NULL), GPUD_ERR_ARG_TYPE);
    ck_gpud_err(gpud_call(c, axpy, value, 3, NULL), GPUD_ERR_ARG_TYPE);
    ck_gpud_err(gpud_call(c, kernel_find(c, "from_u8"), element, 3, NULL), GPUD_ERR_ARG_TYPE);
    ck_gpud_err(gpud_call(c, axpy, shape, 3, NULL), GPUD_ERR_ARG_SHAPE);
    ck_gpud_err(gpud_call(c, axpy, access, 3, NULL), GPUD_ERR_ARG_ACCESS);
    ck_gpud_err(gpud_call(c, axpy, range, 3, NULL), GPUD_ERR_RANGE);
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_float_eq(y[i], 9);
    }
    /* nothing to do is no error */
    gpud_arg empty[] = {gpud_f32(0), gpud_f32(1), gpud_host_in(x, 0, GPUD_F32),
                        gpud_host_out(y, 0, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, clamp, empty, 4, NULL));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

START_TEST(sealed)
{
    gpud_client *c = begin();
    gpud_buffer b = make(c, 8);
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(3)));
    ck_gpud_ok(gpud_buffer_seal(c, b));
    ck_gpud_ok(gpud_buffer_seal(c, b)); /* it is: no harm */
    float v[8] = {0};
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    ck_gpud_err(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_SEALED);
    ck_gpud_err(gpud_fill(c, gpud_out(b), gpud_f32(1)), GPUD_ERR_SEALED);
    ck_gpud_err(gpud_call(c, kernel_find(c, "fill"), args, 2, NULL), GPUD_ERR_SEALED);
    check_at(c, b, 7, 3);
    end(c);
}
END_TEST

struct told {
    unsigned lost;
    unsigned restarted;
    uint64_t id[8];
};

static void note(gpud_client *c, const gpud_event *event, void *user)
{
    struct told *t = user;
    (void)c;
    t->restarted += event->kind == GPUD_EVENT_RESTARTED;
    if (event->kind == GPUD_EVENT_BUFFER_LOST) {
        ck_assert_uint_lt(t->lost, 8);
        t->id[t->lost++] = event->buffer.id;
    }
}

/* FAULT 22: launcher, workers and front start anew together
 * required: a client asks the new front for each of its buffers, gets an event for each lost
 *   one, and `BUFFER_LOST` when it uses such a buffer; creating a buffer waits for the new
 *   worker
 * defence: `client/src/session/restore.c`: restore_buffers; `front/model/buffer.c`:
 *   buffer_gone; `front/requests/buffer.c`: choose_device
 * also: `test_system_buffers`: kept_by_their_worker, creating_waits_for_a_worker;
 *   `test_client_session`: buffers_that_another_daemon_does_not_have_are_told;
 *   `front_requests_test`: letting_go_of_what_an_earlier_daemon_gave_out
 * mutants: lost-anew, create-waits */
/* Launcher, workers and front are new: each buffer is lost, by an event and by its error, for the
 * session that made it and for sessions that opened it. A buffer that was freed stays freed. A new
 * buffer waits for the new worker.
 */
START_TEST(lost_with_everything)
{
    gpud_client *c = begin();
    gpud_client *other = client_open(daemon_of_test.url);
    struct told told = {0};
    struct told others = {0};
    gpud_buffer b[3];
    gpud_buffer opened = {0};
    float v[8] = {0};
    for (unsigned i = 0; i < 3; i++) {
        b[i] = make(c, 8);
        ck_gpud_ok(gpud_fill(c, gpud_out(b[i]), gpud_f32(3)));
    }
    ck_gpud_ok(gpud_buffer_seal(c, b[1]));
    ck_gpud_ok(gpud_buffer_publish(c, b[1], "weights", GPUD_IN, SECOND));
    ck_gpud_ok(gpud_buffer_open(other, "weights", &opened));
    ck_gpud_ok(gpud_buffer_free(c, b[2]));
    ck_gpud_ok(gpud_ping(c, NULL));
    ck_gpud_ok(gpud_set_event_cb(c, note, &told));
    ck_gpud_ok(gpud_set_event_cb(other, note, &others));
    daemon_stop(&daemon_of_test);
    daemon_spawn(&daemon_of_test);
    gpud_buffer next = make(c, 8);
    ck_gpud_ok(gpud_fill(c, gpud_out(next), gpud_f32(4)));
    check_at(c, next, 7, 4);
    ck_gpud_err(gpud_read(c, b[0], GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_BUFFER_LOST);
    ck_gpud_err(gpud_read(c, b[1], GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_BUFFER_LOST);
    ck_gpud_err(gpud_read(c, b[2], GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_STALE_HANDLE);
    ck_gpud_err(gpud_read(other, opened, GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_BUFFER_LOST);
    ck_until((gpud_dispatch(c), told.restarted == 1));
    ck_until((gpud_dispatch(other), others.restarted == 1));
    ck_assert_uint_eq(told.lost, 2);
    ck_assert_uint_eq(told.id[0] ^ told.id[1], b[0].id ^ b[1].id);
    ck_assert_uint_eq(others.lost, 1);
    ck_assert_uint_eq(others.id[0], opened.id);
    for (unsigned i = 0; i < 2; i++) {
        ck_gpud_ok(gpud_buffer_free(c, b[i]));
        ck_gpud_err(gpud_buffer_free(c, b[i]), GPUD_ERR_STALE_HANDLE);
    }
    ck_gpud_ok(gpud_buffer_free(other, opened));
    check_at(c, next, 0, 4);
    gpud_close(other);
    end(c);
}
END_TEST

/* Its front alone is another one: nothing is lost, and nothing is said. */
START_TEST(kept_by_their_worker)
{
    gpud_client *c = begin();
    struct told told = {0};
    gpud_buffer b[100];
    for (unsigned i = 0; i < 100; i++) {
        b[i] = make(c, 8);
        ck_gpud_ok(gpud_fill(c, gpud_out(b[i]), gpud_f32((float)i)));
    }
    ck_gpud_ok(gpud_set_event_cb(c, note, &told));
    daemon_kill(&daemon_of_test);
    daemon_spawn(&daemon_of_test);
    for (unsigned i = 0; i < 100; i++) {
        check_at(c, b[i], 7, (float)i);
    }
    ck_until((gpud_dispatch(c), told.restarted == 1));
    ck_assert_uint_eq(told.lost, 0);
    end(c);
}
END_TEST

static void *make_one(void *data)
{
    static gpud_buffer b;
    return gpud_buffer_create(data, gpud_shape_1d(GPUD_F32, 8), 0, "new", &b) == 0 ? &b : NULL;
}

/* The launcher stands still, so no other worker comes before the buffer is asked for. */
START_TEST(creating_waits_for_a_worker)
{
    gpud_client *c = begin();
    gpud_client *other = client_open(daemon_of_test.url);
    char state[32];
    pthread_t thread;
    void *made = NULL;
    pid_t launcher = daemon_launcher(&daemon_of_test);
    ck_assert_int_eq(kill(launcher, SIGSTOP), 0);
    ck_assert_int_eq(kill(daemon_worker(&daemon_of_test, 0), SIGKILL), 0);
    ck_until((query_text(other, "status", NULL, "state", state, sizeof state),
              strcmp(state, "ready") != 0));
    ck_assert_int_eq(pthread_create(&thread, NULL, make_one, c), 0);
    ck_until(query_value(other, "devices", "0", "buffers") == 8 * sizeof(float));
    ck_assert_int_eq(kill(launcher, SIGCONT), 0);
    ck_assert_int_eq(pthread_join(thread, &made), 0);
    ck_assert_ptr_nonnull(made);
    gpud_buffer b = *(gpud_buffer *)made;
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(3)));
    check_at(c, b, 7, 3);
    gpud_close(other);
    end(c);
}
END_TEST

START_TEST(published)
{
    gpud_client *c = begin();
    gpud_client *other = client_open(daemon_of_test.url);
    gpud_buffer b = make(c, 8);
    gpud_buffer second = make(c, 8);
    gpud_buffer brief = make(c, 4);
    gpud_buffer opened = {0};
    gpud_buffer passing = {0};
    float v[8] = {0};
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(3)));
    ck_gpud_err(gpud_buffer_open(other, "weights", &opened), GPUD_ERR_NOT_FOUND);
    ck_gpud_ok(gpud_buffer_publish(c, b, "weights", GPUD_IN, 3600 * SECOND));
    ck_gpud_ok(gpud_buffer_publish(c, brief, "brief", GPUD_IN, 100 * MS));
    ck_gpud_err(gpud_buffer_publish(c, second, "weights", GPUD_IN, 0), GPUD_ERR_EXISTS);
    ck_gpud_ok(gpud_buffer_open(other, "weights", &opened));
    check_at(other, opened, 7, 3);
    ck_gpud_err(gpud_write(other, opened, GPUD_F32, 0, GPUD_REST, v, NULL), GPUD_ERR_PERMISSION);
    /* it outlives its maker, then its last user by the linger time: an hour, or hardly any */
    ck_gpud_ok(gpud_buffer_open(other, "brief", &passing));
    ck_gpud_ok(gpud_buffer_free(c, second));
    gpud_close(c);
    check_at(other, opened, 0, 3);
    ck_gpud_ok(gpud_buffer_free(other, passing));
    ck_gpud_ok(gpud_buffer_free(other, opened));
    ck_until(query_value(other, "devices", "0", "buffers") == 8 * sizeof(float));
    ck_gpud_err(gpud_buffer_open(other, "brief", &passing), GPUD_ERR_NOT_FOUND);
    ck_gpud_ok(gpud_buffer_open(other, "weights", &opened));
    check_at(other, opened, 7, 3);
    ck_gpud_ok(gpud_buffer_free(other, opened));
    end(other);
}
END_TEST

/* The buffer's maker has ended, and so has the front that knew which sessions opened it. */
#define MANY       20u
#define MANY_BYTES (UINT64_C(2) << 20)

static uint64_t told(const gpud_table *t, const char *column)
{
    int at = gpud_table_find(t, column);
    ck_assert_msg(at >= 0, "no column %s", column);
    return gpud_table_value(t, 0, (uint32_t)at);
}

/* FAULT 13: more buffers than the device holds
 * required: cold ones move to the host and return unchanged; jobs wait for room, and fail with
 *   the reason when room is impossible
 * defence: `worker/spill/spill.c`; `worker/spill/waiting.c`
 * also: `worker_memory_test`: buffers_move_to_the_host_and_back, jobs_wait_for_room,
 *   a_job_without_room_says_why; `test_system_buffers`: spilled_and_lost
 * mutants: spill-bytes */
/* Forty MiB of buffers on a device of sixteen: they move to the host and come back, and are what
 * they were, a sealed one too. More than device and host hold together is refused. */
START_TEST(more_than_the_device_holds)
{
    static const char *const backends[] = {"sim", "opencl"};
    static uint32_t values[MANY_BYTES / 4];
    static uint32_t back[MANY_BYTES / 4];
    gpud_buffer b[MANY];
    gpud_buffer none = {0};
    gpud_client *c = daemon_begin(&daemon_of_test, "--backend", backends[_i], "--backend-options",
                                  _i == 0 ? "speed=0" : "", "--set", "jobs.device_memory_max=16M",
                                  "--set", "memory.spill_limit=32M", NULL);
    gpud_shape shape = gpud_shape_1d(GPUD_U32, MANY_BYTES / 4);
    for (uint32_t i = 0; i < MANY; i++) {
        ck_gpud_ok(gpud_buffer_create(c, shape, 0, "many", &b[i]));
        ck_gpud_ok(gpud_fill(c, gpud_out(b[i]), gpud_u32(i)));
    }
    ck_gpud_ok(gpud_buffer_seal(c, b[0]));
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 1; i < MANY; i++) {
            for (uint32_t k = 0; k < MANY_BYTES / 4; k++) {
                values[k] = (round + 1) * 1000003u * i + k;
            }
            ck_gpud_ok(gpud_write(c, b[i], GPUD_U32, 0, GPUD_REST, values, NULL));
            ck_gpud_ok(gpud_copy(c, gpud_out(b[i - 1 > 0 ? i - 1 : MANY - 1]), gpud_in(b[i])));
        }
        for (uint32_t i = 1; i < MANY - 1; i++) {
            ck_gpud_ok(gpud_read(c, b[i], GPUD_U32, 0, GPUD_REST, back, NULL));
            uint32_t wrong = 0;
            for (uint32_t k = 0; k < MANY_BYTES / 4; k++) {
                wrong += back[k] != (round + 1) * 1000003u * (i + 1) + k;
            }
            ck_assert_uint_eq(wrong, 0);
        }
    }
    ck_gpud_ok(gpud_read(c, b[0], GPUD_U32, 0, GPUD_REST, back, NULL));
    ck_assert_uint_eq(back[0] + back[MANY_BYTES / 4 - 1], 0);
    ck_until(query_value(c, "devices", "0", "spilled") > 0);
    ck_assert_uint_eq(query_value(c, "devices", "0", "buffers"), MANY * MANY_BYTES);
    gpud_table *pool = NULL;
    ck_gpud_ok(gpud_pool_take(c, &(gpud_pool_options){.size = sizeof(gpud_pool_options)}, &pool));
    ck_assert_uint_gt(told(pool, "spilled"), 0);
    ck_assert_uint_eq(told(pool, "spill_limit"), 32 << 20);
    ck_assert_uint_gt(told(pool, "spills"), MANY);
    ck_assert_uint_gt(told(pool, "returns"), MANY);
    ck_assert_uint_eq(told(pool, "managed_limit"), 0);
    gpud_table_free(pool);
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 17 << 20), 0, NULL, &none),
                GPUD_ERR_DEVICE_MEMORY);
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 9 << 20), 0, NULL, &none),
                GPUD_ERR_DEVICE_MEMORY);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

#define PARTS      48u
#define PART_BYTES (UINT64_C(256) << 10)

/* Free memory is scattered between resident buffers, and the host takes nothing: a buffer of half
 * of the memory still finds room, and the others keep their contents. */
START_TEST(small_parts_are_put_together)
{
    static const char *const backends[] = {"sim", "opencl"};
    static uint32_t back[PART_BYTES / 4];
    gpud_buffer b[PARTS];
    gpud_buffer wide = {0};
    gpud_client *c =
        daemon_begin(&daemon_of_test, "--backend", backends[_i], "--backend-options",
                     _i == 0 ? "speed=0,pages=off" : "", "--set", "jobs.device_memory_max=16M",
                     "--set", "memory.spill_limit=1", NULL);
    for (uint32_t i = 0; i < PARTS; i++) {
        ck_gpud_ok(
            gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, PART_BYTES / 4), 0, "part", &b[i]));
        ck_gpud_ok(gpud_fill(c, gpud_out(b[i]), gpud_u32(7000 + i)));
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        if (i % 8 != 3) {
            ck_gpud_ok(gpud_buffer_free(c, b[i]));
        }
    }
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 2 << 20), 0, "wide", &wide));
    ck_gpud_ok(gpud_fill(c, gpud_out(wide), gpud_u32(1)));
    for (uint32_t i = 3; i < PARTS; i += 8) {
        uint32_t wrong = 0;
        ck_gpud_ok(gpud_read(c, b[i], GPUD_U32, 0, GPUD_REST, back, NULL));
        for (uint32_t k = 0; k < PART_BYTES / 4; k++) {
            wrong += back[k] != 7000 + i;
        }
        ck_assert_uint_eq(wrong, 0);
    }
    ck_assert_uint_eq(query_value(c, "devices", "0", "spilled"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

/* Buffers that were moved to the host are lost with their worker like those on the device; sealed
 * buffers are restored. */
START_TEST(spilled_and_lost)
{
    gpud_client *c =
        daemon_begin(&daemon_of_test, "--backend", "sim", "--backend-options", "speed=0", "--set",
                     "jobs.device_memory_max=8M", "--set", "memory.spill_limit=32M", NULL);
    static uint32_t back[MANY_BYTES / 4];
    gpud_shape shape = gpud_shape_1d(GPUD_U32, MANY_BYTES / 4);
    gpud_buffer b[10];
    for (uint32_t i = 0; i < 10; i++) {
        ck_gpud_ok(gpud_buffer_create(c, shape, 0, "many", &b[i]));
        ck_gpud_ok(gpud_fill(c, gpud_out(b[i]), gpud_u32(100 + i)));
        if (i % 2 == 0) {
            ck_gpud_ok(gpud_buffer_seal(c, b[i]));
        }
    }
    ck_assert_int_eq(kill(daemon_worker(&daemon_of_test, 0), SIGKILL), 0);
    ck_until(query_value(c, "devices", "0", "restarts") == 1);
    for (uint32_t i = 0; i < 10; i++) {
        if (i % 2 != 0) {
            ck_gpud_err(gpud_read(c, b[i], GPUD_U32, 0, GPUD_REST, back, NULL),
                        GPUD_ERR_BUFFER_LOST);
            continue;
        }
        ck_gpud_ok(gpud_read(c, b[i], GPUD_U32, 0, GPUD_REST, back, NULL));
        ck_assert_uint_eq(back[7], 100 + i);
    }
    end(c);
}
END_TEST

START_TEST(published_outlives_fronts)
{
    struct daemon *d = &daemon_of_test;
    gpud_client *c =
        daemon_begin(d, "--backend", "sim", "--set", "jobs.session_linger_ms=3000", NULL);
    gpud_client *other = client_open(d->url);
    gpud_buffer b = make(c, 8);
    gpud_buffer opened = {0};
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(3)));
    ck_gpud_ok(gpud_buffer_publish(c, b, "weights", GPUD_IN, 0));
    ck_gpud_ok(gpud_buffer_open(other, "weights", &opened));
    gpud_close(c);
    for (int i = 0; i < 2; i++) {
        daemon_kill(d);
        daemon_spawn(d);
        ck_gpud_ok(gpud_ping(other, NULL)); /* it comes back at once, its maker never does */
        ck_until(query_value(other, "status", NULL, "sessions") == 1);
        check_at(other, opened, 7, 3);
    }
    ck_gpud_ok(gpud_buffer_free(other, opened));
    ck_until(query_value(other, "devices", "0", "buffers") == 0);
    ck_gpud_err(gpud_buffer_open(other, "weights", &opened), GPUD_ERR_NOT_FOUND);
    end(other);
}
END_TEST

static uint64_t spill_limits(gpud_client *c, uint64_t *ret_most)
{
    uint64_t sum = 0;
    *ret_most = 0;
    for (unsigned i = 0; i < 4; i++) {
        char row[16];
        (void)snprintf(row, sizeof row, "%u", i);
        uint64_t limit = query_value(c, "pool", row, "spill_limit");
        *ret_most = limit > *ret_most ? limit : *ret_most;
        sum += limit;
    }
    return sum;
}

/* Devices are discovered one after another. A limit for all devices is divided among all of them in
 * the end, also when a device starts anew. */
START_TEST(all_devices_share_the_host)
{
    const uint64_t set = 128 << 20;
    uint64_t most = 0;
    gpud_client *c =
        daemon_begin(&daemon_of_test, "--backend", "sim", "--backend-options", "speed=0,devices=4",
                     "--set", "daemon.min_devices=4", "--set", "memory.spill_limit=128M", "--set",
                     "jobs.device_memory_max=16M", NULL);
    /* the first device had all of it while it was the only one */
    ck_until(spill_limits(c, &most) == set && most == set / 4);
    gpud_buffer b = {0};
    uint64_t count = 0;
    while (gpud_buffer_create_on(c, 0, gpud_shape_1d(GPUD_U8, 4 << 20), 0, NULL, &b) == 0) {
        ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_u8(1)));
        count++;
    }
    ck_assert_uint_eq(count, (16 + 128 / 4) / 4);
    ck_assert_int_eq(kill(daemon_worker(&daemon_of_test, 0), SIGKILL), 0);
    ck_until(query_value(c, "devices", "0", "restarts") == 1);
    ck_until(query_value(c, "status", NULL, "serving") == 4);
    ck_until(spill_limits(c, &most) == set && most == set / 4);
    end(c);
}
END_TEST

/* Both devices have room for all buffers. Buffers of a session that names no device go to the
 * device of its other buffers, and a job can use all of them. */
START_TEST(a_session_stays_on_a_device)
{
    gpud_client *c =
        daemon_begin(&daemon_of_test, "--backend", "sim", "--backend-options", "speed=0,devices=2",
                     "--set", "daemon.min_devices=2", "--set", "memory.spill_limit=1", "--set",
                     "jobs.device_memory_max=16M", NULL);
    gpud_kernel axpy = kernel_find(c, "axpy");
    for (uint64_t device = 0; device < 2; device++) {
        gpud_buffer x = {0};
        ck_gpud_ok(gpud_buffer_create_on(c, device, gpud_shape_1d(GPUD_F32, 1 << 20), 0, NULL, &x));
        gpud_buffer y = make(c, 1 << 20);
        gpud_buffer z = make(c, 1 << 20);
        gpud_buffer_desc desc = {.size = sizeof desc};
        ck_gpud_ok(gpud_buffer_info(c, z, &desc));
        ck_assert_uint_eq(desc.device, device);
        ck_gpud_ok(gpud_fill(c, gpud_out(x), gpud_f32(2)));
        ck_gpud_ok(gpud_fill(c, gpud_out(y), gpud_f32(3)));
        gpud_arg args[] = {gpud_f32(5), gpud_in(x), gpud_inout(y)};
        ck_gpud_ok(gpud_call(c, axpy, args, 3, NULL));
        check_at(c, y, (1 << 20) - 1, 13);
        ck_gpud_ok(gpud_buffer_free(c, x));
        ck_gpud_ok(gpud_buffer_free(c, y));
        ck_gpud_ok(gpud_buffer_free(c, z));
    }
    gpud_buffer most = {0};
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_create_on(c, 0, gpud_shape_1d(GPUD_U8, 12 << 20), 0, NULL, &most));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U8, 12 << 20), 0, NULL, &most));
    ck_gpud_ok(gpud_buffer_info(c, most, &desc));
    ck_assert_uint_eq(desc.device, 1);
    end(c);
}
END_TEST

/* Larger than a message, so that they go through buffers: these share a device, the one of a buffer
 * that is named beside them. */
START_TEST(a_large_call_stays_on_a_device)
{
    enum { N = 8 << 20 }; /* 32 MiB each */
    gpud_client *c =
        daemon_begin(&daemon_of_test, "--backend", "sim", "--backend-options", "speed=0,devices=2",
                     "--set", "daemon.min_devices=2", "--set", "memory.spill_limit=1", NULL);
    gpud_kernel axpy = kernel_find(c, "axpy");
    float *x = malloc(N * sizeof *x);
    float *y = malloc(N * sizeof *y);
    ck_assert(x != NULL && y != NULL);
    for (unsigned i = 0; i < N; i++) {
        x[i] = (float)(i % 64);
        y[i] = 1;
    }
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, N, GPUD_F32), gpud_host(y, N, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, axpy, args, 3, NULL));
    ck_assert_float_eq(y[N - 1], 127);
    for (uint64_t device = 0; device < 2; device++) {
        gpud_buffer b = {0};
        ck_gpud_ok(gpud_buffer_create_on(c, device, gpud_shape_1d(GPUD_F32, N), 0, NULL, &b));
        gpud_buffer other = {0}; /* the session has more buffers on the other device */
        ck_gpud_ok(
            gpud_buffer_create_on(c, 1 - device, gpud_shape_1d(GPUD_F32, 1), 0, NULL, &other));
        ck_gpud_ok(
            gpud_buffer_create_on(c, 1 - device, gpud_shape_1d(GPUD_F32, 1), 0, NULL, &other));
        ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(1)));
        args[2] = gpud_inout(b);
        ck_gpud_ok(gpud_call(c, axpy, args, 3, NULL));
        check_at(c, b, N - 1, 127);
    }
    free(x);
    free(y);
    end(c);
}
END_TEST

/* Each of two clients has handles that the other never had, whichever began higher. */
START_TEST(handles_of_another_client_are_none)
{
    gpud_client *c = begin();
    gpud_client *other = client_open(daemon_of_test.url);
    gpud_client *clients[] = {c, other};
    for (unsigned i = 0; i < 2; i++) {
        gpud_kernel_desc desc = {.size = sizeof desc};
        gpud_kernel k = kernel_find(clients[i], "neg");
        gpud_buffer b = make(clients[i], 4);
        ck_gpud_err(gpud_kernel_info(clients[1 - i], k, &desc), GPUD_ERR_BAD_HANDLE);
        ck_gpud_err(gpud_buffer_free(clients[1 - i], b), GPUD_ERR_BAD_HANDLE);
        ck_gpud_ok(gpud_buffer_free(clients[i], b));
        ck_gpud_err(gpud_buffer_free(clients[i], b), GPUD_ERR_STALE_HANDLE);
    }
    gpud_close(other);
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("buffers");
    suite_add(suite, contents);
    suite_add(suite, large);
    suite_add(suite, refusals);
    suite_add(suite, wrong_arguments);
    suite_add(suite, sealed);
    suite_add(suite, lost_with_everything);
    suite_add(suite, kept_by_their_worker);
    suite_add(suite, creating_waits_for_a_worker);
    suite_add(suite, published);
    suite_add(suite, published_outlives_fronts);
    suite_add_loop(suite, more_than_the_device_holds, 2);
    suite_add(suite, spilled_and_lost);
    suite_add(suite, all_devices_share_the_host);
    suite_add(suite, a_session_stays_on_a_device);
    suite_add(suite, a_large_call_stays_on_a_device);
    suite_add(suite, handles_of_another_client_are_none);
    suite_add_loop(suite, small_parts_are_put_together, 2);
    return system_main(suite);
}
