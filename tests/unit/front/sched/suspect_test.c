/* A kernel that ends its worker counts although its job is never run alone. */
#include "daemon/front/sched/conclude.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct job *reader_of(struct buffer *b)
{
    struct job *j = fake_job(k, 0);
    fake_launches(k, j, "spin");
    fake_reads(j, b, 0, b->bytes);
    return j;
}

static bool quarantined(void)
{
    return tenant_quarantined(k->tenant, kernel_hash(k->module, "spin"));
}

/* A suspect that is cancelled, or misses its deadline, before it runs again gets its strike. */
START_TEST(cancelling_a_suspect_counts)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct err e = ERR_INIT;
    const bool deadline = _i == 1;
    (void)err_set(&e, deadline ? ERR_DEADLINE : ERR_CANCELLED, "not again");
    for (unsigned round = 1; round <= STRIKES_MAX; round++) {
        ck_assert(!quarantined());
        struct job *bad = reader_of(b);
        (void)fake_submit(k, bad);
        fake_turn(k);
        fake_lose(k, 0, false);
        ck_assert_int_eq(bad->state, JOB_QUEUED);
        job_conclude(&k->f, bad, deadline ? JOB_FAILED : JOB_CANCELLED, &e);
    }
    ck_assert(quarantined());
    fake_destroy(k);
}
END_TEST

/* No suspects: one of several jobs, a job whose worker was killed, a job that is done when it runs
 * again. */
START_TEST(other_jobs_are_cancelled_without_a_strike)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "not again");
    for (unsigned round = 0; round < 2 * STRIKES_MAX; round++) {
        struct job *one = reader_of(b);
        struct job *two = reader_of(b);
        (void)fake_submit(k, one);
        if (round % 2 == 0) {
            (void)fake_submit(k, two);
        } else {
            job_destroy(two);
        }
        fake_turn(k);
        fake_lose(k, 0, round % 2 != 0);
        job_conclude(&k->f, one, JOB_CANCELLED, &e);
        if (round % 2 == 0) {
            job_conclude(&k->f, two, JOB_CANCELLED, &e);
        }
    }
    for (unsigned round = 0; round < STRIKES_MAX; round++) {
        struct job *once = reader_of(b);
        (void)fake_submit(k, once);
        fake_turn(k);
        fake_lose(k, 0, false);
        fake_turn(k);
        ck_assert_int_eq(once->state, JOB_DISPATCHED);
        fake_done(k, once, 0);
        fake_turn(k);
    }
    ck_assert(!quarantined());
    fake_destroy(k);
}
END_TEST

/* A writer does not run again, so no later run convicts its kernel. */
START_TEST(a_writer_that_ends_its_worker_counts)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned round = 1; round <= STRIKES_MAX; round++) {
        ck_assert(!quarantined());
        struct job *w = fake_job(k, 0);
        fake_launches(k, w, "spin");
        fake_writes(w, b, 0, 64);
        uint64_t id = fake_submit(k, w);
        fake_turn(k);
        fake_lose(k, 0, false);
        ck_assert_int_eq(k->state[id], JOB_LOST);
    }
    ck_assert(quarantined());
    fake_destroy(k);
}
END_TEST

/* The worker reports a fault of the device: the one job in flight is not to blame. */
START_TEST(a_failed_device_strikes_no_kernel)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned round = 0; round < 2 * STRIKES_MAX; round++) {
        struct job *w = fake_job(k, 0);
        fake_launches(k, w, "spin");
        fake_writes(w, b, 0, 64);
        uint64_t id = fake_submit(k, w);
        fake_turn(k);
        fake_done(k, w, ERR_DEVICE_LOST);
        fake_lose(k, 0, false);
        ck_assert_int_eq(k->state[id], JOB_LOST);
    }
    ck_assert(!quarantined());
    for (unsigned round = 1; round <= STRIKES_MAX; round++) {
        ck_assert(!quarantined());
        struct job *w = fake_job(k, 0);
        fake_launches(k, w, "spin");
        fake_writes(w, b, 0, 64);
        (void)fake_submit(k, w);
        fake_turn(k);
        fake_done(k, w, ERR_KERNEL_FAULT);
        fake_lose(k, 0, false);
    }
    ck_assert(quarantined());
    fake_destroy(k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("suspect");
    TCase *tcase = tcase_create("suspect");
    tcase_add_loop_test(tcase, cancelling_a_suspect_counts, 0, 2);
    tcase_add_test(tcase, other_jobs_are_cancelled_without_a_strike);
    tcase_add_test(tcase, a_writer_that_ends_its_worker_counts);
    tcase_add_test(tcase, a_failed_device_strikes_no_kernel);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
