/* The energy of a device goes to the tenants that had it, by their parts of the time. */
#include <stdio.h>

#include "daemon/front/devices/energy.h"
#include "daemon/front/model/flight.h"
#include "daemon/front/sched/shares.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct job *runs(void)
{
    struct job *j = fake_job(k, 0);
    (void)fake_submit(k, j);
    fake_turn(k);
    job_set_state(j, JOB_RUNNING, fake_now());
    return j;
}

static void done(struct job *j)
{
    fake_done(k, j, 0);
    fake_turn(k);
}

static struct health_device counter(uint64_t mj)
{
    return (struct health_device){.uuid = "GPU-1",
                                  .value[HEALTH_energy] = {.state = HEALTH_KNOWN, .value = mj}};
}

static void report(struct health_device h)
{
    energy_report(&k->f, &k->device[0], &h, fake_now());
}

static void expect_mj(uint64_t mj)
{
    uint64_t uj = k->tenant->account->energy_uj;
    ck_assert_msg(uj + 1 >= mj * 1000 && uj <= mj * 1000, "%llu uJ", (unsigned long long)uj);
}

START_TEST(who_had_it_for_half_of_the_time_gets_half)
{
    k = fake_create();
    report(counter(7000)); /* energy used before is in no account */
    struct job *j = runs();
    fake_pass(NS_PER_S);
    done(j);
    fake_pass(NS_PER_S);
    report(counter(7600));
    expect_mj(300);
    report(counter(7600)); /* the same report again */
    fake_pass(2 * NS_PER_S);
    report(counter(7800)); /* the device was idle */
    expect_mj(300);
    fake_destroy(k);
}
END_TEST

/* It counts in each interval, and what it took in all is not counted again at its end. */
START_TEST(a_job_that_runs_over_several_reports)
{
    k = fake_create();
    report(counter(0));
    struct job *j = runs();
    fake_pass(2 * NS_PER_S);
    report(counter(1000));
    expect_mj(1000);
    fake_pass(2 * NS_PER_S);
    report(counter(1500));
    expect_mj(1500);
    fake_pass(NS_PER_S);
    done(j);
    fake_pass(NS_PER_S);
    report(counter(2500));
    expect_mj(2000);
    fake_destroy(k);
}
END_TEST

START_TEST(what_is_not_known_is_not_guessed)
{
    k = fake_create();
    struct health_device power = {.uuid = "GPU-1",
                                  .value[HEALTH_power] = {.state = HEALTH_KNOWN, .value = 250000}};
    struct health_device none = {.uuid = "GPU-1"};
    struct health_device part = counter(100000);
    report(none);
    struct job *j = runs();
    fake_pass(2 * NS_PER_S);
    report(none);
    expect_mj(0);
    fake_pass(2 * NS_PER_S);
    report(power); /* 250 W for 2 s */
    expect_mj(500000);
    fake_pass(2 * NS_PER_S);
    report(counter(1000)); /* the first one says nothing of the interval */
    expect_mj(500000);
    fake_pass(2 * NS_PER_S);
    report(counter(500)); /* the driver was loaded anew */
    expect_mj(500000);
    fake_pass(600 * NS_PER_S);
    report(counter(90000)); /* the monitor was away */
    expect_mj(500000);
    (void)snprintf(part.uuid, sizeof part.uuid, "MIG-1");
    fake_pass(2 * NS_PER_S);
    report(part);
    expect_mj(500000);
    done(j);
    fake_destroy(k);
}
END_TEST

/* A job in flight on the tenant's own worker uses the same device. */
START_TEST(own_workers_count_as_well)
{
    k = fake_create();
    struct device own = {.front = &k->f,
                         .index = DEVICES_MAX,
                         .base = &k->device[0],
                         .owner = k->tenant,
                         .streams = 1};
    struct job j = {.id = 1,
                    .tenant = k->tenant,
                    .device = &own,
                    .job_class = CLASS_INTERACTIVE,
                    .deadline_ns = NS_NEVER};
    k->device[0].domains = &own;
    report(counter(0));
    ck_assert(shares_reserve(&k->f, k->tenant, &j));
    shares_taken(&k->f, &j);
    job_join_device(&j);
    job_set_state(&j, JOB_DISPATCHED, fake_now());
    job_set_state(&j, JOB_RUNNING, fake_now());
    fake_pass(NS_PER_S);
    report(counter(600));
    expect_mj(600);
    (void)shares_left(&k->f, &j, NS_PER_S);
    job_leave_device(&j);
    k->device[0].domains = NULL;
    fake_destroy(k);
}
END_TEST

static struct job *beside(struct job *j, uint64_t id, unsigned stream)
{
    *j = (struct job){.id = id,
                      .tenant = k->tenant,
                      .device = &k->device[0],
                      .stream = stream,
                      .job_class = CLASS_INTERACTIVE,
                      .deadline_ns = NS_NEVER};
    ck_assert(shares_reserve(&k->f, k->tenant, j));
    shares_taken(&k->f, j);
    job_join_device(j);
    job_set_state(j, JOB_DISPATCHED, fake_now());
    return j;
}

static void ends(struct job *j)
{
    (void)shares_left(&k->f, j, fake_now() - j->started_ns);
    job_leave_device(j);
}

/* Behind another job of its stream a job has no part of the device, however few others do. Later it
 * has a part beside others. */
START_TEST(a_job_that_waits_for_its_stream)
{
    struct job first, second, other;
    k = fake_create();
    k->device[0].streams = 2;
    report(counter(0));
    (void)beside(&first, 1, 0);
    (void)beside(&second, 2, 0);
    job_set_state(&first, JOB_RUNNING, fake_now());
    fake_pass(NS_PER_S);
    ends(&first);
    (void)beside(&other, 3, 1);
    job_set_state(&second, JOB_RUNNING, fake_now());
    job_set_state(&other, JOB_RUNNING, fake_now());
    fake_pass(NS_PER_S);
    ends(&second);
    ends(&other);
    fake_pass(NS_PER_S); /* the device was idle */
    report(counter(900));
    expect_mj(600);
    fake_destroy(k);
}
END_TEST

/* A tenant that used a device is forgotten before the next report. */
START_TEST(a_spender_that_is_gone_gets_nothing)
{
    k = fake_create();
    report(counter(0));
    struct job *j = runs();
    fake_pass(NS_PER_S);
    done(j);
    ck_assert_ptr_nonnull(k->device[0].line.spenders);
    share_finish(&k->tenant->share);
    ck_assert_ptr_null(k->device[0].line.spenders);
    fake_pass(NS_PER_S);
    report(counter(100));
    expect_mj(0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("energy", who_had_it_for_half_of_the_time_gets_half,
           a_job_that_runs_over_several_reports, what_is_not_known_is_not_guessed,
           own_workers_count_as_well, a_job_that_waits_for_its_stream,
           a_spender_that_is_gone_gets_nothing)
