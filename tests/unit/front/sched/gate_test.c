/* A tenant's own limits of jobs in flight and of transfers delay its own jobs, and only these. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/sched/cap.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/gate.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/tenants/tenant_quota.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define BYTES 1024u /* of a transfer */
#define FEW   128u  /* of one of several that are in flight */

static struct fake *k;
static struct tenant *other;

static void begin(void)
{
    k = fake_create();
    k->f.wake_ns = NS_NEVER;
    k->f.config.window = 16;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].streams = 8; /* tenants whose jobs are not known yet leave one of them */
    }
    other = tenant_obtain(&k->f.tenants, 1001);
    ck_assert_ptr_nonnull(other);
}

static struct job *offer(struct tenant *t, int device, uint64_t bytes)
{
    struct job *j = fake_job(k, device);
    j->tenant = t;
    j->work.input_bytes = bytes;
    (void)fake_submit(k, j);
    return j;
}

static void pass(uint64_t ns)
{
    fake_pass(ns);
    gates_watch(&k->f, fake_now());
    caps_watch(&k->f, fake_now());
    fake_turn(k);
}

static void finish(struct job *j)
{
    fake_done(k, j, 0);
    fake_turn(k);
}

static unsigned flying(struct job *const *j, unsigned count)
{
    unsigned n = 0;
    for (unsigned i = 0; i < count; i++) {
        n += j[i]->state == JOB_DISPATCHED;
    }
    ck_assert_uint_eq(n, k->tenant->gate.flying);
    return n;
}

static void explains(struct job *j, const char *text)
{
    char said[PROTO_TEXT_MAX + 1];
    struct request r = {.kind = MSG_KIND_EXPLAIN, .msg.explain.job = j->id};
    struct msg_explanation m;
    struct capbuf out;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    struct request_context c = {.f = &k->f, .s = k->session, .r = &r, .out = &out};
    ck_assert_int_eq(request_explain(&c, NULL), 0);
    ck_assert_int_eq(proto_decode(&schema_msg_explanation, capbuf_view(&out), &m, NULL), 0);
    ck_assert(bytes_to_str(m.text, said, sizeof said));
    ck_assert_msg(strstr(said, text) != NULL, "%s", said);
    capbuf_finish(&out);
}

/* The jobs of others take the place that a tenant at its limit leaves. */
START_TEST(a_tenant_has_its_jobs_in_flight_and_others_theirs)
{
    struct job *j[6];
    struct job *o[2];
    begin();
    k->tenant->limits.in_flight = 2;
    for (unsigned i = 0; i < 6; i++) {
        j[i] = offer(k->tenant, i % 2 == 0 ? 0 : -1, 0);
    }
    o[0] = offer(other, 0, 0);
    o[1] = offer(other, -1, 0);
    fake_turn(k);
    ck_assert_uint_eq(flying(j, 6), 2);
    ck_assert_int_eq(o[0]->state, JOB_DISPATCHED);
    ck_assert_int_eq(o[1]->state, JOB_DISPATCHED);
    ck_assert_int_eq(j[2]->wait, WAIT_FLIGHT);
    explains(j[2], "2 are in flight, at most 2 may be (inflight_max of tenant uid:1000)");
    for (unsigned i = 0; i < 6; i++) { /* in order, whatever became ready when */
        ck_assert_int_eq(j[i]->state, JOB_DISPATCHED);
        finish(j[i]);
        ck_assert_uint_eq(flying(j, 6), i < 4 ? 2 : 5 - i);
    }
    ck_assert_uint_eq(k->tenant->gate.held_count, 0);
    finish(o[0]);
    finish(o[1]);
    fake_destroy(k);
}
END_TEST

/* A held job that ends, and one that becomes more urgent, leave the others their places. */
START_TEST(held_jobs_come_and_go)
{
    struct job *j[5];
    begin();
    k->tenant->limits.in_flight = 1;
    for (unsigned i = 0; i < 5; i++) {
        j[i] = offer(k->tenant, 0, 0);
    }
    fake_turn(k);
    ck_assert_uint_eq(k->tenant->gate.held_count, 4);
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "cancelled");
    job_conclude(&k->f, j[1], JOB_CANCELLED, &e);
    queue_first(&k->f, j[4]);
    ck_assert_uint_eq(k->tenant->gate.held_count, 3);
    finish(j[0]);
    ck_assert_int_eq(j[4]->state, JOB_DISPATCHED);
    fake_lose(k, 0, true); /* it comes again, once its worker is back */
    fake_turn(k);
    ck_assert_uint_eq(flying(j + 2, 3), 1);
    while (k->f.job_count > 0) {
        unsigned i = 2;
        while (j[i]->state != JOB_DISPATCHED) {
            i++;
        }
        finish(j[i]);
    }
    fake_destroy(k);
}
END_TEST

START_TEST(a_limit_that_rises_lets_go_and_one_that_falls_ends_nothing)
{
    struct job *j[4];
    begin();
    k->tenant->limits.in_flight = 1;
    for (unsigned i = 0; i < 4; i++) {
        j[i] = offer(k->tenant, 0, 0);
    }
    fake_turn(k);
    ck_assert_uint_eq(flying(j, 4), 1);
    k->tenant->limits.in_flight = 3;
    gate_look(&k->f.gates, &k->tenant->gate, k->tenant);
    k->kicked = true;
    fake_turn(k);
    ck_assert_uint_eq(flying(j, 4), 3);
    k->tenant->limits.in_flight = 1;
    finish(j[0]);
    ck_assert_uint_eq(flying(j, 4), 2);
    finish(j[1]);
    finish(j[2]);
    ck_assert_uint_eq(flying(j, 4), 1);
    finish(j[3]);
    fake_destroy(k);
}
END_TEST

static void rules_with(unsigned count, uint64_t in_flight)
{
    struct err e = ERR_INIT;
    struct tenant_rules r = {.others = TENANT_UNLIMITED, .count = count};
    r.rule = calloc(1, sizeof *r.rule);
    ck_assert_ptr_nonnull(r.rule);
    r.rule[0].limits = TENANT_UNLIMITED;
    r.rule[0].limits.in_flight = in_flight;
    r.rule[0].name[0] = 'a';
    ck_assert_msg(quota_rules(&k->f, &r, 0, &e) == 0, "%s", e.text);
    tenant_rules_finish(&r);
    k->kicked = true; /* as a reload does */
    fake_turn(k);
}

/* Its jobs go on, by the limits of tenants without a section. */
START_TEST(a_reload_that_removes_a_tenant_ends_none_of_its_jobs)
{
    struct job *j[3];
    begin();
    rules_with(1, 1);
    struct tenant *a = tenant_find(k->f.tenants, tenant_key_of("a"));
    ck_assert_ptr_nonnull(a);
    for (unsigned i = 0; i < 3; i++) {
        j[i] = offer(a, 0, 0);
    }
    fake_turn(k);
    ck_assert_uint_eq(a->gate.flying, 1);
    ck_assert_uint_eq(a->gate.held_count, 2);
    rules_with(0, 0);
    ck_assert(!a->ruled);
    ck_assert_uint_eq(a->gate.flying, 3);
    for (unsigned i = 0; i < 3; i++) {
        finish(j[i]);
        ck_assert_int_eq(k->state[i + 1], JOB_DONE);
    }
    ck_assert_ptr_eq(tenant_find(k->f.tenants, tenant_key_of("a")), a);
    tenant_rules_finish(&k->f.rules);
    fake_destroy(k);
}
END_TEST

/* At 10 transfers a second, with one in advance: the second is not paid for at once. */
START_TEST(transfers_wait_until_they_are_paid_for)
{
    struct job *j[4];
    begin();
    k->tenant->limits.transfer_rate = 10 * BYTES;
    for (unsigned i = 0; i < 4; i++) {
        j[i] = offer(k->tenant, 0, BYTES);
    }
    struct job *plain = offer(k->tenant, 0, 0); /* transfers nothing */
    struct job *o = offer(other, 0, BYTES);
    fake_turn(k);
    ck_assert_int_eq(plain->state, JOB_DISPATCHED);
    ck_assert_int_eq(o->state, JOB_DISPATCHED);
    finish(plain);
    finish(o);
    ck_assert_uint_eq(flying(j, 4), 2);
    ck_assert_int_eq(j[2]->wait, WAIT_TRANSFER);
    explains(j[2], "waits to transfer 1024 bytes, for 100.000 ms: its tenant may transfer 10240 a "
                   "second (transfer_rate of tenant uid:1000)");
    ck_assert_uint_eq(agenda_next_ns(&k->f.gates), fake_now() + 100 * NS_PER_MS);
    pass(99 * NS_PER_MS);
    ck_assert_uint_eq(flying(j, 4), 2);
    pass(NS_PER_MS);
    ck_assert_uint_eq(flying(j, 4), 3);
    pass(99 * NS_PER_MS);
    ck_assert_uint_eq(flying(j, 4), 3);
    pass(NS_PER_MS);
    ck_assert_uint_eq(flying(j, 4), 4);
    for (unsigned i = 0; i < 4; i++) {
        finish(j[i]);
    }
    fake_destroy(k);
}
END_TEST

/* One that is large goes at once, and what follows pays for it. Time without transfers is not saved
 * up beyond the burst. */
START_TEST(a_large_transfer_is_paid_for_afterwards)
{
    begin();
    k->tenant->limits.transfer_rate = 10 * BYTES;
    pass(1000 * NS_PER_S);
    struct job *large = offer(k->tenant, 0, 3 * BYTES);
    struct job *next = offer(k->tenant, 1, BYTES);
    fake_turn(k);
    ck_assert_int_eq(large->state, JOB_DISPATCHED);
    ck_assert_int_eq(next->state, JOB_QUEUED);
    pass(199 * NS_PER_MS);
    ck_assert_int_eq(next->state, JOB_QUEUED);
    finish(large);
    pass(NS_PER_MS);
    ck_assert_int_eq(next->state, JOB_DISPATCHED);
    finish(next);
    fake_destroy(k);
}
END_TEST

/* In the long run the rate holds, whatever the jobs. */
START_TEST(the_rate_holds)
{
    uint64_t moved = 0;
    begin();
    k->tenant->limits.transfer_rate = 10 * BYTES;
    struct job *j = offer(k->tenant, 0, BYTES);
    for (unsigned ms = 0; ms < 100000; ms++) {
        pass(NS_PER_MS);
        if (j->state == JOB_DISPATCHED) {
            moved += j->work.input_bytes;
            finish(j);
            j = offer(k->tenant, 0, 1 + (ms * 2654435761u) % (4 * BYTES));
        }
    }
    ck_assert_msg(moved >= 990u * BYTES && moved <= 1006u * BYTES, "%llu",
                  (unsigned long long)moved);
    while (j->state != JOB_DISPATCHED) {
        pass(NS_PER_MS);
    }
    finish(j);
    fake_destroy(k);
}
END_TEST

/* Nothing is known of its first job, so the second waits for its end. */
START_TEST(a_cap_of_device_time_is_explained)
{
    begin();
    k->tenant->limits.device_share = 10;
    struct job *j[2] = {offer(k->tenant, 0, 0), offer(k->tenant, 0, 0)};
    struct job *o = offer(other, 0, 0);
    fake_turn(k);
    ck_assert_int_eq(o->state, JOB_DISPATCHED);
    ck_assert_uint_eq(flying(j, 2), 1);
    explains(j[1], "for 900.000 ms more its tenant has had its part of the time (device_share = "
                   "10% of tenant uid:1000)");
    pass(100 * NS_PER_MS);
    explains(j[1], "for 800.000 ms more");
    pass(800 * NS_PER_MS);
    ck_assert_uint_eq(flying(j, 2), 2);
    finish(j[0]);
    finish(j[1]);
    finish(o);
    fake_destroy(k);
}
END_TEST

/* The timer fires for one tenant: the others that wait are not forgotten. */
START_TEST(each_tenant_is_waited_for)
{
    struct job *j[3];
    struct job *o[3];
    begin();
    k->tenant->limits.transfer_rate = 10 * FEW;
    other->limits.transfer_rate = 5 * FEW;
    for (unsigned i = 0; i < 3; i++) {
        j[i] = offer(k->tenant, 0, FEW);
        o[i] = offer(other, 0, FEW);
    }
    fake_turn(k);
    ck_assert_uint_eq(flying(j, 3), 2);
    ck_assert_int_eq(o[0]->state, JOB_DISPATCHED);
    ck_assert_int_eq(o[1]->state, JOB_QUEUED);
    fake_pass(agenda_next_ns(&k->f.gates) - fake_now());
    k->f.wake_ns = NS_NEVER; /* it fires */
    gates_watch(&k->f, fake_now());
    fake_turn(k);
    ck_assert(agenda_next_ns(&k->f.gates) != NS_NEVER);
    ck_assert_uint_le(k->f.wake_ns, agenda_next_ns(&k->f.gates));
    while (j[2]->state != JOB_DISPATCHED || o[2]->state != JOB_DISPATCHED) {
        pass(10 * NS_PER_MS);
    }
    for (unsigned i = 0; i < 3; i++) {
        finish(j[i]);
        finish(o[i]);
    }
    fake_destroy(k);
}
END_TEST

/* Nothing else may happen until a transfer is paid for. */
START_TEST(a_held_transfer_has_a_timer)
{
    begin();
    k->tenant->limits.transfer_rate = 10 * FEW;
    for (unsigned i = 0; i < 2; i++) {
        struct job *before = offer(k->tenant, 0, FEW);
        fake_turn(k);
        finish(before);
    }
    k->f.wake_ns = NS_NEVER;
    struct job *j = offer(k->tenant, 0, FEW);
    fake_turn(k);
    ck_assert_int_eq(j->wait, WAIT_TRANSFER);
    ck_assert_uint_le(k->f.wake_ns, k->tenant->gate.paid_ns);
    pass(100 * NS_PER_MS);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    finish(j);
    fake_destroy(k);
}
END_TEST

START_TEST(each_tenant_at_a_cap_is_waited_for)
{
    begin();
    k->tenant->limits.device_share = 10;
    other->limits.device_share = 5;
    struct job *j[2] = {offer(k->tenant, 0, 0), offer(k->tenant, 0, 0)};
    struct job *o[2] = {offer(other, 0, 0), offer(other, 0, 0)};
    const struct agenda *capped = &k->device[0].line.capped;
    fake_turn(k);
    ck_assert_int_eq(o[1]->state, JOB_QUEUED);
    fake_pass(agenda_next_ns(capped) - fake_now());
    k->f.wake_ns = NS_NEVER; /* it fires */
    ck_assert_ptr_eq(shares_head(&k->f, &k->device[0]), j[1]);
    ck_assert(agenda_next_ns(capped) != NS_NEVER);
    ck_assert_uint_eq(k->f.wake_ns, agenda_next_ns(capped));
    k->kicked = true;
    fake_turn(k);
    ck_assert_int_eq(j[1]->state, JOB_DISPATCHED);
    while (o[1]->state != JOB_DISPATCHED) {
        pass(10 * NS_PER_MS);
    }
    for (unsigned i = 0; i < 2; i++) {
        finish(j[i]);
        finish(o[i]);
    }
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("gate", a_tenant_has_its_jobs_in_flight_and_others_theirs, held_jobs_come_and_go,
           a_limit_that_rises_lets_go_and_one_that_falls_ends_nothing,
           a_reload_that_removes_a_tenant_ends_none_of_its_jobs,
           transfers_wait_until_they_are_paid_for, a_large_transfer_is_paid_for_afterwards,
           the_rate_holds, a_cap_of_device_time_is_explained, each_tenant_is_waited_for,
           a_held_transfer_has_a_timer, each_tenant_at_a_cap_is_waited_for)
