/* Jobs from the queue to their end: dispatch, completion and conclusion, with no worker at all. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/dispatch.h"
#include "daemon/front/sched/hazard.h"
#include "daemon/front/sched/history.h"
#include "daemon/front/sched/queue.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static void submit_many(unsigned count, int device, struct job **ret_jobs)
{
    for (unsigned i = 0; i < count; i++) {
        ret_jobs[i] = fake_job(k, device);
        (void)fake_submit(k, ret_jobs[i]);
    }
}

static void finish(struct job *j)
{
    fake_done(k, j, 0);
    fake_turn(k);
}

START_TEST(no_more_than_the_window_is_in_flight)
{
    k = fake_create();
    struct job *j[6];
    submit_many(6, 0, j);
    fake_turn(k);
    ck_assert_uint_eq(k->device[0].inflight_count, 4);
    ck_assert_int_eq(j[3]->state, JOB_DISPATCHED);
    ck_assert_int_eq(j[4]->state, JOB_QUEUED);
    ck_assert_int_eq(j[4]->wait, WAIT_WINDOW);
    ck_assert_uint_eq(k->device[0].stream_load[0], 2);
    ck_assert_uint_eq(k->device[0].stream_load[1], 2);
    finish(j[1]);
    ck_assert_int_eq(j[4]->state, JOB_DISPATCHED);
    ck_assert_int_eq(j[5]->state, JOB_QUEUED);
    finish(j[0]);
    for (int i = 2; i < 6; i++) {
        finish(j[i]);
    }
    for (unsigned id = 1; id <= 6; id++) {
        ck_assert_uint_eq(k->ends[id], 1);
        ck_assert_int_eq(k->state[id], JOB_DONE);
    }
    ck_assert_uint_eq(k->f.count.done, 6);
    fake_destroy(k);
}
END_TEST

START_TEST(urgent_jobs_have_a_stream_of_their_own)
{
    k = fake_create();
    struct job *j[4];
    k->device[0].streams = 3;
    k->device[0].urgent = 1;
    for (unsigned i = 0; i < 4; i++) {
        j[i] = fake_job(k, 0);
        j[i]->sched.urgent = i == 1 || i == 3;
        (void)fake_submit(k, j[i]);
    }
    fake_turn(k);
    ck_assert_uint_eq(j[0]->stream, 0);
    ck_assert_uint_eq(j[1]->stream, 2);
    ck_assert_uint_eq(j[2]->stream, 1);
    ck_assert_uint_eq(j[3]->stream, 2);
    for (int i = 0; i < 4; i++) {
        finish(j[i]);
    }
    fake_destroy(k);
}
END_TEST

START_TEST(jobs_of_no_device_go_to_any)
{
    k = fake_create();
    struct job *j[6];
    submit_many(6, -1, j);
    fake_turn(k);
    ck_assert_uint_eq(k->device[0].inflight_count, 3);
    ck_assert_uint_eq(k->device[1].inflight_count, 3);
    for (int i = 0; i < 6; i++) {
        finish(j[i]);
    }
    fake_destroy(k);
}
END_TEST

START_TEST(a_device_that_does_not_serve_gets_nothing)
{
    k = fake_create();
    struct job *j[1];
    k->device[0].killed_ns = 1;
    submit_many(1, 0, j);
    fake_turn(k);
    ck_assert_int_eq(j[0]->state, JOB_QUEUED);
    k->device[0].killed_ns = 0;
    k->kicked = true;
    fake_turn(k);
    ck_assert_int_eq(j[0]->state, JOB_DISPATCHED);
    finish(j[0]);
    fake_destroy(k);
}
END_TEST

START_TEST(a_job_to_run_alone_has_no_others_beside_it)
{
    k = fake_create();
    struct job *before = fake_job(k, 0);
    struct job *alone = fake_job(k, 0);
    struct job *after = fake_job(k, 0);
    alone->trust = TRUST_ALONE;
    (void)fake_submit(k, before);
    (void)fake_submit(k, alone);
    (void)fake_submit(k, after);
    fake_turn(k);
    ck_assert_int_eq(before->state, JOB_DISPATCHED);
    ck_assert_int_eq(alone->wait, WAIT_ALONE);
    ck_assert_int_eq(after->state, JOB_QUEUED);
    finish(before);
    ck_assert_int_eq(alone->state, JOB_DISPATCHED);
    ck_assert_int_eq(after->state, JOB_QUEUED);
    finish(alone);
    ck_assert_int_eq(after->state, JOB_DISPATCHED);
    finish(after);
    fake_destroy(k);
}
END_TEST

static struct job *with_output(uint64_t bytes)
{
    struct job *j = fake_job(k, 0);
    uint64_t offset = 0;
    ck_assert_int_eq(work_add_output(&j->work, 0, 0, bytes, &offset, NULL), 0);
    return j;
}

START_TEST(staging_memory_in_use_is_waited_for)
{
    k = fake_create();
    struct job *a = with_output(3000);
    struct job *b = with_output(3000);
    uint64_t id = fake_submit(k, a);
    (void)fake_submit(k, b);
    fake_turn(k);
    ck_assert_int_eq(a->state, JOB_DISPATCHED);
    ck_assert_int_eq(b->wait, WAIT_STAGING);
    ck_assert(!fake_outputs_lost(k, 0, id));
    finish(a); /* its unacknowledged answer gives its staging memory away */
    ck_assert_int_eq(b->state, JOB_DISPATCHED);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 0); /* its worker keeps the entry */
    ck_assert(fake_outputs_lost(k, 0, id));
    finish(b);
    job_release(&k->f, b);
    ck_assert_uint_eq(k->device[0].output_range.used, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(inputs_are_copied_and_half_a_reservation_is_freed)
{
    k = fake_create();
    struct job *a = with_output(4096);
    struct job *b = with_output(4096);
    uint64_t offset = 0;
    ck_assert_int_eq(work_add_input(&b->work, bytes_str("payload"), &offset, NULL), 0);
    (void)fake_submit(k, a);
    (void)fake_submit(k, b);
    fake_turn(k);
    ck_assert_int_eq(b->wait, WAIT_STAGING);
    ck_assert_uint_eq(k->device[0].input_range.used, 0);
    finish(a);
    ck_assert_int_eq(b->state, JOB_DISPATCHED);
    ck_assert_mem_eq(k->device[0].input.data + b->input, "payload", 7);
    finish(b);
    fake_destroy(k);
}
END_TEST

START_TEST(more_than_staging_holds_is_refused)
{
    k = fake_create();
    uint64_t id = fake_submit(k, with_output(FAKE_STAGING + 1));
    fake_turn(k);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_LIMIT);
    fake_destroy(k);
}
END_TEST

START_TEST(a_module_is_requested_and_its_failure_reported)
{
    k = fake_create();
    k->module->loaded = (struct device_set){0};
    struct job *j = fake_job(k, 0);
    fake_launches(k, j, "spin");
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    ck_assert_uint_eq(k->needed, 1);
    ck_assert_int_eq(j->wait, WAIT_MODULE);
    struct build *b = module_build_obtain(k->module, "sim", "any");
    b->state = BUILD_FAILED;
    (void)err_set(&b->error, ERR_COMPILE, "line 1");
    queue_offer(&k->f, j);
    fake_turn(k);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_COMPILE);
    fake_destroy(k);
}
END_TEST

/* ---- content ------------------------------------------------------------------------------ */

START_TEST(undefined_content_is_not_read)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, false);
    struct job *j = fake_job(k, 0);
    fake_reads(j, b, 0, 64);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_UNDEFINED);
    ck_assert_ptr_nonnull(strstr(k->error[id].text, "never written"));
    ck_assert_ptr_null(strstr(k->error[id].text, "()")); /* the buffer has no label */
    ck_assert_uint_eq(k->sent, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(a_lost_buffer_is_not_read)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    buffer_set_state(b, BUFFER_LOST);
    struct job *j = fake_job(k, 0);
    fake_reads(j, b, 0, 64);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    ck_assert_int_eq(k->error[id].code, ERR_BUFFER_LOST);
    fake_destroy(k);
}
END_TEST

START_TEST(a_write_defines_and_a_failed_one_does_not)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, false);
    struct job *w = fake_job(k, 0);
    fake_writes(w, b, 0, 64);
    (void)fake_submit(k, w);
    fake_turn(k);
    finish(w);
    ck_assert(spans_cover(&b->defined, 0, 64));
    ck_assert(fake_recorded(k, b).defined);
    struct job *v = fake_job(k, 0);
    fake_writes(v, b, 0, 8);
    uint64_t id = fake_submit(k, v);
    fake_turn(k);
    fake_done(k, v, ERR_LAUNCH);
    ck_assert_int_eq(k->error[id].code, ERR_LAUNCH);
    ck_assert(!spans_cover(&b->defined, 0, 8));
    ck_assert(spans_cover(&b->defined, 8, 64));
    ck_assert(fake_recorded(k, b).found && !fake_recorded(k, b).defined);
    fake_destroy(k);
}
END_TEST

/* A reader sent behind its writer fails with it, and so do those behind that reader's writes. */
START_TEST(readers_behind_a_failed_writer_fail)
{
    k = fake_create();
    struct buffer *a = fake_buffer(k, 0, 64, false);
    struct buffer *b = fake_buffer(k, 0, 64, false);
    struct job *w = fake_job(k, 0);
    struct job *r = fake_job(k, 0);
    struct job *s = fake_job(k, 0);
    fake_writes(w, a, 0, 64);
    fake_reads(r, a, 0, 64);
    fake_writes(r, b, 0, 64);
    fake_reads(s, b, 0, 64);
    uint64_t w_id = fake_submit(k, w);
    uint64_t r_id = fake_submit(k, r);
    uint64_t s_id = fake_submit(k, s);
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 3);
    fake_done(k, w, ERR_LAUNCH);
    fake_done(k, r, 0);
    fake_done(k, s, 0);
    ck_assert_int_eq(k->error[r_id].code, ERR_UNDEFINED);
    ck_assert_int_eq(k->error[s_id].code, ERR_UNDEFINED);
    char blamed[64];
    (void)snprintf(blamed, sizeof blamed, "job %llu, which wrote", (unsigned long long)w_id);
    ck_assert_msg(strstr(k->error[r_id].text, blamed) != NULL, "%s", k->error[r_id].text);
    ck_assert_uint_eq(b->defined.count, 0);
    fake_destroy(k);
}
END_TEST

/* The reader comes behind two writers of different parts; the first one fails. */
START_TEST(a_writer_between_does_not_hide_a_failed_one)
{
    k = fake_create();
    struct buffer *a = fake_buffer(k, 0, 64, false);
    struct job *first = fake_job(k, 0);
    struct job *second = fake_job(k, 0);
    struct job *r = fake_job(k, 0);
    fake_writes(first, a, 0, 32);
    fake_writes(second, a, 32, 64);
    fake_reads(r, a, 0, 64);
    (void)fake_submit(k, first);
    uint64_t second_id = fake_submit(k, second);
    uint64_t r_id = fake_submit(k, r);
    fake_turn(k);
    ck_assert_uint_eq(k->sent, 3);
    fake_done(k, first, ERR_LAUNCH);
    fake_done(k, second, 0);
    fake_done(k, r, 0);
    ck_assert_int_eq(k->state[second_id], JOB_DONE);
    ck_assert_int_eq(k->error[r_id].code, ERR_UNDEFINED);
    fake_destroy(k);
}
END_TEST

START_TEST(a_writer_between_heals_what_it_writes_again)
{
    k = fake_create();
    struct buffer *a = fake_buffer(k, 0, 64, false);
    struct job *first = fake_job(k, 0);
    struct job *second = fake_job(k, 0);
    struct job *r = fake_job(k, 0);
    fake_writes(first, a, 0, 32);
    fake_writes(second, a, 0, 64);
    fake_reads(r, a, 0, 64);
    (void)fake_submit(k, first);
    (void)fake_submit(k, second);
    uint64_t r_id = fake_submit(k, r);
    fake_turn(k);
    fake_done(k, first, ERR_LAUNCH);
    fake_done(k, second, 0);
    fake_done(k, r, 0);
    ck_assert_int_eq(k->state[r_id], JOB_DONE);
    fake_destroy(k);
}
END_TEST

/* _i 0: both are in flight; 1: the reader is still queued when the writer fails. */
START_TEST(a_failed_writer_of_another_part_does_no_harm)
{
    k = fake_create();
    k->f.config.window = _i == 0 ? 2 : 1;
    struct buffer *a = fake_buffer(k, 0, 64, true);
    struct job *w = fake_job(k, 0);
    struct job *r = fake_job(k, 0);
    fake_writes(w, a, 0, 32);
    fake_reads(r, a, 32, 64);
    (void)fake_submit(k, w);
    uint64_t id = fake_submit(k, r);
    fake_turn(k);
    fake_done(k, w, ERR_LAUNCH);
    fake_turn(k);
    ck_assert_int_eq(r->state, JOB_DISPATCHED);
    fake_done(k, r, 0);
    ck_assert_int_eq(k->state[id], JOB_DONE);
    fake_destroy(k);
}
END_TEST

START_TEST(a_writer_of_another_part_defines_nothing)
{
    k = fake_create();
    struct buffer *a = fake_buffer(k, 0, 64, false);
    struct job *w = fake_job(k, 0);
    struct job *r = fake_job(k, 0);
    fake_writes(w, a, 0, 32);
    fake_reads(r, a, 32, 64);
    (void)fake_submit(k, w);
    uint64_t id = fake_submit(k, r);
    fake_turn(k);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert_int_eq(k->error[id].code, ERR_UNDEFINED);
    fake_done(k, w, 0);
    fake_destroy(k);
}
END_TEST

/* ---- the worker ends ---------------------------------------------------------------------- */

static struct job *reader_of(struct buffer *b)
{
    struct job *j = fake_job(k, 0);
    fake_launches(k, j, "spin");
    fake_reads(j, b, 0, b->bytes);
    return j;
}

/* A kernel that ends its worker runs again alone, then is convicted; the third time is its last. */
START_TEST(a_kernel_that_ends_its_worker_alone_is_convicted)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    for (unsigned round = 1; round <= STRIKES_MAX; round++) {
        struct job *bad = reader_of(b);
        struct job *beside = fake_job(k, 0);
        uint64_t bad_id = fake_submit(k, bad);
        uint64_t beside_id = fake_submit(k, beside);
        fake_turn(k);
        ck_assert_uint_eq(k->device[0].inflight_count, 2);
        fake_lose(k, 0, false);
        ck_assert_uint_eq(k->ends[bad_id] + k->ends[beside_id], 0);
        fake_turn(k);
        ck_assert_uint_eq(k->device[0].inflight_count, 1);
        ck_assert_int_eq(bad->state, JOB_DISPATCHED);
        ck_assert_int_ne(bad->trust, TRUST_SHARED);
        ck_assert_uint_eq(bad->replays, 1);
        fake_lose(k, 0, false);
        ck_assert_int_eq(k->state[bad_id], JOB_FAILED);
        ck_assert_int_eq(k->error[bad_id].code, ERR_KERNEL_FAULT);
        fake_turn(k);
        ck_assert_int_eq(beside->state, JOB_DISPATCHED);
        finish(beside);
        ck_assert_int_eq(k->state[beside_id], JOB_DONE);
        ck_assert_int_eq(tenant_quarantined(k->tenant, kernel_hash(k->module, "spin")),
                         round == STRIKES_MAX);
    }
    fake_destroy(k);
}
END_TEST

START_TEST(an_external_end_counts_against_no_job)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *j = reader_of(b);
    uint64_t id = fake_submit(k, j);
    unsigned lived = 0;
    fake_turn(k);
    while (k->ends[id] == 0 && lived < 1000) {
        fake_lose(k, 0, true);
        fake_turn(k);
        lived++;
        ck_assert(k->ends[id] != 0 || lived > 64 || j->trust == TRUST_SHARED);
    }
    ck_assert_uint_gt(lived, 64);
    ck_assert_uint_lt(lived, 1000);
    ck_assert(!tenant_quarantined(k->tenant, kernel_hash(k->module, "spin")));
    ck_assert_uint_eq(k->ends[id], 1);
    fake_destroy(k);
}
END_TEST

/* But one whose own kernel may have ended the worker does: cancelling is no way round conviction.
 */
START_TEST(a_cancelled_job_does_not_come_again)
{
    k = fake_create();
    struct job *j[2];
    submit_many(2, 0, j);
    fake_turn(k);
    j[0]->cancelled = true;
    fake_lose(k, 0, true);
    ck_assert_int_eq(k->state[1], JOB_CANCELLED);
    ck_assert_int_eq(k->error[1].code, ERR_CANCELLED);
    fake_turn(k);
    ck_assert_int_eq(j[1]->state, JOB_DISPATCHED);
    j[1]->cancelled = true;
    fake_lose(k, 0, false);
    ck_assert_uint_eq(k->ends[2], 0);
    ck_assert(!j[1]->cancelled); /* the next worker would be asked again */
    fake_turn(k);
    fake_lose(k, 0, false);
    ck_assert_int_eq(k->error[2].code, ERR_KERNEL_FAULT);
    fake_destroy(k);
}
END_TEST

START_TEST(a_cancelled_job_does_not_come_again_for_the_fault_of_another)
{
    k = fake_create();
    struct job *j[2];
    submit_many(2, 0, j);
    fake_turn(k);
    j[0]->cancelled = true;
    fake_done(k, j[1], ERR_KERNEL_FAULT);
    fake_lose(k, 0, false);
    ck_assert_int_eq(k->state[1], JOB_CANCELLED);
    ck_assert_int_eq(k->error[1].code, ERR_CANCELLED);
    fake_turn(k);
    ck_assert_int_eq(j[1]->state, JOB_DISPATCHED);
    finish(j[1]);
    fake_destroy(k);
}
END_TEST

START_TEST(a_writer_is_lost_with_its_worker)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *w = fake_job(k, 0);
    struct job *r = reader_of(b);
    fake_writes(w, b, 0, 64);
    uint64_t w_id = fake_submit(k, w);
    uint64_t r_id = fake_submit(k, r);
    fake_turn(k);
    fake_lose(k, 0, _i == 1);
    ck_assert_int_eq(k->state[w_id], JOB_LOST);
    ck_assert_int_eq(k->error[w_id].code, ERR_WORKER_LOST);
    ck_assert_int_eq(k->error[w_id].effects, ERR_EFFECTS_MAYBE);
    fake_turn(k); /* its reader was sent already, runs again and finds nothing */
    ck_assert_int_eq(k->state[r_id], JOB_FAILED);
    ck_assert_int_eq(k->error[r_id].code, ERR_UNDEFINED);
    ck_assert_uint_eq(k->f.count.lost, 1);
    fake_destroy(k);
}
END_TEST

START_TEST(a_time_limit_ends_the_culprit_only)
{
    k = fake_create();
    struct job *slow = fake_job(k, 0);
    struct job *other = fake_job(k, 0);
    uint64_t slow_id = fake_submit(k, slow);
    uint64_t other_id = fake_submit(k, other);
    fake_turn(k);
    k->device[0].culprit = slow;
    fake_lose(k, 0, true);
    ck_assert_int_eq(k->error[slow_id].code, ERR_TIME_LIMIT);
    ck_assert_int_eq(k->error[slow_id].effects, ERR_EFFECTS_NONE);
    fake_turn(k);
    ck_assert_int_eq(other->state, JOB_DISPATCHED);
    finish(other);
    ck_assert_int_eq(k->state[other_id], JOB_DONE);
    fake_destroy(k);
}
END_TEST

START_TEST(a_report_of_an_unknown_job_changes_nothing)
{
    k = fake_create();
    struct job *j = fake_job(k, 0);
    uint64_t id = fake_submit(k, j);
    struct msg_w_done m = {.job = id};
    completion_done(&k->f, &k->device[0], &m); /* the job is queued */
    ck_assert_uint_eq(k->ends[id], 0);
    fake_turn(k);
    m.job = 999;
    completion_done(&k->f, &k->device[0], &m);
    ck_assert_uint_eq(k->ends[id], 0);
    m.job = id;
    m.started_ns = 1; /* before dispatch: ignored */
    m.ended_ns = UINT64_MAX;
    completion_done(&k->f, &k->device[0], &m);
    completion_done(&k->f, &k->device[0], &m);
    ck_assert_uint_eq(k->ends[id], 1);
    ck_assert_uint_eq(k->device[0].busy_ns, 0);
    fake_destroy(k);
}
END_TEST

START_TEST(a_result_carries_outputs_and_timings)
{
    k = fake_create();
    struct job *j = with_output(8);
    j->device = &k->device[0];
    j->output = 256;
    j->state = JOB_DONE;
    j->timings = calloc(1, sizeof *j->timings);
    j->timing_count = 1;
    memcpy(k->device[0].output.data + 256, "12345678", 8);
    struct capbuf out;
    struct err e = ERR_INIT;
    struct proto_result r;
    struct proto_output o;
    capbuf_init(&out, 65536);
    ck_assert_int_eq(completion_result(j, &out, &e), 0);
    struct proto_iter it = proto_iter_of(proto_list_of(&out, 1));
    ck_assert(proto_list_next(&it, &schema_result, &r));
    ck_assert_int_eq(r.code, 0);
    ck_assert_int_eq(r.step, -1);
    ck_assert_uint_eq(r.timings.count, 1);
    it = proto_iter_of(r.outputs);
    ck_assert(proto_list_next(&it, &schema_output, &o));
    ck_assert(bytes_equal_str(o.data, "12345678"));
    j->output = RANGE_NONE;
    capbuf_reset(&out);
    ck_assert_int_eq(completion_result(j, &out, &e), 0);
    it = proto_iter_of(proto_list_of(&out, 1));
    ck_assert(proto_list_next(&it, &schema_result, &r));
    ck_assert_int_eq(r.code, ERR_LIMIT);
    ck_assert_uint_eq(r.effects, ERR_EFFECTS_MAYBE);
    ck_assert_uint_eq(r.outputs.count, 0);
    capbuf_finish(&out);
    job_destroy(j);
    fake_destroy(k);
}
END_TEST

/* ---- everything at once ------------------------------------------------------------------- */

#define WORLD_BUFFERS 6

static struct buffer *world[WORLD_BUFFERS];
static bool valid[WORLD_BUFFERS][2]; /* have the halves what a job was to write? */

typedef bool halves[WORLD_BUFFERS][2];

/* Which halves a job reads, or writes. */
static void touched(const struct job *j, bool written, halves ret)
{
    memset(ret, 0, sizeof(halves));
    for (unsigned n = 0; n < j->work.use_count; n++) {
        const struct work_use *u = &j->work.uses[n];
        bool counts = written ? (u->access & ACCESS_OUT) != 0 : u->reads_before_write;
        uint64_t begin = written ? u->write_begin : u->read_begin;
        for (unsigned i = 0; counts && i < WORLD_BUFFERS; i++) {
            ret[i][0] = ret[i][0] || (world[i] == u->buffer && begin == 0);
            ret[i][1] = ret[i][1] || world[i] == u->buffer; /* all parts reach to the end */
        }
    }
}

static bool all_valid(halves h)
{
    for (unsigned i = 0; i < WORLD_BUFFERS * 2; i++) {
        if (h[i / 2][i % 2] && !valid[i / 2][i % 2]) {
            return false;
        }
    }
    return true;
}

static bool of_this_world(const struct job *j)
{
    for (unsigned n = 0; n < j->work.use_count; n++) {
        if (j->work.uses[n].buffer->freed) {
            return false;
        }
    }
    return true;
}

static unsigned pick(unsigned n)
{
    return (unsigned)rand() % n;
}

static void random_job(void)
{
    bool bound = pick(4) != 0;
    unsigned device = pick(FAKE_DEVICES);
    struct job *j = fake_job(k, bound ? (int)device : -1);
    for (unsigned i = 0; bound && i < WORLD_BUFFERS; i++) {
        unsigned what = pick(6);
        if (world[i]->device == device && what < 3) {
            uint64_t begin = pick(2) * 32;
            if ((what & 1) == 0) {
                fake_reads(j, world[i], begin, 64);
            }
            if (what > 0) {
                fake_writes(j, world[i], begin, 64);
            }
        }
    }
    uint64_t offset = 0;
    if (pick(3) == 0) {
        (void)work_add_output(&j->work, 0, 0, 1 + pick(2000), &offset, NULL);
    }
    if (pick(3) == 0) {
        (void)work_add_input(&j->work, bytes_of(k->device, pick(2000)), &offset, NULL);
    }
    if (pick(2) == 0) {
        fake_launches(k, j, pick(2) == 0 ? "one" : "two");
    }
    (void)fake_submit(k, j);
}

/* Ends the job: what it writes is valid if the job is done. Its end must fit the validity of what
 * it reads; the validity of dropped buffers is unknown. */
static void complete(struct job *j)
{
    uint64_t id = j->id;
    int code = pick(6) == 0 ? ERR_LAUNCH : 0;
    bool known = of_this_world(j);
    halves reads;
    halves writes;
    touched(j, false, reads);
    touched(j, true, writes);
    bool ok = code == 0 && all_valid(reads);
    fake_done(k, j, code);
    bool done = k->state[id] == JOB_DONE;
    if (known && done != ok) {
        ck_abort_msg("job %d %s, and its content was %s", (int)id, job_state_name(k->state[id]),
                     ok ? "valid" : "not valid");
    }
    for (unsigned i = 0; i < WORLD_BUFFERS * 2; i++) {
        if (writes[i / 2][i % 2]) {
            valid[i / 2][i % 2] = done;
        }
    }
}

/* A job in flight that waits for no other in flight. */
static void complete_some(void)
{
    struct device *d = &k->device[pick(FAKE_DEVICES)];
    for (struct job *j = d->inflight; j != NULL; j = j->device_next) {
        struct hazard_preds preds;
        if (hazard_preds(j, &preds) && preds.count == 0 && pick(2) == 0) {
            complete(j);
            return;
        }
    }
}

static void cancel_some(void)
{
    struct job *j;
    struct job *next;
    struct err e = ERR_INIT;
    (void)err_set(&e, ERR_CANCELLED, "asked for");
    HASH_ITER(hh, k->f.jobs, j, next)
    {
        if (j->state == JOB_QUEUED && pick(8) == 0) {
            job_conclude(&k->f, j, JOB_CANCELLED, &e);
            return;
        }
    }
}

static void lose_some(void)
{
    unsigned device = pick(FAKE_DEVICES);
    for (unsigned i = 0; i < WORLD_BUFFERS; i++) {
        if (world[i]->device == device) {
            world[i]->defined.count = 0;
            valid[i][0] = valid[i][1] = false;
        }
    }
    if (pick(3) == 0 && k->device[device].inflight != NULL) {
        k->device[device].culprit = k->device[device].inflight;
    }
    fake_lose(k, device, pick(2) == 0);
}

static void check_world(void)
{
    unsigned queued = 0;
    unsigned unfinished = 0;
    for (const struct job *j = k->f.jobs; j != NULL; j = j->hh.next) {
        queued += j->state == JOB_QUEUED;
        unfinished += !job_ended(j);
        if (k->ends[j->id] != (job_ended(j) ? 1u : 0u)) {
            ck_abort_msg("job %d ended %u times", (int)j->id, k->ends[j->id]);
        }
        bool sent = j->state == JOB_DISPATCHED || j->state == JOB_RUNNING;
        struct hazard_preds preds;
        ck_assert(hazard_preds(j, &preds) || !sent);
        for (unsigned i = 0; i < preds.count; i++) {
            const struct job *pred = preds.job[i];
            bool there = pred->state == JOB_DISPATCHED && pred->device == j->device;
            if ((sent && !there) || job_ended(pred)) {
                ck_abort_msg("job %d overtook job %d", (int)j->id, (int)pred->id);
            }
        }
    }
    ck_assert_uint_eq(queued, k->f.queued_count);
    ck_assert_uint_eq(unfinished, k->f.job_count);
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        const struct device *d = &k->device[i];
        ck_assert_uint_le(d->inflight_count, k->f.config.window);
        ck_assert(!d->exclusive || d->inflight_count == 1);
    }
}

static bool stuck(void)
{
    return k->device[0].inflight_count + k->device[1].inflight_count == 0 && k->f.job_count > 0;
}

static void random_event(void)
{
    switch (pick(12)) {
    case 0:
        lose_some();
        break;
    case 1:
        cancel_some();
        break;
    case 2:
        job_forget_history(&k->f, pick(8));
        break;
    case 3: {
        unsigned i = pick(WORLD_BUFFERS);
        fake_drop(k, world[i]);
        valid[i][0] = valid[i][1] = pick(2) == 0;
        world[i] = fake_buffer(k, i % FAKE_DEVICES, 64, valid[i][0]);
        break;
    }
    case 4:
    case 5:
    case 6:
    case 7:
        random_job();
        break;
    default:
        complete_some();
        break;
    }
}

static void each_ends_once(unsigned seed)
{
    k = fake_create();
    srand(seed);
    for (unsigned i = 0; i < WORLD_BUFFERS; i++) {
        world[i] = fake_buffer(k, i % FAKE_DEVICES, 64, true);
        valid[i][0] = valid[i][1] = true;
    }
    for (int round = 0; round < 800; round++) {
        random_event();
        fake_turn(k);
        check_world();
        ck_assert_msg(!stuck(), "world %u: %u jobs wait for nothing", seed, k->f.job_count);
    }
    while (k->f.job_count > 0) {
        complete_some();
        fake_turn(k);
        ck_assert_msg(!stuck(), "world %u: %u jobs wait for nothing", seed, k->f.job_count);
    }
    for (uint64_t id = 1; id < k->f.next_job; id++) {
        if (k->ends[id] != 1) {
            ck_abort_msg("world %u: job %d ended %u times", seed, (int)id, k->ends[id]);
        }
    }
    fake_destroy(k);
}

/* Twenty worlds a process, whose end takes a second where leaks are looked for. */
START_TEST(every_job_ends_exactly_once)
{
    for (unsigned i = 1; i <= 20; i++) {
        each_ends_once((unsigned)_i * 20 + i);
    }
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {no_more_than_the_window_is_in_flight,
                                  urgent_jobs_have_a_stream_of_their_own,
                                  jobs_of_no_device_go_to_any,
                                  a_device_that_does_not_serve_gets_nothing,
                                  a_job_to_run_alone_has_no_others_beside_it,
                                  staging_memory_in_use_is_waited_for,
                                  inputs_are_copied_and_half_a_reservation_is_freed,
                                  more_than_staging_holds_is_refused,
                                  a_module_is_requested_and_its_failure_reported,
                                  undefined_content_is_not_read,
                                  a_lost_buffer_is_not_read,
                                  a_write_defines_and_a_failed_one_does_not,
                                  readers_behind_a_failed_writer_fail,
                                  a_writer_between_does_not_hide_a_failed_one,
                                  a_writer_between_heals_what_it_writes_again,
                                  a_writer_of_another_part_defines_nothing,
                                  a_kernel_that_ends_its_worker_alone_is_convicted,
                                  an_external_end_counts_against_no_job,
                                  a_cancelled_job_does_not_come_again,
                                  a_cancelled_job_does_not_come_again_for_the_fault_of_another,
                                  a_time_limit_ends_the_culprit_only,
                                  a_report_of_an_unknown_job_changes_nothing,
                                  a_result_carries_outputs_and_timings};
    Suite *suite = suite_create("flow");
    TCase *tcase = tcase_create("flow");
    tcase_set_timeout(tcase, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, a_failed_writer_of_another_part_does_no_harm, 0, 2);
    tcase_add_loop_test(tcase, a_writer_is_lost_with_its_worker, 0, 2);
    tcase_add_loop_test(tcase, every_job_ends_exactly_once, 0, 10);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
