/* More work than there is room for: ten times the load, and a tenant that makes the worker busy
 * while another asks for little. */
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

static struct daemon d;

static void *shared(size_t size)
{
    void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(at, MAP_FAILED);
    return at;
}

/* ---- ten times the load ---------------------------------------------------------------------- */

#define QUEUE   64u            /* jobs that wait, at most */
#define CLIENTS 10u            /* each of which keeps as many */
#define ROUNDS  4u             /* so often */
#define JOBS    (ROUNDS * 64u) /* of a client */

static struct counts {
    _Atomic unsigned done, refused, begun;
    _Atomic uint64_t longest_ns; /* pause that a refusal asked for */
} * counts;

/* Ends with the job's answer: the right result, or an early refusal that says when to come again.
 */
static void judge(gpud_job *job, float value, const float *y)
{
    gpud_error error = {.size = sizeof error};
    int rc = gpud_wait(job, 2 * PATIENCE);
    ck_gpud_ok(gpud_job_error(job, &error));
    if (rc == 0) {
        ck_assert(y[0] == value && y[3] == value);
        (void)atomic_fetch_add(&counts->done, 1);
    } else {
        ck_assert_int_eq(rc, GPUD_ERR_BUSY);
        ck_assert_uint_gt(error.retry_after_ns, 0);
        ck_assert_int_eq(error.retriable, 1);
        ck_assert_int_eq(error.effects, GPUD_EFFECTS_NONE);
        (void)atomic_fetch_add(&counts->refused, 1);
        if (error.retry_after_ns > atomic_load(&counts->longest_ns)) {
            atomic_store(&counts->longest_ns, error.retry_after_ns);
        }
    }
    gpud_job_free(job);
}

static int send_all(void *data)
{
    (void)data;
    static float y[QUEUE][4];
    gpud_job *job[QUEUE];
    gpud_client *c = client_open(d.url);
    gpud_kernel fill = kernel_find(c, "fill");
    (void)atomic_fetch_add(&counts->begun, 1);
    ck_until(atomic_load(&counts->begun) == CLIENTS);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < QUEUE; i++) {
            float value = (float)(round * QUEUE + i + 1);
            gpud_arg args[] = {gpud_f32(value), gpud_host_out(y[i], 4, GPUD_F32)};
            ck_gpud_ok(gpud_launch(c, fill, args, 2, NULL, NULL, &job[i]));
        }
        for (unsigned i = 0; i < QUEUE; i++) {
            judge(job[i], (float)(round * QUEUE + i + 1), y[i]);
        }
    }
    gpud_close(c);
    return 0;
}

/* FAULT 37: ten times the load
 * required: what the queue does not hold is refused at once, without effects and with the time of
 *   the next try, which is later the more is refused; what was accepted is answered, and right.
 *   `bench_overload` compares the jobs that are done with those at the peak
 * defence: `front/sched/admission.c`: check_queue, refuse_crowd;
 *   `front/model/crowd.h`: crowd_pause
 * also: `test_system_jobs`: full_queue; `front_crowd_test`
 * mutants: queue-cap, retry-hint, crowd-pause */
START_TEST(ten_times_the_load)
{
    pid_t pid[CLIENTS];
    char cap[64];
    counts = shared(sizeof *counts);
    (void)snprintf(cap, sizeof cap, "jobs.queue_max=%u", QUEUE);
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "items=100000",
                                  "--set", cap, NULL);
    for (unsigned i = 0; i < CLIENTS; i++) {
        pid[i] = process_start(send_all, NULL);
    }
    for (unsigned i = 0; i < CLIENTS; i++) {
        ck_assert_int_eq(process_wait(pid[i]), 0);
    }
    unsigned refused = atomic_load(&counts->refused);
    ck_assert_uint_eq(atomic_load(&counts->done) + refused, CLIENTS * JOBS);
    ck_assert_uint_ge(atomic_load(&counts->done), QUEUE);
    ck_assert_uint_gt(refused, 0);
    ck_assert_uint_gt(atomic_load(&counts->longest_ns), 20 * MS); /* which a few are asked for */
    ck_assert_uint_eq(query_value(c, "status", NULL, "refused"), refused);
    ck_assert_uint_eq(query_value(c, "status", NULL, "failed"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    ck_until(query_value(c, "status", NULL, "queued") == 0);
    daemon_end(&d, c);
}
END_TEST

/* ---- a busy tenant --------------------------------------------------------------------------- */

#define GREEDY     8u                          /* clients of the busy tenant */
#define ZEROS      (UINT64_C(16) << 20)        /* elements of each of its buffers: 64 MiB */
#define LOOKS      8u                          /* of the other tenant */
#define FEW        2u                          /* of the busy tenant's buffers */
#define TENANTS    "[tenant far]\ntcp = yes\n" /* the others are the test's user */
#define CONFIG_MAX (DAEMON_PATH + 16)

static char far_url[64];
static _Atomic unsigned *made;

/* Buffers of zeros without an end. */
static int make_zeros(void *data)
{
    (void)data;
    gpud_client *c = client_open(far_url);
    for (;;) {
        gpud_buffer b = {0};
        float first = 1;
        ck_gpud_ok(
            gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, ZEROS), GPUD_BUFFER_ZERO, "zeros", &b));
        ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 1, &first, NULL));
        ck_assert(first == 0);
        ck_gpud_ok(gpud_buffer_free(c, b));
        (void)atomic_fetch_add(made, 1);
    }
}

/* How many of the other tenant's buffers were done while this one waited for its own. */
static unsigned look(gpud_client *c)
{
    gpud_buffer b = {0};
    float first = 1;
    unsigned before = atomic_load(made);
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), GPUD_BUFFER_ZERO, "few", &b));
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 1, &first, NULL));
    unsigned after = atomic_load(made);
    ck_assert(first == 0);
    ck_gpud_ok(gpud_buffer_free(c, b));
    return after - before;
}

/* FAULT 45: a tenant keeps the worker busy with zeros: buffers of 64 MiB, eight at once, beside
 *   another's of 16 bytes
 * required: tenants take turns, piece by piece: what the other asks for comes before most of what
 *   was asked for earlier
 * defence: `worker/copy/transfer.c`: zero_next, zero_some
 * mutants: zeros-in-order */
START_TEST(a_busy_tenant_leaves_turns)
{
    static char ipc_url[DAEMON_PATH];
    static char config[CONFIG_MAX];
    pid_t pid[GREEDY];
    made = shared(sizeof *made);
    tcp_url(far_url, sizeof far_url);
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "speed=0", "--config", config,
                   "--listen", ipc_url, "--listen", far_url, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d.url);
    (void)snprintf(config, sizeof config, "%s/gpud.conf", d.dir);
    file_write(config, TENANTS, sizeof TENANTS - 1);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    for (unsigned i = 0; i < GREEDY; i++) {
        pid[i] = process_start(make_zeros, NULL);
    }
    ck_until(atomic_load(made) > GREEDY);
    unsigned least = UINT32_MAX; /* where the host was least busy */
    for (unsigned i = 0; i < LOOKS; i++) {
        unsigned passed = look(c);
        least = passed < least ? passed : least;
    }
    for (unsigned i = 0; i < GREEDY; i++) {
        ck_assert_int_eq(kill(pid[i], SIGKILL), 0);
        (void)process_wait(pid[i]);
    }
    ck_assert_uint_le(least, FEW);
    ck_until(query_value(c, "devices", "0", "buffers") == 0);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("load");
    suite_add(suite, ten_times_the_load);
    suite_add(suite, a_busy_tenant_leaves_turns);
    return system_main(suite);
}
