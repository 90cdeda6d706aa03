/* Memory of a device changes hands between its workers. The workers' side is the test's. */
#include <string.h>

#include "daemon/front/model/job.h"
#include "daemon/front/tenants/budget.h"
#include "daemon/front/tenants/leases.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "daemon/front/workers/domains.h"
#include "daemon/front/workers/record.h"
#include "daemon/front/workers/worker.h"
#include "daemon/front/workers/worker_frames.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define MIB (UINT64_C(1) << 20)
#define ALL (1024 * MIB)

static struct fake *k;
static struct device *base, *a, *b;
static struct job waits;
static struct msg_f_budget last[PLACES_MAX]; /* by the place of the device */
static unsigned kills;

static int on_send(struct link *l, const struct schema *schema, const void *msg,
                   const struct frame_fds *fds, struct err *e)
{
    if (schema == &schema_msg_f_budget) {
        last[((struct device *)l)->index] = *(const struct msg_f_budget *)msg;
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

static void ignore(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
}

static void lost(struct front *f, struct device *d, bool external, const char *why)
{
    (void)f;
    (void)d;
    (void)external;
    (void)why;
}

static void watch(void)
{
    domains_watch(&k->f, fake_now());
    leases_watch(&k->f, fake_now());
    uint64_t sum = base->pool_limit + base->granted;
    ck_assert_uint_eq(sum, ALL);
    uint64_t granted = base->growth.coming;
    for (const struct device *d = base->domains; d != NULL; d = d->domain_next) {
        granted += d->grant;
    }
    ck_assert_uint_eq(base->granted, granted);
}

static void answer(struct device *d, uint64_t missing)
{
    const struct msg_w_budget m = {
        .asked = d->budget, .limit = d->budget, .size = d->budget + missing, .missing = missing};
    quota_budget(&k->f, d, &m);
}

static struct device *serving(const char *name)
{
    struct device *d = NULL;
    struct err e = ERR_INIT;
    struct tenant *t = tenant_named(&k->f.tenants, name);
    ck_assert_ptr_nonnull(t);
    t->apart = true;
    ck_assert_int_eq(domain_obtain(&k->f, t, base, &d, &e), 0);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(d->state, DEVICE_RESTING); /* the shared worker still has the memory */
    answer(base, 0);
    domains_watch(&k->f, fake_now());
    device_set_state(d, DEVICE_OPENED, NULL);
    device_set_state(d, DEVICE_PROBING, NULL);
    device_set_state(d, DEVICE_READY, "");
    d->link = (struct link *)d;
    d->progress = WORKER_UP;
    d->pool_limit = d->grant;
    return d;
}

static void answers(struct device *d, uint64_t missing)
{
    answer(d, missing);
    watch();
}

static void begin(void)
{
    k = fake_create();
    k->f.io.send = on_send;
    k->f.io.kill = on_kill;
    k->f.hooks.device_removed = k->f.hooks.device_changed = ignore;
    k->f.hooks.budget_changed = quota_granted;
    k->f.hooks.worker_lost = lost;
    k->f.next_worker = 100;
    kills = 0;
    memset(last, 0, sizeof last);
    base = &k->device[0];
    base->proven = true;
    base->progress = WORKER_UP;
    base->memory = base->pool_limit = base->pool_default = base->budget = ALL;
    base->worker = 1;
    base->quota_epoch = base->epoch;
    a = serving("a");
    b = serving("b");
    base->pool.used = base->pool_limit;
    base->inflight_count = 1;
    waits = (struct job){.state = JOB_DISPATCHED, .wait = WAIT_MEMORY};
    fake_pass(2 * NS_PER_S); /* all are idle, but the shared one */
    watch();
}

static void wants(struct device *d, uint64_t bytes)
{
    d->inflight = &waits;
    d->inflight_count = 1;
    d->lease.wanted = bytes;
    d->lease.since_ns = fake_now();
    watch();
}

static void finish(void)
{
    base->inflight = a->inflight = b->inflight = NULL;
    base->worker = 0;
    base->inflight_count = a->inflight_count = b->inflight_count = 0;
    for (unsigned i = 0; i < 4 && k->f.domain_count > 0; i++) {
        struct device *d;
        fake_pass(3600 * NS_PER_S);
        domains_watch(&k->f, fake_now());
        leases_watch(&k->f, fake_now());
        for (unsigned at = DEVICES_MAX; (d = front_next_device(&k->f, &at)) != NULL;) {
            if (d->worker != 0) {
                d->link = NULL;
                ck_assert(worker_ended(&k->f, d->worker, 9));
            }
        }
    }
    ck_assert_uint_eq(k->f.domain_count, 0);
    ck_assert_uint_eq(base->granted, 0);
    ck_assert_uint_eq(base->pool_limit, ALL);
    fake_destroy(k);
}

/* What another does not use is recalled, and given on when it has come back. */
START_TEST(a_lease_grows)
{
    begin();
    uint64_t had = a->grant;
    uint64_t rest = base->pool_limit;
    ck_assert_uint_gt(last[a->index].most, had); /* its worker asks before its buffers go */
    base->pool.used = 0;
    wants(a, 100 * MIB);
    ck_assert_ptr_eq(base->growth.wanter, a);
    ck_assert_uint_eq(a->grant, had);
    ck_assert_uint_lt(last[base->index].limit, rest);
    ck_assert_uint_ge(base->growth.coming, 100 * MIB);
    watch();
    ck_assert_uint_eq(a->grant, had); /* the other worker still has it */
    answers(base, 0);
    ck_assert_uint_ge(a->grant, had + 100 * MIB);
    ck_assert_uint_eq(last[a->index].limit, a->grant);
    ck_assert_uint_eq(a->lease.wanted, 0);
    ck_assert_uint_eq(base->growth.coming, 0);
    finish();
}
END_TEST

/* The next front must know the most that each worker may have, from the time when it may have it
 * until it has given it back. */
START_TEST(the_record_has_what_a_worker_may_have)
{
    begin();
    uint64_t had = a->grant;
    ck_assert_uint_eq(record_lease(a->record), had);
    base->pool.used = 0;
    wants(a, 100 * MIB);
    ck_assert_uint_eq(record_lease(a->record), had);
    answers(base, 0);
    had = a->grant;
    ck_assert_uint_eq(record_lease(a->record), had);
    base->pool.used = base->pool_limit;
    a->inflight = NULL;
    a->inflight_count = 0;
    fake_pass(2 * NS_PER_S);
    wants(b, 64 * MIB);
    ck_assert_uint_lt(a->grant, had);
    ck_assert_uint_eq(record_lease(a->record), had); /* it still has it */
    answers(a, 10 * MIB);
    ck_assert_uint_lt(a->grant, had);
    ck_assert_uint_eq(record_lease(a->record), a->grant);
    ck_assert_uint_eq(record_lease(b->record), b->grant);
    finish();
}
END_TEST

/* A worker keeps what it could not give back, and the other gets the rest. */
START_TEST(some_is_missing)
{
    begin();
    uint64_t had = a->grant;
    base->pool.used = 0;
    wants(a, 64 * MIB);
    uint64_t coming = base->growth.coming;
    answers(base, 10 * MIB);
    ck_assert_uint_eq(a->grant, had + coming - 10 * MIB);
    finish();
}
END_TEST

/* The others keep all of it: the worker hears so, or its job would wait for ever. */
START_TEST(all_is_missing)
{
    begin();
    uint64_t had = a->grant;
    base->pool.used = 0;
    wants(a, 64 * MIB);
    answers(base, base->growth.coming);
    ck_assert_uint_eq(a->grant, had);
    ck_assert_uint_eq(a->lease.wanted, 0);
    ck_assert_uint_eq(last[a->index].most, had);
    finish();
}
END_TEST

/* No worker has anything to give: the one that wants hears so at once, and asks again after a
 * while. */
START_TEST(it_is_denied)
{
    begin();
    uint64_t had = a->grant;
    a->pool.used = a->grant;
    b->pool.used = b->grant;
    b->inflight_count = 1;
    b->inflight = &waits;
    wants(a, 900 * MIB);
    ck_assert_ptr_null(base->growth.wanter);
    ck_assert_uint_eq(a->grant, had);
    ck_assert_uint_eq(a->lease.wanted, 0);
    ck_assert_uint_eq(last[a->index].most, had);
    fake_pass(NS_PER_S);
    watch();
    ck_assert_uint_gt(last[a->index].most, had);
    finish();
}
END_TEST

/* Domains are ended as workers that hang; the shared one keeps what it has. */
START_TEST(a_recall_is_not_answered)
{
    begin();
    uint64_t had = a->grant;
    wants(a, b->grant / 2); /* of b, which is idle */
    ck_assert_uint_gt(b->lease.taken, 0);
    fake_pass(k->f.config.recall_ms * NS_PER_MS);
    watch();
    ck_assert_uint_eq(kills, 0);
    fake_pass(3 * NS_PER_S);
    watch();
    ck_assert_uint_eq(kills, 1);
    ck_assert_uint_eq(a->grant, had);
    b->link = NULL;
    ck_assert(worker_ended(&k->f, b->worker, 9));
    watch();
    ck_assert_uint_gt(a->grant, had);
    uint64_t has = a->grant;
    base->pool.used = 0;
    wants(a, 64 * MIB);
    ck_assert_uint_gt(base->lease.taken, 0);
    fake_pass(k->f.config.recall_ms * NS_PER_MS + 3 * NS_PER_S);
    watch();
    ck_assert_uint_eq(kills, 1);
    ck_assert_uint_eq(a->grant, has);
    finish();
}
END_TEST

/* The worker that wanted the memory is gone, and another one wants some: that does not put off the
 * end of the one that gives nothing back. */
START_TEST(a_recall_is_not_put_off)
{
    begin();
    uint64_t had = base->pool_limit;
    wants(a, b->grant / 2);
    ck_assert_uint_gt(b->lease.taken, 0);
    fake_pass(k->f.config.recall_ms * NS_PER_MS);
    a->inflight = NULL;
    a->inflight_count = 0;
    a->lease.wanted = 0;
    base->growth.wanter = NULL; /* as when its domain ends */
    wants(base, 16 * MIB);
    ck_assert_uint_eq(a->lease.taken, 0);
    fake_pass(3 * NS_PER_S);
    watch();
    ck_assert_uint_eq(kills, 1);
    b->link = NULL;
    ck_assert(worker_ended(&k->f, b->worker, 9));
    watch();
    ck_assert_uint_ge(base->pool_limit, had + 16 * MIB);
    base->inflight = NULL;
    finish();
}
END_TEST

/* The memory has come back with the end of the worker: its successor, which may be there before
 * anything looks, owes nothing, and is not ended for it. */
START_TEST(a_successor_owes_nothing)
{
    begin();
    uint64_t had = a->grant;
    wants(a, b->grant / 2);
    ck_assert_uint_gt(b->lease.taken, 0);
    b->link = NULL;
    ck_assert(worker_ended(&k->f, b->worker, 9));
    worker_start(&k->f, b);
    watch();
    ck_assert_uint_gt(a->grant, had);
    ck_assert_ptr_null(base->growth.wanter);
    device_set_state(b, DEVICE_OPENED, NULL);
    device_set_state(b, DEVICE_PROBING, NULL);
    device_set_state(b, DEVICE_READY, "");
    fake_pass(k->f.config.recall_ms * NS_PER_MS + 3 * NS_PER_S);
    watch();
    ck_assert_uint_eq(kills, 0);
    finish();
}
END_TEST

/* The one that waits for longest is served first, and its job may end meanwhile. */
START_TEST(they_are_served_in_turn)
{
    begin();
    base->pool.used = 0;
    wants(b, 64 * MIB);
    fake_pass(1);
    wants(a, 64 * MIB);
    ck_assert_ptr_eq(base->growth.wanter, b);
    answers(base, 0);
    ck_assert_uint_eq(b->lease.wanted, 0);
    watch();
    ck_assert_ptr_eq(base->growth.wanter, a);
    answers(base, 0);
    ck_assert_uint_eq(a->lease.wanted, 0);
    a->inflight = NULL;
    a->lease.wanted = 64 * MIB;
    watch();
    ck_assert_ptr_null(base->growth.wanter);
    ck_assert_uint_eq(a->lease.wanted, 0);
    finish();
}
END_TEST

/* A newcomer gets its first lease from those that have more, if nothing is left. */
START_TEST(a_newcomer_gets_a_part)
{
    begin();
    uint64_t all = base->pool_limit - domain_floor(&k->f, base);
    base->pool.used = 0;
    base->granted += all; /* a has all that there is */
    a->grant += all;
    quota_granted(&k->f, base);
    answer(base, 0);
    a->pool_limit = a->grant;
    watch();
    a->pool.used = 0;
    struct device *c = NULL;
    struct err e = ERR_INIT;
    struct tenant *t = tenant_named(&k->f.tenants, "c");
    t->apart = true;
    ck_assert_msg(domain_obtain(&k->f, t, base, &c, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(c->grant, 0);
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(c->state, DEVICE_RESTING);
    leases_watch(&k->f, fake_now());
    ck_assert_ptr_eq(base->growth.wanter, c);
    ck_assert_uint_gt(a->lease.taken, 0);
    const struct msg_w_budget m = {.asked = a->budget, .limit = a->budget, .size = a->budget};
    quota_budget(&k->f, a, &m);
    leases_watch(&k->f, fake_now());
    ck_assert_uint_ge(c->grant, domain_floor(&k->f, c));
    domains_watch(&k->f, fake_now());
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    device_set_state(c, DEVICE_OPENED, NULL);
    device_set_state(c, DEVICE_PROBING, NULL);
    device_set_state(c, DEVICE_READY, "");
    finish();
}
END_TEST

/* FAULT other: a tenant's first worker starts on a device that the shared worker has filled
 * required: it waits until the shared worker has given back what it may have, or could not by the
 *   deadline, and does without that; all workers together never may have more than the device
 * defence: `front/workers/domains.c`: has_come; `front/tenants/budget.c`: owes, budget_reported
 * also: `front_sim`
 * mutants: lease-first, lease-reserved */
START_TEST(a_newcomer_waits_for_its_memory)
{
    begin();
    struct device *c = NULL;
    struct err e = ERR_INIT;
    struct tenant *t = tenant_named(&k->f.tenants, "c");
    t->apart = true;
    uint64_t had = base->pool_limit;
    ck_assert_int_eq(domain_obtain(&k->f, t, base, &c, &e), 0);
    uint64_t grant = c->grant;
    ck_assert_uint_gt(grant, 0);
    ck_assert_uint_eq(last[base->index].limit, had - grant);
    watch();
    ck_assert_int_eq(c->state, DEVICE_RESTING);
    a->pool.used = a->grant;
    b->pool.used = b->grant;
    wants(a, 8 * MIB); /* what has yet to come is no other's either */
    ck_assert_uint_eq(c->grant, grant);
    answers(base, grant); /* nothing has come */
    ck_assert_int_eq(c->state, DEVICE_RESTING);
    const struct msg_w_pool later = {.limit = base->budget, .missing = 4 * MIB};
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_w_pool, &later, &out, &e), 0);
    ck_assert_int_eq(
        worker_frame(&k->f, base, proto_kind(capbuf_view(&out)), capbuf_view(&out), NULL, &e), 0);
    capbuf_finish(&out);
    watch();
    ck_assert_int_eq(c->state, DEVICE_STARTING);
    ck_assert_uint_eq(c->grant, grant - 4 * MIB);
    ck_assert_uint_eq(base->pool_limit, had - grant + 4 * MIB);
    device_set_state(c, DEVICE_OPENED, NULL);
    device_set_state(c, DEVICE_PROBING, NULL);
    device_set_state(c, DEVICE_READY, "");
    finish();
}
END_TEST

/* The shared worker starts anew, perhaps for long. What tenants get meanwhile is not its next
 * one's: all workers together never may have more than the device. */
START_TEST(a_shared_worker_that_starts_has_the_rest)
{
    begin();
    struct device *c = NULL;
    struct err e = ERR_INIT;
    struct tenant *t = tenant_named(&k->f.tenants, "c");
    t->apart = true;
    struct link *link = base->link;
    base->link = NULL;
    base->progress = WORKER_STARTED;
    base->inflight_count = 0;
    ck_assert_int_eq(domain_obtain(&k->f, t, base, &c, &e), 0);
    ck_assert_uint_gt(c->grant, 0);
    ck_assert_uint_eq(base->pool_limit + base->granted, ALL);
    base->link = link;
    base->progress = WORKER_UP;
    base->lease.owed = 0;
    c->wanted = false;
    finish();
}
END_TEST

SUITE_MAIN("leases", a_shared_worker_that_starts_has_the_rest, a_newcomer_waits_for_its_memory,
           a_lease_grows, the_record_has_what_a_worker_may_have, some_is_missing, all_is_missing,
           it_is_denied, a_recall_is_not_answered, a_recall_is_not_put_off,
           a_successor_owes_nothing, they_are_served_in_turn, a_newcomer_gets_a_part)
