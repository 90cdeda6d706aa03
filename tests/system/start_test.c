/* How gpud starts: with devices that take long, that are not there, that come later. */
#include <glob.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "tests/system/harness/harness.h"

#ifdef GPUD_SYSTEMD
/* While devices are opened the start has time; see a_start_without_devices_fails for its end. */
START_TEST(a_long_start_asks_for_time)
{
    struct daemon d;
    char text[512] = "";
    struct sockaddr_un addr = {.sun_family = AF_UNIX};
    daemon_prepare(&d, "--backend", "sim", "--set", "daemon.min_devices=2", NULL);
    (void)snprintf(addr.sun_path, sizeof addr.sun_path, "%s/notify", d.dir);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&addr, sizeof addr), 0);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", addr.sun_path, 1), 0);
    if (_i == 0) {
        ck_assert_int_eq(setenv("WATCHDOG_USEC", "400000", 1), 0);
    } else {
        ck_assert_int_eq(unsetenv("WATCHDOG_USEC"), 0);
    }
    daemon_spawn(&d);
    while (strstr(text, "EXTEND_TIMEOUT_USEC=") == NULL) { /* or the test's time is over */
        ssize_t n = recv(fd, text, sizeof text - 1, 0);
        ck_assert_int_gt(n, 0);
        text[n] = '\0';
        ck_assert_ptr_null(strstr(text, "READY=1\nSTATUS")); /* the launcher says READY, too */
    }
    (void)close(fd); /* first: nothing reads the socket any more, and a notification would block */
    daemon_stop(&d);
}
END_TEST

/* The start of the system does not wait for missing devices. */
START_TEST(a_start_without_devices_fails)
{
    struct daemon d;
    char path[DAEMON_PATH + 16];
    daemon_prepare(&d, "--backend", "opencl", "--set", "daemon.start_timeout_s=1", NULL);
    (void)snprintf(path, sizeof path, "%s/nobody", d.dir);
    ck_assert_int_eq(setenv("NOTIFY_SOCKET", path, 1), 0);
    ck_assert_int_eq(setenv("OCL_ICD_VENDORS", "/nonexistent", 1), 0);
    daemon_spawn(&d);
    ck_assert_int_eq(daemon_wait(&d), 1);
    ck_assert(daemon_logged(&d, "not ready within start_timeout_s = 1: 0 of 1 required devices"));
    ck_assert(daemon_logged(&d, "pocl-opencl-icd"));
}
END_TEST
#endif

/* FAULT 42: no device at the start, or a device that appears later
 * required: under a service manager the start fails in time with the reason; the daemon looks
 *   for absent devices again with a growing pause
 * defence: `front/devices/discover.c`: discover_watch; `front/pipeline.c`: watch_start
 * also: `test_system_start`: a_start_without_devices_fails
 * mutants: found-later */
/* A driver that is installed while the daemon runs. */
START_TEST(an_absent_device_is_found_later)
{
    struct daemon d;
    char vendors[DAEMON_PATH + 16];
    char file[DAEMON_PATH + 32];
    char text[1024] = "";
    static char icd[4096];
    daemon_prepare(&d, "--backend", "opencl", "--set", "daemon.min_devices=0", NULL);
    (void)snprintf(vendors, sizeof vendors, "%s/vendors", d.dir);
    (void)snprintf(file, sizeof file, "%s/pocl.icd", vendors);
    ck_assert_int_eq(mkdir(vendors, 0755), 0);
    ck_assert_int_eq(setenv("OCL_ICD_VENDORS", vendors, 1), 0);
    daemon_spawn(&d);
    gpud_client *c = client_open(d.url);
    ck_until((query_text(c, "status", NULL, "problem", text, sizeof text),
              strstr(text, "no device serves: device 0 is absent") != NULL));
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "degraded");
    file_read("/etc/OpenCL/vendors/pocl.icd", icd, sizeof icd);
    file_write(file, icd, strlen(icd));
    if (_i == 1) {
        ck_gpud_ok(gpud_control(c, "reload", NULL));
    }
    ck_until(query_value(c, "status", NULL, "serving") == 1);
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "ready");
    daemon_end(&d, c);
}
END_TEST

/* FAULT 44: bad settings and a restart
 * required: the settings accepted last count; workers stay; status and log name file and line
 * defence: `front/settings/accepted.c`; `front/main.c`: choose_settings
 * also: `front_accepted_test`
 * mutants: settings-accepted */
/* systemd ends the front before the next one reads its settings: bad settings must not cost the
 * workers and their buffers. */
START_TEST(a_restart_with_bad_settings_goes_on)
{
    static const char good[] = "[daemon]\nlook = all\n";
    static const char bad[] = "[daemon]\nlook = everywhere\n";
    static char out[DAEMON_OUTPUT];
    static char err[DAEMON_OUTPUT];
    struct daemon d;
    char file[DAEMON_PATH + 16];
    char state[DAEMON_PATH + 16];
    char text[1024];
    float values[4] = {1, 2, 3, 4};
    daemon_prepare(&d, "--backend", "sim", NULL);
    (void)snprintf(file, sizeof file, "%s/gpud.conf", d.dir);
    (void)snprintf(state, sizeof state, "%s/state", d.dir);
    ck_assert_int_eq(mkdir(state, 0700), 0);
    ck_assert_int_eq(setenv("STATE_DIRECTORY", state, 1), 0);
    file_write(file, good, sizeof good - 1);
    d.args[d.arg_count++] = "--config";
    d.args[d.arg_count++] = file;
    daemon_spawn(&d);
    daemon_wait_ready(&d);
    gpud_client *c = client_open(d.url);
    gpud_buffer b = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, NULL, &b));
    ck_gpud_ok(gpud_write(c, b, GPUD_F32, 0, 4, values, NULL));
    pid_t worker = daemon_worker(&d, 0);
    file_write(file, bad, sizeof bad - 1);
    daemon_hand_over(&d);
    daemon_spawn(&d);
    ck_until(query_value(c, "status", NULL, "serving") == 1);
    ck_assert_int_eq(daemon_worker(&d, 0), worker);
    memset(values, 0, sizeof values);
    ck_gpud_ok(gpud_read(c, b, GPUD_F32, 0, 4, values, NULL));
    ck_assert_float_eq(values[3], 4);
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "degraded");
    query_text(c, "status", NULL, "problem", text, sizeof text);
    ck_assert_msg(strstr(text, "gpud.conf:2") != NULL && strstr(text, "everywhere") != NULL, "%s",
                  text);
    ck_assert(daemon_logged(&d, "gpud.conf:2"));
    ck_assert_int_eq(gpuctl(&d, out, err, "config", "show", "-o", "csv", NULL), 0);
    ck_assert_msg(strstr(out, "look,all") != NULL, "%s", out);
    ck_assert_int_eq(gpuctl(&d, out, err, "config", "check", file, NULL), 1);
    file_write(file, good, sizeof good - 1);
    ck_gpud_ok(gpud_control(c, "reload", NULL));
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "ready");
    daemon_end(&d, c);
}
END_TEST

/* The next worker in the same place runs nothing that the last one left there. */
static void replacement_is_emptied(const struct daemon *d, gpud_client *c)
{
    char planted[DAEMON_PATH];
    glob_t found;
    struct stat st;
    pid_t before = daemon_worker(d, 0);
    ck_assert_int_eq(glob("/dev/shm/gpud-kernels-*", 0, NULL, &found), 0);
    ck_assert_uint_eq(found.gl_pathc, 1);
    (void)snprintf(planted, sizeof planted, "%s/planted", found.gl_pathv[0]);
    globfree(&found);
    file_write(planted, "code", 4);
    ck_assert_int_eq(kill(before, SIGKILL), 0);
    ck_until(daemon_has_another(d, 0, before) && query_value(c, "status", NULL, "serving") == 1);
    ck_assert_int_ne(stat(planted, &st), 0);
}

/* FAULT 43: the disk with a driver's compiled kernels is full or closed to the worker
 * required: workers keep them in memory; status, log and `devices` say "no space on …" or "this
 *   user may not write to …"
 * defence: `backend/opencl/cache.c`
 * mutants: cache-elsewhere, cache-replaced */
/* PoCL aborts where it cannot write a kernel, again and again, and has no device where it cannot
 * make the folder for them. That lies on a file system of its own here, which takes the right to
 * mount. */
START_TEST(a_full_or_closed_disk_costs_the_cache_only)
{
    const char *reason = _i == 0 ? "no space on " : "this user may not write to ";
    struct daemon d;
    char home[DAEMON_PATH + 16];
    char text[1024];
    float y[3] = {1, 1, 1};
    float x[3] = {1, 2, 3};
    /* a prepared worker has a folder of its own */
    daemon_prepare(&d, "--backend", "opencl", "--set", "daemon.prepared_workers=0", NULL);
    (void)snprintf(home, sizeof home, "%s/home", d.dir);
    ck_assert_int_eq(mkdir(home, 0700), 0);
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", home, "tmpfs", _i == 0 ? 0 : MS_RDONLY, "size=64k") != 0 ||
        mount("none", "/dev/shm", "tmpfs", 0, "size=256m") != 0) { /* gone with this process */
        return;                                                    /* no right to */
    }
    ck_assert_int_eq(setenv("HOME", home, 1), 0);
    ck_assert_int_eq(unsetenv("XDG_CACHE_HOME"), 0);
    ck_assert_int_eq(unsetenv("POCL_CACHE_DIR"), 0);
    daemon_spawn(&d);
    gpud_client *c = client_open(d.url);
    ck_until(query_value(c, "status", NULL, "serving") == 1);
    gpud_arg args[] = {gpud_f32(2), gpud_host_in(x, 3, GPUD_F32), gpud_host_inout(y, 3, GPUD_F32)};
    ck_gpud_ok(gpud_call(c, kernel_find(c, "axpy"), args, 3, NULL));
    ck_assert_float_eq(y[2], 7);
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "degraded");
    query_text(c, "status", NULL, "problem", text, sizeof text);
    ck_assert_msg(strstr(text, reason) != NULL && strstr(text, home) != NULL, "%s", text);
    ck_assert(daemon_logged(&d, reason));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    replacement_is_emptied(&d, c);
    daemon_end(&d, c);
}
END_TEST

/* A request to read the settings that comes while the daemon begins waits until it can be taken. */
START_TEST(a_reload_while_it_begins)
{
    struct daemon d;
    daemon_prepare(&d, "--backend", "sim", NULL);
    daemon_spawn(&d);
    ck_assert_int_eq(kill(d.pid, SIGHUP), 0);
    daemon_wait_ready(&d);
    ck_until(daemon_logged(&d, "settings were read again"));
    daemon_end(&d, client_open(d.url));
}
END_TEST

/* What an automatic choice of the back end tried first leaves nothing that the next front takes for
 * the device's. A former worker's record with the jobs of the present one made two of each, and all
 * buffers were lost. */
START_TEST(chosen_again)
{
    enum { COUNT = 4000000, JOBS = 20 };
    struct daemon d;
    float value[2] = {0};
    gpud_job *jobs[JOBS];
    gpud_client *c = daemon_begin(&d, "--backend", "auto", NULL);
    gpud_kernel axpy = kernel_find(c, "axpy");
    gpud_buffer x = {0};
    gpud_buffer y = {0};
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, COUNT), 0, "x", &x));
    ck_gpud_ok(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, COUNT), 0, "y", &y));
    ck_gpud_ok(gpud_fill(c, gpud_out(x), gpud_f32(1)));
    ck_gpud_ok(gpud_fill(c, gpud_out(y), gpud_f32(2)));
    for (unsigned i = 0; i < JOBS; i++) {
        gpud_arg args[] = {gpud_f32(1), gpud_in(x), gpud_inout(y)};
        ck_gpud_ok(gpud_launch(c, axpy, args, 3, NULL, NULL, &jobs[i]));
    }
    job_await_dispatch(c, jobs[0]);
    daemon_kill(&d);
    daemon_spawn(&d);
    for (unsigned i = 0; i < JOBS; i++) {
        ck_gpud_ok(gpud_wait(jobs[i], PATIENCE));
        gpud_job_free(jobs[i]);
    }
    ck_gpud_ok(gpud_read(c, y, GPUD_F32, COUNT - 2, 2, value, NULL));
    ck_assert_float_eq(value[1], 2 + JOBS);
    ck_assert_uint_eq(query_value(c, "devices", "0", "restarts"), 0);
    daemon_end(&d, c);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("start");
#ifdef GPUD_SYSTEMD
    suite_add_loop(suite, a_long_start_asks_for_time, 2);
    suite_add(suite, a_start_without_devices_fails);
#endif
    suite_add_loop(suite, an_absent_device_is_found_later, 2);
    suite_add(suite, a_restart_with_bad_settings_goes_on);
    suite_add_loop(suite, a_full_or_closed_disk_costs_the_cache_only, 2);
    suite_add(suite, a_reload_while_it_begins);
    suite_add(suite, chosen_again);
    return system_main(suite);
}
