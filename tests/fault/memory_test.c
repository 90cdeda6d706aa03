/* Host memory that runs out: an allocation of the front that fails, and a memory cgroup whose limit
 * is reached, where the kernel ends a process. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef FAULT_PRELOAD
#include "tests/fault/control.h"
#endif
#include "tests/system/harness/harness.h"

#define N 1000u

static struct daemon d;

/* ---- an allocation fails --------------------------------------------------------------------- */

#ifdef FAULT_PRELOAD
static void fill_works(gpud_client *c)
{
    float y[N] = {0};
    gpud_arg args[] = {gpud_f32(6), gpud_host_out(y, N, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "fill"), args, 2, NULL));
    ck_assert_float_eq(y[N - 1], 6);
}

#define JOBS_AT_ONCE 8u
#define MOST         5000u /* allocations of all that a client does below */

static int many_jobs(gpud_client *c)
{
    gpud_job *job[JOBS_AT_ONCE] = {NULL};
    gpud_program *p = NULL;
    int rc = gpud_program_create(c, "null", &p);
    rc = rc == 0 ? gpud_program_seal(p) : rc;
    for (unsigned i = 0; i < JOBS_AT_ONCE; i++) {
        rc = rc == 0 ? gpud_submit(c, p, NULL, 0, NULL, &job[i]) : rc;
    }
    for (unsigned i = 0; i < JOBS_AT_ONCE; i++) {
        int code = job[i] != NULL ? gpud_wait(job[i], PATIENCE) : 0;
        rc = rc == 0 ? code : rc;
        gpud_job_free(job[i]);
    }
    gpud_program_free(p);
    return rc;
}

static int uses_of_a_buffer(gpud_client *c)
{
    float y[N] = {1, 2, 3};
    gpud_buffer b = {0};
    gpud_kernel fill = {0};
    gpud_table *t = NULL;
    int rc = gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, N), 0, "values", &b);
    rc = rc == 0 ? gpud_write(c, b, GPUD_F32, 0, GPUD_REST, y, NULL) : rc;
    rc = rc == 0 ? gpud_kernel_find(c, "fill", &fill) : rc;
    gpud_arg resident[] = {gpud_f32(7), gpud_out(b)};
    rc = rc == 0 ? gpud_call(c, fill, resident, 2, NULL) : rc;
    rc = rc == 0 ? gpud_read(c, b, GPUD_F32, 0, GPUD_REST, y, NULL) : rc;
    ck_assert(rc != 0 || y[N - 1] == 7);
    gpud_arg host[] = {gpud_f32(8), gpud_host_out(y, N, GPUD_F32)};
    rc = rc == 0 ? gpud_call(c, fill, host, 2, NULL) : rc;
    ck_assert(rc != 0 || y[N - 1] == 8);
    rc = rc == 0 ? gpud_buffer_publish(c, b, "published", GPUD_IN, 0) : rc;
    rc = rc == 0 ? many_jobs(c) : rc;
    rc = rc == 0 ? gpud_buffer_seal(c, b) : rc;
    rc = rc == 0 ? gpud_query(c, "jobs", NULL, &t) : rc;
    gpud_table_free(t);
    return rc == 0 ? gpud_buffer_free(c, b) : rc;
}

static int life_of_a_client(void)
{
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = PATIENCE, .timeout_ns = PATIENCE};
    int rc = gpud_open(d.url, &o, &c);
    rc = rc == 0 ? uses_of_a_buffer(c) : rc;
    gpud_close(c);
    return rc;
}

/* FAULT 23: each allocation of the front fails once, in all that a client does
 * required: the client gets a typed error, or the daemon does without the memory; other clients are
 *   served, and nothing of the client stays behind
 * defence: every allocation of the front, such as `front/requests/intake.c`: admit
 * mutants: table-full, events-again */
START_TEST(each_allocation_of_the_front_fails)
{
    daemon_prepare(&d, "--backend", "sim", "--backend-options", "speed=0", "--set",
                   "jobs.session_linger_ms=3000", NULL);
    struct preload *control = preload_begin(&d);
    if (_i == 0) {
        (void)setenv("GPUD_LANE", "nng", 1);
    } else {
        (void)unsetenv("GPUD_LANE"); /* rings, as far as there is memory for them */
    }
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *looker = client_open(d.url);
    pid_t worker = daemon_worker(&d, 0);
    fill_works(looker);
    unsigned n = 0;
    unsigned refused = 0;
    bool failed = true;
    while (failed && n < MOST) {
        atomic_store(&control->fail_at, ++n);
        int rc = life_of_a_client();
        failed = atomic_exchange(&control->fail_at, 0) == 0;
        ck_assert_msg(rc == 0 || rc == GPUD_ERR_NOMEM, "allocation %u: %s: %s", n,
                      gpud_err_name(rc), gpud_last_error()->text);
        refused += rc != 0;
        fill_works(looker);
    }
    ck_until(query_value(looker, "status", NULL, "sessions") == 1);
    ck_until(query_value(looker, "devices", "0", "buffers") == 0);
    ck_assert_uint_lt(n, MOST);
    ck_assert_uint_gt(refused, 0);
    ck_assert_int_eq(daemon_worker(&d, 0), worker);
    daemon_end(&d, looker);
}
END_TEST
#endif

/* ---- the kernel ends a process --------------------------------------------------------------- */

static long score(pid_t pid)
{
    char path[64];
    char text[32];
    (void)snprintf(path, sizeof path, "/proc/%d/oom_score_adj", (int)pid);
    file_read(path, text, sizeof text);
    return strtol(text, NULL, 10);
}

/* FAULT 24: the kernel ends a process when memory runs out
 * required: a worker or a compiler ends before front and launcher, though these have more memory;
 *   it is replaced, its jobs run again, and no queued job is lost
 * defence: `launcher/spawn.c`: make_first_victim; the units' `OOMPolicy=continue`
 * also: `test_fault_memory`: a_memory_cgroup_is_full; `check_units`
 * mutants: first-victim */
START_TEST(workers_are_the_first_to_go)
{
    gpud_client *c = daemon_begin(&d, "--backend", "sim", "--backend-options", "speed=0", NULL);
    pid_t worker = daemon_worker(&d, 0);
    ck_assert_int_eq(score(worker), 500);
    ck_assert_int_lt(score(d.pid), score(worker));
    ck_assert_int_lt(score(daemon_launcher(&d)), score(worker));
    daemon_end(&d, c);
}
END_TEST

#ifdef FAULT_PRELOAD                      /* what sanitizers take is not the program's memory */
#define GROUPS    "/sys/fs/cgroup/memory" /* version 1: one hierarchy for memory */
#define UNIFIED   "/sys/fs/cgroup"        /* version 2 */
#define LIMIT     (UINT64_C(384) << 20)
#define JOBS      64u
#define JOB_BYTES (UINT64_C(1) << 20)

/* A cgroup below our own, which holds the daemon's processes. */
static struct group {
    char own[512], path[560];
    bool unified;
} group;

/* Where our own cgroup is; false: nowhere in sight. */
static bool own_group(struct group *g)
{
    char line[512] = "";
    FILE *f = fopen("/proc/self/cgroup", "re");
    bool found = false;
    while (f != NULL && !found && fgets(line, sizeof line, f) != NULL) {
        char *at = strstr(line, ":memory:");
        g->unified = strncmp(line, "0::/", 4) == 0;
        at = g->unified ? line + 3 : at != NULL ? at + strlen(":memory:") : NULL;
        line[strcspn(line, "\n")] = '\0';
        (void)snprintf(g->own, sizeof g->own, "%s%s", g->unified ? UNIFIED : GROUPS,
                       at != NULL ? at : "");
        found =
            at != NULL && access(g->own, F_OK) == 0 && (!g->unified || access(GROUPS, F_OK) != 0);
    }
    if (f != NULL) {
        (void)fclose(f);
    }
    return found;
}

static bool group_write(const char *path, const char *name, uint64_t value)
{
    char file[640];
    (void)snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *f = fopen(file, "we");
    bool good = f != NULL && fprintf(f, "%llu", (unsigned long long)value) > 0;
    return f != NULL && fclose(f) == 0 && good;
}

/* False: we may not, or the controller is not ours. */
static bool group_make(const struct group *g)
{
    return g->path[0] != '\0' && mkdir(g->path, 0700) == 0 &&
           group_write(g->path, g->unified ? "memory.max" : "memory.limit_in_bytes", LIMIT);
}

/* Its processes have ended, or are about to. */
static void group_end(const struct group *g)
{
    for (unsigned i = 0; i < 1000 && rmdir(g->path) != 0 && errno == EBUSY; i++) {
        pause_ms(10);
    }
}

/* How many processes the kernel has ended there. */
static unsigned long ended_by_kernel(const struct group *g)
{
    char file[640];
    char text[512];
    (void)snprintf(file, sizeof file, "%s/%s", g->path,
                   g->unified ? "memory.events" : "memory.oom_control");
    file_read(file, text, sizeof text);
    const char *line = strstr(text, "oom_kill ");
    return line != NULL ? strtoul(line + strlen("oom_kill "), NULL, 10) : 0;
}

static int go[2]; /* a pipe: a byte lets the eater begin */

/* Takes memory until the kernel ends another process: of a file that is not mapped, which does not
 * count as this process's own. */
static int eat(void *data)
{
    static uint8_t piece[JOB_BYTES];
    const struct group *g = data;
    if (read(go[0], piece, 1) != 1) {
        return 1;
    }
    int fd = memfd_create("eaten", MFD_CLOEXEC);
    bool good = fd >= 0 && group_write(g->path, "cgroup.procs", (uint64_t)getpid());
    for (uint64_t taken = 0; good && ended_by_kernel(g) == 0; taken += sizeof piece) {
        good = taken < 2 * LIMIT && write(fd, piece, sizeof piece) == sizeof piece;
    }
    return good ? 0 : 1;
}

static gpud_job *send_much(gpud_client *c, float *y, float value)
{
    const uint64_t n = JOB_BYTES / sizeof *y;
    gpud_job *job = NULL;
    gpud_arg args[] = {gpud_f32(value), gpud_host_in(y, n, GPUD_F32),
                       gpud_host_out(y, n, GPUD_F32)};
    ck_gpud_ok(gpud_launch(c, kernel_find(c, "scale"), args, 3, NULL, NULL, &job));
    ck_until(gpud_dispatch(c) == 0 && (gpud_job_id(job) != 0 || gpud_job_done(job)));
    return job;
}

/* The front has most of the memory: jobs whose data lie in its queue. */
static void fill_the_front(gpud_client *c, float *y[JOBS], gpud_job *job[JOBS])
{
    for (unsigned i = 0; i < JOBS; i++) {
        y[i] = malloc(JOB_BYTES);
        ck_assert_ptr_nonnull(y[i]);
        for (uint64_t k = 0; k < JOB_BYTES / sizeof **y; k++) {
            y[i][k] = (float)i;
        }
        job[i] = send_much(c, y[i], 2);
    }
}

START_TEST(a_memory_cgroup_is_full)
{
    static char far_url[64];
    static char ipc_url[DAEMON_PATH];
    static char options[DAEMON_PATH + 64];
    float *y[JOBS];
    gpud_job *job[JOBS];
    struct group *g = &group;
    if (!group_make(g)) {
        return; /* no right to make one */
    }
    tcp_url(far_url, sizeof far_url);
    daemon_prepare(&d, "--backend", "sim", "--backend-options", options, "--set", "jobs.window=1",
                   "--listen", ipc_url, "--listen", far_url, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d.url);
    (void)snprintf(options, sizeof options, "items=1000,gate=%s/gate", d.dir);
    ck_assert(group_write(g->path, "cgroup.procs", (uint64_t)getpid()));
    daemon_spawn(&d);
    ck_assert(group_write(g->own, "cgroup.procs", (uint64_t)getpid()));
    daemon_wait_ready(&d);
    gpud_client *c = client_open(far_url);
    ck_assert_int_eq(pipe(go), 0);
    pid_t eater = process_start(eat, g); /* before this process has much memory itself */
    pid_t launcher = daemon_launcher(&d);
    pid_t worker = daemon_worker(&d, 0);
    fill_the_front(c, y, job);
    /* no worker starts while the memory is still taken: the kernel would end that one, too */
    ck_assert_int_eq(kill(launcher, SIGSTOP), 0);
    ck_assert_int_eq(write(go[1], "", 1), 1);
    int eaten = process_wait(eater);
    ck_assert_int_eq(kill(launcher, SIGCONT), 0);
    ck_assert_int_eq(eaten, 0);
    ck_until(daemon_worker(&d, 0) != worker && daemon_worker(&d, 0) != 0);
    ck_assert_int_eq(daemon_launcher(&d), launcher);
    ck_assert_int_eq(kill(d.pid, 0), 0);
    char path[DAEMON_PATH + 16];
    (void)snprintf(path, sizeof path, "%s/gate", d.dir);
    file_write(path, "", 0);
    for (unsigned i = 0; i < JOBS; i++) {
        ck_gpud_ok(gpud_wait(job[i], 2 * PATIENCE));
        ck_assert_float_eq(y[i][JOB_BYTES / sizeof **y - 1], 2 * (float)i);
        gpud_job_free(job[i]);
        free(y[i]);
    }
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 1);
    ck_assert_uint_eq(query_value(c, "status", NULL, "lost"), 0);
    daemon_end(&d, c);
}
END_TEST
#endif

int main(void)
{
    Suite *suite = suite_create("memory");
#ifdef FAULT_PRELOAD
    suite_add_loop(suite, each_allocation_of_the_front_fails, 2);
    suite_add(suite, a_memory_cgroup_is_full);
    if (own_group(&group)) {
        (void)snprintf(group.path, sizeof group.path, "%s/gpud-%d", group.own, (int)getpid());
    }
#endif
    suite_add(suite, workers_are_the_first_to_go);
    int status = system_main(suite);
#ifdef FAULT_PRELOAD
    group_end(&group);
#endif
    return status;
}
