/* gpud-worker as a process, with the test as its front: on simulated devices and on OpenCL. */
#include <check.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/backend/backend.h"
#include "tests/unit/worker/fake_front.h"

#define N 1000u

static const char *const BACKEND[] = {"opencl", "sim"};
#define BACKENDS ((int)(sizeof BACKEND / sizeof BACKEND[0]))

/* false: this back end was not built in, or has no device here. A device that is there but does not
 * work fails the test. */
static bool start(struct fake *f, int which)
{
    struct err e = ERR_INIT;
    struct msg_w_absent absent;
    if (backend_find(BACKEND[which]) == NULL) {
        return false;
    }
    fake_start(f, BACKEND[which], NULL);
    if (!f->absent) {
        return true;
    }
    ck_assert_int_eq(proto_decode(&schema_msg_w_absent, bytes_of(f->frame, f->size), &absent, &e),
                     0);
    ck_assert_msg(absent.code == ERR_NO_DEVICE, "%.*s", (int)absent.text.size, absent.text.data);
    fake_finish(f);
    return false;
}

static void fill_inputs(struct fake *f)
{
    float *x = (float *)(void *)f->input.data;
    for (unsigned i = 0; i < N; i++) {
        x[i] = (float)i;
        x[N + i] = 0.5f * (float)(N - i);
    }
    memset(f->output.data, 0xa5, 1u << 20);
}

static void draft_axpy(struct job_draft *d, uint64_t module, float *a, uint64_t *n)
{
    const struct proto_ref args[] = {ref_value(a, sizeof *a), ref_buffer(1, 0, N * 4),
                                     ref_buffer(2, 0, N * 4), ref_value(n, sizeof *n)};
    draft_launch(d, module, "axpy_f32", N, args, 4);
}

static void check_axpy(const struct fake *f, float a, uint64_t stage)
{
    const float *y = (const float *)(const void *)(f->output.data + stage);
    for (unsigned i = 0; i < N; i++) {
        ck_assert_msg(y[i] == a * (float)i + 0.5f * (float)(N - i), "y[%u] = %g", i, (double)y[i]);
    }
}

START_TEST(axpy_in_one_job)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    float a = 2.0f;
    uint64_t n = N;
    if (!start(&f, _i)) {
        return;
    }
    fill_inputs(&f);
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    ck_assert_int_eq(fake_buffer(&f, 1, N * 4, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, N * 4, true), 0);
    draft_init(&d, 11, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, N * 4), 0);
    draft_move(&d, OP_WRITE, ref_buffer(2, 0, N * 4), N * 4);
    draft_axpy(&d, 7, &a, &n);
    draft_move(&d, OP_READ, ref_buffer(2, 0, N * 4), 0);
    draft_send(&d, &f);
    int code = fake_done(&f, 11, &done);
    ck_assert_msg(code == 0, "%.*s", (int)done.text.size, done.text.data);
    ck_assert_uint_eq(done.timings.count, 4);
    ck_assert_uint_ge(done.ended_ns, done.started_ns);
    ck_assert_uint_eq(done.effects, ERR_EFFECTS_YES);
    check_axpy(&f, a, 0);
    fake_stop(&f);
}
END_TEST

/* Ten writers of one buffer take turns between two streams, in the order that `after` says. */
START_TEST(jobs_across_streams_are_ordered)
{
    struct fake f;
    struct job_draft d;
    float a = 1.0f;
    uint64_t n = N;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_uint_ge(f.streams, 2);
    fill_inputs(&f);
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    ck_assert_int_eq(fake_buffer(&f, 1, N * 4, false), 0);
    ck_assert_int_eq(fake_buffer(&f, 2, N * 4, false), 0);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, N * 4), 0);
    draft_move(&d, OP_WRITE, ref_buffer(2, 0, N * 4), N * 4);
    draft_send(&d, &f);
    for (unsigned i = 2; i <= 11; i++) {
        draft_init(&d, i, i % 2);
        draft_after(&d, i - 1);
        draft_axpy(&d, 7, &a, &n);
        draft_send(&d, &f);
    }
    draft_init(&d, 12, 1);
    draft_after(&d, 11);
    draft_move(&d, OP_READ, ref_buffer(2, 0, N * 4), 256);
    draft_send(&d, &f);
    for (uint64_t job = 1; job <= 12; job++) {
        ck_assert_int_eq(fake_done(&f, job, NULL), 0);
    }
    check_axpy(&f, 10.0f, 256);
    fake_stop(&f);
}
END_TEST

/* Copies and fills work on a temporary, and its bytes come back unchanged. */
START_TEST(temporaries_copies_and_fills)
{
    struct fake f;
    struct job_draft d;
    const uint32_t pattern = 0x12345678;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    draft_init(&d, 1, 0);
    uint64_t t = draft_temp(&d, 1024);
    draft_fill(&d, ref_temp(t, 1024), &pattern, sizeof pattern);
    draft_copy(&d, ref_buffer(1, 1024, 1024), ref_temp(t, 1024));
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 64);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
    for (unsigned i = 0; i < 1024; i++) {
        uint32_t value;
        memcpy(&value, f.output.data + 64 + i * 4, 4);
        ck_assert_uint_eq(value, i >= 256 && i < 512 ? pattern : 0);
    }
    fake_stop(&f);
}
END_TEST

/* Twelve MiB of temporaries, two of them needed at once, on a device with six. */
START_TEST(temporaries_share_memory)
{
    struct fake f;
    struct job_draft d;
    const uint64_t size = 1 << 20;
    const uint32_t pattern = 0x89abcdef;
    const char *args[] = {"--options", "speed=0", "--memory-limit", "6291456", NULL};
    fake_start(&f, "sim", args);
    ck_assert(!f.absent);
    draft_init(&d, 1, 0);
    uint64_t t = draft_temp(&d, size);
    draft_fill(&d, ref_temp(t, size), &pattern, sizeof pattern);
    for (unsigned i = 1; i < 12; i++) {
        uint64_t u = draft_temp(&d, size);
        draft_copy(&d, ref_temp(u, size), ref_temp(t, size));
        t = u;
    }
    draft_move(&d, OP_READ, ref_temp(t, size), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
    for (unsigned i = 0; i < size / 4; i += 4099) {
        uint32_t value;
        memcpy(&value, f.output.data + i * 4, 4);
        ck_assert_uint_eq(value, pattern);
    }
    fake_stop(&f);
}
END_TEST

/* Each bad reference is refused with its own error, no command runs, and the worker goes on. */
START_TEST(bad_references_are_refused)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), ERR_EXISTS);
    ck_assert_int_eq(fake_buffer(&f, 2, UINT64_MAX, true), ERR_DEVICE_MEMORY);
    const struct {
        struct proto_ref ref;
        uint64_t stage;
        int code;
    } BAD[] = {
        {ref_buffer(9, 0, 16), 0, ERR_BUFFER_LOST},
        {ref_buffer(1, 4090, 16), 0, ERR_RANGE},
        {ref_buffer(1, UINT64_MAX, 16), 0, ERR_RANGE},
        {ref_buffer(1, 16, UINT64_MAX), 0, ERR_RANGE},
        {ref_temp(0, 16), 0, ERR_BAD_HANDLE},
        {ref_buffer(1, 0, 16), FAKE_STAGING - 8, ERR_RANGE},
        {ref_buffer(1, 0, 16), UINT64_MAX, ERR_RANGE},
        {ref_value("x", 1), 0, ERR_ARG_TYPE},
    };
    for (unsigned i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        draft_init(&d, 100 + i, 0);
        draft_move(&d, i % 2 == 0 ? OP_READ : OP_WRITE, BAD[i].ref, BAD[i].stage);
        draft_send(&d, &f);
        ck_assert_msg(fake_done(&f, 100 + i, &done) == BAD[i].code, "case %u: %d", i,
                      (int)done.code);
        ck_assert_int_eq((int)done.step, 0);
        ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
    }
    draft_init(&d, 200, 0);
    draft_launch(&d, 5, "nothing", 1, NULL, 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 200, NULL), ERR_BAD_HANDLE);
    draft_init(&d, 201, 77);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 201, NULL), ERR_RANGE);
    draft_init(&d, 202, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 202, NULL), 0);
    fake_stop(&f);
}
END_TEST

/* A launch that the device refuses has no effect; steps before it may have some. */
START_TEST(a_refused_launch_has_no_effects)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    uint64_t n = N;
    if (!start(&f, _i)) {
        return;
    }
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    ck_assert_int_eq(fake_buffer(&f, 1, N * 4, true), 0);
    const struct proto_ref local = {.tag = REF_LOCAL, .size = 16};
    const struct proto_ref args[] = {local, ref_buffer(1, 0, N * 4), ref_buffer(1, 0, N * 4),
                                     ref_value(&n, sizeof n)};
    for (unsigned i = 0; i < 2; i++) {
        draft_init(&d, 1 + i, 0);
        if (i == 1) {
            draft_fill(&d, ref_buffer(1, 0, N * 4), "\1", 1);
        }
        draft_launch(&d, 7, "axpy_f32", N, args, 4);
        draft_send(&d, &f);
        ck_assert_int_lt(fake_done(&f, 1 + i, &done), 0);
        ck_assert_int_eq((int)done.step, (int)i);
        ck_assert_uint_eq(done.effects, i == 0 ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE);
    }
    fake_stop(&f);
}
END_TEST

/* All local memory is counted before anything is launched: the kernel's own, the launch's dynamic
 * memory, and arguments. */
START_TEST(local_memory_has_an_end)
{
    struct fake f;
    struct msg_w_done done;
    static const uint64_t LOCAL[] = {UINT64_C(1) << 63, UINT64_MAX, UINT64_C(1) << 40};
    if (!start(&f, _i)) {
        return;
    }
    fake_builtin(&f, BACKEND[_i], "axpy", 7);
    ck_assert_int_eq(fake_buffer(&f, 1, N * 4, true), 0);
    float a = 1.0f;
    uint64_t n = N;
    for (unsigned i = 0; i < 6; i++) {
        struct job_draft d;
        const struct proto_ref local = {.tag = REF_LOCAL, .size = LOCAL[i / 2]};
        const struct proto_ref args[] = {
            i % 2 == 0 ? ref_value(&a, sizeof a) : local, ref_buffer(1, 0, N * 4),
            i % 2 == 0 ? ref_buffer(1, 0, N * 4) : local, ref_value(&n, sizeof n)};
        draft_init(&d, 1 + i, 0);
        d.shared = i % 2 == 0 ? LOCAL[i / 2] : 0;
        draft_launch(&d, 7, "axpy_f32", N, args, 4);
        draft_send(&d, &f);
        ck_assert_int_eq(fake_done(&f, 1 + i, &done), ERR_RANGE);
        ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
        ck_assert_ptr_nonnull(memmem(done.text.data, done.text.size, "bytes of local memory", 21));
    }
    fake_stop(&f);
}
END_TEST

/* A malformed frame is answered by the id at its beginning, or ignored. */
START_TEST(bad_frames_are_refused)
{
    struct fake f;
    if (!start(&f, _i)) {
        return;
    }
    /* [135, 42, 3, "no list"] : a job whose third field is of the wrong type */
    static const uint8_t BAD_JOB[] = {0x94, 0xcc, 135, 42, 3, 0xa2, 'n', 'o'};
    static const uint8_t NOISE[] = {0xc1, 0xff, 0x00};
    static const uint8_t UNKNOWN[] = {0x92, 0xcc, 250, 1};
    fake_send_bytes(&f, bytes_of(NOISE, sizeof NOISE), NULL);
    fake_send_bytes(&f, bytes_of(UNKNOWN, sizeof UNKNOWN), NULL);
    fake_send_bytes(&f, bytes_of(BAD_JOB, sizeof BAD_JOB), NULL);
    ck_assert_int_eq(fake_done(&f, 42, NULL), ERR_PROTOCOL);
    ck_assert_int_eq(fake_module(&f, 3, bytes_str("not a program")) < 0, 1);
    fake_stop(&f);
}
END_TEST

static void seal(struct fake *f, uint64_t id, uint64_t size, struct memfd *ret_host)
{
    struct err e = ERR_INIT;
    struct msg_f_buffer_seal msg = {.id = id, .size = size};
    struct msg_w_buffer answer;
    ck_assert_int_eq(memfd_create_sealed("host", (size_t)size, ret_host, &e), 0);
    fake_send(f, &schema_msg_f_buffer_seal, &msg, ret_host->fd);
    fake_expect(f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    ck_assert_int_eq((int)answer.code, 0);
}

/* A buffer that was sealed in one worker has the same bytes in the next worker that restores it. */
START_TEST(sealed_buffers_are_restored)
{
    struct fake f;
    struct job_draft d;
    struct memfd host = MEMFD_NONE;
    if (!start(&f, _i)) {
        return;
    }
    fill_inputs(&f);
    ck_assert_int_eq(fake_buffer(&f, 1, N * 4, false), 0);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_WRITE, ref_buffer(1, 0, N * 4), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
    seal(&f, 1, N * 4, &host);
    ck_assert_int_eq(memcmp(host.data, f.input.data, N * 4), 0);
    ck_assert_int_eq(kill(f.pid, SIGKILL), 0);
    fake_finish(&f);

    ck_assert(start(&f, _i));
    struct msg_f_buffer_restore msg = {.id = 5, .size = N * 4};
    struct msg_w_buffer answer;
    fake_send(&f, &schema_msg_f_buffer_restore, &msg, host.fd);
    fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
    ck_assert_int_eq((int)answer.code, 0);
    draft_init(&d, 2, 0);
    draft_move(&d, OP_READ, ref_buffer(5, 0, N * 4), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0);
    ck_assert_int_eq(memcmp(f.output.data, host.data, N * 4), 0);
    fake_stop(&f);
    memfd_finish(&host);
}
END_TEST

/* The host copy has what earlier jobs wrote, though the front did not wait for them. */
START_TEST(a_seal_follows_the_writers)
{
    struct fake f;
    struct job_draft d;
    struct err e = ERR_INIT;
    struct memfd host = MEMFD_NONE;
    const uint64_t size = 1 << 20;
    const uint32_t pattern = 0xcafe0001;
    bool sealed = false;
    bool done = false;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, size, true), 0);
    ck_assert_int_eq(memfd_create_sealed("host", (size_t)size, &host, &e), 0);
    draft_init(&d, 1, 1);
    draft_fill(&d, ref_buffer(1, 0, size), &pattern, sizeof pattern);
    draft_send(&d, &f);
    struct msg_f_buffer_seal msg = {.id = 1, .size = size};
    fake_send(&f, &schema_msg_f_buffer_seal, &msg, host.fd);
    while (!sealed || !done) {
        unsigned kind = fake_next(&f);
        ck_assert(kind == FRAME_KIND_W_BUFFER || kind == FRAME_KIND_W_DONE || fake_turns(kind));
        sealed = sealed || kind == FRAME_KIND_W_BUFFER;
        done = done || kind == FRAME_KIND_W_DONE;
    }
    for (size_t i = 0; i < size; i += sizeof pattern) {
        ck_assert_int_eq(memcmp(host.data + i, &pattern, sizeof pattern), 0);
    }
    fake_stop(&f);
    memfd_finish(&host);
}
END_TEST

/* A second front asks and gets buffers with their host copies, jobs with their answers. */
START_TEST(the_inventory_has_jobs_until_retired)
{
    struct fake f;
    struct job_draft d;
    struct memfd host = MEMFD_NONE;
    struct msg_f_inventory ask = {.nonce = 99};
    struct msg_w_inventory_buffer inventory;
    struct msg_w_inventory_job job;
    struct msg_w_inventory_end end;
    struct msg_w_ready ready;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    struct memfd before = MEMFD_NONE;
    seal(&f, 1, 4096, &before); /* a front asks for it that did not get the answer */
    seal(&f, 1, 4096, &host);
    memfd_finish(&before);
    draft_init(&d, 31, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 31, NULL), 0);

    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_READY, &schema_msg_w_ready, &ready);
    ck_assert(bytes_equal_str(ready.backend, BACKEND[_i]));
    fake_expect(&f, FRAME_KIND_W_INVENTORY_BUFFER, &schema_msg_w_inventory_buffer, &inventory);
    ck_assert_uint_eq(inventory.id, 1);
    ck_assert_uint_eq(inventory.size, 4096);
    ck_assert_uint_eq(inventory.sealed, 1);
    ck_assert_int_eq(f.fds.count, 1);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_JOB, &schema_msg_w_inventory_job, &job);
    ck_assert_uint_eq(job.job, 31);
    ck_assert_uint_eq(job.finished, 1);
    ck_assert_int_eq(fake_done(&f, 31, NULL), 0);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_END, &schema_msg_w_inventory_end, &end);
    ck_assert_uint_eq(end.nonce, 99);

    struct msg_f_retire retire = {.job = 31};
    struct msg_f_buffer_free gone = {.id = 1};
    fake_send(&f, &schema_msg_f_retire, &retire, -1);
    fake_send(&f, &schema_msg_f_buffer_free, &gone, -1);
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_READY, &schema_msg_w_ready, &ready);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_END, &schema_msg_w_inventory_end, &end);
    fake_stop(&f);
    memfd_finish(&host);
}
END_TEST

/* A job that is sent twice runs once, and both answers are the same. */
START_TEST(a_job_given_twice_runs_once)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done first;
    struct msg_w_done second;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    draft_init(&d, 1, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, &first), 0);
    uint64_t started = first.started_ns;
    draft_init(&d, 1, 0);
    draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, &second), 0);
    ck_assert_uint_eq(second.started_ns, started);
    fake_stop(&f);
}
END_TEST

/* Answers that the channel has no room for wait in the worker until the front reads. */
START_TEST(answers_wait_for_their_reader)
{
    struct fake f;
    struct job_draft d;
    const uint64_t count = 400;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    for (uint64_t i = 0; i <= count; i++) {
        draft_init(&d, i + 1, 0);
        draft_move(&d, OP_READ, ref_buffer(1, 0, 4096), 0);
        draft_send(&d, &f);
        if (i == 0) { /* jobs that wait for the buffer's zeros may be passed */
            ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
        }
    }
    for (uint64_t i = 2; i <= count + 1; i++) {
        ck_assert_int_eq(fake_done(&f, i, NULL), 0);
    }
    fake_stop(&f);
}
END_TEST

START_TEST(pool_stats_are_reported)
{
    struct fake f;
    struct msg_f_pool ask = {.trim = 1};
    struct msg_w_pool pool;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(fake_buffer(&f, 1, 1 << 20, false), 0);
    fake_send(&f, &schema_msg_f_pool, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_POOL, &schema_msg_w_pool, &pool);
    ck_assert_uint_ge(pool.used, 1 << 20);
    ck_assert_uint_eq(pool.live, 1);
    fake_stop(&f);
}
END_TEST

START_TEST(the_channels_end_ends_the_worker)
{
    struct fake f;
    if (!start(&f, _i)) {
        return;
    }
    ck_assert_int_eq(close(f.fd), 0);
    f.fd = -1;
    int status = fake_reap(&f);
    ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) == 0, "status %x", (unsigned)status);
    fake_finish(&f);
}
END_TEST

/* A simulated device that misbehaves as its script says. */
static void start_scripted(struct fake *f, const char *script)
{
    char options[128];
    const char *args[] = {"--options", options, NULL};
    (void)snprintf(options, sizeof options, "script=%s", script);
    fake_start(f, "sim", args);
}

static void draft_fill_zero(struct job_draft *d, uint64_t job, unsigned stream, uint64_t after)
{
    draft_init(d, job, stream);
    if (after != 0) {
        draft_after(d, after);
    }
    draft_fill(d, ref_buffer(1, 0, 4096), "\0", 1);
}

/* Only the job that failed is reported as failed: the front finds which later jobs read its
 * undefined results. */
START_TEST(a_failure_is_its_own)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    start_scripted(&f, "fill:3=fail");
    ck_assert(!f.absent);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    for (unsigned i = 1; i <= 4; i++) {
        draft_fill_zero(&d, i, i % 2, i - 1);
        draft_send(&d, &f);
    }
    for (unsigned i = 1; i <= 4; i++) {
        ck_assert_int_eq(fake_done(&f, i, &done) == 0, i != 2);
        ck_assert_uint_eq(done.effects, i == 2 ? ERR_EFFECTS_MAYBE : ERR_EFFECTS_YES);
        ck_assert_int_eq((int)done.step, i == 2 ? 0 : -1);
    }
    draft_fill_zero(&d, 5, 1, 2);
    draft_send(&d, &f);
    int code = fake_done(&f, 5, &done);
    ck_assert_msg(code == 0, "%.*s", (int)done.text.size, done.text.data);
    fake_stop(&f);
}
END_TEST

static const struct {
    const char *script;
    int code;
} LOST[] = {{"fill:2=fault", ERR_KERNEL_FAULT}, {"fill:2=lost", ERR_DEVICE_LOST}};

START_TEST(a_lost_device_ends_the_worker)
{
    struct fake f;
    struct job_draft d;
    start_scripted(&f, LOST[_i].script);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_fill_zero(&d, 1, 0, 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), LOST[_i].code);
    int status = fake_reap(&f);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 70);
    fake_finish(&f);
}
END_TEST

/* The first two markers are behind zeros and behind the check when the device is opened. The end of
 * a copy without a marker can never be known: its memory must not be used again. */
START_TEST(a_copy_without_a_marker_ends_the_worker)
{
    struct fake f;
    struct err e = ERR_INIT;
    struct msg_w_buffer answer;
    struct memfd host = MEMFD_NONE;
    start_scripted(&f, "mark:3=fail");
    ck_assert(!f.absent);
    if (_i == 0) {
        ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), ERR_DEVICE_LOST);
    } else {
        struct msg_f_buffer_seal msg = {.id = 1, .size = 4096};
        ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
        ck_assert_int_eq(memfd_create_sealed("host", 4096, &host, &e), 0);
        fake_send(&f, &schema_msg_f_buffer_seal, &msg, host.fd);
        fake_expect(&f, FRAME_KIND_W_BUFFER, &schema_msg_w_buffer, &answer);
        ck_assert_int_eq(answer.code, ERR_DEVICE_LOST);
    }
    int status = fake_reap(&f);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 70);
    memfd_finish(&host);
    fake_finish(&f);
}
END_TEST

START_TEST(a_job_after_itself_is_refused)
{
    struct fake f;
    struct job_draft d;
    start_scripted(&f, "");
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_fill_zero(&d, 1, 0, 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), ERR_PROTOCOL);
    fake_stop(&f);
}
END_TEST

/* A refused job stands between its predecessors and its successors. Without it, a successor on
 * another stream would run beside a predecessor. */
START_TEST(a_refused_job_keeps_its_place)
{
    struct fake f;
    struct job_draft d;
    const char *const args[] = {"--options", "items=40000", NULL};
    fake_start(&f, "sim", args);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_fill_zero(&d, 1, 0, 0);
    draft_send(&d, &f);
    draft_init(&d, 2, 1);
    draft_after(&d, 1);
    draft_fill(&d, ref_buffer(99, 0, 4096), "\0", 1);
    draft_send(&d, &f);
    draft_init(&d, 3, 1); /* it has no steps, and would be over at once */
    draft_after(&d, 2);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
    ck_assert_int_eq(fake_done(&f, 2, NULL), ERR_BUFFER_LOST);
    ck_assert_int_eq(fake_done(&f, 3, NULL), 0);
    fake_stop(&f);
}
END_TEST

/* Two jobs that come after each other would never run. */
START_TEST(a_job_comes_after_what_was_given_before)
{
    struct fake f;
    struct job_draft d;
    start_scripted(&f, "");
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_fill_zero(&d, 1, 0, 2);
    draft_send(&d, &f);
    draft_fill_zero(&d, 2, 1, 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), ERR_PROTOCOL);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0);
    fake_stop(&f);
}
END_TEST

/* A job that takes long is reported, to the next front as well. The worker ends on request
 * meanwhile. */
START_TEST(a_hanging_job_is_reported)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_started started;
    struct msg_w_inventory_job inventory;
    struct msg_f_inventory ask = {.nonce = 5};
    start_scripted(&f, "fill:2=hang");
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_fill_zero(&d, 1, 0, 0);
    draft_send(&d, &f);
    fake_expect(&f, FRAME_KIND_W_STARTED, &schema_msg_w_started, &started);
    ck_assert_uint_eq(started.job, 1);
    uint64_t at = started.at_ns;
    fake_send(&f, &schema_msg_f_inventory, &ask, -1);
    fake_expect(&f, FRAME_KIND_W_READY, &schema_msg_w_ready, &(struct msg_w_ready){0});
    fake_expect(&f, FRAME_KIND_W_INVENTORY_BUFFER, &schema_msg_w_inventory_buffer,
                &(struct msg_w_inventory_buffer){0});
    fake_expect(&f, FRAME_KIND_W_INVENTORY_JOB, &schema_msg_w_inventory_job, &inventory);
    ck_assert_uint_eq(inventory.finished, 0);
    fake_expect(&f, FRAME_KIND_W_STARTED, &schema_msg_w_started, &started);
    ck_assert_uint_eq(started.job, 1);
    ck_assert_uint_eq(started.at_ns, at);
    fake_expect(&f, FRAME_KIND_W_INVENTORY_END, &schema_msg_w_inventory_end,
                &(struct msg_w_inventory_end){0});
    fake_stop(&f);
}
END_TEST

/* A job without steps is over at once, even if the device does not answer any more. */
START_TEST(a_job_without_steps_needs_no_device)
{
    struct fake f;
    struct job_draft d;
    struct msg_w_done done;
    start_scripted(&f, "fill:2=hang");
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_fill_zero(&d, 1, 0, 0);
    draft_send(&d, &f);
    draft_init(&d, 2, 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 2, &done), 0);
    ck_assert_uint_eq(done.timings.count, 0);
    ck_assert_uint_ne(done.started_ns, 0);
    ck_assert_uint_eq(done.started_ns, done.ended_ns);
    ck_assert_uint_eq(done.effects, ERR_EFFECTS_NONE);
    fake_stop(&f);
}
END_TEST

/* It ends after its predecessors all the same. */
START_TEST(a_job_without_steps_keeps_its_place)
{
    struct fake f;
    struct job_draft d;
    const char *const args[] = {"--options", "items=40000", NULL};
    fake_start(&f, "sim", args);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, false), 0);
    draft_fill_zero(&d, 1, 0, 0);
    draft_send(&d, &f);
    draft_init(&d, 2, 1);
    draft_after(&d, 1);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), 0);
    ck_assert_int_eq(fake_done(&f, 2, NULL), 0);
    fake_stop(&f);
}
END_TEST

START_TEST(a_buffer_that_cannot_be_zeroed_is_refused)
{
    struct fake f;
    struct job_draft d;
    start_scripted(&f, "fill:2=fail");
    ck_assert_int_lt(fake_buffer(&f, 1, 4096, true), 0);
    draft_fill_zero(&d, 1, 0, 0);
    draft_send(&d, &f);
    ck_assert_int_eq(fake_done(&f, 1, NULL), ERR_BUFFER_LOST);
    ck_assert_int_eq(fake_buffer(&f, 1, 4096, true), 0);
    fake_stop(&f);
}
END_TEST

START_TEST(a_device_that_does_not_open_is_absent)
{
    struct fake f;
    start_scripted(&f, "open:1=fail");
    ck_assert(f.absent);
    fake_finish(&f);
}
END_TEST

START_TEST(a_missing_device_is_absent)
{
    struct fake f;
    struct err e = ERR_INIT;
    struct msg_w_absent absent;
    fake_start(&f, "abacus", NULL);
    ck_assert(f.absent);
    ck_assert_int_eq(proto_decode(&schema_msg_w_absent, bytes_of(f.frame, f.size), &absent, &e), 0);
    ck_assert_int_eq((int)absent.code, ERR_UNSUPPORTED);
    int status = fake_reap(&f);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 69);
    fake_finish(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("worker");
    TCase *jobs = tcase_create("jobs");
    TCase *process = tcase_create("process");
    tcase_set_timeout(jobs, 90);
    TCase *faults = tcase_create("faults");
    tcase_set_timeout(process, 90);
    tcase_set_timeout(faults, 90);
    tcase_add_loop_test(jobs, axpy_in_one_job, 0, BACKENDS);
    tcase_add_loop_test(jobs, jobs_across_streams_are_ordered, 0, BACKENDS);
    tcase_add_loop_test(jobs, temporaries_copies_and_fills, 0, BACKENDS);
    tcase_add_loop_test(jobs, bad_references_are_refused, 0, BACKENDS);
    tcase_add_loop_test(jobs, a_refused_launch_has_no_effects, 0, BACKENDS);
    tcase_add_loop_test(jobs, local_memory_has_an_end, 0, BACKENDS);
    tcase_add_loop_test(jobs, bad_frames_are_refused, 0, BACKENDS);
    tcase_add_loop_test(jobs, sealed_buffers_are_restored, 0, BACKENDS);
    tcase_add_loop_test(jobs, a_seal_follows_the_writers, 0, BACKENDS);
    tcase_add_loop_test(jobs, the_inventory_has_jobs_until_retired, 0, BACKENDS);
    tcase_add_loop_test(jobs, a_job_given_twice_runs_once, 0, BACKENDS);
    tcase_add_loop_test(jobs, answers_wait_for_their_reader, 0, BACKENDS);
    tcase_add_loop_test(jobs, pool_stats_are_reported, 0, BACKENDS);
    tcase_add_loop_test(process, the_channels_end_ends_the_worker, 0, BACKENDS);
    tcase_add_test(process, a_missing_device_is_absent);
    tcase_add_test(jobs, temporaries_share_memory);
    tcase_add_test(faults, a_failure_is_its_own);
    tcase_add_loop_test(faults, a_copy_without_a_marker_ends_the_worker, 0, 2);
    tcase_add_test(faults, a_job_after_itself_is_refused);
    tcase_add_test(faults, a_refused_job_keeps_its_place);
    tcase_add_test(faults, a_job_comes_after_what_was_given_before);
    tcase_add_loop_test(faults, a_lost_device_ends_the_worker, 0, 2);
    tcase_add_test(faults, a_hanging_job_is_reported);
    tcase_add_test(faults, a_job_without_steps_needs_no_device);
    tcase_add_test(faults, a_job_without_steps_keeps_its_place);
    tcase_add_test(faults, a_buffer_that_cannot_be_zeroed_is_refused);
    tcase_add_test(faults, a_device_that_does_not_open_is_absent);
    suite_add_tcase(suite, faults);
    suite_add_tcase(suite, jobs);
    suite_add_tcase(suite, process);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
