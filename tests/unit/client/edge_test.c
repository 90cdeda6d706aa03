/* What a user may do to the library at bad moments, and what a daemon may answer. */
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/client/fixture.h"

/* ---- the environment ------------------------------------------------------------------------ */

/* What is empty is not set, as GPUD_URL; a number is one of digits. */
START_TEST(wishes_of_the_environment)
{
    static const struct {
        const char *name, *value;
        bool good;
    } wishes[] = {
        {"GPUD_TIMEOUT_MS", "", true},       {"GPUD_LANE", "", true},
        {"GPUD_SPIN_US", "", true},          {"GPUD_TIMEOUT_MS", "18446744073709", true},
        {"GPUD_SPIN_US", "1000", true},      {"GPUD_SPIN_US", "1001", false},
        {"GPUD_TIMEOUT_MS", "5s", false},    {"GPUD_TIMEOUT_MS", "18446744073710", false},
        {"GPUD_TIMEOUT_MS", " 5000", false}, {"GPUD_TIMEOUT_MS", "-18446744073709546616", false},
        {"GPUD_SPIN_US", "+1", false},       {"GPUD_SPIN_US", "-18446744073709551615", false},
        {"GPUD_LANE", "pigeon", false},
    };
    for (size_t i = 0; i < sizeof wishes / sizeof wishes[0]; i++) {
        gpud_client *c = NULL;
        ck_assert_int_eq(setenv(wishes[i].name, wishes[i].value, 1), 0);
        int rc = gpud_open(fake_url(fake), NULL, &c);
        ck_assert_msg(rc == (wishes[i].good ? 0 : GPUD_ERR_INVALID), "%s=%s: %s", wishes[i].name,
                      wishes[i].value, gpud_err_name(rc));
        ck_assert(rc == 0 || strstr(gpud_last_error()->text, wishes[i].name) != NULL);
        gpud_close(c);
        ck_assert_int_eq(unsetenv(wishes[i].name), 0);
    }
}
END_TEST

START_TEST(nobody_there)
{
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = SECOND / 100};
    FAILS(gpud_open("ipc:///tmp/gpud-test-nobody/s", &o, &c), GPUD_ERR_CONNECT);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "No such file"));
    FAILS(gpud_open("http://localhost", NULL, &c), GPUD_ERR_INVALID);
    FAILS(gpud_open("tcp://localhost", NULL, &c), GPUD_ERR_INVALID);
    FAILS(gpud_open("tcp://127.0.0.1:99999", NULL, &c), GPUD_ERR_INVALID);
    FAILS(gpud_open("tcp://127.0.0.1:0", NULL, &c), GPUD_ERR_INVALID);
    FAILS(gpud_open("", NULL, &c), GPUD_ERR_INVALID);
    o.token_size = 5;
    FAILS(gpud_open(fake_url(fake), &o, &c), GPUD_ERR_INVALID);
    o.token_size = 0;
    FAILS(gpud_open("tcp://127.0.0.1:1", &o, &c), GPUD_ERR_CONNECT);
    o.token = "12345"; /* 192.0.2.0/24 is for documents */
    o.token_size = 5;
    FAILS(gpud_open("tcp://192.0.2.1:1", &o, &c), GPUD_ERR_PERMISSION);
    FAILS(gpud_open("tcp://[2001:db8::1]:1", &o, &c), GPUD_ERR_PERMISSION);
    FAILS(gpud_open("tcp://127.0.0.1:1", &o, &c), GPUD_ERR_CONNECT);
    FAILS(gpud_open("tcp://[::1]:1", &o, &c), GPUD_ERR_CONNECT);
    ck_assert_ptr_null(c);
    fake_mode(fake, FAKE_REFUSE);
    FAILS(gpud_open(fake_url(fake), NULL, &c), GPUD_ERR_PERMISSION);
    FAILS(gpud_ping(NULL, NULL), GPUD_ERR_INVALID);
    gpud_close(NULL);
}
END_TEST

/* A token that was written into the URL is not in the error. */
START_TEST(errors_tell_no_token)
{
    static const char *const urls[] = {
        "tcp://localhost?token=s3cret",    "tcp://h:1?token=s3cret:2",
        "tls+tcp://h:1?token=s3cret",      "tls+tcp://h:1?Token=s3cret",
        "tls+tcp://h:1?ca=/a&pass=s3cret", "tls:/h:1?token=s3cret"};
    for (size_t i = 0; i < sizeof urls / sizeof urls[0]; i++) {
        gpud_client *c = NULL;
        FAILS(gpud_open(urls[i], NULL, &c), GPUD_ERR_INVALID);
        ck_assert_ptr_null(strstr(gpud_last_error()->text, "s3cret"));
    }
}
END_TEST

struct away {
    char here[160], there[160];
    char stat[64]; /* of the thread that opens, in proc(5) */
};

/* When the other thread sleeps: it has found nobody. */
static void *come_back(void *arg)
{
    const struct away *away = arg;
    char text[256] = "";
    while (strstr(text, ") S ") == NULL) {
        FILE *file = fopen(away->stat, "re");
        size_t n = file != NULL ? fread(text, 1, sizeof text - 1, file) : 0;
        text[n] = '\0';
        (void)(file != NULL && fclose(file) == 0);
    }
    return rename(away->there, away->here) == 0 ? NULL : arg;
}

/* Between the end of one daemon and the start of the next nobody listens. */
START_TEST(a_daemon_that_comes_later)
{
    struct away away;
    gpud_client *c = NULL;
    pthread_t thread;
    void *failed = NULL;
    (void)snprintf(away.here, sizeof away.here, "%s", fake_url(fake) + strlen("ipc://"));
    (void)snprintf(away.there, sizeof away.there, "%s.away", away.here);
    (void)snprintf(away.stat, sizeof away.stat, "/proc/self/task/%d/stat", (int)gettid());
    ck_assert_int_eq(rename(away.here, away.there), 0);
    ck_assert_int_eq(pthread_create(&thread, NULL, come_back, &away), 0);
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 60 * SECOND};
    OK(gpud_open(fake_url(fake), &o, &c));
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    ck_assert_ptr_null(failed);
    gpud_close(c);
}
END_TEST

/* ---- parts of buffers ----------------------------------------------------------------------- */

static gpud_buffer make_ten(void)
{
    gpud_buffer b = {0};
    OK(gpud_buffer_create(client, gpud_shape_1d(GPUD_F32, 10), 0, NULL, &b));
    return b;
}

/* A count of 0 is no other word for all of it: the caller's memory may be as small as it says. */
START_TEST(parts)
{
    gpud_buffer b = make_ten();
    float in[10];
    float out[10];
    for (int i = 0; i < 10; i++) {
        in[i] = (float)i;
        out[i] = -1;
    }
    OK(gpud_write(client, b, GPUD_F32, 0, GPUD_REST, in, NULL));
    OK(gpud_read(client, b, GPUD_F32, 0, 0, out, NULL));
    OK(gpud_read(client, b, GPUD_F32, 10, 0, NULL, NULL));
    OK(gpud_write(client, b, GPUD_F32, 4, 0, out, NULL));
    ck_assert(out[0] == -1 && out[9] == -1);
    OK(gpud_read(client, b, GPUD_F32, 7, GPUD_REST, out, NULL));
    ck_assert(out[0] == 7 && out[2] == 9 && out[3] == -1);
    OK(gpud_read(client, b, GPUD_F32, 10, GPUD_REST, out + 3, NULL));
    ck_assert(out[3] == -1);
    FAILS(gpud_read(client, b, GPUD_F32, 11, 0, out, NULL), GPUD_ERR_RANGE);
    FAILS(gpud_read(client, b, GPUD_F32, 11, GPUD_REST, out, NULL), GPUD_ERR_RANGE);
    FAILS(gpud_read(client, b, GPUD_F64, 0, 0, out, NULL), GPUD_ERR_ARG_TYPE);
    FAILS(gpud_write(client, (gpud_buffer){0}, GPUD_F32, 0, 0, in, NULL), GPUD_ERR_BAD_HANDLE);
    OK(gpud_fill(client, gpud_slice(b, 3, 0), gpud_u8(0)));
    FAILS(gpud_fill(client, gpud_slice(b, 11, 0), gpud_u8(0)), GPUD_ERR_RANGE);
    OK(gpud_read(client, b, GPUD_F32, 0, 10, out, NULL));
    ck_assert_mem_eq(out, in, sizeof in);
    OK(gpud_fill(client, gpud_slice(b, 8, GPUD_REST), gpud_u8(0)));
    OK(gpud_fill(client, gpud_arg_slice(gpud_slice(b, 2, 3), 1, GPUD_REST), gpud_u8(0)));
    OK(gpud_read(client, b, GPUD_F32, 0, GPUD_REST, out, NULL));
    const float want[] = {0, 1, 2, 0, 0, 5, 6, 7, 0, 0};
    ck_assert_mem_eq(out, want, sizeof want);
}
END_TEST

START_TEST(slices)
{
    gpud_buffer b = make_ten();
    gpud_buffer none = {0};
    FAILS(
        gpud_buffer_create_on(client, GPUD_NO_DEVICE, gpud_shape_1d(GPUD_F32, 10), 0, NULL, &none),
        GPUD_ERR_RANGE);
    gpud_arg past = gpud_arg_slice(gpud_slice(b, 2, 3), 4, GPUD_REST);
    ck_assert_uint_eq(past.first, UINT64_MAX);
    past = gpud_arg_slice(gpud_slice(b, 8, GPUD_REST), UINT64_MAX - 3, 1); /* does not wrap */
    ck_assert_uint_eq(past.first, UINT64_MAX);
    gpud_program *p = NULL;
    OK(gpud_program_create(client, NULL, &p));
    gpud_arg temp = gpud_program_temp(p, gpud_shape_1d(GPUD_F32, 10));
    gpud_arg param = gpud_program_param(p, "x", GPUD_PARAM_BUFFER, (gpud_shape){0});
    ck_assert_int_ge(gpud_program_copy(p, gpud_arg_slice(temp, 1, GPUD_REST), gpud_in(b)), 0);
    ck_assert_int_ge(gpud_program_copy(p, temp, param), 0);
    FAILS(gpud_program_copy(p, gpud_arg_slice(temp, 1, 0), param), GPUD_ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "GPUD_REST"));
    gpud_program_free(p);
}
END_TEST

/* ---- close with jobs outstanding ------------------------------------------------------------ */

struct told {
    unsigned count;
    int code;
    gpud_kernel kernel;
    gpud_program *program; /* freed by the first callback */
    bool free_job;
};

/* Everything that a callback may do, while the client closes. */
static void on_done(gpud_job *job, int code, void *user)
{
    struct told *told = user;
    uint32_t data = 0;
    gpud_arg args[] = {gpud_f32(1), gpud_host(&data, 1, GPUD_U32)};
    gpud_job *more = NULL;
    told->count++;
    told->code = code;
    if (code == GPUD_ERR_CLOSED) {
        FAILS(gpud_launch(client, told->kernel, args, 2, NULL, NULL, &more), GPUD_ERR_CLOSED);
        FAILS(gpud_ping(client, NULL), GPUD_ERR_CLOSED);
        FAILS(gpud_dispatch(client), GPUD_ERR_CLOSED);
    }
    gpud_program_free(told->program);
    told->program = NULL;
    if (told->free_job) {
        gpud_job_free(job);
    }
}

static gpud_program *small_program(gpud_kernel k, bool sealed)
{
    gpud_program *p = NULL;
    OK(gpud_program_create(client, "p", &p));
    gpud_arg x = gpud_program_param(p, "x", GPUD_PARAM_BUFFER, gpud_shape_1d(GPUD_F32, 4));
    gpud_arg args[] = {gpud_f32(1), x};
    ck_assert_int_eq(gpud_program_launch(p, k, args, 2, NULL), 0);
    if (sealed) {
        OK(gpud_program_seal(p));
    }
    return p;
}

/* _i: bit 0: asynchronous; bit 1: callbacks free the jobs; bit 2: and a sealed program */
START_TEST(closed_with_jobs_outstanding)
{
    uint32_t data[4] = {0};
    gpud_job *jobs[4] = {0};
    struct told told = {.kernel = find(), .free_job = (_i & 2) != 0};
    gpud_submit_options o = {
        .size = sizeof o,
        .flags = (_i & 1) != 0 ? 0 : GPUD_SUBMIT_HELD,
        .done = on_done,
        .user = &told,
    };
    told.program = small_program(told.kernel, (_i & 4) != 0);
    gpud_program *other = small_program(told.kernel, true);
    fake_mode(fake, FAKE_HOLD);
    for (unsigned i = 0; i < 4; i++) {
        gpud_arg args[] = {gpud_f32(1), gpud_host(&data[i], 1, GPUD_U32)};
        OK(gpud_launch(client, told.kernel, args, 2, NULL, &o, &jobs[i]));
    }
    fake_wait_held(fake, 4);
    fake_mode(fake, FAKE_SERVE);
    gpud_close(client);
    client = NULL;
    ck_assert_uint_eq(told.count, 4);
    ck_assert_int_eq(told.code, GPUD_ERR_CLOSED);
    for (unsigned i = 0; i < 4 && !told.free_job; i++) {
        ck_assert(gpud_job_done(jobs[i]));
        FAILS(gpud_wait(jobs[i], 0), GPUD_ERR_CLOSED);
        FAILS(gpud_wait_any(&jobs[i], 1, 0, NULL), GPUD_OK);
        ck_assert_uint_eq(data[i], 0);
        gpud_job_free(jobs[i]);
    }
    gpud_program_free(other);
}
END_TEST

/* All that a job tells, in its callback. */
static void on_answered(gpud_job *job, int code, void *user)
{
    unsigned *count = user;
    const void *data = NULL;
    size_t bytes = 0;
    gpud_job_times times = {.size = sizeof times};
    gpud_error error = {.size = sizeof error};
    ++*count;
    ck_assert_int_eq(code, 0);
    ck_assert(gpud_job_done(job));
    ck_assert_uint_ne(gpud_job_id(job), 0);
    OK(gpud_job_output(job, 0, 1, NULL, NULL));
    OK(gpud_job_output(job, 0, 1, NULL, &bytes));
    OK(gpud_job_output(job, 0, 1, &data, NULL));
    ck_assert_uint_eq(bytes, sizeof(uint32_t));
    OK(gpud_job_timing(job, &times));
    ck_assert_uint_eq(times.executed_ns, 1000);
    OK(gpud_job_error(job, &error));
    ck_assert_int_eq(error.code, 0);
    OK(gpud_wait(job, GPUD_FOREVER));
    OK(gpud_wait_any(&job, 1, GPUD_FOREVER, NULL));
    OK(gpud_cancel(job));
    FAILS(gpud_ping(client, NULL), GPUD_ERR_CLOSED);
    gpud_job_free(job);
}

/* Their answers are taken by gpud_close. */
START_TEST(closed_with_jobs_answered)
{
    uint32_t data[2] = {0};
    unsigned count = 0;
    gpud_kernel k = find();
    gpud_submit_options o = {
        .size = sizeof o,
        .flags = GPUD_SUBMIT_HELD,
        .done = on_answered,
        .user = &count,
    };
    for (unsigned i = 0; i < 2; i++) {
        gpud_arg args[] = {gpud_f32(1), gpud_host(&data[i], 1, GPUD_U32)};
        gpud_job *job = NULL;
        OK(gpud_launch(client, k, args, 2, NULL, &o, &job));
    }
    while (fake_executed(fake) < 2) {
        (void)usleep(1000);
    }
    gpud_close(client);
    client = NULL;
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(data[1], 0x01010101);
}
END_TEST

/* Jobs and programs that are freed in a child, before and after the client. */
START_TEST(forked_child_frees)
{
    uint32_t data[3] = {0};
    gpud_job *jobs[3] = {0};
    gpud_kernel k = find();
    gpud_program *p[2] = {small_program(k, true), small_program(k, false)};
    jobs[0] = launch(k, &data[0], GPUD_SUBMIT_HELD);
    OK(gpud_wait(jobs[0], GPUD_FOREVER));
    fake_mode(fake, FAKE_HOLD);
    jobs[1] = launch(k, &data[1], GPUD_SUBMIT_HELD);
    jobs[2] = launch(k, &data[2], GPUD_SUBMIT_HELD);
    fake_wait_held(fake, 2);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        gpud_job_free(jobs[0]);
        gpud_job_free(jobs[1]);
        gpud_program_free(p[0]);
        gpud_close(client);
        gpud_job_free(jobs[2]);
        gpud_program_free(p[1]);
        _exit(0);
    }
    int status = -1;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fake_release(fake, false);
    for (unsigned i = 0; i < 3; i++) {
        OK(gpud_wait(jobs[i], GPUD_FOREVER));
        gpud_job_free(jobs[i]);
    }
    gpud_program_free(p[0]);
    gpud_program_free(p[1]);
}
END_TEST

/* ---- a program and a restart ----------------------------------------------------------------- */

static void *restart_when_held(void *arg)
{
    fake_wait_held(fake, 1);
    fake_mode(fake, FAKE_SERVE);
    fake_restart(fake, false);
    return arg;
}

/* Its steps name what the daemon before has given, as long as it is not sealed. */
START_TEST(a_program_under_construction_survives_a_restart)
{
    gpud_kernel k = find();
    gpud_program *p = NULL;
    float image[4] = {0};
    gpud_arg args[] = {gpud_host_in(image, 4, GPUD_F32)};
    OK(gpud_program_create(client, "half", &p));
    gpud_arg x = gpud_program_param(p, "x", GPUD_PARAM_DATA, gpud_shape_1d(GPUD_F32, 4));
    gpud_arg launch_args[] = {gpud_f32(1), x};
    ck_assert_int_eq(gpud_program_launch(p, k, launch_args, 2, NULL), 0);
    fake_restart(fake, false);
    OK(gpud_ping(client, NULL));
    ck_assert_int_eq(gpud_program_launch(p, k, launch_args, 2, NULL), 1);
    OK(gpud_program_seal(p));
    fake_restart(fake, false); /* it is restored by what it was made of */
    OK(gpud_ping(client, NULL));
    OK(gpud_run(client, p, args, 1, NULL, NULL));
    ck_assert_uint_eq(fake_stale(fake), 0);
    gpud_program_free(p);
}
END_TEST

/* The daemon may not have got it, or have answered before its end. */
START_TEST(a_program_is_sealed_across_a_restart)
{
    gpud_kernel k = find();
    gpud_program *p = NULL;
    float image[4] = {0};
    gpud_arg args[] = {gpud_host_in(image, 4, GPUD_F32)};
    pthread_t restarter;
    OK(gpud_program_create(client, "half", &p));
    gpud_arg x = gpud_program_param(p, "x", GPUD_PARAM_DATA, gpud_shape_1d(GPUD_F32, 4));
    gpud_arg launch_args[] = {gpud_f32(1), x};
    ck_assert_int_eq(gpud_program_launch(p, k, launch_args, 2, NULL), 0);
    fake_mode(fake, FAKE_SILENT);
    ck_assert_int_eq(pthread_create(&restarter, NULL, restart_when_held, NULL), 0);
    OK(gpud_program_seal(p));
    ck_assert_int_eq(pthread_join(restarter, NULL), 0);
    fake_restart(fake, false);
    OK(gpud_ping(client, NULL));
    OK(gpud_run(client, p, args, 1, NULL, NULL));
    ck_assert_uint_eq(fake_stale(fake), 0);
    gpud_program_free(p);
}
END_TEST

/* ---- not admitted --------------------------------------------------------------------------- */

/* FAULT 23: a request without room for it yet
 * required: its number stays open and the client repeats it: the session goes on
 * defence: `front/requests/intake.c`: admit, early; `client/src/link/answers.c`: not_admitted
 * also: `front_admitted_test`; `test_client_edge`: never_admitted
 * mutants: number-open, not-admitted */
/* The daemon has no room for a request, and waits for its number. */
START_TEST(not_admitted_at_first)
{
    static const int codes[] = {GPUD_ERR_BUSY, GPUD_ERR_NOMEM};
    uint32_t data = 0;
    gpud_kernel k = find();
    fake_not_admit(fake, 3, codes[_i]);
    gpud_buffer b = make(4);
    fake_not_admit(fake, 3, codes[_i]);
    gpud_job *job = launch(k, &data, GPUD_SUBMIT_HELD);
    OK(gpud_wait(job, GPUD_FOREVER));
    gpud_job_free(job);
    OK(gpud_buffer_free(client, b));
    ck_assert_uint_eq(fake_executed(fake), 1);
    ck_assert_uint_eq(fake_twice(fake), 0);
    ck_assert_uint_eq(fake_gaps(fake), 0);
}
END_TEST

/* One that will never be admitted: its caller is told, and the daemon does not wait for ever. */
START_TEST(never_admitted)
{
    gpud_buffer b;
    fake_not_admit(fake, 1, GPUD_ERR_UNSUPPORTED);
    FAILS(gpud_buffer_create(client, gpud_shape_1d(GPUD_F32, 4), 0, "b", &b), GPUD_ERR_UNSUPPORTED);
    (void)make(4);
    while (fake_gaps(fake) != 0) {
        OK(gpud_ping(client, NULL));
    }
    ck_assert_uint_eq(fake_twice(fake), 0);
}
END_TEST

/* It ends here: the daemon that did not admit it has nothing to cancel. _i 1: one that cancels by
 * nothing but its own number. */
START_TEST(cancelled_before_it_was_admitted)
{
    uint32_t data = 0;
    gpud_kernel k = find();
    if (_i == 1) {
        fake_minor(fake, 2);
        fake_drop(fake);
        OK(gpud_ping(client, NULL));
    }
    fake_not_admit(fake, UINT32_MAX, GPUD_ERR_BUSY);
    gpud_job *job = launch(k, &data, GPUD_SUBMIT_BLOCK);
    OK(gpud_cancel(job));
    ck_assert(gpud_job_done(job));
    FAILS(gpud_wait(job, GPUD_FOREVER), GPUD_ERR_CANCELLED);
    gpud_job_free(job);
    fake_not_admit(fake, 0, GPUD_ERR_BUSY);
    (void)make(4);
    while (fake_gaps(fake) != 0) {
        OK(gpud_ping(client, NULL));
    }
    ck_assert_uint_eq(fake_executed(fake), 0);
    ck_assert_uint_eq(fake_twice(fake), 0);
}
END_TEST

/* ---- callbacks that go on working ----------------------------------------------------------- */

struct chain {
    gpud_kernel kernel;
    uint32_t data;
    unsigned left;
    unsigned done;
    bool wait; /* callbacks wait for their job themselves */
};

static void submit_next(struct chain *chain);

static void on_link(gpud_job *job, int code, void *user)
{
    struct chain *chain = user;
    ck_assert_int_eq(code, 0);
    OK(gpud_cancel(job)); /* it has ended: nothing happens */
    gpud_job_free(job);
    chain->done++;
    if (chain->left > 0) {
        submit_next(chain);
    }
}

static void submit_next(struct chain *chain)
{
    gpud_arg args[] = {gpud_f32(1), gpud_host(&chain->data, 1, GPUD_U32)};
    gpud_submit_options o = {
        .size = sizeof o,
        .flags = GPUD_SUBMIT_HELD | GPUD_SUBMIT_BLOCK,
        .done = on_link,
        .user = chain,
    };
    gpud_job *job = NULL;
    chain->left--;
    OK(gpud_launch(client, chain->kernel, args, 2, NULL, &o, &job));
    if (chain->wait) {
        uint32_t data = 0;
        gpud_arg own[] = {gpud_f32(1), gpud_host(&data, 1, GPUD_U32)};
        OK(gpud_call(client, chain->kernel, own, 2, NULL));
        ck_assert_uint_eq(data, 0x01010101u);
    }
}

/* Each job is submitted by the callback of the one before, its own job freed there. */
START_TEST(callbacks_submit)
{
    struct chain chain = {.kernel = find(), .left = 100, .wait = _i == 1};
    submit_next(&chain);
    while (chain.done < 100) {
        struct pollfd fd = {.fd = gpud_fd(client), .events = POLLIN};
        ck_assert_int_ge(poll(&fd, 1, 60000), 1);
        OK(gpud_dispatch(client));
    }
    ck_assert_uint_eq(chain.data & 0xff, 100);
}
END_TEST

/* ---- waiting -------------------------------------------------------------------------------- */

static void see_refused(gpud_job *job, int code, void *user)
{
    gpud_error error = {.size = sizeof error};
    ck_assert_int_eq(code, GPUD_ERR_BUSY);
    ck_assert_int_eq(gpud_last_error()->code, GPUD_ERR_BUSY);
    ck_assert_uint_eq(gpud_last_error()->retry_after_ns, 1000000);
    OK(gpud_job_error(job, &error));
    ck_assert_str_ne(error.text, "");
    ck_assert_str_eq(gpud_last_error()->text, error.text);
    ck_assert_uint_eq(gpud_job_id(job), 0);
    ++*(unsigned *)user;
    gpud_job_free(job);
}

START_TEST(a_callback_learns_why_its_job_was_refused)
{
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    gpud_job *job = NULL;
    unsigned seen = 0;
    gpud_arg args[] = {gpud_f32(1), gpud_inout(b)};
    gpud_submit_options o = {.size = sizeof o, .done = see_refused, .user = &seen};
    fake_mode(fake, FAKE_BUSY);
    OK(gpud_launch(client, k, args, 2, NULL, &o, &job));
    OK(gpud_flush(client, GPUD_FOREVER));
    ck_assert_uint_eq(seen, 1);
}
END_TEST

START_TEST(waiting_for_any)
{
    enum { COUNT = 1000 };
    static gpud_job *jobs[COUNT];
    static uint32_t data[COUNT];
    uint32_t index = 7;
    gpud_kernel k = find();
    memset(jobs, 0, sizeof jobs);
    FAILS(gpud_wait_any(NULL, 0, 0, &index), GPUD_ERR_INVALID);
    FAILS(gpud_wait_any(NULL, 5, 0, &index), GPUD_ERR_INVALID);
    FAILS(gpud_wait_any(jobs, 0, 0, &index), GPUD_ERR_INVALID);
    FAILS(gpud_wait_any(jobs, COUNT, 0, &index), GPUD_ERR_INVALID); /* all NULL */
    ck_assert_uint_eq(index, 7);
    for (unsigned i = 0; i < COUNT; i++) {
        jobs[i] = launch(k, &data[i], GPUD_SUBMIT_HELD | GPUD_SUBMIT_BLOCK);
    }
    for (unsigned left = COUNT; left > 0; left--) {
        OK(gpud_wait_any(jobs, COUNT, GPUD_FOREVER, &index));
        ck_assert_ptr_nonnull(jobs[index]);
        OK(gpud_wait(jobs[index], 0));
        gpud_job_free(jobs[index]);
        jobs[index] = NULL;
    }
    fake_mode(fake, FAKE_HOLD);
    jobs[5] = launch(k, &data[5], GPUD_SUBMIT_HELD);
    FAILS(gpud_wait_any(jobs, COUNT, 0, NULL), GPUD_ERR_TIMEOUT);
    FAILS(gpud_wait_any(jobs, COUNT, SECOND / 100, NULL), GPUD_ERR_TIMEOUT);
    fake_wait_held(fake, 1);
    fake_release(fake, false);
    OK(gpud_wait_any(jobs, COUNT, GPUD_FOREVER - 1, &index));
    ck_assert_uint_eq(index, 5);
    gpud_job_free(jobs[5]);
}
END_TEST

START_TEST(times_of_every_size)
{
    static const uint64_t huge[] = {GPUD_FOREVER, GPUD_FOREVER - 1, UINT64_MAX / 2, INT64_MAX};
    uint32_t data = 0;
    gpud_kernel k = find();
    for (unsigned i = 0; i < sizeof huge / sizeof huge[0]; i++) {
        gpud_client *c = NULL;
        gpud_options o = {
            .size = sizeof o,
            .connect_timeout_ns = huge[i],
            .timeout_ns = huge[i],
            .reconnect_ns = huge[i],
        };
        OK(gpud_open(fake_url(fake), &o, &c));
        OK(gpud_ping(c, NULL));
        gpud_close(c);
        gpud_arg args[] = {gpud_f32(1), gpud_host(&data, 1, GPUD_U32)};
        gpud_submit_options s = {
            .size = sizeof s,
            .flags = GPUD_SUBMIT_HELD, /* the fake tells events to one client only */
            .deadline_ns = huge[i],
            .time_limit_ns = huge[i],
        };
        gpud_job *job = NULL;
        OK(gpud_launch(client, k, args, 2, NULL, &s, &job));
        OK(gpud_wait(job, huge[i]));
        OK(gpud_flush(client, huge[i]));
        OK(gpud_flush(client, 0));
        gpud_job_free(job);
    }
    fake_mode(fake, FAKE_HOLD);
    gpud_job *job = launch(k, &data, GPUD_SUBMIT_HELD);
    FAILS(gpud_wait(job, 0), GPUD_ERR_TIMEOUT);
    FAILS(gpud_wait(job, 1), GPUD_ERR_TIMEOUT);
    FAILS(gpud_flush(client, 0), GPUD_ERR_TIMEOUT);
    fake_wait_held(fake, 1);
    fake_release(fake, false);
    OK(gpud_flush(client, GPUD_FOREVER));
    OK(gpud_wait(job, 0));
    gpud_job_free(job);
}
END_TEST

/* ---- threads -------------------------------------------------------------------------------- */

#define THREADS 8

static void *mixed(void *arg)
{
    gpud_kernel k = *(gpud_kernel *)arg;
    uint32_t data[4] = {0};
    for (unsigned i = 0; i < 40; i++) {
        gpud_job *jobs[4] = {0};
        uint32_t index = 0;
        for (unsigned j = 0; j < 4; j++) {
            gpud_arg args[] = {gpud_f32(1), gpud_host(&data[j], 1, GPUD_U32)};
            gpud_submit_options o = {
                .size = sizeof o,
                .flags = GPUD_SUBMIT_BLOCK | (j % 2 == 0 ? GPUD_SUBMIT_HELD : 0),
            };
            if (gpud_launch(client, k, args, 2, NULL, &o, &jobs[j]) != 0) {
                return "launch";
            }
        }
        int code = gpud_cancel(jobs[1]);
        gpud_job_free(jobs[3]); /* it goes on without us */
        jobs[3] = NULL;
        if ((code != 0 && code != GPUD_ERR_NOT_FOUND) ||
            gpud_wait_any(jobs, 4, GPUD_FOREVER, &index) != 0 || gpud_dispatch(client) != 0 ||
            gpud_flush(client, GPUD_FOREVER) != 0) {
            return "wait";
        }
        for (unsigned j = 0; j < 3; j++) {
            if (!gpud_job_done(jobs[j])) {
                return "flush";
            }
            gpud_job_free(jobs[j]);
        }
    }
    return NULL;
}

static void *breaker(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 10; i++) {
        fake_drop(fake);
        (void)usleep(20000);
    }
    return NULL;
}

/* Eight threads on one client; in the second round a ninth breaks the connection. */
START_TEST(threads_of_all_sorts)
{
    gpud_kernel k = find();
    pthread_t threads[THREADS + 1];
    unsigned count = _i == 1 ? THREADS + 1 : THREADS;
    for (unsigned i = 0; i < count; i++) {
        ck_assert_int_eq(pthread_create(&threads[i], NULL, i < THREADS ? mixed : breaker, &k), 0);
    }
    for (unsigned i = 0; i < count; i++) {
        void *failed = NULL;
        ck_assert_int_eq(pthread_join(threads[i], &failed), 0);
        ck_assert_msg(failed == NULL, "%s: %s", (const char *)failed, gpud_last_error()->text);
    }
    ck_assert_uint_eq(fake_gaps(fake), 0);
}
END_TEST

/* ---- nonsense ------------------------------------------------------------------------------- */

static int seal(gpud_client *c, gpud_kernel k, gpud_program **ret_program)
{
    OK(gpud_program_create(c, "p", ret_program));
    gpud_arg x =
        gpud_program_param(*ret_program, "x", GPUD_PARAM_BUFFER, gpud_shape_1d(GPUD_F32, 4));
    gpud_arg args[] = {gpud_f32(1), x};
    (void)gpud_program_launch(*ret_program, k, args, 2, NULL);
    return gpud_program_seal(*ret_program);
}

/* One of each call. Codes are checked against `expected` if that is not 0. */
static void try_all(gpud_client *c, gpud_kernel k, gpud_buffer b, int expected)
{
    gpud_kernel found = {0};
    gpud_module m = {0};
    gpud_buffer made = {0};
    gpud_table *t = NULL;
    gpud_program *p = NULL;
    gpud_job_desc desc = {.size = sizeof desc};
    uint32_t data = 0;
    float x[4] = {0};
    char text[64];
    gpud_arg args[] = {gpud_f32(1), gpud_host(&data, 1, GPUD_U32)};
    const int codes[] = {
        gpud_ping(c, NULL),
        gpud_kernel_find(c, "other", &found),
        gpud_module_load(c, GPUD_LANG_OPENCL, "kernel", 6, NULL, &m),
        gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &made),
        gpud_query(c, "devices", NULL, &t),
        gpud_job_info(c, 1, &desc),
        gpud_explain(c, 1, text, sizeof text),
        gpud_control(c, "drain", NULL),
        gpud_job_cancel(c, 1),
        gpud_call(c, k, args, 2, NULL),
        gpud_read(c, b, GPUD_F32, 0, GPUD_REST, x, NULL),
        seal(c, k, &p),
    };
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        ck_assert_int_le(codes[i], 0);
        ck_assert_msg(expected == 0 || codes[i] == expected, "call %u: %s instead of %s: %s", i,
                      gpud_err_name(codes[i]), gpud_err_name(expected), gpud_last_error()->text);
    }
    ck_assert(codes[1] == 0 || found.id == 0);
    ck_assert(codes[2] == 0 || m.id == 0);
    ck_assert(codes[3] == 0 || made.id == 0);
    ck_assert(codes[4] == 0 || t == NULL);
    gpud_table_free(t);
    gpud_program_free(p);
}

START_TEST(nonsense_is_a_protocol_error)
{
    static const enum fake_garble how[] = {FAKE_GARBLE_KIND, FAKE_GARBLE_SHORT, FAKE_GARBLE_LONG};
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    fake_garble(fake, how[_i], 0);
    try_all(client, k, b, GPUD_ERR_PROTOCOL);
    fake_garble(fake, FAKE_GARBLE_NOT, 0);
    OK(gpud_ping(client, NULL));
}
END_TEST

/* A code that this library does not know yet is passed on. */
START_TEST(errors_without_a_code_are_internal)
{
    gpud_kernel k = find();
    gpud_buffer b = make(4);
    fake_garble(fake, FAKE_GARBLE_ERROR, (uint64_t)_i);
    try_all(client, k, b, _i == 2 ? -999 : GPUD_ERR_INTERNAL);
    fake_garble(fake, FAKE_GARBLE_NOT, 0);
    OK(gpud_ping(client, NULL));
}
END_TEST

/* A new session. The listener of NNG 1.5.2 stops for good when a client leaves in the handshake, as
 * one that lost its connection may have done: then another daemon serves it. */
static void open_anew(gpud_options *o, gpud_client **ret_client)
{
    fake_garble(fake, FAKE_GARBLE_NOT, 0);
    if (gpud_open(fake_url(fake), o, ret_client) != 0) {
        fake_leave(fake);
        fake = fake_start(NULL);
        o->connect_timeout_ns = 60 * SECOND;
        OK(gpud_open(fake_url(fake), o, ret_client));
    }
}

/* Whatever comes: every call returns, nothing is out of bounds, and a new client is well served. */
START_TEST(chance_answers)
{
    gpud_kernel k = {0};
    for (uint64_t seed = 0; seed < 25; seed++) {
        gpud_client *c = NULL;
        gpud_buffer b = {0};
        gpud_options o = {.size = sizeof o, .timeout_ns = SECOND / 50};
        open_anew(&o, &c);
        (void)gpud_kernel_find(c, "touch", &k);
        (void)gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b);
        fake_garble(fake, FAKE_GARBLE_RANDOM, (uint64_t)_i * 1000 + seed);
        try_all(c, k, b, 0);
        gpud_close(c);
    }
    fake_garble(fake, FAKE_GARBLE_NOT, 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("edge");
    TCase *t = tcase_create("edge");
    tcase_add_checked_fixture(t, start, stop);
    tcase_set_timeout(t, 100);
    tcase_add_test(t, a_daemon_that_comes_later);
    tcase_add_test(t, parts);
    tcase_add_test(t, slices);
    tcase_add_loop_test(t, closed_with_jobs_outstanding, 0, 8);
    tcase_add_test(t, closed_with_jobs_answered);
    tcase_add_loop_test(t, not_admitted_at_first, 0, 2);
    tcase_add_test(t, never_admitted);
    tcase_add_test(t, wishes_of_the_environment);
    tcase_add_test(t, nobody_there);
    tcase_add_test(t, errors_tell_no_token);
    tcase_add_loop_test(t, cancelled_before_it_was_admitted, 0, 2);
    tcase_add_test(t, a_program_under_construction_survives_a_restart);
    tcase_add_test(t, a_program_is_sealed_across_a_restart);
    tcase_add_test(t, forked_child_frees);
    tcase_add_loop_test(t, callbacks_submit, 0, 2);
    tcase_add_test(t, a_callback_learns_why_its_job_was_refused);
    tcase_add_test(t, waiting_for_any);
    tcase_add_test(t, times_of_every_size);
    tcase_add_loop_test(t, threads_of_all_sorts, 0, 2);
    tcase_add_loop_test(t, nonsense_is_a_protocol_error, 0, 3);
    tcase_add_loop_test(t, errors_without_a_code_are_internal, 0, 5);
    tcase_add_loop_test(t, chance_answers, 0, 4);
    suite_add_tcase(suite, t);
    return run_tests(suite);
}
