/* Large copies of jobs: in chunks, beside kernels and other jobs. gpud-worker as a process. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "common/clock.h"
#include "common/shape.h"
#include "daemon/backend/backend.h"
#include "tests/unit/worker/fake_front.h"

#define BYTES   ((uint64_t)10 << 20) /* two chunks and a half */
#define COUNT   (BYTES / 4)
#define LOOK_NS (30 * NS_PER_S) /* until the device knows staging memory, on a busy machine */

static const char *const BACKEND[] = {"sim", "opencl"};

static bool start(struct fake *f, const char *backend, const char *options)
{
    const char *const args[] = {"--options", options, NULL};
    if (backend_find(backend) == NULL) {
        return false;
    }
    fake_start(f, backend, options[0] != '\0' ? args : NULL);
    if (f->absent) {
        fake_finish(f);
    }
    return !f->absent;
}

static void fill_input(struct fake *f, uint64_t floats)
{
    float *x = (float *)(void *)f->input.data;
    for (uint64_t i = 0; i < floats; i++) {
        x[i] = (float)(i % 1000);
    }
}

/* y = y + x */
static void draft_add(struct job_draft *d, uint64_t module, struct proto_ref x, struct proto_ref y)
{
    static const float one = 1.0f;
    static uint64_t n;
    n = y.size / 4;
    const struct proto_ref args[] = {ref_value(&one, sizeof one), ref_as(x, ACCESS_IN),
                                     ref_as(y, ACCESS_INOUT), ref_value(&n, sizeof n)};
    draft_launch(d, module, "axpy_f32", n, args, 4);
}

static void check_sum(const struct fake *f, uint64_t stage, float factor)
{
    const float *y = (const float *)(const void *)(f->output.data + stage);
    uint64_t i = 0;
    while (i < COUNT && y[i] == factor * (float)(i % 1000)) {
        i++;
    }
    ck_assert_msg(i == COUNT, "y[%llu] = %g", (unsigned long long)i, (double)y[i % COUNT]);
}

static void make_buffers(struct fake *f, unsigned count)
{
    for (unsigned i = 1; i <= count; i++) {
        ck_assert_int_eq(fake_buffer(f, i, BYTES, false), 0);
    }
}

static void must(int code, const struct msg_w_done *done)
{
    ck_assert_msg(code == 0, "step %lld: %.*s", (long long)done->step, (int)done->text.size,
                  done->text.data);
}

/* Small and large steps in one job, over and over on the same memory: each finds what the earlier
 * ones left. */
START_TEST(steps_see_each_other)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    if (!start(&f, BACKEND[_i], "")) {
        return;
    }
    fill_input(&f, COUNT);
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    make_buffers(&f, 2);
    struct proto_ref x = ref_buffer(1, 0, BYTES);
    struct proto_ref y = ref_buffer(2, 0, BYTES);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, x, 0);
    draft_move(&d, OP_WRITE, y, 0);
    draft_add(&d, 7, x, y);            /* 2 */
    draft_move(&d, OP_READ, y, 0);     /* of 2 */
    draft_add(&d, 7, x, y);            /* 3, when 2 was read */
    draft_move(&d, OP_READ, y, BYTES); /* of 3 */
    draft_move(&d, OP_WRITE, x, 4);    /* shifted, when 3 was added */
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, 8), 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 8), 2 * BYTES);
    draft_move(&d, OP_READ, ref_buffer(1, 8, BYTES - 8), 2 * BYTES + 8);
    fill_input(&f, COUNT + 1);
    draft_send(&d, &f);
    must(fake_done(&f, 1, &done), &done);
    ck_assert_uint_eq(done.effects, ERR_EFFECTS_YES);
    ck_assert_uint_eq(done.timings.count, 10);
    check_sum(&f, 0, 2);
    check_sum(&f, BYTES, 3);
    ck_assert_int_eq(memcmp(f.output.data + 2 * BYTES, f.input.data, 8), 0);
    ck_assert_int_eq(memcmp(f.output.data + 2 * BYTES + 8, f.input.data + 12, BYTES - 8), 0);
    fake_stop(&f);
}
END_TEST

/* Jobs with large copies after each other on two streams, and small ones between: their order is
 * that of `after`. */
START_TEST(jobs_see_each_other)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    if (!start(&f, BACKEND[_i], "")) {
        return;
    }
    fill_input(&f, COUNT);
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    make_buffers(&f, 2);
    struct proto_ref x = ref_buffer(1, 0, BYTES);
    struct proto_ref y = ref_buffer(2, 0, BYTES);
    for (unsigned job = 1; job <= 8; job++) {
        draft_init(&d, job, job % 2);
        if (job > 1) {
            draft_after(&d, job - 1);
        }
        if (job == 1) {
            draft_move(&d, OP_WRITE, x, 0);
            draft_move(&d, OP_WRITE, y, 0);
        } else if (job % 2 == 0) {
            draft_add(&d, 7, x, y);
        } else { /* there and back by way of a temporary */
            uint64_t temp = draft_temp(&d, BYTES);
            draft_copy(&d, ref_temp(temp, BYTES), y);
            draft_move(&d, OP_READ, ref_temp(temp, BYTES), (job - 3) / 2 * BYTES);
        }
        draft_send(&d, &f);
    }
    for (unsigned job = 1; job <= 8; job++) {
        must(fake_done(&f, job, &done), &done);
    }
    check_sum(&f, 0, 2);
    check_sum(&f, BYTES, 3);
    check_sum(&f, 2 * BYTES, 4);
    fake_stop(&f);
}
END_TEST

/* A copy of a chunk's size stays in the stream of a job with kernels, a larger one does not: jobs
 * of both kinds after each other, on two streams. */
START_TEST(frames_up_to_a_chunk_and_beyond)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    uint64_t chunk = (uint64_t)2 << 20;
    if (!start(&f, BACKEND[_i], "")) {
        return;
    }
    fill_input(&f, COUNT);
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    make_buffers(&f, 2);
    for (unsigned job = 1; job <= 6; job++) {
        uint64_t size = job % 2 == 0 ? chunk : chunk + 4;
        draft_init(&d, job, job / 2 % 2);
        if (job > 1) {
            draft_after(&d, job - 1);
        }
        draft_move(&d, OP_WRITE, ref_buffer(1, 0, size), 4 * job); /* the numbers from `job` on */
        draft_move(&d, OP_WRITE, ref_buffer(2, 0, size), 0);
        draft_add(&d, 7, ref_buffer(1, 0, size), ref_buffer(2, 0, size));
        draft_move(&d, OP_READ, ref_buffer(2, 0, size), (job - 1) * (chunk + 256));
        draft_send(&d, &f);
    }
    for (unsigned job = 1; job <= 6; job++) {
        must(fake_done(&f, job, &done), &done);
        ck_assert_uint_eq(done.timings.count, 4);
        const float *y = (const float *)(const void *)(f.output.data + (job - 1) * (chunk + 256));
        for (uint64_t i = 0; i < chunk / 4 + job % 2; i++) {
            ck_assert(y[i] == (float)(i % 1000) + (float)((i + job) % 1000));
        }
    }
    fake_stop(&f);
}
END_TEST

/* The copy into a buffer that another job still uses waits, while the one behind it could begin:
 * the kernel needs both. */
START_TEST(copies_of_a_direction_keep_their_order)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    const uint32_t zero = 0;
    ck_assert(start(&f, "sim", "bandwidth=80M,items=10485760,launch_ns=0"));
    fill_input(&f, COUNT);
    fake_builtin(&f, "sim", "axpy", 7);
    make_buffers(&f, 2);
    struct proto_ref x = ref_buffer(1, 0, BYTES);
    struct proto_ref y = ref_buffer(2, 0, BYTES);
    draft_init(&d, 1, 0);
    draft_fill(&d, x, &zero, sizeof zero);
    draft_fill(&d, y, &zero, sizeof zero);
    draft_add(&d, 7, y, x); /* a quarter of a second */
    draft_send(&d, &f);
    draft_init(&d, 2, 1);
    draft_after(&d, 1);
    uint64_t temp = draft_temp(&d, BYTES);
    draft_move(&d, OP_WRITE, x, 0);
    draft_move(&d, OP_WRITE, ref_temp(temp, BYTES), 0);
    draft_add(&d, 7, ref_temp(temp, BYTES), x);
    draft_move(&d, OP_READ, x, 0);
    draft_send(&d, &f);
    for (unsigned job = 1; job <= 2; job++) {
        must(fake_done(&f, job, &done), &done);
    }
    check_sum(&f, 0, 2);
    fake_stop(&f);
}
END_TEST

/* A job without steps holds the place between two others, though it has no mark to wait for. */
START_TEST(a_job_without_steps_hands_on_the_order)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    ck_assert(start(&f, "sim", "bandwidth=80M"));
    fill_input(&f, COUNT);
    fake_builtin(&f, "sim", "axpy", 7);
    make_buffers(&f, 1);
    struct proto_ref x = ref_buffer(1, 0, BYTES);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, x, 0); /* an eighth of a second */
    draft_send(&d, &f);
    draft_init(&d, 2, _i == 0 ? 0 : 1);
    draft_after(&d, 1);
    draft_send(&d, &f);
    draft_init(&d, 3, 0);
    draft_after(&d, 2);
    draft_add(&d, 7, x, x);
    draft_move(&d, OP_READ, x, 0);
    draft_send(&d, &f);
    for (unsigned job = 1; job <= 3; job++) {
        must(fake_done(&f, job, &done), &done);
    }
    check_sum(&f, 0, 2);
    fake_stop(&f);
}
END_TEST

struct times {
    uint64_t begin[8], end[8];
};

static struct times times_of(const struct msg_w_done *done)
{
    struct times t = {{0}, {0}};
    struct proto_iter it = proto_iter_of(done->timings);
    struct proto_timing timing;
    while (proto_list_next(&it, &schema_timing, &timing)) {
        ck_assert_uint_lt(timing.step, 8);
        t.begin[timing.step] = timing.begin_ns;
        t.end[timing.step] = timing.end_ns;
    }
    return t;
}

static bool overlap(const struct times *t, unsigned a, unsigned b)
{
    return t->begin[a] < t->end[b] && t->begin[b] < t->end[a];
}

/* The device takes a second for each copy and each kernel, by its model. In one job the second copy
 * runs beside the first kernel, and the first result's way back beside the second one. */
START_TEST(copies_and_kernels_of_one_job_overlap)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    ck_assert(start(&f, "sim", "bandwidth=10M,items=2621440,launch_ns=0,kernels=1"));
    fill_input(&f, COUNT);
    fake_builtin(&f, "sim", "axpy", 7);
    make_buffers(&f, 2);
    draft_init(&d, 1, 0);
    for (unsigned i = 0; i < 2; i++) {
        struct proto_ref b = ref_buffer(i + 1, 0, BYTES);
        draft_move(&d, OP_WRITE, b, 0);
        draft_add(&d, 7, b, b);
        draft_move(&d, OP_READ, b, i * BYTES);
    }
    draft_send(&d, &f);
    must(fake_done(&f, 1, &done), &done);
    struct times t = times_of(&done);
    enum { WRITE1, KERNEL1, READ1, WRITE2, KERNEL2, READ2 };
    ck_assert(overlap(&t, KERNEL1, WRITE2));
    ck_assert(overlap(&t, READ1, KERNEL2));
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_uint_le(t.end[3 * i], t.begin[3 * i + KERNEL1]);
        ck_assert_uint_le(t.end[3 * i + KERNEL1], t.begin[3 * i + READ1]);
    }
    fake_stop(&f);
}
END_TEST

/* Upload, two kernels, download; several jobs on streams of their own, given at once. While one's
 * kernels run, the next one's copy does. How much that brings is for bench/ to say. */
START_TEST(successive_jobs_overlap)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    enum { JOBS = 6 };
    uint64_t ended = 0;
    unsigned overlaps = 0;
    ck_assert(start(&f, "sim", "bandwidth=100M,items=52428800,launch_ns=0,kernels=1"));
    fill_input(&f, COUNT);
    fake_builtin(&f, "sim", "axpy", 7);
    make_buffers(&f, JOBS);
    for (unsigned job = 1; job <= JOBS; job++) {
        struct proto_ref b = ref_buffer(job, 0, BYTES);
        draft_init(&d, job, job % 3);
        draft_move(&d, OP_WRITE, b, 0);
        draft_add(&d, 7, b, b);
        draft_add(&d, 7, b, b);
        draft_move(&d, OP_READ, b, (job - 1) * BYTES);
        draft_send(&d, &f);
    }
    for (unsigned left = JOBS; left > 0; left--) { /* nothing says which one ends first */
        fake_expect(&f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done);
        must((int)done.code, &done);
        overlaps += done.started_ns < ended;
        ended = done.ended_ns > ended ? done.ended_ns : ended;
    }
    ck_assert_uint_gt(overlaps, 0);
    fake_stop(&f);
}
END_TEST

static struct memfd seal_start(struct fake *f, uint64_t id, uint64_t size)
{
    struct err e = ERR_INIT;
    struct memfd host = MEMFD_NONE;
    struct msg_f_buffer_seal msg = {.id = id, .size = size};
    ck_assert_int_eq(memfd_create_sealed("host", (size_t)size, &host, &e), 0);
    fake_send(f, &schema_msg_f_buffer_seal, &msg, host.fd);
    return host;
}

/* Four seconds of bulk copies in both directions do not hold up a small job of each kind. */
START_TEST(small_jobs_pass_bulk_copies)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    const uint64_t size = 32 << 20;
    ck_assert(start(&f, "sim", "bandwidth=8M,launch_ns=0"));
    ck_assert_int_eq(fake_buffer(&f, 1, size, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, 4096, false), 0);
    struct memfd host = seal_start(&f, 1, size);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, ref_buffer(2, 0, 4096), 0);
    draft_move(&d, OP_READ, ref_buffer(2, 0, 4096), 0);
    draft_send(&d, &f);
    must(fake_done(&f, 1, &done), &done); /* W_BUFFER would have failed this, had it come first */
    struct msg_w_buffer sealed;
    fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &sealed);
    ck_assert_int_eq((int)sealed.code, 0);
    memfd_finish(&host);
    fake_stop(&f);
}
END_TEST

/* A job may be given before the content of what it reads is there: it waits for it. */
START_TEST(a_job_waits_for_what_is_restored)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    struct err e = ERR_INIT;
    struct memfd host = MEMFD_NONE;
    struct msg_w_buffer answer;
    if (!start(&f, BACKEND[_i], "")) {
        return;
    }
    ck_assert_int_eq(memfd_create_sealed("host", BYTES, &host, &e), 0);
    memset(host.data, 0x5a, BYTES);
    struct msg_f_buffer_restore msg = {.id = 5, .size = BYTES};
    fake_send(&f, &schema_msg_f_buffer_restore, &msg, host.fd);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_READ, ref_buffer(5, BYTES - 64, 64), 0);
    draft_move(&d, OP_READ, ref_buffer(5, 0, BYTES), 64);
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    ck_assert_int_eq((int)answer.code, 0);
    must(fake_done(&f, 1, &done), &done);
    ck_assert_int_eq(memcmp(f.output.data, host.data, 64), 0);
    ck_assert_int_eq(memcmp(f.output.data + 64, host.data, BYTES), 0);
    fake_stop(&f);
    memfd_finish(&host);
}
END_TEST

/* Each write in turn fails: the error names the step, no step after it runs, and other jobs go on.
 * The device's own check is the first write; then there are three chunks each. */
START_TEST(a_failing_chunk_names_its_step)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    char options[64];
    (void)snprintf(options, sizeof options, "speed=0,script=write:%d=fail", _i + 2);
    ck_assert(start(&f, "sim", options));
    make_buffers(&f, 2);
    memset(f.input.data, 1, BYTES);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, BYTES), 0);
    draft_copy(&d, ref_buffer(2, 0, BYTES), ref_buffer(1, 0, BYTES));
    draft_move(&d, OP_READ, ref_buffer(2, 0, BYTES), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, &done), ERR_IO);
    ck_assert_int_eq((int)done.step, 0);
    ck_assert_uint_eq(done.effects, ERR_EFFECTS_MAYBE);
    ck_assert_uint_eq(f.output.data[0], 0);
    draft_init(&d, 2, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, BYTES), 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, BYTES), 0);
    draft_send(&d, &f);
    must(fake_done(&f, 2, &done), &done);
    ck_assert_int_eq(memcmp(f.output.data, f.input.data, BYTES), 0);
    fake_stop(&f);
}
END_TEST

/* A small step fails between two large ones: the second large one does not begin. */
START_TEST(a_failing_step_stops_what_comes_after)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    const uint32_t zero = 0;
    ck_assert(start(&f, "sim", "speed=0,script=fill:3=fail"));
    make_buffers(&f, 1);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, BYTES), 0);
    draft_fill(&d, ref_buffer(1, 0, BYTES), &zero, sizeof zero);
    draft_move(&d, OP_READ, ref_buffer(1, 0, BYTES), 0);
    memset(f.input.data, 1, BYTES);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, &done), ERR_IO);
    ck_assert_int_eq((int)done.step, 1);
    ck_assert_uint_eq(f.output.data[0], 0);
    fake_stop(&f);
}
END_TEST

/* When its device is lost amid chunks the worker reports so and ends; on request it ends at once.
 */
START_TEST(the_end_comes_amid_chunks)
{
    struct fake f;
    struct job_draft d;
    ck_assert(start(&f, "sim", _i == 0 ? "speed=0,script=write:3=lost" : "bandwidth=16M"));
    make_buffers(&f, 1);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, BYTES), 0);
    draft_send(&d, &f);
    if (_i == 0) {
        ck_assert_int_eq(fake_done(&f, 1, NULL), ERR_DEVICE_LOST);
        int status = fake_reap(&f);
        ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 70);
        fake_finish(&f);
    } else {
        fake_stop(&f);
    }
}
END_TEST

/* Many small writes are enqueued together once the device knows their memory. Each has its time. */
START_TEST(small_writes_are_gathered)
{
    enum { WRITES = 200, EACH = 4096, ALL = WRITES * EACH };
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    if (!start(&f, BACKEND[_i], "")) {
        return;
    }
    make_buffers(&f, 1);
    fill_input(&f, ALL / 4);
    uint64_t times = 0, until = clock_now_ns() + LOOK_NS;
    for (uint64_t job = 1; times != WRITES + 1 && clock_now_ns() < until; job++) {
        draft_init(&d, job, 0);
        for (uint64_t i = 0, at; i < WRITES; i++) {
            at = i % 3 == 0 ? WRITES + i : i; /* each third is no neighbour of the one before */
            draft_move(&d, OP_WRITE, ref_buffer(1, at * EACH, EACH), i * EACH);
        }
        draft_move(&d, OP_READ, ref_buffer(1, 0, 2 * ALL), 0);
        draft_send(&d, &f);
        must(fake_done(&f, job, &done), &done);
        times = done.timings.count;
    }
    ck_assert_uint_eq(times, WRITES + 1);
    for (uint64_t i = 0, at; i < WRITES; i++) {
        at = i % 3 == 0 ? WRITES + i : i;
        ck_assert_int_eq(memcmp(f.output.data + at * EACH, f.input.data + i * EACH, EACH), 0);
    }
    fake_stop(&f);
}
END_TEST

/* One of several writes fails that were enqueued together, once the device knows the memory. */
START_TEST(of_gathered_writes_all_are_named)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    static const char all[] = "one of steps 0 to 7";
    bool named = false;
    ck_assert(start(&f, "sim", "speed=0,script=write:2+=fail"));
    make_buffers(&f, 1);
    for (uint64_t job = 1, end = clock_now_ns() + LOOK_NS; !named && clock_now_ns() < end; job++) {
        draft_init(&d, job, 0);
        for (uint64_t i = 0; i < 8; i++) {
            draft_move(&d, OP_WRITE, ref_buffer(1, i * 512, 256), i * 256);
        }
        draft_send(&d, &f);
        ck_assert_int_eq(fake_done(&f, job, &done), ERR_IO);
        ck_assert_int_eq((int)done.step, 0); /* the device reports no more */
        named = memmem(done.text.data, done.text.size, all, sizeof all - 1) != NULL;
    }
    ck_assert_msg(named, "%.*s", (int)done.text.size, done.text.data);
    fake_stop(&f);
}
END_TEST

enum { SMALL_JOBS = 24, SMALL_FLOATS = 64 };

static void small_send(struct fake *f, unsigned job)
{
    static const float one = 1.0f;
    static const uint64_t n = SMALL_FLOATS;
    struct job_draft d;
    uint64_t at = (job - 1) * SMALL_FLOATS * 4;
    draft_init(&d, job, job % 2);
    struct proto_ref x = ref_temp(draft_temp(&d, SMALL_FLOATS * 4), SMALL_FLOATS * 4);
    const struct proto_ref args[] = {ref_value(&one, 4), ref_as(x, ACCESS_IN),
                                     ref_as(x, ACCESS_INOUT), ref_value(&n, 8)};
    draft_move(&d, OP_WRITE, x, at);
    draft_launch(&d, 7, "axpy_f32", SMALL_FLOATS, args, 4);
    draft_move(&d, OP_READ, x, at);
    draft_send(&d, f);
}

static void small_check(const struct fake *f, const struct msg_w_done *done, bool failed)
{
    ck_assert_msg(done->code == (failed ? ERR_IO : 0), "job %llu: %.*s",
                  (unsigned long long)done->job, (int)done->text.size, done->text.data);
    ck_assert_uint_eq(done->timings.count, failed ? 0 : 3);
    uint64_t at = (done->job - 1) * SMALL_FLOATS;
    const float *from = (const float *)(const void *)f->input.data + at;
    const float *to = (const float *)(const void *)f->output.data + at;
    for (unsigned i = 0; !failed && i < SMALL_FLOATS; i++) {
        ck_assert(to[i] == 2 * from[i]);
    }
}

static struct msg_w_pool pool_ask(struct fake *f)
{
    const struct msg_f_pool ask = {.trim = 0};
    struct msg_w_pool pool;
    fake_send(f, &schema_msg_f_pool, &ask, -1);
    fake_expect(f, FRAME_KIND_W_POOL, &schema_msg_w_pool, &pool);
    return pool;
}

/* Small jobs that come in one packet have a mark each and start together. Each has its result; if
 * one fails (on sim: the 7th launch) the others do not. When the kernel was seen to be brief, which
 * a busy machine may put off, they are a batch. */
START_TEST(small_jobs_go_together)
{
    enum { ROUNDS = 200 };
    struct fake f;
    struct msg_w_done done;
    struct msg_w_pool pool = {.batched = 0};
    bool sim = _i == 0;
    if (!start(&f, BACKEND[_i], sim ? "launch_ns=1000,script=launch:7=fail" : "")) {
        return;
    }
    fill_input(&f, ROUNDS * SMALL_JOBS * SMALL_FLOATS);
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    unsigned round = 0;
    unsigned failures = 0;
    for (; round < ROUNDS && pool.batched < SMALL_JOBS; round++) {
        fake_packet_begin(&f);
        for (unsigned job = 1; job <= SMALL_JOBS; job++) {
            small_send(&f, round * SMALL_JOBS + job);
        }
        fake_packet_end(&f);
        for (unsigned left = SMALL_JOBS; left > 0; left--) {
            fake_expect(&f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done);
            small_check(&f, &done, sim && done.code != 0);
            failures += done.code != 0;
        }
        pool = pool_ask(&f);
        /* the first job's time was not known */
        ck_assert_uint_le(pool.batched, round * SMALL_JOBS);
        ck_assert_uint_le(pool.batches, round);
    }
    ck_assert_uint_eq(failures, sim);
    ck_assert_msg(pool.batched >= SMALL_JOBS, "%llu jobs in batches in %u rounds",
                  (unsigned long long)pool.batched, round);
    fake_stop(&f);
}
END_TEST

static void fill_send(struct fake *f, uint64_t job, unsigned stream, uint64_t buffer,
                      uint64_t deadline_ns)
{
    static const uint32_t pattern = 0x01020304;
    struct job_draft d;
    draft_init(&d, job, stream);
    draft_fill(&d, ref_buffer(buffer, 0, 256), &pattern, sizeof pattern);
    d.msg.deadline_ns = deadline_ns;
    draft_send(&d, f);
}

/* Sends `count` jobs one by one. Returns the counts of the pool. */
static struct msg_w_pool fills(struct fake *f, uint64_t *job, unsigned count, uint64_t deadline_ns)
{
    for (unsigned i = 0; i < count; i++) {
        fill_send(f, ++*job, 1 + i % 2, 2 + i, deadline_ns);
    }
    for (unsigned done = 0; done < count;) { /* a busy machine may be late */
        unsigned kind = fake_next(f);
        ck_assert_uint_ne(kind, 0);
        done += kind == FRAME_KIND_W_DONE;
    }
    return pool_ask(f);
}

/* Brief jobs in packets of their own wait for each other only while the device has other work, and
 * only if there is a window. The kernel that hangs is on a stream of its own. */
START_TEST(brief_jobs_wait_for_more_of_them)
{
    enum { ROUNDS = 1000, COUNT_OF_FILLS = 3 };
    const struct msg_f_coalesce window = {.window_ns = UINT64_MAX};
    struct fake f;
    uint64_t job = 1000;
    ck_assert(start(&f, "sim", "speed=0,kernels=4,script=launch:1=hang"));
    fake_builtin(&f, "sim", "axpy", 7);
    for (unsigned i = 1; i <= 1 + COUNT_OF_FILLS; i++) {
        ck_assert_int_eq(fake_buffer(&f, i, BYTES, false), 0);
    }
    for (unsigned i = 0; i < 10; i++) {
        ck_assert_uint_eq(fills(&f, &job, 1, NS_NEVER).waited, 0);
    }
    fake_send(&f, &schema_msg_f_coalesce, &window, -1);
    for (unsigned i = 0; i < 10; i++) { /* alone, and the device has nothing else */
        ck_assert_uint_eq(fills(&f, &job, 1, NS_NEVER).waited, 0);
    }
    struct job_draft d;
    draft_init(&d, 1, 0);
    draft_add(&d, 7, ref_buffer(1, 0, 256), ref_buffer(1, 0, 256));
    draft_send(&d, &f);
    struct msg_w_pool pool = {.waited = 0};
    unsigned round = 0;
    while (round < ROUNDS &&
           pool.batched < 2) { /* a busy machine may put off what makes them one */
        pool = fills(&f, &job, COUNT_OF_FILLS, NS_NEVER);
        round++;
    }
    ck_assert_uint_ge(pool.batched, 2);
    ck_assert_uint_ge(pool.waited, 1);
    ck_assert_uint_le(pool.batched, (uint64_t)round * COUNT_OF_FILLS);
    for (unsigned i = 0; i < 30; i++) { /* jobs without time do not wait */
        uint64_t soon = clock_now_ns() + NS_PER_MS;
        ck_assert_uint_eq(fills(&f, &job, COUNT_OF_FILLS, soon).waited, pool.waited);
    }
    fake_finish(&f); /* a job that hangs is never over */
}
END_TEST

/* A job that waits for another stream's job does not hold up the jobs that came with it, nor does
 * work behind a brief job: all end. */
START_TEST(a_batch_of_mixed_jobs_ends)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    if (!start(&f, BACKEND[_i], "")) {
        return;
    }
    fill_input(&f, COUNT);
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    make_buffers(&f, 2);
    struct proto_ref x = ref_buffer(1, 0, BYTES);
    struct proto_ref y = ref_buffer(2, 0, BYTES);
    small_send(&f, 1);
    must(fake_done(&f, 1, &done), &done);
    for (unsigned round = 1; round <= 3; round++) {
        unsigned first = round * 100;
        fake_packet_begin(&f);
        draft_init(&d, first, 1);
        draft_move(&d, OP_WRITE, x, 0);
        draft_move(&d, OP_WRITE, y, 0);
        draft_send(&d, &f);
        for (unsigned i = 1; i <= 8; i++) {
            if (i == 4) { /* much to do, behind the copies and among the small ones */
                draft_init(&d, first + i, 0);
                draft_after(&d, first);
                draft_add(&d, 7, x, y);
                draft_send(&d, &f);
            } else if (i == 6) { /* little, behind that on another stream */
                draft_init(&d, first + i, 1);
                draft_after(&d, first + 4);
                draft_add(&d, 7, ref_buffer(1, 0, 256), ref_buffer(2, 0, 256));
                draft_send(&d, &f);
            } else {
                small_send(&f, first + i);
            }
        }
        fake_packet_end(&f);
        for (unsigned left = 9; left > 0; left--) {
            fake_expect(&f, FRAME_KIND_W_DONE, &schema_msg_w_done, &done);
            must((int)done.code, &done);
        }
    }
    draft_init(&d, 1000, 0);
    draft_move(&d, OP_READ, y, 0);
    draft_send(&d, &f);
    must(fake_done(&f, 1000, &done), &done);
    const float *got = (const float *)(const void *)f.output.data;
    ck_assert(got[63] == 3 * 63.0f && got[64] == 2 * 64.0f);
    fake_stop(&f);
}
END_TEST

/* One kernel of a job took long and the others did not. Each counts for its own time, so no job is
 * put behind the long one when it comes again. The job behind it is cancelled before it ends. */
START_TEST(a_kernel_is_not_known_by_its_neighbours)
{
    enum { BRIEF = 59 };
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    ck_assert(start(&f, "sim", "items=2500000,launch_ns=1000")); /* a second for all */
    fake_builtin(&f, "sim", "axpy", 7);
    make_buffers(&f, 2);
    struct proto_ref x = ref_buffer(1, 0, BYTES);
    struct proto_ref y = ref_buffer(2, 0, BYTES);
    draft_init(&d, 1, 0);
    draft_add(&d, 7, x, y);
    for (unsigned i = 0; i < BRIEF; i++) {
        draft_add(&d, 7, ref_buffer(1, 0, 256), ref_buffer(2, 0, 256));
    }
    draft_send(&d, &f);
    must(fake_done(&f, 1, &done), &done);
    fake_packet_begin(&f);
    draft_init(&d, 2, 0);
    draft_add(&d, 7, x, y);
    draft_send(&d, &f);
    draft_init(&d, 3, 0);
    draft_after(&d, 2);
    draft_add(&d, 7, x, y);
    draft_send(&d, &f);
    const struct msg_f_cancel cancel = {.job = 3};
    fake_send(&f, &schema_msg_f_cancel, &cancel, -1);
    fake_packet_end(&f);
    ck_assert_int_eq(fake_done(&f, 3, &done), ERR_CANCELLED);
    must(fake_done(&f, 2, &done), &done);
    fake_stop(&f);
}
END_TEST

/* A job in the worker is cancelled: the kernel before it takes long, so it is not in a stream yet.
 * It is answered at once and its memory is free. A job that comes after it comes after the kernel
 * all the same. */
START_TEST(a_cancelled_job_never_runs)
{
    enum { TEMP = 8 << 20 };
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    const uint32_t pattern = 0x40400000;                 /* 3.0f */
    ck_assert(start(&f, "sim", "launch_ns=1000000000")); /* time enough to take another one back */
    fill_input(&f, COUNT);
    memset(f.output.data, 0xa5, BYTES);
    fake_builtin(&f, "sim", "axpy", 7);
    make_buffers(&f, 2);
    struct proto_ref x = ref_buffer(1, 0, 256);
    struct proto_ref y = ref_buffer(2, 0, 256);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, x, 0);
    draft_move(&d, OP_WRITE, y, 0);
    draft_add(&d, 7, x, y);
    draft_send(&d, &f);
    draft_init(&d, 2, 0); /* the one that is cancelled */
    draft_after(&d, 1);
    uint64_t temp = draft_temp(&d, TEMP);
    draft_fill(&d, ref_temp(temp, TEMP), &pattern, 4);
    draft_fill(&d, y, &pattern, 4);
    draft_move(&d, OP_READ, y, 0);
    draft_send(&d, &f);
    draft_init(&d, 3, 1);
    draft_after(&d, 2);
    draft_move(&d, OP_READ, y, 1024);
    draft_send(&d, &f);
    uint64_t used = pool_ask(&f).used;
    const struct msg_f_cancel cancel = {.job = 2};
    fake_send(&f, &schema_msg_f_cancel, &cancel, -1);
    fake_send(&f, &schema_msg_f_cancel, &cancel, -1); /* twice is once */
    ck_assert_int_eq(fake_done(&f, 2, &done), ERR_CANCELLED);
    ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
    ck_assert_uint_le(pool_ask(&f).used + TEMP, used);
    const struct msg_f_retire retire = {.job = 2};
    fake_send(&f, &schema_msg_f_retire, &retire, -1); /* while its place is still needed */
    must(fake_done(&f, 1, &done), &done);
    must(fake_done(&f, 3, &done), &done);
    ck_assert_uint_eq(f.output.data[0], 0xa5);
    const float *got = (const float *)(const void *)(f.output.data + 1024);
    for (unsigned i = 0; i < 64; i++) {
        ck_assert(got[i] == 2.0f * (float)i);
    }
    const struct msg_f_cancel late = {.job = 3};
    fake_send(&f, &schema_msg_f_cancel, &late, -1); /* it has ended: there is no further answer */
    small_send(&f, 10);
    must(fake_done(&f, 10, &done), &done);
    fake_stop(&f);
}
END_TEST

/* A front that takes the worker over does not know the module and unloads it: the job has it until
 * its end, also while it waits behind a long kernel. */
START_TEST(a_job_keeps_its_module)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    ck_assert(start(&f, "sim", "launch_ns=100000000"));
    fill_input(&f, COUNT);
    fake_builtin(&f, "sim", "axpy", 7);
    make_buffers(&f, 2);
    for (unsigned i = 1; i <= 2; i++) {
        draft_init(&d, i, 0);
        if (i > 1) {
            draft_after(&d, i - 1);
        }
        draft_move(&d, OP_WRITE, ref_buffer(1, 0, 256), 0);
        draft_move(&d, OP_WRITE, ref_buffer(2, 0, 256), 0);
        draft_add(&d, 7, ref_buffer(1, 0, 256), ref_buffer(2, 0, 256));
        draft_send(&d, &f);
    }
    const struct msg_f_module_unload unload = {.module = 7};
    fake_send(&f, &schema_msg_f_module_unload, &unload, -1);
    must(fake_done(&f, 1, &done), &done);
    must(fake_done(&f, 2, &done), &done);
    fake_stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("bulk");
    TCase *tcase = tcase_create("bulk");
    tcase_set_timeout(tcase, 90);
    tcase_add_loop_test(tcase, steps_see_each_other, 0, 2);
    tcase_add_loop_test(tcase, frames_up_to_a_chunk_and_beyond, 0, 2);
    tcase_add_loop_test(tcase, jobs_see_each_other, 0, 2);
    tcase_add_test(tcase, copies_of_a_direction_keep_their_order);
    tcase_add_loop_test(tcase, a_job_without_steps_hands_on_the_order, 0, 2);
    tcase_add_test(tcase, copies_and_kernels_of_one_job_overlap);
    tcase_add_test(tcase, successive_jobs_overlap);
    tcase_add_test(tcase, small_jobs_pass_bulk_copies);
    tcase_add_loop_test(tcase, a_job_waits_for_what_is_restored, 0, 2);
    tcase_add_loop_test(tcase, a_failing_chunk_names_its_step, 0, 3);
    tcase_add_test(tcase, a_failing_step_stops_what_comes_after);
    tcase_add_loop_test(tcase, the_end_comes_amid_chunks, 0, 2);
    tcase_add_loop_test(tcase, small_writes_are_gathered, 0, 2);
    tcase_add_loop_test(tcase, small_jobs_go_together, 0, 2);
    tcase_add_test(tcase, brief_jobs_wait_for_more_of_them);
    tcase_add_loop_test(tcase, a_batch_of_mixed_jobs_ends, 0, 2);
    tcase_add_test(tcase, a_cancelled_job_never_runs);
    tcase_add_test(tcase, a_job_keeps_its_module);
    tcase_add_test(tcase, a_kernel_is_not_known_by_its_neighbours);
    tcase_add_test(tcase, of_gathered_writes_all_are_named);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
