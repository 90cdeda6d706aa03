/* When jobs that wait for others will begin. The clock stands still, and the device has one job at
 * a time. */
#include "daemon/front/sched/outlook.h"

#include <string.h>

#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "daemon/front/sched/transit.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define COST_NS NS_PER_MS /* of each job whose time is known */
#define KNOWN   1u        /* kind of those */
#define UNKNOWN 2u
#define LONG    3u /* three times as long */

static struct fake *k;

static void learn(struct tenant *t)
{
    for (unsigned i = 0; i < 2 * FORECAST_SURE; i++) {
        forecast_learn(&t->forecast, forecast_key(KNOWN, k->device[0].forecast_id), COST_NS);
    }
}

static void begin(void)
{
    k = fake_create();
    k->f.config.window = 1;
    k->device[0].forecast_id = 7;
    learn(k->tenant);
}

static struct job *job_of(unsigned kind)
{
    struct job *j = fake_job(k, 0);
    j->sched.kind = kind;
    return j;
}

static struct job *writer_of(struct buffer *b, unsigned kind)
{
    struct job *j = job_of(kind);
    fake_writes(j, b, 0, b->bytes);
    return j;
}

static struct job *sent(struct job *j)
{
    (void)fake_submit(k, j);
    fake_turn(k);
    return j;
}

/* Cancelled from the last to the first, as each is to be queued. */
static void end(struct job *j[], unsigned count)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "the test ends");
    for (unsigned i = count; i > 0; i--) {
        if (j[i - 1]->state == JOB_QUEUED) {
            job_conclude(&k->f, j[i - 1], JOB_CANCELLED, &e);
        } else {
            fake_done(k, j[i - 1], 0);
        }
    }
    fake_turn(k);
    fake_destroy(k);
}

static double begins_after(const struct job *j)
{
    struct prediction p = outlook_of(&k->f, j);
    ck_assert_uint_gt(p.begin_ns, 0);
    ck_assert_uint_eq(p.end_ns, p.begin_ns + COST_NS);
    ck_assert(p.sure);
    return (double)(p.begin_ns - fake_now()) / (double)COST_NS;
}

static bool is_unknown(const struct job *j)
{
    struct prediction p = outlook_of(&k->f, j);
    return p.begin_ns == 0 && p.end_ns == 0 && !p.sure;
}

START_TEST(one_after_the_other)
{
    struct job *j[6];
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned i = 0; i < 6; i++) {
        j[i] = sent(writer_of(b, KNOWN));
    }
    ck_assert_int_eq(j[0]->state, JOB_DISPATCHED);
    ck_assert_int_eq(j[5]->wait, WAIT_HAZARD);
    for (unsigned i = 1; i < 6; i++) {
        ck_assert_double_eq_tol(begins_after(j[i]), i, 1e-3);
    }
    end(j, 6);
}
END_TEST

/* It waits for a line of four, and for a line of two. */
START_TEST(the_last_of_them_decides)
{
    struct job *j[7];
    begin();
    struct buffer *longer = fake_buffer(k, 0, 64, true);
    struct buffer *shorter = fake_buffer(k, 0, 64, true);
    for (unsigned i = 0; i < 6; i++) {
        j[i] = sent(writer_of(i < 4 ? longer : shorter, KNOWN));
    }
    j[6] = job_of(KNOWN);
    fake_reads(j[6], _i == 0 ? longer : shorter, 0, 64);
    fake_reads(j[6], _i == 0 ? shorter : longer, 0, 64);
    (void)sent(j[6]);
    ck_assert_double_ge(begins_after(j[6]), begins_after(j[3]) + 1 - 1e-3);
    ck_assert_double_le(begins_after(j[6]), 6 + 1e-3);
    end(j, 7);
}
END_TEST

/* Of one before it the time is unknown: 1: the next one in line, 2: one that waits. It may be like
 * the tenant's last jobs, but that is not sure. */
START_TEST(behind_what_is_unknown_nothing_is_sure)
{
    struct job *j[5];
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *first = sent(writer_of(b, KNOWN));
    fake_pass(COST_NS);
    fake_done(k, first, 0);
    for (unsigned i = 0; i < 5; i++) {
        j[i] = sent(writer_of(b, i == (unsigned)_i ? UNKNOWN : KNOWN));
    }
    struct prediction p = outlook_of(&k->f, j[4]);
    ck_assert_uint_gt(p.begin_ns, fake_now());
    ck_assert(!p.sure);
    struct job *late = writer_of(b, KNOWN);
    struct err e = ERR_INIT;
    late->deadline_ns = fake_now() + 1;
    ck_assert_int_eq(hazard_enter(late, &e), 0);
    ck_assert_int_eq(outlook_admit(&k->f, late, &e), 0);
    hazard_leave(&k->f.hazards, late);
    job_destroy(late);
    end(j, 5);
}
END_TEST

/* 0: as many as are walked, 1: one more. The one in flight and the one asked about count. */
START_TEST(a_long_line_is_walked_to_its_limit)
{
    static struct job *j[OUTLOOK_JOBS_MAX + 1];
    unsigned count = OUTLOOK_JOBS_MAX + 1 + (unsigned)_i;
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned i = 0; i + 1 < count; i++) {
        j[i] = sent(writer_of(b, KNOWN));
    }
    struct job *last = sent(writer_of(b, KNOWN));
    if (_i == 0) {
        ck_assert_double_eq_tol(begins_after(last), count - 1, 1e-2);
    } else {
        ck_assert(is_unknown(last));
    }
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "the test ends");
    job_conclude(&k->f, last, JOB_CANCELLED, &e);
    end(j, count - 1);
}
END_TEST

START_TEST(behind_more_readers_than_are_listed_it_is_unknown)
{
    struct job *j[HAZARD_AFTER_MAX + 3];
    unsigned readers = HAZARD_AFTER_MAX + (unsigned)_i;
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    j[0] = sent(writer_of(b, KNOWN));
    for (unsigned i = 1; i <= readers; i++) {
        j[i] = job_of(KNOWN);
        fake_reads(j[i], b, 0, 64);
        (void)sent(j[i]);
    }
    j[readers + 1] = sent(writer_of(b, KNOWN));
    ck_assert_int_eq(is_unknown(j[readers + 1]), _i == 1);
    end(j, readers + 2);
}
END_TEST

/* Another tenant of the same weight has as much work: each gets every second turn. */
START_TEST(others_get_their_part_meanwhile)
{
    struct job *j[12];
    begin();
    struct tenant *other = tenant_obtain(&k->f.tenants, 1001);
    ck_assert_ptr_nonnull(other);
    learn(other);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned i = 0; i < 6; i++) {
        j[i] = sent(writer_of(b, KNOWN));
    }
    double alone = begins_after(j[5]);
    for (unsigned i = 6; i < 12; i++) {
        j[i] = job_of(KNOWN);
        j[i]->tenant = other;
        (void)sent(j[i]);
    }
    ck_assert_double_eq_tol(begins_after(j[5]), 2 * alone - 1, 1.1);
    end(j, 12);
}
END_TEST

/* The jobs that it waits for run on another device. Others on its own take their part meanwhile,
 * but not of the time of that device. The buffer then takes two more. */
START_TEST(another_device_is_not_shared_with_those_of_this_one)
{
    struct job *j[8];
    begin();
    k->device[1].forecast_id = k->device[0].forecast_id;
    for (unsigned i = 0; i < 4; i++) {
        struct buffer x = {.bytes = 64};
        transit_left(&k->f, &x, COST_NS);
        transit_came(&x, &k->device[1], COST_NS);
    }
    struct tenant *other = tenant_obtain(&k->f.tenants, 1001);
    ck_assert_ptr_nonnull(other);
    learn(other);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned i = 0; i < 4; i++) {
        j[i] = sent(writer_of(b, KNOWN));
    }
    for (unsigned i = 4; i < 7; i++) {
        j[i] = fake_job(k, 1);
        j[i]->sched.kind = KNOWN;
        j[i]->tenant = other;
        (void)sent(j[i]);
    }
    j[7] = fake_job(k, 1);
    j[7]->sched.kind = KNOWN;
    fake_reads(j[7], b, 0, 64);
    (void)sent(j[7]);
    ck_assert_double_eq_tol(begins_after(j[7]), 6, 1e-3);
    end(j, 8);
}
END_TEST

/* It would begin after 3 ms: refused with 2 ms, admitted with 4 ms. */
START_TEST(a_deadline_that_cannot_be_kept_is_refused)
{
    struct job *j[3];
    struct err e = ERR_INIT;
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned i = 0; i < 3; i++) {
        j[i] = sent(writer_of(b, KNOWN));
    }
    struct job *late = writer_of(b, KNOWN);
    ck_assert_int_eq(hazard_enter(late, &e), 0);
    ck_assert(shares_reserve(&k->f, k->tenant, late));
    late->deadline_ns = fake_now() + 4 * COST_NS;
    ck_assert_int_eq(outlook_admit(&k->f, late, &e), 0);
    late->deadline_ns = fake_now() + 2 * COST_NS;
    ck_assert_int_eq(outlook_admit(&k->f, late, &e), ERR_DEADLINE);
    ck_assert_msg(strstr(e.text, "begin in about 3.000 ms") != NULL, "%s", e.text);
    ck_assert_msg(strstr(e.text, "same buffers") != NULL, "%s", e.text);
    hazard_leave(&k->f.hazards, late);
    job_destroy(late);
    end(j, 3);
}
END_TEST

/* times: what jobs take; 0: no deadline. */
static struct job *due_in(struct job *j, unsigned times)
{
    j->submitted_ns = fake_now();
    j->deadline_ns = times > 0 ? fake_now() + times * COST_NS : NS_NEVER;
    j->sched.rank = job_rank(j);
    return sent(j);
}

/* A job without a deadline, for which one with an early deadline waits, goes before one that is due
 * later, and is expected to. */
START_TEST(a_job_that_others_wait_for_has_their_place)
{
    struct job *j[4];
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    j[0] = due_in(job_of(KNOWN), 0);
    j[1] = due_in(writer_of(b, KNOWN), 0);
    j[2] = due_in(job_of(KNOWN), 20);
    ck_assert_double_eq_tol(begins_after(j[1]), 2, 1e-3);
    j[3] = due_in(writer_of(b, KNOWN), 10);
    queue_raise(&k->f, j[3]);
    ck_assert_int_eq(j[1]->sched.rank, j[3]->sched.rank);
    ck_assert_double_eq_tol(begins_after(j[1]), 1, 1e-3);
    ck_assert_double_eq_tol(begins_after(j[2]), 2, 1e-3);
    end(j, 4);
}
END_TEST

/* The new job needs 3 ms, is due in 5, and waits for two jobs, which get its place before a job
 * that is due in 6. _i: 1: before a job that is due in 12. In the second pair the time of the first
 * of the two jobs is unknown: it counts as the tenant's jobs take on average. */
START_TEST(the_jobs_before_it_leave_room_for_others_too)
{
    struct job *j[4];
    struct err e = ERR_INIT;
    begin();
    for (unsigned i = 0; i < 2 * FORECAST_SURE; i++) {
        forecast_learn(&k->tenant->forecast, forecast_key(LONG, 7), 3 * COST_NS);
    }
    struct buffer *b = fake_buffer(k, 0, 64, true);
    j[0] = due_in(job_of(KNOWN), 0);
    j[1] = due_in(writer_of(b, _i < 2 ? KNOWN : UNKNOWN), 0);
    j[2] = due_in(writer_of(b, KNOWN), 0);
    j[3] = due_in(job_of(KNOWN), _i % 2 == 0 ? 6 : 12);
    struct job *late = writer_of(b, LONG);
    k->tenant->share.stake[0]->of[job_rank_class(late)].mean_ns = COST_NS;
    late->submitted_ns = fake_now();
    late->deadline_ns = fake_now() + 5 * COST_NS;
    late->sched.rank = job_rank(late);
    ck_assert_int_eq(hazard_enter(late, &e), 0);
    ck_assert(shares_reserve(&k->f, k->tenant, late));
    ck_assert_int_eq(outlook_admit(&k->f, late, &e), _i % 2 == 0 ? ERR_DEADLINE : 0);
    if (_i == 0) {
        ck_assert_msg(strstr(e.text, "it would take 5.000 ms before jobs") != NULL, "%s", e.text);
    }
    hazard_leave(&k->f.hazards, late);
    job_destroy(late);
    end(j, 4);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("outlook");
    TCase *tcase = tcase_create("outlook");
    tcase_add_test(tcase, one_after_the_other);
    tcase_add_loop_test(tcase, the_last_of_them_decides, 0, 2);
    tcase_add_loop_test(tcase, behind_what_is_unknown_nothing_is_sure, 1, 3);
    tcase_add_loop_test(tcase, a_long_line_is_walked_to_its_limit, 0, 2);
    tcase_add_loop_test(tcase, behind_more_readers_than_are_listed_it_is_unknown, 0, 2);
    tcase_add_test(tcase, others_get_their_part_meanwhile);
    tcase_add_test(tcase, another_device_is_not_shared_with_those_of_this_one);
    tcase_add_test(tcase, a_deadline_that_cannot_be_kept_is_refused);
    tcase_add_test(tcase, a_job_that_others_wait_for_has_their_place);
    tcase_add_loop_test(tcase, the_jobs_before_it_leave_room_for_others_too, 0, 4);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
