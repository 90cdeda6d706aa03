/* A worker that lies once, on a daemon that serves clients: the front ends it, says so, and
 * continues with the next worker. Jobs and sealed buffers have the same results as without the
 * lie. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#define COUNT 1000u

static struct daemon d;
static pid_t launcher;
static char lie[DAEMON_PATH + 16];

static int become_launcher(void *data)
{
    (void)data;
    int log = open(d.log, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (log >= 0 && dup2(log, STDERR_FILENO) >= 0 && setenv("CUDA_LIE", lie, 1) == 0) {
        (void)execl(SYSTEM_BIN "/gpud-launcher", "gpud-launcher", "--runtime-dir", d.dir,
                    "--worker", SYSTEM_LIAR, "--linger", "60", (char *)NULL);
    }
    return 127;
}

static gpud_client *begin(void)
{
    char path[DAEMON_PATH + 16];
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "speed=0", "--supervised", NULL);
    (void)snprintf(lie, sizeof lie, "%s/lie", d.dir);
    (void)snprintf(path, sizeof path, "%s/launcher.sock", d.dir);
    launcher = process_start(become_launcher, NULL);
    ck_until(access(path, F_OK) == 0);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    return client_open(d.url);
}

static void end(gpud_client *c)
{
    gpud_close(c);
    ck_assert_int_eq(kill(d.pid, SIGTERM), 0);
    ck_assert_int_eq(process_wait(d.pid), 0);
    ck_assert_int_eq(kill(launcher, SIGTERM), 0);
    ck_assert_int_eq(process_wait(launcher), 0);
}

static void fill_right(gpud_client *c, float value)
{
    static float y[COUNT];
    gpud_arg args[] = {gpud_f32(value), gpud_host_out(y, COUNT, GPUD_F32)};
    memset(y, 0, sizeof y);
    ck_gpud_ok(gpud_call(c, kernel_find(c, "fill"), args, 2, NULL));
    ck_assert(y[0] == value && y[COUNT - 1] == value);
}

static const struct {
    char how[2];
    const char *told; /* why it was ended */
} LIES[] = {{"h", "message ends early"},
            {"c", "the worker reported a result of -99999"},
            {"r", "the worker reported that it is ready while its device was ready"},
            {"f", "worker sent a frame of kind"}};

/* FAULT 49: a worker that lies: a job, buffer or module of another device, an end reported
 *   twice, a result outside the list, W_READY when it serves, memory in huge pages
 * required: each frame is checked against what the front gave that worker; the worker is ended,
 *   nothing of others changes. A frame that comes too late is ignored
 * defence: `front/workers/frame_check.c`; `front/sched/completion.c`: completion_done;
 *   `front/model/flight.c`: job_leave_device; `common/memfd.c`: memfd_adopt
 * also: `front_frame_check_test`; `test_system_lying`; `common_memfd_test`:
 *   huge_pages_are_refused; `front_flow_test`: a_report_of_an_unknown_job_changes_nothing
 * mutants: forged-frame, frame-twice, frame-code, frame-ready, frame-device, culprit-gone */
START_TEST(a_worker_that_lies_is_ended)
{
    gpud_client *c = begin();
    gpud_client *other = client_open(d.url);
    float kept[4] = {1, 2, 3, 4};
    char fault[512];
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(other, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b));
    ck_gpud_ok(gpud_write(other, b, GPUD_F32, 0, GPUD_REST, kept, NULL));
    ck_gpud_ok(gpud_buffer_seal(other, b));
    fill_right(c, 5);
    pid_t worker = daemon_worker(&d, 0);
    file_write(lie, LIES[_i].how, 1);
    fill_right(c, 6); /* it runs again on the next one */
    daemon_wait_worker(&d, 0, worker);
    ck_assert_int_ne(access(lie, F_OK), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 1);
    query_text(c, "devices", "0", "last_fault", fault, sizeof fault);
    ck_assert_msg(strstr(fault, LIES[_i].told) != NULL, "%s", fault);
    ck_assert(daemon_logged(&d, LIES[_i].told));
    memset(kept, 0, sizeof kept);
    ck_gpud_ok(gpud_read(other, b, GPUD_F32, 0, GPUD_REST, kept, NULL));
    ck_assert(kept[0] == 1 && kept[3] == 4);
    fill_right(other, 7);
    gpud_close(other);
    end(c);
}
END_TEST

static const struct {
    char how[2];
    const char *told; /* why it was ended; NULL: it was not */
} ADOPTED[] = {{"b", "bytes for buffer"}, {"s", "the worker sent no copy of buffer"}, {"u", NULL}};

/* FAULT 49: a worker that lies to the front that adopts it: the size of a buffer, a copy that does
 *   not come, a buffer that it was not given
 * required: it is ended, or what it was not given counts for nothing; a buffer is what it was or
 *   lost, never another one; the next worker serves
 * defence: `front/devices/adopt.c`: check_inventory, entry_of
 * also: `front_frame_check_test`: what_it_was_given_is_as_it_was_given
 * mutants: adopted-size */
START_TEST(a_worker_that_lies_to_the_next_front)
{
    gpud_client *c = begin();
    float kept[4] = {1, 2, 3, 4};
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, GPUD_REST, kept, NULL));
    pid_t worker = daemon_worker(&d, 0);
    file_write(lie, ADOPTED[_i].how, 1);
    daemon_hand_over(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    ck_assert_int_ne(access(lie, F_OK), 0);
    fill_right(c, 5);
    if (ADOPTED[_i].told != NULL) {
        ck_until(daemon_worker(&d, 0) != worker);
        ck_assert(daemon_logged(&d, ADOPTED[_i].told));
    } else {
        ck_assert_int_eq(daemon_worker(&d, 0), worker);
    }
    ck_gpud_err(gpud_read(c, b, GPUD_F32, 0, GPUD_REST, kept, NULL), GPUD_ERR_BUFFER_LOST);
    fill_right(c, 6);
    end(c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("lying");
    suite_add_loop(suite, a_worker_that_lies_is_ended, (int)(sizeof LIES / sizeof LIES[0]));
    suite_add_loop(suite, a_worker_that_lies_to_the_next_front,
                   (int)(sizeof ADOPTED / sizeof ADOPTED[0]));
    return system_main(suite);
}
