/* Jobs behind others that wait for device memory: gpud-worker as a process on a simulated device of
 * twelve MiB, from which nothing can go to the host. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/shape.h"
#include "tests/unit/worker/fake_front.h"

#define MIB    ((uint64_t)1 << 20)
#define LARGE  (5 * MIB) /* bytes of a copy that goes through a copy queue */
#define MODULE 7u

static void start(struct fake *f, const char *options)
{
    const char *args[] = {"--options", options, "--memory-limit", "12582912", "--spill-limit",
                          "0",         NULL};
    fake_start(f, "sim", args);
    ck_assert(!f->absent);
}

/* A buffer that was written. */
static void make(struct fake *f, uint64_t tenant, uint64_t id, uint64_t size)
{
    static uint64_t job = 1000;
    struct job_draft d;
    f->tenant = tenant;
    ck_assert_int_eq(fake_buffer(f, id, size, true), 0);
    draft_init(&d, ++job, 0);
    draft_fill(&d, ref_buffer(id, 0, size), "o", 1);
    draft_send(&d, f);
    ck_assert_int_eq(fake_done(f, job, NULL), 0);
}

static void drop(struct fake *f, uint64_t id)
{
    const struct msg_f_buffer_free msg = {.id = id};
    fake_send(f, &schema_msg_f_buffer_free, &msg, -1);
}

static void cancel(struct fake *f, uint64_t job)
{
    const struct msg_f_cancel msg = {.job = job};
    fake_send(f, &schema_msg_f_cancel, &msg, -1);
}

/* A job that needs `bytes` beside what is in use. */
static void wanting(struct fake *f, uint64_t job, uint64_t after, uint64_t bytes, uint64_t deadline)
{
    struct job_draft d;
    draft_init(&d, job, 1);
    if (after != 0) {
        draft_after(&d, after);
    }
    draft_fill(&d, ref_temp(draft_temp(&d, bytes), bytes), "t", 1);
    d.msg.deadline_ns = deadline;
    draft_send(&d, f);
}

/* ---- what is freed under a job --------------------------------------------------------------- */

static void fill_step(struct job_draft *d)
{
    draft_fill(d, ref_buffer(1, 0, LARGE), "f", 1);
}

static void copy_step(struct job_draft *d)
{
    draft_copy(d, ref_buffer(1, 0, MIB), ref_buffer(2, 0, MIB));
}

static void launch_step(struct job_draft *d)
{
    static const float a = 2;
    static const uint64_t n = MIB / sizeof a;
    const struct proto_ref args[] = {
        ref_value(&a, sizeof a), ref_as(ref_buffer(2, 0, MIB), ACCESS_IN),
        ref_as(ref_buffer(1, 0, MIB), ACCESS_INOUT), ref_value(&n, sizeof n)};
    draft_launch(d, MODULE, "axpy_f32", n, args, 4);
}

static void small_write_step(struct job_draft *d)
{
    draft_move(d, OP_WRITE, ref_buffer(1, 0, 4096), 0);
}

static void large_read_step(struct job_draft *d)
{
    draft_move(d, OP_READ, ref_buffer(1, 0, LARGE), 0);
}

static void (*const STEP[])(struct job_draft *d) = {fill_step, copy_step, launch_step,
                                                    small_write_step, large_read_step};

static void read_back(struct fake *f, uint64_t job, uint64_t buffer, uint64_t size, uint8_t value)
{
    struct job_draft d;
    memset(f->output.data, 0xa5, size);
    draft_init(&d, job, 0);
    draft_move(&d, OP_READ, ref_buffer(buffer, 0, size), 0);
    draft_send(&d, f);
    ck_assert_int_eq(fake_done(f, job, NULL), 0);
    for (uint64_t i = 0; i < size; i++) {
        ck_assert_uint_eq(f->output.data[i], value);
    }
}

/* A front that takes over may free at once the buffers that it cannot keep. The jobs that use them
 * have them until their ends, also jobs that wait for others, even if another buffer gets the same
 * id. */
START_TEST(a_job_has_what_was_freed_until_it_ends)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct msg_w_waiting waiting;
    struct msg_w_pool pool;
    const struct msg_f_pool ask = {0};
    bool again = _i >= 5;
    start(&f, "speed=0,pages=on");
    fake_builtin(&f, "sim", "axpy", MODULE);
    make(&f, 1, 1, LARGE);
    make(&f, 1, 2, MIB);
    make(&f, 1, 3, 4 * MIB);
    memset(f.output.data, 0xa5, LARGE);
    wanting(&f, 100, 0, 4 * MIB, UINT64_MAX - 1);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    draft_init(&d, 101, 0);
    draft_after(&d, 100);
    STEP[_i % 5](&d);
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 101 && waiting.waits == 1);
    drop(&f, 1);
    drop(&f, 2);
    if (again) { /* jobs that wait for memory that cannot come let others pass */
        make(&f, 1, 1, 4096);
    }
    drop(&f, 3);
    ck_assert_int_eq(fake_done(&f, 100, NULL), 0);
    int code = fake_done(&f, 101, &done);
    ck_assert_msg(code == 0, "%.*s", (int)done.text.size, done.text.data);
    ck_assert_uint_eq(f.output.data[LARGE - 1], STEP[_i % 5] == large_read_step ? 'o' : 0xa5);
    if (again) {
        read_back(&f, 102, 1, 4096, 'o');
        drop(&f, 1);
    }
    fake_send(&f, &schema_msg_f_pool, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_POOL, &schema_msg_w_pool, &pool);
    ck_assert_uint_eq(pool.used, 0);
    fake_stop(&f);
}
END_TEST

/* ---- refusals for want of room -------------------------------------------------------------- */

/* Job 101 wants memory that cannot come while job 100 runs; behind it is job 102, which was
 * refused. */
static void crowd(struct fake *f)
{
    struct job_draft d;
    const struct msg_f_tenant sure = {.tenant = 2,
                                      .name = bytes_str("sure"),
                                      .hard = UINT64_MAX,
                                      .soft = UINT64_MAX,
                                      .guaranteed = 6 * MIB,
                                      .spilled = UINT64_MAX};
    fake_send(f, &schema_msg_f_tenant, &sure, -1);
    make(f, 1, 1, 6 * MIB);
    make(f, 2, 2, 6 * MIB);
    drop(f, 2); /* free memory then needs no zeros for its tenant */
    make(f, 2, 3, MIB);
    f->tenant = 1;
    draft_init(&d, 100, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4 * MIB), 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4 * MIB), 0);
    draft_send(&d, f);
    wanting(f, 101, 0, 4 * MIB, UINT64_MAX);
    draft_init(&d, 102, 1);
    draft_after(&d, 101);
    draft_fill(&d, ref_buffer(99, 0, 1), "b", 1);
    draft_send(&d, f);
    f->tenant = 2;
}

/* Expects the ends of the jobs from 100 on, each with its code, and of a seal. */
static void jobs_end(struct fake *f, unsigned answers, const int *code)
{
    struct msg_w_done done;
    struct msg_w_buffer sealed;
    while (answers > 0) {
        unsigned kind = fake_next(f);
        const struct bytes frame = bytes_of(f->frame, f->size);
        ck_assert_uint_ne(kind, 0);
        if (kind == FRAME_KIND_W_DONE) {
            ck_assert_int_eq(proto_decode(&schema_msg_w_done, frame, &done, NULL), 0);
            ck_assert(done.job >= 100 && done.job <= 103);
            ck_assert_int_eq((int)done.code, code[done.job - 100]);
        } else if (kind == FRAME_KIND_W_BUFFER) {
            ck_assert_int_eq(proto_decode(&schema_msg_w_buffer, frame, &sealed, NULL), 0);
            ck_assert(sealed.id == 3 && sealed.code == 0);
        }
        answers -= kind == FRAME_KIND_W_DONE || kind == FRAME_KIND_W_BUFFER;
    }
}

/* A job behind both, whose tenant has a guarantee, copies already when it is cancelled. What it had
 * begun is over soon, but it frees nothing before the others end. */
START_TEST(a_job_cancelled_as_it_copied_keeps_no_job_waiting)
{
    struct fake f;
    struct job_draft d;
    start(&f, "bandwidth=16M,pages=on");
    crowd(&f);
    draft_init(&d, 103, 1);
    draft_after(&d, 102);
    draft_move(&d, OP_WRITE, ref_temp(draft_temp(&d, 5 * MIB - 4096), 5 * MIB - 4096), 0);
    draft_send(&d, &f);
    cancel(&f, 103);
    jobs_end(&f, 4, (const int[]){0, ERR_DEVICE_MEMORY, ERR_BUFFER_LOST, ERR_CANCELLED});
    fake_stop(&f);
}
END_TEST

/* Jobs that come after such a job come after its predecessors, too. The copies of one direction
 * keep their order: when job 104 is over, so is what the cancelled job had begun. */
START_TEST(a_job_cancelled_as_it_copied_keeps_its_place)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_waiting waiting;
    const uint64_t bytes = 2 * MIB;
    const struct msg_f_tenant sure = {.tenant = 2,
                                      .name = bytes_str("sure"),
                                      .hard = UINT64_MAX,
                                      .soft = UINT64_MAX,
                                      .guaranteed = 4 * MIB,
                                      .spilled = UINT64_MAX};
    start(&f, "bandwidth=16M,pages=on");
    fake_send(&f, &schema_msg_f_tenant, &sure, -1);
    make(&f, 1, 1, bytes);
    make(&f, 1, 3, 4 * MIB);
    make(&f, 2, 2, 4 * MIB);
    drop(&f, 2); /* free memory then needs no zeros for its tenant */
    make(&f, 2, 4, bytes);
    f.tenant = 1;
    draft_init(&d, 100, 0);
    draft_fill(&d, ref_temp(draft_temp(&d, 4 * MIB), 4 * MIB), "t", 1);
    draft_fill(&d, ref_buffer(1, 0, bytes), "a", 1);
    d.msg.deadline_ns = UINT64_MAX - 1;
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 100 && waiting.waits == 1);
    f.tenant = 2;
    draft_init(&d, 101, 1); /* refused: jobs that come after it do not wait for memory themselves */
    draft_after(&d, 100);
    draft_fill(&d, ref_buffer(99, 0, 1), "b", 1);
    draft_send(&d, &f);
    draft_init(&d, 102, 1);
    draft_after(&d, 101);
    draft_move(&d, OP_WRITE, ref_temp(draft_temp(&d, bytes), bytes), 0);
    draft_send(&d, &f);
    cancel(&f, 102);
    draft_init(&d, 103, 1);
    draft_after(&d, 102);
    draft_fill(&d, ref_buffer(1, 0, bytes), "b", 1);
    draft_send(&d, &f);
    f.tenant = 2;
    draft_init(&d, 104, 0);
    draft_move(&d, OP_WRITE, ref_buffer(4, 0, bytes), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 104, NULL), 0);
    drop(&f, 3);
    f.tenant = 1;
    jobs_end(&f, 4, (const int[]){0, ERR_BUFFER_LOST, ERR_CANCELLED, 0});
    read_back(&f, 105, 1, bytes, 'b');
    fake_stop(&f);
}
END_TEST

/* The seal of a buffer that a job behind both uses does not keep others waiting either. */
START_TEST(a_seal_behind_jobs_keeps_no_job_waiting)
{
    struct fake f;
    struct job_draft d;
    struct err e = ERR_INIT;
    struct memfd host = MEMFD_NONE;
    const struct msg_f_buffer_seal seal = {.id = 3, .size = MIB};
    ck_assert_int_eq(memfd_create_sealed("host", MIB, &host, &e), 0);
    start(&f, "bandwidth=16M,pages=on");
    crowd(&f);
    draft_init(&d, 103, 1);
    draft_after(&d, 102);
    draft_fill(&d, ref_buffer(3, 0, MIB), "s", 1);
    draft_send(&d, &f);
    fake_send(&f, &schema_msg_f_buffer_seal, &seal, host.fd);
    jobs_end(&f, 5, (const int[]){0, ERR_DEVICE_MEMORY, ERR_BUFFER_LOST, 0});
    ck_assert_uint_eq(host.data[MIB - 1], 's');
    memfd_finish(&host);
    fake_stop(&f);
}
END_TEST

/* A job has filled a buffer, and waits for a copy of three chunks, the first of which hangs. The
 * next job in its stream begins after it was sent, not with the former one's fill. */
START_TEST(a_copy_that_lasts_lends_no_time_to_the_next_job)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    start(&f, "script=write:2=hang"); /* 1: the device's check */
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, 9 * MIB, false), 0);
    draft_init(&d, 1, 0);
    draft_fill(&d, ref_buffer(1, 0, 4096), "x", 1);
    draft_move(&d, OP_WRITE, ref_buffer(2, 0, 9 * MIB), 0);
    draft_send(&d, &f);
    draft_init(&d, 2, 1); /* its end shows that the worker has the former one, too */
    draft_after(&d, 1);
    draft_send(&d, &f);
    cancel(&f, 2);
    ck_assert_int_eq(fake_done(&f, 2, NULL), ERR_CANCELLED);
    const uint64_t sent_ns = clock_now_ns();
    draft_init(&d, 3, 0);
    draft_fill(&d, ref_buffer(1, 0, 4096), "y", 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 3, &done), 0);
    ck_assert_uint_ge(done.started_ns, sent_ns);
    fake_finish(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("behind");
    TCase *tc = tcase_create("behind");
    tcase_set_timeout(tc, 90);
    tcase_add_loop_test(tc, a_job_has_what_was_freed_until_it_ends, 0, 10);
    tcase_add_test(tc, a_job_cancelled_as_it_copied_keeps_no_job_waiting);
    tcase_add_test(tc, a_job_cancelled_as_it_copied_keeps_its_place);
    tcase_add_test(tc, a_seal_behind_jobs_keeps_no_job_waiting);
    tcase_add_test(tc, a_copy_that_lasts_lends_no_time_to_the_next_job);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
