/*
 * Jobs that wait for device memory, and jobs that would wait forever: gpud-worker as a process on a
 * simulated device of twelve MiB, or one of the CUDA driver's double, from which nothing can go to
 * the host.
 */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/shape.h"
#include "daemon/backend/backend.h"
#include "daemon/worker/copy/transfer.h"
#include "tests/unit/worker/rooms.h"

static void start(struct fake *f, const char *options)
{
    const char *args[] = {"--options", options, "--memory-limit", "12582912", "--spill-limit",
                          "0",         NULL};
    fake_start(f, "sim", args);
    ck_assert(!f->absent);
}

static void cancel(struct fake *f, uint64_t job)
{
    const struct msg_f_cancel msg = {.job = job};
    fake_send(f, &schema_msg_f_cancel, &msg, -1);
}

/* A job that is given up behind a waiting one has no memory: the waiting job fails when nothing
 * else runs, and the jobs behind both are served. _i 1: one of them began, within its tenant's
 * guarantee, and waits for it. All come in one packet, so that none ends before. */
START_TEST(a_job_given_up_keeps_no_job_waiting)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    unsigned left = 4;
    start(&f, "speed=0,pages=on");
    const struct msg_f_tenant sure = {.tenant = 2,
                                      .name = bytes_str("sure"),
                                      .hard = UINT64_MAX,
                                      .soft = UINT64_MAX,
                                      .guaranteed = ROOM_BYTES,
                                      .spilled = UINT64_MAX};
    fake_send(&f, &schema_msg_f_tenant, &sure, -1);
    room_fill(&f, 1, 1, 8);
    fake_packet_begin(&f);
    draft_init(&d, 100, 0);
    draft_fill(&d, ref_buffer(1, 0, ROOM_BYTES), "r", 1);
    draft_send(&d, &f);
    draft_init(&d, 101, 1); /* waits for what will not be there */
    draft_after(&d, 100);
    draft_fill(&d, ref_temp(draft_temp(&d, 6 * ROOM_BYTES), 6 * ROOM_BYTES), "a", 1);
    draft_send(&d, &f);
    draft_init(&d, 102, 1);
    draft_after(&d, 101);
    draft_fill(&d, ref_buffer(1, 0, ROOM_BYTES), "b", 1);
    draft_send(&d, &f);
    cancel(&f, 102);
    f.tenant = _i == 0 ? 1 : 2;
    draft_init(&d, 103, 0);
    draft_after(&d, 102);
    draft_fill(&d, ref_temp(draft_temp(&d, 4096), 4096), "c", 1);
    draft_send(&d, &f);
    fake_packet_end(&f);
    while (left > 0) {
        static const int CODE[] = {0, ERR_DEVICE_MEMORY, ERR_CANCELLED, 0};
        fake_expect(&f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done);
        ck_assert(done.job >= 100 && done.job <= 103);
        ck_assert_int_eq((int)done.code, CODE[done.job - 100]);
        left--;
    }
    fake_stop(&f);
}
END_TEST

/* A job that needs more than its tenant may have, more than there is, or more than the tenant's own
 * buffers can give, fails at once, though the device is busy with another tenant's job (which does
 * not end). With a deadline such a job waits, and lets others pass. */
START_TEST(impossible_requests_fail_on_a_busy_device)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct msg_w_waiting waiting;
    static const char *const options[] = {"speed=0,pages=on,script=read:2+=hang",
                                          "speed=0,pages=off,script=read:2+=hang"};
    start(&f, options[_i]); /* which reads once */
    const struct msg_f_tenant hard = {
        .tenant = 2, .name = bytes_str("hard"), .hard = 4 * ROOM_BYTES, .soft = UINT64_MAX};
    fake_send(&f, &schema_msg_f_tenant, &hard, -1);
    room_fill(&f, 1, 1, 2);
    room_fill(&f, 2, 11, 3);
    f.tenant = 1;
    for (uint64_t b = 1; b <= 2; b++) {
        draft_init(&d, 100 + b, (unsigned)b % 2);
        draft_move(&d, OP_READ, ref_buffer(b, 0, ROOM_BYTES), b * ROOM_BYTES);
        draft_send(&d, &f);
    }
    ck_assert_int_eq(room_temporaries(&f, 2, 200, 5 * ROOM_BYTES, &done), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr((const char *)done.text.data, "its memory_hard of 4194304"));
    ck_assert_int_eq(room_temporaries(&f, 2, 201, 2 * ROOM_BYTES, &done), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr((const char *)done.text.data, "raise its memory_spilled of 0"));
    ck_assert_int_eq(room_temporaries(&f, 3, 202, 13 * ROOM_BYTES, &done), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr((const char *)done.text.data, "the device has 12582912"));
    draft_init(&d, 203, 0);
    draft_fill(&d, ref_temp(draft_temp(&d, 13 * ROOM_BYTES), 13 * ROOM_BYTES), "x", 1);
    d.msg.deadline_ns = UINT64_MAX - 1;
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 203 && waiting.waits == 1);
    f.tenant = 3; /* on a stream that nothing hangs in */
    ck_assert_int_eq(fake_buffer(&f, 21, ROOM_BYTES, false), 0);
    draft_init(&d, 204, 2);
    draft_fill(&d, ref_buffer(21, 0, ROOM_BYTES), "x", 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 204, &done), 0);
    fake_finish(&f);
}
END_TEST

/* Returns the number of a job with this step in buffer 1, behind one that hangs, that is reported
 * late. On a busy machine the deadline can pass before the device has the job, and the job ends:
 * the next one has twice the time. */
static uint64_t late_behind_a_hang(struct fake *f, uint64_t job, int op, uint64_t size)
{
    uint64_t time = 30 * NS_PER_MS;
    for (;;) {
        struct job_draft d;
        struct msg_w_late late;
        struct msg_w_done done;
        draft_init(&d, job, 0);
        if (op == OP_FILL) {
            draft_fill(&d, ref_buffer(1, 0, size), "x", 1);
        } else {
            draft_move(&d, op, ref_buffer(1, 0, size), 0);
        }
        d.msg.deadline_ns = clock_now_ns() + time;
        draft_send(&d, f);
        unsigned kind;
        do {
            kind = fake_next(f);
        } while (fake_turns(kind)); /* a busy machine reports late that the first job runs */
        struct bytes frame = bytes_of(f->frame, f->size);
        if (kind == FRAME_KIND_W_LATE) {
            ck_assert_int_eq(proto_decode(&schema_msg_w_late, frame, &late, NULL), 0);
            ck_assert_uint_eq(late.job, job);
            return job;
        }
        ck_assert_uint_eq(kind, FRAME_KIND_W_DONE);
        ck_assert_int_eq(proto_decode(&schema_msg_w_done, frame, &done, NULL), 0);
        ck_assert_uint_eq(done.job, job);
        ck_assert_int_eq((int)done.code, ERR_DEADLINE);
        ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
        ck_assert_uint_lt(time, 30 * NS_PER_S);
        job++;
        time *= 2;
    }
}

/* Jobs behind one that hangs end at their deadlines without effects. A job that is in its stream
 * already cannot be taken back: its client is answered at the deadline all the same. */
START_TEST(deadlines_hold_until_a_job_begins)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    start(&f, "script=fill:2=hang");
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_init(&d, 1, 0);
    draft_fill(&d, ref_buffer(1, 0, 4096), "x", 1);
    draft_send(&d, &f);
    for (uint64_t job = 2; job <= 6; job++) {
        draft_init(&d, job, (unsigned)job % 2);
        draft_after(&d, job == 2 ? 1 : job - 1);
        draft_fill(&d, ref_buffer(1, 0, 4096), "x", 1);
        d.msg.deadline_ns = clock_now_ns() + 30 * NS_PER_MS;
        draft_send(&d, &f);
    }
    for (uint64_t job = 2; job <= 6; job++) {
        ck_assert_int_eq(fake_done(&f, job, &done), ERR_DEADLINE);
        ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
    }
    uint64_t stuck = late_behind_a_hang(&f, 7, OP_FILL, 4096);
    draft_init(&d, stuck + 1, 1);
    draft_fill(&d, ref_buffer(1, 0, 4096), "x", 1);
    d.msg.deadline_ns = 1;
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, stuck + 1, &done), ERR_DEADLINE);
    draft_init(&d, stuck + 2, 1); /* others go on */
    draft_fill(&d, ref_buffer(1, 0, 4096), "x", 1);
    d.msg.deadline_ns = clock_now_ns() + 600 * NS_PER_S;
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, stuck + 2, &done), 0);
    fake_finish(&f);
}
END_TEST

/* A large copy goes by a queue of copies, not by the stream of its job. Behind one that hangs there
 * it cannot be taken back either. */
START_TEST(deadlines_hold_behind_copies)
{
    struct fake f;
    struct job_draft d;
    const int op = _i == 0 ? OP_WRITE : OP_READ;
    start(&f, _i == 0 ? "script=write:2=hang" : "script=read:2=hang"); /* 1: the device's check */
    ck_assert_int_eq(fake_buffer(&f, 1, 2 * ROOM_BYTES, true), 0);
    draft_init(&d, 1, 1);
    draft_move(&d, op, ref_buffer(1, 0, 2 * ROOM_BYTES), 0);
    draft_send(&d, &f);
    (void)late_behind_a_hang(&f, 2, op, 2 * ROOM_BYTES);
    fake_finish(&f);
}
END_TEST

/* A job that waits for memory, behind one that hangs, is refused at its deadline. */
START_TEST(deadlines_hold_behind_what_hangs)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    start(&f, "script=fill:2=hang");
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_init(&d, 1, 0);
    draft_fill(&d, ref_buffer(1, 0, 4096), "x", 1);
    draft_send(&d, &f);
    draft_init(&d, 2, 1);
    draft_after(&d, 1);
    draft_fill(&d, ref_temp(draft_temp(&d, 13 * ROOM_BYTES), 13 * ROOM_BYTES), "x", 1);
    d.msg.deadline_ns = clock_now_ns() + 30 * NS_PER_MS;
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 2, &done), ERR_DEADLINE);
    ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
    fake_finish(&f);
}
END_TEST

/* The work in a stream would take longer than a job has until its deadline: the job is not put
 * behind it, and ends without effects. */
START_TEST(a_deadline_is_not_put_behind_what_takes_longer)
{
    enum { STEPS = 64 }; /* of a MiB: together they take milliseconds */
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    start(&f, "script=fill:2=hang");
    ck_assert_int_eq(fake_buffer(&f, 1, ROOM_BYTES, false), 0);
    draft_init(&d, 1, 0);
    for (unsigned i = 0; i < STEPS; i++) {
        draft_fill(&d, ref_buffer(1, 0, ROOM_BYTES), "x", 1);
    }
    draft_send(&d, &f);
    draft_init(&d, 2, 0);
    draft_fill(&d, ref_buffer(1, 0, 4096), "x", 1);
    d.msg.deadline_ns = clock_now_ns() + 3 * NS_PER_MS;
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 2, &done), ERR_DEADLINE);
    ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
    fake_finish(&f);
}
END_TEST

/* The frames of buffer 3, of the job in it and of buffer `freed` (0: none) come next, in any order:
 * the large buffer does not have all of its zeros yet. */
static void served_before_the_large(struct fake *f, uint64_t job, uint64_t freed)
{
    bool made = false;
    bool done = false;
    bool dropped = freed == 0;
    while (!made || !done || !dropped) {
        struct msg_w_buffer b;
        struct msg_w_done end;
        unsigned kind = fake_next(f);
        struct bytes frame = bytes_of(f->frame, f->size);
        if (kind == FRAME_KIND_W_BUFFER) {
            ck_assert_int_eq(proto_decode(&schema_msg_w_buffer, frame, &b, NULL), 0);
            ck_assert(b.id == 3 ? !made : b.id == freed && !dropped);
            ck_assert_int_eq((int)b.code, 0);
            made = made || b.id == 3;
            dropped = dropped || b.id == freed;
        } else if (kind == FRAME_KIND_W_DONE) {
            ck_assert_int_eq(proto_decode(&schema_msg_w_done, frame, &end, NULL), 0);
            ck_assert_uint_eq(end.job, job);
            ck_assert_int_eq((int)end.code, 0);
            done = true;
        } else {
            ck_assert_msg(fake_turns(kind) || kind == FRAME_KIND_W_WAITING ||
                              kind == FRAME_KIND_W_TENANT,
                          "frame %u", kind);
        }
    }
}

/* Buffers come and go, so that the next of their size need no new memory: their zeros begin at
 * once. */
static void leave_mapped(struct fake *f, uint64_t count, uint64_t size)
{
    const uint64_t first = 100;
    for (uint64_t id = first; id < first + count; id++) {
        ck_assert_int_eq(fake_buffer(f, id, size, false), 0);
    }
    for (uint64_t id = first; id < first + count; id++) {
        const struct msg_f_buffer_free drop = {.id = id};
        fake_send(f, &schema_msg_f_buffer_free, &drop, -1);
    }
}

/* FAULT 45: large buffers are created while others work
 * required: zeros go in pieces of about a millisecond, tenants in turn: another tenant's buffer
 *   and job wait for two pieces at most
 * defence: `worker/copy/transfer.c`: zero_some, zero_next
 * also: `worker_waiting_test`: late_zeros_come_in_turns_too
 * mutants: zeros-at-once */
/* Zeros for a large buffer go in pieces: another tenant's buffer behind it, and a job that uses
 * that, do not wait for all of them. A buffer that is freed meanwhile is zeroed no further, and no
 * tenant reads its bytes. */
START_TEST(tenants_take_turns_with_zeros)
{
    enum { PIECES = 12 };
    const uint64_t large = PIECES * (UINT64_C(32) << 20);
    struct fake f;
    struct job_draft d;
    struct msg_w_buffer made;
    const struct msg_f_buffer_free drop = {.id = 2};
    fake_start(&f, "sim", NULL);
    leave_mapped(&f, 2, large);
    memset(f.output.data, 0xff, 4096);
    fake_packet_begin(&f);
    for (uint64_t id = 1; id <= 3; id++) {
        const struct msg_f_buffer_create create = {
            .id = id, .size = id == 3 ? 4096 : large, .zero = 1, .tenant = id == 3 ? 2 : 1};
        fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    }
    fake_send(&f, &schema_msg_f_buffer_free, &drop, -1);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_READ, ref_buffer(3, 0, 4096), 0);
    draft_send(&d, &f);
    fake_packet_end(&f);
    served_before_the_large(&f, 1, 2); /* buffer 2 was freed: nothing is left to be done */
    fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &made);
    ck_assert_uint_eq(made.id, 1);
    for (unsigned i = 0; i < 4096; i++) {
        ck_assert_uint_eq(f.output.data[i], 0);
    }
    fake_stop(&f);
}
END_TEST

/* The same for zeros of a buffer that had no room on the device when it was created. */
START_TEST(late_zeros_come_in_turns_too)
{
    enum { PIECES = 12 };
    const uint64_t large = PIECES * (UINT64_C(32) << 20);
    const char *const args[] = {"--memory-limit", "536870912", "--spill-limit", "536870912", NULL};
    struct fake f;
    struct job_draft d;
    struct msg_w_done done = {0};
    fake_start(&f, "sim", args);
    ck_assert_int_eq(fake_buffer(&f, 1, large, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, large, true), 0);
    fake_packet_begin(&f);
    f.tenant = 1;
    draft_init(&d, 1, 0);
    draft_move(&d, OP_READ, ref_buffer(2, large - 4096, 4096), 0);
    draft_send(&d, &f);
    const struct msg_f_buffer_create create = {.id = 3, .size = 4096, .zero = 1, .tenant = 2};
    fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    draft_init(&d, 2, 1);
    draft_move(&d, OP_READ, ref_buffer(3, 0, 4096), 8192);
    draft_send(&d, &f);
    fake_packet_end(&f);
    memset(f.output.data, 0xff, 4096);
    served_before_the_large(&f, 2, 0);
    ck_assert_int_eq(fake_done(&f, 1, &done), 0);
    for (unsigned i = 0; i < 4096; i++) {
        ck_assert_uint_eq(f.output.data[i], 0);
    }
    fake_stop(&f);
}
END_TEST

static int restore(struct fake *f, uint64_t id, uint64_t size)
{
    const struct msg_f_buffer_restore msg = {.id = id, .size = size};
    struct msg_w_buffer made;
    struct memfd host = MEMFD_NONE;
    ck_assert_int_eq(memfd_create_sealed("host", (size_t)size, &host, NULL), 0);
    memset(host.data, 0x5a, (size_t)size);
    fake_send(f, &schema_msg_f_buffer_restore, &msg, host.fd);
    memfd_finish(&host);
    fake_expect(f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &made);
    return (int)made.code;
}

/* A buffer that is restored as a whole needs no zeros before; the bytes behind its end do. */
START_TEST(restored_bytes_need_no_zeros)
{
    const char *const args[] = {"--options", "speed=0,script=fill:*=fail", NULL};
    struct fake f;
    struct job_draft d;
    fake_start(&f, "sim", args);
    ck_assert_int_eq(restore(&f, 1, 1 << 20), 0);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
    ck_assert_uint_eq(f.output.data[4095], 0x5a);
    ck_assert_int_ne(restore(&f, 2, (1 << 20) - 1), 0);
    fake_stop(&f);
}
END_TEST

/* The driver gets memory back when nothing runs. A job that was cancelled behind the one that waits
 * for this memory does not count as running, nor does a job behind it that has not begun. */
START_TEST(a_cancelled_job_holds_up_no_memory)
{
    static const char PTX[] = ".version 8.0\n.target sm_80\n.address_size 64\n"
                              ".visible .entry fake_sleep(.param .u32 ms)\n{\n ret;\n}\n";
    static const char *const args[] = {
        "--memory-limit", "67108864", "--spill-limit", "0", "--managed-limit", "33554432", NULL};
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct msg_w_buffer made;
    struct compile_response compiled;
    struct memfd memory = MEMFD_NONE;
    const uint32_t ms = 5000; /* longer than anything here takes */
    const struct proto_ref value = ref_value(&ms, sizeof ms);
    const struct msg_f_buffer_create create = {.id = 1, .size = 32 * ROOM_BYTES, .managed = 1};
    const struct msg_f_buffer_free drop = {.id = 1};
    if (backend_find("cuda") == NULL) {
        return;
    }
    (void)setenv("LD_LIBRARY_PATH", GPUD_FAKECUDA, 1);
    fake_start(&f, "cuda", args);
    ck_assert(!f.absent);
    fake_compile("cuda", f.arch, LANG_PTX, "sleep.ptx", bytes_str(PTX), &compiled, &memory);
    ck_assert_msg(compiled.code == 0, "%.*s", (int)compiled.text.size, compiled.text.data);
    ck_assert_int_eq(fake_module(&f, 7, compiled.binary), 0);
    memfd_finish(&memory);
    fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &made);
    ck_assert_int_eq((int)made.code, 0);
    draft_init(&d, 100, 0);
    draft_launch(&d, 7, "fake_sleep", 1, &value, 1);
    draft_send(&d, &f);
    fake_send(&f, &schema_msg_f_buffer_free, &drop, -1);
    for (uint64_t job = 101; job <= 103; job++) {
        uint64_t bytes = job == 101 ? 48 * ROOM_BYTES : 4096;
        draft_init(&d, job, 1);
        if (job > 101) {
            draft_after(&d, job - 1);
        }
        draft_fill(&d, ref_temp(draft_temp(&d, bytes), bytes), "w", 1);
        draft_send(&d, &f);
    }
    cancel(&f, 102);
    for (unsigned left = 4; left > 0; left--) {
        unsigned kind = fake_next(&f);
        while (fake_turns(kind) || kind == FRAME_KIND_W_WAITING) {
            kind = fake_next(&f);
        }
        ck_assert_uint_eq(kind, FRAME_KIND_W_DONE);
        ck_assert_int_eq(proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &done, NULL),
                         0);
        ck_assert_int_eq((int)done.code, done.job == 102 ? ERR_CANCELLED : 0);
    }
    fake_stop(&f);
}
END_TEST

/* FAULT other: a tenant has much memory zeroed, and sends jobs that use it
 * required: the front hears that they wait, so no other worker waits for them
 * defence: `worker/spill/spill.c`: buffers_late
 * mutants: late-content */
START_TEST(a_job_waits_for_the_zeros_of_its_buffer)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_waiting waiting;
    const uint64_t bytes = 2 * TRANSFER_PIECE;
    const struct msg_f_buffer_create create = {.id = 9, .size = bytes, .zero = 1, .tenant = 1};
    const char *args[] = {"--options", "speed=0,script=fill:2+=hang", "--memory-limit", "134217728",
                          NULL};
    fake_start(&f, "sim", args);
    ck_assert(!f.absent);
    f.tenant = 1;
    fake_send(&f, &schema_msg_f_buffer_create, &create, -1);
    draft_init(&d, 100, 1);
    draft_fill(&d, ref_buffer(9, bytes - 16, 16), "x", 1);
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 100 && waiting.waits == 1 && waiting.bytes == 0);
    fake_finish(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("waiting");
    TCase *tc = tcase_create("waiting");
    tcase_set_timeout(tc, 90);
    tcase_add_loop_test(tc, a_job_given_up_keeps_no_job_waiting, 0, 2);
    tcase_add_loop_test(tc, impossible_requests_fail_on_a_busy_device, 0, 2);
    tcase_add_test(tc, a_cancelled_job_holds_up_no_memory);
    tcase_add_test(tc, deadlines_hold_until_a_job_begins);
    tcase_add_loop_test(tc, deadlines_hold_behind_copies, 0, 2);
    tcase_add_test(tc, deadlines_hold_behind_what_hangs);
    tcase_add_test(tc, a_deadline_is_not_put_behind_what_takes_longer);
    tcase_add_test(tc, tenants_take_turns_with_zeros);
    tcase_add_test(tc, late_zeros_come_in_turns_too);
    tcase_add_test(tc, restored_bytes_need_no_zeros);
    tcase_add_test(tc, a_job_waits_for_the_zeros_of_its_buffer);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
