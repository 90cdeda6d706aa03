/* A job whose kernels wait between them, for its copies and behind another job of its stream:
 * gpud-worker as a process on a simulated device. */
#include <check.h>
#include <stdlib.h>

#include "common/shape.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/fake_front.h"

#define MIB    ((uint64_t)1 << 20)
#define LARGE  (20 * MIB) /* five pieces of a copy, two of which are under way at once */
#define SMALL  UINT64_C(4096)
#define MODULE 7u

/* Each command takes 300 ms. The first write is the worker's own, when it opens the device. */
static void start(struct fake *f, const char *script)
{
    const char *args[] = {"--options", script, NULL};
    fake_start(f, "sim", args);
    ck_assert(!f->absent);
    fake_builtin(f, "sim", "axpy", MODULE);
    ck_assert_int_eq(fake_buffer(f, 1, SMALL, false), 0);
    ck_assert_int_eq(fake_buffer(f, 2, LARGE, false), 0);
}

static void launch(struct job_draft *d, uint64_t buffer)
{
    static const float a = 2;
    static const uint64_t n = SMALL / sizeof a;
    const struct proto_ref args[] = {
        ref_value(&a, sizeof a), ref_as(ref_buffer(buffer, 0, SMALL), ACCESS_IN),
        ref_as(ref_buffer(1, 0, SMALL), ACCESS_INOUT), ref_value(&n, sizeof n)};
    draft_launch(d, MODULE, "axpy_f32", n, args, 4);
}

/* Job 1: a kernel, a long copy beside it, and a kernel that needs both; job 2: a kernel, which
 * comes in the same stream between these two. */
static void both(struct fake *f)
{
    struct job_draft d;
    struct msg_w_started started;
    draft_init(&d, 1, 0);
    launch(&d, 1);
    draft_move(&d, OP_WRITE, ref_buffer(2, 0, LARGE), 0);
    launch(&d, 2);
    draft_send(&d, f);
    fake_expect(f, FRAME_KIND_W_STARTED, &schema_msg_w_started, &started);
    ck_assert_uint_eq(started.job, 1);
    draft_init(&d, 2, 0);
    launch(&d, 1);
    draft_send(&d, f);
}

static void expect_pause(struct fake *f)
{
    struct msg_w_paused paused;
    fake_expect(f, FRAME_KIND_W_PAUSED, &schema_msg_w_paused, &paused);
    ck_assert_uint_eq(paused.job, 1);
}

/* FAULT 8: an endless kernel comes between two kernels of another job in the same stream
 * required: the other job is paused: it does not stop the time limit of the endless one, and
 *   its own does not count
 * defence: `worker/run/completion.c`: graph_runs, watch_running; `front/model/flight.c`:
 *   job_make_way
 * also: `worker_paused_test`: a_job_that_goes_on_runs_again; `front_wake_test`:
 *   who_waits_between_its_kernels_gives_no_time
 * mutants: between-kernels */
/* Its time is not that of the job that runs instead, and the next front gets no report that it
 * runs. */
START_TEST(a_job_between_its_kernels_does_not_run)
{
    struct fake f;
    struct msg_w_inventory_job inventory;
    const struct msg_f_inventory ask = {.nonce = 5};
    start(&f, "launch_ns=300000000,script=write:2=hang");
    both(&f);
    expect_pause(&f);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0);
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_READY, &schema_msg_w_ready, &(struct msg_w_ready){0});
    unsigned kind = fake_next(&f);
    while (kind == FRAME_KIND_W_INVENTORY_BUFFER || kind == FRAME_KIND_W_INVENTORY_MODULE) {
        kind = fake_next(&f);
    }
    ck_assert_uint_eq(kind, FRAME_KIND_W_INVENTORY_JOB);
    ck_assert_int_eq(
        proto_decode(&schema_msg_w_inventory_job, bytes_of(f.frame, f.size), &inventory, NULL), 0);
    ck_assert_uint_eq(inventory.job, 1);
    kind = fake_next(&f);
    ck_assert_uint_ne(kind, FRAME_KIND_W_STARTED);
    fake_stop(&f);
}
END_TEST

START_TEST(a_job_that_goes_on_runs_again)
{
    struct fake f;
    struct msg_w_started started;
    start(&f, "launch_ns=300000000");
    both(&f);
    expect_pause(&f);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0); /* three pieces of the copy are still to come */
    fake_expect(&f, FRAME_KIND_W_STARTED, &schema_msg_w_started, &started);
    ck_assert_uint_eq(started.job, 1);
    ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
    fake_stop(&f);
}
END_TEST

SUITE_MAIN("paused", a_job_between_its_kernels_does_not_run, a_job_that_goes_on_runs_again)
