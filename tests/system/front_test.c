/* The front and the launcher that are killed, ended or doubled, and clients that vanish. */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/system/harness/load.h"

#define TAKEN  20u
#define EVENTS 16
/* Of the last answer: more than lies in a socket; the daemon waits a second for it to be taken. */
#define LARGE 200000u

static gpud_buffer numbers(gpud_client *c, unsigned count)
{
    float values[1000];
    for (unsigned i = 0; i < count; i++) {
        values[i] = (float)i;
    }
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, count), 0, "numbers", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, values, NULL));
    return b;
}

static void check_numbers(gpud_client *c, gpud_buffer b, unsigned count)
{
    float values[1000] = {0};
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, values, NULL));
    for (unsigned i = 0; i < count; i++) {
        ck_assert_float_eq(values[i], (float)i);
    }
}

/* FAULT 22: front killed
 * required: workers, buffers and jobs are adopted, clients continue, nothing runs twice
 * defence: `front/devices/adopt.c`; `front/requests/hello.c`: resume;
 *   `front/modules/building.c`: compiled
 * also: `test_system_front`: adopted_writer; `front_session_test`:
 *   a_daemon_that_does_not_know_skips_what_was_taken; `front_load_test`: the_front_hands_over
 * mutants: adoption, adopted-buffers, adopted-jobs, compile-handed-over, taken-answers */
/* Ten times: clients find the new front, workers and what lies in them stay. Simulated, and with a
 * real driver. */
START_TEST(front_killed_under_load)
{
    struct daemon d;
    struct load load;
    gpud_client *c = daemon_begin(&d, "--backend", _i == 0 ? "sim" : "opencl", "--backend-options",
                                  _i == 0 ? "devices=1,items=10000000" : "", "--set",
                                  "jobs.session_linger_ms=600000", NULL); /* c is idle meanwhile */
    gpud_buffer b = numbers(c, 1000);
    pid_t worker = daemon_worker(&d, 0);
    pid_t launcher = daemon_launcher(&d);
    ck_assert_int_gt(worker, 0);
    ck_assert_int_gt(launcher, 0);
    load_start(&load, d.url, 3);
    uint64_t end_ns = now_ns() + (storm_seconds(5) - 5) * SECOND;
    unsigned kills = 0;
    while (kills < 10 || now_ns() < end_ns) {
        pause_ms(200);
        daemon_kill(&d);
        daemon_spawn(&d);
        daemon_wait_ready(&d);
        kills++;
    }
    storm_told("front", _i, kills, load_stop(&load), 0);
    ck_assert_int_eq(daemon_worker(&d, 0), worker);
    ck_assert_int_eq(daemon_launcher(&d), launcher);
    check_numbers(c, b, 1000);
    daemon_end(&d, c);
}
END_TEST

/* As `systemctl restart` does it: clients under load notice nothing. */
START_TEST(front_restarted_under_load)
{
    struct daemon d;
    struct load load;
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "devices=1,items=10000000",
                     "--set", "jobs.session_linger_ms=600000", NULL);
    gpud_buffer b = numbers(c, 1000);
    pid_t worker = daemon_worker(&d, 0);
    pid_t launcher = daemon_launcher(&d);
    load_start(&load, d.url, 3);
    for (unsigned i = 0; i < 10; i++) {
        pause_ms(100);
        daemon_hand_over(&d);
        daemon_spawn(&d);
        daemon_wait_ready(&d);
    }
    (void)load_stop(&load);
    ck_assert_int_eq(daemon_worker(&d, 0), worker);
    ck_assert_int_eq(daemon_launcher(&d), launcher);
    check_numbers(c, b, 1000);
    daemon_end(&d, c);
}
END_TEST

/* A child of fork has the socket of the connection that was lost, and so keeps it open. */
START_TEST(a_reconnected_client_with_a_child_falls_idle)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    gpud_buffer b = numbers(c, 10);
    pid_t child = fork();
    ck_assert_int_ge(child, 0);
    if (child == 0) {
        for (;;) {
            (void)pause();
        }
    }
    daemon_hand_over(&d);
    daemon_spawn(&d);
    check_numbers(c, b, 10);
    struct pollfd p = {.fd = gpud_fd(c), .events = POLLIN};
    int readable = 1;
    for (unsigned i = 0; readable > 0 && i < 1000; i++) { /* frames that are under way come first */
        ck_gpud_ok(gpud_dispatch(c));
        readable = poll(&p, 1, 200);
    }
    ck_assert_int_eq(readable, 0);
    ck_assert_int_eq(kill(child, SIGKILL), 0);
    ck_assert_int_eq(waitpid(child, NULL, 0), child);
    daemon_end(&d, c);
}
END_TEST

enum { PARTS = 4, PART = 250 };

/* Launches without waiting, the job's number known. */
static void launch_detached(gpud_client *c, gpud_buffer b, unsigned part, unsigned count)
{
    gpud_arg args[] = {gpud_f32((float)(part + 1)),
                       gpud_arg_slice(gpud_out(b), part * PART, count)};
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_DETACHED};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, &o, &job));
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job) != 0);
    gpud_job_free(job);
}

struct leaver {
    const char *url;
    bool closes; /* before it ends */
};

static int leaver_work(void *data)
{
    const struct leaver *w = data;
    gpud_buffer b;
    gpud_client *c = client_open(w->url);
    ck_gpud_ok(gpud_buffer_open(c, "parts", &b));
    for (unsigned i = 0; i < PARTS; i++) {
        launch_detached(c, b, i, PART);
    }
    if (w->closes) {
        gpud_close(c);
    }
    return 0;
}

static unsigned sessions_connected(gpud_client *c)
{
    gpud_table *t = NULL;
    unsigned count = 0;
    ck_gpud_ok(gpud_query(c, "sessions", NULL, &t));
    uint32_t column = (uint32_t)gpud_table_find(t, "state");
    for (uint32_t i = 0; i < gpud_table_rows(t); i++) {
        count += strcmp(gpud_table_text(t, i, column), "connected") == 0;
    }
    gpud_table_free(t);
    return count;
}

/* Answers that are not sent before the front ends: the next front adopts them with the worker. _i
 * 1: the client only lost its connection, and the daemon keeps its session for a while. */
START_TEST(detached_jobs_outlive_a_restart)
{
    struct daemon d;
    float out[PARTS * PART] = {0};
    static char far_url[64];
    static char near_url[DAEMON_PATH];
    tcp_url(far_url, sizeof far_url);
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "items=500", "--set",
                   "jobs.window=1", "--set", "jobs.session_linger_ms=600000", "--listen", near_url,
                   "--listen", far_url, NULL);
    (void)snprintf(near_url, sizeof near_url, "%s", d.url);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    struct leaver w = {_i == 0 ? near_url : far_url, _i == 0};
    if (_i == 1) {
        (void)setenv("GPUD_LANE", "nng", 1); /* there are no rings over tcp */
    }
    gpud_client *c = client_open(w.url);
    gpud_buffer b = numbers(c, PARTS * PART);
    ck_gpud_ok(gpud_buffer_publish(c, b, "parts", GPUD_INOUT, 0));
    ck_assert_int_eq(process_wait(process_start(leaver_work, &w)), 0);
    ck_until(sessions_connected(c) == 1);
    ck_assert_uint_eq(query_value(c, "status", NULL, "sessions"), w.closes ? 1 : 2);
    ck_assert_uint_gt(query_value(c, "status", NULL, "queued"), 0);
    daemon_hand_over(&d);
    ck_assert(daemon_logged(&d, "handing over once"));
    daemon_spawn(&d);
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, out, NULL));
    for (unsigned i = 0; i < PARTS * PART; i++) {
        ck_assert_float_eq(out[i], (float)(i / PART + 1));
    }
    daemon_end(&d, c);
}
END_TEST

/* Otherwise a client that submits jobs and disconnects, again and again, puts off the next
 * front. */
START_TEST(detached_jobs_do_not_put_off_a_restart)
{
    struct daemon d;
    float out[PARTS * PART] = {0};
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000",
                                  "--set", "jobs.window=1", NULL);
    gpud_buffer b = numbers(c, PARTS * PART);
    gpud_buffer large = {0};
    gpud_arg next[] = {gpud_f32(9), gpud_arg_slice(gpud_out(b), 3 * PART, 1)};
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_job *running = NULL;
    gpud_job *refused = NULL;
    gpud_job *waits = NULL;
    ck_gpud_ok(gpud_buffer_publish(c, b, "parts", GPUD_INOUT, 0));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 8000), 0, NULL, &large));
    gpud_arg args[] = {gpud_f32(7), gpud_out(large)};
    ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &running)); /* for eight seconds */
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(running) != 0);
    gpud_client *leaves = client_open(d.url);
    gpud_buffer opened;
    ck_gpud_ok(gpud_buffer_open(leaves, "parts", &opened));
    launch_detached(leaves, opened, 1, 1);
    gpud_close(leaves);
    ck_until(query_value(c, "status", NULL, "sessions") == 1);
    ck_assert_int_eq(kill(d.pid, SIGUSR1), 0);
    ck_until(daemon_logged(&d, "handing over once"));
    gpud_submit_options o = {.size = sizeof o, .flags = GPUD_SUBMIT_DETACHED};
    ck_gpud_ok(gpud_launch(c, fill, next, 2, NULL, &o, &refused));
    ck_assert_int_eq(gpud_wait(refused, PATIENCE), GPUD_ERR_BUSY);
    ck_assert_uint_gt(gpud_last_error()->retry_after_ns, 0);
    o.flags |= GPUD_SUBMIT_BLOCK; /* for the next front */
    ck_gpud_ok(gpud_launch(c, fill, next, 2, NULL, &o, &waits));
    ck_assert_int_eq(daemon_wait(&d), 0);
    daemon_spawn(&d);
    ck_gpud_ok(gpud_wait(waits, 2 * PATIENCE));
    ck_gpud_ok(gpud_wait(running, 2 * PATIENCE));
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, out, NULL));
    ck_assert_float_eq(out[PART], 2);
    ck_assert_float_eq(out[3 * PART], 9);
    gpud_job_free(running);
    gpud_job_free(refused);
    gpud_job_free(waits);
    daemon_end(&d, c);
}
END_TEST

/* Running, with the worker, and queued, accepted or not: all are done by the next front. */
START_TEST(jobs_outlive_a_restart)
{
    struct daemon d;
    static float out[TAKEN * 1000];
    gpud_job *job[TAKEN];
    /* seconds of work: much more than a busy host takes to submit it and to end the front */
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=2000", NULL);
    gpud_kernel fill = kernel_find(c, "fill");
    for (unsigned i = 0; i < TAKEN; i++) {
        gpud_arg args[] = {gpud_f32((float)i), gpud_host_out(out + i * 1000, 1000, GPUD_F32)};
        gpud_submit_options o = {.size = sizeof o, .flags = i % 2 == 0 ? 0 : GPUD_SUBMIT_HELD};
        ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, &o, &job[i]));
    }
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job[TAKEN - 2]) != 0);
    ck_assert(!gpud_job_done(job[TAKEN - 1]));
    ck_assert_uint_gt(query_value(c, "status", NULL, "queued"), 0);
    daemon_hand_over(&d);
    daemon_spawn(&d);
    for (unsigned i = 0; i < TAKEN; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        ck_assert_float_eq(out[i * 1000 + 999], (float)i);
        gpud_job_free(job[i]);
    }
    ck_assert(!daemon_logged(&d, "draining"));
    daemon_end(&d, c);
}
END_TEST

/* The next front learns of all the numbers behind a long job: it has room for more of them. */
START_TEST(many_answers_behind_a_long_job)
{
    enum { MANY = 17000 };
    struct daemon d;
    (void)setenv("GPUD_LANE", "nng", 1);
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0,script=launch:2=hang",
                     "--set", "jobs.time_limit_ms=1000000", NULL);
    gpud_buffer x = numbers(c, 1000);
    gpud_buffer y = numbers(c, 1000);
    gpud_arg args[] = {gpud_f32(1), gpud_in(x), gpud_inout(y)};
    gpud_buffer_desc desc = {.size = sizeof desc};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &job));
    job_await_dispatch(c, job);
    for (unsigned i = 0; i < MANY; i++) {
        ck_gpud_ok(gpud_buffer_info(c, x, &desc));
    }
    daemon_hand_over(&d);
    daemon_spawn(&d);
    ck_gpud_ok(gpud_buffer_info(c, x, &desc));
    ck_assert(!gpud_job_done(job));
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0);
    ck_gpud_err(gpud_wait(job, PATIENCE), GPUD_ERR_WORKER_LOST);
    gpud_job_free(job);
    daemon_end(&d, c);
}
END_TEST

/* A job that changes its inputs continues in its worker while there is no front. Its client asks
 * the next front, which knows the job: the answer arrives, and the job has run once. */
START_TEST(adopted_writer)
{
    struct daemon d;
    float values[1000];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_buffer x = numbers(c, 1000);
    gpud_buffer y = numbers(c, 1000);
    gpud_arg args[] = {gpud_f32(1), gpud_in(x), gpud_inout(y)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, axpy, args, 3, NULL, NULL, &job));
    job_await_dispatch(c, job);
    daemon_kill(&d);
    daemon_spawn(&d);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    ck_gpud_ok(gpud_read(c, y, GPUD_F32, 0, GPUD_REST, values, NULL));
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_float_eq(values[i], 2 * (float)i);
    }
    daemon_end(&d, c);
}
END_TEST

/* A worker that does not report its inventory to the next front is ended before the front serves
 * clients, and another worker runs its job. */
START_TEST(silent_worker)
{
    struct daemon d;
    float x[1000];
    float y[1000];
    for (unsigned i = 0; i < 1000; i++) {
        x[i] = y[i] = (float)i;
    }
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_arg args[] = {gpud_f32(1), gpud_host(x, 1000, GPUD_F32), gpud_host(y, 1000, GPUD_F32)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, axpy, args, 3, NULL, NULL, &job));
    job_await_dispatch(c, job);
    pid_t worker = daemon_worker(&d, 0);
    daemon_kill(&d);
    ck_assert_int_eq(kill(worker, SIGSTOP), 0);
    daemon_spawn(&d);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_float_eq(y[i], 2 * (float)i);
    }
    ck_assert_int_ne(daemon_worker(&d, 0), worker);
    ck_assert(daemon_logged(&d, "did not report its inventory in time"));
    daemon_end(&d, c);
}
END_TEST

/* The same with content that was never there before: the next front knows what the job writes. */
START_TEST(adopted_first_writer)
{
    struct daemon d;
    float values[1000];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_buffer y = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 1000), 0, NULL, &y));
    gpud_arg args[] = {gpud_f32(7), gpud_out(y)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job));
    job_await_dispatch(c, job);
    daemon_kill(&d);
    daemon_spawn(&d);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    ck_gpud_ok(gpud_read(c, y, GPUD_F32, 0, GPUD_REST, values, NULL));
    ck_assert_float_eq(values[999], 7);
    daemon_end(&d, c);
}
END_TEST

/* FAULT 22: launcher killed
 * required: all processes start anew, and the log reports it; sources that wait for the
 *   compiler are compiled under the next launcher
 * defence: `front/pipeline_launcher.c`: on_launcher_lost, pipeline_start_anew;
 *   `front/modules/compiler.c`: compiler_relink, may_start
 * also: `front_compiler_test`: a_lost_launcher
 * mutants: launcher-lost, compile-waits */
/* Workers end with the launcher. Everything starts anew, and clients get an error for what is
 * lost. */
START_TEST(launcher_killed)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_buffer plain = numbers(c, 10);
    gpud_buffer sealed = numbers(c, 10);
    ck_gpud_ok(gpud_buffer_seal(c, sealed));
    pid_t worker = daemon_worker(&d, 0);
    pid_t launcher = daemon_launcher(&d);
    ck_assert_int_eq(kill(launcher, SIGKILL), 0);
    daemon_wait_worker(&d, 0, worker);
    ck_assert_int_ne(daemon_launcher(&d), launcher);
    ck_assert_int_gt(daemon_launcher(&d), 0);
    float x[2] = {1, 2};
    float y[2] = {1, 1};
    gpud_arg args[] = {gpud_f32(3), gpud_host(x, 2, GPUD_F32), gpud_host(y, 2, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, axpy, args, 3, NULL));
    ck_assert_float_eq(y[1], 7);
    check_numbers(c, sealed, 10);
    ck_gpud_err(gpud_read(c, plain, GPUD_F32, 0, GPUD_REST, x, NULL), GPUD_ERR_BUFFER_LOST);
    ck_assert(daemon_logged(&d, "its worker was ended: the launcher ended"));
    ck_assert(!daemon_logged(&d, "by hand"));
    ck_assert(daemon_logged(&d, "device 0 ready again"));
    daemon_end(&d, c);
}
END_TEST

static void count_event(gpud_client *c, const gpud_event *event, void *user)
{
    unsigned *counts = user;
    (void)c;
    ck_assert_int_lt(event->kind, EVENTS);
    counts[event->kind]++;
}

/* Daemon, launcher and workers are new, and no worker has reported yet for which target to
 * compile. */
START_TEST(modules_outlive_everything)
{
    static const char *const source = "//@kernel twice<T: f32>(inout T x[n]) over n\n{\n"
                                      "    x[i] = x[i] * 2;\n}\n";
    struct daemon d;
    unsigned events[EVENTS] = {0};
    float x[4] = {1, 2, 3, 4};
    gpud_client *c = daemon_begin(&d, "--backend", "opencl", NULL);
    gpud_module m = {0};
    gpud_kernel twice = {0};
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_DIALECT, source, strlen(source), NULL, &m));
    ck_gpud_ok(gpud_module_kernel(c, m, "twice", &twice));
    ck_gpud_ok(gpud_set_event_cb(c, count_event, events));
    daemon_stop(&d);
    daemon_spawn(&d);
    ck_until(daemon_worker(&d, 0) != 0);
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_eq(kill(worker, SIGSTOP), 0); /* it opens its device on request only */
    gpud_client *other = client_open(d.url);
    gpud_arg args[] = {gpud_host(x, 4, GPUD_F32)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, twice, args, 1, NULL, NULL, &job));
    ck_until(gpud_wait(job, 10 * MS) != GPUD_ERR_TIMEOUT ||
             query_value(other, "status", NULL, "sessions") == 2);
    ck_assert_int_eq(kill(worker, SIGCONT), 0);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    ck_assert_float_eq(x[3], 8);
    ck_assert_uint_eq(events[GPUD_EVENT_RESTORE_FAILED], 0);
    ck_assert_uint_eq(events[GPUD_EVENT_RESTARTED], 1);
    gpud_job_free(job);
    gpud_close(other);
    daemon_end(&d, c);
}
END_TEST

/* FAULT 40: SIGTERM under load
 * required: drains, the last answers arrive, exits 0, leaves nothing behind; new jobs are
 *   refused
 * defence: `front/pipeline_end.c`: drained; `front/sched/admission.c`: check_room
 * also: `test_system_front`: draining
 * mutants: drain, last-answers, drain-refusal */
/* Jobs that were taken are finished, all answers arrive, the exit is clean and nothing stays. */
START_TEST(sigterm_under_load)
{
    struct daemon d;
    static float out[LARGE + TAKEN * 1000];
    gpud_job *job[TAKEN];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=40000", NULL);
    gpud_kernel fill = kernel_find(c, "fill");
    for (unsigned i = 0; i < TAKEN; i++) {
        uint64_t count = i == TAKEN - 1 ? LARGE : 1000;
        gpud_arg args[] = {gpud_f32((float)i), gpud_host_out(out + i * 1000, count, GPUD_F32)};
        ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job[i]));
    }
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job[TAKEN - 1]) != 0);
    ck_assert(!gpud_job_done(job[TAKEN - 1]));
    ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
    for (unsigned i = 0; i < TAKEN; i++) {
        ck_gpud_ok(gpud_wait(job[i], PATIENCE));
        ck_assert_float_eq(out[i * 1000 + 999], (float)i);
        gpud_job_free(job[i]);
    }
    gpud_close(c);
    ck_assert_int_eq(daemon_wait(&d), 0);
    ck_until(waitpid(-1, NULL, WNOHANG) < 0); /* all of them have come to this process */
    struct stat st;
    ck_assert_int_ne(stat(d.url + strlen("ipc://"), &st), 0);
}
END_TEST

/* A repeated request skips the wait, and the table says that it is incomplete. */
START_TEST(sigterm_twice)
{
    struct daemon d;
    /* each would run for longer than anybody waits */
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000",
                                  "--set", "jobs.time_limit_ms=3600000", NULL);
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_job *job[2];
    for (unsigned i = 0; i < 2; i++) {
        static float out[2000000];
        gpud_arg args[] = {gpud_f32(1), gpud_host_out(out, 2000000, GPUD_F32)};
        ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job[i]));
    }
    job_await_dispatch(c, job[0]);
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job[1]) != 0);
    ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
    ck_until(daemon_logged(&d, "draining: 2 jobs are unfinished"));
    ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
    ck_assert_int_eq(daemon_wait(&d), 0);
    ck_assert(daemon_logged(&d, "ending with 2 unfinished jobs"));
    gpud_job_free(job[0]);
    gpud_job_free(job[1]);
    gpud_close(c);
}
END_TEST

/* While it drains it takes no new jobs, and says so. */
START_TEST(draining)
{
    struct daemon d;
    float out[4];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_arg args[] = {gpud_f32(1), gpud_host_out(out, 4, GPUD_F32)};
    ck_gpud_ok(gpud_control(c, "drain", NULL));
    ck_gpud_err(gpud_call(c, fill, args, 2, NULL), GPUD_ERR_DRAINING);
    ck_gpud_ok(gpud_control(c, "resume", NULL));
    ck_gpud_ok(gpud_call(c, fill, args, 2, NULL));
    daemon_end(&d, c);
}
END_TEST

/* The back end reports the number of devices, so no worker starts for a device that does not
 * exist. */
START_TEST(as_many_devices_as_there_are)
{
    struct daemon d;
    char text[512];
    char options[32];
    unsigned count = _i == 0 ? 1 : 3;
    (void)snprintf(options, sizeof options, "devices=%u", count);
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", options, NULL);
    ck_until(query_value(c, "status", NULL, "serving") == count);
    ck_assert_uint_eq(query_value(c, "status", NULL, "devices"), count);
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "ready");
    ck_assert(!daemon_logged(&d, "no simulated device"));
    daemon_end(&d, c);
}
END_TEST

static void config_write(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    ck_assert_ptr_nonnull(file);
    ck_assert_int_ge(fputs(text, file), 0);
    ck_assert_int_eq(fclose(file), 0);
}

static uint64_t setting(gpud_client *c, const char *key)
{
    gpud_table *t = NULL;
    ck_gpud_ok(gpud_query(c, "config", NULL, &t));
    int name = gpud_table_find(t, "key");
    int value = gpud_table_find(t, "value");
    ck_assert(name >= 0 && value >= 0);
    uint64_t found = UINT64_MAX;
    for (uint32_t i = 0; i < gpud_table_rows(t); i++) {
        if (strcmp(gpud_table_text(t, i, (uint32_t)name), key) == 0) {
            found = strtoull(gpud_table_text(t, i, (uint32_t)value), NULL, 10);
        }
    }
    gpud_table_free(t);
    return found;
}

/* A reload by request works like SIGHUP. A bad file leaves the old settings in place, and the
 * answer names its line. */
START_TEST(reload)
{
    struct daemon d;
    char path[] = "/tmp/gpud-reload-XXXXXX";
    int fd = mkstemp(path);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    config_write(path, "[jobs]\nwindow = 5\n");
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--config", path, "--set", "jobs.queue_max=77", NULL);
    config_write(path, "[jobs]\nwindow = 6\nqueue_max = 9\n[staging]\ninput_bytes = 2M\n");
    ck_gpud_ok(gpud_control(c, "reload", NULL));
    ck_assert_uint_eq(setting(c, "window"), 6);
    ck_assert_uint_eq(setting(c, "queue_max"),
                      77); /* the command line counts more than the file, again */
    config_write(path, "[jobs]\n\nwindow = none\n");
    ck_gpud_err(gpud_control(c, "reload", NULL), GPUD_ERR_INVALID);
    ck_assert_msg(strstr(gpud_last_error()->text, path) != NULL &&
                      strstr(gpud_last_error()->text, ":3: window = none") != NULL,
                  "%s", gpud_last_error()->text);
    ck_assert_uint_eq(setting(c, "window"), 6);
    config_write(path, "[jobs]\nwindow = 7\n[memory]\nspill_limit = 48M\n");
    ck_assert_int_eq(kill(d.pid, SIGHUP), 0);
    ck_until(setting(c, "window") == 7);
    const uint64_t limit = 48 << 20; /* which the worker knows, too */
    ck_until(query_value(c, "pool", NULL, "spill_limit") == limit);
    static char log[DAEMON_OUTPUT];
    file_read(d.log, log, sizeof log);
    ck_assert_msg(strstr(log, "(systemctl restart gpud-launcher gpud): staging.input_bytes") !=
                      NULL,
                  "%s", log);
    daemon_end(&d, c);
    ck_assert_int_eq(unlink(path), 0);
}
END_TEST

/* FAULT other: second daemon; stale socket
 * required: refused, the first is unaffected; taken over
 * defence: `common/runtime.c`: runtime_lock; `front/settings/listener_url.c`: listen_take_over
 * also: `test_system_front`: stale_socket; `front_listener_test`; `common_runtime_test`
 * mutants: lock, live-socket, stale-socket */
START_TEST(second_daemon)
{
    struct daemon d;
    struct daemon other;
    daemon_start(&d, "--backend", "sim", NULL);
    pid_t worker = daemon_worker(&d, 0);
    pid_t launcher = daemon_launcher(&d);
    other = d;
    (void)snprintf(other.log, sizeof other.log, "%s/log2", d.dir);
    daemon_spawn(&other);
    ck_assert_int_ne(daemon_wait(&other), 0);
    static char log[DAEMON_OUTPUT];
    file_read(other.log, log, sizeof log);
    ck_assert_msg(strstr(log, "another gpud") != NULL, "no clear error: %s", log);
    daemon_wait_ready(&d);
    ck_assert_int_eq(daemon_worker(&d, 0), worker);
    ck_assert_int_eq(daemon_launcher(&d), launcher);
    daemon_stop(&d);
}
END_TEST

START_TEST(stale_socket)
{
    struct daemon d;
    daemon_prepare(&d, "--backend", "sim", NULL);
    struct sockaddr_un un = {.sun_family = AF_UNIX};
    (void)snprintf(un.sun_path, sizeof un.sun_path, "%s", d.url + strlen("ipc://"));
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&un, sizeof un), 0);
    ck_assert_int_eq(close(fd), 0); /* the socket's file remains, nothing listens */
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    daemon_stop(&d);
}
END_TEST

/* The first device does not open; that keeps no other one away. (Here none does.) */
START_TEST(first_device_does_not_open)
{
    struct daemon d;
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "devices=3,script=open:1=fail",
                   NULL);
    daemon_spawn(&d);
    gpud_client *c = client_open(d.url);
    ck_until(query_value(c, "devices", "2", "restarts") != UINT64_MAX);
    ck_assert_uint_eq(query_value(c, "devices", "3", "restarts"), UINT64_MAX);
    daemon_end(&d, c);
}
END_TEST

/* The only device fails to open again and again. A job that names no device says what it waits for,
 * has no device, and its deadline counts. */
START_TEST(what_a_job_waits_for_is_told)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    struct daemon d;
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "script=open:1=nomem", NULL);
    daemon_spawn(&d);
    gpud_client *c = client_open(d.url);
    ck_until(gpuctl(&d, out, err, "status", NULL) == 5 &&
             strstr(out, "its worker starts again by itself") != NULL);
    ck_assert_msg(strstr(out, "-u gpud-launcher") != NULL, "%s", out);
    float y[4];
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_host_out(y, 4, GPUD_F32)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, NULL, &job));
    char text[GPUD_ERROR_TEXT];
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job) != 0);
    ck_until(gpud_explain(c, gpud_job_id(job), text, sizeof text) == 0 &&
             strstr(text, "which is restarting: the device does not open: ") != NULL);
    ck_assert_msg(strstr(text, "waits for any device to serve") != NULL, "%s", text);
    gpud_job_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_job_info(c, gpud_job_id(job), &desc));
    ck_assert_str_eq(desc.state, "queued");
    ck_assert(desc.device == GPUD_NO_DEVICE);
    ck_assert_uint_gt(desc.now_ns, desc.submitted_ns);
    char number[24];
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)gpud_job_id(job));
    ck_assert_int_eq(gpuctl(&d, out, err, "job", "show", number, "-o", "json", NULL), 0);
    ck_assert_msg(strstr(out, "\"device\": null") != NULL, "%s", out);
    ck_assert_msg(strstr(out, "\"waited\": null") == NULL, "%s", out);
    ck_assert_msg(strstr(out, "\"total\": null") == NULL, "%s", out);
    ck_assert_msg(strstr(out, "\"executed\": null") != NULL, "%s", out);
    ck_gpud_ok(gpud_job_cancel(c, gpud_job_id(job))); /* nothing to wait for at the end */
    gpud_job_free(job);
    daemon_end(&d, c);
}
END_TEST

/* FAULT 39: no driver, an older one, one that does not start
 * required: the daemon runs but is not ready; the device is absent, with a hint at the package
 *   to install
 * defence: `front/model/device.c`: device_serves; `front/views/table_status.c`
 * also: `test_fault_device`: no_driver, no_or_older_driver
 * mutants: not-ready */
/* Without OpenCL the daemon is alive, not ready, and says what to install. */
START_TEST(no_driver)
{
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    struct daemon d;
    daemon_prepare(&d, "--backend", "opencl", NULL);
    ck_assert_int_eq(setenv("OCL_ICD_VENDORS", "/nonexistent", 1), 0);
    daemon_spawn(&d);
    gpud_client *c = client_open(d.url);
    char state[64] = "";
    char reason[1024] = "";
    ck_until((query_text(c, "devices", NULL, "state", state, sizeof state),
              strcmp(state, "absent") == 0));
    query_text(c, "devices", NULL, "reason", reason, sizeof reason);
    ck_assert_msg(strstr(reason, "pocl-opencl-icd") != NULL, "%s", reason);
    query_text(c, "status", NULL, "state", state, sizeof state);
    ck_assert_str_eq(state, "not ready");
    ck_assert_int_eq(gpuctl(&d, out, err, "status", NULL), 5);
    ck_assert_msg(strstr(out, "pocl-opencl-icd") != NULL, "%s", out);
    gpud_kernel fill = kernel_find(c, "fill");
    float y[4];
    gpud_arg args[] = {gpud_f32(1), gpud_host_out(y, 4, GPUD_F32)};
    ck_gpud_err(gpud_call(c, fill, args, 2, NULL), GPUD_ERR_NO_DEVICE);
    daemon_end(&d, c);
}
END_TEST

/* ---- clients that vanish ------------------------------------------------------------------ */

struct doomed {
    const char *url;
    int told;
    bool heir; /* a child holds its descriptors after it */
};

/* Waits until the process is killed. */
static void stay(void)
{
    for (;;) {
        (void)pause();
    }
}

/* Buffers, one running job, many queued ones, and then nothing more. */
static int doomed_work(void *data)
{
    const struct doomed *w = data;
    gpud_client *c = client_open(w->url);
    gpud_kernel fill = kernel_find(c, "fill");
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 1000), 0, NULL, &b));
    gpud_job *job = NULL;
    for (unsigned i = 0; i < 20; i++) {
        gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
        ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job));
    }
    ck_until(gpud_dispatch(c) == 0 && gpud_job_id(job) != 0);
    pid_t heir = w->heir ? fork() : 0;
    if (w->heir && heir == 0) {
        stay();
    }
    ck_assert_int_eq(write(w->told, &heir, sizeof heir), sizeof heir);
    stay();
    return 0;
}

/* FAULT 32: client killed
 * required: its queued jobs are cancelled, its buffers freed, also if a child of its own still
 *   holds its connection
 * defence: `front/clients/processes.c`; `front/requests/session_end.c`: session_process_ended,
 *   end_jobs, end_buffers
 * also: `front_session_test`: an_ended_process_leaves_its_connection_to_nobody
 * mutants: dead-client, dead-clients-jobs, dead-clients-buffers */
/* _i 1: a child that it forked lives on, and holds its connection. */
START_TEST(client_killed)
{
    struct daemon d;
    int told[2];
    pid_t heir = 0;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=2000", NULL);
    ck_assert_int_eq(pipe2(told, O_CLOEXEC), 0);
    struct doomed w = {d.url, told[1], _i == 1};
    pid_t pid = process_start(doomed_work, &w);
    ck_assert_int_eq(read(told[0], &heir, sizeof heir), sizeof heir);
    ck_assert_uint_eq(query_value(c, "status", NULL, "sessions"), 2);
    ck_assert_uint_gt(query_value(c, "devices", "0", "buffers"), 0);
    ck_assert_uint_gt(query_value(c, "status", NULL, "queued"), 0);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    ck_assert_int_eq(process_wait(pid), 128 + SIGKILL);
    ck_until(query_value(c, "status", NULL, "sessions") == 1);
    ck_until(query_value(c, "status", NULL, "queued") == 0 &&
             query_value(c, "status", NULL, "in_flight") == 0);
    ck_until(query_value(c, "devices", "0", "buffers") == 0);
    ck_assert_uint_gt(query_value(c, "status", NULL, "cancelled"), 0);
    ck_assert_uint_lt(query_value(c, "status", NULL, "done"), 20);
    if (heir != 0) {
        ck_assert_int_eq(kill(heir, SIGKILL), 0);
    }
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("front");
    suite_add_storm(suite, front_killed_under_load, 2);
    suite_add(suite, front_restarted_under_load);
    suite_add(suite, a_reconnected_client_with_a_child_falls_idle);
    suite_add(suite, jobs_outlive_a_restart);
    suite_add_loop(suite, detached_jobs_outlive_a_restart, 2);
    suite_add(suite, many_answers_behind_a_long_job);
    suite_add(suite, detached_jobs_do_not_put_off_a_restart);
    suite_add(suite, adopted_writer);
    suite_add(suite, silent_worker);
    suite_add(suite, adopted_first_writer);
    suite_add(suite, launcher_killed);
    suite_add(suite, modules_outlive_everything);
    suite_add(suite, sigterm_under_load);
    suite_add(suite, sigterm_twice);
    suite_add(suite, draining);
    suite_add_loop(suite, as_many_devices_as_there_are, 2);
    suite_add(suite, reload);
    suite_add(suite, second_daemon);
    suite_add(suite, stale_socket);
    suite_add(suite, first_device_does_not_open);
    suite_add(suite, what_a_job_waits_for_is_told);
    suite_add(suite, no_driver);
    suite_add_loop(suite, client_killed, 2);
    return system_main(suite);
}
