/* Device time goes to tenants by class and weight. */
#include <math.h>
#include <stdlib.h>

#include "daemon/front/sched/shares.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/sched/market.h"

#define RUN_S 100u /* GPUD_SHARES_SECONDS: another time */

static struct market *m;

static uint64_t run_ns(void)
{
    const char *text = getenv("GPUD_SHARES_SECONDS");
    return (text != NULL ? strtoull(text, NULL, 10) : RUN_S) * NS_PER_S;
}

static double total(void)
{
    double sum = 0;
    for (unsigned i = 0; i < m->sellers; i++) {
        sum += (double)m->seller[i].had_ns;
    }
    return sum;
}

/* Each gets its part of what all of them got, within so many percent of the part. */
static void expect_parts(const double *weights, double percent)
{
    double sum = 0;
    for (unsigned i = 0; i < m->sellers; i++) {
        sum += weights[i];
    }
    for (unsigned i = 0; i < m->sellers; i++) {
        double part = (double)m->seller[i].had_ns / total();
        double off = fabs(part / (weights[i] / sum) - 1) * 100;
        ck_assert_msg(off <= percent, "seller %u has %.2f%%, not %.2f%%: %.2f%% off", i, part * 100,
                      weights[i] / sum * 100, off);
    }
}

/* The jobs of one tenant are brief, those of another long, those of others both. The allowance is
 * for a job of 50 ms in each stream that begins or ends within the time. */
static void shares_of(unsigned streams, unsigned window)
{
    static const double weights[] = {100, 200, 500, 100};
    m = market_create(1, streams, window);
    for (unsigned i = 0; i < 4; i++) {
        struct seller *s = market_add(m, (uint64_t)weights[i], CLASS_INTERACTIVE);
        s->backlog = 32;
        s->least_ns = i == 1 ? 50 * NS_PER_MS : 10 * NS_PER_US * (i == 0 ? 10 : 1);
        s->most_ns = i == 0 ? 100 * NS_PER_US : 50 * NS_PER_MS;
    }
    market_run(m, run_ns());
    expect_parts(weights, 2.0);
    market_destroy(m);
}

START_TEST(shares_follow_weights)
{
    shares_of(1, 2);
    shares_of(4, 8);
    shares_of(4, 16);
}
END_TEST

START_TEST(equal_weights_share_alike)
{
    double squares = 0;
    m = market_create(1, 2, 4);
    for (unsigned i = 0; i < 32; i++) {
        struct seller *s = market_add(m, 100, CLASS_INTERACTIVE);
        s->least_ns = 100 * NS_PER_US * (1 + i);
        s->most_ns = 4 * s->least_ns;
        s->backlog = 1 + i % 8;
    }
    market_run(m, run_ns());
    for (unsigned i = 0; i < m->sellers; i++) {
        squares += (double)m->seller[i].had_ns * (double)m->seller[i].had_ns;
    }
    double jain = total() * total() / (m->sellers * squares);
    ck_assert_msg(jain >= 0.99, "%.4f", jain);
    market_destroy(m);
}
END_TEST

/* Jobs that any device may run make up for what bound jobs get elsewhere. */
START_TEST(shares_hold_on_each_of_several_devices)
{
    static const double weights[] = {100, 300, 100};
    m = market_create(3, 2, 4);
    for (unsigned i = 0; i < 3; i++) {
        struct seller *s = market_add(m, (uint64_t)weights[i], CLASS_INTERACTIVE);
        s->least_ns = NS_PER_MS;
        s->most_ns = 20 * NS_PER_MS;
        s->backlog = 40;
        s->device = -1;
    }
    market_run(m, run_ns());
    expect_parts(weights, 2.0);
    market_destroy(m);
}
END_TEST

/* Whatever the number of streams, tenants are charged together for the time of the device, and each
 * for about what its jobs needed. */
START_TEST(time_is_charged_once)
{
    for (unsigned streams = 1; streams <= MARKET_STREAMS; streams++) {
        double charged = 0;
        m = market_create(1, streams, 2 * streams);
        for (unsigned i = 0; i < 3; i++) {
            struct seller *s = market_add(m, 100 + 100 * i, CLASS_INTERACTIVE);
            s->least_ns = NS_PER_MS * (1 + 3 * i);
            s->most_ns = 4 * s->least_ns;
            s->pause_ns = i == 2 ? 30 * NS_PER_MS : 0;
            s->backlog = i == 2 ? 1 : 8;
        }
        market_run(m, run_ns());
        for (unsigned i = 0; i < 3; i++) {
            double own = (double)m->seller[i].tenant->account->device_ns;
            double off = fabs(own / (double)m->seller[i].had_ns - 1) * 100;
            ck_assert_msg(off <= 5, "%u streams: seller %u is charged %.1f%% off", streams, i, off);
            charged += own;
        }
        ck_assert_msg(fabs(charged / total() - 1) <= 0.01,
                      "%u streams: %.4f of the time is charged", streams, charged / total());
        market_destroy(m);
    }
}
END_TEST

/* What a tenant did not use is gone: when it comes back it has its part, and no more. */
START_TEST(idle_time_is_not_saved_up)
{
    m = market_create(1, 1, 2);
    struct seller *busy = market_add(m, 100, CLASS_INTERACTIVE);
    struct seller *away = market_add(m, 100, CLASS_INTERACTIVE);
    away->backlog = 1;
    away->most_ns = away->least_ns = NS_PER_US; /* next to nothing, now and then */
    away->pause_ns = 100 * NS_PER_MS;
    market_run(m, 5 * NS_PER_S);
    uint64_t before = busy->had_ns;
    ck_assert_uint_lt(away->had_ns, NS_PER_MS);
    away->pause_ns = 0;
    away->most_ns = away->least_ns = NS_PER_MS;
    away->backlog = 20;
    market_run(m, NS_PER_S);
    double part = (double)(busy->had_ns - before) / (double)NS_PER_S;
    ck_assert_msg(fabs(part - 0.5) < 0.02, "%.3f", part);
    market_destroy(m);
}
END_TEST

/* A tenant whose jobs are charged before their times are known does not get more for it. */
START_TEST(estimates_are_corrected)
{
    static const double weights[] = {1, 1};
    m = market_create(1, 2, 16);
    struct seller *plain = market_add(m, 100, CLASS_INTERACTIVE);
    struct seller *wild = market_add(m, 100, CLASS_INTERACTIVE);
    plain->backlog = wild->backlog = 64;
    wild->least_ns = 10 * NS_PER_US;
    wild->most_ns = 40 * NS_PER_MS;
    market_run(m, run_ns());
    expect_parts(weights, 2.0);
    market_destroy(m);
}
END_TEST

START_TEST(classes_go_before_one_another)
{
    m = market_create(1, 2, 4);
    m->f.config.batch_percent = 0;
    struct seller *batch = market_add(m, 10000, CLASS_BATCH);
    struct seller *usual = market_add(m, 100, CLASS_INTERACTIVE);
    struct seller *first = market_add(m, 1, CLASS_REALTIME);
    market_run(m, NS_PER_S);
    ck_assert_uint_eq(batch->jobs + usual->jobs, 0);
    first->pause_ns = 3600 * NS_PER_S;
    market_run(m, NS_PER_S);
    ck_assert_uint_eq(batch->jobs, 0);
    ck_assert_uint_gt(usual->jobs, 900);
    usual->pause_ns = 3600 * NS_PER_S;
    market_run(m, NS_PER_S);
    ck_assert_uint_gt(batch->jobs, 800);
    market_destroy(m);
}
END_TEST

START_TEST(batch_jobs_get_their_part)
{
    static const uint64_t percents[] = {0, 5, 20, 50};
    for (unsigned i = 0; i < 4; i++) {
        m = market_create(1, 2, 4);
        m->f.config.batch_percent = percents[i];
        struct seller *batch = market_add(m, 100, CLASS_BATCH);
        struct seller *usual = market_add(m, 100, CLASS_REALTIME);
        usual->most_ns = 10 * NS_PER_MS;
        batch->most_ns = 8 * NS_PER_MS;
        market_run(m, run_ns());
        double part = (double)batch->had_ns / total() * 100;
        ck_assert_msg(fabs(part - (double)percents[i]) <= 0.5, "%.2f%% of %u%%", part,
                      (unsigned)percents[i]);
        market_destroy(m);
    }
}
END_TEST

/* An interactive job waits for one batch job at most. */
START_TEST(interactive_jobs_wait_for_one_batch_job)
{
    uint64_t alone = 0;
    for (unsigned beside = 0; beside < 2; beside++) {
        m = market_create(1, 1, 16);
        struct seller *usual = market_add(m, 100, CLASS_INTERACTIVE);
        usual->backlog = 1;
        usual->pause_ns = 20 * NS_PER_MS;
        if (beside > 0) {
            struct seller *batch = market_add(m, 100, CLASS_BATCH);
            batch->backlog = 64;
            batch->least_ns = batch->most_ns = 5 * NS_PER_MS;
        }
        market_run(m, run_ns());
        uint64_t p99 = market_wait_ns(usual, 99);
        alone = beside > 0 ? alone : p99;
        ck_assert_msg(beside == 0 || p99 <= alone + 6 * NS_PER_MS, "%.3f ms, alone %.3f",
                      (double)p99 / 1e6, (double)alone / 1e6);
        market_destroy(m);
    }
}
END_TEST

/* A tenant whose jobs have all gone may still stand in a line, and leaves it when it is forgotten.
 */
START_TEST(a_forgotten_tenant_leaves_the_lines)
{
    m = market_create(2, 1, 1);
    struct seller *s = market_add(m, 100, CLASS_INTERACTIVE);
    s->backlog = 2;
    s->device = -1;
    s->pause_ns = NS_PER_S;
    market_run(m, 2 * NS_PER_MS);
    ck_assert_uint_eq(s->jobs, 2);
    ck_assert_ptr_nonnull(tournament_first(&m->device[1].line.stakes[CLASS_INTERACTIVE]));
    tenant_destroy(&m->f.tenants, s->tenant);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_ptr_null(tournament_first(&m->device[i].line.stakes[CLASS_INTERACTIVE]));
    }
    market_destroy(m);
}
END_TEST

SUITE_MAIN("shares", a_forgotten_tenant_leaves_the_lines, shares_follow_weights,
           equal_weights_share_alike, shares_hold_on_each_of_several_devices, time_is_charged_once,
           idle_time_is_not_saved_up, estimates_are_corrected, classes_go_before_one_another,
           batch_jobs_get_their_part, interactive_jobs_wait_for_one_batch_job)
