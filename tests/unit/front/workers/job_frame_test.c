/* Which jobs a worker takes, known before they are admitted. */
#include <stdlib.h>
#include <string.h>

#include "daemon/front/workers/command.h"
#include "daemon/front/workers/job_frame.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct job *of_launches(unsigned count, size_t value_bytes)
{
    struct job *j = fake_job(k, 0);
    for (unsigned i = 0; i < count; i++) {
        fake_launches(k, j, "some_kernel_of_the_user");
        struct work_ref *r = work_add_ref(&j->work);
        ck_assert_ptr_nonnull(r);
        r->tag = REF_VALUE;
        r->size = value_bytes;
        r = work_add_ref(&j->work);
        ck_assert_ptr_nonnull(r);
        r->tag = REF_BUFFER;
        r->id = UINT64_MAX;
        r->size = 4096;
    }
    return j;
}

/* As a worker would get it in the worst case. */
static size_t encoded(const struct job *j)
{
    struct job_frame frame;
    struct capbuf out;
    struct msg_f_job m;
    struct err e = ERR_INIT;
    struct job sent = *j;
    struct job before[32] = {0};
    struct hazard_preds preds = {.count = 32};
    for (unsigned i = 0; i < 32; i++) {
        before[i].id = UINT64_MAX - i;
        preds.job[i] = &before[i];
    }
    sent.id = UINT64_MAX;
    sent.seq = UINT64_MAX;
    sent.input = sent.output = (UINT64_C(64) << 30) - 1;
    job_frame_init(&frame, 1u << 24);
    capbuf_init(&out, 1u << 24);
    ck_assert_int_eq(job_frame_build(&sent, &preds, &frame, &m, &e), 0);
    ck_assert_int_eq(proto_encode(&schema_msg_f_job, &m, &out, &e), 0);
    size_t size = out.size;
    capbuf_finish(&out);
    job_frame_finish(&frame);
    return size;
}

START_TEST(what_is_taken_fits_and_what_nearly_fits_is_taken)
{
    k = fake_create();
    size_t value = _i == 0 ? 4 : 64;
    struct err e = ERR_INIT;
    unsigned count = 200;
    bool taken = true;
    while (taken) {
        struct job *j = of_launches(count, value);
        taken = job_frame_check(j, true, &e) == 0;
        size_t size = encoded(j);
        ck_assert_msg(!taken || size <= FRAME_MAX_BYTES, "%u steps, %zu bytes", count, size);
        ck_assert_msg(taken || size > FRAME_MAX_BYTES - 256, "%u steps, %zu bytes", count, size);
        ck_assert(!taken || job_frame_check(j, false, &e) == 0);
        job_destroy(j);
        count++;
    }
    ck_assert_uint_gt(count, 202);
    ck_assert_int_eq(e.code, ERR_LIMIT);
    ck_assert_msg(strstr(e.text, "at most 65536") != NULL && strstr(e.text, "split") != NULL, "%s",
                  e.text);
    fake_destroy(k);
}
END_TEST

/* Steps of unbound parameters are missing: what is there must be too large by itself. */
START_TEST(what_is_not_complete_is_refused_later)
{
    k = fake_create();
    struct err e = ERR_INIT;
    struct job *j = NULL;
    unsigned between = 0;
    for (unsigned count = 200; count < 4000; count += 3) {
        j = of_launches(count, 64);
        bool complete = job_frame_check(j, true, &e) == 0;
        bool part = job_frame_check(j, false, &e) == 0;
        job_destroy(j);
        ck_assert(part || !complete);
        between += part && !complete;
        if (!part) {
            break;
        }
    }
    ck_assert_uint_gt(between, 0);
    fake_destroy(k);
}
END_TEST

/* One that cannot be written after all leaves its buffers as they were. */
START_TEST(nothing_is_undefined_by_a_job_that_was_not_sent)
{
    k = fake_create();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct job *j = of_launches(2000, 64);
    fake_writes(j, b, 0, 64);
    uint64_t id = fake_submit(k, j);
    fake_turn(k);
    ck_assert_uint_eq(k->ends[id], 1);
    ck_assert_int_eq(k->state[id], JOB_FAILED);
    ck_assert(spans_cover(&b->defined, 0, 64));
    fake_destroy(k);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("job_frame");
    TCase *tc = tcase_create("job_frame");
    tcase_set_timeout(tc, 120);
    tcase_add_loop_test(tc, what_is_taken_fits_and_what_nearly_fits_is_taken, 0, 2);
    tcase_add_test(tc, what_is_not_complete_is_refused_later);
    tcase_add_test(tc, nothing_is_undefined_by_a_job_that_was_not_sent);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
