/* Who waits for whom, and in which order those that wait are served. */
#include <stdlib.h>

#include "daemon/front/conclude.h"
#include "daemon/front/hazard.h"
#include "daemon/front/queue.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static unsigned preds(const struct job *j)
{
    unsigned count = 0;
    for (const struct job_edge *x = j->preds; x != NULL; x = x->next_pred) {
        count++;
    }
    return count;
}

static bool waits_for(const struct job *succ, const struct job *pred)
{
    for (const struct job_edge *x = succ->preds; x != NULL; x = x->next_pred) {
        if (x->pred == pred) {
            return true;
        }
    }
    return false;
}

static struct job *user(struct buffer *b, int access)
{
    struct job *j = fake_job(k, (int)b->device);
    if ((access & ACCESS_IN) != 0) {
        fake_reads(j, b, 0, b->bytes);
    }
    if ((access & ACCESS_OUT) != 0) {
        fake_writes(j, b, 0, b->bytes);
    }
    (void)fake_submit(k, j);
    return j;
}

static void end(struct job *j)
{
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "by the test");
    job_conclude(&k->f, j, JOB_CANCELLED, &e);
}

START_TEST(readers_together_writers_alone)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *r1 = user(b, ACCESS_IN);
    struct job *r2 = user(b, ACCESS_IN);
    struct job *w1 = user(b, ACCESS_OUT);
    struct job *w2 = user(b, ACCESS_INOUT);
    struct job *r3 = user(b, ACCESS_IN);
    struct job *r4 = user(b, ACCESS_IN);
    struct job *w3 = user(b, ACCESS_OUT);
    ck_assert_uint_eq(preds(r1) + preds(r2), 0);
    ck_assert(waits_for(w1, r1) && waits_for(w1, r2));
    ck_assert_uint_eq(preds(w2), 1);
    ck_assert(waits_for(w2, w1));
    ck_assert(waits_for(r3, w2) && waits_for(r4, w2));
    ck_assert(!waits_for(r4, r3));
    ck_assert(waits_for(w3, r3) && waits_for(w3, r4));
    ck_assert_uint_eq(b->users, 7);
    ck_assert_ptr_eq(b->writer, w3);
    ck_assert(hazard_clear(r1));
    ck_assert(!hazard_clear(w1));
    end(r1);
    ck_assert(!hazard_clear(w1));
    end(r2);
    ck_assert(hazard_clear(w1));
    ck_assert(w1->in_ready);
    struct job *rest[] = {w3, w1, r4, w2, r3};
    for (int i = 0; i < 5; i++) {
        end(rest[i]);
    }
    ck_assert_uint_eq(b->users, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(two_buffers_make_one_edge)
{
    k = fake_create();
    struct buffer *a = fake_buffer(k, 0, 64, true);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *j[2];
    for (int i = 0; i < 2; i++) {
        j[i] = fake_job(k, 0);
        fake_reads(j[i], a, 0, 64);
        fake_writes(j[i], a, 0, 64);
        fake_writes(j[i], b, 0, 64);
        (void)fake_submit(k, j[i]);
    }
    ck_assert_uint_eq(preds(j[1]), 1);
    ck_assert_uint_eq(preds(j[0]), 0); /* never for itself */
    end(j[0]);
    end(j[1]);
    fake_destroy(k);
}
END_TEST

START_TEST(predecessors_in_the_same_worker_are_no_hindrance)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *w = user(b, ACCESS_OUT);
    struct job *r = user(b, ACCESS_IN);
    ck_assert(!hazard_clear(r));
    w->state = JOB_DISPATCHED;
    ck_assert(hazard_clear(r));
    r->alone = true;
    ck_assert(!hazard_clear(r));
    r->alone = false;
    w->device = &k->device[1];
    ck_assert(!hazard_clear(r));
    w->device = &k->device[0];
    w->state = JOB_QUEUED;
    end(r);
    end(w);
    fake_destroy(k);
}
END_TEST

START_TEST(no_more_predecessors_than_a_worker_waits_for)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *r[HAZARD_AFTER_MAX + 1];
    for (unsigned i = 0; i <= HAZARD_AFTER_MAX; i++) {
        r[i] = user(b, ACCESS_IN);
    }
    struct job *w = user(b, ACCESS_OUT);
    for (unsigned i = 0; i <= HAZARD_AFTER_MAX; i++) {
        r[i]->state = JOB_DISPATCHED;
    }
    ck_assert(!hazard_clear(w));
    r[0]->state = JOB_QUEUED;
    end(r[0]);
    ck_assert(hazard_clear(w));
    for (unsigned i = 1; i <= HAZARD_AFTER_MAX; i++) {
        r[i]->state = JOB_QUEUED;
        end(r[i]);
    }
    end(w);
    fake_destroy(k);
}
END_TEST

START_TEST(more_successors_than_fit_are_all_offered)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *w = user(b, ACCESS_OUT);
    struct job *r[100];
    for (unsigned i = 0; i < 100; i++) {
        r[i] = user(b, ACCESS_IN);
        ck_assert_int_eq(r[i]->wait, WAIT_HAZARD);
    }
    end(w);
    for (unsigned i = 0; i < 100; i++) {
        ck_assert(r[i]->in_ready);
        end(r[i]);
    }
    fake_destroy(k);
}
END_TEST

START_TEST(one_that_ends_early_leaves_its_place_to_those_before)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *r = user(b, ACCESS_IN);
    struct job *w1 = user(b, ACCESS_OUT);
    struct job *w2 = user(b, ACCESS_OUT);
    end(w1);
    ck_assert(waits_for(w2, r));
    ck_assert(!w2->in_ready);
    end(w2);
    struct job *w3 = user(b, ACCESS_OUT);
    ck_assert(waits_for(w3, r));
    struct job *w4 = user(b, ACCESS_INOUT);
    end(w4);
    struct job *r2 = user(b, ACCESS_IN);
    ck_assert(waits_for(r2, w3));
    end(r);
    end(r2);
    end(w3);
    fake_destroy(k);
}
END_TEST

/* The reader comes back to the buffer by two ways: its own writer and another buffer's. */
START_TEST(one_that_is_handed_back_twice_leaves_once)
{
    k = fake_create();
    struct buffer *a = fake_buffer(k, 0, 64, true);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *r = fake_job(k, 0);
    fake_reads(r, b, 0, 64);
    fake_writes(r, a, 0, 64);
    (void)fake_submit(k, r);
    struct job *w1 = user(b, ACCESS_OUT);
    struct job *w2 = fake_job(k, 0);
    fake_reads(w2, a, 0, 64);
    fake_writes(w2, b, 0, 64);
    (void)fake_submit(k, w2);
    end(w2);
    ck_assert_ptr_eq(b->writer, w1);
    end(w1);
    ck_assert_ptr_null(b->writer);
    end(r);
    ck_assert_ptr_null(b->readers);
    fake_destroy(k);
}
END_TEST

enum {
    MANY = 40
}; /* jobs before one that leaves, and behind it: more pairs than get an edge each */

static void all_after(struct job *const *behind, struct job *const *before)
{
    for (unsigned i = 0; i < MANY; i++) {
        for (unsigned m = 0; m < MANY; m++) {
            ck_assert(fake_after(behind[i], before[m]));
        }
    }
}

static void end_many(struct job *const *jobs)
{
    for (unsigned i = 0; i < MANY; i++) {
        end(jobs[i]);
    }
}

static void leave_between_many(bool oldest_leaves)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *before[MANY];
    struct job *behind[MANY];
    unsigned edges = 0;
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = user(b, ACCESS_IN);
    }
    struct job *w = user(b, ACCESS_OUT);
    for (unsigned i = 0; i < MANY; i++) {
        behind[i] = user(b, ACCESS_IN);
    }
    behind[MANY - 1]->rank = -1;
    behind[MANY - 1]->urgent = true;
    end(w);
    for (unsigned i = 0; i < MANY; i++) {
        edges += preds(behind[i]);
    }
    ck_assert_uint_lt(edges, 2 * MANY);
    all_after(behind, before);
    ck_assert(behind[0]->urgent);
    ck_assert_int_eq(behind[0]->rank, -1);
    struct job *w2 = user(b, ACCESS_OUT);
    ck_assert(fake_after(w2, before[0]) && fake_after(w2, behind[0]));
    if (oldest_leaves) {
        end(behind[0]);
        behind[0] = behind[1];
        all_after(behind, before);
        behind[0] = user(b, ACCESS_IN);
    }
    end_many(before);
    ck_assert(behind[oldest_leaves ? 1 : 0]->in_ready);
    end_many(behind);
    end(w2);
    fake_destroy(k);
}

/* Those behind wait for the oldest of them, which has their urgency, and it waits for all before.
 */
START_TEST(one_between_many_leaves_few_edges)
{
    leave_between_many(false);
    leave_between_many(true);
}
END_TEST

/* The one that stands for those before does not use the buffer: whoever uses it next, when the
 * writer behind has gone, too, waits for them all the same. */
START_TEST(who_stands_for_others_is_looked_behind)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct buffer *other = fake_buffer(k, 0, 64, true);
    struct job *before[MANY];
    struct job *behind[MANY];
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = user(b, ACCESS_IN);
    }
    struct job *w = fake_job(k, 0);
    fake_writes(w, b, 0, 64);
    fake_writes(w, other, 0, 64);
    (void)fake_submit(k, w);
    for (unsigned i = 0; i < MANY; i++) {
        behind[i] = user(other, ACCESS_IN);
    }
    struct job *w2 = user(b, ACCESS_OUT);
    end(w);
    ck_assert_uint_eq(preds(w2), 1);
    ck_assert(waits_for(w2, behind[0]));
    end(w2);
    struct job *w3 = user(b, ACCESS_OUT);
    struct job *r3 = user(b, ACCESS_IN);
    for (unsigned i = 0; i < MANY; i++) {
        ck_assert(fake_after(w3, before[i]));
        ck_assert(!before[i]->walked && !behind[i]->walked);
    }
    ck_assert(waits_for(r3, w3));
    end_many(before);
    ck_assert(w3->in_ready);
    end_many(behind);
    end(w3);
    end(r3);
    fake_destroy(k);
}
END_TEST

START_TEST(forgetting_frees_edges_only)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *r = user(b, ACCESS_IN);
    struct job *w = user(b, ACCESS_OUT);
    hazard_forget(w);
    ck_assert_uint_eq(preds(w), 0);
    ck_assert_ptr_null(r->succs);
    hazard_forget(r);
    ck_assert_uint_eq(b->users, 2);
    end(r);
    end(w);
    fake_destroy(k);
}
END_TEST

/* ---- queues ------------------------------------------------------------------------------- */

START_TEST(queues_are_in_order_of_admission)
{
    k = fake_create();
    struct job *j[5];
    for (int i = 0; i < 5; i++) {
        j[i] = fake_job(k, i == 2 ? -1 : 0); /* the third may go anywhere */
        (void)fake_submit(k, j[i]);
    }
    static const int out[] = {1, 3, 0};
    for (int i = 0; i < 3; i++) {
        queue_remove(&k->f, j[out[i]]);
        queue_remove(&k->f, j[out[i]]);
    }
    ck_assert_ptr_eq(queue_head(&k->f, &k->device[0]), j[2]); /* older than the fifth */
    ck_assert_ptr_eq(queue_head(&k->f, &k->device[1]), j[2]);
    for (int i = 0; i < 3; i++) {
        queue_offer(&k->f, j[out[i]]); /* each comes back to its old place */
        queue_offer(&k->f, j[out[i]]);
    }
    ck_assert(k->kicked);
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_eq(queue_head(&k->f, &k->device[0]), j[i]);
        end(j[i]);
    }
    ck_assert_ptr_null(queue_head(&k->f, &k->device[0]));
    fake_destroy(k);
}
END_TEST

static struct job *with_priority(int64_t priority, uint64_t submitted_ns)
{
    struct job *j = fake_job(k, 0);
    j->priority = priority;
    j->submitted_ns = submitted_ns;
    j->rank = job_rank(j);
    (void)fake_submit(k, j);
    return j;
}

static void expect_order(struct job *const *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_msg(queue_head(&k->f, &k->device[0]) == order[i], "place %u", i);
        end(order[i]);
    }
}

/* Higher priorities first, each in order of admission; but whoever has waited long enough is not
 * overtaken any more, whatever priority comes. */
START_TEST(priorities_go_first_within_bounds)
{
    k = fake_create();
    struct job *low = with_priority(-1, 1);
    struct job *usual = with_priority(0, 2);
    struct job *high1 = with_priority(3, 3);
    struct job *high2 = with_priority(3, 4);
    struct job *top = with_priority(INT32_MAX, 5);
    struct job *late = with_priority(3, 2 + 3 * NS_PER_S);
    struct job *latest = with_priority(INT32_MAX, 5 + 40 * NS_PER_S);
    struct job *const order[] = {top, high1, high2, usual, late, low, latest};
    expect_order(order, 7);
    fake_destroy(k);
}
END_TEST

/* An urgent reader takes the writers that it waits for with it. */
START_TEST(whom_the_urgent_wait_for_goes_first)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *other = with_priority(0, 0);
    struct job *writer = user(b, ACCESS_OUT);
    struct job *second = user(b, ACCESS_INOUT);
    struct job *reader = fake_job(k, 0);
    fake_reads(reader, b, 0, 64);
    reader->priority = 2;
    reader->rank = job_rank(reader);
    reader->urgent = true;
    (void)fake_submit(k, reader);
    ck_assert_ptr_eq(queue_head(&k->f, &k->device[0]), other);
    queue_raise(&k->f, reader);
    ck_assert(writer->urgent && second->urgent && !other->urgent);
    struct job *const order[] = {writer, second, reader, other};
    expect_order(order, 4);
    fake_destroy(k);
}
END_TEST

START_TEST(successors_follow_their_predecessor)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *w = user(b, ACCESS_OUT);
    struct job *r = user(b, ACCESS_IN);
    w->state = JOB_DISPATCHED;
    queue_successors(&k->f, w);
    ck_assert(r->in_ready);
    w->state = JOB_QUEUED; /* its worker ended */
    queue_successors(&k->f, w);
    ck_assert(!r->in_ready);
    ck_assert_int_eq(r->wait, WAIT_HAZARD);
    end(w);
    ck_assert(r->in_ready);
    end(r);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("hazard", readers_together_writers_alone, two_buffers_make_one_edge,
           predecessors_in_the_same_worker_are_no_hindrance,
           no_more_predecessors_than_a_worker_waits_for, more_successors_than_fit_are_all_offered,
           one_that_ends_early_leaves_its_place_to_those_before,
           one_that_is_handed_back_twice_leaves_once, one_between_many_leaves_few_edges,
           who_stands_for_others_is_looked_behind, forgetting_frees_edges_only,
           queues_are_in_order_of_admission, priorities_go_first_within_bounds,
           whom_the_urgent_wait_for_goes_first, successors_follow_their_predecessor)
