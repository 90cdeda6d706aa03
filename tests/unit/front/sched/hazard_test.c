/* Which jobs wait for which, and the order in which waiting jobs are served. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/arena.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static unsigned preds(const struct job *j)
{
    struct hazard_preds p;
    ck_assert(hazard_preds(j, &p));
    return p.count;
}

static bool waits_for(const struct job *succ, const struct job *pred)
{
    struct hazard_preds p;
    ck_assert(hazard_preds(succ, &p));
    for (unsigned i = 0; i < p.count; i++) {
        if (p.job[i] == pred) {
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
    ck_assert_uint_eq(b->writers, 3);
    ck_assert(hazard_clear(r1));
    ck_assert(!hazard_clear(w1));
    end(r1);
    ck_assert(!hazard_clear(w1));
    end(r2);
    ck_assert(hazard_clear(w1));
    ck_assert(w1->sched.ready.in);
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
    ck_assert_uint_eq(preds(j[0]), 0); /* a job never waits for itself */
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
    r->trust = TRUST_ALONE;
    ck_assert(!hazard_clear(r));
    r->trust = TRUST_SHARED;
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
        ck_assert(r[i]->sched.ready.in);
        end(r[i]);
    }
    fake_destroy(k);
}
END_TEST

START_TEST(successors_inherit_what_an_ended_job_waited_for)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *r = user(b, ACCESS_IN);
    struct job *w1 = user(b, ACCESS_OUT);
    struct job *w2 = user(b, ACCESS_OUT);
    end(w1);
    ck_assert(waits_for(w2, r));
    ck_assert(!w2->sched.ready.in);
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

/* The writer that leaves names two buffers that the same reader uses. */
START_TEST(a_writer_is_counted_once)
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
    ck_assert_uint_eq(b->writers, 1);
    end(w1);
    ck_assert_uint_eq(b->writers, 0);
    end(r);
    ck_assert_ptr_null(b->groups);
    fake_destroy(k);
}
END_TEST

enum { MANY = 40 }; /* jobs before a job that leaves, and behind it */

/* ---- edges: parts of arenas ----------------------------------------------------------------- */

static struct arena *arena;

static struct job *part_user(int access, uint64_t begin, uint64_t end)
{
    struct job *j = fake_job(k, 0);
    struct work_arena *u = work_add_arena(&j->work, arena);
    u->access = access;
    u->begin = begin;
    u->end = end;
    (void)fake_submit(k, j);
    return j;
}

static bool edge_after(const struct job *succ, const struct job *pred)
{
    for (const struct job_edge *x = succ->order.preds; x != NULL; x = x->next_pred) {
        if (x->pred == pred || edge_after(x->pred, pred)) {
            return true;
        }
    }
    return false;
}

static unsigned edges(const struct job *j)
{
    unsigned count = 0;
    for (const struct job_edge *x = j->order.preds; x != NULL; x = x->next_pred) {
        count++;
    }
    return count;
}

static void end_many(struct job *const *jobs)
{
    for (unsigned i = 0; i < MANY; i++) {
        end(jobs[i]);
    }
}

static void all_after(struct job *const *behind, struct job *const *before)
{
    for (unsigned i = 0; i < MANY; i++) {
        for (unsigned m = 0; m < MANY; m++) {
            ck_assert(edge_after(behind[i], before[m]));
        }
        ck_assert(!behind[i]->order.marked && !before[i]->order.marked);
    }
}

/* The jobs behind wait for the oldest of them, which gets their urgency and waits for all before.
 */
START_TEST(a_job_between_many_leaves_few_edges)
{
    k = fake_create();
    arena = arena_create(1000);
    arena->owner = k->session;
    arena->tenant = k->tenant;
    struct job *before[MANY];
    struct job *behind[MANY];
    unsigned total = 0;
    for (unsigned i = 0; i < MANY; i++) {
        before[i] = part_user(ACCESS_IN, 0, 1000);
    }
    struct job *w = part_user(ACCESS_OUT, 0, 1000);
    for (unsigned i = 0; i < MANY; i++) {
        behind[i] = part_user(ACCESS_IN, 0, 1000);
    }
    behind[MANY - 1]->sched.rank = -1;
    behind[MANY - 1]->sched.urgent = true;
    end(w);
    for (unsigned i = 0; i < MANY; i++) {
        total += edges(behind[i]);
    }
    ck_assert_uint_lt(total, 2 * MANY);
    all_after(behind, before);
    ck_assert(behind[0]->sched.urgent);
    ck_assert_int_eq(behind[0]->sched.rank, -1);
    end_many(before);
    ck_assert(behind[0]->sched.ready.in);
    end_many(behind);
    arena->owner = NULL;
    arena_destroy(arena);
    fake_destroy(k);
}
END_TEST

/* ---- lines: buffers ------------------------------------------------------------------------- */

/* Readers before and behind a writer that leaves become one group, which the next writer waits for,
 * whichever group was the larger, and in any order of their ends. */
START_TEST(readers_without_a_writer_between_are_one_group)
{
    for (unsigned large = 0; large < 2; large++) {
        k = fake_create();
        struct buffer *b = fake_buffer(k, 0, 64, true);
        struct job *first = user(b, ACCESS_OUT);
        struct job *r[12];
        unsigned n = 0;
        for (; n < (large == 0 ? 3 : 8); n++) {
            r[n] = user(b, ACCESS_IN);
        }
        struct job *w = user(b, ACCESS_OUT);
        for (; n < 12; n++) {
            r[n] = user(b, ACCESS_IN);
        }
        struct job *last = user(b, ACCESS_INOUT);
        end(w);
        ck_assert_uint_eq(preds(last), 12);
        for (unsigned i = 0; i < 12; i++) {
            ck_assert(waits_for(r[i], first) && waits_for(last, r[i]));
        }
        end(first);
        for (unsigned i = 0; i < 12; i++) {
            ck_assert(r[(i * 5) % 12]->sched.ready.in && !last->sched.ready.in);
            end(r[(i * 5) % 12]);
            if (i < 11) {
                for (unsigned m = i + 1; m < 12; m++) {
                    ck_assert(waits_for(last, r[(m * 5) % 12]));
                }
            }
        }
        ck_assert(last->sched.ready.in);
        end(last);
        fake_destroy(k);
    }
}
END_TEST

/* When the writer between them leaves, a job gets the rank of the urgent job behind it. */
START_TEST(urgency_passes_a_writer_that_leaves)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *before = user(b, ACCESS_OUT);
    struct job *w = user(b, ACCESS_OUT);
    struct job *urgent = fake_job(k, 0);
    before->sched.rank = 5;
    fake_reads(urgent, b, 0, 64);
    urgent->sched.rank = -7;
    urgent->sched.urgent = true;
    (void)fake_submit(k, urgent);
    ck_assert(!before->sched.urgent);
    end(w);
    ck_assert(before->sched.urgent);
    ck_assert_int_eq(before->sched.rank, -7);
    end(before);
    end(urgent);
    fake_destroy(k);
}
END_TEST

/* ---- turns ---------------------------------------------------------------------------------- */

/* Runs the postponed work, a turn of the loop at a time. Returns the number of turns. */
static unsigned turns(void)
{
    unsigned count = 0;
    while (k->f.leaving != NULL || k->f.hazards.unchecked != NULL) {
        k->f.work.done = 0;
        job_leave_some(&k->f);
        queue_turn(&k->f);
        ck_assert_uint_le(k->f.work.done, TURN_UNITS + WORK_USES_MAX);
        count++;
    }
    return count;
}

enum { WIDE = 64, LONG = 300 }; /* buffers of a job, and jobs */

static struct job *wide(struct buffer *const *b, int access)
{
    struct job *j = fake_job(k, 0);
    for (unsigned i = 0; i < WIDE; i++) {
        if (access == ACCESS_IN) {
            fake_reads(j, b[i], 0, 64);
        } else {
            fake_writes(j, b[i], 0, 64);
        }
    }
    (void)fake_submit(k, j);
    return j;
}

/* Many jobs wait behind a job that waits behind as many: neither its submission nor its cancel
 * takes longer than a turn, and no job overtakes meanwhile. */
START_TEST(a_wide_line_is_checked_in_turns)
{
    k = fake_create();
    struct buffer *b[WIDE];
    struct job *before[LONG];
    struct job *behind[LONG];
    for (unsigned i = 0; i < WIDE; i++) {
        b[i] = fake_buffer(k, 0, 64, true);
    }
    for (unsigned i = 0; i < LONG; i++) {
        before[i] = wide(b, ACCESS_IN);
    }
    k->f.work.budget = TURN_UNITS;
    k->f.work.done = 0;
    struct job *w = wide(b, ACCESS_OUT);
    queue_raise(&k->f, w);
    ck_assert_uint_le(k->f.work.done, WIDE);
    for (unsigned i = 0; i < LONG; i++) {
        behind[i] = wide(b, ACCESS_IN);
    }
    k->f.work.done = 0;
    end(w);
    ck_assert_uint_le(k->f.work.done, TURN_UNITS + WORK_USES_MAX);
    ck_assert(k->f.leaving == w);
    for (unsigned i = 0; i < LONG; i++) {
        ck_assert(!behind[i]->sched.ready.in);
    }
    ck_assert_uint_ge(turns(), LONG * WIDE / (TURN_UNITS + WORK_USES_MAX));
    for (unsigned i = 0; i < LONG; i++) {
        ck_assert(behind[i]->inputs.state == INPUTS_STARVED && behind[i]->sched.ready.in);
    }
    for (unsigned i = 0; i < LONG; i++) {
        k->f.work.done = 0;
        end(before[i]);
        end(behind[i]);
        ck_assert_uint_le(k->f.work.done, TURN_UNITS + WORK_USES_MAX);
    }
    (void)turns();
    fake_destroy(k);
}
END_TEST

/* A session with many objects ends in several turns. It has no client from the first one on. */
START_TEST(a_session_ends_in_turns)
{
    enum { OPENED = 5000, MADE = 700 };
    k = fake_create();
    struct session_key key;
    memset(&key, 7, sizeof key);
    struct session *s = sessions_obtain(&k->f, &key, k->tenant);
    struct buffer *opened = fake_buffer(k, 0, 64, true);
    for (unsigned i = 0; i < MADE; i++) {
        struct buffer *b = fake_buffer(k, 0, 64, true);
        ck_assert(buffer_charge(b, &k->device[0], fake_now()));
        buffer_own(b, s);
        s->buffers++;
        s->near[0]++;
    }
    for (unsigned i = 0; i < OPENED; i++) {
        ck_assert(buffer_opener_add(opened, s, i + 1));
    }
    k->f.work.budget = TURN_UNITS;
    k->f.work.done = 0;
    session_end(&k->f, s);
    unsigned count = 1;
    for (; k->f.ending != NULL; count++) {
        ck_assert_uint_le(k->f.work.done, TURN_UNITS);
        ck_assert_ptr_null(session_find(k->f.sessions, &key));
        k->f.work.done = 0;
        session_end_some(&k->f);
    }
    ck_assert_uint_gt(count, 5);
    ck_assert_uint_eq(opened->openers, 0);
    ck_assert_uint_eq(k->f.buffers.live, 1);
    ck_assert_uint_eq(k->tenant->held[TENANT_BUFFERS], 1);
    ck_assert_uint_eq(k->tenant->held[TENANT_OPENS], 0);
    fake_destroy(k);
}
END_TEST

START_TEST(a_tenants_objects_are_bounded)
{
    k = fake_create();
    struct err e = ERR_INIT;
    struct tenant *t = k->tenant;
    t->held[TENANT_OPENS] = 4;
    ck_assert_int_eq(tenant_check(t, TENANT_OPENS, 5, &e), 0);
    ck_assert_int_eq(tenant_check(t, TENANT_OPENS, 4, &e), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(e.text, "has 4 openings, at most 4 ([tenants] opens_max)"));
    t->limits.most[TENANT_OPENS] = 3;
    ck_assert_int_eq(tenant_check(t, TENANT_OPENS, 100, &e), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr(e.text, "at most 3 (its section's opens_max)"));
    t->held[TENANT_OPENS] = 0;
    fake_destroy(k);
}
END_TEST

START_TEST(forgetting_frees_edges_only)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *r = user(b, ACCESS_IN);
    struct job *w = user(b, ACCESS_OUT);
    hazard_forget(&k->f.hazards, w);
    ck_assert_uint_eq(preds(w), 0);
    ck_assert_ptr_nonnull(b->groups);
    hazard_forget(&k->f.hazards, r);
    ck_assert_ptr_null(b->groups);
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
        j[i] = fake_job(k, i == 2 ? -1 : 0); /* any device may run the third */
        (void)fake_submit(k, j[i]);
    }
    static const int out[] = {1, 3, 0};
    for (int i = 0; i < 3; i++) {
        queue_remove(&k->f, j[out[i]]);
        queue_remove(&k->f, j[out[i]]);
    }
    ck_assert_ptr_eq(shares_head(&k->f, &k->device[0]), j[2]); /* older than the fifth */
    ck_assert_ptr_eq(shares_head(&k->f, &k->device[1]), j[2]);
    for (int i = 0; i < 3; i++) {
        queue_offer(&k->f, j[out[i]]); /* each gets its old place */
        queue_offer(&k->f, j[out[i]]);
    }
    ck_assert(k->kicked);
    for (int i = 0; i < 5; i++) {
        ck_assert_ptr_eq(shares_head(&k->f, &k->device[0]), j[i]);
        end(j[i]);
    }
    ck_assert_ptr_null(shares_head(&k->f, &k->device[0]));
    fake_destroy(k);
}
END_TEST

static struct job *with_priority(int64_t priority, uint64_t submitted_ns)
{
    struct job *j = fake_job(k, 0);
    j->priority = priority;
    j->submitted_ns = submitted_ns;
    j->sched.rank = job_rank(j);
    (void)fake_submit(k, j);
    return j;
}

static void expect_order(struct job *const *order, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert_msg(shares_head(&k->f, &k->device[0]) == order[i], "place %u", i);
        end(order[i]);
    }
}

/* Higher priorities go first, and each in order of admission; but no priority overtakes a job that
 * has waited long enough. */
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

/* The writers that an urgent reader waits for get its rank. */
START_TEST(writers_before_an_urgent_reader_go_first)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *other = with_priority(0, 0);
    struct job *writer = user(b, ACCESS_OUT);
    struct job *second = user(b, ACCESS_INOUT);
    struct job *reader = fake_job(k, 0);
    fake_reads(reader, b, 0, 64);
    reader->priority = 2;
    reader->sched.rank = job_rank(reader);
    reader->sched.urgent = true;
    (void)fake_submit(k, reader);
    ck_assert_ptr_eq(shares_head(&k->f, &k->device[0]), other);
    queue_raise(&k->f, reader);
    ck_assert(writer->sched.urgent && second->sched.urgent && !other->sched.urgent);
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
    queue_moved(&k->f, w);
    ck_assert(r->sched.ready.in);
    w->state = JOB_QUEUED; /* its worker ended */
    queue_moved(&k->f, w);
    ck_assert(!r->sched.ready.in);
    ck_assert_int_eq(r->wait, WAIT_HAZARD);
    end(w);
    ck_assert(r->sched.ready.in);
    end(r);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("hazard", readers_together_writers_alone, two_buffers_make_one_edge,
           predecessors_in_the_same_worker_are_no_hindrance,
           no_more_predecessors_than_a_worker_waits_for, more_successors_than_fit_are_all_offered,
           successors_inherit_what_an_ended_job_waited_for, a_writer_is_counted_once,
           a_job_between_many_leaves_few_edges, readers_without_a_writer_between_are_one_group,
           urgency_passes_a_writer_that_leaves, a_wide_line_is_checked_in_turns,
           a_session_ends_in_turns, a_tenants_objects_are_bounded, forgetting_frees_edges_only,
           queues_are_in_order_of_admission, priorities_go_first_within_bounds,
           writers_before_an_urgent_reader_go_first, successors_follow_their_predecessor)
