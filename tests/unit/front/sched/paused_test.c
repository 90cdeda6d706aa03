/* Strikes against a tenant, and what a paused tenant gets. Device 0 has the worker that tenants
 * share. */
#include <string.h>

#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/sched/admission.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/conduct.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define OWN NS_PER_MS /* a client's own limit */

static struct fake *k;
static struct tenant *other;

static void begin(void)
{
    k = fake_create();
    other = tenant_named(&k->f.tenants, "other");
    ck_assert_ptr_nonnull(other);
}

/* Without a kernel of its user: a job of a tenant that may load none. */
static struct job *submit(struct tenant *t)
{
    struct job *j = fake_job(k, 0);
    j->tenant = t;
    j->limit_ns = j->ceiling_ns = NS_PER_S;
    (void)fake_submit(k, j);
    fake_turn(k);
    return j;
}

/* The job ended its worker by its time limit. */
static void overdue(struct job *j)
{
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    k->device[0].culprit = j;
    fake_lose(k, 0, false);
    fake_turn(k);
}

/* The job ended its worker, and the next one again, alone. */
static void crash(struct job *j, int code)
{
    for (unsigned run = 0; run < 2; run++) {
        ck_assert_int_eq(j->state, JOB_DISPATCHED);
        fake_done(k, j, code);
        fake_lose(k, 0, false);
        fake_turn(k);
    }
    ck_assert_int_eq(j->error.code, code);
}

static unsigned strikes(const struct tenant *t)
{
    return conduct_strikes(&t->conduct, fake_now());
}

static bool paused(const struct tenant *t)
{
    return conduct_check(t, fake_now(), NULL) != 0;
}

/* Its queued job does not run, jobs of others do, and time ends the pause. */
static void check_pause(void)
{
    struct err e = ERR_INIT;
    ck_assert(paused(k->tenant) && !paused(other));
    ck_assert_int_eq(conduct_check(k->tenant, fake_now(), &e), ERR_QUARANTINED);
    ck_assert_uint_eq(e.retry_after_ns, CONDUCT_PAUSE_NS);
    ck_assert_ptr_nonnull(strstr(e.text, "is paused, for 60 s more: 5 times its jobs"));
    ck_assert_int_eq(submit(k->tenant)->error.code, ERR_QUARANTINED);
    struct job *theirs = submit(other);
    ck_assert_int_eq(theirs->state, JOB_DISPATCHED);
    fake_done(k, theirs, 0);
    fake_pass(CONDUCT_PAUSE_NS);
    struct job *later = submit(k->tenant);
    ck_assert_int_eq(later->state, JOB_DISPATCHED);
    fake_done(k, later, 0);
}

START_TEST(time_limits_in_the_shared_worker_pause_a_tenant)
{
    begin();
    for (unsigned i = 0; i < CONDUCT_STRIKES; i++) {
        ck_assert(!paused(k->tenant));
        overdue(submit(k->tenant));
    }
    check_pause();
    fake_destroy(k);
}
END_TEST

/* Its client has the answer, by its own limit, before the worker is ended. */
START_TEST(an_early_answer_saves_no_tenant)
{
    begin();
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_TIME_LIMIT, "the client's own");
    for (unsigned i = 0; i < CONDUCT_STRIKES; i++) {
        struct job *j = submit(k->tenant);
        j->limit_ns = OWN;
        job_answer_early(&k->f, j, &e);
        overdue(j);
    }
    check_pause();
    fake_destroy(k);
}
END_TEST

START_TEST(crashes_of_the_shared_worker_pause_a_tenant)
{
    begin();
    for (unsigned i = 0; i < CONDUCT_STRIKES; i++) {
        ck_assert(!paused(k->tenant));
        crash(submit(k->tenant), ERR_KERNEL_FAULT);
    }
    check_pause();
    fake_destroy(k);
}
END_TEST

/* A client's own limit ends only a worker that no other tenant uses. */
START_TEST(what_costs_nobody_is_no_strike)
{
    begin();
    for (unsigned i = 0; i < 2 * CONDUCT_STRIKES; i++) {
        struct job *j = submit(k->tenant);
        j->limit_ns = OWN;
        overdue(j);
        crash(submit(k->tenant), ERR_DEVICE_LOST);
    }
    ck_assert_uint_eq(strikes(k->tenant), 0);
    k->tenant->apart = true; /* in a worker of its own */
    for (unsigned i = 0; i < 2 * CONDUCT_STRIKES; i++) {
        overdue(submit(k->tenant));
        crash(submit(k->tenant), ERR_KERNEL_FAULT);
    }
    ck_assert_uint_eq(strikes(k->tenant), 0);
    k->tenant->apart = false;
    fake_destroy(k);
}
END_TEST

/* The device is lost while a job runs whose client has its answer. */
START_TEST(a_lost_device_is_no_strike_after_an_early_answer)
{
    begin();
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_TIME_LIMIT, "the client's own");
    for (unsigned i = 0; i < 2 * CONDUCT_STRIKES; i++) {
        struct job *j = submit(k->tenant);
        job_answer_early(&k->f, j, &e);
        fake_done(k, j, ERR_DEVICE_LOST);
        fake_lose(k, 0, false);
        fake_turn(k);
        ck_assert_uint_eq(strikes(k->tenant), 0);
    }
    fake_destroy(k);
}
END_TEST

/* Jobs that were beside the culprit run again, however often that happens. */
START_TEST(the_jobs_beside_it_are_no_strikes)
{
    begin();
    struct job *bad[CONDUCT_STRIKES];
    for (unsigned i = 0; i < CONDUCT_STRIKES; i++) {
        bad[i] = submit(k->tenant);
        struct job *theirs = submit(other);
        overdue(bad[i]);
        ck_assert_int_eq(theirs->state, JOB_DISPATCHED);
        fake_done(k, theirs, 0);
    }
    ck_assert_uint_eq(strikes(other), 0);
    check_pause();
    fake_destroy(k);
}
END_TEST

/* A paused tenant is refused before its request costs anything. */
START_TEST(a_paused_tenant_submits_nothing)
{
    begin();
    struct err e = ERR_INIT;
    struct op op = {.seq = 1};
    struct request r = {.kind = MSG_KIND_SUBMIT};
    struct request_context c = {.f = &k->f, .s = k->session, .r = &r, .o = &op};
    for (unsigned i = 0; i < CONDUCT_STRIKES; i++) {
        overdue(submit(k->tenant));
    }
    ck_assert_int_eq(request_submit(&c, &e), ERR_QUARANTINED);
    ck_assert_uint_eq(e.retry_after_ns, CONDUCT_PAUSE_NS);
    ck_assert_uint_eq(k->f.count.refused, 1);
    fake_destroy(k);
}
END_TEST

START_TEST(a_paused_job_is_explained)
{
    begin();
    struct capbuf out;
    struct msg_explanation m;
    struct request r = {.kind = MSG_KIND_EXPLAIN};
    struct request_context c = {.f = &k->f, .s = k->session, .r = &r, .out = &out};
    for (unsigned i = 0; i < CONDUCT_STRIKES; i++) {
        overdue(submit(k->tenant));
    }
    struct job *j = fake_job(k, 0);
    r.msg.explain.job = fake_submit(k, j);
    capbuf_init(&out, 4096);
    ck_assert_int_eq(request_explain(&c, NULL), 0);
    ck_assert_int_eq(proto_decode(&schema_msg_explanation, capbuf_view(&out), &m, NULL), 0);
    ck_assert_ptr_nonnull(
        memmem(m.text.data, m.text.size, "refused when its turn comes: tenant", 35));
    capbuf_finish(&out);
    fake_turn(k);
    ck_assert_int_eq(j->error.code, ERR_QUARANTINED);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("paused", time_limits_in_the_shared_worker_pause_a_tenant,
           an_early_answer_saves_no_tenant, crashes_of_the_shared_worker_pause_a_tenant,
           what_costs_nobody_is_no_strike, a_lost_device_is_no_strike_after_an_early_answer,
           the_jobs_beside_it_are_no_strikes, a_paused_tenant_submits_nothing,
           a_paused_job_is_explained)
