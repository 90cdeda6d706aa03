/* A worker's memory, seen by its front: a device that is full makes room. On simulated devices and
 * on OpenCL. */
#include <check.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/clock.h"
#include "tests/unit/worker/rooms.h"

/* ---- more buffers than the device holds ------------------------------------------------------ */

#define ROOM_BUFFERS 30u

static void room_pool(struct fake *f, struct msg_w_pool *ret_pool)
{
    struct msg_f_pool ask = {0};
    fake_send(f, &schema_msg_f_pool, &ask, -1);
    fake_expect(f, FRAME_KIND_W_POOL, &schema_msg_w_pool, ret_pool);
}

/* Buffers of two and a half times the device's memory are written and read in turn; a sealed one
 * and those that were never written need no room on the host. */
START_TEST(buffers_move_to_the_host_and_back)
{
    struct fake f;
    struct msg_w_pool pool;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    for (unsigned round = 1; round <= 3; round++) {
        for (uint64_t b = 1; b <= ROOM_BUFFERS; b++) {
            if (round == 1) {
                ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, b % 2 == 0), 0);
            }
            room_write(&f, b, round);
        }
        for (uint64_t b = ROOM_BUFFERS; b > 0; b--) {
            room_check(&f, b, round);
        }
    }
    room_pool(&f, &pool);
    ck_assert_uint_ge(pool.spilled, (ROOM_BUFFERS - 12) * ROOM_BYTES);
    ck_assert_uint_eq(pool.spill_limit, 33554432);
    ck_assert_uint_gt(pool.returns, ROOM_BUFFERS);
    for (uint64_t b = 1; b <= ROOM_BUFFERS; b++) {
        struct msg_f_buffer_free msg = {.id = b};
        fake_send(&f, &schema_msg_f_buffer_free, &msg, -1);
    }
    room_pool(&f, &pool);
    ck_assert_uint_eq(pool.spilled, 0);
    ck_assert_uint_eq(pool.used, 0);
    fake_stop(&f);
}
END_TEST

/* Zeros come as zeros though the device had no room for them when they were asked for. */
START_TEST(zeros_wait_for_room)
{
    struct fake f;
    static const uint8_t zeros[ROOM_BYTES];
    struct msg_w_done done;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    for (uint64_t b = 1; b <= ROOM_BUFFERS; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, true), 0);
    }
    for (uint64_t b = 1; b <= ROOM_BUFFERS; b++) {
        struct job_draft d;
        memset(f.output.data, 0xa5, ROOM_BYTES);
        draft_init(&d, b, 0);
        draft_move(&d, OP_READ, ref_buffer(b, 0, ROOM_BYTES), 0);
        draft_send(&d, &f);
        int code = fake_done(&f, b, &done);
        ck_assert_msg(code == 0, "%.*s", (int)done.text.size, done.text.data);
        ck_assert_int_eq(memcmp(f.output.data, zeros, ROOM_BYTES), 0);
    }
    /* and no more than there is room for in all */
    for (uint64_t b = ROOM_BUFFERS + 1; b <= 44; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, true), 0);
    }
    ck_assert_int_eq(fake_buffer(&f, 50, ROOM_BYTES, true), ERR_DEVICE_MEMORY);
    fake_stop(&f);
}
END_TEST

static void room_copy(struct fake *f, uint64_t job, unsigned stream, uint64_t to, uint64_t from)
{
    struct job_draft d;
    draft_init(&d, job, stream);
    draft_copy(&d, ref_buffer(to, 0, ROOM_BYTES), ref_buffer(from, 0, ROOM_BYTES));
    draft_send(&d, f);
}

/* Many jobs at once need more than the device has: each waits until it gets its memory, and all
 * results are right. */
START_TEST(jobs_wait_for_room)
{
    struct fake f;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    for (uint64_t b = 1; b <= ROOM_BUFFERS; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, false), 0);
        room_write(&f, b, 1);
    }
    unsigned count = ROOM_BUFFERS / 2;
    for (uint64_t b = 1; b <= count; b++) { /* the second half takes over what the first has */
        room_copy(&f, 5000 + b, (unsigned)b % 2, count + b, b);
    }
    for (unsigned done = 0; done < count;) {
        struct msg_w_done msg;
        unsigned kind = fake_next(&f);
        if (kind == FRAME_KIND_W_DONE) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &msg, NULL), 0);
            ck_assert_msg(msg.code == 0, "%.*s", (int)msg.text.size, msg.text.data);
            done++;
        }
    }
    for (uint64_t b = 1; b <= count; b++) {
        static uint8_t expected[ROOM_BYTES];
        struct job_draft d;
        draft_init(&d, 6000 + b, 0);
        draft_move(&d, OP_READ, ref_buffer(count + b, 0, ROOM_BYTES), 0);
        draft_send(&d, &f);
        ck_assert_int_eq(fake_done(&f, 6000 + b, NULL), 0);
        room_words(expected, b, 1);
        ck_assert_int_eq(memcmp(f.output.data, expected, ROOM_BYTES), 0);
    }
    fake_stop(&f);
}
END_TEST

/* A job that can never have its memory fails and says why. One with a deadline waits, others pass,
 * and freed memory helps it. */
START_TEST(a_job_without_room_says_why)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct msg_w_waiting waiting;
    if (!room_start(&f, _i, "4194304")) {
        return;
    }
    for (uint64_t b = 1; b <= 14; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, false), 0);
        room_write(&f, b, 1);
    }
    for (unsigned i = 0; i < 2; i++) {
        draft_init(&d, 100 + i, 0);
        uint64_t t = draft_temp(&d, 6 * ROOM_BYTES);
        draft_fill(&d, ref_temp(t, 6 * ROOM_BYTES), "x", 1);
        d.msg.deadline_ns = i == 0 ? UINT64_MAX : UINT64_MAX - 1;
        draft_send(&d, &f);
        if (i == 0) {
            ck_assert_int_eq(fake_done(&f, 100, &done), ERR_DEVICE_MEMORY);
            ck_assert_ptr_nonnull(strstr((const char *)done.text.data,
                                         "tenant gpud wants 6291456 bytes more of the device; "));
        }
    }
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 101 && waiting.waits == 1);
    room_check(&f, 3, 1);
    for (uint64_t b = 1; b <= 8; b++) {
        struct msg_f_buffer_free msg = {.id = b};
        fake_send(&f, &schema_msg_f_buffer_free, &msg, -1);
    }
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 101 && waiting.waits == 0);
    ck_assert_int_eq(fake_done(&f, 101, NULL), 0);
    room_check(&f, 14, 1);
    fake_stop(&f);
}
END_TEST

START_TEST(a_deadline_ends_the_wait_for_room)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct msg_w_waiting waiting;
    if (!room_start(&f, _i, "4194304")) {
        return;
    }
    for (uint64_t b = 1; b <= 14; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, false), 0);
        room_write(&f, b, 1);
    }
    fake_packet_begin(&f); /* both are there before the deadline, however busy the host is */
    draft_init(&d, 100, 0);
    uint64_t t = draft_temp(&d, 6 * ROOM_BYTES);
    draft_fill(&d, ref_temp(t, 6 * ROOM_BYTES), "x", 1);
    d.msg.deadline_ns = clock_now_ns() + 2 * NS_PER_S;
    draft_send(&d, &f);
    /* a job that comes after it waits with it, and does not fail */
    draft_init(&d, 101, 1);
    draft_after(&d, 100);
    draft_fill(&d, ref_buffer(1, 0, ROOM_BYTES), "y", 1);
    draft_send(&d, &f);
    fake_packet_end(&f);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 101 && waiting.waits == 1);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 100 && waiting.waits == 0);
    ck_assert_int_eq(fake_done(&f, 100, &done), ERR_DEADLINE);
    const char *text = (const char *)done.text.data;
    ck_assert_ptr_nonnull(strstr(text, "its deadline passed while it waited for device memory: "));
    ck_assert_ptr_nonnull(
        strstr(text, "tenant gpud wants 6291456 bytes more of the device; largest "));
    ck_assert_ptr_nonnull(strstr(text, " wait for what runs, "));
    ck_assert_ptr_nonnull(strstr(text, " could move to the host; "));
    ck_assert_ptr_nonnull(strstr(text, "raise spill_limit"));
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert_int_eq(fake_done(&f, 101, NULL), 0);
    fake_stop(&f);
}
END_TEST

/* ---- buffers that are on the host ------------------------------------------------------------ */

static int seal(struct fake *f, uint64_t buffer, struct memfd *ret_host)
{
    struct err e = ERR_INIT;
    const struct msg_f_buffer_seal msg = {.id = buffer, .size = ROOM_BYTES};
    struct msg_w_buffer answer;
    ck_assert_int_eq(memfd_create_sealed("host", ROOM_BYTES, ret_host, &e), 0);
    fake_send(f, &schema_msg_f_buffer_seal, &msg, ret_host->fd);
    fake_expect(f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    return (int)answer.code;
}

/* With device and host full to the last byte no buffer could come back: sealing needs no room. */
START_TEST(buffers_on_the_host_are_sealed_there)
{
    static uint8_t expected[ROOM_BYTES];
    struct fake f;
    struct memfd host = MEMFD_NONE;
    struct memfd again = MEMFD_NONE;
    if (!room_start(&f, _i, "4194304")) {
        return;
    }
    for (uint64_t b = 1; b <= 16; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, b == 16), 0);
        if (b < 16) {
            room_write(&f, b, 1);
        }
    }
    for (uint64_t b = 1; b <= 2; b++) {
        ck_assert_int_eq(seal(&f, b, &host), 0);
        room_words(expected, b, 1);
        ck_assert_int_eq(memcmp(host.data, expected, ROOM_BYTES), 0);
        memfd_finish(&host);
    }
    ck_assert_int_eq(seal(&f, 2, &again), 0); /* as another front may ask */
    ck_assert_int_eq(memcmp(again.data, expected, ROOM_BYTES), 0);
    ck_assert_int_eq(seal(&f, 16, &host), 0); /* never written, and perhaps nowhere yet */
    ck_assert_int_eq(memcmp(host.data, expected, 16) != 0 && host.data[7] == 0, 1);
    for (uint64_t b = 1; b <= 15; b++) {
        room_check(&f, b, 1);
    }
    memfd_finish(&host);
    memfd_finish(&again);
    fake_stop(&f);
}
END_TEST

/* A copy that fails on its way to the device costs the job that needed it, not the bytes: they are
 * on the host, in a sealed buffer's copy (_i 1) or in the arena. */
START_TEST(bytes_that_did_not_arrive_are_brought_again)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct memfd host = MEMFD_NONE;
    const char *args[] = {"--options",
                          "speed=0,pages=on,script=write:16=fail",
                          "--memory-limit",
                          "12582912",
                          "--spill-limit",
                          "33554432",
                          NULL};
    fake_start(&f, "sim", args);
    ck_assert(!f.absent);
    for (uint64_t b = 1; b <= 14; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, false), 0);
        room_write(&f, b, 1);
        if (b == 1 && _i == 1) {
            ck_assert_int_eq(seal(&f, 1, &host), 0);
        }
    }
    draft_init(&d, 500, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, ROOM_BYTES), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 500, &done), ERR_BUFFER_LOST);
    for (uint64_t b = 1; b <= 14; b++) {
        room_check(&f, b, 1);
    }
    memfd_finish(&host);
    fake_stop(&f);
}
END_TEST

static int read_some(struct fake *f, uint64_t job, uint64_t buffer)
{
    struct job_draft d;
    memset(f->output.data, 0xa5, 4096);
    draft_init(&d, job, 0);
    draft_move(&d, OP_READ, ref_buffer(buffer, 0, 4096), 0);
    draft_send(&d, f);
    return fake_done(f, job, NULL);
}

/* Zeros that fail cost the job that needed them, and come again with the next one. Of two pieces
 * (_i 1) the first fails: the job does not begin, so it reads no other bytes. */
START_TEST(zeros_that_did_not_arrive_are_brought_again)
{
    static const struct {
        uint64_t size;
        const char *script, *limit;
    } ways[] = {{8 * ROOM_BYTES, "speed=0,pages=on,script=fill:3=fail", "12582912"},
                {40 * ROOM_BYTES, "speed=0,pages=on,script=fill:4=fail", "62914560"}};
    const char *args[] = {
        "--options", ways[_i].script, "--memory-limit", ways[_i].limit, "--spill-limit", "67108864",
        NULL};
    struct fake f;
    fake_start(&f, "sim", args);
    ck_assert(!f.absent);
    ck_assert_int_eq(fake_buffer(&f, 1, ways[_i].size, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, ways[_i].size, true), 0); /* without room yet */
    ck_assert_int_eq(read_some(&f, 500, 2), ERR_BUFFER_LOST);
    ck_assert(_i == 0 || f.output.data[0] == 0xa5);
    ck_assert_int_eq(read_some(&f, 501, 2), 0);
    ck_assert_uint_eq(f.output.data[0], 0);
    ck_assert_uint_eq(f.output.data[4095], 0);
    fake_stop(&f);
}
END_TEST

/* ---- free memory in small parts -------------------------------------------------------------- */

#define PART_BYTES ((uint64_t)256 << 10)
#define PARTS      40u
#define PART_EACH  8u /* of so many one stays */
#define PART_ROOM  ((uint64_t)7 << 20)

static void part_job(struct fake *f, uint64_t job, int op, uint64_t buffer)
{
    struct job_draft d;
    struct msg_w_done done;
    draft_init(&d, job, (unsigned)buffer % 2);
    draft_move(&d, op, ref_buffer(buffer, 0, PART_BYTES), 0);
    draft_send(&d, f);
    int code = fake_done(f, job, &done);
    ck_assert_msg(code == 0, "%.*s", (int)done.text.size, done.text.data);
}

static void parts_make(struct fake *f)
{
    for (uint64_t b = 1; b <= PARTS; b++) {
        memset(f->input.data, (int)b, PART_BYTES);
        ck_assert_int_eq(fake_buffer(f, b, PART_BYTES, false), 0);
        part_job(f, 100 + b, OP_WRITE, b);
    }
    for (uint64_t b = 1; b <= PARTS; b++) {
        struct msg_f_buffer_free msg = {.id = b};
        if (b % PART_EACH != 0) {
            fake_send(f, &schema_msg_f_buffer_free, &msg, -1);
        }
    }
}

static void part_check(struct fake *f, uint64_t job, uint64_t buffer, uint8_t value)
{
    static uint8_t expected[PART_BYTES];
    memset(expected, value, PART_BYTES);
    memset(f->output.data, 0xa5, PART_BYTES);
    part_job(f, job, OP_READ, buffer);
    ck_assert_msg(memcmp(f->output.data, expected, PART_BYTES) == 0, "buffer %u has %u first",
                  (unsigned)buffer, f->output.data[0]);
}

/* Nothing can go to the host: memory in one piece comes about by moving buffers between free parts,
 * while other jobs write the buffers that move. */
START_TEST(buffers_move_together)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_pool pool;
    if (!room_start_with(&f, _i, NULL, "0")) {
        return;
    }
    parts_make(&f);
    fake_packet_begin(&f);
    for (unsigned n = 0; n < 20; n++) { /* the even ones work, on what the odd ones want moved */
        if (n % 2 == 0) {
            uint8_t value = (uint8_t)(200 + n);
            draft_init(&d, 500 + n, n / 2 % 2);
            draft_fill(&d, ref_buffer(PART_EACH * (1 + n / 2 % 2), 0, PART_BYTES), &value, 1);
        } else {
            uint8_t value = (uint8_t)n;
            draft_init(&d, 500 + n, n / 2 % 2);
            uint64_t temp = draft_temp(&d, PART_ROOM);
            draft_fill(&d, ref_temp(temp, PART_ROOM), &value, 1);
            draft_copy(&d, ref_buffer(PART_EACH * 3, 0, PART_BYTES), ref_temp(temp, PART_BYTES));
        }
        if (n >= 2) {
            draft_after(&d, 500 + n - 2);
        }
        draft_send(&d, &f);
    }
    fake_packet_end(&f);
    for (unsigned done = 0; done < 20;) {
        struct msg_w_done msg;
        if (fake_next(&f) == FRAME_KIND_W_DONE) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_done, bytes_of(f.frame, f.size), &msg, NULL), 0);
            ck_assert_msg(msg.code == 0, "%.*s", (int)msg.text.size, msg.text.data);
            done++;
        }
    }
    part_check(&f, 600, PART_EACH * 1, 216);
    part_check(&f, 601, PART_EACH * 2, 218);
    part_check(&f, 602, PART_EACH * 3, 19);
    part_check(&f, 603, PART_EACH * 4, PART_EACH * 4);
    part_check(&f, 604, PART_EACH * 5, PART_EACH * 5);
    room_pool(&f, &pool);
    ck_assert_uint_eq(pool.spilled, 0);
    fake_stop(&f);
}
END_TEST

/* A copy that fails when it runs costs the content of that buffer, and is reported; of a sealed
 * buffer it costs nothing. */
START_TEST(a_move_that_fails_is_reported)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct err e = ERR_INIT;
    struct memfd host[PARTS + 1];
    unsigned lost = 0;
    if (!room_start_with(&f, 1, "speed=0,pages=off,script=copy:1=fail", "0")) {
        return;
    }
    parts_make(&f);
    for (uint64_t b = PART_EACH; _i == 1 && b <= PARTS; b += PART_EACH) {
        const struct msg_f_buffer_seal msg = {.id = b, .size = PART_BYTES};
        struct msg_w_buffer answer;
        ck_assert_int_eq(memfd_create_sealed("host", PART_BYTES, &host[b], &e), 0);
        fake_send(&f, &schema_msg_f_buffer_seal, &msg, host[b].fd);
        fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
        ck_assert_int_eq((int)answer.code, 0);
    }
    draft_init(&d, 500, 0);
    (void)draft_temp(&d, PART_ROOM);
    draft_fill(&d, ref_temp(0, PART_ROOM), "x", 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 500, NULL), 0);
    for (uint64_t b = PART_EACH; b <= PARTS; b += PART_EACH) {
        draft_init(&d, 600 + b, 0);
        draft_move(&d, OP_READ, ref_buffer(b, 0, PART_BYTES), 0);
        draft_send(&d, &f);
        int code = fake_done(&f, 600 + b, &done);
        ck_assert(code == 0 || code == ERR_BUFFER_LOST);
        lost += code != 0;
        ck_assert(code != 0 || (f.output.data[0] == b && f.output.data[PART_BYTES - 1] == b));
    }
    ck_assert_uint_eq(lost, _i == 1 ? 0 : 1);
    for (uint64_t b = PART_EACH; _i == 1 && b <= PARTS; b += PART_EACH) {
        memfd_finish(&host[b]);
    }
    fake_stop(&f);
}
END_TEST

/* A job without room is tried again periodically, though the worker knows of no change: another
 * process may free memory of the device. It is not tried at each poll, as a try walks all buffers.
 * Here a job that does not end uses the buffers in the way. */
START_TEST(waiting_jobs_are_tried_after_changes_and_periodically)
{
    struct fake f;
    uint64_t begun = clock_now_ns(); /* before the first try */
    struct job_draft d;
    struct msg_w_pool before;
    struct msg_w_pool pool;
    struct msg_w_waiting waiting;
    static const char *const options[] = {"speed=0,pages=on,script=read:2+=hang",
                                          "speed=0,pages=off,script=read:2+=hang"};
    ck_assert(room_start_with(&f, 0, options[_i], "0")); /* which reads once */
    parts_make(&f);
    draft_init(&d, 500, 0);
    for (uint64_t b = PART_EACH; b <= PARTS; b += PART_EACH) {
        draft_move(&d, OP_READ, ref_buffer(b, 0, PART_BYTES), b * PART_BYTES);
    }
    draft_send(&d, &f);
    draft_init(&d, 501, 1);
    (void)draft_temp(&d, PART_ROOM);
    draft_fill(&d, ref_temp(0, PART_ROOM), "x", 1);
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waiting);
    ck_assert(waiting.job == 501 && waiting.waits == 1);
    room_pool(&f, &before);
    ck_assert_uint_gt(before.failures, 0);
    do {
        const struct timespec pause = {0, 10 * (long)NS_PER_MS};
        (void)nanosleep(&pause, NULL); /* for the worker to poll */
        room_pool(&f, &pool);
    } while (pool.failures < before.failures + 3);
    uint64_t tries = (clock_now_ns() - begun) / (100 * NS_PER_MS) + 1;
    ck_assert_uint_le(pool.failures - before.failures, tries);
    fake_finish(&f);
}
END_TEST

/* ---- what tenants may have ------------------------------------------------------------------- */

static void quota_spilled(struct fake *f, uint64_t tenant, uint64_t spilled)
{
    const struct msg_f_tenant m = {.tenant = tenant,
                                   .name = bytes_str("host"),
                                   .hard = UINT64_MAX,
                                   .soft = UINT64_MAX,
                                   .spilled = spilled};
    fake_send(f, &schema_msg_f_tenant, &m, -1);
}

/* A tenant above its soft limit moves to the host first, though other buffers were not used for
 * longer. */
START_TEST(soft_limits_give_first)
{
    struct fake f;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 2, "soft", UINT64_MAX, 2 * ROOM_BYTES, 0);
    room_fill(&f, 1, 1, 5);
    room_fill(&f, 2, 11, 6);
    ck_assert_uint_eq(room_use(&f, 2)->spilled, 0); /* there is room for all */
    room_fill(&f, 3, 21, 3);
    ck_assert_uint_gt(room_use(&f, 2)->spilled, 0);
    ck_assert_uint_eq(room_use(&f, 1)->spilled, 0);
    room_fill(&f, 3, 24, 6); /* and the others when that is not enough */
    ck_assert_uint_gt(room_use(&f, 1)->spilled, 0);
    ck_assert_uint_gt(room_use(&f, 2)->mapped, 0);
    room_check_all(&f, 1, 1, 5);
    room_check_all(&f, 2, 11, 6);
    room_check_all(&f, 3, 21, 9);
    fake_stop(&f);
}
END_TEST

/* False: the worker ends before. */
static bool came(struct fake *f, unsigned kind, const struct schema *schema, void *ret_msg)
{
    struct err e = ERR_INIT;
    unsigned got = fake_next(f);
    while (got != kind && got != 0) {
        got = fake_next(f);
    }
    return got == kind && proto_decode(schema, bytes_of(f->frame, f->size), ret_msg, &e) == 0;
}

/* Fills a device, with a tenant above its soft limit; the nth marker loses the device. False: it
 * was lost. */
static bool goes_well(unsigned nth)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    char options[64];
    (void)snprintf(options, sizeof options, "speed=0,pages=on,script=mark:%u=lost", nth);
    const char *args[] = {"--options", options, "--memory-limit", "12582912", "--spill-limit",
                          "33554432",  NULL};
    fake_start(&f, "sim", args);
    bool well = !f.absent;
    f.may_end = true; /* by its upkeep, too */
    room_quota(&f, 2, "soft", UINT64_MAX, ROOM_BYTES, 0);
    for (uint64_t b = 1; well && b <= 11; b++) {
        f.tenant = b <= 9 ? 1 : 2;
        struct msg_f_buffer_create ask = {.id = b, .size = ROOM_BYTES, .tenant = f.tenant};
        struct msg_w_buffer answer;
        fake_send(&f, &schema_msg_f_buffer_create, &ask, -1);
        well = came(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer) && answer.code == 0;
    }
    if (well) {
        draft_init(&d, 100, 0);
        uint64_t t = draft_temp(&d, 6 * ROOM_BYTES);
        draft_fill(&d, ref_temp(t, 6 * ROOM_BYTES), "x", 1);
        draft_send(&d, &f);
        well = came(&f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done) && done.code == 0;
    }
    if (well) {
        fake_stop(&f);
    } else {
        fake_finish(&f);
    }
    return well;
}

/* A device that is lost while it makes room counts as lost, whatever went before: once the scripted
 * marker is behind all markers, all goes well; before, nothing does. */
START_TEST(a_loss_while_making_room_is_reported)
{
    unsigned nth = 1;
    while (nth < 100 && !goes_well(nth)) {
        nth++;
    }
    ck_assert_uint_gt(nth, 8); /* some that move buffers are among them */
    for (unsigned later = nth + 1; later < nth + 9; later++) {
        ck_assert_msg(goes_well(later), "%u was told of, %u not", later, nth);
    }
}
END_TEST

/* What is guaranteed stays where it is, and is there when its tenant comes late. */
START_TEST(guarantees_are_kept)
{
    struct fake f;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 1, "sure", UINT64_MAX, UINT64_MAX, 4 * ROOM_BYTES);
    room_quota(&f, 2, "late", UINT64_MAX, UINT64_MAX, 4 * ROOM_BYTES);
    room_fill(&f, 1, 1, 3);
    room_fill(&f, 3, 11, 12); /* what is left has room for four at most */
    ck_assert_uint_eq(room_use(&f, 1)->spilled, 0);
    ck_assert_uint_ge(room_use(&f, 3)->spilled, 8 * ROOM_BYTES);
    ck_assert_uint_le(room_use(&f, 3)->mapped, 4 * ROOM_BYTES);
    uint64_t moved = room_use(&f, 3)->spilled;
    room_fill(&f, 2, 31, 3);
    ck_assert_uint_eq(room_use(&f, 3)->spilled, moved);
    room_check_all(&f, 3, 11, 12);
    ck_assert_uint_eq(room_use(&f, 1)->spilled, 0);
    ck_assert_uint_eq(room_use(&f, 2)->spilled, 0);
    room_check_all(&f, 1, 1, 3);
    room_check_all(&f, 2, 31, 3);
    fake_stop(&f);
}
END_TEST

/* A tenant at its hard limit makes room of its own. More than the limit is refused by name. */
START_TEST(hard_limits_are_a_tenants_own_matter)
{
    struct fake f;
    struct msg_w_done done;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 2, "hard", 4 * ROOM_BYTES, UINT64_MAX, 0);
    room_fill(&f, 1, 1, 3);
    room_fill(&f, 2, 11, 4);
    ck_assert_int_eq(room_temporaries(&f, 2, 100, 2 * ROOM_BYTES, &done), 0);
    ck_assert_uint_ge(room_use(&f, 2)->spilled, 2 * ROOM_BYTES);
    ck_assert_uint_eq(room_use(&f, 1)->spilled, 0);
    ck_assert_int_eq(room_temporaries(&f, 2, 101, 5 * ROOM_BYTES, &done), ERR_LIMIT);
    ck_assert_ptr_nonnull(strstr((const char *)done.text.data, "tenant hard wants 5242880 bytes"));
    ck_assert_ptr_nonnull(strstr((const char *)done.text.data, "its memory_hard of 4194304"));
    ck_assert_int_eq(room_temporaries(&f, 1, 102, 5 * ROOM_BYTES, &done), 0);
    room_check_all(&f, 2, 11, 4);
    /* lower than what it has: nothing ends, and it lives within it from then on */
    room_quota(&f, 2, "hard", 2 * ROOM_BYTES, UINT64_MAX, 0);
    ck_assert_int_eq(room_temporaries(&f, 2, 103, ROOM_BYTES, &done), 0);
    ck_assert_uint_le(room_use(&f, 2)->mapped, 2 * ROOM_BYTES);
    room_check_all(&f, 2, 11, 4);
    room_check_all(&f, 1, 1, 3);
    fake_stop(&f);
}
END_TEST

/* A tenant has at most its limit on the host. Buffers there and on the device change places all the
 * same. */
START_TEST(the_hosts_share_has_a_limit)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    quota_spilled(&f, 2, 3 * ROOM_BYTES);
    room_fill(&f, 2, 11, 14);
    ck_assert_uint_ge(room_use(&f, 2)->spilled, 2 * ROOM_BYTES);
    for (unsigned round = 0; round < 2; round++) {
        room_check_all(&f, 2, 11, 14);
    }
    ck_assert_uint_le(room_use(&f, 2)->spilled, 4 * ROOM_BYTES); /* one on its way */
    for (uint64_t b = 25; b < 28; b++) {
        ck_assert_int_eq(fake_buffer(&f, b, ROOM_BYTES, false), 0);
    }
    draft_init(&d, 100, 0);
    for (uint64_t b = 25; b < 28; b++) {
        draft_fill(&d, ref_buffer(b, 0, ROOM_BYTES), "x", 1);
    }
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 100, &done), ERR_DEVICE_MEMORY);
    ck_assert_msg(strstr((const char *)done.text.data, "raise its memory_spilled of 3145728") !=
                      NULL,
                  "%.*s", (int)done.text.size, done.text.data);
    ck_assert_int_eq(room_temporaries(&f, 1, 101, 2 * ROOM_BYTES, &done), ERR_DEVICE_MEMORY);
    quota_spilled(&f, 2, 8 * ROOM_BYTES);
    ck_assert_int_eq(room_temporaries(&f, 1, 102, 2 * ROOM_BYTES, &done), 0);
    room_check_all(&f, 2, 11, 14);
    quota_spilled(&f, 2, 0); /* lower than what it has: nothing is lost, and no more goes */
    uint64_t there = room_use(&f, 2)->spilled;
    ck_assert_uint_gt(there, 0);
    room_check_all(&f, 2, 11, 14);
    ck_assert_uint_le(room_use(&f, 2)->spilled, there + ROOM_BYTES);
    fake_stop(&f);
}
END_TEST

static void expect_refusal(struct fake *f, uint64_t tenant)
{
    struct msg_w_tenant_refused refused;
    fake_expect(f, FRAME_KIND_W_TENANT_REFUSED, &schema_msg_w_tenant_refused, &refused);
    ck_assert_uint_eq(refused.tenant, tenant);
    ck_assert_int_eq(refused.code, ERR_LIMIT);
    ck_assert_uint_gt(refused.text.size, 0);
}

/* Limits of a former front count no more; limits that cannot be kept are reported. */
START_TEST(each_front_sets_its_own_limits)
{
    struct fake f;
    struct msg_w_ready ready;
    struct msg_w_inventory_end end;
    const struct msg_f_inventory ask = {.nonce = 7};
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 1, "hard", 2 * ROOM_BYTES, UINT64_MAX, 0);
    room_quota(&f, 2, "gone", UINT64_MAX, UINT64_MAX, 8 * ROOM_BYTES);
    room_quota(&f, 3, "new", 3 * ROOM_BYTES, UINT64_MAX, 6 * ROOM_BYTES / 2);
    room_quota(&f, 4, "more", 3 * ROOM_BYTES, UINT64_MAX, 3 * ROOM_BYTES);
    expect_refusal(&f, 4);
    ck_assert_int_eq(room_temporaries(&f, 4, 100, 4 * ROOM_BYTES, NULL),
                     ERR_LIMIT); /* that counts */
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_READY, &schema_msg_w_ready, &ready);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_JOB, &schema_msg_w_inventory_job,
                &(struct msg_w_inventory_job){0});
    ck_assert_int_eq(fake_done(&f, 100, NULL), ERR_LIMIT);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_END, &schema_msg_w_inventory_end, &end);
    ck_assert_int_eq(room_temporaries(&f, 4, 101, 4 * ROOM_BYTES, NULL), 0);
    room_fill(&f, 1, 1, 10);
    ck_assert_uint_eq(room_use(&f, 1)->spilled, 0);
    room_quota(&f, 3, "new", UINT64_MAX, UINT64_MAX, 11 * ROOM_BYTES);
    ck_assert_uint_eq(room_use(&f, 3)->asked, 0); /* not refused: nothing else comes before */
    room_check_all(&f, 1, 1, 10);
    fake_stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("memory");
    TCase *room = tcase_create("room");
    tcase_set_timeout(room, 90);
    TCase *limits = tcase_create("limits");
    tcase_set_timeout(limits, 90);
    tcase_add_loop_test(limits, soft_limits_give_first, 0, 3);
    tcase_add_test(limits, a_loss_while_making_room_is_reported);
    tcase_add_loop_test(limits, guarantees_are_kept, 0, 3);
    tcase_add_loop_test(limits, hard_limits_are_a_tenants_own_matter, 0, 3);
    tcase_add_loop_test(limits, each_front_sets_its_own_limits, 0, 3);
    tcase_add_loop_test(limits, the_hosts_share_has_a_limit, 0, 3);
    suite_add_tcase(suite, limits);
    tcase_add_loop_test(room, buffers_on_the_host_are_sealed_there, 0, 3);
    tcase_add_loop_test(room, bytes_that_did_not_arrive_are_brought_again, 0, 2);
    tcase_add_loop_test(room, zeros_that_did_not_arrive_are_brought_again, 0, 2);
    tcase_add_loop_test(room, buffers_move_to_the_host_and_back, 0, 3);
    tcase_add_loop_test(room, buffers_move_together, 0, 3);
    tcase_add_loop_test(room, a_move_that_fails_is_reported, 0, 2);
    tcase_add_loop_test(room, waiting_jobs_are_tried_after_changes_and_periodically, 0, 2);
    tcase_add_loop_test(room, zeros_wait_for_room, 0, 3);
    tcase_add_loop_test(room, jobs_wait_for_room, 0, 3);
    tcase_add_loop_test(room, a_job_without_room_says_why, 0, 3);
    tcase_add_loop_test(room, a_deadline_ends_the_wait_for_room, 0, 3);
    suite_add_tcase(suite, room);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
