/*
 * Memory that is mapped on a thread: what waits for it, what does not, and what happens when the
 * device gives none. gpud-worker as a process on a simulated device whose mapping calls wait for
 * what runs.
 */
#include <check.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/shape.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/worker/rooms.h"

#define MIB    ((uint64_t)1 << 20)
#define SMALL  UINT64_C(4096)
#define LARGE  (64 * MIB)
#define MODULE 7u

static struct fake f;
static char gate[64];

static void gate_set(bool open)
{
    if (open) {
        int fd = creat(gate, 0600);
        ck_assert_int_ge(fd, 0);
        (void)close(fd);
    } else {
        (void)unlink(gate);
    }
}

/* A kernel takes a second for each work item, unless the gate is open. */
static void setup(void)
{
    char options[256];
    const char *args[] = {"--options", options, NULL};
    (void)snprintf(gate, sizeof gate, "/tmp/gpud-mapping-%d", (int)getpid());
    (void)snprintf(options, sizeof options, "items=1,map_us=50,gate=%s", gate);
    gate_set(true);
    fake_start(&f, "sim", args);
    ck_assert(!f.absent);
    fake_builtin(&f, "sim", "axpy", MODULE);
    f.tenant = 2;
    ck_assert_int_eq(fake_buffer(&f, 2, SMALL, false), 0);
    f.tenant = 1;
    ck_assert_int_eq(fake_buffer(&f, 1, SMALL, true), 0);
}

static void teardown(void)
{
    fake_finish(&f);
    gate_set(false);
}

/* Job 1 runs until the gate opens. */
static void occupy(void)
{
    struct job_draft d;
    struct msg_w_started started;
    static const float a = 2;
    static const uint64_t n = SMALL / sizeof a;
    const struct proto_ref args[] = {
        ref_value(&a, sizeof a), ref_as(ref_buffer(1, 0, SMALL), ACCESS_IN),
        ref_as(ref_buffer(1, 0, SMALL), ACCESS_INOUT), ref_value(&n, sizeof n)};
    gate_set(false);
    f.tenant = 1;
    draft_init(&d, 1, 0);
    draft_launch(&d, MODULE, "axpy_f32", n, args, 4);
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_STARTED, &schema_msg_w_started, &started);
    ck_assert_uint_eq(started.job, 1);
}

/* A job that needs memory which is not mapped. */
static void large_job(uint64_t job, uint64_t deadline_ns)
{
    struct job_draft d;
    draft_init(&d, job, 1);
    draft_fill(&d, ref_temp(draft_temp(&d, LARGE), LARGE), "a", 1);
    if (deadline_ns != 0) {
        d.msg.deadline_ns = deadline_ns;
    }
    draft_send(&d, &f);
}

static void expect_waiting(uint64_t job, bool waits)
{
    struct msg_w_waiting waiting;
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert_uint_eq(waiting.job, job);
    ck_assert_uint_eq(waiting.waits, waits);
}

/* A job of another tenant, with memory that is there. */
static void small_job(uint64_t job)
{
    struct job_draft d;
    struct msg_w_done done;
    f.tenant = 2;
    draft_init(&d, job, 2);
    draft_fill(&d, ref_buffer(2, 0, SMALL), "b", 1);
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done);
    ck_assert_uint_eq(done.job, job);
    ck_assert_int_eq((int)done.code, 0);
    f.tenant = 1;
}

static void expect_end(uint64_t job, int code)
{
    struct msg_w_done done;
    fake_expect(&f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done);
    ck_assert_uint_eq(done.job, job);
    ck_assert_int_eq((int)done.code, code);
}

/* FAULT 47: the driver waits for the device while it maps memory
 * required: only jobs that need this memory wait; others pass them
 * defence: `worker/spill/waiting.c`: blocked, mapping; `worker/memory/mapper.c`
 * also: `worker_mapping_test`: a_buffer_that_is_being_mapped_blocks_no_other
 * mutants: maps-pass, mapped-first */
/* The mapping calls wait for job 1, which does not end. Jobs that need no new memory do not. */
START_TEST(a_job_that_is_being_mapped_blocks_no_other)
{
    struct msg_w_done done;
    unsigned ends = 0;
    occupy();
    large_job(2, 0);
    expect_waiting(2, true);
    small_job(3);
    small_job(4);
    gate_set(true);
    while (ends < 2) {
        unsigned kind = fake_next(&f);
        if (kind == FRAME_KIND_W_DONE) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &done, NULL), 0);
            ck_assert(done.job <= 2 && done.code == 0);
            ends++;
        } else {
            ck_assert(kind == FRAME_KIND_W_WAITING || fake_turns(kind));
        }
    }
}
END_TEST

START_TEST(a_job_that_is_being_mapped_can_be_cancelled)
{
    const struct msg_f_cancel cancel = {.job = 2};
    occupy();
    large_job(2, 0);
    expect_waiting(2, true);
    fake_send(&f, &schema_msg_f_cancel, &cancel, -1);
    expect_end(2, ERR_CANCELLED);
    small_job(3);
    gate_set(true);
    expect_end(1, 0);
    large_job(4, 0);
    ck_assert_int_eq(fake_done(&f, 4, NULL), 0);
}
END_TEST

START_TEST(a_job_that_is_being_mapped_ends_at_its_deadline)
{
    struct msg_w_done done;
    occupy();
    large_job(2, clock_now_ns() + 50 * NS_PER_MS);
    unsigned kind = fake_next(&f);
    while (kind == FRAME_KIND_W_WAITING) {
        kind = fake_next(&f);
    }
    ck_assert_uint_eq(kind, FRAME_KIND_W_DONE);
    ck_assert_int_eq(proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &done, NULL), 0);
    ck_assert_uint_eq(done.job, 2);
    ck_assert_int_eq((int)done.code, ERR_DEADLINE);
    small_job(3);
    gate_set(true);
    expect_end(1, 0);
}
END_TEST

/* A buffer is reported when it is mapped and zeroed; a job that names it waits. */
START_TEST(a_buffer_that_is_being_mapped_blocks_no_other)
{
    const struct msg_f_buffer_create create = {.id = 9, .size = LARGE, .zero = 1, .tenant = 1};
    struct msg_w_buffer made;
    struct job_draft d;
    occupy();
    fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    draft_init(&d, 2, 1);
    draft_fill(&d, ref_buffer(9, 0, SMALL), "b", 1);
    draft_send(&d, &f);
    expect_waiting(2, true);
    small_job(3);
    gate_set(true);
    unsigned seen = 0;
    while (seen < 7) { /* the ends of jobs 1 and 2, and the buffer */
        unsigned kind = fake_next(&f);
        if (kind == FRAME_KIND_W_DONE) {
            struct msg_w_done done;
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &done, NULL), 0);
            ck_assert_int_eq((int)done.code, 0);
            seen |= (unsigned)done.job;
        } else if (kind == FRAME_KIND_W_BUFFER) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_buffer, bytes_of(f.frame, f.size), &made, NULL), 0);
            ck_assert_int_eq((int)made.code, 0);
            seen |= 4u;
        } else {
            ck_assert(kind == FRAME_KIND_W_WAITING || fake_turns(kind));
        }
    }
}
END_TEST

/* FAULT 13: memory that was handed out cannot be mapped
 * required: its job gives it back and is tried again or refused; the device is not asked again
 *   at once
 * defence: `pool/late.c`: pool_failed, ask_less; `worker/spill/waiting.c`: mapping
 * also: `worker_mapping_test`: memory_that_cannot_be_mapped_is_refused; `test_pool_late`:
 *   each_call_may_fail, a_full_device_refuses_until_the_next_tick
 * mutants: asked-again */
/* The device has 8 MiB, not the 12 of its limit: what does not fit goes to the host. */
START_TEST(a_device_that_gives_less_than_its_limit_serves)
{
    struct fake *other = &f;
    fake_finish(other);
    ck_assert(room_start_with(other, 0, "speed=0,pages=on,script=alloc:5+=nomem", "33554432"));
    room_fill(other, 1, 1, 20);
    room_check_all(other, 1, 1, 20);
    room_check_all(other, 1, 1, 20);
}
END_TEST

/* The same without a way to the host: requests are refused, and the worker goes on. */
START_TEST(memory_that_cannot_be_mapped_is_refused)
{
    struct msg_w_done done;
    fake_finish(&f);
    ck_assert(room_start_with(&f, 0, "speed=0,pages=on,script=alloc:5+=nomem", "0"));
    f.tenant = 1;
    ck_assert_int_eq(fake_buffer(&f, 1, 10 * MIB, false), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(room_temporaries(&f, 1, 1, 10 * MIB, &done), ERR_DEVICE_MEMORY);
    ck_assert_int_eq(room_temporaries(&f, 1, 2, 4 * MIB, &done), 0);
    room_fill(&f, 1, 2, 7);
    room_check_all(&f, 1, 2, 7);
    ck_assert_int_eq(fake_buffer(&f, 10, 4 * MIB, false), ERR_DEVICE_MEMORY);
}
END_TEST

SUITE_MAIN_IN("mapping", setup, teardown, a_job_that_is_being_mapped_blocks_no_other,
              a_job_that_is_being_mapped_can_be_cancelled,
              a_job_that_is_being_mapped_ends_at_its_deadline,
              a_buffer_that_is_being_mapped_blocks_no_other,
              a_device_that_gives_less_than_its_limit_serves,
              memory_that_cannot_be_mapped_is_refused)
