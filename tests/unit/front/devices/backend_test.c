/*
 * A device of `backend = auto` that one back end after the other tries to open. The launcher keeps
 * a record by the name of its device, and a back end is a part of that name.
 */
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "daemon/front/devices/discover.h"
#include "daemon/front/workers/worker.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define STARTS_MAX 8u

static struct fake *k;
static struct device *d;
static struct {
    char backend[16];
    uint64_t id;
    struct stat record;
} start_of[STARTS_MAX];
static unsigned starts;

static int on_start(struct launcher_link *l, const struct worker_order *w, struct err *e)
{
    (void)l;
    (void)e;
    ck_assert_uint_lt(starts, STARTS_MAX);
    ck_assert_str_eq(w->args[0], "--backend");
    (void)snprintf(start_of[starts].backend, sizeof start_of[0].backend, "%s", w->args[1]);
    start_of[starts].id = w->id;
    for (unsigned i = 0; w->args[i] != NULL; i++) { /* what changes with other devices */
        ck_assert_str_ne(w->args[i], "--spill-limit");
    }
    ck_assert_int_eq(fstat(w->fd[WORKER_RECORD], &start_of[starts].record), 0);
    starts++;
    return 0;
}

static void on_changed(struct front *f, struct device *changed)
{
    (void)f;
    (void)changed;
}

static void on_lost(struct front *f, struct device *lost, bool external, const char *why)
{
    (void)f;
    (void)lost;
    (void)external;
    (void)why;
}

static void begin(void)
{
    k = fake_create();
    k->f.io.start_worker = on_start;
    k->f.hooks.device_changed = on_changed;
    k->f.hooks.worker_lost = on_lost;
    k->f.next_worker = 100;
    k->f.listed = true;
    (void)strcpy(k->f.config.backend, "auto");
    starts = 0;
    d = &k->device[0];
    d->link = NULL;
    d->state = DEVICE_WAITING;
    (void)strcpy(d->backend, "cuda");
    worker_start(&k->f, d);
}

static void absent(void)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_NO_DEVICE, "it is not there");
    discover_absent(&k->f, d, &e);
}

static void passes(uint64_t ns)
{
    fake_pass(ns);
    worker_watch(&k->f, fake_now(), 0);
    discover_watch(&k->f, fake_now());
}

static bool same_record(unsigned a, unsigned b)
{
    return start_of[a].record.st_ino == start_of[b].record.st_ino;
}

static void started(unsigned which, const char *backend)
{
    ck_assert_uint_eq(starts, which + 1);
    ck_assert_str_eq(start_of[which].backend, backend);
    ck_assert_uint_eq(d->worker, start_of[which].id);
}

/* A worker that ends by itself, and goes on with what its device has. */
START_TEST(a_back_end_keeps_its_record)
{
    begin();
    started(0, "cuda");
    ck_assert(worker_ended(&k->f, d->worker, 1 << 8));
    passes(60 * NS_PER_S);
    started(1, "cuda");
    ck_assert(same_record(0, 1));
    fake_destroy(k);
}
END_TEST

START_TEST(each_back_end_has_a_record_of_its_own)
{
    begin();
    absent();
    ck_assert_int_eq(d->state, DEVICE_REPLACED);
    ck_assert(worker_ended(&k->f, d->worker, 0));
    passes(0);
    started(1, "opencl");
    ck_assert(!same_record(0, 1));
    absent(); /* and by none: the first one is tried again */
    ck_assert_int_eq(d->state, DEVICE_ABSENT);
    ck_assert(worker_ended(&k->f, d->worker, 0));
    passes(60 * NS_PER_S);
    started(2, "cuda");
    ck_assert(!same_record(1, 2));
    fake_destroy(k);
}
END_TEST

/* The time for which the front stands still does not count: it has not read the worker's end. */
START_TEST(a_worker_has_its_time_to_end)
{
    begin();
    absent();
    passes(600 * NS_PER_S);
    ck_assert_uint_ne(d->killed_ns, 0);
    fake_pass(60 * NS_PER_S);
    worker_watch(&k->f, fake_now(), 60 * NS_PER_S);
    ck_assert_int_eq(d->state, DEVICE_REPLACED);
    passes(60 * NS_PER_S);
    ck_assert_int_eq(d->state, DEVICE_STUCK);
    ck_assert(worker_ended(&k->f, d->worker, 9));
    passes(600 * NS_PER_S);
    fake_destroy(k);
}
END_TEST

/* The first back end's worker hangs in its driver as it exits. */
START_TEST(a_worker_that_does_not_end_leaves_no_record)
{
    begin();
    absent();
    passes(600 * NS_PER_S);
    ck_assert_uint_ne(d->killed_ns, 0);
    passes(60 * NS_PER_S);
    ck_assert_int_eq(d->state, DEVICE_STUCK);
    ck_assert(worker_ended(&k->f, d->worker, 9));
    passes(600 * NS_PER_S);
    started(1, "opencl");
    ck_assert(!same_record(0, 1));
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("backend", a_back_end_keeps_its_record, each_back_end_has_a_record_of_its_own,
           a_worker_has_its_time_to_end, a_worker_that_does_not_end_leaves_no_record)
