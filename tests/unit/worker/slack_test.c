/* Free objects of slabs are charged, and neither refuse a job nor count as what is guaranteed. On
 * simulated devices and on OpenCL. */
#include <check.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/backend/backend.h"
#include "tests/unit/worker/fake_front.h"

#define ROOM_BYTES (1u << 20)

#define TENANTS_MAX 8u

static const struct {
    const char *backend;
    const char *options;
} ROOMS[] = {{"sim", "speed=0,pages=on"}, {"sim", "speed=0,pages=off"}, {"opencl", ""}};

static bool start_small(struct fake *f, int which, const char *spill)
{
    const char *args[] = {"--options", ROOMS[which].options, "--memory-limit",
                          "12582912",  "--spill-limit",      spill,
                          NULL};
    if (backend_find(ROOMS[which].backend) == NULL) {
        return false;
    }
    fake_start(f, ROOMS[which].backend, args);
    if (f->absent) {
        fake_finish(f);
        return false;
    }
    return true;
}

static void put_words(uint8_t *at, uint64_t buffer, unsigned round)
{
    for (uint32_t i = 0; i < ROOM_BYTES / 8; i++) {
        uint64_t word = (buffer << 40) + ((uint64_t)round << 32) + i;
        memcpy(at + i * 8, &word, 8);
    }
}

static void room_write(struct fake *f, uint64_t buffer, unsigned round)
{
    struct job_draft d;
    put_words(f->input.data, buffer, round);
    draft_init(&d, (uint64_t)round << 32 | buffer, (unsigned)buffer % 2);
    draft_move(&d, OP_WRITE, ref_buffer(buffer, 0, ROOM_BYTES), 0);
    draft_send(&d, f);
    ck_assert_int_eq(fake_done(f, (uint64_t)round << 32 | buffer, NULL), 0);
}

static void room_check(struct fake *f, uint64_t buffer, unsigned round)
{
    static uint8_t expected[ROOM_BYTES];
    struct job_draft d;
    struct msg_w_done done;
    static uint64_t checks;
    uint64_t job = UINT64_C(1) << 60 | ++checks;
    memset(f->output.data, 0xa5, ROOM_BYTES);
    draft_init(&d, job, (unsigned)buffer % 2);
    draft_move(&d, OP_READ, ref_buffer(buffer, 0, ROOM_BYTES), 0);
    draft_send(&d, f);
    int code = fake_done(f, job, &done);
    ck_assert_msg(code == 0, "%.*s", (int)done.text.size, done.text.data);
    put_words(expected, buffer, round);
    ck_assert_msg(memcmp(f->output.data, expected, ROOM_BYTES) == 0, "buffer %u, round %u",
                  (unsigned)buffer, round);
}

static struct msg_w_tenant uses[TENANTS_MAX];

static const struct msg_w_tenant *use_of(struct fake *f, uint64_t tenant)
{
    const struct msg_f_pool ask = {0};
    unsigned kind = 0;
    fake_send(f, &schema_msg_f_pool, &ask, -1);
    while (kind != FRAME_KIND_W_POOL) {
        struct msg_w_tenant m;
        kind = fake_next(f);
        if (kind == FRAME_KIND_W_TENANT) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_tenant, bytes_of(f->frame, f->size), &m, NULL), 0);
            ck_assert_uint_lt(m.tenant, TENANTS_MAX);
            uses[m.tenant] = m;
        }
    }
    return &uses[tenant];
}

static void quota(struct fake *f, uint64_t tenant, const char *name, uint64_t hard, uint64_t soft,
                  uint64_t guaranteed)
{
    const struct msg_f_tenant m = {.tenant = tenant,
                                   .name = bytes_str(name),
                                   .hard = hard,
                                   .soft = soft,
                                   .guaranteed = guaranteed,
                                   .spilled = UINT64_MAX};
    fake_send(f, &schema_msg_f_tenant, &m, -1);
}

static void fill(struct fake *f, uint64_t tenant, uint64_t first, unsigned count)
{
    f->tenant = tenant;
    for (uint64_t b = first; b < first + count; b++) {
        ck_assert_int_eq(fake_buffer(f, b, ROOM_BYTES, false), 0);
        room_write(f, b, 1);
    }
}

static void check_all(struct fake *f, uint64_t tenant, uint64_t first, unsigned count)
{
    f->tenant = tenant;
    for (uint64_t b = first; b < first + count; b++) {
        room_check(f, b, 1);
    }
}

static int temporaries(struct fake *f, uint64_t tenant, uint64_t job, uint64_t bytes,
                       struct msg_w_done *ret_done)
{
    struct job_draft d;
    f->tenant = tenant;
    draft_init(&d, job, 0);
    uint64_t t = draft_temp(&d, bytes);
    draft_fill(&d, ref_temp(t, bytes), "x", 1);
    draft_send(&d, f);
    return fake_done(f, job, ret_done);
}

/* What buffers of all sizes left behind in slabs is no reason to refuse a job. */
START_TEST(free_objects_are_no_reason_to_refuse_a_job)
{
    struct fake f;
    if (!start_small(&f, _i, "33554432")) {
        return;
    }
    quota(&f, 2, "hard", 12 * ROOM_BYTES, UINT64_MAX, 0);
    f.tenant = 2;
    uint64_t step = 256;
    uint64_t id = 0;
    for (uint64_t size = step; size <= 65536; size += step) { /* of each class of objects one */
        const struct msg_f_buffer_free msg = {.id = ++id};
        ck_assert_int_eq(fake_buffer(&f, msg.id, size, true), 0);
        fake_send(&f, &schema_msg_f_buffer_free, &msg, -1);
        step *= size == 16 * step ? 2 : 1;
    }
    ck_assert_uint_ge(use_of(&f, 2)->mapped, 8 * ROOM_BYTES);
    ck_assert_int_eq(temporaries(&f, 2, 100, 8 * ROOM_BYTES, NULL), 0);
    fake_stop(&f);
}
END_TEST

/* Nor are they what is guaranteed: buffers stay though slabs are charged beside them. */
START_TEST(free_objects_are_not_what_is_guaranteed)
{
    struct fake f;
    uint64_t id = 100;
    if (!start_small(&f, _i, "33554432")) {
        return;
    }
    quota(&f, 1, "sure", UINT64_MAX, UINT64_MAX, 4 * ROOM_BYTES);
    fill(&f, 1, 1, 3);
    for (uint64_t size = 18432; size <= 65536; size += size < 32768 ? 2048 : 4096) {
        ck_assert_int_eq(fake_buffer(&f, ++id, size, true), 0); /* a slab of its own */
    }
    ck_assert_uint_ge(use_of(&f, 1)->mapped, 6 * ROOM_BYTES);
    fill(&f, 3, 11, 12);
    ck_assert_uint_eq(use_of(&f, 1)->spilled, 0);
    ck_assert_uint_gt(use_of(&f, 3)->spilled, 0);
    check_all(&f, 1, 1, 3);
    fake_stop(&f);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("slack");
    TCase *tc = tcase_create("slack");
    tcase_set_timeout(tc, 90);
    tcase_add_loop_test(tc, free_objects_are_no_reason_to_refuse_a_job, 0, 3);
    tcase_add_loop_test(tc, free_objects_are_not_what_is_guaranteed, 0, 3);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
