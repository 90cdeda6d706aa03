/* Workers that are killed, stopped or crash: what happens to jobs and buffers. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "tests/system/harness/load.h"

#define KILLS 6u /* at least */

/* 0: simulated, slow enough that each kill meets jobs; 1: a real driver. */
static void start_backend(struct daemon *d, int which)
{
    daemon_start(d, "--backend", which == 0 ? "sim" : "opencl", "--backend-options",
                 which == 0 ? "devices=1,items=10000000" : "", NULL);
}

static bool serves(gpud_client *c)
{
    char state[32];
    query_text(c, "devices", "0", "state", state, sizeof state);
    return strcmp(state, "ready") == 0;
}

/* FAULT 20: worker killed
 * required: no accepted job is lost or answered twice; writers are not repeated; sealed buffers
 *   are restored, others reported as lost
 * defence: `front/sched/completion.c`: decide; `front/model/job.c`: job_repeatable;
 *   `front/memory/buffers.c`: buffer_device_lost
 * also: `test_system_workers`: writer_is_not_replayed, buffers_of_a_killed_worker;
 *   `front_requests_test`: many_lost_buffers_are_lost_at_once
 * mutants: replay-external, replay-writer, restore-sealed, lost-buffers, lost-at-once */
/* A worker every 250 ms: no job that was taken is lost, none is answered twice or wrongly. On a
 * busy host it may take longer than that to open a device or to load a kernel, and the daemon waits
 * ever longer with the next worker: for any job to end, a worker that is still opening its device
 * is spared, and every second one until a job has ended. */
START_TEST(killed_under_load)
{
    struct daemon d;
    struct load load;
    start_backend(&d, _i);
    load_start(&load, d.url, 3);
    gpud_client *c = client_open(d.url);
    uint64_t end_ns = now_ns() + storm_seconds(5) * SECOND;
    uint64_t done_before = 0;
    unsigned kills = 0;
    /* on a busy host there are few in the time, and the first may meet no job */
    while (now_ns() < end_ns || kills < KILLS ||
           (kills < 100 && query_value(c, "status", NULL, "replayed") == 0)) {
        uint64_t done = query_value(c, "status", NULL, "done");
        pid_t worker =
            serves(c) && (kills % 2 == 0 || done > done_before) ? daemon_worker(&d, 0) : 0;
        if (worker > 0 && kill(worker, SIGKILL) == 0) {
            kills++;
            done_before = done;
        }
        pause_ms(250);
    }
    uint64_t jobs = load_stop(&load);
    storm_told("worker", _i, kills, jobs, query_value(c, "status", NULL, "replayed"));
    ck_assert_uint_ge(query_value(c, "status", NULL, "restarts"), kills / 2);
    ck_assert_uint_gt(query_value(c, "status", NULL, "replayed"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "failed"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "lost"), 0);
    daemon_end(&d, c);
}
END_TEST

/* A job that writes, launches and reads; 0: with the right result. */
static int axpy_code(gpud_client *c, gpud_error *ret_error)
{
    float x[4] = {1, 2, 3, 4};
    float y[4] = {10, 20, 30, 40};
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(2), gpud_host(x, 4, GPUD_F32), gpud_host(y, 4, GPUD_F32)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &job));
    int code = gpud_wait(job, PATIENCE);
    ret_error->size = sizeof *ret_error;
    ck_gpud_ok(gpud_job_error(job, ret_error));
    gpud_job_free(job);
    ck_assert(code != 0 || y[3] == 48);
    return code;
}

/* FAULT 21: worker stopped
 * required: found by its missing heartbeat
 * defence: `front/workers/worker.c`: check_silence
 * mutants: heartbeat */
/* A stopped worker is silent: the heartbeat detects it. The next worker runs its job. */
START_TEST(stopped)
{
    struct daemon d;
    daemon_start(&d, "--backend", "sim", NULL);
    gpud_error error;
    gpud_client *c = client_open(d.url);
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_eq(kill(worker, SIGSTOP), 0);
    ck_assert_int_eq(axpy_code(c, &error), 0);
    ck_assert_int_ne(daemon_worker(&d, 0), worker);
    daemon_end(&d, c);
}
END_TEST

/* An error of the driver, and an abort inside it: the worker ends, and the next worker runs the job
 * again. The first launch of the first worker is the daemon's own. */
START_TEST(faulting_device)
{
    static const char *const scripts[] = {"speed=0,script=launch:3=fault",
                                          "speed=0,script=launch:3=lost",
                                          "speed=0,script=launch:3=crash"};
    struct daemon d;
    gpud_error error;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", scripts[_i], NULL);
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_eq(axpy_code(c, &error), 0);
    ck_assert_int_eq(axpy_code(c, &error), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 1);
    ck_assert_uint_eq(query_value(c, "status", NULL, "replayed"), 1);
    ck_assert_int_ne(daemon_worker(&d, 0), worker);
    daemon_end(&d, c);
}
END_TEST

/* Its first write is the worker's own, at its start. A device that faults each time is reported as
 * such, after two workers and no more. */
START_TEST(always_faulting_device)
{
    struct daemon d;
    gpud_error error;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options",
                                  "speed=0,script=write:2+=fault", NULL);
    ck_assert_int_eq(axpy_code(c, &error), GPUD_ERR_KERNEL_FAULT);
    ck_assert_int_eq(error.effects, GPUD_EFFECTS_NONE);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 2);
    daemon_end(&d, c);
}
END_TEST

/* FAULT 9: worker that cannot be killed
 * required: its device is given up, others serve; the device returns when the worker has ended
 * defence: `front/workers/worker.c`: check_silence
 * mutants: stuck */
/* The launcher is stopped as well, so that a worker cannot be ended: its device is given up, the
 * other device serves. Once the worker can be ended the device comes back. */
START_TEST(cannot_be_killed)
{
    struct daemon d;
    char text[1024];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "devices=2,speed=0",
                                  "--set", "daemon.min_devices=2", NULL);
    gpud_error error;
    ck_assert_int_eq(axpy_code(c, &error), 0); /* compiled, too: that needs the launcher */
    pid_t launcher = daemon_launcher(&d);
    ck_assert_int_eq(kill(launcher, SIGSTOP), 0);
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGSTOP), 0);
    ck_until(
        (query_text(c, "devices", "0", "state", text, sizeof text), strcmp(text, "stuck") == 0));
    query_text(c, "devices", "0", "reason", text, sizeof text);
    ck_assert_msg(strstr(text, "cannot be ended") != NULL, "%s", text);
    ck_assert_int_eq(axpy_code(c, &error), 0);
    gpud_buffer b = {0};
    gpud_device_desc device = {.size = sizeof device};
    ck_gpud_ok(gpud_device_info(c, 0, &device));
    ck_gpud_err(gpud_buffer_create_on(c, device.id, gpud_shape_1d(GPUD_F32, 10), 0, NULL, &b),
                GPUD_ERR_NO_DEVICE);
    ck_assert_int_eq(kill(launcher, SIGCONT), 0);
    ck_until(
        (query_text(c, "devices", "0", "state", text, sizeof text), strcmp(text, "ready") == 0));
    ck_assert_int_eq(axpy_code(c, &error), 0);
    daemon_end(&d, c);
}
END_TEST

struct notices {
    unsigned lost;
    gpud_buffer buffer;
};

static void on_event(gpud_client *client, const gpud_event *event, void *user)
{
    (void)client;
    struct notices *n = user;
    if (event->kind == GPUD_EVENT_BUFFER_LOST) {
        n->lost++;
        n->buffer = event->buffer;
    }
}

static gpud_buffer filled(gpud_client *c, float value)
{
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 1000), 0, "values", &b));
    ck_gpud_ok(gpud_fill(c, gpud_out(b), gpud_f32(value)));
    return b;
}

START_TEST(buffers_of_a_killed_worker)
{
    struct daemon d;
    struct notices notices = {0};
    float values[1000];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", NULL);
    ck_gpud_ok(gpud_set_event_cb(c, on_event, &notices));
    gpud_buffer sealed = filled(c, 5);
    gpud_buffer plain = filled(c, 6);
    ck_gpud_ok(gpud_buffer_seal(c, sealed));
    char text[1024];
    query_text(c, "devices", "0", "fault_age", text, sizeof text);
    ck_assert_str_eq(text, "-");
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    daemon_wait_worker(&d, 0, worker);
    query_text(c, "devices", "0", "last_fault", text, sizeof text);
    ck_assert_msg(strstr(text, "was killed (signal 9), not by gpud") != NULL, "%s", text);

    ck_gpud_ok(gpud_read(c, sealed, GPUD_F32, 0, GPUD_REST, values, NULL));
    for (unsigned i = 0; i < 1000; i++) {
        ck_assert_float_eq(values[i], 5);
    }
    ck_gpud_err(gpud_read(c, plain, GPUD_F32, 0, GPUD_REST, values, NULL), GPUD_ERR_BUFFER_LOST);
    ck_until(gpud_dispatch(c) == 0 && notices.lost > 0);
    ck_assert_uint_eq(notices.lost, 1);
    ck_assert_uint_eq(notices.buffer.id, plain.id);
    gpud_buffer_desc desc = {.size = sizeof desc};
    ck_gpud_ok(gpud_buffer_info(c, sealed, &desc));
    ck_assert_uint_eq(desc.state, GPUD_BUFFER_SEALED);
    daemon_end(&d, c);
}
END_TEST

static bool restores(gpud_client *c)
{
    char reason[256];
    query_text(c, "devices", "0", "reason", reason, sizeof reason);
    return strcmp(reason, "restores sealed buffers") == 0;
}

/* The last sealed buffer that the device was waiting for is not wanted any more: it serves without
 * its content, which would never come: the first write to a device is the worker's own check. */
START_TEST(a_buffer_freed_as_it_comes_back)
{
    struct daemon d;
    float values[1000];
    gpud_client *c =
        daemon_begin(&d, "--backend", "sim", "--backend-options", "script=write:2=hang", NULL);
    gpud_buffer sealed = filled(c, 5);
    ck_gpud_ok(gpud_buffer_seal(c, sealed));
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    ck_until(restores(c));
    ck_gpud_ok(gpud_buffer_free(c, sealed));
    daemon_wait_worker(&d, 0, worker);
    gpud_buffer other = filled(c, 6);
    ck_gpud_ok(gpud_read(c, other, GPUD_F32, 0, GPUD_REST, values, NULL));
    ck_assert_float_eq(values[999], 6);
    daemon_end(&d, c);
}
END_TEST

/* A buffer is freed while a job reads it, and the worker ends: the job runs again, with the
 * buffer's contents. */
START_TEST(a_buffer_freed_under_its_job)
{
    struct daemon d;
    float y[1000] = {0};
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=2000", NULL);
    gpud_buffer sealed = filled(c, 5);
    ck_gpud_ok(gpud_buffer_seal(c, sealed));
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(3), gpud_in(sealed), gpud_host(y, 1000, GPUD_F32)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "axpy"), args, 3, NULL, NULL, &job));
    job_await_dispatch(c, job);
    ck_gpud_ok(gpud_buffer_free(c, sealed));
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0);
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    ck_assert_float_eq(y[999], 15);
    gpud_job_free(job);
    ck_until(query_value(c, "devices", "0", "buffers") == 0);
    daemon_end(&d, c);
}
END_TEST

/* A job that wrote to a resident buffer is not run twice: it fails, and says that something may
 * have changed. */
START_TEST(writer_is_not_replayed)
{
    struct daemon d;
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=1000", NULL);
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 20000), 0, NULL, &b));
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, NULL, &job));
    job_await_dispatch(c, job);
    ck_assert_int_eq(kill(daemon_worker(&d, 0), SIGKILL), 0);
    ck_gpud_err(gpud_wait(job, PATIENCE), GPUD_ERR_WORKER_LOST);
    gpud_error error = {.size = sizeof error};
    ck_gpud_ok(gpud_job_error(job, &error));
    ck_assert_int_eq(error.effects, GPUD_EFFECTS_MAYBE);
    gpud_job_free(job);
    daemon_end(&d, c);
}
END_TEST

/* ---- prepared ones --------------------------------------------------------------------------- */

static pid_t prepared(const struct daemon *d)
{
    pid_t pid = 0;
    return daemon_children(daemon_launcher(d), "gpud-prepared", &pid, 1) == 1 ? pid : 0;
}

/* FAULT other: a prepared worker is lost
 * required: jobs go on; another is prepared after 3 s, and a worker that is due before starts
 *   as without one
 * defence: `launcher/workers.c`: hand_over, replace
 * also: `launcher_workers_test`; `worker_prepared_test`
 * mutants: prepared-lost, prepared-like, prepared-alone, prepared-replaced, prepared-useless,
 *   prepared-taken */
START_TEST(the_next_worker_is_the_prepared_one)
{
    struct daemon d;
    start_backend(&d, _i);
    gpud_client *c = client_open(d.url);
    gpud_error e;
    ck_until(prepared(&d) != 0);
    pid_t next = prepared(&d);
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_ne(worker, next);
    ck_assert_int_eq(kill(worker, SIGKILL), 0);
    daemon_wait_worker(&d, 0, worker);
    ck_assert_int_eq(daemon_worker(&d, 0), next);
    ck_assert_int_eq(axpy_code(c, &e), 0);
    ck_until(prepared(&d) != 0);
    ck_assert_int_eq(kill(prepared(&d), SIGKILL), 0);
    ck_until(prepared(&d) == 0);
    ck_assert_int_eq(axpy_code(c, &e), 0);
    ck_assert_int_eq(kill(next, SIGKILL), 0);
    daemon_wait_worker(&d, 0, next);
    ck_assert_int_eq(axpy_code(c, &e), 0);
    ck_until(prepared(&d) != 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 2);
    daemon_end(&d, c);
}
END_TEST

/* The arguments of a worker do not depend on how many devices were found before it. */
START_TEST(each_device_has_a_prepared_one)
{
    struct daemon d;
    pid_t next[3] = {0, 0, 0};
    daemon_start(&d, "--backend", "sim", "--backend-options", "devices=3", NULL);
    gpud_client *c = client_open(d.url);
    ck_until(daemon_children(daemon_launcher(&d), "gpud-prepared", next, 3) == 3);
    for (unsigned i = 0; i < 3; i++) {
        pid_t worker = daemon_worker(&d, i);
        ck_assert_int_eq(kill(worker, SIGKILL), 0);
        daemon_wait_worker(&d, i, worker);
        worker = daemon_worker(&d, i);
        ck_assert(worker == next[0] || worker == next[1] || worker == next[2]);
    }
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("workers");
    suite_add_storm(suite, killed_under_load, 2);
    suite_add(suite, stopped);
    suite_add_loop(suite, faulting_device, 3);
    suite_add(suite, always_faulting_device);
    suite_add(suite, cannot_be_killed);
    suite_add(suite, buffers_of_a_killed_worker);
    suite_add(suite, a_buffer_freed_as_it_comes_back);
    suite_add(suite, a_buffer_freed_under_its_job);
    suite_add(suite, writer_is_not_replayed);
    suite_add_loop(suite, the_next_worker_is_the_prepared_one, 2);
    suite_add(suite, each_device_has_a_prepared_one);
    return system_main(suite);
}
