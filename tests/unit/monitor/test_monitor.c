/* gpud-monitor as a process, against the double of the management library; and the page. */
#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/memfd.h"
#include "proto/health.h"

#define UUID_0 "fa4ec0da-0000-4000-8000-000000000000"
#define UUID_1 "MIG-fa4ec0da-0000-4000-8000-000000000001"

static struct memfd memory = {.fd = -1};
static pid_t monitor;

static struct health_page *page(void)
{
    return (struct health_page *)(void *)memory.data;
}

static void setup(void)
{
    ck_assert_int_eq(memfd_create_sealed("page", sizeof(struct health_page), &memory, NULL), 0);
}

static void teardown(void)
{
    if (monitor > 0) {
        (void)kill(monitor, SIGKILL);
        (void)waitpid(monitor, NULL, 0);
    }
    memfd_finish(&memory);
}

static void start(const char *script, const char *library)
{
    monitor = fork();
    ck_assert_int_ge(monitor, 0);
    if (monitor == 0) {
        /* dup2 onto itself would leave it to be closed */
        int fd = fcntl(memory.fd, F_DUPFD, 10);
        (void)dup2(fd, 3);
        (void)setenv("CUDA_FAKE_NVML", script, 1);
        (void)setenv("LD_LIBRARY_PATH", library, 1);
        (void)execl(MONITOR, "gpud-monitor", "--period", "20", (char *)NULL);
        _exit(127);
    }
}

static void nap(void)
{
    struct timespec t = {.tv_nsec = 5000000};
    (void)nanosleep(&t, NULL);
}

static void await_report(struct health_report *ret_report, uint64_t after_ns)
{
    uint64_t until = clock_now_ns() + 60 * NS_PER_S;
    while (!health_read(page(), ret_report) || ret_report->taken_ns <= after_ns) {
        ck_assert_msg(clock_now_ns() < until, "it tells nothing");
        nap();
    }
}

static void known(const struct health_device *d, enum health_kind kind, uint64_t value)
{
    ck_assert_msg(d->value[kind].state == HEALTH_KNOWN, "%s: state %u", health_name(kind),
                  d->value[kind].state);
    ck_assert_uint_eq(d->value[kind].value, value);
}

START_TEST(all_is_told)
{
    static struct health_report r;
    start("recovery=4;ecc=3;throttle=0x44", MONITOR_LIBRARY);
    await_report(&r, 0);
    ck_assert_str_eq(r.error, "");
    ck_assert_uint_eq(r.device_count, 1);
    const struct health_device *d = health_find(&r, UUID_0);
    ck_assert_ptr_nonnull(d);
    known(d, HEALTH_temperature, 41);
    known(d, HEALTH_power, 312500);
    known(d, HEALTH_power_limit, 700000);
    known(d, HEALTH_energy, 5000000000);
    known(d, HEALTH_busy, 370000);
    known(d, HEALTH_memory_used, UINT64_C(1) << 30);
    known(d, HEALTH_ecc_corrected, 2);
    known(d, HEALTH_ecc_uncorrected, 3);
    known(d, HEALTH_throttling, 0x44);
    known(d, HEALTH_recovery, HEALTH_RECOVERY_DRAIN_AND_RESET);
    known(d, HEALTH_processes, 2);
    ck_assert_uint_eq(d->process[0].pid, 1234);
    ck_assert_uint_eq(d->process[1].bytes, HEALTH_UNKNOWN);
    await_report(&r, r.taken_ns); /* and again */
}
END_TEST

START_TEST(what_it_cannot_know_is_told_by_itself)
{
    static struct health_report r;
    start("DeviceGetPowerUsage=3;DeviceGetTotalEccErrors=4;DeviceGetTemperature=15",
          MONITOR_LIBRARY);
    await_report(&r, 0);
    const struct health_device *d = health_find(&r, UUID_0);
    ck_assert_ptr_nonnull(d);
    ck_assert_uint_eq(d->value[HEALTH_power].state, HEALTH_UNSUPPORTED);
    ck_assert_uint_eq(d->value[HEALTH_ecc_corrected].state, HEALTH_DENIED);
    ck_assert_uint_eq(d->value[HEALTH_temperature].state, HEALTH_FAILED);
    ck_assert_int_eq(d->value[HEALTH_temperature].code, 15);
    known(d, HEALTH_busy, 370000);
}
END_TEST

/* Instances share the values that exist for the whole GPU only. */
START_TEST(instances_are_devices)
{
    static struct health_report r;
    start("mig=3;devices=2", MONITOR_LIBRARY);
    await_report(&r, 0);
    ck_assert_uint_eq(r.device_count, 8);
    const struct health_device *d = health_find(&r, UUID_1);
    ck_assert_ptr_nonnull(d);
    known(d, HEALTH_temperature, 41);
    ck_assert_ptr_nonnull(health_find(&r, "fa4ec0da-0000-4000-8000-000000000005"));
    ck_assert_ptr_null(health_find(&r, "fa4ec0da-0000-4000-8000-000000000006"));
    ck_assert_uint_eq(d->divided, 0);
    ck_assert_uint_eq(r.device[0].divided, 1);
}
END_TEST

START_TEST(a_gpu_beside_instances_is_one)
{
    static struct health_report r;
    start("mig=2;devices=2;whole=1", MONITOR_LIBRARY);
    await_report(&r, 0);
    ck_assert_uint_eq(r.device_count, 4);
    const struct health_device *d = health_find(&r, UUID_0);
    ck_assert_ptr_nonnull(d);
    ck_assert_uint_eq(d->divided, 0);
    ck_assert_uint_eq(r.device[1].divided, 1);
    ck_assert_str_eq(r.device[2].uuid, UUID_1);
}
END_TEST

static void ends_with(const char *script, const char *library, const char *want)
{
    static struct health_report r;
    int status = 0;
    start(script, library);
    ck_assert_int_eq(waitpid(monitor, &status, 0), monitor);
    monitor = 0;
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 1);
    await_report(&r, 0);
    ck_assert_msg(strstr(r.error, want) != NULL, "%s", r.error);
    ck_assert_uint_eq(r.device_count, 0);
    ck_assert_uint_eq(atomic_load(&page()->asking_ns), 0);
}

START_TEST(no_driver_is_told)
{
    ends_with("Init=9", MONITOR_LIBRARY, "Driver Not Loaded (9)");
}
END_TEST

START_TEST(no_library_is_told)
{
    ends_with("", "/nonexistent", "comes with the NVIDIA driver");
}
END_TEST

/* A reader of the page sees since when a query runs; a copy is never a mix of two reports. */
START_TEST(a_hang_shows_in_the_page)
{
    static struct health_report r;
    uint64_t before = clock_now_ns();
    uint64_t until = before + 60 * NS_PER_S;
    start("DeviceGetUtilizationRates=hang", MONITOR_LIBRARY);
    while (atomic_load(&page()->asking_ns) == 0) {
        ck_assert(clock_now_ns() < until);
        nap();
    }
    ck_assert_uint_ge(atomic_load(&page()->asking_ns), before);
    ck_assert(health_read(page(), &r));
    ck_assert_uint_eq(r.taken_ns, 0);
}
END_TEST

static void await_file(const char *path)
{
    uint64_t until = clock_now_ns() + 60 * NS_PER_S;
    while (access(path, F_OK) != 0) {
        ck_assert_msg(clock_now_ns() < until, "it does not ask");
        nap();
    }
}

/* The driver takes seconds to start a GPU that is not in use: eight of them are no hang. */
START_TEST(each_gpu_has_its_own_time)
{
    static struct health_report r;
    char dir[] = "/tmp/monitor-XXXXXX";
    char path[64];
    ck_assert_ptr_nonnull(mkdtemp(dir));
    (void)snprintf(path, sizeof path, "%s/nvml-DeviceGetHandleByIndex", dir);
    (void)setenv("CUDA_FAKE_STATE", dir, 1);
    start("devices=2;DeviceGetHandleByIndex=wait", MONITOR_LIBRARY);
    await_file(path);
    uint64_t second = clock_now_ns();
    ck_assert_uint_lt(atomic_load(&page()->asking_ns), second);
    ck_assert_int_eq(unlink(path), 0);
    await_file(path);
    ck_assert_uint_ge(atomic_load(&page()->asking_ns), second);
    ck_assert(health_read(page(), &r));
    ck_assert_uint_eq(r.taken_ns, 0);
    (void)kill(monitor, SIGKILL);
    (void)waitpid(monitor, NULL, 0);
    monitor = 0;
    ck_assert_int_eq(unlink(path), 0);
    ck_assert_int_eq(rmdir(dir), 0);
}
END_TEST

START_TEST(a_page_is_read_whole_and_sane)
{
    static struct health_report r;
    static struct health_report out;
    memset(&r, 'x', sizeof r);
    r.taken_ns = 5;
    health_write(page(), &r);
    ck_assert(health_read(page(), &out));
    ck_assert_uint_eq(out.device_count, HEALTH_DEVICES);
    ck_assert_uint_eq(strlen(out.error), sizeof out.error - 1);
    ck_assert_uint_eq(strlen(out.device[HEALTH_DEVICES - 1].uuid), HEALTH_UUID - 1);
    atomic_store(&page()->sequence, 7); /* its writer was killed in the middle */
    ck_assert(!health_read(page(), &out));
    health_write(page(), &r);
    ck_assert(health_read(page(), &out));
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("monitor");
    TCase *all = tcase_create("monitor");
    tcase_add_checked_fixture(all, setup, teardown);
    tcase_set_timeout(all, 120);
    tcase_add_test(all, all_is_told);
    tcase_add_test(all, what_it_cannot_know_is_told_by_itself);
    tcase_add_test(all, instances_are_devices);
    tcase_add_test(all, a_gpu_beside_instances_is_one);
    tcase_add_test(all, no_driver_is_told);
    tcase_add_test(all, no_library_is_told);
    tcase_add_test(all, a_hang_shows_in_the_page);
    tcase_add_test(all, each_gpu_has_its_own_time);
    tcase_add_test(all, a_page_is_read_whole_and_sane);
    suite_add_tcase(suite, all);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? 0 : 1;
}
