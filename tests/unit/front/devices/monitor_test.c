/* The front's side of gpud-monitor: when it is started and ended, and what its page does to the
 * devices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/devices/discover.h"
#include "daemon/front/devices/drained.h"
#include "daemon/front/devices/hold_file.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/workers/launcher_link.h"
#include "daemon/front/workers/worker.h"
#include "proto/health.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"
#include "tests/unit/front/scratch.h"

#define UUID "fa4ec0da-0000-4000-8000-000000000000"

static struct fake *k;
static unsigned workers; /* that were asked for */
static unsigned started, killed, changed;
static uint64_t begun; /* the clock's time at the test's begin */
static char dir[SCRATCH_PATH];

static int on_monitor(struct launcher_link *l, uint64_t id, int page_fd, struct err *e)
{
    (void)l;
    (void)e;
    ck_assert_uint_ne(id, 0);
    ck_assert_int_ge(page_fd, 0);
    started++;
    return 0;
}

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)signal;
    (void)e;
    ck_assert_uint_eq(id, k->f.monitor->id);
    killed++;
    return 0;
}

static int on_worker(struct launcher_link *l, const struct worker_order *w, struct err *e)
{
    (void)l;
    (void)w;
    (void)e;
    workers++;
    return 0;
}

static void on_changed(struct front *f, struct device *d)
{
    ck_assert_ptr_eq(d, f->device[0]);
    changed++;
}

static void begin(void)
{
    started = killed = changed = workers = 0;
    k = fake_create();
    k->f.io.kill = on_kill;
    k->f.io.start_worker = on_worker;
    k->f.io.start_monitor = on_monitor;
    ck_assert_int_eq(monitor_create(&k->f.monitor, NULL), 0);
    ck_assert_int_eq(hold_file_create(&k->f.holds, NULL), 0);
    k->f.launcher = (struct launcher_link *)(void *)k; /* only its presence counts */
    k->f.wake_ns = NS_NEVER;
    k->f.hooks.device_changed = on_changed;
    (void)strcpy(k->device[0].pin, "uuid=GPU-" UUID);
    scratch_make(dir);
    (void)snprintf(k->f.config.runtime_dir, sizeof k->f.config.runtime_dir, "%s", dir);
    begun = fake_now();
}

static void end(void)
{
    monitor_destroy(k->f.monitor);
    hold_file_destroy(k->f.holds);
    k->f.launcher = NULL;
    fake_destroy(k);
    scratch_remove(dir);
}

/* As the loop does: `after` seconds from the begin. */
static void at(uint64_t after)
{
    k->f.wake_ns = NS_NEVER;
    monitor_watch(&k->f, begun + after * NS_PER_S, false);
}

static struct health_page *page(void)
{
    return (struct health_page *)(void *)k->f.monitor->page.data;
}

/* What the monitor writes at the end of a round. */
static void tells(uint64_t after, uint32_t state, uint64_t recovery)
{
    static struct health_report report;
    memset(&report, 0, sizeof report);
    report.taken_ns = begun + after * NS_PER_S;
    report.device_count = 1;
    (void)strcpy(report.device[0].uuid, "GPU-" UUID);
    report.device[0].value[HEALTH_recovery] =
        (struct health_value){.state = state, .value = recovery};
    health_write(page(), &report);
    atomic_store(&page()->asking_ns, 0);
}

/* What it writes before it asks. */
static void asks(uint64_t after)
{
    atomic_store(&page()->asking_ns, begun + after * NS_PER_S);
}

START_TEST(one_is_kept_without_anybody_looking)
{
    begin();
    monitor_wake(&k->f, &k->device[0]);
    ck_assert_uint_ne(k->f.wake_ns, NS_NEVER);
    at(0);
    ck_assert_uint_eq(started, 1);
    ck_assert_uint_eq(k->f.wake_ns, begun + NS_PER_S);
    tells(0, HEALTH_KNOWN, HEALTH_RECOVERY_NONE);
    asks(1);
    at(5);
    ck_assert_uint_eq(killed, 0);
    at(7); /* it does not answer */
    at(8);
    ck_assert_uint_eq(killed, 1);
    ck_assert(monitor_ended(&k->f, k->f.monitor->id));
    at(9);
    ck_assert_uint_eq(started, 1);
    at(60);
    ck_assert_uint_eq(started, 2);
    tells(60, HEALTH_KNOWN, HEALTH_RECOVERY_NONE);
    at(69);
    ck_assert_uint_eq(killed, 1);
    at(71); /* it begins no round */
    ck_assert_uint_eq(killed, 2);
    end();
}
END_TEST

static int on_kill_fails(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)id;
    (void)signal;
    return err_set(e, ERR_CLOSED, "the launcher takes no orders");
}

/* It is no worker: the line has a kind of its own, and says what follows for operators. */
START_TEST(one_that_cannot_be_ended_is_no_worker)
{
    char said[512] = "";
    int lines[2];
    begin();
    k->f.io.kill = on_kill_fails;
    at(0);
    ck_assert_int_eq(pipe(lines), 0);
    int stderr_fd = dup(STDERR_FILENO);
    ck_assert_int_ge(dup2(lines[1], STDERR_FILENO), 0);
    at(61);
    ck_assert_int_ge(dup2(stderr_fd, STDERR_FILENO), 0);
    ck_assert_int_gt(read(lines[0], said, sizeof said - 1), 0);
    ck_assert_msg(strstr(said, "gpud-monitor: the launcher takes no orders; systemctl restart "
                               "gpud-launcher if device health stays unknown") != NULL,
                  "%s", said);
    (void)close(stderr_fd);
    (void)close(lines[0]);
    (void)close(lines[1]);
    end();
}
END_TEST

/* In the first round the driver may have each GPU to start. */
START_TEST(the_first_answer_may_take_longer)
{
    begin();
    at(0);
    at(59);
    asks(59); /* about the second GPU */
    at(118);
    ck_assert_uint_eq(killed, 0);
    at(120);
    ck_assert_uint_eq(killed, 1);
    ck_assert_str_eq(k->f.monitor->ended, "the driver did not answer within 60 s");
    end();
}
END_TEST

/* The front stood still, and what it sees is old for that reason. */
START_TEST(one_that_stood_still_has_time_to_tell)
{
    begin();
    at(0);
    tells(0, HEALTH_KNOWN, HEALTH_RECOVERY_NONE);
    monitor_watch(&k->f, begun + 3600 * NS_PER_S, true);
    ck_assert_uint_eq(killed, 0);
    tells(3600, HEALTH_KNOWN, HEALTH_RECOVERY_NONE);
    at(3601);
    ck_assert_uint_eq(killed, 0);
    end();
}
END_TEST

/* Neither puts a hold nor lifts one; but nobody is held for good by what nobody knows. */
START_TEST(what_is_not_known_holds_for_a_while)
{
    struct device *d;
    begin();
    d = &k->device[0];
    at(0);
    tells(1, HEALTH_FAILED, HEALTH_RECOVERY_RESET);
    at(1);
    ck_assert(device_serves(d));
    tells(2, HEALTH_KNOWN, HEALTH_RECOVERY_RESET);
    at(2);
    ck_assert(!device_serves(d));
    ck_assert_str_eq(d->reason, "the driver asks: reset the GPU");
    if (_i == 0) {
        ck_assert(monitor_ended(&k->f, k->f.monitor->id));
        k->f.monitor->start_ns = NS_NEVER;
    }
    for (uint64_t i = 3; i <= 122; i++) {
        if (_i == 1) {
            tells(i, HEALTH_FAILED, 0);
        }
        at(i);
        ck_assert(!device_serves(d));
    }
    ck_assert_uint_eq(changed, 1);
    at(123);
    ck_assert(device_serves(d));
    ck_assert_uint_eq(changed, 2);
    ck_assert_str_eq(d->reason, "not known whether the driver still asks: reset the GPU");
    if (_i == 1) {
        tells(124, HEALTH_KNOWN, HEALTH_RECOVERY_RESET);
        at(124);
        ck_assert(!device_serves(d));
        tells(125, HEALTH_KNOWN, HEALTH_RECOVERY_NONE);
        at(125);
        ck_assert(device_serves(d));
        ck_assert_str_eq(d->reason, "");
    }
    end();
}
END_TEST

/* The next front holds back what this one did, before its own monitor has told anything; and lets
 * it go for what that tells, or when nobody knows for long. */
START_TEST(a_hold_outlives_its_front)
{
    begin();
    at(0);
    tells(1, HEALTH_KNOWN, HEALTH_RECOVERY_RESET);
    at(1);
    for (unsigned front = 0; front < 3; front++) {
        struct device *d = &k->device[0];
        monitor_destroy(k->f.monitor);
        ck_assert_int_eq(monitor_create(&k->f.monitor, NULL), 0);
        hold_file_destroy(k->f.holds);
        ck_assert_int_eq(hold_file_create(&k->f.holds, NULL), 0);
        d->recovery = HEALTH_RECOVERY_NONE;
        d->recovery_ns = 0;
        monitor_wake(&k->f, d);
        ck_assert_int_eq(device_serves(d), front == 2);
        at(2);
        ck_assert_int_eq(device_serves(d), front == 2);
        if (front == 1) {
            tells(3, HEALTH_KNOWN, HEALTH_RECOVERY_NONE);
            at(3);
            ck_assert(device_serves(d));
        }
    }
    end();
}
END_TEST

START_TEST(holds_survive_the_front)
{
    struct hold_file h = {.count = 0};
    struct hold_file next = {.count = 0};
    begin();
    hold_file_set(&h, dir, "uuid=a", 1);
    hold_file_set(&h, dir, "uuid=b", 4);
    hold_file_set(&h, dir, "uuid=a", 2);
    ck_assert_uint_eq(hold_file_find(&next, dir, "uuid=a"), 2);
    ck_assert_uint_eq(hold_file_find(&next, dir, "uuid=b"), 4);
    ck_assert_uint_eq(hold_file_find(&next, dir, "uuid=c"), 0);
    hold_file_set(&next, dir, "uuid=a", 0);
    hold_file_set(&next, dir, "uuid=b", 0);
    ck_assert_int_ne(access(scratch_path(dir, "held"), F_OK), 0);
    scratch_write(scratch_path(dir, "held"), "uuid=a x\n\n", 10);
    struct hold_file broken = {.count = 0};
    ck_assert_uint_eq(hold_file_find(&broken, dir, "uuid=a"), 0);
    hold_file_set(&broken, "/nowhere", "uuid=a", 1); /* told, and no harm */
    ck_assert_uint_eq(hold_file_find(&broken, "/nowhere", "uuid=a"), 1);
    end();
}
END_TEST

static const struct hold_drain *drained(struct hold_file *h, const char *backend, unsigned number,
                                        const char *pin)
{
    return hold_file_drained(h, dir, backend, number, pin);
}

/* By UUID, or else by back end and number; beside holds, and after lines that are damaged. */
START_TEST(drains_survive_the_front)
{
    struct hold_file h = {.count = 0};
    struct hold_file next = {.count = 0};
    struct hold_drain one = {.backend = "cuda", .number = 1, .siblings = 3, .wish = DRAIN_HOLDS};
    struct hold_drain two = {.backend = "opencl", .number = 0, .siblings = 1, .since_s = 77};
    begin();
    (void)strcpy(one.pin, "uuid=GPU-a");
    (void)strcpy(one.by, "ops");
    (void)strcpy(two.by, "uid:0");
    two.wish = DRAIN_FINISHES;
    hold_file_set(&h, dir, "uuid=b", 4);
    hold_file_drain(&h, dir, &one);
    hold_file_drain(&h, dir, &two);
    ck_assert_uint_eq(hold_file_find(&next, dir, "uuid=b"), 4);
    ck_assert_ptr_nonnull(drained(&next, "cuda", 1, ""));
    ck_assert_ptr_nonnull(drained(&next, "cuda", 5, "uuid=GPU-a")); /* numbers shift */
    ck_assert_ptr_null(drained(&next, "cuda", 1, "uuid=GPU-b"));
    ck_assert_ptr_null(drained(&next, "cuda", 0, ""));
    ck_assert_str_eq(drained(&next, "cuda", 1, "")->by, "ops");
    ck_assert_str_eq(drained(&next, "cuda", 1, "")->pin, "uuid=GPU-a");
    const struct hold_drain *d = drained(&next, "opencl", 0, "");
    ck_assert_uint_eq(d->wish, DRAIN_FINISHES);
    ck_assert_uint_eq(d->since_s, 77);
    ck_assert_uint_eq(d->siblings, 1);
    ck_assert_str_eq(d->pin, "");
    hold_file_resume(&next, dir, "cuda", 9, "uuid=GPU-a");
    hold_file_resume(&next, dir, "sim", 0, "");
    hold_file_set(&next, dir, "uuid=b", 0);
    struct hold_file last = {.count = 0};
    ck_assert_ptr_null(drained(&last, "cuda", 1, ""));
    ck_assert_ptr_nonnull(drained(&last, "opencl", 0, ""));
    hold_file_resume(&last, dir, "opencl", 0, "");
    ck_assert_int_ne(access(scratch_path(dir, "held"), F_OK), 0);
    static const char bad[] = "drained\ndrained cuda\ndrained cuda 1 1 9 5 me x\n"
                              "drained cuda 1 1 1 5\ndrained sim 2 1 1 5 me \n";
    scratch_write(scratch_path(dir, "held"), bad, sizeof bad - 1);
    struct hold_file broken = {.count = 0};
    ck_assert_ptr_null(drained(&broken, "cuda", 1, ""));
    ck_assert_ptr_nonnull(drained(&broken, "sim", 2, ""));
    ck_assert_uint_eq(broken.count, 0);
    end();
}
END_TEST

/* Its library has every GPU open. It starts without a pause when no device is drained any more. */
START_TEST(a_drained_device_has_no_monitor)
{
    char why[256];
    struct health_device health;
    uint64_t age = 0;
    begin();
    struct device *d = &k->device[0];
    at(0);
    ck_assert_uint_eq(started, 1);
    tells(1, HEALTH_KNOWN, HEALTH_RECOVERY_NONE);
    device_set_drain(d, DRAIN_HOLDS);
    at(1);
    ck_assert_uint_eq(killed, 0); /* its workers are there still */
    device_set_state(d, DEVICE_RESTING, "");
    at(2);
    ck_assert_uint_eq(killed, 1);
    ck_assert(!monitor_leaves(&k->f, d));
    ck_assert(monitor_ended(&k->f, k->f.monitor->id));
    ck_assert(monitor_leaves(&k->f, d));
    ck_assert(!monitor_read(&k->f, d, &health, &age, why, sizeof why));
    ck_assert_str_eq(why, "device 0 is drained, and the management library would open it");
    at(40);
    ck_assert_uint_eq(started, 1);
    device_set_drain(d, DRAIN_NONE);
    at(41);
    ck_assert_uint_eq(started, 2);
    ck_assert_uint_eq(killed, 1);
    end();
}
END_TEST

/* No timer, no process. */
START_TEST(without_a_device_to_ask_about_there_is_none)
{
    begin();
    k->device[0].pin[0] = '\0';
    k->f.wake_ns = NS_NEVER;
    monitor_wake(&k->f, &k->device[0]);
    at(10);
    ck_assert_uint_eq(k->f.wake_ns, NS_NEVER);
    ck_assert_uint_eq(started, 0);
    end();
}
END_TEST

/* A GPU in MIG mode with three instances; those of the first two places are open, in the order in
 * which the workers of a front before were taken over. */
static void list_instances(bool chosen)
{
    static struct health_report report;
    memset(&report, 0, sizeof report);
    report.device_count = 4;
    report.device[0].divided = 1;
    (void)strcpy(report.device[0].uuid, "GPU-" UUID);
    for (unsigned i = 0; i < 3; i++) {
        (void)snprintf(report.device[i + 1].uuid, HEALTH_UUID, "MIG-%u", i);
    }
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].number = 1 - i;
        (void)snprintf(k->device[i].pin, sizeof k->device[i].pin, "uuid=MIG-%u", 1 - i);
        k->device[i].chosen = chosen;
    }
    discover_listed(&k->f, &report);
}

/* Whether they were named is a matter of the workers' environment: the front may have another. */
START_TEST(all_instances_are_opened_unless_workers_are_told_which)
{
    begin();
    (void)setenv("CUDA_VISIBLE_DEVICES", "MIG-0,MIG-1", 1);
    list_instances(true);
    ck_assert_uint_eq(workers, 0);
    list_instances(false);
    ck_assert_uint_eq(workers, 1);
    ck_assert_uint_eq(k->f.device_count, FAKE_DEVICES + 1);
    struct device *d = k->f.device[FAKE_DEVICES];
    ck_assert_str_eq(d->pin, "uuid=MIG-2");
    ck_assert_uint_eq(d->number, 2);
    list_instances(false);
    ck_assert_uint_eq(workers, 1);
    (void)unsetenv("CUDA_VISIBLE_DEVICES");
    worker_forget(d);
    free(d);
    end();
}
END_TEST

static void on_any_changed(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
}

/* Instance `which` of two is drained, by the former front; this one finds no worker. */
static void start_beside_a_drained_one(unsigned which)
{
    k->f.hooks.device_changed = on_any_changed;
    k->f.listed = true;
    (void)strcpy(k->f.config.backend, "auto");
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].number = i;
        k->device[i].siblings = 1; /* a process sees one */
        (void)strcpy(k->device[i].backend, "cuda");
        (void)snprintf(k->device[i].pin, sizeof k->device[i].pin, "uuid=MIG-%u", i);
    }
    drained_by(&k->device[which], "ops");
    device_set_drain(&k->device[which], DRAIN_HOLDS);
    drained_note(&k->f, &k->device[which]);
    device_set_drain(&k->device[which], DRAIN_NONE);
    hold_file_destroy(k->f.holds);
    ck_assert_int_eq(hold_file_create(&k->f.holds, NULL), 0);
    k->f.device_count = 0;
    discover_start(&k->f);
}

/* FAULT other: gpud starts while an instance of MIG is drained
 * required: it serves the other instances, and no process opens the GPU to look for them
 * defence: `front/devices/drained.c`: know_all; `front/devices/discover.c`: open_known
 * also: `test_system_gpus`: instances_beside_a_drained_one_serve
 * mutants: drain-siblings, drain-asks */
START_TEST(instances_beside_a_drained_one_are_known)
{
    unsigned which = (unsigned)_i;
    begin();
    start_beside_a_drained_one(which);
    ck_assert_uint_eq(k->f.device_count, 2);
    ck_assert_uint_eq(workers, 1);
    ck_assert(device_drains(k->f.device[which]));
    ck_assert(!device_drains(k->f.device[1 - which]));
    ck_assert_str_eq(k->f.device[0]->pin, "uuid=MIG-0");
    ck_assert_str_eq(k->f.device[1]->pin, "uuid=MIG-1");
    device_set_state(k->f.device[which], DEVICE_RESTING, ""); /* draining_watch */
    at(0);
    ck_assert_uint_eq(started, 0);
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        worker_forget(k->f.device[i]);
        free(k->f.device[i]);
        k->f.device[i] = &k->device[i];
    }
    end();
}
END_TEST

/* The settings choose devices, perhaps others than before. */
START_TEST(chosen_devices_are_not_those_that_were_known)
{
    begin();
    (void)strcpy(k->f.config.devices, _i == 0 ? "1" : "");
    (void)strcpy(k->f.config.backend_options, _i == 0 ? "" : "uuid=MIG-1");
    start_beside_a_drained_one(0);
    ck_assert_uint_eq(k->f.device_count, 1);
    ck_assert_ptr_null(hold_file_known(k->f.holds, dir, 0));
    worker_forget(k->f.device[0]);
    free(k->f.device[0]);
    k->f.device[0] = &k->device[0];
    k->f.device_count = FAKE_DEVICES;
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("monitor");
    TCase *tcase = tcase_create("monitor");
    tcase_add_test(tcase, one_is_kept_without_anybody_looking);
    tcase_add_test(tcase, one_that_cannot_be_ended_is_no_worker);
    tcase_add_test(tcase, the_first_answer_may_take_longer);
    tcase_add_test(tcase, one_that_stood_still_has_time_to_tell);
    tcase_add_loop_test(tcase, what_is_not_known_holds_for_a_while, 0, 2);
    tcase_add_test(tcase, a_hold_outlives_its_front);
    tcase_add_test(tcase, holds_survive_the_front);
    tcase_add_test(tcase, drains_survive_the_front);
    tcase_add_test(tcase, a_drained_device_has_no_monitor);
    tcase_add_test(tcase, without_a_device_to_ask_about_there_is_none);
    tcase_add_test(tcase, all_instances_are_opened_unless_workers_are_told_which);
    tcase_add_loop_test(tcase, instances_beside_a_drained_one_are_known, 0, 2);
    tcase_add_loop_test(tcase, chosen_devices_are_not_those_that_were_known, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
