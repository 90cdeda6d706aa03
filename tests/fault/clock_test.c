/* The wall clock of front and launcher jumps by years, ahead and back: no time limit or deadline
 * changes. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/fault/control.h"

#define YEAR_NS (INT64_C(365) * 86400 * 1000000000)

static struct daemon d;
static char gate[DAEMON_PATH + 16];

/* A job that ends when the gate is opened, and one behind it. */
static gpud_job *fill(gpud_client *c, gpud_buffer b, uint64_t deadline_ns)
{
    gpud_arg args[] = {gpud_f32(1), gpud_out(b)};
    gpud_submit_options o = {.size = sizeof o, .deadline_ns = deadline_ns};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "fill"), args, 2, NULL, &o, &job));
    ck_until(gpud_dispatch(c) == 0 && (gpud_job_id(job) != 0 || gpud_job_done(job)));
    return job;
}

/* Longer than the silence of a worker that is ended: its deadline passes as the time does. */
static void deadline_passes(gpud_client *c, gpud_buffer b)
{
    gpud_job *late = fill(c, b, SECOND);
    ck_gpud_err(gpud_wait(late, PATIENCE), GPUD_ERR_DEADLINE);
    gpud_job_free(late);
}

/* FAULT 38: the wall clock jumps by years, ahead and back
 * required: no effect on heartbeats, deadlines, time limits and sessions: only the monotonic clock
 *   is read for them
 * defence: `common/clock.c`: clock_now_ns
 * also: `common_clock_test`: monotonic_time_is_the_kernels
 * mutants: monotonic */
START_TEST(the_wall_clock_jumps)
{
    static const int64_t jumps[] = {10 * YEAR_NS, -10 * YEAR_NS, -20 * YEAR_NS, 0};
    static char options[DAEMON_PATH + 64];
    daemon_prepare(&d, "--backend", "sim", "--backend-options", options, "--set", "jobs.window=1",
                   "--set", "jobs.time_limit_ms=3600000", NULL);
    (void)snprintf(gate, sizeof gate, "%s/gate", d.dir);
    (void)snprintf(options, sizeof options, "items=1000,gate=%s", gate);
    struct preload *control = preload_begin(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    ck_assert_uint_gt(atomic_load(&control->asked), 0); /* numbers of handles begin with the time */
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 3600000), 0, NULL, &b));
    pid_t worker = daemon_worker(&d, 0);
    gpud_job *running = fill(c, b, 3600 * SECOND);
    gpud_job *waiting = fill(c, b, 3600 * SECOND);
    for (unsigned i = 0; i < sizeof jumps / sizeof jumps[0]; i++) {
        atomic_store(&control->wall_ns, jumps[i]);
        deadline_passes(c, b);
        ck_gpud_ok(gpud_ping(c, NULL));
        ck_assert(gpud_dispatch(c) == 0 && !gpud_job_done(running) && !gpud_job_done(waiting));
    }
    file_write(gate, "", 0);
    ck_gpud_ok(gpud_wait(running, PATIENCE));
    ck_gpud_ok(gpud_wait(waiting, PATIENCE));
    ck_assert_int_eq(daemon_worker(&d, 0), worker);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "sessions"), 1);
    gpud_job_free(running);
    gpud_job_free(waiting);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("clock");
    suite_add(suite, the_wall_clock_jumps);
    return system_main(suite);
}
