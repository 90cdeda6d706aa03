/* Jobs and programs: replay, order, overlap, cancel, deadlines, a full queue. Simulated devices, so
 * that a job lasts as long as the test wants. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

/* With items=1000: milliseconds that a fill of so many elements takes. */
#define SLOW "items=1000"
/* A job of so many elements runs until finish() opens the device's gate. */
#define LONG_MS 3600000

static struct daemon daemon_of_test;
static char gate[64];

static gpud_client *begin(const char *sim, const char *key, const char *value)
{
    static char set[64];
    static char options[256];
    (void)snprintf(gate, sizeof gate, "/tmp/gpud-jobs-gate.%d", (int)getpid());
    (void)unlink(gate);
    (void)snprintf(set, sizeof set, "%s=%s", key, value);
    (void)snprintf(options, sizeof options, "%s,gate=%s", sim, gate);
    return daemon_begin(&daemon_of_test, "--backend", "sim", "--backend-options", options, "--set",
                        set, NULL);
}

static void end(gpud_client *c)
{
    daemon_end(&daemon_of_test, c);
    (void)unlink(gate);
}

/* All jobs that run end now, and later ones at once. */
static void finish(void)
{
    file_write(gate, "", 0);
}

static gpud_buffer make(gpud_client *c, uint64_t count)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, count), GPUD_BUFFER_ZERO, NULL, &b));
    return b;
}

/* A job that lasts as many milliseconds, its number known. */
static gpud_job *slow(gpud_client *c, gpud_buffer b, uint64_t ms, uint64_t deadline_ns)
{
    gpud_arg args[] = {gpud_f32(1), gpud_arg_with(gpud_slice(b, 0, ms), GPUD_OUT)};
    gpud_submit_options o = {.size = sizeof o, .deadline_ns = deadline_ns, .label = "slow"};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, &o, &job));
    ck_until(gpud_dispatch(c) == 0 && (gpud_job_id(job) != 0 || gpud_job_done(job)));
    return job;
}

/* A program without steps goes to the worker and back: behind what came before it, and nothing
 * else. */
START_TEST(no_steps)
{
    gpud_client *c = begin("speed=0", "jobs.window", "4");
    const gpud_submit_options held = {.size = sizeof held, .flags = GPUD_SUBMIT_HELD};
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_program_create(c, "null", &p));
    ck_gpud_ok(gpud_program_seal(p));
    for (unsigned i = 0; i < 8; i++) {
        gpud_job *job = NULL;
        gpud_job_times times = {.size = sizeof times};
        const void *data = NULL;
        size_t bytes = 0;
        ck_gpud_ok(gpud_submit(c, p, NULL, 0, i % 2 == 0 ? &held : NULL, &job));
        ck_gpud_ok(gpud_wait(job, PATIENCE));
        ck_gpud_ok(gpud_job_timing(job, &times));
        ck_assert_uint_le(times.step_count, 1);
        ck_gpud_err(gpud_job_output(job, 0, 0, &data, &bytes), GPUD_ERR_NOT_FOUND);
        gpud_job_free(job);
    }
    ck_assert_uint_eq(query_value(c, "devices", "0", "restarts"), 0);
    gpud_program_free(p);
    end(c);
}
END_TEST

/* Many sorts of many passes each, more than a worker accepts at once. The job is refused when its
 * steps are resolved, or when its parameters get their values, and nothing has changed. */
START_TEST(too_many_steps)
{
    gpud_client *c = begin("speed=0", "jobs.window", "4");
    gpud_buffer keys = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 64), GPUD_BUFFER_ZERO, NULL, &keys));
    for (int bound = 0; bound < 2; bound++) {
        gpud_program *p = NULL;
        ck_gpud_ok(gpud_program_create(c, "sorts", &p));
        gpud_arg to = gpud_inout(keys);
        if (bound == 1) {
            to = gpud_arg_with(
                gpud_program_param(p, "keys", GPUD_PARAM_BUFFER, gpud_shape_1d(GPUD_U32, 64)),
                GPUD_INOUT);
        }
        for (unsigned i = 0; i < 100; i++) {
            ck_assert_int_ge(gpud_program_launch(p, kernel_find(c, "sort"), &to, 1, NULL), 0);
        }
        int rc = gpud_program_seal(p);
        if (bound == 1) {
            ck_gpud_ok(rc);
            gpud_arg value = gpud_inout(keys);
            rc = gpud_run(c, p, &value, 1, NULL, NULL);
        }
        ck_gpud_err(rc, GPUD_ERR_LIMIT);
        ck_assert_msg(strstr(gpud_last_error()->text, "at most 65536 at once: split") != NULL, "%s",
                      gpud_last_error()->text);
        gpud_program_free(p);
    }
    uint32_t content[64];
    ck_gpud_ok(gpud_read(c, keys, GPUD_U32, 0, 64, content, NULL));
    ck_assert_uint_eq(content[63], 0);
    end(c);
}
END_TEST

START_TEST(programs)
{
    gpud_client *c = begin("speed=0", "jobs.window", "4");
    gpud_buffer x = make(c, 100);
    gpud_buffer y = make(c, 100);
    gpud_program *p = NULL;
    ck_gpud_ok(gpud_fill(c, gpud_out(x), gpud_f32(1)));
    ck_gpud_ok(gpud_program_create(c, "steps", &p));
    gpud_arg a = gpud_program_param(p, "a", GPUD_PARAM_SCALAR, gpud_shape_1d(GPUD_F32, 1));
    gpud_arg to = gpud_program_param(p, "y", GPUD_PARAM_BUFFER, gpud_shape_1d(GPUD_F32, 100));
    gpud_arg temp = gpud_program_temp(p, gpud_shape_1d(GPUD_F32, 100));
    ck_assert_int_ge(gpud_program_fill(p, temp, gpud_f32(10)), 0);
    gpud_arg first[] = {a, gpud_in(x), gpud_arg_with(temp, GPUD_INOUT)};
    ck_assert_int_ge(gpud_program_launch(p, kernel_find(c, "axpy"), first, 3, NULL), 0);
    ck_assert_int_ge(
        gpud_program_copy(p, gpud_arg_with(to, GPUD_OUT), gpud_arg_with(temp, GPUD_IN)), 0);
    int read = gpud_program_read(p, gpud_arg_slice(gpud_arg_with(to, GPUD_IN), 98, 2));
    ck_assert_int_ge(read, 0);
    ck_gpud_ok(gpud_program_seal(p));
    for (unsigned i = 1; i <= 3; i++) {
        gpud_arg values[] = {gpud_f32((float)i), gpud_out(y)};
        gpud_job *job = NULL;
        const void *data = NULL;
        size_t bytes = 0;
        ck_gpud_ok(gpud_run(c, p, values, 2, NULL, &job));
        ck_gpud_ok(gpud_job_output(job, (uint32_t)read, 0, &data, &bytes));
        ck_assert_uint_eq(bytes, 2 * sizeof(float));
        float got[2];
        memcpy(got, data, sizeof got);
        ck_assert_float_eq(got[1], 10 + (float)i);
        gpud_job_free(job);
    }
    gpud_arg wrong[] = {gpud_out(y), gpud_f32(1)};
    ck_assert_int_ne(gpud_run(c, p, wrong, 2, NULL, NULL), 0);
    ck_gpud_err(gpud_run(c, p, wrong, 1, NULL, NULL), GPUD_ERR_ARG_COUNT);
    gpud_program_free(p);
    end(c);
}
END_TEST

/* ---- order and overlap ----------------------------------------------------------------------- */

#define ROUNDS 50u

struct adder {
    const char *url;
    float step;
};

/* Adds to each element of the shared buffer, ROUNDS times. */
static int add_work(void *data)
{
    const struct adder *w = data;
    gpud_client *c = client_open(w->url);
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_buffer shared = {0};
    float ones[64];
    for (unsigned i = 0; i < 64; i++) {
        ones[i] = 1;
    }
    if (gpud_buffer_open(c, "shared", &shared) != 0) {
        return 1;
    }
    for (unsigned i = 0; i < ROUNDS; i++) {
        gpud_arg args[] = {gpud_f32(w->step), gpud_host_in(ones, 64, GPUD_F32), gpud_inout(shared)};
        if (gpud_call(c, axpy, args, 3, NULL) != 0) {
            (void)fprintf(stderr, "%s\n", gpud_last_error()->text);
            return 1;
        }
    }
    gpud_close(c);
    return 0;
}

/* Writers never meet: no addition is lost, whichever stream it runs on. */
START_TEST(clients_on_one_buffer)
{
    gpud_client *c = begin("speed=1,launch_ns=200000", "jobs.window", "8");
    gpud_buffer b = make(c, 64);
    ck_gpud_ok(gpud_buffer_publish(c, b, "shared", GPUD_INOUT, 0));
    struct adder w[3] = {{daemon_of_test.url, 1}, {daemon_of_test.url, 2}, {daemon_of_test.url, 4}};
    pid_t pid[3];
    for (unsigned i = 0; i < 3; i++) {
        pid[i] = process_start(add_work, &w[i]);
    }
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(process_wait(pid[i]), 0);
    }
    float got[64];
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, got, NULL));
    for (unsigned i = 0; i < 64; i++) {
        ck_assert_float_eq(got[i], 7 * ROUNDS);
    }
    end(c);
}
END_TEST

struct interval {
    char device[16]; /* and stream */
    uint64_t begin, end;
};

static struct interval interval_of(gpud_client *c, gpud_job *job)
{
    struct interval v;
    char number[24];
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)gpud_job_id(job));
    query_text(c, "timeline", number, "device", v.device, sizeof v.device);
    v.begin = query_value(c, "timeline", number, "started_at");
    v.end = query_value(c, "timeline", number, "ended_at");
    return v;
}

static void await_running(gpud_client *c, const gpud_job *job)
{
    gpud_job_desc desc = {.size = sizeof desc};
    job_await_dispatch(c, job);
    ck_until(gpud_job_info(c, gpud_job_id(job), &desc) == 0 && desc.started_ns != 0);
}

/* Independent jobs at the same time on two streams, dependent ones one after the other. */
START_TEST(overlap)
{
    gpud_client *c = begin(SLOW, "jobs.window", "8");
    gpud_buffer a = make(c, LONG_MS);
    gpud_buffer b = make(c, LONG_MS);
    gpud_job *one = slow(c, a, LONG_MS, 0);
    gpud_job *two = slow(c, b, LONG_MS, 0);
    gpud_job *after = slow(c, a, 100, 0);
    ck_until(query_value(c, "status", NULL, "in_flight") == 3);
    await_running(c, one);
    await_running(c, two);
    finish();
    ck_gpud_ok(gpud_wait(one, PATIENCE));
    ck_gpud_ok(gpud_wait(two, PATIENCE));
    ck_gpud_ok(gpud_wait(after, PATIENCE));
    struct interval v1 = interval_of(c, one);
    struct interval v2 = interval_of(c, two);
    struct interval v3 = interval_of(c, after);
    ck_assert_str_ne(v1.device, v2.device);
    ck_assert_uint_lt(v1.begin, v2.end);
    ck_assert_uint_lt(v2.begin, v1.end);
    ck_assert_uint_le(v1.end, v3.begin);
    gpud_job_free(one);
    gpud_job_free(two);
    gpud_job_free(after);
    end(c);
}
END_TEST

/* ---- queue -------------------------------------------------------------------------------- */

START_TEST(cancel_queued)
{
    gpud_client *c = begin(SLOW, "jobs.window", "1");
    gpud_buffer b = make(c, LONG_MS);
    gpud_job *running = slow(c, b, LONG_MS, 0);
    gpud_job *queued = slow(c, b, 1, 0);
    char text[1024];
    ck_gpud_ok(gpud_explain(c, gpud_job_id(queued), text, sizeof text));
    ck_assert_msg(strstr(text, "is queued: waits for") != NULL, "%s", text);
    ck_gpud_ok(gpud_cancel(queued));
    ck_gpud_err(gpud_wait(queued, PATIENCE), GPUD_ERR_CANCELLED);
    ck_assert(!gpud_job_done(running));
    finish();
    ck_gpud_ok(gpud_wait(running, PATIENCE));
    ck_assert_uint_eq(query_value(c, "status", NULL, "cancelled"), 1);
    gpud_job_free(running);
    gpud_job_free(queued);
    end(c);
}
END_TEST

/* A cancelled job that the worker already has, behind a long one, is answered while the long one
 * runs. Its output keeps its former contents for later jobs; a job that was submitted in between
 * and relies on the output fails. */
START_TEST(cancel_behind_a_long_one)
{
    gpud_client *c = begin(SLOW, "jobs.window", "8");
    gpud_buffer b = make(c, LONG_MS);
    gpud_buffer to = make(c, 1);
    gpud_job *running = slow(c, b, LONG_MS, 0);
    gpud_job *behind = slow(c, b, 1, 0);
    gpud_job *reader = NULL;
    float first = 0;
    char text[1024];
    gpud_arg args[] = {gpud_f32(1), gpud_arg_with(gpud_slice(b, 0, 1), GPUD_IN), gpud_inout(to)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &reader));
    ck_until(gpud_explain(c, gpud_job_id(behind), text, sizeof text) == 0 &&
             strstr(text, "on device 0") != NULL);
    ck_gpud_ok(gpud_cancel(behind));
    ck_gpud_err(gpud_wait(behind, PATIENCE), GPUD_ERR_CANCELLED);
    ck_assert(!gpud_job_done(running));
    finish();
    ck_gpud_ok(gpud_wait(running, PATIENCE));
    ck_gpud_err(gpud_wait(reader, PATIENCE), GPUD_ERR_UNDEFINED);
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 1, &first, NULL));
    ck_assert(first == 1.0f);
    ck_assert_uint_eq(query_value(c, "status", NULL, "cancelled"), 1);
    gpud_job_free(running);
    gpud_job_free(behind);
    gpud_job_free(reader);
    end(c);
}
END_TEST

START_TEST(deadline)
{
    gpud_client *c = begin(SLOW, "jobs.window", "1");
    gpud_buffer b = make(c, LONG_MS);
    gpud_job *running = slow(c, b, LONG_MS, 0);
    gpud_job *late = slow(c, b, 1, 50 * MS);
    ck_gpud_err(gpud_wait(late, PATIENCE), GPUD_ERR_DEADLINE);
    ck_assert(!gpud_job_done(running));
    finish();
    ck_gpud_ok(gpud_wait(running, PATIENCE));
    gpud_job_free(running);
    gpud_job_free(late);
    end(c);
}
END_TEST

START_TEST(full_queue)
{
    gpud_client *c = begin(SLOW, "jobs.queue_max", "4");
    gpud_buffer b = make(c, LONG_MS);
    gpud_job *job[6];
    gpud_error error = {.size = sizeof error};
    for (unsigned i = 0; i < 6; i++) {
        job[i] = slow(c, b, i == 0 ? LONG_MS : 1, 0);
    }
    for (unsigned i = 4; i < 6; i++) {
        ck_gpud_err(gpud_wait(job[i], PATIENCE), GPUD_ERR_BUSY);
        ck_gpud_ok(gpud_job_error(job[i], &error));
        ck_assert_uint_gt(error.retry_after_ns, 0);
        ck_assert_int_eq(error.retriable, 1);
        ck_assert_int_eq(error.effects, GPUD_EFFECTS_NONE);
    }
    finish();
    for (unsigned i = 0; i < 6; i++) {
        ck_assert_int_eq(gpud_wait(job[i], PATIENCE), i < 4 ? 0 : GPUD_ERR_BUSY);
        gpud_job_free(job[i]);
    }
    ck_assert_uint_eq(query_value(c, "status", NULL, "refused"), 2);
    gpud_job *again = slow(c, b, 1, 0);
    ck_gpud_ok(gpud_wait(again, PATIENCE));
    gpud_job_free(again);
    end(c);
}
END_TEST

/* The job's number was answered; answers of later jobs are acknowledged and forgotten meanwhile. */
START_TEST(answers_beside_a_long_job)
{
    (void)setenv("GPUD_LANE", "nng", 1);
    gpud_client *c = begin(SLOW, "jobs.keep_results_bytes", "64K");
    gpud_buffer b = make(c, LONG_MS);
    gpud_buffer other = make(c, 1024);
    float out[1024];
    gpud_job *job = slow(c, b, LONG_MS, 0);
    for (unsigned i = 0; i < 64; i++) {
        ck_gpud_ok(gpud_read(c, other, GPUD_F32, 0, GPUD_REST, out, NULL));
    }
    ck_assert_uint_eq(query_value(c, "status", NULL, "refused"), 0);
    ck_assert(!gpud_job_done(job));
    finish();
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    end(c);
}
END_TEST

/* All of this process's. */
static void cut_connections(void)
{
    unsigned cut = 0;
    for (int fd = 3; fd < 256; fd++) {
        struct sockaddr_un at = {.sun_family = AF_UNSPEC};
        socklen_t size = sizeof at;
        if (getpeername(fd, (struct sockaddr *)&at, &size) == 0 && at.sun_family == AF_UNIX) {
            cut += shutdown(fd, SHUT_RDWR) == 0;
        }
    }
    ck_assert_uint_gt(cut, 0);
}

/* The daemon has forgotten the number that is sent again, not the job. */
START_TEST(a_long_job_and_a_broken_connection)
{
    (void)setenv("GPUD_LANE", "nng", 1);
    gpud_client *c = begin(SLOW, "jobs.queue_max", "100");
    gpud_buffer b = make(c, LONG_MS);
    gpud_buffer other = make(c, 4);
    float out[4];
    gpud_job *job = slow(c, b, LONG_MS, 0);
    for (unsigned i = 0; i < 4; i++) {
        ck_gpud_ok(gpud_read(c, other, GPUD_F32, 0, GPUD_REST, out, NULL));
        cut_connections();
    }
    finish();
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    end(c);
}
END_TEST

/* Requests behind a job that waits for room wait, too, even a request that frees its buffer. */
START_TEST(place_in_a_full_queue)
{
    gpud_client *c = begin(SLOW, "jobs.queue_max", "1");
    gpud_client *other = client_open(daemon_of_test.url);
    gpud_buffer b = make(c, 4);
    gpud_buffer taken = make(c, 4);
    gpud_buffer theirs = make(other, LONG_MS);
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_BLOCK};
    gpud_job *job[3];
    float out[4] = {0};
    gpud_job *full = slow(other, theirs, LONG_MS, 0);
    for (unsigned i = 0; i < 3; i++) {
        gpud_arg args[] = {gpud_f32((float)i), gpud_out(i == 2 ? taken : b)};
        ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, &o, &job[i]));
    }
    ck_gpud_ok(gpud_buffer_free(c, taken));
    gpud_job_free(job[1]);
    finish();
    ck_gpud_ok(gpud_wait(job[2], PATIENCE));
    ck_gpud_ok(gpud_wait(job[0], PATIENCE));
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, out, NULL));
    ck_assert_float_eq(out[3], 1);
    ck_gpud_ok(gpud_wait(full, PATIENCE));
    gpud_job_free(full);
    gpud_job_free(job[0]);
    gpud_job_free(job[2]);
    gpud_close(other);
    end(c);
}
END_TEST

/* Its time limit on a device that never ends; scripted. The one before it has none to race with. */
START_TEST(hanging_device)
{
    gpud_client *c = begin("speed=0,script=launch:3=hang", "jobs.time_limit_ms", "500");
    float out[4];
    gpud_arg args[] = {gpud_f32(2), gpud_host_out(out, 4, GPUD_F32)};
    gpud_kernel fill = kernel_find(c, "fill");
    int codes[2];
    for (unsigned i = 0; i < 2; i++) {
        gpud_job *job = NULL;
        ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job));
        codes[i] = gpud_wait(job, PATIENCE);
        gpud_job_free(job);
    }
    ck_assert_int_eq(codes[0], 0);
    ck_assert_int_eq(codes[1], GPUD_ERR_TIME_LIMIT);
    ck_gpud_ok(gpud_call(c, fill, args, 2, NULL)); /* the next worker */
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 1);
    end(c);
}
END_TEST

/* FAULT 46: a client's limit of its own (1 ns) while others use the worker
 * required: its answer ends, other tenants keep worker and buffers; the job's outputs stay
 *   blocked and undefined until the device is done with it
 * defence: `front/workers/worker.c`: ends_answer_only; `front/sched/conclude.c`:
 *   job_answer_early; `front/sched/dispatch.c`: content_there
 * also: `front_wake_test`: a_clients_limit_ends_its_answer_only,
 *   the_settings_limit_ends_the_worker
 * mutants: client-limit, answered-again */
/* A time limit that a client chose ends the job's answer only: a built-in kernel does not cost the
 * worker. The job's outputs are blocked and undefined until the limit of the settings ends the
 * worker. */
START_TEST(a_clients_own_limit)
{
    gpud_client *c = begin("speed=0,script=launch:2=hang", "jobs.time_limit_ms", "3000");
    gpud_buffer kept = {0};
    gpud_buffer written = {0};
    float value[4] = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, "kept", &kept));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, "written", &written));
    ck_gpud_ok(gpud_fill(c, gpud_out(kept), gpud_f32(5)));
    ck_gpud_ok(gpud_fill(c, gpud_out(written), gpud_f32(6)));
    const gpud_submit_options o = {.size = sizeof o, .time_limit_ns = MS};
    gpud_arg args[] = {gpud_f32(2), gpud_arg_with(gpud_out(written), GPUD_OUT)};
    gpud_job *job = NULL;
    gpud_job *writer = NULL;
    gpud_error error = {.size = sizeof error};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, &o, &job));
    ck_assert_int_eq(gpud_wait(job, PATIENCE), GPUD_ERR_TIME_LIMIT);
    ck_gpud_ok(gpud_job_error(job, &error));
    ck_assert_int_eq(error.effects, GPUD_EFFECTS_MAYBE);
    gpud_job_free(job);
    ck_gpud_ok(gpud_read(c, kept, GPUD_F32, 0, GPUD_REST, value, NULL));
    ck_assert(value[3] == 5);
    ck_gpud_err(gpud_read(c, written, GPUD_F32, 0, GPUD_REST, value, NULL), GPUD_ERR_UNDEFINED);
    ck_assert_msg(strstr(gpud_last_error()->text, "ended with TIME_LIMIT") != NULL, "%s",
                  gpud_last_error()->text); /* by which job, and why */
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, NULL, &writer));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    ck_assert_int_eq(gpud_wait(writer, PATIENCE), GPUD_ERR_WORKER_LOST); /* it was blocked */
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 1);
    gpud_job_free(writer);
    end(c);
}
END_TEST

/* FAULT other: a job's deadline passes while it waits in its worker: for a buffer, memory, or
 *   its stream
 * required: it does not begin, and ends with `DEADLINE` at that time; it is not enqueued on a
 *   stream whose work exceeds its remaining time
 * defence: `worker/run/completion.c`: advance; `worker/run/steps.c`: executor_ready;
 *   `worker/run/batch.c`: batch_in_time; `worker/serve/serve_job.c`: server_job_start
 * also: `worker_waiting_test`: deadlines_hold_until_a_job_begins,
 *   a_deadline_is_not_put_behind_what_takes_longer
 * mutants: deadline-in-worker, deadline-ahead */
/* Jobs that wait in their worker behind another's buffer end at their deadlines, while that job
 * still runs, and have written nothing. On a host that stands still for half a second the front
 * answers for the worker, and says so. */
START_TEST(deadlines_behind_a_job)
{
    gpud_client *c = begin(SLOW, "jobs.window", "8");
    gpud_buffer b = make(c, LONG_MS);
    gpud_job *job[6];
    gpud_error error = {.size = sizeof error};
    for (unsigned i = 0; i < 6; i++) {
        job[i] = slow(c, b, i == 0 ? LONG_MS : 1, i == 0 ? 0 : 50 * MS);
    }
    for (unsigned i = 1; i < 6; i++) {
        ck_assert_int_eq(gpud_wait(job[i], PATIENCE), GPUD_ERR_DEADLINE);
        ck_gpud_ok(gpud_job_error(job[i], &error));
        bool early = strstr(error.text, "the device did not return it") != NULL;
        ck_assert_int_eq(error.effects, early ? GPUD_EFFECTS_MAYBE : GPUD_EFFECTS_NONE);
    }
    ck_assert_int_eq(gpud_wait(job[0], 0), GPUD_ERR_TIMEOUT);
    finish();
    ck_gpud_ok(gpud_wait(job[0], PATIENCE));
    for (unsigned i = 0; i < 6; i++) {
        gpud_job_free(job[i]);
    }
    end(c);
}
END_TEST

/* Sets the bytes that the worker may map from now on: what it has mapped, and this many more. */
static uint64_t limit_space(pid_t worker, uint64_t more)
{
    char path[64];
    char text[128];
    struct rlimit limit;
    (void)snprintf(path, sizeof path, "/proc/%d/statm", (int)worker);
    file_read(path, text, sizeof text);
    uint64_t pages = strtoull(text, NULL, 10);
    ck_assert_uint_gt(pages, 0);
    limit.rlim_cur = limit.rlim_max = pages * (uint64_t)sysconf(_SC_PAGESIZE) + more;
    ck_assert_int_eq(prlimit(worker, RLIMIT_AS, &limit, NULL), 0);
    return limit.rlim_cur;
}

/* The device has room, and its worker no addresses for it: the client hears which limit that is,
 * when it makes a buffer, or (_i 1) when a job is to bring it to the device. */
START_TEST(addresses_run_out)
{
#ifdef __SANITIZE_ADDRESS__
    return; /* it ends a process that has no addresses left */
#endif
    gpud_client *c = begin("speed=0,pages=off", "memory.spill_limit", _i == 0 ? "1" : "1G");
    char expected[64];
    gpud_buffer small = make(c, 4);
    gpud_buffer large = {0};
    pid_t worker = daemon_worker(&daemon_of_test, 0);
    uint64_t limit = limit_space(worker, UINT64_C(64) << 20);
    (void)snprintf(expected, sizeof expected, "may map %llu bytes in all",
                   (unsigned long long)limit);
    int rc = gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 1u << 26), 0, "large", &large);
    rc = rc == 0 ? gpud_fill(c, gpud_out(large), gpud_f32(1)) : rc;
    ck_assert_int_eq(rc, GPUD_ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr(gpud_last_error()->text, expected) != NULL, "%s", gpud_last_error()->text);
    ck_gpud_ok(gpud_fill(c, gpud_out(small), gpud_f32(1)));
    ck_assert_int_eq(daemon_worker(&daemon_of_test, 0), worker);
    end(c);
}
END_TEST

/* FAULT 13: device out of memory
 * required: an error with the requested and the free bytes; the worker does not restart
 * defence: `front/sched/completion.c`: completion_done; `pool/pool.c`
 * also: `test_pool_quota`: a_refusal_says_what_there_is; `test_system_cuda`: out_of_memory,
 *   driver_has_no_memory
 * mutants: device-memory */
/* A device without room: the error gives the wanted and the available bytes, and freed memory can
 * be used again. No worker ends. */
START_TEST(full_device)
{
    gpud_client *c = begin("speed=0,memory=67108864", "memory.spill_limit", "1");
    static float block[1u << 20];
    gpud_buffer b[32] = {{0}};
    unsigned count = 0;
    int rc = 0;
    while (count < 32 && rc == 0) {
        rc = gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 1u << 20), 0, "big", &b[count]);
        rc = rc == 0 ? gpud_fill(c, gpud_out(b[count]), gpud_f32(3)) : rc;
        count += rc == 0;
    }
    ck_assert_int_eq(rc, GPUD_ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr(gpud_last_error()->text, "4194304") != NULL &&
                      strstr(gpud_last_error()->text, "free") != NULL,
                  "%s", gpud_last_error()->text);
    ck_assert_uint_gt(count, 8);
    gpud_arg args[] = {gpud_f32(2), gpud_host_out(block, 1u << 20, GPUD_F32)};
    ck_gpud_err(gpud_call(c, kernel_find(c, "fill"), args, 2, NULL), GPUD_ERR_DEVICE_MEMORY);
    ck_gpud_ok(gpud_fill(c, gpud_out(b[0]), gpud_f32(1)));
    ck_gpud_ok(gpud_buffer_free(c, b[1]));
    ck_gpud_ok(gpud_call(c, kernel_find(c, "fill"), args, 2, NULL));
    ck_assert_float_eq(block[(1u << 20) - 1], 2);
    ck_gpud_ok(gpud_read(c, b[0], GPUD_F32, 0, GPUD_REST, block, NULL));
    ck_assert_float_eq(block[(1u << 20) - 1], 1);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end(c);
}
END_TEST

START_TEST(two_devices)
{
    gpud_client *c = begin("devices=2,speed=0", "daemon.min_devices", "2");
    for (unsigned i = 0; i < 2; i++) {
        gpud_buffer b = {0};
        float got[10] = {0};
        gpud_buffer_desc desc = {.size = sizeof desc};
        gpud_device_desc device = {.size = sizeof device};
        ck_gpud_ok(gpud_device_info(c, i, &device));
        ck_assert(device.simulated);
        ck_gpud_ok(gpud_buffer_create_on(c, device.id, gpud_shape_1d(GPUD_F32, 10), 0, NULL, &b));
        ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32((float)i)));
        ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, got, NULL));
        ck_assert_float_eq(got[9], (float)i);
        ck_gpud_ok(gpud_buffer_info(c, b, &desc));
        ck_assert_uint_eq(desc.device, device.id);
    }
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("jobs");
    suite_add(suite, programs);
    suite_add(suite, no_steps);
    suite_add(suite, too_many_steps);
    suite_add(suite, clients_on_one_buffer);
    suite_add(suite, overlap);
    suite_add(suite, cancel_queued);
    suite_add(suite, cancel_behind_a_long_one);
    suite_add(suite, deadline);
    suite_add(suite, full_queue);
    suite_add(suite, place_in_a_full_queue);
    suite_add(suite, answers_beside_a_long_job);
    suite_add(suite, a_long_job_and_a_broken_connection);
    suite_add(suite, hanging_device);
    suite_add(suite, a_clients_own_limit);
    suite_add(suite, deadlines_behind_a_job);
    suite_add(suite, full_device);
    suite_add_loop(suite, addresses_run_out, 2);
    suite_add(suite, two_devices);
    return system_main(suite);
}
