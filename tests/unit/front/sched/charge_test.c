/* What jobs change in the account of their tenant: each run once, each end once. */
#include "daemon/front/sched/charge.h"

#include "daemon/front/model/flight.h"
#include "daemon/front/sched/conclude.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct job *sent(void)
{
    struct job *j = fake_job(k, 0);
    j->to_device = 100;
    j->from_device = 10;
    (void)fake_submit(k, j);
    fake_turn(k);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    return j;
}

static void runs(struct job *j, uint64_t ns)
{
    job_set_state(j, JOB_RUNNING, fake_now());
    fake_pass(ns);
}

static void expect(uint64_t device_ns, uint64_t runs)
{
    const struct account *a = k->tenant->account;
    ck_assert_uint_eq(a->device_ns, device_ns);
    ck_assert_uint_eq(a->to_device, 100 * runs);
    ck_assert_uint_eq(a->from_device, 10 * runs);
}

static uint64_t ends(enum account_result result)
{
    return k->tenant->account->jobs[result];
}

START_TEST(every_run_is_charged)
{
    k = fake_create();
    struct job *j = sent();
    runs(j, 5 * NS_PER_MS);
    fake_lose(k, 0, true);
    expect(5 * NS_PER_MS, 1);
    fake_turn(k);
    runs(j, 3 * NS_PER_MS);
    expect(5 * NS_PER_MS, 1);
    fake_done(k, j, 0);
    expect(8 * NS_PER_MS, 2);
    ck_assert_uint_eq(j->device_ns, 8 * NS_PER_MS);
    ck_assert_uint_eq(ends(ACCOUNT_DONE), 1);
    fake_turn(k);
    fake_destroy(k);
}
END_TEST

/* Two streams share the device: together the jobs are charged the time that passed. */
START_TEST(jobs_beside_each_other_share_the_time)
{
    k = fake_create();
    struct job *a = sent();
    struct job *b = sent();
    ck_assert_uint_ne(a->stream, b->stream);
    job_set_state(a, JOB_RUNNING, fake_now());
    runs(b, 4 * NS_PER_MS);
    fake_done(k, a, 0);
    fake_pass(NS_PER_MS);
    fake_done(k, b, 0);
    expect(a->device_ns + b->device_ns, 2);
    ck_assert_uint_eq(a->device_ns, 2 * NS_PER_MS);
    ck_assert_uint_ge(b->device_ns, 3 * NS_PER_MS - 100);
    ck_assert_uint_le(b->device_ns, 3 * NS_PER_MS);
    fake_turn(k);
    fake_destroy(k);
}
END_TEST

/* FAULT other: a job waits for memory on a full device
 * required: what it runs then is charged, and no part of it is taken away for the time before
 * defence: `front/model/flight.c`: begin_part
 * mutants: charge-memory */
START_TEST(a_job_that_waited_for_memory_pays_for_what_it_ran)
{
    k = fake_create();
    struct job *j = sent();
    job_await_memory(j, true);
    fake_pass(NS_PER_S); /* nothing runs */
    job_await_memory(j, false);
    runs(j, 4 * NS_PER_MS);
    fake_done(k, j, 0);
    expect(4 * NS_PER_MS, 1);
    fake_turn(k);
    fake_destroy(k);
}
END_TEST

/* The front was busy meanwhile: the times are those that the worker reports. */
START_TEST(jobs_that_begin_and_end_in_one_turn_share_the_time)
{
    k = fake_create();
    struct job *a = sent();
    struct job *b = sent();
    ck_assert_uint_ne(a->stream, b->stream);
    job_await_memory(a, true);
    fake_pass(4 * NS_PER_MS);
    job_await_memory(a, false);
    a->started_ns = fake_now() - 4 * NS_PER_MS;
    fake_done(k, a, 0);
    ck_assert_uint_eq(a->device_ns, 2 * NS_PER_MS);
    fake_done(k, b, 0);
    fake_turn(k);
    fake_destroy(k);
}
END_TEST

/* A job that ended otherwise counts its copies if it may have made them. */
START_TEST(ends_are_told_apart)
{
    static const int codes[] = {ERR_INVALID, ERR_DEADLINE, ERR_CANCELLED};
    k = fake_create();
    struct job *j = sent();
    fake_refused(k, j, codes[0]);
    expect(0, 0);
    j = sent();
    fake_done(k, j, codes[0]);
    expect(0, 1);
    j = sent();
    fake_refused(k, j, codes[1]);
    j = sent();
    job_cancel(&k->f, j);
    fake_done(k, j, codes[2]);
    fake_turn(k);
    expect(0, 1);
    ck_assert_uint_eq(ends(ACCOUNT_FAILED), 2);
    ck_assert_uint_eq(ends(ACCOUNT_DEADLINE), 1);
    ck_assert_uint_eq(ends(ACCOUNT_CANCELLED), 1);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    j = fake_job(k, 0);
    fake_writes(j, b, 0, 64); /* must not run twice */
    (void)fake_submit(k, j);
    fake_turn(k);
    runs(j, NS_PER_MS);
    fake_lose(k, 0, true);
    fake_turn(k);
    ck_assert_uint_eq(ends(ACCOUNT_LOST), 1);
    charge_refused(&k->f, k->tenant, ERR_BUSY);
    ck_assert_uint_eq(ends(ACCOUNT_REFUSED), 1);
    ck_assert_uint_eq(ends(ACCOUNT_DONE), 0);
    fake_destroy(k);
}
END_TEST

/* What an earlier front counted is not counted again. */
START_TEST(a_counted_job_is_not_counted_again)
{
    k = fake_create();
    struct job *j = sent();
    j->counted = true;
    runs(j, NS_PER_MS);
    fake_done(k, j, 0);
    fake_turn(k);
    expect(0, 0);
    ck_assert_uint_eq(ends(ACCOUNT_DONE), 0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("charge", every_run_is_charged, jobs_beside_each_other_share_the_time,
           a_job_that_waited_for_memory_pays_for_what_it_ran,
           jobs_that_begin_and_end_in_one_turn_share_the_time, ends_are_told_apart,
           a_counted_job_is_not_counted_again)
