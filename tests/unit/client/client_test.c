#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/client/fixture.h"

/* ---- the first line that a new user writes -------------------------------------------------- */

START_TEST(call)
{
    gpud_kernel k = find();
    uint8_t x[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, 2, GPUD_U32)};
    OK(gpud_call(client, k, args, 2, NULL));
    ck_assert_mem_eq(x, "\1\2\3\4\5\6\7\x08", 8);
    ck_assert_uint_eq(fake_executed(fake), 1);
}
END_TEST

START_TEST(call_with_large_arrays)
{
    gpud_kernel k = find();
    size_t count = 5u << 20;
    uint32_t *x = calloc(count, sizeof *x);
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, count, GPUD_U32)};
    OK(gpud_call(client, k, args, 2, NULL));
    size_t right = 0; /* one check: each one is a message of Check's */
    for (size_t i = 0; i < count; i++) {
        right += x[i] == 0x01010101u ? 1 : 0;
    }
    ck_assert_uint_eq(right, count);
    OK(gpud_flush(client, GPUD_FOREVER));
    OK(gpud_ping(client, NULL));
    free(x);
}
END_TEST

START_TEST(kernels_are_found_once)
{
    gpud_kernel a = find();
    gpud_kernel b = find();
    gpud_kernel_desc desc = {.size = sizeof desc};
    gpud_kernel_arg_desc arg = {.size = sizeof arg};
    ck_assert_uint_eq(a.id, b.id);
    OK(gpud_kernel_info(client, a, &desc));
    ck_assert_str_eq(desc.name, "touch");
    ck_assert_uint_eq(desc.arg_count, 2);
    ck_assert_uint_eq(desc.registers, 40);
    ck_assert_uint_eq(desc.item_bytes, 16);
    ck_assert_uint_eq(desc.group_bytes, 1024);
    ck_assert_uint_eq(desc.max_group, 512);
    ck_assert_uint_eq(desc.group_multiple, 32);
    ck_assert_uint_eq(desc.occupancy_ppm, 750000);
    OK(gpud_kernel_arg(client, a, 1, &arg));
    ck_assert_str_eq(arg.name, "x");
    ck_assert_uint_eq(arg.access, GPUD_INOUT);
    FAILS(gpud_kernel_arg(client, a, 2, &arg), GPUD_ERR_NOT_FOUND);
    FAILS(gpud_kernel_find(client, "missing", &a), GPUD_ERR_NOT_FOUND);
    ck_assert_str_eq(gpud_last_error()->text, "kernel 'missing': no kernel 'missing'");
}
END_TEST

/* A caller that knows only the first members gets only those. */
START_TEST(structs_grow)
{
    struct {
        gpud_kernel_desc desc;
        char behind[8];
    } s;
    memset(&s, 0x55, sizeof s);
    s.desc.size = offsetof(gpud_kernel_desc, arg_count);
    OK(gpud_kernel_info(client, find(), &s.desc));
    ck_assert_uint_eq(s.desc.version, 1);
    ck_assert_uint_eq(s.desc.arg_count, 0x55555555u);
    s.desc.size = 0;
    FAILS(gpud_kernel_info(client, find(), &s.desc), GPUD_ERR_INVALID);
}
END_TEST

/* ---- buffers -------------------------------------------------------------------------------- */

START_TEST(buffers)
{
    gpud_buffer b = make(1000);
    float in[1000];
    float out[1000] = {0};
    for (int i = 0; i < 1000; i++) {
        in[i] = (float)i;
    }
    OK(gpud_write(client, b, GPUD_F32, 0, GPUD_REST, in, NULL));
    OK(gpud_read(client, b, GPUD_F32, 10, 20, out, NULL));
    ck_assert_mem_eq(out, in + 10, 20 * sizeof out[0]);
    ck_assert(out[20] == 0);
    OK(gpud_fill(client, gpud_slice(b, 0, 10), gpud_u8(0)));
    OK(gpud_read(client, b, GPUD_NONE, 0, GPUD_REST, out, NULL));
    ck_assert(out[9] == 0 && out[10] == 10);
    FAILS(gpud_write(client, b, GPUD_F64, 0, GPUD_REST, in, NULL), GPUD_ERR_ARG_TYPE);
    FAILS(gpud_write(client, b, GPUD_F32, 1001, 0, in, NULL), GPUD_ERR_RANGE);
    FAILS(gpud_read(client, b, GPUD_F32, 1, 1000, out, NULL), GPUD_ERR_RANGE);
    FAILS(gpud_read(client, b, GPUD_F32, 1, UINT64_MAX - 1, out, NULL), GPUD_ERR_RANGE);
    gpud_buffer_desc desc = {.size = sizeof desc};
    OK(gpud_buffer_info(client, b, &desc));
    ck_assert_uint_eq(desc.shape.dim[0], 1000);
    ck_assert_uint_eq(desc.device, 0);
    OK(gpud_buffer_free(client, b));
    FAILS(gpud_buffer_free(client, b), GPUD_ERR_STALE_HANDLE);
    FAILS(gpud_read(client, b, GPUD_F32, 0, GPUD_REST, out, NULL), GPUD_ERR_STALE_HANDLE);
    FAILS(gpud_buffer_free(client, (gpud_buffer){0}), GPUD_ERR_BAD_HANDLE);
    FAILS(gpud_buffer_free(client, (gpud_buffer){12345}), GPUD_ERR_BAD_HANDLE);
    OK(gpud_ping(client, NULL));
    ck_assert_uint_eq(fake_live(fake), 0);
}
END_TEST

START_TEST(shapes_are_checked)
{
    gpud_buffer b;
    FAILS(gpud_buffer_create(client, gpud_shape_1d(99, 4), 0, NULL, &b), GPUD_ERR_ARG_TYPE);
    FAILS(gpud_buffer_create(client, gpud_shape_2d(GPUD_F64, UINT64_C(1) << 40, UINT64_C(1) << 40),
                             0, NULL, &b),
          GPUD_ERR_ARG_SHAPE);
    gpud_shape five = {.dtype = GPUD_F32, .ndim = 5};
    FAILS(gpud_buffer_create(client, five, 0, NULL, &b), GPUD_ERR_ARG_SHAPE);
}
END_TEST

struct bar {
    unsigned calls;
    uint64_t last;
    bool stop;
};

static bool progress(uint64_t done, uint64_t total, void *user)
{
    struct bar *bar = user;
    ck_assert_uint_gt(done, bar->last);
    ck_assert_uint_le(done, total);
    bar->last = done;
    bar->calls++;
    return !bar->stop;
}

START_TEST(large_transfers)
{
    size_t count = (9u << 20) + 7;
    uint32_t *in = malloc(count * 4);
    uint32_t *out = calloc(count, 4);
    struct bar bar = {0};
    gpud_transfer t = {.size = sizeof t, .progress = progress, .user = &bar};
    gpud_buffer b = make(count);
    for (size_t i = 0; i < count; i++) {
        in[i] = (uint32_t)(i * 2654435761u);
    }
    OK(gpud_write(client, b, GPUD_F32, 0, GPUD_REST, in, &t));
    ck_assert_uint_eq(bar.calls, 10);
    ck_assert_uint_eq(bar.last, count * 4);
    OK(gpud_read(client, b, GPUD_F32, 0, GPUD_REST, out, NULL));
    ck_assert(memcmp(in, out, count * 4) == 0);
    bar = (struct bar){.stop = true};
    FAILS(gpud_read(client, b, GPUD_F32, 0, GPUD_REST, out, &t), GPUD_ERR_CANCELLED);
    ck_assert_uint_eq(bar.calls, 1);
    OK(gpud_flush(client, GPUD_FOREVER));
    free(in);
    free(out);
}
END_TEST

/* ---- jobs ----------------------------------------------------------------------------------- */

/* Answers come in another order than the requests went out. */
START_TEST(out_of_order)
{
    gpud_kernel k = find();
    uint32_t data[20] = {0};
    gpud_job *jobs[20];
    uint32_t index = 99;
    fake_mode(fake, FAKE_HOLD);
    for (unsigned i = 0; i < 20; i++) {
        jobs[i] = launch(k, &data[i], GPUD_SUBMIT_HELD);
    }
    fake_wait_held(fake, 20);
    FAILS(gpud_wait(jobs[0], 0), GPUD_ERR_TIMEOUT);
    FAILS(gpud_wait_any(jobs, 20, 0, &index), GPUD_ERR_TIMEOUT);
    ck_assert(!gpud_job_done(jobs[0]));
    fake_release(fake, true);
    OK(gpud_wait_any(jobs, 20, GPUD_FOREVER, &index));
    ck_assert_uint_lt(index, 20);
    for (unsigned i = 0; i < 20; i++) {
        const void *out = NULL;
        size_t size = 0;
        OK(gpud_wait(jobs[i], GPUD_FOREVER));
        ck_assert_uint_eq(data[i], 0x01010101u);
        OK(gpud_job_output(jobs[i], 0, 1, &out, &size));
        ck_assert_uint_eq(size, 4);
        FAILS(gpud_job_output(jobs[i], 1, 0, &out, &size), GPUD_ERR_NOT_FOUND);
        gpud_job_free(jobs[i]);
    }
}
END_TEST

static void count_done(gpud_job *job, int code, void *user)
{
    ck_assert_int_eq(code, 0);
    ++*(unsigned *)user;
    gpud_job_free(job);
}

/* Asynchronous jobs end through WAIT, also when their result overtakes their ACCEPTED. */
START_TEST(asynchronous)
{
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    unsigned done = 0;
    gpud_arg args[] = {gpud_f32(1), gpud_inout(b)};
    gpud_submit_options o = {.size = sizeof o, .done = count_done, .user = &done};
    fake_results_first(fake, _i == 1);
    for (unsigned i = 0; i < 500; i++) {
        gpud_job *job = NULL;
        o.flags = GPUD_SUBMIT_BLOCK;
        OK(gpud_launch(client, k, args, 2, NULL, &o, &job));
    }
    OK(gpud_flush(client, GPUD_FOREVER));
    ck_assert_uint_eq(done, 500);
    ck_assert_uint_eq(fake_executed(fake), 500);
}
END_TEST

START_TEST(in_a_poll_loop)
{
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    unsigned done = 0;
    gpud_arg args[] = {gpud_f32(1), gpud_inout(b)};
    gpud_submit_options o = {.size = sizeof o, .done = count_done, .user = &done};
    for (unsigned i = 0; i < 50; i++) {
        gpud_job *job = NULL;
        OK(gpud_launch(client, k, args, 2, NULL, &o, &job));
    }
    struct pollfd p = {.fd = gpud_fd(client), .events = POLLIN};
    while (done < 50) {
        ck_assert_int_eq(poll(&p, 1, 60000), 1);
        OK(gpud_dispatch(client));
    }
}
END_TEST

/* A callback that became due while another call waited is not lost to the loop. */
START_TEST(callbacks_wake_the_loop)
{
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    unsigned done = 0;
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_inout(b)};
    gpud_submit_options o = {
        .size = sizeof o, .flags = GPUD_SUBMIT_HELD, .done = count_done, .user = &done};
    OK(gpud_launch(client, k, args, 2, NULL, &o, &job));
    while (!gpud_job_done(job)) {
        OK(gpud_ping(client, NULL));
    }
    ck_assert_uint_eq(done, 0);
    struct pollfd p = {.fd = gpud_fd(client), .events = POLLIN};
    ck_assert_int_eq(poll(&p, 1, 0), 1);
    OK(gpud_dispatch(client));
    ck_assert_uint_eq(done, 1);
    ck_assert_int_eq(poll(&p, 1, 0), 0);
}
END_TEST

START_TEST(busy)
{
    gpud_kernel k = find();
    uint32_t data = 0;
    fake_mode(fake, FAKE_BUSY);
    gpud_job *job = launch(k, &data, GPUD_SUBMIT_HELD);
    FAILS(gpud_wait(job, GPUD_FOREVER), GPUD_ERR_BUSY);
    ck_assert_uint_eq(gpud_last_error()->retry_after_ns, 1000000);
    ck_assert(gpud_last_error()->retriable);
    gpud_job_free(job);
    fake_mode(fake, FAKE_BUSY);
    job = launch(k, &data, GPUD_SUBMIT_HELD | GPUD_SUBMIT_BLOCK);
    OK(gpud_wait(job, GPUD_FOREVER));
    gpud_job_free(job);
    ck_assert_uint_eq(fake_gaps(fake), 0);
    ck_assert_uint_eq(fake_executed(fake), 1);
}
END_TEST

/* Within the caller's deadline, if it gave one, and unless it asks for one try. */
START_TEST(a_refused_run_is_tried_again)
{
    static const struct {
        uint64_t deadline_ns;
        uint32_t flags;
        int code;
    } of[] = {{UINT64_C(60000000000), 0, 0},
              {UINT64_C(60000000000), GPUD_SUBMIT_ONCE, GPUD_ERR_BUSY},
              {1, 0, GPUD_ERR_BUSY}, /* it would pass during the pause */
              {0, 0, GPUD_ERR_BUSY}};
    gpud_program *p = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_inout(make(4))};
    OK(gpud_program_create(client, "again", &p));
    OK(gpud_program_launch(p, find(), args, 2, NULL));
    OK(gpud_program_seal(p));
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        gpud_submit_options o = {
            .size = sizeof o, .flags = of[i].flags, .deadline_ns = of[i].deadline_ns};
        uint64_t before = fake_executed(fake);
        fake_mode(fake, FAKE_BUSY);
        ck_assert_int_eq(gpud_run(client, p, NULL, 0, &o, NULL), of[i].code);
        ck_assert_uint_eq(fake_executed(fake), before + (of[i].code == 0));
    }
    ck_assert_uint_eq(fake_twice(fake), 0);
    gpud_program_free(p);
}
END_TEST

/* What a newer library's flag asks for would not be done. */
START_TEST(flags_that_are_not_known_are_refused)
{
    uint32_t data = 0;
    gpud_arg args[] = {gpud_f32(1), gpud_host(&data, 1, GPUD_U32)};
    gpud_submit_options o = {.size = sizeof o, .flags = 16};
    gpud_job *job = NULL;
    FAILS(gpud_launch(client, find(), args, 2, NULL, &o, &job), GPUD_ERR_INVALID);
    ck_assert_ptr_null(job);
}
END_TEST

/* It waits for room, and nobody for it: it runs all the same, under the number that it had. */
START_TEST(who_is_freed_waits_for_room)
{
    gpud_kernel k = find();
    uint32_t data = 0;
    fake_mode(fake, FAKE_BUSY);
    gpud_job_free(
        launch(k, &data, _i == 0 ? GPUD_SUBMIT_BLOCK : GPUD_SUBMIT_BLOCK | GPUD_SUBMIT_HELD));
    OK(gpud_flush(client, GPUD_FOREVER));
    ck_assert_uint_eq(fake_executed(fake), 1);
    ck_assert_uint_eq(fake_twice(fake), 0);
    (void)make(4);
    ck_assert_uint_eq(fake_gaps(fake), 0);
}
END_TEST

START_TEST(jobs_in_flight_are_capped)
{
    gpud_client *second = NULL;
    gpud_job *jobs[3] = {0};
    gpud_kernel k;
    uint32_t data = 0;
    gpud_arg args[] = {gpud_f32(1), gpud_host(&data, 1, GPUD_U32)};
    fake_limit(fake, 2);
    OK(gpud_open(fake_url(fake), NULL, &second));
    OK(gpud_kernel_find(second, "touch", &k));
    fake_mode(fake, FAKE_HOLD);
    OK(gpud_launch(second, k, args, 2, NULL, NULL, &jobs[0]));
    OK(gpud_launch(second, k, args, 2, NULL, NULL, &jobs[1]));
    FAILS(gpud_launch(second, k, args, 2, NULL, NULL, &jobs[2]), GPUD_ERR_BUSY);
    ck_assert_ptr_null(jobs[2]);
    gpud_close(second);
    gpud_error error = {.size = sizeof error};
    OK(gpud_job_error(jobs[0], &error));
    ck_assert_int_eq(error.code, GPUD_ERR_CLOSED);
    FAILS(gpud_wait(jobs[1], GPUD_FOREVER), GPUD_ERR_CLOSED);
    gpud_job_free(jobs[0]);
    gpud_job_free(jobs[1]);
}
END_TEST

START_TEST(cancelling)
{
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_inout(b)};
    OK(gpud_launch(client, k, args, 2, NULL, NULL, &job));
    OK(gpud_cancel(job));
    OK(gpud_wait(job, GPUD_FOREVER));
    ck_assert_uint_ne(gpud_job_id(job), 0);
    gpud_job_free(job);
    fake_forget_jobs(fake); /* its result comes behind the answer to the request to cancel it */
    OK(gpud_launch(client, k, args, 2, NULL, NULL, &job));
    while (gpud_job_id(job) == 0) {
        OK(gpud_ping(client, NULL));
    }
    OK(gpud_cancel(job));
    OK(gpud_wait(job, GPUD_FOREVER));
    gpud_job_free(job);
    uint32_t data = 0;
    fake_mode(fake, FAKE_HOLD);
    job = launch(k, &data, GPUD_SUBMIT_HELD);
    FAILS(gpud_cancel(job), GPUD_ERR_STATE);
    gpud_job_free(job); /* its memory is not written any more */
    fake_wait_held(fake, 1);
    fake_release(fake, false);
    OK(gpud_flush(client, GPUD_FOREVER));
    ck_assert_uint_eq(data, 0);
}
END_TEST

/* ---- modules and programs ------------------------------------------------------------------- */

START_TEST(modules)
{
    gpud_module m;
    gpud_kernel k;
    gpud_kernel same;
    char log[64];
    gpud_module_options o = {.size = sizeof o, .file = "k.cl", .log = log, .log_bytes = sizeof log};
    FAILS(gpud_module_load(client, GPUD_LANG_OPENCL, "!", 1, &o, &m), GPUD_ERR_COMPILE);
    ck_assert_str_eq(log, "k.cl:1:1: error: expected expression\n1 error");
    OK(gpud_module_load(client, GPUD_LANG_OPENCL, "kernel", 6, &o, &m));
    ck_assert_str_eq(log, "warning: none");
    OK(gpud_module_kernel(client, m, "mine", &k));
    OK(gpud_module_kernel_at(client, m, 0, &same));
    ck_assert_uint_eq(k.id, same.id);
    FAILS(gpud_module_kernel(client, m, "other", &k), GPUD_ERR_NOT_FOUND);
    FAILS(gpud_module_kernel_at(client, m, 1, &k), GPUD_ERR_NOT_FOUND);
    OK(gpud_module_unload(client, m));
    FAILS(gpud_module_unload(client, m), GPUD_ERR_STALE_HANDLE);
    gpud_arg arg = gpud_f32(0);
    FAILS(gpud_call(client, k, &arg, 1, NULL), GPUD_ERR_STALE_HANDLE);
    FAILS(gpud_module_load(client, 99, "x", 1, NULL, &m), GPUD_ERR_INVALID);
}
END_TEST

static gpud_program *program(gpud_kernel k, gpud_buffer weights)
{
    gpud_program *p = NULL;
    OK(gpud_program_create(client, "twenty", &p));
    gpud_arg image = gpud_program_param(p, "image", GPUD_PARAM_DATA, gpud_shape_1d(GPUD_F32, 4));
    gpud_arg scale = gpud_program_param(p, "a", GPUD_PARAM_SCALAR, gpud_shape_1d(GPUD_F32, 0));
    gpud_arg temp = gpud_program_temp(p, gpud_shape_1d(GPUD_F32, 4));
    ck_assert_int_eq(gpud_program_write(p, temp, image), 0);
    gpud_arg args[] = {scale, gpud_in(weights)};
    ck_assert_int_eq(gpud_program_launch(p, k, args, 2, NULL), 1);
    ck_assert_int_eq(gpud_program_read(p, temp), 2);
    OK(gpud_program_seal(p));
    return p;
}

START_TEST(programs)
{
    gpud_kernel k = find();
    gpud_program *p = program(k, make(4));
    float image[4] = {0};
    gpud_arg args[] = {gpud_host_in(image, 4, GPUD_F32), gpud_f32(1)};
    OK(gpud_run(client, p, args, 2, NULL, NULL));
    FAILS(gpud_run(client, p, args, 1, NULL, NULL), GPUD_ERR_ARG_COUNT);
    gpud_arg swapped[] = {args[1], args[0]};
    FAILS(gpud_run(client, p, swapped, 2, NULL, NULL), GPUD_ERR_ARG_TYPE);
    ck_assert_int_eq(gpud_last_error()->arg, 0);
    FAILS(gpud_program_read(p, args[0]), GPUD_ERR_STATE);
    gpud_program_free(p);
}
END_TEST

START_TEST(first_error_of_building_is_told)
{
    gpud_program *p = NULL;
    gpud_buffer b = make(4);
    OK(gpud_program_create(client, "wrong", &p));
    FAILS(gpud_program_read(p, gpud_in((gpud_buffer){77})), GPUD_ERR_BAD_HANDLE);
    ck_assert_int_eq(gpud_program_read(p, gpud_in(b)), 0);
    FAILS(gpud_submit(client, p, NULL, 0, NULL, &(gpud_job *){NULL}), GPUD_ERR_STATE);
    FAILS(gpud_program_seal(p), GPUD_ERR_BAD_HANDLE);
    ck_assert_int_eq(gpud_last_error()->step, 0);
    gpud_program_free(p);
    gpud_program_free(NULL);
}
END_TEST

/* ---- connections ---------------------------------------------------------------------------- */

static unsigned events[8];

static void note_event(gpud_client *c, const gpud_event *event, void *user)
{
    (void)c;
    (void)user;
    events[event->kind]++;
}

START_TEST(resends_after_a_broken_connection)
{
    gpud_kernel k = find();
    uint32_t data[8] = {0};
    gpud_job *jobs[8];
    memset(events, 0, sizeof events);
    OK(gpud_set_event_cb(client, note_event, NULL));
    fake_mode(fake, FAKE_HOLD);
    for (unsigned i = 0; i < 8; i++) {
        jobs[i] = launch(k, &data[i], i % 2 == 0 ? GPUD_SUBMIT_HELD : 0);
    }
    fake_wait_held(fake, 8);
    fake_drop(fake);
    fake_mode(fake, FAKE_SERVE);
    for (unsigned i = 0; i < 8; i++) {
        /* the fake gives asynchronous jobs no outputs: an error of theirs, told once */
        int rc = gpud_wait(jobs[i], GPUD_FOREVER);
        FAILS(rc, i % 2 == 0 ? GPUD_OK : GPUD_ERR_PROTOCOL);
        gpud_job_free(jobs[i]);
    }
    ck_assert_uint_eq(fake_twice(fake), 8);
    ck_assert_uint_eq(fake_executed(fake), 8);
    ck_assert_uint_eq(events[GPUD_EVENT_DISCONNECTED], 1);
    ck_assert_uint_eq(events[GPUD_EVENT_RECONNECTED], 1);
    ck_assert_uint_eq(events[GPUD_EVENT_RESTARTED], 0);
}
END_TEST

/* Another daemon: modules, kernels and programs come back under their old public handles, jobs that
 * were not answered are sent with the new ones, and no number is missing. */
START_TEST(restores_after_a_restart)
{
    gpud_kernel builtin = find();
    gpud_kernel mine;
    gpud_module m;
    gpud_job *jobs[3] = {0};
    uint32_t data[2] = {0};
    float image[4] = {0};
    OK(gpud_module_load(client, GPUD_LANG_OPENCL, "kernel", 6, NULL, &m));
    OK(gpud_module_kernel(client, m, "mine", &mine));
    gpud_program *p = program(mine, make(4));
    memset(events, 0, sizeof events);
    OK(gpud_set_event_cb(client, note_event, NULL));
    fake_mode(fake, FAKE_HOLD);
    jobs[0] = launch(builtin, &data[0], GPUD_SUBMIT_HELD);
    fake_wait_held(fake, 1);
    fake_mode(fake, FAKE_SERVE);
    for (unsigned i = 0; i < 5; i++) {
        OK(gpud_buffer_free(client, make(1))); /* answered, though later than the held one */
    }
    OK(gpud_ping(client, NULL));
    fake_mode(fake, FAKE_HOLD);
    jobs[1] = launch(mine, &data[1], GPUD_SUBMIT_HELD);
    gpud_arg args[] = {gpud_host_in(image, 4, GPUD_F32), gpud_f32(1)};
    gpud_submit_options held = {.size = sizeof held, .flags = GPUD_SUBMIT_HELD};
    FAILS(gpud_submit(client, p, NULL, 2, &held, &jobs[2]), GPUD_ERR_INVALID);
    OK(gpud_submit(client, p, args, 2, &held, &jobs[2]));
    fake_wait_held(fake, 3);
    for (unsigned round = 0; round < 3; round++) {
        fake_restart(fake, true);
        fake_wait_held(fake, 0);
        OK(gpud_ping(client, NULL)); /* sent once everything is restored */
    }
    fake_wait_held(fake, 3);
    fake_release(fake, false);
    for (unsigned i = 0; i < 3; i++) {
        OK(gpud_wait(jobs[i], GPUD_FOREVER));
        gpud_job_free(jobs[i]);
    }
    ck_assert_uint_eq(data[0], 0x01010101u);
    OK(gpud_run(client, p, args, 2, NULL, NULL));
    ck_assert_uint_eq(fake_stale(fake), 0);
    ck_assert_uint_eq(fake_gaps(fake), 0);
    ck_assert_uint_ge(events[GPUD_EVENT_RESTARTED], 1);
    ck_assert_uint_eq(events[GPUD_EVENT_RESTORE_FAILED], 0);
    gpud_program_free(p);
    OK(gpud_module_unload(client, m));
    OK(gpud_ping(client, NULL));
}
END_TEST

/* A daemon that adopted the session counts its events from 1 again. */
START_TEST(events_of_an_adopting_daemon)
{
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    gpud_arg args[] = {gpud_f32(1), gpud_inout(b)};
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 4 - round; i++) {
            gpud_job *job = NULL;
            OK(gpud_launch(client, k, args, 2, NULL, NULL, &job));
            OK(gpud_wait(job, 60 * SECOND));
            gpud_job_free(job);
        }
        fake_restart(fake, true);
    }
    ck_assert_uint_eq(fake_stale(fake), 0);
}
END_TEST

START_TEST(lost_buffers_are_told)
{
    gpud_buffer b = make(4); /* the fake's first handle is 1 */
    memset(events, 0, sizeof events);
    OK(gpud_set_event_cb(client, note_event, NULL));
    fake_lose(fake, 1);
    struct pollfd p = {.fd = gpud_fd(client), .events = POLLIN};
    while (events[GPUD_EVENT_BUFFER_LOST] == 0) {
        ck_assert_int_eq(poll(&p, 1, 60000), 1);
        OK(gpud_dispatch(client));
    }
    OK(gpud_buffer_free(client, b));
}
END_TEST

START_TEST(over_tcp)
{
    struct fake *f = NULL;
    gpud_client *c = NULL;
    uint8_t x[4] = {0};
    gpud_kernel k;
    f = fake_start("tcp://127.0.0.1:0");
    OK(gpud_open(fake_url(f), NULL, &c));
    OK(gpud_kernel_find(c, "touch", &k));
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, 1, GPUD_U32)};
    OK(gpud_call(c, k, args, 2, NULL));
    ck_assert_mem_eq(x, "\1\1\1\1", 4);
    gpud_close(c);
    fake_stop(f);
}
END_TEST

/* A daemon that takes small messages gets small parts, and the bar moves. */
START_TEST(small_messages)
{
    enum { COUNT = (3u << 20) / 4 + 3, MESSAGE = 256 << 10 };
    static uint32_t in[COUNT];
    static uint32_t out[COUNT];
    struct fake *f = fake_start(_i == 0 ? NULL : "tcp://127.0.0.1:0");
    gpud_client *c = NULL;
    gpud_buffer b = {0};
    struct bar bar = {0};
    gpud_transfer t = {.size = sizeof t, .progress = progress, .user = &bar};
    for (size_t i = 0; i < COUNT; i++) {
        in[i] = (uint32_t)(i * 2654435761u);
    }
    fake_limit_message(f, MESSAGE);
    OK(gpud_open(fake_url(f), NULL, &c));
    OK(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, COUNT), 0, NULL, &b));
    OK(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, in,
                  NULL)); /* of what goes in one message elsewhere */
    OK(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, out, &t));
    ck_assert_mem_eq(in, out, sizeof in);
    ck_assert_uint_ge(bar.calls, sizeof in / MESSAGE);
    ck_assert_uint_eq(bar.last, sizeof in);
    t.part_bytes = 1 << 20; /* a wish that cannot be met */
    bar = (struct bar){0};
    OK(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, in, &t));
    ck_assert_uint_ge(bar.calls, sizeof in / MESSAGE);
    gpud_close(c);
    fake_stop(f);
}
END_TEST

START_TEST(never_answered)
{
    gpud_client *c = NULL;
    gpud_buffer b;
    gpud_options o = {.size = sizeof o, .timeout_ns = SECOND / 20};
    OK(gpud_open(fake_url(fake), &o, &c));
    fake_mode(fake, FAKE_SILENT);
    FAILS(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b), GPUD_ERR_TIMEOUT);
    fake_wait_held(fake, 1);
    fake_release(fake, false);
    /* what came too late is given back; no call of this client may take longer than its time */
    while (fake_live(fake) != 0) {
        OK(gpud_dispatch(c));
        (void)usleep(1000);
    }
    gpud_close(c);
}
END_TEST

/* ---- a peer that is no daemon ---------------------------------------------------------------- */

struct peer {
    char dir[32];
    char path[64];
    char url[80];
    int listener;
    const char *bytes;
    size_t size;
};

static void *peer_main(void *arg)
{
    const struct peer *p = arg;
    int fd = accept(p->listener, NULL, NULL);
    if (fd >= 0) {
        char buffer[256];
        (void)!send(fd, p->bytes, p->size, MSG_NOSIGNAL);
        while (recv(fd, buffer, sizeof buffer, 0) > 0) {
        }
        (void)close(fd);
    }
    return NULL;
}

START_TEST(garbage)
{
    static const struct {
        const char *bytes;
        size_t size;
        int code;
    } cases[] = {
        {"SSH-2.0-OpenSSH_9.2\r\n", 21, GPUD_ERR_PROTOCOL},
        {"\0SP\0\0\x31\0\0\x01\0\0\0\xff\0\0\0\0\x80\0\0\0", 21, GPUD_ERR_LIMIT},
        {"\0SP\0\0\x31\0\0\x07garbage garbage", 24, GPUD_ERR_PROTOCOL},
        /* an answer to hello that is none */
        {"\0SP\0\0\x31\0\0\x01\0\0\0\0\0\0\0\x05\x80\0\0\0\xc1", 22, GPUD_ERR_PROTOCOL},
    };
    struct peer p = {.bytes = cases[_i].bytes, .size = cases[_i].size};
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    gpud_client *c = NULL;
    pthread_t thread;
    (void)snprintf(p.dir, sizeof p.dir, "/tmp/gpud-test.XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(p.dir));
    (void)snprintf(p.path, sizeof p.path, "%s/s", p.dir);
    (void)snprintf(p.url, sizeof p.url, "ipc://%s", p.path);
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", p.path);
    p.listener = socket(AF_UNIX, SOCK_STREAM, 0);
    ck_assert_int_eq(bind(p.listener, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(listen(p.listener, 1), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, peer_main, &p), 0);
    FAILS(gpud_open(p.url, NULL, &c), cases[_i].code);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    (void)close(p.listener);
    (void)unlink(p.path);
    (void)rmdir(p.dir);
}
END_TEST

/* ---- processes and threads ------------------------------------------------------------------ */

START_TEST(forked_child)
{
    gpud_job *job = NULL;
    gpud_kernel k = find();
    uint32_t data = 0;
    fake_mode(fake, FAKE_HOLD);
    job = launch(k, &data, GPUD_SUBMIT_HELD);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        bool good = gpud_ping(client, NULL) == GPUD_ERR_FORKED &&
                    gpud_wait(job, 0) == GPUD_ERR_FORKED && gpud_fd(client) == -1;
        gpud_close(client);
        gpud_job_free(job);
        _exit(good ? 0 : 1);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fake_wait_held(fake, 1);
    fake_release(fake, false);
    OK(gpud_wait(job, GPUD_FOREVER)); /* the parent's connection is unharmed */
    gpud_job_free(job);
}
END_TEST

#define THREADS 8

static void *hammer(void *arg)
{
    gpud_kernel k = *(gpud_kernel *)arg;
    gpud_buffer b;
    uint8_t byte[4] = {0};
    for (unsigned i = 0; i < 100; i++) {
        gpud_arg args[] = {gpud_f32(1), gpud_host(byte, 1, GPUD_U32)};
        if (gpud_call(client, k, args, 2, NULL) != 0 || byte[0] != (uint8_t)(i + 1)) {
            return "call";
        }
        float x[16] = {1, 2, 3};
        float y[16] = {0};
        if (gpud_buffer_create(client, gpud_shape_1d(GPUD_F32, 16), 0, NULL, &b) != 0 ||
            gpud_write(client, b, GPUD_F32, 0, GPUD_REST, x, NULL) != 0 ||
            gpud_read(client, b, GPUD_F32, 0, GPUD_REST, y, NULL) != 0 ||
            memcmp((void *)x, (void *)y, sizeof x) != 0 || gpud_buffer_free(client, b) != 0) {
            return "buffer";
        }
        if (gpud_buffer_free(client, b) != GPUD_ERR_STALE_HANDLE ||
            gpud_last_error()->code != GPUD_ERR_STALE_HANDLE) {
            return "error of another thread";
        }
    }
    return NULL;
}

/* Eight threads on one client. */
START_TEST(many_threads)
{
    gpud_kernel k = find();
    pthread_t threads[THREADS];
    for (unsigned i = 0; i < THREADS; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, hammer, &k), 0);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        void *failed = NULL;
        ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
        ck_assert_msg(failed == NULL, "%s", (const char *)failed);
    }
    ck_assert_uint_eq(fake_executed(fake), THREADS * 300);
    ck_assert_uint_eq(fake_gaps(fake), 0);
    ck_assert_uint_eq(fake_twice(fake), 0);
}
END_TEST

START_TEST(tables)
{
    gpud_table *t = NULL;
    gpud_device_desc d = {.size = sizeof d};
    OK(gpud_query(client, "devices", NULL, &t));
    ck_assert_uint_eq(gpud_table_columns(t), 7);
    ck_assert_uint_eq(gpud_table_rows(t), 1);
    ck_assert_str_eq(gpud_table_column_name(t, 1), "name");
    ck_assert(gpud_table_column_wide(t, 1) && !gpud_table_column_wide(t, 0));
    ck_assert_uint_eq(gpud_table_value(t, 0, 0), 3);
    ck_assert_str_eq(gpud_table_text(t, 0, 1), "a device");
    ck_assert_str_eq(gpud_table_text(t, 1, 1), "");
    ck_assert_int_eq(gpud_table_find(t, "none"), -1);
    gpud_table_free(t);
    OK(gpud_device_info(client, 0, &d));
    ck_assert_uint_eq(d.id, 3);
    ck_assert_uint_eq(d.memory_bytes, 4096);
    ck_assert_uint_eq(d.memory_used, 64);
    ck_assert(d.simulated && !d.cpu);
    ck_assert_str_eq(d.name, "a device");
    ck_assert_str_eq(d.backend, "sim");
    ck_assert_str_eq(d.state, "ready");
    FAILS(gpud_device_info(client, 1, &d), GPUD_ERR_NOT_FOUND);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("client");
    TCase *t = tcase_create("client");
    tcase_add_checked_fixture(t, start, stop);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, call);
    tcase_add_test(t, call_with_large_arrays);
    tcase_add_test(t, kernels_are_found_once);
    tcase_add_test(t, structs_grow);
    tcase_add_test(t, buffers);
    tcase_add_test(t, shapes_are_checked);
    tcase_add_test(t, large_transfers);
    tcase_add_test(t, out_of_order);
    tcase_add_loop_test(t, asynchronous, 0, 2);
    tcase_add_test(t, in_a_poll_loop);
    tcase_add_test(t, callbacks_wake_the_loop);
    tcase_add_test(t, busy);
    tcase_add_test(t, a_refused_run_is_tried_again);
    tcase_add_test(t, flags_that_are_not_known_are_refused);
    tcase_add_loop_test(t, who_is_freed_waits_for_room, 0, 2);
    tcase_add_test(t, jobs_in_flight_are_capped);
    tcase_add_test(t, cancelling);
    tcase_add_test(t, modules);
    tcase_add_test(t, programs);
    tcase_add_test(t, first_error_of_building_is_told);
    tcase_add_test(t, resends_after_a_broken_connection);
    tcase_add_test(t, restores_after_a_restart);
    tcase_add_test(t, events_of_an_adopting_daemon);
    tcase_add_test(t, lost_buffers_are_told);
    tcase_add_test(t, over_tcp);
    tcase_add_loop_test(t, small_messages, 0, 2);
    tcase_add_test(t, never_answered);
    tcase_add_test(t, forked_child);
    tcase_add_test(t, many_threads);
    tcase_add_test(t, tables);
    suite_add_tcase(suite, t);
    TCase *bare = tcase_create("bare");
    tcase_set_timeout(bare, 60);
    tcase_add_loop_test(bare, garbage, 0, 4);
    suite_add_tcase(suite, bare);
    return run_tests(suite);
}
