/* How long buffers take to another device, and what that means for jobs that wait for them. The
 * clock stands still but for fake_pass. */
#include "daemon/front/sched/transit.h"

#include <string.h>

#include "daemon/front/memory/buffers.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/outlook.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/sched/shares.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define BYTES   64u
#define LARGE   ((uint64_t)8 << 20)
#define OUT_NS  (5 * NS_PER_MS) /* of a small one, once it is known */
#define IN_NS   (3 * NS_PER_MS)
#define COST_NS NS_PER_MS /* of each job */
#define KIND    1u
#define MOVES   4u /* after which times are known */

static struct fake *k;
static struct buffer *b; /* on device 1 */

static struct buffer *charged(uint64_t bytes)
{
    struct buffer *made = fake_buffer(k, 1, bytes, true);
    made->losses = &k->device[1].losses;
    made->shown = 1;
    buffer_set_state(made, BUFFER_LIVE);
    ck_assert(buffer_charge(made, &k->device[1], fake_now()));
    return made;
}

static void begin(void)
{
    k = fake_create();
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].forecast_id = 7;
    }
    for (unsigned i = 0; i < 2 * FORECAST_SURE; i++) {
        forecast_learn(&k->tenant->forecast, forecast_key(KIND, 7), COST_NS);
    }
    b = charged(BYTES);
}

static void learn(uint64_t bytes, uint64_t out_ns, uint64_t in_ns)
{
    struct buffer x = {.bytes = bytes, .device = 1};
    for (unsigned i = 0; i < MOVES; i++) {
        transit_left(&k->f, &x, out_ns);
        transit_came(&x, &k->device[0], in_ns);
    }
}

static struct job *reader_on(int device)
{
    struct job *j = fake_job(k, device);
    j->sched.kind = KIND;
    fake_reads(j, b, 0, BYTES);
    return j;
}

static struct job *sent(struct job *j)
{
    (void)fake_submit(k, j);
    queue_awaiting_turn(&k->f);
    fake_turn(k);
    return j;
}

static void answer(unsigned device)
{
    const struct msg_w_buffer m = {.id = b->handle};
    buffer_answered(&k->f, &k->device[device], &m);
    queue_awaiting_turn(&k->f);
    fake_turn(k);
}

static void cancel(struct job *j)
{
    const struct err cancelled = {.code = ERR_CANCELLED};
    job_conclude(&k->f, j, JOB_CANCELLED, &cancelled);
}

static void end(void)
{
    fake_drop(k, b);
    fake_destroy(k);
}

static struct estimate cost(const struct buffer *of)
{
    return transit_cost(of, &k->device[1], &k->device[0]);
}

START_TEST(slow_until_it_is_known)
{
    begin();
    struct buffer x = {.bytes = LARGE, .device = 1};
    ck_assert_uint_ge(cost(b).ns, 2 * NS_PER_MS);
    ck_assert_uint_ge(cost(&x).ns, 2 * LARGE);
    ck_assert(!cost(b).sure && !cost(&x).sure);
    learn(BYTES, OUT_NS, IN_NS);
    ck_assert(cost(b).sure && !cost(&x).sure);
    ck_assert_uint_eq(cost(b).ns, OUT_NS + IN_NS);
    learn(LARGE, OUT_NS + LARGE / 10, IN_NS + LARGE / 5);
    ck_assert(cost(&x).sure);
    x.bytes *= 2;
    double ns = (double)(OUT_NS + IN_NS) + 0.3 * (double)x.bytes;
    ck_assert_double_eq_tol((double)cost(&x).ns, ns, 10);
    ck_assert_uint_eq(transit_cost(b, &k->device[1], &k->device[1]).ns, 0);
    end();
}
END_TEST

/* The way counts from the job's turn on, and less the longer it lasts. */
START_TEST(a_job_begins_when_its_buffers_are_there)
{
    begin();
    learn(BYTES, OUT_NS, IN_NS);
    struct job *j = reader_on(0);
    (void)fake_submit(k, j);
    ck_assert_int_eq(j->wait, WAIT_WINDOW);
    ck_assert_uint_eq(outlook_of(&k->f, j).begin_ns, fake_now() + OUT_NS + IN_NS);
    fake_turn(k);
    ck_assert_int_eq(j->wait, WAIT_RESTORE);
    struct prediction p = outlook_of(&k->f, j);
    ck_assert(p.sure);
    ck_assert_uint_eq(p.begin_ns, fake_now() + OUT_NS + IN_NS);
    ck_assert_uint_eq(p.end_ns, p.begin_ns + COST_NS);
    fake_pass(OUT_NS / 2);
    ck_assert_uint_eq(outlook_of(&k->f, j).begin_ns, fake_now() + OUT_NS / 2 + IN_NS);
    fake_pass(OUT_NS); /* late */
    ck_assert_uint_eq(outlook_of(&k->f, j).begin_ns, fake_now() + IN_NS);
    answer(1);
    ck_assert_uint_eq(outlook_of(&k->f, j).begin_ns, fake_now() + IN_NS);
    fake_pass(IN_NS / 2);
    ck_assert_uint_eq(outlook_of(&k->f, j).begin_ns, fake_now() + IN_NS - IN_NS / 2);
    answer(0);
    ck_assert_int_eq(j->state, JOB_DISPATCHED);
    ck_assert_uint_eq(transit_of(&k->f, j, fake_now()).ns, 0);
    fake_done(k, j, 0);
    end();
}
END_TEST

/* Two jobs before it take the buffer there and back. */
START_TEST(each_way_counts_for_the_jobs_behind)
{
    struct job *j[3];
    begin();
    learn(BYTES, OUT_NS, OUT_NS);
    for (unsigned i = 0; i < 3; i++) {
        j[i] = fake_job(k, i % 2 == 0 ? 1 : 0);
        j[i]->sched.kind = KIND;
        fake_writes(j[i], b, 0, BYTES);
        (void)sent(j[i]);
    }
    struct estimate way = transit_of(&k->f, j[1], fake_now());
    ck_assert(way.sure);
    ck_assert_uint_eq(way.ns, 2 * OUT_NS);
    struct prediction p = outlook_of(&k->f, j[1]);
    ck_assert_uint_eq(p.begin_ns, fake_now() + COST_NS + way.ns);
    ck_assert_uint_eq(p.end_ns, p.begin_ns + COST_NS);
    ck_assert_uint_gt(transit_of(&k->f, j[2], fake_now()).ns, 0);
    cancel(j[2]);
    cancel(j[1]);
    fake_done(k, j[0], 0);
    end();
}
END_TEST

/* A reader does not wait for the one before it, but both wait for the way of their buffer. */
START_TEST(readers_of_one_device_wait_for_one_way)
{
    struct job *j[4];
    begin();
    learn(BYTES, OUT_NS, OUT_NS);
    for (unsigned i = 0; i < 4; i++) {
        j[i] = fake_job(k, i == 0 ? 1 : 0);
        j[i]->sched.kind = KIND;
        (i == 0 ? fake_writes : fake_reads)(j[i], b, 0, BYTES);
        (void)sent(j[i]);
    }
    ck_assert_uint_eq(transit_of(&k->f, j[1], fake_now()).ns, 2 * OUT_NS);
    ck_assert_uint_eq(transit_of(&k->f, j[2], fake_now()).ns, 2 * OUT_NS);
    ck_assert_uint_eq(transit_of(&k->f, j[3], fake_now()).ns, 2 * OUT_NS);
    for (unsigned i = 3; i > 0; i--) {
        cancel(j[i]);
    }
    fake_done(k, j[0], 0);
    end();
}
END_TEST

/* One way brings the buffer to all of them, and then they run one after the other. */
START_TEST(readers_on_one_way_go_one_by_one)
{
    struct job *j[3];
    begin();
    learn(BYTES, OUT_NS, IN_NS);
    for (unsigned i = 0; i < 3; i++) {
        j[i] = sent(reader_on(0));
        ck_assert_int_eq(j[i]->wait, WAIT_RESTORE);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct prediction p = outlook_of(&k->f, j[i]);
        ck_assert(p.sure);
        ck_assert_uint_eq(p.begin_ns, fake_now() + OUT_NS + IN_NS + i * COST_NS);
    }
    cancel(j[0]);
    ck_assert_uint_eq(outlook_of(&k->f, j[1]).begin_ns, fake_now() + OUT_NS + IN_NS);
    j[1]->sched.kind = KIND + 1;
    ck_assert(!outlook_of(&k->f, j[2]).sure);
    cancel(j[2]);
    cancel(j[1]);
    end();
}
END_TEST

/* The device has nothing to do. _i: 1: nothing is known of moves, so the job is admitted. */
START_TEST(a_deadline_before_that_is_refused)
{
    struct err e = ERR_INIT;
    begin();
    if (_i == 0) {
        learn(BYTES, OUT_NS, IN_NS);
    }
    struct job *j = reader_on(0);
    j->deadline_ns = fake_now() + NS_PER_MS;
    ck_assert_int_eq(hazard_enter(j, &e), 0);
    ck_assert(shares_reserve(&k->f, k->tenant, j));
    ck_assert_int_eq(outlook_admit(&k->f, j, &e), _i == 0 ? ERR_DEADLINE : 0);
    if (_i == 0) {
        ck_assert_ptr_nonnull(strstr(e.text, "its buffers need 8.000 ms to move to device 0"));
    }
    j->deadline_ns = fake_now() + 2 * (OUT_NS + IN_NS);
    ck_assert_int_eq(outlook_admit(&k->f, j, &e), 0);
    hazard_leave(&k->f.hazards, j);
    job_destroy(j);
    end();
}
END_TEST

/* Nothing is on its way while a worker takes no part, and nobody knows how long. */
START_TEST(what_cannot_move_yet_is_unknown)
{
    begin();
    learn(BYTES, OUT_NS, IN_NS);
    k->device[1].recovery = 1;
    struct job *j = sent(reader_on(0));
    ck_assert_int_eq(j->wait, WAIT_RESTORE);
    ck_assert_uint_eq(outlook_of(&k->f, j).begin_ns, 0);
    k->device[1].recovery = 0;
    cancel(j);
    end();
}
END_TEST

/* The host has its content: it does not leave its device. */
START_TEST(what_the_host_has_comes_only)
{
    begin();
    learn(BYTES, OUT_NS, IN_NS);
    b->sealed = true;
    b->host_fd = 0;
    ck_assert_uint_eq(cost(b).ns, IN_NS);
    b->sealed = false;
    b->host_fd = -1;
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("transit");
    TCase *tc = tcase_create("transit");
    tcase_add_test(tc, slow_until_it_is_known);
    tcase_add_test(tc, a_job_begins_when_its_buffers_are_there);
    tcase_add_test(tc, each_way_counts_for_the_jobs_behind);
    tcase_add_test(tc, readers_of_one_device_wait_for_one_way);
    tcase_add_test(tc, readers_on_one_way_go_one_by_one);
    tcase_add_loop_test(tc, a_deadline_before_that_is_refused, 0, 2);
    tcase_add_test(tc, what_cannot_move_yet_is_unknown);
    tcase_add_test(tc, what_the_host_has_comes_only);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
