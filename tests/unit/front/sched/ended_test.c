/* What is left of a job that has ended: its answer until it is taken, and who had waited for it. */
#include "daemon/front/sched/conclude.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static void finish(struct job *j)
{
    fake_done(k, j, 0);
    fake_turn(k);
}

/* Of what was answered and not acknowledged the worker keeps its entry, however long ago. */
START_TEST(what_was_not_acknowledged_is_not_retired)
{
    k = fake_create();
    struct job *j = fake_job(k, 0);
    uint64_t offset = 0;
    ck_assert_int_eq(work_add_output(&j->work, 0, 0, 64, &offset, NULL), 0);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    finish(j);
    ck_assert(j->retained);
    job_forget_history(&k->f, 0);
    ck_assert_uint_eq(k->f.history_count, 0);
    ck_assert_uint_eq(k->retired, 0);
    ck_assert_uint_eq(k->gone, 1);
    ck_assert_uint_eq(k->f.kept_count, 1);
    ck_assert_uint_eq(k->device[0].output_range.used, 0);
    job_release(&k->f, fake_find(k, id)); /* acknowledged at last */
    ck_assert_uint_eq(k->retired, 1);
    ck_assert_ptr_null(fake_find(k, id));
    fake_destroy(k);
}
END_TEST

START_TEST(as_many_as_a_worker_can_keep_are_kept)
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
    ck_assert_uint_eq(k->retired, 3);
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

/* One that lets its answers lie gives up its oldest, and another's are kept. */
START_TEST(who_lets_answers_lie_takes_nobodys_place)
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
    ck_assert_uint_eq(k->retired, 4);
    for (uint64_t id = 1; id <= 4; id++) {
        ck_assert_ptr_null(fake_find(k, id));
    }
    ck_assert_ptr_nonnull(fake_find(k, 5));
    fake_destroy(k);
}
END_TEST

/* A queued writer goes: its buffer is as before, and what was queued behind it does not take that
 * for what it was to write. What came before it, and what reads another part, is not touched. */
START_TEST(what_waits_for_a_cancelled_writer_does_not_run)
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

/* Without effects everything is as it was; a reader that was sent behind the refused writer was to
 * read something else, and fails. */
START_TEST(a_refused_write_leaves_what_was_there)
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
    ck_assert_uint_eq(k->metas, 0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("ended", what_was_not_acknowledged_is_not_retired, as_many_as_a_worker_can_keep_are_kept,
           who_lets_answers_lie_takes_nobodys_place, what_waits_for_a_cancelled_writer_does_not_run,
           a_refused_write_leaves_what_was_there)
