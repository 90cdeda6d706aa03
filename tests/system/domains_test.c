/* Tenants that may load kernels and are not trusted have workers of their own. Tenant `near` is the
 * test's user, `other` another user, and `far` a client over tcp, which shares a worker. */
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/system/harness/load.h"

#define WORDS 65536u
#define OTHER 54321u /* a user */
#define KILLS 6u     /* at least */

static struct daemon d;
static char settings[DAEMON_PATH + 16];
static char far_url[64];
static char ipc_url[DAEMON_PATH];

static void write_settings(const char *near, const char *domains)
{
    char text[512];
    int n = snprintf(text, sizeof text,
                     "[domains]\n%s\n[tenant near]\nusers = %u\n%s\n[tenant other]\nusers = %u\n"
                     "load_kernels = yes\n[tenant far]\ntcp = yes\n",
                     domains, (unsigned)getuid(), near, OTHER);
    file_write(settings, text, (size_t)n);
}

static void prepare(const char *backend, const char *options, const char *near, const char *domains)
{
    tcp_url(far_url, sizeof far_url);
    daemon_prepare(&d, "--backend", backend, "--backend-options", options, "--config", settings,
                   "--listen", ipc_url, "--listen", far_url, NULL);
    (void)snprintf(ipc_url, sizeof ipc_url, "%s", d.url);
    (void)snprintf(settings, sizeof settings, "%s/domains.conf", d.dir);
    write_settings(near, domains);
}

/* The socket is open to all users. */
static gpud_client *begin(const char *backend, const char *options, const char *near,
                          const char *domains)
{
    char path[DAEMON_PATH + 16];
    prepare(backend, options, near, domains);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    (void)snprintf(path, sizeof path, "%s/gpud.sock", d.dir);
    ck_assert_int_eq(chmod(d.dir, 0755), 0);
    ck_assert_int_eq(chmod(path, 0666), 0);
    (void)snprintf(path, sizeof path, "%s/..", d.dir);
    ck_assert_int_eq(chmod(path, 0755), 0);
    return client_open(d.url);
}

static gpud_buffer make(gpud_client *c, uint32_t seed)
{
    static uint32_t words[WORDS];
    gpud_buffer b = {0};
    for (uint32_t i = 0; i < WORDS; i++) {
        words[i] = seed + i;
    }
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, WORDS), 0, "test", &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
    return b;
}

static void check(gpud_client *c, gpud_buffer b, uint32_t seed)
{
    static uint32_t words[WORDS];
    memset(words, 0xa5, sizeof words);
    ck_gpud_ok(gpud_read(c, b, GPUD_U32, 0, GPUD_REST, words, NULL));
    for (uint32_t i = 0; i < WORDS; i++) {
        ck_assert_msg(words[i] == seed + i, "word %u of %u: %u", i, seed, words[i]);
    }
}

static uint64_t of(gpud_client *c, const char *tenant, const char *column)
{
    return query_value(c, "domains", tenant, column);
}

/* ---- faults ---------------------------------------------------------------------------------- */

static const char bad[] = "__kernel void bad(__global int *y) { *(volatile __global int *)0 = 1; }";
static const gpud_grid one_item = {.size = sizeof(gpud_grid), .global = {1}, .local = {1}};

static const char endless[] = "__kernel void endless(__global volatile float *y)"
                              " { while (y[0] < 1.0f) { y[1] += 1.0f; } }";

static gpud_kernel load(gpud_client *c, const char *source, const char *name)
{
    gpud_module_options o = {.size = sizeof o, .file = name, .name = name};
    gpud_module m = {0};
    gpud_kernel kernel = {0};
    ck_gpud_ok(gpud_module_load(c, GPUD_LANG_OPENCL, source, strlen(source), &o, &m));
    ck_gpud_ok(gpud_module_kernel_at(c, m, 0, &kernel));
    return kernel;
}

/* FAULT other: a kernel that a tenant has loaded ends its worker
 * required: only that tenant's buffers are lost; the worker that others share does not notice
 * defence: `front/model/domain.c`: domain_of; `front/workers/domains.c`: domain_obtain;
 *   `front/model/rights.c`: is_apart
 * also: `front_domains_test`: where_a_tenant_is, a_worker_that_is_away_holds_nobody_up;
 *   `front_rights_test`: who_is_apart; `test_system_domains`: killed_beside_others
 * mutants: domain-shared, domain-trust, domain-away */
START_TEST(a_fault_costs_its_tenant_only)
{
    gpud_client *near = begin("opencl", "", "load_kernels = yes", "");
    gpud_client *far = client_open(far_url);
    gpud_buffer mine = make(near, 1);
    gpud_buffer theirs = make(far, 1000);
    pid_t shared = daemon_worker(&d, 0);
    uint64_t own = of(near, "near", "worker");
    gpud_kernel k = load(near, bad, "bad.cl");
    int32_t y = 0;
    gpud_arg arg = gpud_host_inout(&y, 1, GPUD_I32);
    ck_assert_int_ne((int)own, (int)shared);
    ck_assert_int_ne(gpud_call(near, k, &arg, 1, &one_item), 0);
    check(far, theirs, 1000);
    ck_assert_int_eq(daemon_worker(&d, 0), shared);
    ck_assert_uint_eq(query_value(near, "devices", "0", "restarts"), 0);
    ck_assert_uint_ge(of(near, "near", "restarts"), 1);
    ck_gpud_err(gpud_read(near, mine, GPUD_U32, 0, 1, &y, NULL), GPUD_ERR_BUFFER_LOST);
    gpud_buffer again = make(near, 7);
    check(near, again, 7);
    check(far, theirs, 1000);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

static uint64_t device(gpud_client *c, const char *column)
{
    return query_value(c, "devices", "0", column);
}

/* The others wait for the end of each overrun, and no longer. Jobs that were queued before the last
 * strike do not run either. */
START_TEST(an_endless_kernel_costs_one_overrun_a_strike)
{
    gpud_client *near = begin("opencl", "", "load_kernels = yes", "turn_overrun_ms = 100");
    gpud_client *far = client_open(far_url);
    gpud_buffer theirs = make(far, 1000);
    pid_t shared = daemon_worker(&d, 0);
    gpud_kernel kernel = load(near, endless, "endless.cl");
    float y[3][2] = {{0}};
    for (unsigned i = 0; i < 3; i++) {
        gpud_arg arg = gpud_host_inout(y[i], 2, GPUD_F32);
        gpud_job *job = NULL;
        ck_gpud_ok(gpud_launch(near, kernel, &arg, 1, &one_item, NULL, &job));
        ck_until(of(near, "near", "in_flight") == 1);
        check(far, theirs, 1000);
        ck_gpud_err(gpud_wait(job, PATIENCE), GPUD_ERR_TIME_LIMIT);
        ck_assert_uint_eq(device(far, "overruns"), i + 1);
        gpud_job_free(job);
    }
    gpud_arg arg = gpud_host_inout(y[0], 2, GPUD_F32);
    ck_gpud_err(gpud_call(near, kernel, &arg, 1, &one_item), GPUD_ERR_QUARANTINED);
    check(far, theirs, 1000);
    ck_assert_uint_eq(device(far, "overruns"), 3);
    ck_assert_uint_ge(device(far, "turns"), 3);
    ck_assert_uint_eq(device(far, "restarts"), 0);
    ck_assert_int_eq(daemon_worker(&d, 0), shared);
    gpud_buffer again = make(near, 7);
    check(near, again, 7);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

/* FAULT other: endless kernels of a tenant, each of a new source
 * required: each costs the others one overrun; with the fifth the tenant is paused, and its
 *   jobs are refused. Others notice nothing more
 * defence: `front/sched/conduct.c`: conduct_strike; `front/sched/conclude.c`: job_strike;
 *   `front/sched/dispatch.c`: check_strikes
 * also: `front_overrun_test`: new_kernels_pause_their_tenant; `front_conduct_test`;
 *   `front_paused_test`; `front_forget_test`: a_strike_keeps_its_tenant_until_it_is_forgiven
 * mutants: conduct-turn, conduct-queued, conduct-pause, conduct-grows, conduct-forgiven,
 *   conduct-forgotten */
START_TEST(endless_kernels_of_new_sources_pause_their_tenant)
{
    gpud_client *near = begin("opencl", "", "load_kernels = yes", "turn_overrun_ms = 100");
    gpud_client *far = client_open(far_url);
    gpud_buffer theirs = make(far, 1000);
    pid_t shared = daemon_worker(&d, 0);
    float y[6][2] = {{0}};
    for (unsigned i = 0; i < 6; i++) {
        char source[256];
        (void)snprintf(source, sizeof source, "%s /* %u */", endless, i);
        gpud_kernel kernel = load(near, source, "endless.cl");
        gpud_arg arg = gpud_host_inout(y[i], 2, GPUD_F32);
        gpud_job *job = NULL;
        if (i == 5) {
            ck_gpud_err(gpud_call(near, kernel, &arg, 1, &one_item), GPUD_ERR_QUARANTINED);
            break;
        }
        ck_gpud_ok(gpud_launch(near, kernel, &arg, 1, &one_item, NULL, &job));
        ck_until(of(near, "near", "in_flight") == 1);
        check(far, theirs, 1000);
        ck_gpud_err(gpud_wait(job, PATIENCE), GPUD_ERR_TIME_LIMIT);
        gpud_job_free(job);
    }
    ck_assert_uint_eq(device(far, "overruns"), 5);
    ck_assert_uint_eq(query_value(near, "tenants", "near", "strikes"), 5);
    ck_assert_uint_gt(query_value(near, "tenants", "near", "paused"), 0);
    ck_assert_uint_eq(query_value(near, "tenants", "near", "struck_kernels"), 5);
    ck_assert(daemon_logged(&d, "tenant near is paused for 60 s"));
    check(far, theirs, 1000);
    ck_assert_int_eq(daemon_worker(&d, 0), shared);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

/* Each worker's second launch hangs, and the first one is the daemon's or a job's. */
static int fill_until_refused(gpud_client *c, gpud_kernel fill)
{
    float y[4] = {0};
    gpud_arg args[] = {gpud_f32(1), gpud_host_out(y, 4, GPUD_F32)};
    int rc = 0;
    while (rc == 0) {
        rc = gpud_call(c, fill, args, 2, NULL);
    }
    return rc;
}

/* FAULT other: a tenant that loads no kernels ends the worker that tenants share, repeatedly
 * required: after the fifth time its jobs are refused for a minute, then longer, with an error that
 *   says so; jobs of others run on. A restart of the front ends the pause
 * defence: `front/sched/completion.c`: overdue, end_answered; `front/sched/conclude.c`: job_strike;
 *   `front/sched/admission.c`: check_conduct
 * also: `front_paused_test`
 * mutants: conduct-limit, conduct-early, conduct-crash, conduct-own, conduct-client, conduct-lost,
 *   conduct-admitted */
START_TEST(who_ends_the_shared_worker_is_paused)
{
    static const char limit[] = "idle_s = 300\n[jobs]\ntime_limit_ms = 500";
    gpud_client *near = begin("sim", "speed=0,script=launch:2=hang", "", limit);
    gpud_client *far = client_open(far_url);
    gpud_kernel fill;
    ck_gpud_ok(gpud_kernel_find(far, "fill", &fill));
    for (unsigned i = 0; i < 5; i++) {
        ck_assert_uint_eq(query_value(near, "tenants", "far", "strikes"), i);
        ck_gpud_err(fill_until_refused(far, fill), GPUD_ERR_TIME_LIMIT);
    }
    ck_gpud_err(fill_until_refused(far, fill), GPUD_ERR_QUARANTINED);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "tenant far is paused"));
    ck_assert_uint_gt(gpud_last_error()->retry_after_ns, 0);
    ck_assert_uint_eq(device(near, "restarts"), 5);
    ck_assert_uint_eq(query_value(near, "tenants", "near", "strikes"), 0);
    gpud_buffer mine = make(near, 7);
    check(near, mine, 7);
    daemon_kill(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    check(near, mine, 7);
    ck_gpud_err(fill_until_refused(far, fill), GPUD_ERR_TIME_LIMIT);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

/* The limit of the settings is 30 s. */
START_TEST(a_tenant_has_a_time_limit_of_its_own)
{
    gpud_client *near = begin("opencl", "", "load_kernels = yes\ntime_limit_ms = 300", "");
    gpud_kernel kernel = load(near, endless, "endless.cl");
    float y[2] = {0};
    gpud_arg arg = gpud_host_inout(y, 2, GPUD_F32);
    ck_gpud_err(gpud_call(near, kernel, &arg, 1, &one_item), GPUD_ERR_TIME_LIMIT);
    ck_assert_ptr_nonnull(strstr(gpud_last_error()->text, "its time limit of 0.300 s"));
    ck_assert_uint_eq(query_value(near, "tenants", "near", "time_limit"), 300 * MS);
    ck_assert_uint_eq(query_value(near, "tenants", "near", "strikes"), 0);
    daemon_end(&d, near);
}
END_TEST

/* The job's worker ends with it, and no other one. */
START_TEST(a_running_job_is_killed)
{
    gpud_client *near = begin("opencl", "", "load_kernels = yes", "");
    gpud_client *far = client_open(far_url);
    gpud_buffer theirs = make(far, 1000);
    gpud_kernel kernel = load(near, endless, "endless.cl");
    float y[2] = {0};
    gpud_arg arg = gpud_host_inout(y, 2, GPUD_F32);
    gpud_submit_options o = {.size = sizeof o, .time_limit_ns = 600 * SECOND};
    gpud_job *job = NULL;
    gpud_error e = {.size = sizeof e};
    for (unsigned i = 0; i < 4; i++) { /* none of them is a strike */
        ck_gpud_ok(gpud_launch(near, kernel, &arg, 1, &one_item, &o, &job));
        ck_until(of(near, "near", "in_flight") == 1);
        if (i % 2 == 0) {
            ck_gpud_ok(gpud_kill(job));
        } else {
            ck_gpud_ok(gpud_job_kill(near, gpud_job_id(job)));
        }
        ck_gpud_err(gpud_wait(job, PATIENCE), GPUD_ERR_CANCELLED);
        ck_gpud_ok(gpud_job_error(job, &e));
        ck_assert_ptr_nonnull(strstr(e.text, "was to be killed"));
        ck_gpud_ok(gpud_kill(job)); /* it has ended */
        gpud_job_free(job);
        check(far, theirs, 1000);
    }
    ck_assert_uint_eq(device(far, "restarts"), 0);
    ck_assert_uint_eq(device(far, "overruns"), 0);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

/* A trusted tenant, and one that may not load, share the worker. */
START_TEST(who_shares_the_worker)
{
    static const char *const near_rules[] = {"load_kernels = yes\ntrusted = yes",
                                             "load_kernels = no"};
    gpud_client *near = begin("sim", "speed=0", near_rules[_i], "");
    gpud_client *far = client_open(far_url);
    gpud_buffer mine = make(near, 1);
    gpud_buffer theirs = make(far, 1000);
    ck_assert_uint_eq(query_value(near, "devices", "0", "buffers"), 2 * 4 * WORDS);
    ck_assert_uint_eq(of(near, "near", "worker"), UINT64_MAX);
    check(near, mine, 1);
    check(far, theirs, 1000);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

/* Recordings call the device of a worker of its own what clients call it. */
START_TEST(a_recording_names_the_device)
{
    gpud_client *near = begin("sim", "speed=0", "load_kernels = yes", "");
    (void)query_value(near, "trace", "clock", "other"); /* begins it */
    gpud_buffer b = make(near, 1);
    gpud_arg fill[] = {gpud_u32(1), gpud_arg_with(gpud_slice(b, 0, WORDS), GPUD_OUT)};
    ck_gpud_ok(gpud_call(near, kernel_find(near, "fill"), fill, 2, NULL));
    ck_assert_uint_ne(of(near, "near", "worker"), UINT64_MAX);
    ck_assert_uint_eq(query_value(near, "trace", "job", "device"), 0);
    daemon_end(&d, near);
}
END_TEST

/* ---- adoption -------------------------------------------------------------------------------- */

START_TEST(the_next_front_knows_whose_worker_it_is)
{
    gpud_client *near = begin("sim", "speed=0", "load_kernels = yes", "");
    gpud_client *far = client_open(far_url);
    gpud_buffer mine = make(near, 1);
    gpud_buffer theirs = make(far, 1000);
    uint64_t own = of(near, "near", "worker");
    uint64_t grant = of(near, "near", "memory");
    uint64_t limit = query_value(near, "devices", "0", "memory_limit");
    pid_t shared = daemon_worker(&d, 0);
    if (_i == 0) {
        daemon_hand_over(&d);
    } else {
        daemon_kill(&d);
    }
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    check(near, mine, 1);
    check(far, theirs, 1000);
    ck_assert_uint_eq(of(near, "near", "worker"), own);
    ck_assert_uint_eq(of(near, "near", "memory"), grant);
    ck_assert_uint_eq(query_value(near, "devices", "0", "memory_limit"), limit);
    ck_assert_int_eq(daemon_worker(&d, 0), shared);
    gpud_buffer more = make(near, 5);
    ck_assert_uint_eq(of(near, "near", "buffers"), 2 * 4 * WORDS);
    check(near, more, 5);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

/* ---- idle ones, and the limit ---------------------------------------------------------------- */

/* On a busy host a tenant is idle for a second between two calls, too. */
static void stays(gpud_client *c)
{
    write_settings("load_kernels = yes", "idle_s = 1000");
    ck_gpud_ok(gpud_control(c, "reload", NULL));
}

static void goes(gpud_client *c)
{
    write_settings("load_kernels = yes", "idle_s = 1");
    ck_gpud_ok(gpud_control(c, "reload", NULL));
}

/* FAULT other: a tenant with buffers is idle for long
 * required: its worker ends, so that it costs no device memory; its buffers come back with what
 *   they had when they are used
 * defence: `front/workers/evacuate.c`: evacuate_begin, evacuate_cancel, evacuate_drop;
 *   `front/workers/rest.c`: rest_go_on; `worker/memory/buffers.c`: buffer_lend
 * also: `test_system_domains`: an_idle_worker_makes_room; `front_evacuate_test`;
 *   `front_domains_test`: a_full_device_refuses_a_newcomer;
 *   `front_places_test`: memory_comes_back_with_the_end_of_its_worker
 * mutants: domain-host, domain-stale, domain-kept, domain-copies, domain-fragile,
 *   domain-returned */
START_TEST(an_idle_worker_ends)
{
    static const char *const backends[][2] = {{"sim", "speed=0"}, {"opencl", ""}};
    const uint32_t seven = 7;
    uint32_t first = 0;
    gpud_client *near =
        begin(backends[_i][0], backends[_i][1], "load_kernels = yes", "idle_s = 1000");
    gpud_buffer live = make(near, 1);
    gpud_buffer sealed = make(near, 2);
    uint64_t whole = query_value(near, "devices", "0", "memory_limit");
    uint64_t grant = of(near, "near", "memory");
    ck_gpud_ok(gpud_buffer_seal(near, sealed));
    ck_assert_uint_gt(grant, 0);
    goes(near);
    ck_until(of(near, "near", "worker") == 0);
    ck_assert_uint_eq(of(near, "near", "memory"), 0);
    ck_assert_uint_eq(query_value(near, "devices", "0", "memory_limit"), whole + grant);
    ck_assert_uint_eq(of(near, "near", "on_host"), 4 * WORDS);
    stays(near);
    check(near, live, 1);
    check(near, sealed, 2);
    ck_assert_uint_ne(of(near, "near", "worker"), 0);
    ck_assert_uint_eq(of(near, "near", "restarts"), 0);
    ck_assert_uint_eq(of(near, "near", "on_host"), 0);
    ck_gpud_ok(gpud_write(near, live, GPUD_U32, 0, 1, &seven, NULL));
    goes(near);
    ck_until(of(near, "near", "worker") == 0); /* what goes now is what was written */
    ck_gpud_ok(gpud_read(near, live, GPUD_U32, 0, 1, &first, NULL));
    ck_assert_uint_eq(first, 7);
    ck_gpud_ok(gpud_buffer_free(near, live));
    ck_gpud_ok(gpud_buffer_free(near, sealed));
    ck_until(of(near, "near", "worker") == UINT64_MAX);
    gpud_buffer again = make(near, 3);
    check(near, again, 3);
    daemon_end(&d, near);
}
END_TEST

/* Copies of buffers that the process has. */
static unsigned copies_of(pid_t pid)
{
    char path[64];
    char to[128];
    (void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    unsigned count = 0;
    for (const struct dirent *e; (e = readdir(dir)) != NULL;) {
        (void)snprintf(path, sizeof path, "/proc/%d/fd/%.16s", (int)pid, e->d_name);
        ssize_t n = readlink(path, to, sizeof to - 1);
        to[n > 0 ? n : 0] = '\0';
        count += strstr(to, "gpud-sealed") != NULL || strstr(to, "gpud-lent") != NULL;
    }
    (void)closedir(dir);
    return count;
}

/* FAULT other: the front ends while buffers of an idle tenant are on the host
 * required: the next front has them, with owners, names and content, and counts their memory; a
 *   copy that is not true any more comes back for no buffer; the launcher keeps none that is not
 *   needed
 * defence: `front/workers/keep.c`: keep_copy, keep_release; `front/devices/adopt.c`: adopt_record,
 *   take_kept; `launcher/copies.c`; `launcher/children.c`: oldest_departed
 * also: `launcher_copies_test`; `front_evacuate_test`; `front_sim`
 * mutants: keep-adopted, keep-stale, keep-leaves, keep-record, keep-room */
START_TEST(what_rests_outlives_the_front)
{
    const uint32_t seven = 7;
    uint32_t first = 0;
    gpud_client *near = begin("sim", "speed=0", "load_kernels = yes", "idle_s = 1");
    pid_t launcher = daemon_launcher(&d);
    gpud_buffer live = make(near, 1);
    gpud_buffer sealed = make(near, 2);
    gpud_buffer freed = make(near, 3);
    ck_gpud_ok(gpud_buffer_seal(near, sealed));
    ck_until(of(near, "near", "worker") == 0);
    ck_assert_uint_eq(copies_of(launcher), 3);
    ck_gpud_ok(gpud_buffer_free(near, freed));
    ck_until(copies_of(launcher) == 2);
    for (unsigned i = 0; i < 2; i++) {
        if (i == 0) {
            daemon_hand_over(&d);
        } else {
            daemon_kill(&d);
        }
        daemon_spawn(&d);
        daemon_wait_ready(&d);
        ck_until(of(near, "near", "worker") == 0);
        ck_assert_uint_eq(of(near, "near", "memory"), 0);
        ck_assert_uint_eq(of(near, "near", "on_host"), 4 * WORDS);
        ck_assert_uint_eq(copies_of(launcher), 2);
    }
    stays(near);
    check(near, live, 1);
    check(near, sealed, 2);
    ck_until(copies_of(launcher) == 0);
    ck_gpud_ok(gpud_write(near, live, GPUD_U32, 0, 1, &seven, NULL));
    goes(near);
    ck_until(of(near, "near", "worker") == 0);
    daemon_kill(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    ck_gpud_ok(gpud_read(near, live, GPUD_U32, 0, 1, &first, NULL));
    ck_assert_uint_eq(first, 7);
    ck_until(of(near, "near", "worker") == 0);
    gpud_close(near); /* its session is over, and its buffers go */
    ck_until(copies_of(launcher) == 0);
    near = client_open(d.url);
    daemon_end(&d, near);
}
END_TEST

/* FAULT other: a tenant's worker needs more of a full device, of which others use less
 * required: it gets what no worker uses, then what idle ones have, whose buffers go to the host;
 *   never more than there is; a worker that gives nothing back is ended
 * defence: `front/workers/lease.c`: lease_plan; `front/tenants/leases.c`: has_given, finish;
 *   `worker/spill/waiting.c`: waiting_wants
 * also: `front_lease_test`; `front_leases_test`; `worker_budget_test`: jobs_wait_for_more
 * mutants: lease-floor, lease-early, lease-hung, lease-oldest, lease-denied, lease-asks */
START_TEST(memory_follows_need)
{
    enum { COUNT = 88, EACH = 4 * WORDS }; /* 22 MiB: the device has 30, a tenant begins with 3 */
    static gpud_buffer b[2][COUNT];
    gpud_client *near = begin("sim", "speed=0,memory=32M", "load_kernels = yes", "");
    gpud_client *far = client_open(far_url);
    for (uint32_t i = 0; i < COUNT; i++) {
        b[0][i] = make(near, i);
    }
    ck_assert_uint_ge(of(near, "near", "memory"), COUNT * EACH);
    ck_until(of(near, "near", "used") >= COUNT * EACH); /* it is reported once a second */
    for (uint32_t i = 0; i < COUNT; i++) {
        b[1][i] = make(far, 1000 + i);
    }
    ck_until(of(near, "near", "spilled") > 0);
    ck_assert_uint_lt(of(near, "near", "memory"), COUNT * EACH);
    for (uint32_t i = 0; i < COUNT; i += 11) {
        check(far, b[1][i], 1000 + i);
        check(near, b[0][i], i);
    }
    ck_assert_uint_eq(of(near, "near", "restarts"), 0);
    gpud_close(far);
    daemon_end(&d, near);
}
END_TEST

/* FAULT other: the front ends when memory has moved between the workers of a device
 * required: the next front goes on from what each worker may have: no memory is recalled that no
 *   worker needs, and all together have no more than the device
 * defence: `front/workers/record.c`: record_set_lease; `front/tenants/leases.c`: note;
 *   `front/devices/adopt.c`: adopt_worker
 * also: `front_leases_test`: the_record_has_what_a_worker_may_have; `front_sim`
 * mutants: lease-former, lease-recorded */
START_TEST(memory_stays_where_it_is)
{
    enum { COUNT = 44, EACH = 4 * WORDS }; /* 11 MiB: a tenant begins with 3 */
    gpud_client *near = begin("sim", "speed=0,memory=32M", "load_kernels = yes", "");
    gpud_buffer b[COUNT];
    for (uint32_t i = 0; i < COUNT; i++) {
        b[i] = make(near, i);
    }
    uint64_t own = of(near, "near", "worker");
    uint64_t lease = of(near, "near", "memory");
    uint64_t rest = query_value(near, "devices", "0", "memory_limit");
    ck_assert_uint_ge(lease, COUNT * EACH);
    daemon_kill(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    ck_assert_uint_eq(of(near, "near", "worker"), own);
    ck_assert_uint_eq(of(near, "near", "memory"), lease);
    ck_assert_uint_eq(query_value(near, "devices", "0", "memory_limit"), rest);
    for (uint32_t i = 0; i < COUNT; i++) {
        check(near, b[i], i);
    }
    ck_assert_uint_eq(of(near, "near", "spilled"), 0);
    daemon_end(&d, near);
}
END_TEST

static char third_url[DAEMON_PATH + 16];

/* Tenant `third` has a worker of its own, too, and a socket, as its clients have the test's user.
 */
static gpud_client *begin_three(bool simulated, const char *domains)
{
    char sections[DAEMON_PATH + 192];
    prepare(simulated ? "sim" : "opencl", simulated ? "items=10000000" : "", "load_kernels = yes",
            "");
    (void)snprintf(third_url, sizeof third_url, "ipc://%s/third.sock", d.dir);
    (void)snprintf(sections, sizeof sections, "%s[tenant third]\nload_kernels = yes\nlisten = %s\n",
                   domains, third_url);
    write_settings("load_kernels = yes", sections);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    return client_open(d.url);
}

static bool worker_serves(gpud_client *c, const char *tenant)
{
    char state[32] = "";
    uint64_t worker = of(c, tenant, "worker");
    if (worker != UINT64_MAX && worker != 0) {
        query_text(c, "domains", tenant, "state", state, sizeof state);
    }
    return strcmp(state, "ready") == 0;
}

static int as_other(void *data)
{
    const int *expected = data;
    gpud_client *c = NULL;
    gpud_options o = {.size = sizeof o, .connect_timeout_ns = 10 * SECOND};
    gpud_buffer b = {0};
    if (setgid(OTHER) != 0 || setuid(OTHER) != 0 || gpud_open(d.url, &o, &c) != 0) {
        return 2;
    }
    int rc = gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 16), 0, "theirs", &b);
    while (rc == GPUD_ERR_BUSY && rc != *expected) { /* the refusal says when to try again */
        pause_ms((unsigned)(gpud_last_error()->retry_after_ns / 1000000));
        rc = gpud_buffer_create(c, gpud_shape_1d(GPUD_U32, 16), 0, "theirs", &b);
    }
    if (rc != *expected) {
        (void)fprintf(stderr, "%s\n", gpud_last_error()->text);
        return 3;
    }
    /* another tenant's worker is not shown */
    if (of(c, "near", "worker") != UINT64_MAX ||
        (rc == 0 && of(c, "other", "worker") == UINT64_MAX)) {
        return 4;
    }
    gpud_close(c);
    return 0;
}

/* The newcomer is refused while the other worker has a buffer that cannot go to the host, and gets
 * its place else. */
START_TEST(an_idle_worker_makes_room)
{
    int expected = GPUD_ERR_BUSY;
    if (geteuid() != 0) {
        printf("an_idle_worker_makes_room: skipped, it needs root to be two users\n");
        return;
    }
    gpud_client *near =
        begin("sim", "speed=0", "load_kernels = yes", "per_device_max = 1\nhost_memory_max = 1K");
    gpud_buffer b = make(near, 1);
    ck_assert_int_eq(process_wait(process_start(as_other, &expected)), 0);
    check(near, b, 1);
    write_settings("load_kernels = yes", "per_device_max = 1");
    ck_gpud_ok(gpud_control(near, "reload", NULL));
    expected = 0;
    ck_assert_int_eq(process_wait(process_start(as_other, &expected)), 0);
    ck_assert_uint_eq(of(near, "near", "worker"), 0);
    check(near, b, 1);
    daemon_end(&d, near);
}
END_TEST

/* A job names a device where its tenant has no worker. The tenant gets one, and its buffers go
 * there. */
START_TEST(buffers_go_to_a_new_worker)
{
    gpud_client *near = begin("sim", "speed=0,devices=2", "load_kernels = yes",
                              "idle_s = 300\n[daemon]\nmin_devices = 2");
    gpud_buffer b = {0};
    gpud_kernel scale;
    gpud_buffer_desc desc = {.size = sizeof desc};
    uint32_t word = 0;
    ck_gpud_ok(gpud_buffer_create_on(near, 0, gpud_shape_1d(GPUD_U32, WORDS), 0, "b", &b));
    ck_gpud_ok(gpud_fill(near, gpud_out(b), gpud_u32(5)));
    ck_gpud_ok(gpud_kernel_find(near, "scale", &scale));
    const gpud_arg args[] = {gpud_u32(2), gpud_in(b), gpud_out(b)};
    const gpud_submit_options on = {.size = sizeof on, .device = GPUD_ON(1)};
    gpud_job *job = NULL;
    ck_gpud_ok(gpud_launch(near, scale, args, 3, NULL, &on, &job));
    ck_gpud_ok(gpud_wait(job, PATIENCE));
    gpud_job_free(job);
    ck_gpud_ok(gpud_buffer_info(near, b, &desc));
    ck_assert_uint_eq(desc.device, 1);
    ck_gpud_ok(gpud_read(near, b, GPUD_U32, WORDS - 1, 1, &word, NULL));
    ck_assert_uint_eq(word, 10);
    daemon_end(&d, near);
}
END_TEST

/* A tenant that always has jobs, and others that have more now and then: each gets the only place
 * in turn, and nothing is lost or refused. */
START_TEST(busy_tenants_take_turns_with_places)
{
    struct load busy;
    gpud_client *near = begin_three(true, "per_device_max = 1\nplace_s = 1\nidle_s = 1000\n");
    gpud_client *third = client_open(third_url);
    gpud_buffer mine = make(near, 1);
    load_start(&busy, d.url, 2);
    ck_until(of(near, "near", "in_flight") > 0);
    gpud_buffer theirs = make(third, 1000);
    for (unsigned i = 0; i < 2; i++) {
        ck_until(worker_serves(near, "near"));
        check(third, theirs, 1000);
        check(near, mine, 1);
    }
    ck_assert_uint_gt(load_stop(&busy), 0);
    ck_assert_uint_eq(of(near, "near", "restarts"), 0);
    ck_assert_uint_eq(query_value(near, "status", NULL, "failed"), 0);
    ck_assert_uint_eq(query_value(near, "status", NULL, "lost"), 0);
    gpud_close(third);
    daemon_end(&d, near);
}
END_TEST

/* ---- spare ones ------------------------------------------------------------------------------ */

static bool spare_serves(gpud_client *c)
{
    char state[32] = "";
    if (of(c, "(spare)", "worker") != UINT64_MAX) {
        query_text(c, "domains", "(spare)", "state", state, sizeof state);
    }
    return strcmp(state, "ready") == 0;
}

/* The worker is asked for first: its end shows there before it shows in the state. */
static bool another_spare_serves(gpud_client *c, uint64_t before)
{
    uint64_t worker = of(c, "(spare)", "worker");
    return worker != UINT64_MAX && worker != 0 && worker != before && spare_serves(c);
}

/* FAULT other: a spare worker is lost
 * required: another one starts, after the pause of any worker; tenants have a worker all the same,
 *   and get no strike
 * defence: `front/workers/domains.c`: take_spare, spare_watch
 * also: `front_domains_test`: a_lost_spare_worker_is_replaced, a_spare_worker_ends_first
 * mutants: spare-lost */
START_TEST(a_first_job_gets_the_spare_worker)
{
    gpud_client *near = begin("sim", "speed=0", "load_kernels = yes", "spare = 1");
    ck_until(spare_serves(near));
    uint64_t first = of(near, "(spare)", "worker");
    ck_assert_int_eq(kill((pid_t)first, SIGKILL), 0);
    ck_until(another_spare_serves(near, first));
    uint64_t spare = of(near, "(spare)", "worker");
    gpud_buffer b = make(near, 1);
    ck_assert_uint_eq(of(near, "near", "worker"), spare); /* no process was started */
    ck_assert_uint_eq(query_value(near, "tenants", "near", "struck_kernels"), 0);
    ck_until(another_spare_serves(near, spare));
    daemon_kill(&d);
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    check(near, b, 1);
    ck_assert_uint_eq(of(near, "near", "worker"), spare);
    ck_until(spare_serves(near));
    write_settings("load_kernels = yes", "spare = 0");
    ck_gpud_ok(gpud_control(near, "reload", NULL));
    ck_until(of(near, "(spare)", "worker") == UINT64_MAX);
    check(near, b, 1);
    daemon_end(&d, near);
}
END_TEST

/* ---- one that is killed all the time --------------------------------------------------------- */

/* Every 250 ms; one that is still opening its device is spared, or it would never serve on a busy
 * host. How often. */
static unsigned kill_own_workers(gpud_client *c, const char *tenant)
{
    uint64_t end_ns = now_ns() + storm_seconds(1) * SECOND;
    unsigned kills = 0;
    while (now_ns() < end_ns || kills < KILLS ||
           (kills < 100 && query_value(c, "status", NULL, "replayed") == 0)) {
        if (worker_serves(c, tenant)) {
            kills += kill((pid_t)of(c, tenant, "worker"), SIGKILL) == 0 ? 1 : 0;
        }
        pause_ms(250);
    }
    return kills;
}

/* No job of the others fails or runs again, and their workers stay; of the victim's own jobs none
 * is lost, or answered twice or wrongly. */
START_TEST(killed_beside_others)
{
    struct load victim;
    struct load others[2];
    gpud_client *c = begin_three(_i == 0, "");
    load_start(&victim, d.url, 2);
    load_start(&others[0], third_url, 2);
    load_start(&others[1], far_url, 2);
    ck_until(worker_serves(c, "near") && worker_serves(c, "third"));
    uint64_t own = of(c, "third", "worker");
    pid_t shared = daemon_worker(&d, 0);
    unsigned kills = kill_own_workers(c, "near");
    uint64_t jobs = load_stop(&others[1]); /* the last first: each has the pipes of those before */
    jobs += load_stop(&others[0]);
    uint64_t theirs = load_stop(&victim);
    uint64_t replayed = query_value(c, "status", NULL, "replayed");
    storm_told("worker of one domain, its jobs", _i, kills, theirs, replayed);
    storm_told("worker of one domain, jobs of the others", _i, kills, jobs, 0);
    ck_assert_uint_ge(of(c, "near", "restarts"), kills / 2);
    ck_assert_uint_eq(of(c, "third", "worker"), own);
    ck_assert_uint_eq(of(c, "third", "restarts"), 0);
    ck_assert_int_eq(daemon_worker(&d, 0), shared);
    ck_assert_uint_eq(device(c, "restarts"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "failed"), 0);
    ck_assert_uint_eq(query_value(c, "status", NULL, "lost"), 0);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("domains");
    suite_add(suite, a_fault_costs_its_tenant_only);
    suite_add(suite, an_endless_kernel_costs_one_overrun_a_strike);
    suite_add(suite, endless_kernels_of_new_sources_pause_their_tenant);
    suite_add(suite, who_ends_the_shared_worker_is_paused);
    suite_add(suite, a_tenant_has_a_time_limit_of_its_own);
    suite_add(suite, a_running_job_is_killed);
    suite_add_loop(suite, who_shares_the_worker, 2);
    suite_add(suite, a_recording_names_the_device);
    suite_add_loop(suite, the_next_front_knows_whose_worker_it_is, 2);
    suite_add_loop(suite, an_idle_worker_ends, 2);
    suite_add(suite, what_rests_outlives_the_front);
    suite_add(suite, memory_follows_need);
    suite_add(suite, memory_stays_where_it_is);
    suite_add(suite, an_idle_worker_makes_room);
    suite_add(suite, buffers_go_to_a_new_worker);
    suite_add(suite, busy_tenants_take_turns_with_places);
    suite_add(suite, a_first_job_gets_the_spare_worker);
    suite_add_storm(suite, killed_beside_others, 2);
    return system_main(suite);
}
