/* A device is drained, released and resumed. The worker's side and the launcher's are the test's.
 */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "daemon/front/devices/drained.h"
#include "daemon/front/devices/draining.h"
#include "daemon/front/devices/hold_file.h"
#include "daemon/front/devices/monitor.h"
#include "daemon/front/memory/buffers.h"
#include "daemon/front/model/op.h"
#include "daemon/front/workers/arrivals.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/record_encode.h"
#include "daemon/front/workers/worker.h"
#include "tests/unit/front/fake_front.h"
#include "tests/unit/front/scratch.h"

#define BUFFERS 3u

static struct fake *k;
static struct device *d;
static struct buffer *b[BUFFERS];
static char dir[SCRATCH_PATH];
static uint64_t copies[64]; /* buffers asked for, in this order */
static unsigned copied, kills, starts;

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    if (schema == &schema_msg_f_buffer_seal) {
        copies[copied++] = ((const struct msg_f_buffer_seal *)msg)->id;
    }
    return fake_send(l, schema, msg, fds, e);
}

static int on_kill(struct launcher_link *l, uint64_t id, int signal, struct err *e)
{
    (void)l;
    (void)id;
    (void)signal;
    (void)e;
    kills++;
    return 0;
}

static int on_start(struct launcher_link *l, const struct worker_order *w, struct err *e)
{
    (void)l;
    (void)w;
    (void)e;
    starts++;
    return 0;
}

static void ignore(struct front *f, struct device *x)
{
    (void)f;
    (void)x;
}

static void lost(struct front *f, struct device *x, bool external, const char *why)
{
    (void)external;
    (void)why;
    buffer_device_lost(f, x);
}

static void begin(void)
{
    k = fake_create();
    k->f.io.send = on_send;
    k->f.io.kill = on_kill;
    k->f.io.start_worker = on_start;
    k->f.hooks.budget_changed = k->f.hooks.device_removed = k->f.hooks.device_changed = ignore;
    k->f.hooks.worker_lost = lost;
    k->f.next_worker = 100;
    copied = kills = starts = 0;
    scratch_make(dir);
    (void)snprintf(k->f.config.runtime_dir, sizeof k->f.config.runtime_dir, "%s", dir);
    ck_assert_int_eq(monitor_create(&k->f.monitor, NULL), 0);
    ck_assert_int_eq(hold_file_create(&k->f.holds, NULL), 0);
    d = &k->device[1];
    d->number = 1;
    d->worker = 7;
    d->proven = true;
    for (unsigned i = 0; i < BUFFERS; i++) {
        b[i] = fake_buffer(k, 1, 64, true);
    }
}

static void watch(void)
{
    draining_watch(&k->f, fake_now());
}

static void drain(bool finish)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(draining_begin(&k->f, 1, finish, "ops", &e), 0);
    watch();
}

static void resume(void)
{
    struct err e = ERR_INIT;
    ck_assert_int_eq(draining_end(&k->f, 1, &e), 0);
    watch();
}

static void answer(uint64_t id, int code)
{
    const struct msg_w_buffer m = {.id = id, .code = code, .text = bytes_str("no")};
    buffer_answered(&k->f, d, &m);
    watch();
}

static void ends(void)
{
    d->link = NULL; /* it is none */
    ck_assert(worker_ended(&k->f, d->worker, 9));
    watch();
}

static bool says(const char *words)
{
    return strstr(d->reason, words) != NULL;
}

/* Another front, of which the device is new. */
static bool recalled(void)
{
    struct hold_file *mine = k->f.holds;
    struct device next = {.front = &k->f, .index = 1, .number = d->number};
    (void)snprintf(next.backend, sizeof next.backend, "%s", d->backend);
    ck_assert_int_eq(hold_file_create(&k->f.holds, NULL), 0);
    bool found = drained_recall(&k->f, &next);
    ck_assert(!found || strcmp(next.drain.by, "ops") == 0);
    hold_file_destroy(k->f.holds);
    k->f.holds = mine;
    return found;
}

static void finish(void)
{
    if (d->link == NULL) {
        d->link = (struct link *)d;
    }
    for (unsigned i = 0; i < BUFFERS; i++) {
        if (b[i] != NULL) {
            fake_drop(k, b[i]);
        }
    }
    ck_assert_uint_eq(k->f.evacuated_bytes, 0);
    monitor_destroy(k->f.monitor);
    hold_file_destroy(k->f.holds);
    fake_destroy(k);
    scratch_remove(dir);
}

START_TEST(it_is_released_and_resumed)
{
    struct err e = ERR_INIT;
    begin();
    drain(false);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_str_eq(device_state_name(d), "draining");
    ck_assert_uint_eq(copied, BUFFERS);
    ck_assert(recalled());
    ck_assert(!device_serves(d) && device_serves(&k->device[0]));
    ck_assert_int_eq(domain_want(&k->f, d, &e), ERR_DRAINING);
    ck_assert_ptr_nonnull(strstr(e.text, "gpuctl resume --device 1"));
    for (unsigned i = 0; i < BUFFERS; i++) {
        ck_assert_uint_eq(kills, 0); /* not before all have gone */
        answer(copies[i], 0);
    }
    ck_assert_uint_eq(kills, 1);
    ck_assert_int_eq(d->drain.state, DRAIN_HOLDS);
    ends();
    ck_assert_int_eq(d->drain.state, DRAIN_RELEASED);
    ck_assert_str_eq(device_state_name(d), "drained");
    ck_assert(says("released") && says("asked for by ops, "));
    ck_assert_uint_eq(k->f.evacuated_bytes, BUFFERS * 64);
    for (unsigned i = 0; i < BUFFERS; i++) {
        ck_assert_int_eq(buffer_state(b[i]), BUFFER_RESTORING);
    }
    drain(true); /* already: nothing happens */
    worker_watch(&k->f, fake_now(), 0);
    ck_assert_int_eq(d->drain.state, DRAIN_RELEASED);
    ck_assert_uint_eq(starts, 0);
    resume();
    ck_assert(!recalled());
    ck_assert_int_eq(d->state, DEVICE_WAITING);
    worker_watch(&k->f, fake_now(), 0);
    ck_assert_uint_eq(starts, 1);
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    resume(); /* nor now */
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    finish();
}
END_TEST

static unsigned asked;

static int on_vacate(struct launcher_link *l, uint64_t id, struct bytes device, struct err *e)
{
    (void)l;
    (void)e;
    ck_assert_uint_eq(id, 1);
    ck_assert_uint_gt(device.size, 0);
    asked++;
    return 0;
}

/* FAULT other: an operator drains a device beside whose worker another one is prepared
 * required: the device is drained when that process has ended, too, since it has the driver loaded
 * defence: `front/devices/draining.c`: vacated; `launcher/workers.c`: workers_vacate
 * also: `launcher_workers_test`: a_drained_device_has_none;
 *   `test_system_drain`: a_device_is_released
 * mutants: drain-prepared, drain-vacates */
START_TEST(prepared_workers_end_first)
{
    begin();
    asked = 0;
    k->f.io.vacate = on_vacate;
    drain(false);
    for (unsigned i = 0; i < BUFFERS; i++) {
        answer(copies[i], 0);
    }
    ck_assert_uint_eq(asked, 0); /* its worker is there, and may need a successor */
    ends();
    ck_assert_uint_eq(asked, 1);
    ck_assert_int_eq(d->drain.state, DRAIN_HOLDS);
    ck_assert(says("gpud-prepared has yet to end"));
    watch();
    ck_assert_uint_eq(asked, 1);
    draining_vacated(&k->f, 1, 1); /* the driver hangs */
    watch();
    ck_assert_uint_eq(asked, 1);
    fake_pass(100 * NS_PER_MS);
    watch();
    ck_assert_uint_eq(asked, 2);
    fake_pass(NS_PER_S); /* the answer was lost, with the launcher */
    watch();
    ck_assert_uint_eq(asked, 3);
    ck_assert_int_eq(d->drain.state, DRAIN_HOLDS);
    draining_vacated(&k->f, 1, 0);
    watch();
    ck_assert_int_eq(d->drain.state, DRAIN_RELEASED);
    draining_vacated(&k->f, 2, 0); /* no such device */
    resume();
    finish();
}
END_TEST

/* What was copied before may be written now. */
START_TEST(resumed_during_the_copies)
{
    begin();
    drain(false);
    answer(copies[0], 0);
    resume();
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert(device_serves(d));
    ck_assert_int_eq(b[0]->copy, COPY_NONE);
    ck_assert_int_eq(b[1]->copy, COPY_VOID);
    answer(copies[1], 0);
    answer(copies[2], 0);
    ck_assert_uint_eq(kills, 0);
    ck_assert_uint_eq(k->f.evacuated_bytes, 0);
    finish();
}
END_TEST

/* What has gone to the host remains, and the device is released all the same. A buffer that is
 * freed meanwhile needs no copy. */
START_TEST(its_worker_dies_during_the_copies)
{
    begin();
    drain(false);
    answer(copies[0], 0);
    struct buffer *freed = idmap_get(&k->f.buffers, copies[1]);
    for (unsigned i = 0; i < BUFFERS; i++) {
        b[i] = b[i] == freed ? NULL : b[i];
    }
    fake_drop(k, freed);
    ck_assert_uint_eq(d->evacuation.asked, 1);
    ends();
    ck_assert_int_eq(d->drain.state, DRAIN_RELEASED);
    for (unsigned i = 0; i < BUFFERS; i++) {
        bool kept = b[i] != NULL && b[i]->handle == copies[0];
        ck_assert(b[i] == NULL || buffer_state(b[i]) == (kept ? BUFFER_RESTORING : BUFFER_LOST));
    }
    ck_assert_uint_eq(k->f.evacuated_bytes, 64);
    finish();
}
END_TEST

/* The worker refuses a copy: it stays, and is asked again after a while. */
START_TEST(a_copy_fails)
{
    begin();
    drain(false);
    answer(copies[0], ERR_NOMEM);
    answer(copies[1], 0);
    answer(copies[2], 0);
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert(!device_serves(d));
    ck_assert_uint_eq(kills, 0);
    watch();
    ck_assert_uint_eq(copied, BUFFERS);
    fake_pass(11 * NS_PER_S);
    watch();
    ck_assert_uint_eq(copied, 2 * BUFFERS);
    finish();
}
END_TEST

/* Nothing goes before all can go. */
START_TEST(what_keeps_it)
{
    begin();
    b[0]->flags = _i == 0 ? BUFFER_FLAG_EXPORT : b[0]->flags;
    k->f.config.domain_host_bytes = _i == 1 ? 1 : k->f.config.domain_host_bytes;
    k->f.copies_max = _i == 2 ? BUFFERS - 1 : k->f.copies_max;
    drain(false);
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert_uint_eq(copied, 0);
    ck_assert(says(_i == 0   ? "kept by 1 exported buffer, the first of tenant uid:1000"
                   : _i == 1 ? "host_memory_max has 0 left"
                             : "the launcher keeps copies of 2 more"));
    b[0]->flags = 0;
    k->f.config.domain_host_bytes = 0;
    k->f.copies_max = 4096;
    watch();
    ck_assert_uint_eq(copied, 0); /* all buffers are visited once a second */
    fake_pass(NS_PER_S);
    watch();
    ck_assert_uint_eq(copied, BUFFERS);
    finish();
}
END_TEST

/* One comes from another device, then one goes there. */
START_TEST(buffers_that_move_come_first)
{
    begin();
    arrivals_add(d, 77, true);
    drain(false);
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert(says("busy with its buffers"));
    (void)arrivals_end(d, 77);
    b[0]->move = MOVE_ARRIVES;
    watch();
    ck_assert_int_eq(d->state, DEVICE_READY);
    ck_assert(says("1 buffers are being made, sealed or moved"));
    b[0]->move = MOVE_NONE;
    fake_pass(NS_PER_S);
    watch();
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(copied, BUFFERS);
    finish();
}
END_TEST

/* A job in flight ends; one behind it waits, or runs first. */
START_TEST(jobs_wait_or_run_first)
{
    bool first = _i == 1;
    begin();
    struct job *j[2] = {fake_job(k, 1), fake_job(k, 1)};
    fake_writes(j[0], b[0], 0, 64);
    fake_writes(j[1], b[0], 0, 64);
    k->f.config.window = 1;
    (void)fake_submit(k, j[0]);
    uint64_t second = fake_submit(k, j[1]);
    d->jobs = 2;
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 1);
    drain(first);
    ck_assert(says(first ? "2 jobs run first" : "1 job in flight has to end"));
    fake_done(k, j[0], 0);
    fake_turn(k);
    ck_assert_uint_eq(k->sent, first ? 2 : 1);
    watch();
    if (first) {
        ck_assert_int_eq(d->state, DEVICE_READY);
        fake_done(k, j[1], 0);
        watch();
    }
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    ck_assert_uint_eq(copied, BUFFERS); /* also the one that a job is to write */
    resume();
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 2);
    if (!first) {
        ck_assert_uint_eq(k->ends[second], 0);
        fake_done(k, j[1], 0);
    }
    for (unsigned i = 0; i < BUFFERS; i++) { /* they are void */
        answer(copies[i], 0);
    }
    finish();
}
END_TEST

/* Its worker ended before: no other one starts, but for jobs that run first. */
START_TEST(one_that_waits)
{
    begin();
    ends();
    ck_assert_int_eq(d->state, DEVICE_WAITING);
    drain(_i == 1);
    watch();
    worker_watch(&k->f, ns_add(fake_now(), NS_PER_S), 0);
    ck_assert_uint_eq(starts, 0);
    ck_assert_int_eq(d->drain.state, DRAIN_RELEASED);
    finish();
}
END_TEST

/* While it cannot be released yet. */
START_TEST(one_that_ends_is_not_replaced)
{
    begin();
    b[0]->flags = BUFFER_FLAG_EXPORT;
    drain(false);
    ends();
    ck_assert_int_eq(d->state, DEVICE_WAITING); /* what it has is looked at once a second */
    worker_watch(&k->f, fake_now(), 0);
    ck_assert_uint_eq(starts, 0);
    fake_pass(NS_PER_S);
    watch();
    watch();
    ck_assert_int_eq(d->drain.state, DRAIN_RELEASED);
    finish();
}
END_TEST

/* The front before this one drained it. No worker was started, and something keeps the device: it
 * does not rest when it is resumed. */
START_TEST(one_that_was_drained_before_is_opened)
{
    begin();
    ends();
    d->state = DEVICE_STARTING; /* as a front finds it */
    b[0]->flags = BUFFER_FLAG_EXPORT;
    b[0]->state = BUFFER_LIVE;
    drain(false);
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    resume();
    ck_assert_int_eq(d->state, DEVICE_STARTING);
    k->f.listed = true; /* else discover_start is to start it */
    watch();
    ck_assert_int_eq(d->state, DEVICE_WAITING);
    worker_watch(&k->f, fake_now(), 0);
    ck_assert_uint_eq(starts, 1);
    ends();
    finish();
}
END_TEST

/* A buffer that found no memory is asked for again, but not from a worker that is to end. */
START_TEST(nothing_is_restored_meanwhile)
{
    begin();
    b[0]->sealed = true; /* the host has its content */
    b[0]->host_fd = dup(STDERR_FILENO);
    ck_assert_int_ge(b[0]->host_fd, 0);
    b[0]->restore_tries = 1;
    buffer_restore_later(d, b[0]);
    d->restore_ns = ns_add(fake_now(), NS_PER_MS);
    drain(false);
    ck_assert_int_eq(d->state, DEVICE_RESTING);
    fake_pass(NS_PER_S);
    buffer_restore_watch(&k->f);
    ck_assert_uint_eq(d->restores, 0);
    ck_assert_int_eq(b[0]->state, BUFFER_RESTORING);
    finish();
}
END_TEST

/* Another front has not read yet whether its driver had asked for a recovery: it does so when the
 * device serves, as before. */
START_TEST(a_hold_outlasts_it)
{
    begin();
    d->recovery_ns = _i == 0 ? 0 : 1;
    drain(false);
    resume();
    ck_assert(_i == 0 ? d->recovery_ns == 0 : d->recovery_ns == fake_now());
    for (unsigned i = 0; i < BUFFERS; i++) { /* they are void */
        answer(copies[i], 0);
    }
    finish();
}
END_TEST

/* The worker that a tenant has for itself there. */
static struct device *serving_apart(struct tenant **ret_tenant)
{
    struct err e = ERR_INIT;
    struct device *x = NULL;
    struct tenant *t = tenant_named(&k->f.tenants, "a");
    t->apart = true;
    t->limits.devices = UINT64_C(1) << d->index;
    d->memory = d->pool_limit = d->pool_default = UINT64_C(1) << 30;
    ck_assert_int_eq(domain_obtain(&k->f, t, d, &x, &e), 0);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(x->state, DEVICE_STARTING);
    device_set_state(x, DEVICE_OPENED, NULL);
    device_set_state(x, DEVICE_PROBING, NULL);
    device_set_state(x, DEVICE_READY, "");
    x->link = (struct link *)x;
    *ret_tenant = t;
    return x;
}

/* Its worker has ended, and it wants the next one. */
static void wants_again(struct device *x)
{
    ck_assert_int_eq(x->state, DEVICE_RESTING);
    x->link = NULL;
    ck_assert(worker_ended(&k->f, x->worker, 9));
    fake_pass(3600 * NS_PER_S);
    domains_watch(&k->f, fake_now());
    ck_assert_ptr_eq(d->domains, x);
    resume();
    ck_assert(x->wanted);
}

static void forget(struct device *x)
{
    x->wanted = false;
    x->losing = false;
    fake_pass(3600 * NS_PER_S);
    domains_watch(&k->f, fake_now());
    ck_assert_uint_eq(k->f.domain_count, 0);
    for (unsigned i = 0; i < BUFFERS; i++) {
        answer(copies[i], 0);
    }
    finish();
}

/* Jobs without buffers of a tenant that is apart run in whatever worker the tenant has. Where that
 * is the drained one's, it starts again when the device is resumed: nothing else would ask for it.
 */
START_TEST(jobs_of_no_device_get_their_worker_back)
{
    struct tenant *t = NULL;
    begin();
    struct device *x = serving_apart(&t);
    t->held[TENANT_JOBS] = 1; /* bound to no device */
    drain(false);
    wants_again(x);
    t->held[TENANT_JOBS] = 0;
    forget(x);
}
END_TEST

/* A seal that waits for the worker is no job, and nothing else would ask for that worker either. */
START_TEST(so_does_a_seal)
{
    static struct op seal;
    struct tenant *t = NULL;
    begin();
    struct device *x = serving_apart(&t);
    struct buffer *y = fake_movable(k, x);
    y->sealed = y->seal_wanted = true;
    y->pending = &seal;
    drain(false);
    buffer_answered(&k->f, x, &(const struct msg_w_buffer){.id = y->handle});
    watch();
    wants_again(x);
    y->pending = NULL;
    y->sealed = y->seal_wanted = false;
    buffer_drop(&k->f, y);
    forget(x);
}
END_TEST

START_TEST(no_such_device)
{
    struct err e = ERR_INIT;
    begin();
    ck_assert_int_eq(draining_begin(&k->f, FAKE_DEVICES, false, "ops", &e), ERR_NOT_FOUND);
    ck_assert_int_eq(draining_end(&k->f, UINT64_MAX, &e), ERR_NOT_FOUND);
    ck_assert_uint_eq(draining_count(&k->f), 0);
    ck_assert_int_ne(access(scratch_path(dir, "held"), F_OK), 0);
    finish();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("draining");
    TCase *tcase = tcase_create("draining");
    tcase_add_test(tcase, it_is_released_and_resumed);
    tcase_add_test(tcase, prepared_workers_end_first);
    tcase_add_test(tcase, resumed_during_the_copies);
    tcase_add_test(tcase, its_worker_dies_during_the_copies);
    tcase_add_test(tcase, a_copy_fails);
    tcase_add_loop_test(tcase, what_keeps_it, 0, 3);
    tcase_add_test(tcase, buffers_that_move_come_first);
    tcase_add_loop_test(tcase, jobs_wait_or_run_first, 0, 2);
    tcase_add_loop_test(tcase, one_that_waits, 0, 2);
    tcase_add_test(tcase, one_that_ends_is_not_replaced);
    tcase_add_test(tcase, one_that_was_drained_before_is_opened);
    tcase_add_test(tcase, nothing_is_restored_meanwhile);
    tcase_add_test(tcase, jobs_of_no_device_get_their_worker_back);
    tcase_add_test(tcase, so_does_a_seal);
    tcase_add_loop_test(tcase, a_hold_outlasts_it, 0, 2);
    tcase_add_test(tcase, no_such_device);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
