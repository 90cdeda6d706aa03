/* The workers of a device take turns. */
#include "daemon/front/sched/turns.h"

#include <math.h>
#include <stdlib.h>

#include "daemon/front/model/flight.h"
#include "daemon/front/sched/shares.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/sched/market.h"

#define RUN_NS (60 * NS_PER_S)

static struct market *m;

static struct seller *sells(uint64_t weight, unsigned class, uint64_t least_ns, uint64_t most_ns)
{
    struct seller *s = market_add(m, weight, class);
    s->backlog = 32;
    s->least_ns = least_ns;
    s->most_ns = most_ns;
    return s;
}

static double total(void)
{
    double sum = 0;
    for (unsigned i = 0; i < m->sellers; i++) {
        sum += (double)m->seller[i].had_ns;
    }
    return sum;
}

/* Workers do not meet, and switches take at most so many percent of the time. */
static void expect_turns(uint64_t ns, double percent)
{
    double spent = (double)(m->hardware[0].switches * m->switch_ns) / (double)ns * 100;
    ck_assert_uint_eq(m->hardware[0].met, 0);
    ck_assert_msg(spent <= percent, "%.2f%% of the time goes to %u switches", spent,
                  (unsigned)m->hardware[0].switches);
}

static void expect_parts(double percent)
{
    double sum = 0;
    for (unsigned i = 0; i < m->sellers; i++) {
        sum += (double)m->seller[i].tenant->limits.weight;
    }
    for (unsigned i = 0; i < m->sellers; i++) {
        double due = (double)m->seller[i].tenant->limits.weight / sum;
        double part = (double)m->seller[i].had_ns / total();
        ck_assert_msg(fabs(part / due - 1) * 100 <= percent, "seller %u has %.2f%%, not %.2f%%", i,
                      part * 100, due * 100);
    }
}

/* Two domains, and two tenants that share a worker: brief jobs, long ones, and both. */
static void shares_of(unsigned streams, unsigned window, uint64_t switch_ns)
{
    static const uint64_t weights[] = {100, 200, 500, 100};
    m = market_create(1, streams, window);
    m->switch_ns = switch_ns;
    for (unsigned i = 0; i < 4; i++) {
        struct seller *s =
            sells(weights[i], CLASS_INTERACTIVE, i == 1 ? 50 * NS_PER_MS : 10 * NS_PER_US,
                  i == 0 ? 100 * NS_PER_US : 50 * NS_PER_MS);
        if (i < 2) {
            market_apart(m, s);
        }
    }
    market_run(m, RUN_NS);
    expect_parts(5.0);
    expect_turns(RUN_NS, 5.0);
    ck_assert_uint_gt(m->hardware[0].switches, 100);
    market_destroy(m);
}

START_TEST(shares_follow_weights_across_domains)
{
    shares_of(1, 2, 300 * NS_PER_US);
    shares_of(4, 8, 300 * NS_PER_US);
    shares_of(4, 16, NS_PER_MS);
    shares_of(2, 4, 10 * NS_PER_US);
}
END_TEST

START_TEST(equal_weights_share_alike_across_domains)
{
    double squares = 0;
    m = market_create(1, 2, 4);
    m->switch_ns = 300 * NS_PER_US;
    for (unsigned i = 0; i < 8; i++) {
        market_apart(m, sells(100, CLASS_INTERACTIVE, (10 + 100 * i) * NS_PER_US,
                              i % 2 == 0 ? NS_PER_MS : 50 * NS_PER_MS));
    }
    market_run(m, RUN_NS);
    for (unsigned i = 0; i < m->sellers; i++) {
        squares += (double)m->seller[i].had_ns * (double)m->seller[i].had_ns;
    }
    double jain = total() * total() / (m->sellers * squares);
    ck_assert_msg(jain >= 0.99, "%.4f", jain);
    expect_turns(RUN_NS, 5.0);
    market_destroy(m);
}
END_TEST

/* Tenants are charged together for the time in which the device had jobs, and no more. */
START_TEST(time_is_charged_once_across_domains)
{
    for (unsigned mps = 0; mps < 2; mps++) { /* with MPS workers overlap */
        double charged = 0;
        m = market_create(1, 2, 4);
        (void)snprintf(m->f.config.mps_devices, sizeof m->f.config.mps_devices, "%s",
                       mps != 0 ? "0" : "");
        for (unsigned i = 0; i < 3; i++) {
            struct seller *s = sells(100 + 100 * i, CLASS_INTERACTIVE, NS_PER_MS, 8 * NS_PER_MS);
            if (i > 0) {
                market_apart(m, s);
            }
        }
        market_run(m, 10 * NS_PER_S);
        for (unsigned i = 0; i < 3; i++) {
            charged += (double)m->seller[i].tenant->account->device_ns;
        }
        ck_assert_msg(fabs(charged / total() - 1) <= 0.02, "%.4f of the time is charged",
                      charged / total());
        ck_assert(mps == 0 || m->hardware[0].met > 0);
        ck_assert(mps != 0 || m->hardware[0].met == 0);
        market_destroy(m);
    }
}
END_TEST

/* A job of an earlier class waits for a switch and one job of the other worker, and not for the end
 * of the turn; also if its own worker has jobs all the time. */
static void cut_for_class(bool shares)
{
    uint64_t alone = 0;
    for (unsigned beside = 0; beside < 2; beside++) {
        m = market_create(1, 1, 16);
        m->switch_ns = 2 * NS_PER_MS; /* a turn has 80 ms */
        m->f.config.batch_percent = 0;
        struct seller *usual = sells(100, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS);
        usual->backlog = 1;
        usual->pause_ns = 20 * NS_PER_MS;
        if (!shares) {
            market_apart(m, usual);
        }
        if (beside > 0) {
            (void)sells(100, CLASS_BATCH, 5 * NS_PER_MS, 5 * NS_PER_MS);
            market_apart(m, sells(100, CLASS_BATCH, 5 * NS_PER_MS, 5 * NS_PER_MS));
        }
        market_run(m, RUN_NS);
        uint64_t p99 = market_wait_ns(usual, 99);
        alone = beside > 0 ? alone : p99;
        ck_assert_msg(beside == 0 || p99 <= alone + 5 * NS_PER_MS + 2 * m->switch_ns + NS_PER_MS,
                      "%.3f ms, alone %.3f", (double)p99 / 1e6, (double)alone / 1e6);
        expect_turns(RUN_NS, 100);
        market_destroy(m);
    }
}

START_TEST(a_turn_is_cut_for_an_earlier_class)
{
    cut_for_class(false);
    cut_for_class(true);
}
END_TEST

/* Batch jobs of a third worker are due for their part. The turn goes on meanwhile, but not before
 * the job of the first class. */
START_TEST(a_batch_job_that_is_due_holds_no_earlier_class_up)
{
    m = market_create(1, 1, 16);
    m->switch_ns = NS_PER_MS; /* a turn has 40 ms */
    m->f.config.batch_percent = 20;
    struct seller *first = sells(100, CLASS_REALTIME, NS_PER_MS, NS_PER_MS);
    first->backlog = 1;
    first->pause_ns = 20 * NS_PER_MS;
    market_apart(m, first);
    market_apart(m, sells(100, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS));
    market_apart(m, sells(100, CLASS_BATCH, NS_PER_MS, NS_PER_MS));
    market_run(m, RUN_NS);
    uint64_t longest = market_wait_ns(first, 100);
    ck_assert_msg(longest <= 20 * NS_PER_MS, "%.3f ms", (double)longest / 1e6);
    market_destroy(m);
}
END_TEST

/* FAULT other: a tenant floods a device from a worker of its own, while another sends few jobs
 * required: these wait for a switch and what is in flight, not for whole turns; they pay for their
 *   switches, so that a tenant that sends one job after the other takes no share of others
 * defence: `front/sched/turns.c`: change, is_full; `front/sched/shares.c`: shares_pay
 * mutants: turn-few, turn-pays, turn-full */
START_TEST(a_turn_is_cut_for_a_tenant_with_few_jobs)
{
    static const uint64_t pauses[] = {100 * NS_PER_MS, 20 * NS_PER_MS, NS_PER_US};
    for (unsigned i = 0; i < 3; i++) {
        m = market_create(1, 1, 64);
        m->switch_ns = 2 * NS_PER_MS; /* a turn has 80 ms */
        struct seller *few = sells(100, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS);
        struct seller *many = sells(100, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS);
        few->backlog = 1;
        few->pause_ns = pauses[i];
        market_apart(m, few);
        market_apart(m, many);
        market_run(m, RUN_NS);
        uint64_t p99 = market_wait_ns(few, 99);
        double part = (double)many->had_ns / (double)RUN_NS;
        ck_assert_msg(i > 0 || p99 <= 3 * NS_PER_MS + 2 * m->switch_ns + NS_PER_MS, "%.3f ms",
                      (double)p99 / 1e6);
        ck_assert_msg(part >= 0.49, "with pauses of %.3f ms the other has %.2f%% of the time",
                      (double)pauses[i] / 1e6, part * 100);
        ck_assert_uint_eq(m->hardware[0].met, 0);
        market_destroy(m);
    }
}
END_TEST

/* FAULT other: a tenant of a small weight has a turn, and goes on in it with jobs that are not due
 * required: a tenant with few jobs stands beside those that wait, and does not wait until they have
 *   had as much as the small weight counts the turn for
 * defence: `front/sched/shares.c`: pass_clock
 * mutants: turn-clock */
START_TEST(a_turn_of_a_small_weight_delays_no_others)
{
    m = market_create(1, 1, 64);
    m->switch_ns = NS_PER_MS; /* a turn has 40 ms */
    struct seller *few = sells(100, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS);
    few->backlog = 1;
    few->pause_ns = 20 * NS_PER_MS;
    market_apart(m, few);
    market_apart(m, sells(100, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS));
    market_apart(m, sells(1, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS));
    market_run(m, RUN_NS);
    uint64_t longest = market_wait_ns(few, 100);
    ck_assert_msg(longest <= 50 * NS_PER_MS, "%.3f ms", (double)longest / 1e6);
    market_destroy(m);
}
END_TEST

/* While one worker has all jobs there are no turns, whatever workers there are. */
START_TEST(a_worker_alone_keeps_the_device)
{
    m = market_create(1, 2, 8);
    m->switch_ns = NS_PER_MS;
    struct seller *busy = sells(100, CLASS_INTERACTIVE, 10 * NS_PER_US, 50 * NS_PER_MS);
    struct seller *idle = sells(100, CLASS_INTERACTIVE, NS_PER_MS, NS_PER_MS);
    idle->backlog = 0;
    market_apart(m, busy);
    market_apart(m, idle);
    market_run(m, 10 * NS_PER_S);
    ck_assert_uint_eq(m->device[0].turn.taken, 1);
    ck_assert_uint_eq(m->device[0].turn.cost_ns, 0);
    ck_assert_msg((double)busy->had_ns > 9.9e9, "%.3f s", (double)busy->had_ns / 1e9);
    market_destroy(m);
}
END_TEST

/* What a switch costs is measured, and turns become as long as it asks for. */
START_TEST(turns_follow_what_a_switch_costs)
{
    static const uint64_t costs[] = {50 * NS_PER_US, NS_PER_MS};
    for (unsigned i = 0; i < 2; i++) {
        m = market_create(1, 1, 4);
        m->switch_ns = costs[i];
        market_apart(m, sells(100, CLASS_INTERACTIVE, 10 * NS_PER_US, 100 * NS_PER_US));
        market_apart(m, sells(100, CLASS_INTERACTIVE, 10 * NS_PER_US, 100 * NS_PER_US));
        market_run(m, 10 * NS_PER_S);
        const struct turn *t = &m->device[0].turn;
        ck_assert_msg(fabs((double)t->cost_ns / (double)costs[i] - 1) < 0.05, "%.3f ms",
                      (double)t->cost_ns / 1e6);
        ck_assert_uint_ge(turn_length_ns(t), i == 0 ? TURN_LEAST_NS : 38 * NS_PER_MS);
        expect_turns(10 * NS_PER_S, 2.6);
        market_destroy(m);
    }
}
END_TEST

START_TEST(the_length_has_bounds)
{
    struct turn t = {.cost_ns = 0};
    ck_assert_uint_eq(turn_length_ns(&t), TURN_LEAST_NS);
    turn_cost(&t, 0); /* a begin before the end: clocks differ a little */
    ck_assert_uint_eq(turn_length_ns(&t), TURN_LEAST_NS);
    t.cost_ns = UINT64_MAX / 2;
    turn_cost(&t, UINT64_MAX);
    ck_assert_uint_eq(turn_length_ns(&t), TURN_MOST_NS);
    for (unsigned i = 0; i < 1000; i++) {
        turn_cost(&t, NS_PER_MS);
    }
    ck_assert_msg(fabs((double)turn_length_ns(&t) / (TURN_COSTS * 1e6) - 1) < 0.01, "%.3f ms",
                  (double)turn_length_ns(&t) / 1e6);
}
END_TEST

/* FAULT other: a tenant floods a device with jobs that keep it for longer than they run
 * required: the tenant pays for all of that time: jobs of another wait for what is in flight and
 *   their switches only
 * defence: `front/sched/shares.c`: kept_ns
 * mutants: turn-kept */
START_TEST(a_flood_of_brief_jobs_pays_for_the_device)
{
    m = market_create(1, 1, 64);
    m->switch_ns = 200 * NS_PER_US;
    struct seller *few = sells(100, CLASS_INTERACTIVE, 50 * NS_PER_US, 50 * NS_PER_US);
    struct seller *many = sells(100, CLASS_INTERACTIVE, 2 * NS_PER_US, 2 * NS_PER_US);
    few->backlog = 1;
    few->pause_ns = NS_PER_MS;
    many->backlog = 256;
    many->idle_ns = 18 * NS_PER_US;
    market_apart(m, many);
    market_run(m, 10 * NS_PER_S);
    uint64_t p99 = market_wait_ns(few, 99);
    double part = (double)many->jobs * 20e3 / 10e9;
    ck_assert_msg(p99 <= 3 * NS_PER_MS, "%.3f ms", (double)p99 / 1e6);
    ck_assert_msg(part >= 0.49, "the flood has %.2f%% of the time", part * 100);
    market_destroy(m);
}
END_TEST

/* A switch that took long, as its worker waited for a processor, does not make the next one dear.
 */
START_TEST(a_slow_switch_says_little)
{
    struct turn t = {.cost_ns = NS_PER_MS};
    turn_cost(&t, 400 * NS_PER_MS);
    ck_assert_uint_ge(turn_price_ns(&t), 2 * NS_PER_MS);
    ck_assert_uint_le(turn_price_ns(&t), 3 * NS_PER_MS);
}
END_TEST

/* FAULT other: jobs of a tenant that wait for memory, in the streams of its worker
 * required: its other jobs are charged as if those were not there
 * defence: `front/model/flight.c`: job_await_memory
 * mutants: turn-memory */
START_TEST(a_job_that_waits_for_memory_has_no_part_of_the_device)
{
    m = market_create(1, 2, 2);
    (void)sells(100, CLASS_INTERACTIVE, NS_PER_S, NS_PER_S);
    market_run(m, NS_PER_MS);
    struct line *l = &m->device[0].line;
    struct job *j = m->device[0].inflight;
    j->state = JOB_DISPATCHED;
    ck_assert_uint_eq(l->streams, 2);
    for (unsigned i = 0; i < 2; i++) { /* a worker may say it twice */
        job_await_memory(j, true);
        ck_assert_uint_eq(l->streams, 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        job_await_memory(j, false);
        ck_assert_uint_eq(l->streams, 2);
    }
    job_await_memory(j, true);
    (void)shares_left(&m->f, j, 0);
    job_leave_device(j);
    ck_assert_uint_eq(l->streams, 1);
    ck_assert_uint_eq(m->device[0].stream_load[j->stream], 0);
    market_destroy(m);
}
END_TEST

SUITE_MAIN("turns", shares_follow_weights_across_domains, equal_weights_share_alike_across_domains,
           time_is_charged_once_across_domains, a_turn_is_cut_for_an_earlier_class,
           a_batch_job_that_is_due_holds_no_earlier_class_up,
           a_turn_is_cut_for_a_tenant_with_few_jobs, a_turn_of_a_small_weight_delays_no_others,
           a_worker_alone_keeps_the_device, turns_follow_what_a_switch_costs, the_length_has_bounds,
           a_flood_of_brief_jobs_pays_for_the_device, a_slow_switch_says_little,
           a_job_that_waits_for_memory_has_no_part_of_the_device)
