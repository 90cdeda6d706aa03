/* The answers of ended jobs, until clients acknowledge them. */
#include <stdlib.h>

#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/workers/record.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static void finish(struct job *j)
{
    fake_done(k, j, 0);
    fake_turn(k);
}

/* The worker keeps its entry of an unacknowledged answer, however old that is. */
START_TEST(unacknowledged_jobs_are_not_retired)
{
    k = fake_create();
    struct job *j = fake_job(k, 0);
    uint64_t offset = 0;
    ck_assert_int_eq(work_add_output(&j->work, 0, 0, 64, &offset, NULL), 0);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    finish(j);
    ck_assert_int_eq(j->answer, ANSWER_SENT);
    job_forget_history(&k->f, 0);
    ck_assert_uint_eq(k->f.history_count, 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 0);
    ck_assert(fake_outputs_lost(k, 0, id));
    ck_assert_uint_eq(k->f.kept_count, 1);
    ck_assert_uint_eq(k->device[0].output_range.used, 0);
    job_release(&k->f, fake_find(k, id)); /* acknowledged at last */
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 1);
    ck_assert_ptr_null(fake_find(k, id));
    fake_destroy(k);
}
END_TEST

/* FAULT other: a worker ends when it has done a job whose client is away, 1,024 others end, and the
 *   front ends before the client is back
 * required: the job does not run twice; its client hears `WORKER_LOST`, `effects = maybe`
 * defence: `front/sched/history.c`: must_stay; `front/workers/domains.c`: may_go
 * also: `front_places_test`: a_domain_stays_while_an_answer_is_not_acknowledged; `front_sim`
 * mutants: history-departed, domain-record */
START_TEST(an_answer_outlives_its_worker)
{
    k = fake_create();
    struct device *d = &k->device[0];
    struct job *j = fake_job(k, 0);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    finish(j);
    d->epoch++; /* another worker, which does not know it */
    job_forget_history(&k->f, 0);
    ck_assert_uint_eq(k->f.history_count, 0);
    ck_assert_uint_eq(k->f.kept_count, 1);
    ck_assert_uint_ne(record_used(d->record), 0);
    job_acknowledged(&k->f, fake_find(k, id));
    ck_assert_uint_eq(record_used(d->record), 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 0);
    ck_assert_ptr_null(fake_find(k, id));
    fake_destroy(k);
}
END_TEST

START_TEST(kept_answers_are_bounded)
{
    k = fake_create();
    unsigned count = KEPT_MAX + 3;
    for (unsigned i = 0; i < count; i++) {
        struct job *j = fake_job(k, 0);
        (void)fake_submit(k, j);
        fake_turn(k);
        finish(j);
        job_forget_history(&k->f, 0);
    }
    ck_assert_uint_eq(k->f.kept_count, KEPT_MAX);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 3);
    k->device[0].epoch++; /* another worker, which knows none of them */
    struct job *j = fake_job(k, 0);
    (void)fake_submit(k, j);
    fake_turn(k);
    finish(j);
    j->epoch--;
    job_forget_history(&k->f, 0);
    ck_assert_uint_eq(k->f.kept_count, KEPT_MAX);
    fake_destroy(k);
}
END_TEST

static void end_one(struct tenant *t)
{
    struct job *j = fake_job(k, 0);
    j->tenant = t;
    (void)fake_submit(k, j);
    fake_turn(k);
    finish(j);
    job_forget_history(&k->f, 0);
}

/* A tenant with too many unacknowledged answers loses its own oldest ones. */
START_TEST(kept_answers_displace_none_of_other_tenants)
{
    k = fake_create();
    struct tenant *other = tenant_obtain(&k->f.tenants, 1001);
    for (unsigned i = 0; i < KEPT_MAX; i++) {
        end_one(k->tenant);
    }
    for (unsigned i = 0; i < 3; i++) {
        end_one(other);
    }
    end_one(k->tenant);
    ck_assert_uint_eq(k->f.kept_count, KEPT_MAX);
    ck_assert_uint_eq(other->kept_count, 3);
    ck_assert_uint_eq(k->tenant->kept_count, KEPT_MAX - 3);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 4);
    for (uint64_t id = 1; id <= 4; id++) {
        ck_assert_ptr_null(fake_find(k, id));
    }
    ck_assert_ptr_nonnull(fake_find(k, 5));
    fake_destroy(k);
}
END_TEST

enum { ACKED_BEFORE_ITS_END, ACKED_AFTER_ITS_END, NOT_AWAITED, EARLY_CASES };

/* The client has an error before the device is done with the job. */
START_TEST(an_early_answer_is_closed_once)
{
    k = fake_create();
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_TIME_LIMIT, "too long");
    struct job *j = fake_job(k, 0);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    job_answer_early(&k->f, j, &e);
    ck_assert_int_eq(j->answer, ANSWER_EARLY);
    ck_assert_uint_eq(k->answers[id], 1);
    if (_i == ACKED_BEFORE_ITS_END) {
        job_acknowledged(&k->f, j);
        job_acknowledged(&k->f, j); /* again */
        ck_assert_int_eq(j->answer, ANSWER_EARLY_ACKED);
    } else if (_i == NOT_AWAITED) {
        job_part(j);
    }
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 0);
    finish(j);
    if (_i == ACKED_AFTER_ITS_END) {
        ck_assert_int_eq(j->answer, ANSWER_SENT);
        job_acknowledged(&k->f, j);
    }
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(j->answer, ANSWER_CLOSED);
    job_acknowledged(&k->f, j); /* again */
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 1);
    fake_destroy(k);
}
END_TEST

/* No worker had it, so none has an entry. */
START_TEST(an_answer_of_a_queued_job_is_closed_at_once)
{
    k = fake_create();
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "asked for");
    struct job *j = fake_job(k, 0);
    (void)fake_submit(k, j);
    job_conclude(&k->f, j, JOB_CANCELLED, &e);
    ck_assert_int_eq(j->answer, ANSWER_CLOSED);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 0);
    fake_destroy(k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("history");
    TCase *tcase = tcase_create("history");
    tcase_set_timeout(tcase, 60);
    tcase_add_test(tcase, unacknowledged_jobs_are_not_retired);
    tcase_add_test(tcase, an_answer_outlives_its_worker);
    tcase_add_test(tcase, kept_answers_are_bounded);
    tcase_add_test(tcase, kept_answers_displace_none_of_other_tenants);
    tcase_add_loop_test(tcase, an_early_answer_is_closed_once, 0, EARLY_CASES);
    tcase_add_test(tcase, an_answer_of_a_queued_job_is_closed_at_once);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
