/* An operator releases one device while the others serve, and puts it back. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

/* With a gate: a job of so many elements runs until the gate is opened. */
#define LONG 60000u

#define WORDS 4096u
#define TEXT  512u

static struct daemon d;
static char gate[DAEMON_PATH + 16];
static char settings[DAEMON_PATH + 16];

/* ---- the daemon ------------------------------------------------------------------------------ */

static gpud_client *begin_gated(void)
{
    char options[sizeof gate + 64];
    daemon_prepare(&d, "--backend", "sim", "--backend-options", options, "--set", "jobs.window=1",
                   NULL);
    (void)snprintf(gate, sizeof gate, "%s/gate", d.dir);
    (void)snprintf(options, sizeof options, "devices=2,items=1000,gate=%s", gate);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    return c;
}

static void open_gate(void)
{
    file_write(gate, "", 0);
}

static void end(gpud_client *c)
{
    daemon_end(&d, c);
    (void)unlink(gate);
}

/* ---- devices --------------------------------------------------------------------------------- */

static bool device_is(gpud_client *c, const char *device, const char *state)
{
    char text[TEXT];
    query_text(c, "devices", device, "state", text, sizeof text);
    return strcmp(text, state) == 0;
}

static bool reason_has(gpud_client *c, const char *device, const char *words)
{
    char text[TEXT];
    query_text(c, "devices", device, "reason", text, sizeof text);
    return strstr(text, words) != NULL;
}

/* How many processes of gpud-worker were started for the device, prepared ones as well. */
static unsigned workers_of(const char *device)
{
    pid_t pids[64];
    char path[64], line[1024], words[32];
    unsigned found = 0;
    pid_t launcher = daemon_launcher(&d);
    unsigned count = daemon_children(launcher, "gpud-worker", pids, 32);
    count += daemon_children(launcher, "gpud-prepared", pids + count, 32);
    (void)snprintf(words, sizeof words, "--device %s ", device);
    for (unsigned i = 0; i < count; i++) {
        (void)snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pids[i]);
        FILE *f = fopen(path, "re");
        size_t n = f != NULL ? fread(line, 1, sizeof line - 1, f) : 0;
        for (size_t at = 0; at < n; at++) {
            line[at] = line[at] == '\0' ? ' ' : line[at];
        }
        line[n] = '\0';
        found += strstr(line, words) != NULL;
        if (f != NULL) {
            (void)fclose(f);
        }
    }
    return found;
}

/* ---- buffers and jobs ------------------------------------------------------------------------ */

static gpud_buffer make(gpud_client *c, unsigned device, uint32_t flags)
{
    static uint32_t words[WORDS];
    gpud_buffer b = {0};
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = 7 + i;
    }
    ck_gpud_ok(gpud_buffer_create_on(c, device, gpud_shape_1d(GPUD_U32, WORDS), flags, "test", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
    return b;
}

static void check(gpud_client *c, gpud_buffer b)
{
    static uint32_t words[WORDS];
    memset(words, 0xa5, sizeof words);
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
    for (uint32_t i = 0; i < WORDS; i++) {
        ck_assert_uint_eq(words[i], 7 + i);
    }
}

static gpud_job *fill(gpud_client *c, gpud_buffer b, uint64_t count, float value)
{
    gpud_arg args[] = {gpud_f32(value), gpud_arg_with(gpud_slice(b, 0, count), GPUD_OUT)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, NULL, &job));
    ck_until(gpud_dispatch(c) == 0 && (gpud_job_id(job) != 0 || gpud_job_done(job)));
    return job;
}

/* One that runs until the gate is opened, and one behind it. */
static void two_jobs(gpud_client *c, gpud_buffer b, gpud_job *ret_job[2])
{
    ret_job[0] = fill(c, b, LONG, 1);
    job_await_dispatch(c, ret_job[0]);
    ret_job[1] = fill(c, b, 16, 2);
}

static gpud_buffer make_floats(gpud_client *c, unsigned device)
{
    gpud_buffer b = {0};
    ck_gpud_ok(
        gpud_buffer_create_on(c, device, gpud_shape_1d(GPUD_F32, LONG), GPUD_BUFFER_ZERO, "", &b));
    return b;
}

static void job_end(gpud_job *job)
{
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static const struct {
    const char *backend, *options, *settings;
    const char *device, *index;
    bool others; /* other devices serve */
    unsigned
        processes; /* of gpud-worker: the workers, and one that waits to replace a shared one */
} ways[] = {
    {"sim", "devices=2", "", "1", "1", true, 2},
    {"opencl", "", "", "0", "0", false, 2},
    {"opencl", "", "load_kernels = yes\n", "0", "0", false, 3}, /* in a worker of its own */
};

static gpud_client *begin(unsigned way)
{
    char text[256];
    daemon_prepare(&d, "--backend", ways[way].backend, "--backend-options", ways[way].options,
                   "--config", settings, NULL);
    (void)snprintf(settings, sizeof settings, "%s/drain.conf", d.dir);
    int n = snprintf(text, sizeof text, "[tenant near]\nusers = %u\n%s", (unsigned)getuid(),
                     ways[way].settings);
    file_write(settings, text, (size_t)n);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    ck_until(query_value(c, "status", NULL, "serving") == (ways[way].others ? 2 : 1));
    return c;
}

static void check_refusals(gpud_client *c, gpud_buffer b, unsigned way)
{
    unsigned device = (unsigned)(ways[way].device[0] - '0');
    gpud_buffer more = {0};
    uint32_t word;
    ck_gpud_err(gpud_read(c, b, GPUD_U32, 0, 1, &word, NULL), GPUD_ERR_DRAINING);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "gpuctl resume --device"));
    ck_gpud_err(gpud_buffer_seal(c, b), GPUD_ERR_DRAINING);
    ck_gpud_err(gpud_buffer_create_on(c, device, gpud_shape_1d(GPUD_U32, 4), 0, "more", &more),
                GPUD_ERR_DRAINING);
    int any = gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 4), GPUD_BUFFER_ZERO, "any", &more);
    ck_assert_int_eq(any, ways[way].others ? 0 : GPUD_ERR_DRAINING);
    if (ways[way].others) {
        ck_gpud_ok(gpud_read(c, more, GPUD_U32, 0, 1, &word, NULL));
        ck_gpud_ok(gpud_buffer_free(c, more));
    }
}

/* FAULT other: an operator takes one of several devices out of service
 * required: its buffers survive on the host, also over a restart of gpud; no process of gpud has it
 *   open; requests that name it are refused (`DRAINING`), others go to other devices; nothing opens
 *   it before `gpuctl resume`
 * defence: `front/devices/draining.c`: move, holder_of; `front/devices/drained.c`: drained_recall;
 *   `front/workers/rest.c`: rest_begin
 * also: `test_system_drain`: jobs_wait, what_cannot_move_keeps_it; `test_system_gpus`:
 *   a_drained_gpu_is_no_process_s; `front_draining_test`: it_is_released_and_resumed,
 *   jobs_wait_or_run_first, what_keeps_it, one_that_ends_is_not_replaced,
 *   nothing_is_restored_meanwhile; `front_monitor_test`: a_drained_device_has_no_monitor
 * mutants: drain-starts, drain-lost, drain-forgotten, drain-monitor, drain-again,
 *   drain-kept, drain-restores */
START_TEST(a_device_is_released)
{
    char out[DAEMON_OUTPUT], err[DAEMON_OUTPUT];
    const char *device = ways[_i].device;
    gpud_client *c = begin((unsigned)_i);
    gpud_buffer b = make(c, (unsigned)(device[0] - '0'), 0);
    check(c, b);
    ck_until(workers_of(device) == ways[_i].processes);
    ck_assert_int_eq(gpuctl(&d, out, err, "drain", "--device", device, "--wait", "60", NULL), 0);
    ck_assert_msg(device_is(c, device, "drained"), "%s", err);
    ck_assert(reason_has(c, device, "asked for by near"));
    ck_assert_int_eq((int)query_value(c, "devices", device, "worker"), 0);
    check_refusals(c, b, (unsigned)_i);
    ck_assert_uint_eq(workers_of(device), 0);
    ck_assert_int_eq(gpuctl(&d, out, err, "drain", "--device", device, "--wait", "60", NULL), 0);
    ck_assert_ptr_nonnull(strstr(err, "was drained already"));
    for (unsigned i = 0; i < 2; i++) { /* a good end, and a bad one */
        i == 0 ? daemon_hand_over(&d) : daemon_kill(&d);
        daemon_spawn(&d);
        ck_until(device_is(c, device, "drained") &&
                 (!ways[_i].others || device_is(c, "0", "ready")));
        check_refusals(c, b, (unsigned)_i);
    }
    ck_assert_int_eq(gpuctl(&d, out, err, "resume", "--device", device, NULL), 0);
    ck_until(device_is(c, device, "ready"));
    check(c, b);
    end(c);
}
END_TEST

/* Jobs in flight end, and those behind them wait, or run first. */
START_TEST(jobs_wait)
{
    char out[DAEMON_OUTPUT], err[DAEMON_OUTPUT], number[32];
    gpud_job *job[2];
    gpud_client *c = begin_gated();
    gpud_buffer b = make_floats(c, 1);
    gpud_buffer other = make_floats(c, 0);
    float x = 0;
    two_jobs(c, b, job);
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)gpud_job_id(job[1]));
    int rc = _i == 0
                 ? gpuctl(&d, out, err, "drain", "--device", "1", "--wait", "0", NULL)
                 : gpuctl(&d, out, err, "drain", "--device", "1", "--wait", "0", "--finish", NULL);
    ck_assert_int_eq(rc, 124);
    ck_assert_ptr_nonnull(strstr(err, "is not released"));
    ck_until(reason_has(c, "1", _i == 0 ? "1 job in flight has to end" : "2 jobs run first"));
    ck_assert(device_is(c, "1", "draining"));
    job_end(fill(c, other, 1, 3));
    open_gate();
    job_end(job[0]);
    ck_until(device_is(c, "1", "drained"));
    ck_assert_int_eq((int)query_value(c, "devices", "1", "worker"), 0);
    if (_i == 0) {
        ck_assert_int_eq(gpuctl(&d, out, err, "explain", number, NULL), 0);
        ck_assert_msg(strstr(out, "waits for device 1, which is drained") != NULL, "%s", out);
        ck_assert(!gpud_job_done(job[1]));
        ck_gpud_ok(gpud_control(c, "resume-device", "1"));
        job_end(job[1]);
    } else {
        job_end(job[1]);
        ck_gpud_ok(gpud_control(c, "resume-device", "1"));
        ck_until(device_is(c, "1", "ready"));
    }
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 15, 1, &x, NULL));
    ck_assert_float_eq(x, 2);
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 16, 1, &x, NULL));
    ck_assert_float_eq(x, 1);
    end(c);
}
END_TEST

/* Nothing moves as long as something cannot; then the drain goes on by itself. */
START_TEST(what_cannot_move_keeps_it)
{
    char out[DAEMON_OUTPUT], err[DAEMON_OUTPUT];
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "devices=2", "--set",
                                  "domains.host_memory_max=1M", NULL);
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    gpud_buffer b = make(c, 1, 0);
    gpud_buffer keeper = {0};
    ck_gpud_ok(gpud_buffer_create_on(c, 1, gpud_shape_1d(GPUD_U32, 1u << 19), GPUD_BUFFER_ZERO,
                                     "large", &keeper));
    uint64_t worker = query_value(c, "devices", "1", "worker");
    ck_assert_int_eq(gpuctl(&d, out, err, "drain", "--device", "1", "--wait", "1", NULL), 124);
    ck_assert_msg(strstr(err, "host_memory_max has") != NULL, "%s", err);
    ck_assert_uint_eq(query_value(c, "devices", "1", "worker"), worker);
    ck_assert(daemon_logged(&d, "device 1 is not released"));
    ck_gpud_ok(gpud_buffer_free(c, keeper));
    ck_until(device_is(c, "1", "drained"));
    ck_gpud_ok(gpud_control(c, "resume-device", "1"));
    ck_until(device_is(c, "1", "ready"));
    check(c, b);
    end(c);
}
END_TEST

START_TEST(it_stays_so_without_its_launcher)
{
    gpud_client *c = begin(0);
    pid_t launcher = daemon_launcher(&d);
    ck_gpud_ok(gpud_control(c, "drain-device", "1"));
    ck_until(device_is(c, "1", "drained"));
    ck_assert_int_eq(kill(launcher, SIGKILL), 0);
    ck_until(daemon_launcher(&d) != launcher && device_is(c, "0", "ready") &&
             query_value(c, "devices", "0", "restarts") > 0);
    ck_assert(device_is(c, "1", "drained"));
    ck_assert_int_eq((int)query_value(c, "devices", "1", "worker"), 0);
    ck_gpud_ok(gpud_control(c, "resume-device", "1"));
    ck_until(device_is(c, "1", "ready"));
    end(c);
}
END_TEST

START_TEST(bad_words)
{
    char out[DAEMON_OUTPUT], err[DAEMON_OUTPUT], text[TEXT];
    static const char *const bad[] = {"",          "x",     "-1",  "1 ",
                                      "1 finish ", "1 now", "1,0", "99999999999999999999999"};
    gpud_client *c = begin(0);
    ck_assert_uint_gt(workers_of("1"), 0);
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        ck_gpud_err(gpud_control(c, "drain-device", bad[i]), GPUD_ERR_INVALID);
        ck_gpud_err(gpud_control(c, "resume-device", bad[i]), GPUD_ERR_INVALID);
    }
    ck_gpud_err(gpud_control(c, "resume-device", "1 finish"), GPUD_ERR_INVALID);
    ck_gpud_err(gpud_control(c, "drain-device", "2"), GPUD_ERR_NOT_FOUND);
    ck_gpud_err(gpud_control(c, "resume-device", "2"), GPUD_ERR_NOT_FOUND);
    ck_assert_int_eq(gpuctl(&d, out, err, "drain", "--device", "2", NULL), 1);
    ck_assert_ptr_nonnull(strstr(err, "there is no device 2"));
    ck_assert_int_eq(gpuctl(&d, out, err, "drain", "--wait", "1", NULL), 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "drain", "--finish", NULL), 2);
    ck_assert_int_eq(gpuctl(&d, out, err, "resume", "--device", "1", NULL), 0);
    ck_assert_ptr_nonnull(strstr(err, "was not drained"));
    ck_assert_int_eq(gpuctl(&d, out, err, "status", NULL), 0);
    /* twice, and while the daemon drains; resuming that does not resume the device */
    ck_gpud_ok(gpud_control(c, "drain", NULL));
    ck_gpud_ok(gpud_control(c, "drain-device", "1"));
    ck_gpud_ok(gpud_control(c, "drain-device", "1 finish"));
    ck_until(device_is(c, "1", "drained"));
    ck_gpud_ok(gpud_control(c, "resume", NULL));
    ck_assert(device_is(c, "1", "drained"));
    ck_assert_int_eq(gpuctl(&d, out, err, "status", NULL), 5);
    ck_assert_ptr_nonnull(strstr(out, "device 1 is drained"));
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "degraded"); /* it is ready: another device serves */
    ck_gpud_ok(gpud_control(c, "resume-device", "1"));
    ck_until(device_is(c, "1", "ready"));
    end(c);
}
END_TEST

/* The service manager is told when a device serves, or when none comes but by a resume. */
START_TEST(a_start_with_drained_devices)
{
    char text[TEXT];
    gpud_client *c = begin(0);
    for (unsigned drained = 1; drained <= 2; drained++) {
        ck_gpud_ok(gpud_control(c, "drain-device", drained == 1 ? "0" : "1"));
        ck_until(device_is(c, drained == 1 ? "0" : "1", "drained"));
        pid_t launcher = daemon_launcher(&d);
        daemon_kill(&d);
        ck_assert_int_eq(kill(launcher, SIGKILL), 0); /* no worker is adopted */
        ck_until(daemon_launcher(&d) == 0);
        file_write(d.log, "", 0); /* it has a line of the last start */
        daemon_spawn(&d);
        ck_until(daemon_logged(&d, drained == 1 ? "gpud: ready: 1 device" : "gpud: ready: 0"));
        if (drained == 1) { /* while the other one opens */
            ck_assert(!daemon_logged(&d, "gpud: ready: 0"));
        }
    }
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "not ready");
    ck_gpud_ok(gpud_control(c, "resume-device", "1"));
    ck_until(device_is(c, "1", "ready"));
    end(c);
}
END_TEST

/* ---- rights ---------------------------------------------------------------------------------- */

static void refused(const char *url, const char *verb)
{
    char out[DAEMON_OUTPUT], err[DAEMON_OUTPUT];
    ck_assert_int_eq(gpuctl(&d, out, err, "--url", url, verb, "--device", "1", NULL), 4);
    ck_assert_msg(strstr(err, "roles = drain") != NULL, "%s", err);
}

/* FAULT other: a tenant without the role `drain` drains or resumes a device
 * required: refused (`PERMISSION`), with the role that it lacks; nothing changes. A tenant with the
 *   role may
 * defence: `front/requests/control.c`: request_control
 * mutants: drain-role, resume-role */
START_TEST(a_tenant_needs_the_role)
{
    char out[DAEMON_OUTPUT], err[DAEMON_OUTPUT], text[512];
    char may[DAEMON_PATH + 32], may_not[DAEMON_PATH + 32];
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "devices=2", "--config", settings,
                   NULL);
    (void)snprintf(settings, sizeof settings, "%s/drain.conf", d.dir);
    (void)snprintf(may, sizeof may, "ipc://%s/may/gpud.sock", d.dir);
    (void)snprintf(may_not, sizeof may_not, "ipc://%s/not/gpud.sock", d.dir);
    int n = snprintf(text, sizeof text,
                     "[tenant may]\nlisten = %s\nroles = drain\n"
                     "[tenant not]\nlisten = %s\nroles = reload, see, cancel\n",
                     may, may_not);
    file_write(settings, text, (size_t)n);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    ck_until(query_value(c, "status", NULL, "serving") == 2);
    gpud_client *not = client_open(may_not);
    ck_gpud_err(gpud_control(not, "drain-device", "1"), GPUD_ERR_PERMISSION);
    ck_gpud_err(gpud_control(not, "drain-device", "1 finish"), GPUD_ERR_PERMISSION);
    ck_gpud_err(gpud_control(not, "drain-device", "7"), GPUD_ERR_PERMISSION);
    refused(may_not, "drain");
    ck_assert(device_is(c, "1", "ready"));
    int rc = gpuctl(&d, out, err, "--url", may, "drain", "--device", "1", "--wait", "60", NULL);
    ck_assert_msg(rc == 0, "%s", err);
    ck_assert(reason_has(c, "1", "asked for by may"));
    ck_gpud_err(gpud_control(not, "resume-device", "1"), GPUD_ERR_PERMISSION);
    refused(may_not, "resume");
    ck_assert(device_is(c, "1", "drained"));
    ck_assert_int_eq(gpuctl(&d, out, err, "--url", may, "resume", "--device", "1", NULL), 0);
    ck_until(device_is(c, "1", "ready"));
    gpud_close(not );
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("drain");
    suite_add_loop(suite, a_device_is_released, 3);
    suite_add_loop(suite, jobs_wait, 2);
    suite_add(suite, what_cannot_move_keeps_it);
    suite_add(suite, it_stays_so_without_its_launcher);
    suite_add(suite, bad_words);
    suite_add(suite, a_start_with_drained_devices);
    suite_add(suite, a_tenant_needs_the_role);
    return system_main(suite);
}
