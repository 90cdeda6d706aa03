/* When jobs will end, and which deadlines can be kept. */
#include "daemon/front/sched/predict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "daemon/front/sched/shares.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/sched/market.h"

static struct market *m;

/* Tenants that have ten times as much work as devices can do, most of it refused. */
static void overload(unsigned devices, unsigned streams, int bound)
{
    static const uint64_t weights[] = {100, 200, 500};
    m = market_create(devices, streams, 2 * streams);
    for (unsigned i = 0; i < 3; i++) {
        struct seller *s = market_add(m, weights[i], CLASS_INTERACTIVE);
        s->kind = 1 + i;
        s->noise = 0.2;
        s->least_ns = s->most_ns = NS_PER_MS * (1 + i);
        s->every_ns = s->least_ns * 3 / (10 * devices);
        s->due_least_ns = 20 * NS_PER_MS;
        s->due_most_ns = 2 * NS_PER_S;
        s->device = bound;
    }
}

/* The first jobs teach what jobs take: until then all are admitted. */
static void warm_up(void)
{
    market_run(m, 5 * NS_PER_S);
    for (unsigned i = 0; i < m->sellers; i++) {
        struct seller *s = &m->seller[i];
        s->jobs = s->missed = s->refused = s->had_ns = 0;
    }
}

/* Of what it admitted nearly all begins in time, and devices have enough to do. */
static void expect_kept(unsigned devices, uint64_t ns)
{
    uint64_t jobs = 0;
    uint64_t missed = 0;
    uint64_t refused = 0;
    uint64_t had = 0;
    for (unsigned i = 0; i < m->sellers; i++) {
        const struct seller *s = &m->seller[i];
        jobs += s->jobs;
        missed += s->missed;
        refused += s->refused;
        had += s->had_ns;
    }
    double kept = 100.0 * (double)jobs / (double)(jobs + missed);
    double good = 100.0 * (double)had / (double)(ns * devices);
    printf("%u devices: %.4f %% of %llu kept, %llu refused, %.2f %% of the time used\n", devices,
           kept, (unsigned long long)(jobs + missed), (unsigned long long)refused, good);
    ck_assert_msg(kept >= 99.9, "%.3f %% of admitted deadlines are kept", kept);
    ck_assert_msg(good >= 90, "%.2f %% of the time is used", good);
    ck_assert_uint_gt(refused, jobs);
}

static void expect_all_kept(unsigned devices, unsigned streams, int bound)
{
    overload(devices, streams, bound);
    warm_up();
    market_run(m, 20 * NS_PER_S);
    expect_kept(devices, 20 * NS_PER_S);
    market_destroy(m);
}

START_TEST(admitted_deadlines_are_kept)
{
    expect_all_kept(1, 1, 0);
    expect_all_kept(1, 2, 0);
    expect_all_kept(1, 4, 0);
    expect_all_kept(4, 1, -1);
}
END_TEST

/* A test of its own, for its time: these take the longest of all. */
START_TEST(devices_with_streams_keep_admitted_deadlines)
{
    expect_all_kept(4, 2, -1);
    expect_all_kept(4, 4, -1);
}
END_TEST

static struct seller *usual(uint64_t weight, unsigned class, uint64_t kind)
{
    struct seller *s = market_add(m, weight, class);
    s->kind = kind;
    s->noise = 0.2;
    s->backlog = 40;
    return s;
}

/* Of several tenants, on one device or several, bound to them or not. */
START_TEST(ends_are_predicted)
{
    static const struct {
        unsigned devices, streams, tenants;
        int device;
    } cases[] = {{1, 1, 1, 0}, {1, 4, 1, 0}, {1, 2, 3, 0}, {4, 1, 1, -1}, {4, 2, 3, -1}};
    for (unsigned i = 0; i < 5; i++) {
        m = market_create(cases[i].devices, cases[i].streams, 2 * cases[i].streams);
        for (unsigned k = 0; k < cases[i].tenants; k++) {
            struct seller *s = usual(100 * (k + 1), CLASS_INTERACTIVE, 1 + k);
            s->device = cases[i].device;
            s->least_ns = s->most_ns = (1 + k) * NS_PER_MS;
        }
        market_run(m, 2 * NS_PER_S);
        for (unsigned k = 0; k < cases[i].tenants; k++) {
            m->seller[k].ends = (struct accuracy){0};
        }
        market_run(m, 10 * NS_PER_S);
        for (unsigned k = 0; k < cases[i].tenants; k++) {
            const struct accuracy *a = &m->seller[k].ends;
            printf("case %u, tenant %u: %.1f %% of %u ends\n", i, k,
                   (double)accuracy_ppm(a, 90) / 1e4, a->total);
            ck_assert_uint_gt(a->total, 1000);
            ck_assert_uint_le(accuracy_ppm(a, 50), 100000);
            ck_assert_uint_le(accuracy_ppm(a, 90), 200000);
        }
        ck_assert_uint_gt(m->device[0].accuracy.total, 1000);
        ck_assert_uint_le(accuracy_ppm(&m->device[0].accuracy, 50), 150000); /* 10 % are noise */
        market_destroy(m);
    }
}
END_TEST

/* As many jobs as the device can do, with deadlines of many times what they take. */
START_TEST(deadlines_that_can_be_kept_are_admitted)
{
    m = market_create(1, 2, 4);
    struct seller *s = usual(100, CLASS_INTERACTIVE, 1);
    s->least_ns = s->most_ns = 2 * NS_PER_MS;
    s->every_ns = 4 * NS_PER_MS;
    s->due_least_ns = 50 * NS_PER_MS;
    s->due_most_ns = NS_PER_S;
    market_run(m, 20 * NS_PER_S);
    ck_assert_uint_gt(s->jobs, 4000);
    ck_assert_uint_eq(s->refused + s->missed, 0);
    market_destroy(m);
}
END_TEST

START_TEST(jobs_of_unknown_times_are_not_refused)
{
    m = market_create(1, 1, 2);
    struct seller *s = usual(100, CLASS_INTERACTIVE, 0);
    s->every_ns = NS_PER_MS / 10;
    s->due_least_ns = s->due_most_ns = 20 * NS_PER_MS;
    market_run(m, 5 * NS_PER_S);
    ck_assert_uint_eq(s->refused, 0);
    ck_assert_uint_gt(s->missed, 1000);
    ck_assert_uint_gt(s->jobs, 4500); /* those that are late take no time from others */
    market_destroy(m);
}
END_TEST

/* A job on an idle device begins at once, however long it is; behind another one it does not. */
START_TEST(a_refusal_names_its_times)
{
    struct err e = ERR_INIT;
    m = market_create(1, 1, 1);
    struct seller *s = usual(100, CLASS_INTERACTIVE, 7);
    s->noise = 0;
    s->backlog = 1;
    s->pause_ns = NS_PER_US;
    s->least_ns = s->most_ns = 100 * NS_PER_MS;
    market_run(m, 2 * NS_PER_S);
    s->pause_ns = 3600 * NS_PER_S;
    market_run(m, NS_PER_S);
    uint64_t now = m->f.io.now_ns();
    struct job j = {.tenant = s->tenant,
                    .device = &m->device[0],
                    .job_class = CLASS_INTERACTIVE,
                    .submitted_ns = now,
                    .deadline_ns = now + NS_PER_MS,
                    .sched.kind = 7};
    j.sched.rank = job_rank(&j);
    ck_assert_int_eq(predict_admit(&m->f, &j, &e), 0);
    m->device[0].line.until_ns = now + 60 * NS_PER_MS; /* it has something else */
    ck_assert_int_eq(predict_admit(&m->f, &j, &e), ERR_DEADLINE);
    ck_assert_pstr_eq(e.text, "it would begin in about 60.000 ms and end in about 160.000 ms, its "
                              "deadline to begin is in 1.000 ms: refused, as other work is before "
                              "it");
    j.deadline_ns = now + 100 * NS_PER_MS;
    ck_assert_int_eq(predict_admit(&m->f, &j, &e), 0);
    m->device[0].line.until_ns = now;
    market_destroy(m);
}
END_TEST

/* Ten jobs fill the time until their deadlines: one that is due earlier would take it from them. */
START_TEST(what_was_admitted_comes_first)
{
    struct err e = ERR_INIT;
    m = market_create(1, 1, 1);
    struct seller *s = usual(100, CLASS_INTERACTIVE, 7);
    s->noise = 0;
    s->backlog = 1;
    s->least_ns = s->most_ns = 10 * NS_PER_MS;
    market_run(m, NS_PER_S);
    s->due_least_ns = s->due_most_ns = 60 * NS_PER_MS;
    s->backlog += 20;
    market_run(m, NS_PER_MS);
    ck_assert_uint_gt(s->refused, 10);
    struct job j = {.tenant = s->tenant,
                    .device = &m->device[0],
                    .job_class = CLASS_INTERACTIVE,
                    .submitted_ns = m->f.io.now_ns(),
                    .deadline_ns = m->f.io.now_ns() + 15 * NS_PER_MS,
                    .sched.kind = 7};
    j.sched.rank = job_rank(&j);
    ck_assert_int_eq(predict_admit(&m->f, &j, &e), ERR_DEADLINE);
    ck_assert_ptr_nonnull(strstr(e.text, "before jobs of its tenant"));
    market_destroy(m);
}
END_TEST

/* Its jobs for any device go where it has a worker, though other devices are idle. */
START_TEST(a_tenant_apart_waits_for_its_own_worker)
{
    struct err e = ERR_INIT;
    m = market_create(2, 1, 1);
    struct tenant *t = market_add(m, 100, CLASS_INTERACTIVE)->tenant;
    uint64_t now = m->f.io.now_ns();
    struct device own = m->device[0];
    own.index = DEVICES_MAX;
    own.base = &m->device[0];
    own.owner = t;
    m->device[0].domains = &own;
    t->apart = true;
    for (unsigned n = 0; n < FORECAST_SURE; n++) {
        forecast_learn(&t->forecast, forecast_key(7, own.forecast_id), 10 * NS_PER_MS);
    }
    m->device[0].line.until_ns = now + 20 * NS_PER_MS;
    struct job j = {.id = 1,
                    .tenant = t,
                    .job_class = CLASS_INTERACTIVE,
                    .submitted_ns = now,
                    .deadline_ns = now + 15 * NS_PER_MS,
                    .sched.kind = 7};
    j.sched.rank = job_rank(&j);
    ck_assert(shares_reserve(&m->f, t, &j));
    ck_assert_int_eq(predict_admit(&m->f, &j, &e), ERR_DEADLINE);
    ck_assert_ptr_nonnull(strstr(e.text, "begin in about 20.000 ms and end in about 30.000 ms"));
    shares_put(&m->f, &j);
    ck_assert_uint_eq(predict_job(&m->f, &j).begin_ns, now + 20 * NS_PER_MS);
    ck_assert_uint_eq(predict_job(&m->f, &j).end_ns, now + 30 * NS_PER_MS);
    own.state = DEVICE_WAITING; /* nothing is known of a worker that does not serve */
    ck_assert_uint_eq(predict_job(&m->f, &j).begin_ns, 0);
    ck_assert_int_eq(predict_admit(&m->f, &j, &e), 0);
    shares_drop(&m->f, &j);
    j.device = &own;
    ck_assert(shares_reserve(&m->f, t, &j));
    shares_put(&m->f, &j);
    ck_assert_uint_eq(predict_job(&m->f, &j).begin_ns, 0);
    own.state = DEVICE_READY;
    ck_assert_uint_eq(predict_job(&m->f, &j).begin_ns, now + 20 * NS_PER_MS);
    shares_drop(&m->f, &j);
    market_destroy(m);
}
END_TEST

/* Times are known on all devices, within a quarter of an octave. */
static void teach(struct seller *s)
{
    for (unsigned i = 0; i < m->devices; i++) {
        for (double ns = (double)s->least_ns; ns <= (double)s->most_ns * 1.2; ns *= 1.04) {
            uint64_t kind = s->kind + (uint64_t)(4 * log2(ns));
            for (unsigned n = 0; n < FORECAST_SURE; n++) {
                forecast_learn(&s->tenant->forecast, forecast_key(kind, m->device[i].forecast_id),
                               (uint64_t)(ns / m->speed[i]));
            }
        }
    }
}

/* The time that eight unequal devices take for jobs of which none is more than 1 % of all, against
 * what they would take if all ended together. */
static double makespan(unsigned jobs, uint64_t least_ns, uint64_t most_ns, unsigned streams,
                       double noise)
{
    static const double speeds[] = {1, 1.5, 2, 3, 4, 5, 6, 8};
    double speed = 0;
    m = market_create(8, streams, 2 * streams);
    struct seller *s = usual(100, CLASS_INTERACTIVE, 1);
    s->by_size = true;
    s->device = -1;
    s->noise = noise;
    s->least_ns = least_ns;
    s->most_ns = most_ns;
    s->pause_ns = 3600 * NS_PER_S;
    for (unsigned i = 0; i < 8; i++) {
        m->speed[i] = speeds[i];
        speed += speeds[i];
    }
    teach(s);
    s->backlog = jobs;
    uint64_t begin = m->f.io.now_ns();
    market_run(m, 100 * NS_PER_S);
    ck_assert_uint_eq(s->jobs, jobs);
    double least = (double)s->had_ns / speed;
    double took = (double)market_wait_ns(s, 100);
    ck_assert_uint_gt(m->f.io.now_ns() - begin, (uint64_t)took);
    market_destroy(m);
    return took / least;
}

START_TEST(unequal_devices_end_together)
{
    static const struct {
        unsigned jobs;
        uint64_t least_ns, most_ns;
    } cases[] = {{130, 10 * NS_PER_MS, 10 * NS_PER_MS},
                 {400, NS_PER_MS, 20 * NS_PER_MS},
                 {2000, NS_PER_MS, 20 * NS_PER_MS}};
    for (unsigned i = 0; i < 3; i++) {
        for (unsigned streams = 1; streams <= 4; streams *= 2) {
            double exact = makespan(cases[i].jobs, cases[i].least_ns, cases[i].most_ns, streams, 0);
            double noisy =
                makespan(cases[i].jobs, cases[i].least_ns, cases[i].most_ns, streams, 0.2);
            printf("%u jobs, %u streams: %.3f times the least, with noise %.3f\n", cases[i].jobs,
                   streams, exact, noisy);
            ck_assert_msg(exact <= 1.05, "%.3f", exact);
            ck_assert_msg(noisy <= 1.05, "%.3f", noisy);
        }
    }
}
END_TEST

SUITE_MAIN("predict", unequal_devices_end_together, admitted_deadlines_are_kept, ends_are_predicted,
           devices_with_streams_keep_admitted_deadlines, deadlines_that_can_be_kept_are_admitted,
           jobs_of_unknown_times_are_not_refused, a_refusal_names_its_times,
           what_was_admitted_comes_first, a_tenant_apart_waits_for_its_own_worker)
