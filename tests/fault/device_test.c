/* Devices that are lost, that are not there, whose driver asks for a recovery, and a management
 * library that hangs: on the double of the driver (tests/fakecuda, tests/fakenvml). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/system/cuda_jobs.h"

static struct daemon daemon_of_test;

/* ---- the double ------------------------------------------------------------------------------ */

static void prepare(const char *script, const char *option, const char *value)
{
    cuda_prepare(&daemon_of_test, script, option, value);
}

static gpud_client *begin(const char *script, const char *option, const char *value)
{
    return cuda_begin(&daemon_of_test, script, option, value);
}

static void end(gpud_client *c)
{
    daemon_end_clean(&daemon_of_test, c);
}

/* ---- devices that are gone ------------------------------------------------------------------- */

/* FAULT 10-11: GPU lost
 * required: status reports it; jobs that only it could run fail, other jobs run elsewhere; no
 *   other device takes its place when the driver renumbers
 * defence: `front/devices/discover.c`: fail_waiting; `front/workers/worker.c`: ask_launcher;
 *   `backend/cuda/device.c`: uuid_wanted
 * also: `test_fault_device`: lost_device_of_two
 * mutants: no-hope, device-pin */
/* A device that is gone is said to be; with no other one nothing is taken that could never run. */
START_TEST(lost_device)
{
    struct axpy a;
    char text[64];
    gpud_client *c = begin("cuLaunchKernel@4=lost", "--set", "jobs.window=4");
    for (unsigned i = 0; i < 2; i++) {
        unharmed(c);
    }
    axpy_start(c, &a, 1);
    int rc = gpud_wait(a.job, 2 * PATIENCE);
    ck_assert_msg(rc == GPUD_ERR_NO_DEVICE || rc == GPUD_ERR_DEVICE_LOST, "%s", gpud_err_name(rc));
    gpud_job_free(a.job);
    wait_state(c, "0", "absent");
    reason_holds(c, "0", "the driver does not see the device GPU-");
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "not ready");
    end(c);
}
END_TEST

/* One of two is gone, and the driver counts the rest anew: its place is not taken by the other. */
START_TEST(lost_device_of_two)
{
    struct axpy a[8];
    char text[64];
    gpud_client *c = begin("devices=2;1:cuLaunchKernel@3=lost", "--set", "daemon.min_devices=2");
    pid_t other = daemon_worker(&daemon_of_test, 1);
    for (unsigned i = 0; i < 8; i++) {
        axpy_start(c, &a[i], (float)i);
    }
    for (unsigned i = 0; i < 8; i++) {
        axpy_check(&a[i], (float)i);
    }
    /* how many of them that device had, nothing says */
    ck_until((unharmed(c), state_of(c, "0", text, sizeof text), strcmp(text, "absent") == 0));
    reason_holds(c, "0", "the driver does not see the device GPU-");
    state_of(c, "1", text, sizeof text);
    ck_assert_str_eq(text, "ready");
    ck_assert_int_eq(daemon_worker(&daemon_of_test, 1), other);
    end(c);
}
END_TEST

/* ---- how the hardware is --------------------------------------------------------------------- */

static gpud_client *begin_watched(const char *management)
{
    prepare("", "--set", "jobs.window=4");
    (void)setenv("CUDA_FAKE_NVML", management, 1);
    daemon_spawn(&daemon_of_test);
    daemon_wait_ready(&daemon_of_test);
    return client_open(daemon_of_test.url);
}

static void end_watched(gpud_client *c)
{
    end(c);
    (void)unsetenv("CUDA_FAKE_NVML");
}

static bool told(gpud_client *c, const char *column, const char *want)
{
    char text[512];
    query_text(c, "devices", "0", column, text, sizeof text);
    return strstr(text, want) != NULL;
}

static void ask_for(const char *action)
{
    char path[DAEMON_PATH + 32];
    (void)snprintf(path, sizeof path, "%s/state/recovery", daemon_of_test.dir);
    file_write(path, action, strlen(action));
}

START_TEST(health_is_told)
{
    char out[DAEMON_OUTPUT];
    char err[DAEMON_OUTPUT];
    gpud_client *c = begin_watched("throttle=0x24;ecc=3;DeviceGetPowerUsage=3");
    ask_for("4");
    ck_until(told(c, "health", "known") && !told(c, "health", "not known"));
    ck_assert_uint_eq(query_value(c, "devices", "0", "temperature"), 41);
    ck_assert_uint_eq(query_value(c, "devices", "0", "power_limit"), 700);
    ck_assert_uint_eq(query_value(c, "devices", "0", "gpu_busy"), 370000);
    ck_assert_uint_eq(query_value(c, "devices", "0", "gpu_memory"), UINT64_C(1) << 30);
    ck_assert_uint_eq(query_value(c, "devices", "0", "ecc_errors"), 3);
    ck_assert(told(c, "throttled", "power cap, heat"));
    ck_until(told(c, "recovery", "drain and reset the GPU"));
    ck_until(told(c, "note", "the driver asks: drain and reset the GPU"));
    ck_assert(told(c, "processes", "2: 1234 512 MiB, 5678"));
    ck_assert(told(c, "power", "unsupported"));
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "devices", "-o", "wide", NULL), 0);
    ck_assert_msg(strstr(out, "drain and reset") != NULL, "%s", out);
    ck_assert_int_eq(gpuctl(&daemon_of_test, out, err, "devices", "-o", "json", NULL), 0);
    ck_assert_msg(strstr(out, "\"power\": null") != NULL, "%s", out);
    end_watched(c);
}
END_TEST

/* FAULT 6-7, 10-11: the driver asks for a recovery (reset, reboot, drain)
 * required: the device is held back: running jobs go on, it gets no new jobs or buffers, its
 *   state is `held` with the reason, until the driver asks for nothing more. Missing
 *   information neither sets nor lifts a hold; after two minutes without information the device
 *   serves, with a warning
 * defence: `front/devices/monitor.c`: monitor_watch
 * also: `front_monitor_test`: what_is_not_known_holds_for_a_while,
 *   a_hold_outlives_its_front; `test_fault_device`: a_hold_outlives_its_front
 * mutants: held-back, held-again, monitor-unsure */
/* What runs there goes on, nothing else begins, until the driver asks for nothing
 * more. */
START_TEST(a_device_that_wants_recovery_is_held_back)
{
    struct axpy a;
    char text[64];
    gpud_client *c = begin_watched("");
    gpud_buffer b = {0};
    unharmed(c);
    gpud_buffer kept = filled(c, 5);
    ask_for(_i == 0 ? "4" : "1");
    wait_state(c, "0", "held");
    reason_holds(c, "0", _i == 0 ? "the driver asks: drain and reset" : "the driver asks: reset");
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "not ready");
    axpy_start(c, &a, 3);
    ck_gpud_err(gpud_buffer_create(c, gpud_shape_1d(GPUD_F32, 4), 0, "b", &b), GPUD_ERR_NO_DEVICE);
    ck_gpud_err(gpud_wait(a.job, 2500 * UINT64_C(1000000)), GPUD_ERR_TIMEOUT);
    ck_assert_uint_eq(query_value(c, "devices", "0", "in_flight"), 0);
    ask_for("0");
    axpy_check(&a, 3);
    wait_state(c, "0", "ready");
    ck_gpud_ok(gpud_buffer_free(c, kept));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end_watched(c);
}
END_TEST

/* Nor does another front give it any before it knows better. */
START_TEST(a_hold_outlives_its_front)
{
    gpud_client *c = begin_watched("");
    unharmed(c);
    ask_for("1");
    wait_state(c, "0", "held");
    daemon_hand_over(&daemon_of_test);
    daemon_spawn(&daemon_of_test);
    ck_until(daemon_logged(&daemon_of_test, "gets no new jobs until its driver answers"));
    wait_state(c, "0", "held");
    ask_for("0");
    wait_state(c, "0", "ready");
    unharmed(c);
    ck_assert(!daemon_logged(&daemon_of_test, "after a restart"));
    end_watched(c);
}
END_TEST

/* The hang is found without a request for the table of devices. */
START_TEST(a_hang_is_found_without_anybody_looking)
{
    gpud_client *c = begin_watched("DeviceGetTemperature=hang-later");
    ck_until(daemon_logged(&daemon_of_test, "gpud-monitor is ended: the driver did not answer"));
    unharmed(c);
    end_watched(c);
}
END_TEST

/* FAULT 12: NVIDIA's management library hangs
 * required: nothing waits for it: `gpuctl devices` says "not known" and why. Its process is
 *   ended within seconds (before its first answer a minute, because the driver may have to
 *   start GPUs), also without any `gpuctl devices`, and another is started after a pause. If it
 *   cannot be ended, no other is started
 * defence: `front/devices/monitor.c`: monitor_watch, monitor_read; only `gpud-monitor` calls it
 * also: `test_fault_device`: a_hang_is_found_without_anybody_looking; `front_monitor_test`:
 *   one_is_kept_without_anybody_looking, the_first_answer_may_take_longer; `test_monitor`:
 *   a_hang_shows_in_the_page, each_gpu_has_its_own_time
 * mutants: monitor-hang */
/* The library hangs. Jobs go on, the value is "not known" with the reason; its process is
 * ended, and where that is not possible either, nothing waits for it. */
START_TEST(management_library_hangs)
{
    gpud_client *c = begin_watched("DeviceGetTemperature=hang-later");
    ck_until(told(c, "health", "known") && !told(c, "health", "not known"));
    unharmed(c);
    pid_t launcher = daemon_launcher(&daemon_of_test);
    ck_assert_int_eq(kill(launcher, SIGSTOP),
                     0); /* the process is not reaped, as if the kernel could not end it */
    ck_until(told(c, "health", "not known: the driver did not answer within 5 s"));
    ck_until(told(c, "health", "cannot be ended"));
    ck_assert(told(c, "temperature", "-"));
    unharmed(c);
    ck_assert_int_eq(kill(launcher, SIGCONT), 0);
    ck_until(told(c, "health", "within 5 s") && !told(c, "health", "cannot be ended"));
    ck_assert_uint_eq(query_value(c, "status", NULL, "restarts"), 0);
    end_watched(c);
}
END_TEST

START_TEST(no_management_library)
{
    static const struct {
        const char *management, *reason;
    } reasons[] = {{"Init=9", "not known: nvmlInit: Driver Not Loaded (9)"},
                   {"DeviceGetTemperature=hang", "the driver has not answered yet"},
                   {"DeviceGetUUID=exit", "not known: gpud-monitor ended unexpectedly"},
                   {"devices=0", "not known: the management library does not list this device"}};
    gpud_client *c = begin_watched(reasons[_i].management);
    ck_until(told(c, "health", reasons[_i].reason));
    unharmed(c);
    end_watched(c);
}
END_TEST

static void absent_with(const char *script, const char *library_path, const char *reason)
{
    char text[64];
    prepare(script, "--set", "jobs.window=4");
    (void)setenv("LD_LIBRARY_PATH", library_path, 1);
    daemon_spawn(&daemon_of_test);
    gpud_client *c = client_open(daemon_of_test.url);
    wait_state(c, "0", "absent");
    reason_holds(c, "0", reason);
    query_text(c, "status", NULL, "state", text, sizeof text);
    ck_assert_str_eq(text, "not ready");
    end(c);
}

START_TEST(no_or_older_driver)
{
    static const struct {
        const char *script, *reason;
    } drivers[] = {{"driver=12000", "too old"},
                   {"devices=0", "CUDA_ERROR_NO_DEVICE"},
                   {"init=803", "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"}};
    absent_with(drivers[_i].script, SYSTEM_FAKECUDA, drivers[_i].reason);
}
END_TEST

/* A file that is no library hides whatever driver this machine may have. */
START_TEST(no_driver)
{
    char dir[] = "/tmp/gpud-no-driver-XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/libcuda.so.1", dir);
    file_write(path, "none", 4);
    absent_with("", dir, "install the NVIDIA driver");
    (void)remove(path);
    (void)remove(dir);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("device");
    suite_add(suite, lost_device);
    suite_add(suite, lost_device_of_two);
    suite_add(suite, health_is_told);
    suite_add_loop(suite, a_device_that_wants_recovery_is_held_back, 2);
    suite_add(suite, a_hold_outlives_its_front);
    suite_add(suite, a_hang_is_found_without_anybody_looking);
    suite_add(suite, management_library_hangs);
    suite_add_loop(suite, no_management_library, 4);
    suite_add_loop(suite, no_or_older_driver, 3);
    suite_add(suite, no_driver);
    return nvrtc_main(suite);
}
