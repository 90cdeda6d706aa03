/* Tenants whose jobs are long, of unknown length, or change their length, beside others. */
#include <math.h>

#include "daemon/front/model/flight.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/sched/market.h"

static struct market *m;

static struct seller *sells(uint64_t weight, unsigned class, unsigned backlog, uint64_t each_ns)
{
    struct seller *s = market_add(m, weight, class);
    s->least_ns = s->most_ns = each_ns;
    s->backlog = backlog;
    return s;
}

static double part_of(const struct seller *s, const struct seller *other)
{
    return (double)s->had_ns / (double)(s->had_ns + other->had_ns) * 100;
}

/* The longest time in which none of its jobs ends, in steps of 10 ms. */
static uint64_t longest_without(const struct seller *s, uint64_t ns)
{
    uint64_t longest = 0;
    uint64_t now = 0;
    for (uint64_t passed = 0; passed < ns; passed += 10 * NS_PER_MS) {
        uint64_t before = s->jobs;
        market_run(m, 10 * NS_PER_MS);
        now = s->jobs == before ? now + 10 * NS_PER_MS : 0;
        longest = now > longest ? now : longest;
    }
    return longest;
}

/* A tenant of whose jobs none has ended leaves a stream for others, however little it was charged.
 */
START_TEST(unknown_jobs_leave_a_stream)
{
    for (unsigned weight = 1; weight <= 100; weight += 99) {
        m = market_create(1, 4, 16);
        struct seller *brief = sells(100, CLASS_INTERACTIVE, 8, NS_PER_MS);
        market_run(m, NS_PER_S);
        (void)sells(weight, CLASS_INTERACTIVE, 64, 10 * NS_PER_S);
        uint64_t longest = longest_without(brief, 120 * NS_PER_S);
        ck_assert_msg(longest <= 100 * NS_PER_MS, "%.2f s", (double)longest / 1e9);
        market_destroy(m);
    }
}
END_TEST

/* One long job is paid for once: brief jobs of its tenant do not wait for it again. */
START_TEST(a_long_job_is_paid_for_once)
{
    m = market_create(1, 1, 2);
    struct seller *turns = sells(100, CLASS_INTERACTIVE, 1, 10 * NS_PER_S);
    (void)sells(100, CLASS_INTERACTIVE, 8, NS_PER_MS);
    turns->pause_ns = 5 * NS_PER_MS;
    market_run(m, NS_PER_S);
    turns->least_ns = turns->most_ns = NS_PER_MS;
    market_run(m, 60 * NS_PER_S);
    ck_assert_uint_gt(turns->wait_count, 1000);
    for (unsigned i = 2; i < turns->wait_count;
         i++) { /* the first after it waits as long as it took */
        ck_assert_msg(turns->waits[i] <= 20 * NS_PER_MS, "job %u waited %.3f s", i,
                      (double)turns->waits[i] / 1e9);
    }
    market_destroy(m);
}
END_TEST

/* What batch jobs are owed does not let them fill the device. */
START_TEST(owed_batch_jobs_leave_room)
{
    for (unsigned fresh = 0; fresh < 2; fresh++) {
        m = market_create(1, 4, 16);
        struct seller *first = sells(100, CLASS_REALTIME, 32, NS_PER_MS);
        struct seller *batch = sells(100, CLASS_BATCH, 64, fresh ? 10 * NS_PER_S : 10 * NS_PER_US);
        market_run(m, 2 * NS_PER_S);
        batch->least_ns = batch->most_ns = 10 * NS_PER_S;
        uint64_t longest = longest_without(first, 30 * NS_PER_S);
        ck_assert_uint_le(m->device[0].line.flying[CLASS_BATCH], 5);
        ck_assert_msg(fresh == 0 || longest <= 100 * NS_PER_MS, "%.2f s", (double)longest / 1e9);
        market_destroy(m);
    }
}
END_TEST

/* However long batch jobs are, they get their part; and brief ones beside long ones theirs of it.
 */
START_TEST(long_batch_jobs_get_their_part)
{
    static const uint64_t each_ms[] = {8, 199, 250, 1000, 5000};
    for (unsigned i = 0; i < 5; i++) {
        m = market_create(1, 2, 4);
        m->f.config.batch_percent = 20;
        struct seller *usual = sells(100, CLASS_INTERACTIVE, 8, 5 * NS_PER_MS);
        struct seller *batch = sells(100, CLASS_BATCH, 8, each_ms[i] * NS_PER_MS);
        market_run(m, 2000 * NS_PER_S);
        double part = part_of(batch, usual);
        ck_assert_msg(fabs(part - 20) <= 1, "%u ms: %.2f%%", (unsigned)each_ms[i], part);
        market_destroy(m);
    }
    m = market_create(1, 2, 4);
    m->f.config.batch_percent = 20;
    (void)sells(100, CLASS_INTERACTIVE, 8, 5 * NS_PER_MS);
    struct seller *lengthy = sells(100, CLASS_BATCH, 8, 300 * NS_PER_MS);
    struct seller *brief = sells(100, CLASS_BATCH, 8, NS_PER_MS);
    market_run(m, 1000 * NS_PER_S);
    ck_assert_msg(fabs(part_of(brief, lengthy) - 50) <= 5, "%.2f%%", part_of(brief, lengthy));
    market_destroy(m);
}
END_TEST

/* Batch jobs use what a tenant with one job at a time leaves. They owe nothing for that: they get
 * their part when another one wants all of the device. */
START_TEST(what_others_leave_is_no_debt)
{
    m = market_create(1, 2, 4);
    m->f.config.batch_percent = 20;
    (void)sells(100, CLASS_INTERACTIVE, 1, 5 * NS_PER_MS);
    struct seller *batch = sells(100, CLASS_BATCH, 8, 5 * NS_PER_MS);
    market_run(m, 60 * NS_PER_S);
    ck_assert_uint_gt(batch->had_ns, 20 * NS_PER_S);
    uint64_t had_ns = batch->had_ns;
    (void)sells(100, CLASS_INTERACTIVE, 8, 5 * NS_PER_MS);
    market_run(m, 10 * NS_PER_S);
    double part = (double)(batch->had_ns - had_ns) / (10 * NS_PER_S) * 100;
    ck_assert_msg(fabs(part - 20) <= 3, "%.2f%%", part);
    market_destroy(m);
}
END_TEST

/* Whatever was expected of its jobs: when all have ended, nothing is before the next one. */
START_TEST(a_device_without_jobs_is_free)
{
    m = market_create(1, 2, 4);
    struct seller *s = sells(100, CLASS_INTERACTIVE, 2, NS_PER_MS);
    market_run(m, NS_PER_S);
    struct line *l = &m->device[0].line;
    l->until_ns = ns_add(turn_now(&m->f), 60 * NS_PER_S);
    s->pause_ns = 1000 * NS_PER_S; /* no more for long */
    market_run(m, 2 * NS_PER_S);
    ck_assert_uint_eq(l->flying[CLASS_INTERACTIVE], 0);
    ck_assert_uint_le(l->until_ns, turn_now(&m->f));
    market_destroy(m);
}
END_TEST

/* Virtual time does not end: a week of device time of a tenant with the least weight. */
START_TEST(virtual_time_does_not_end)
{
    m = market_create(1, 1, 2);
    struct seller *a = sells(1, CLASS_INTERACTIVE, 8, 30 * NS_PER_S);
    struct seller *b = sells(1, CLASS_INTERACTIVE, 8, 30 * NS_PER_S);
    for (unsigned day = 0; day < 7; day++) {
        market_run(m, 24 * 3600 * NS_PER_S);
        ck_assert_msg(fabs(part_of(a, b) - 50) <= 0.1, "day %u: %.2f%%", day, part_of(a, b));
    }
    market_destroy(m);
}
END_TEST

static unsigned kicks;

static void on_kick(struct front *f)
{
    (void)f;
    kicks++;
}

static void queued(struct job *j, uint64_t id, const char *tenant, uint64_t class)
{
    struct device *d = &m->device[0];
    *j = (struct job){.id = id,
                      .tenant = tenant_named(&m->f.tenants, tenant),
                      .job_class = class,
                      .deadline_ns = NS_NEVER,
                      .device = d,
                      .state = JOB_QUEUED};
    j->sched.rank = job_rank(j);
    ck_assert(shares_reserve(&m->f, j->tenant, j));
}

/* A charge by an earlier weight is taken back by the same weight: virtual time does not fall below
 * 0. */
START_TEST(a_weight_changes_in_flight)
{
    struct job j;
    m = market_create(1, 1, 2);
    queued(&j, 1, "changed", CLASS_INTERACTIVE);
    struct stake_class *of = &j.tenant->share.stake[0]->of[CLASS_INTERACTIVE];
    of->mean_ns = NS_PER_S;
    j.tenant->limits.weight = TENANT_WEIGHT_MAX;
    shares_taken(&m->f, &j);
    ck_assert_uint_eq(of->served, NS_PER_S / 100);
    j.tenant->limits.weight = 1;
    shares_left(&m->f, &j, NS_PER_MS);
    ck_assert_uint_eq(of->served, 100 * NS_PER_MS);
    market_destroy(m);
}
END_TEST

/* A batch job that is held goes at once when a realtime job waits for it. */
START_TEST(a_raised_job_may_go_at_once)
{
    struct job flies, held, first;
    m = market_create(1, 1, 16);
    m->f.hooks.kick = on_kick;
    struct device *d = &m->device[0];
    queued(&flies, 1, "low", CLASS_BATCH);
    queued(&held, 2, "low", CLASS_BATCH);
    queued(&first, 3, "high", CLASS_REALTIME);
    queue_offer(&m->f, &flies);
    shares_drop(&m->f, &flies);
    flies.state = JOB_DISPATCHED;
    flies.dispatched_ns = turn_now(&m->f);
    shares_taken(&m->f, &flies);
    job_join_device(&flies);
    queue_offer(&m->f, &held);
    d->line.lively_ns = turn_now(&m->f);
    ck_assert_ptr_null(shares_head(&m->f, d));
    kicks = 0;
    ck_assert(hazard_after(&held, &first));
    queue_offer(&m->f, &first);
    queue_raise(&m->f, &first);
    ck_assert_uint_eq(kicks, 1);
    ck_assert_ptr_eq(shares_head(&m->f, d), &held);
    shares_left(&m->f, &flies, 1);
    job_leave_device(&flies);
    shares_drop(&m->f, &held);
    hazard_leave(&m->f.hazards, &held);
    hazard_leave(&m->f.hazards, &first);
    market_destroy(m);
}
END_TEST

SUITE_MAIN("shares_beside", unknown_jobs_leave_a_stream, a_long_job_is_paid_for_once,
           owed_batch_jobs_leave_room, long_batch_jobs_get_their_part, what_others_leave_is_no_debt,
           a_device_without_jobs_is_free, virtual_time_does_not_end, a_weight_changes_in_flight,
           a_raised_job_may_go_at_once)
