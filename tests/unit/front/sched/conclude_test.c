/* The end of a job: what its buffers hold then, and what becomes of the jobs behind it. */
#include "daemon/front/sched/conclude.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static void finish(struct job *j)
{
    fake_done(k, j, 0);
    fake_turn(k);
}

/* A reader that came after the end of a writer that did not run reads what was there before, though
 * the writer has not left yet: its client may have asked because it had the writer's answer. */
START_TEST(a_reader_after_the_answer_reads_what_is_there)
{
    k = fake_create();
    k->f.config.window = 1;
    struct err e = ERR_INIT;
    struct buffer *a = fake_buffer(k, 0, 64, true);
    struct job *first = fake_job(k, 0); /* keeps the others in the queue */
    struct job *w = fake_job(k, 0);
    struct job *before = fake_job(k, 0);
    struct job *since = fake_job(k, 0);
    fake_writes(w, a, 0, 64);
    fake_reads(before, a, 0, 64);
    fake_reads(since, a, 0, 64);
    (void)fake_submit(k, first);
    (void)fake_submit(k, w);
    uint64_t id = fake_submit(k, before);
    fake_turn(k);
    k->f.work.budget = k->f.work.done = 1000; /* nothing more in this turn */
    (void)err_set(&e, ERR_CANCELLED, "asked for");
    job_conclude(&k->f, w, JOB_CANCELLED, &e);
    ck_assert_ptr_eq(k->f.leaving, w);
    (void)fake_submit(k, since);
    k->f.work.budget = k->f.work.done = 0;
    job_leave_some(&k->f);
    ck_assert_ptr_null(k->f.leaving);
    finish(first);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_UNDEFINED);
    ck_assert_int_eq(since->state, JOB_DISPATCHED);
    finish(since);
    fake_destroy(k);
}
END_TEST

/* A queued writer is cancelled: its buffer is unchanged, and the readers behind it do not run,
 * because they were to read its output. Jobs before it, and readers of another part, run. */
START_TEST(readers_of_a_cancelled_writer_do_not_run)
{
    k = fake_create();
    k->f.config.window = 1;
    struct err e = ERR_INIT;
    struct buffer *a = fake_buffer(k, 0, 64, true);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *first = fake_job(k, 0); /* keeps the others in the queue */
    struct job *before = fake_job(k, 0);
    struct job *w = fake_job(k, 0);
    struct job *r = fake_job(k, 0);
    struct job *s = fake_job(k, 0);
    struct job *other = fake_job(k, 0);
    struct job *again = fake_job(k, 0);
    struct job *late = fake_job(k, 0);
    fake_reads(before, a, 0, 64);
    fake_writes(w, a, 0, 32);
    fake_reads(r, a, 0, 64);
    fake_writes(r, b, 0, 64);
    fake_reads(s, b, 0, 64);
    fake_reads(other, a, 32, 64);
    fake_writes(again, a, 0, 64);
    fake_reads(late, a, 0, 64);
    struct job *all[] = {first, before, w, r, s, other, again, late};
    uint64_t id[8];
    for (unsigned i = 0; i < 8; i++) {
        id[i] = fake_submit(k, all[i]);
    }
    fake_turn(k);
    (void)err_set(&e, ERR_CANCELLED, "asked for");
    job_conclude(&k->f, w, JOB_CANCELLED, &e);
    ck_assert(spans_cover(&a->defined, 0, 64));
    for (unsigned i = 0; i < 8; i++) {
        if (all[i] != w && all[i] != r && all[i] != s) {
            ck_assert_int_eq(all[i]->state, JOB_DISPATCHED);
            finish(all[i]);
        }
    }
    static const enum job_state expected[] = {JOB_DONE,   JOB_DONE, JOB_CANCELLED, JOB_FAILED,
                                              JOB_FAILED, JOB_DONE, JOB_DONE,      JOB_DONE};
    for (unsigned i = 0; i < 8; i++) {
        ck_assert_int_eq(k->state[id[i]], expected[i]);
    }
    ck_assert_int_eq(k->error[id[3]].code, ERR_UNDEFINED);
    ck_assert_int_eq(k->error[id[4]].code, ERR_UNDEFINED);
    ck_assert(spans_cover(&b->defined, 0, 64));
    fake_destroy(k);
}
END_TEST

/* The refused writer has no effects. A reader that was sent behind it was to read its output, and
 * fails. */
START_TEST(a_refused_write_changes_nothing)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *w = fake_job(k, 0);
    struct job *r = fake_job(k, 0);
    fake_writes(w, b, 0, 64);
    fake_reads(r, b, 0, 64);
    uint64_t w_id = fake_submit(k, w);
    uint64_t r_id = fake_submit(k, r);
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 2);
    fake_refused(k, w, ERR_LAUNCH);
    ck_assert_int_eq(k->error[w_id].effects, ERR_EFFECTS_NONE);
    ck_assert(spans_cover(&b->defined, 0, 64));
    fake_done(k, r, 0);
    ck_assert_int_eq(k->error[r_id].code, ERR_UNDEFINED);
    struct job *later = fake_job(k, 0);
    fake_reads(later, b, 0, 64);
    uint64_t later_id = fake_submit(k, later);
    fake_turn(k);
    fake_done(k, later, 0);
    ck_assert_int_eq(k->state[later_id], JOB_DONE);
    ck_assert(!fake_recorded(k, b).found); /* nothing about it has changed */
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("conclude", a_reader_after_the_answer_reads_what_is_there,
           readers_of_a_cancelled_writer_do_not_run, a_refused_write_changes_nothing)
