/* A worker whose budget of device memory changes while it has buffers, seen by its front: on
 * simulated devices, with pages and without, and on OpenCL. */
#include <check.h>
#include <string.h>

#include "tests/unit/worker/rooms.h"

#define MIB     (UINT64_C(1) << 20)
#define LIMIT   (12 * MIB) /* as room_start */
#define BUFFERS 10u        /* beside what the check of the device left */
#define LONG_MS 60000u

static void ask(struct fake *f, uint64_t limit, uint64_t deadline_ms)
{
    const struct msg_f_budget m = {.limit = limit, .deadline_ms = deadline_ms, .stay = UINT64_MAX};
    fake_send(f, &schema_msg_f_budget, &m, -1);
}

static struct msg_w_budget answer(struct fake *f)
{
    struct msg_w_budget m;
    fake_expect(f, FRAME_KIND_W_BUDGET, &schema_msg_w_budget, &m);
    return m;
}

static struct msg_w_pool pool(struct fake *f)
{
    const struct msg_f_pool m = {0};
    struct msg_w_pool p;
    fake_send(f, &schema_msg_f_pool, &m, -1);
    fake_expect(f, FRAME_KIND_W_POOL, &schema_msg_w_pool, &p);
    return p;
}

static void free_buffer(struct fake *f, uint64_t id)
{
    const struct msg_f_buffer_free m = {.id = id};
    fake_send(f, &schema_msg_f_buffer_free, &m, -1);
}

/* Buffers go to the host, and come back in turn; then all of them are there again. */
START_TEST(less_then_more)
{
    struct fake f;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_fill(&f, 1, 1, BUFFERS);
    ask(&f, 4 * MIB, LONG_MS);
    struct msg_w_budget m = answer(&f);
    ck_assert_int_eq((int)m.code, 0);
    ck_assert_uint_eq(m.limit, 4 * MIB);
    ck_assert_uint_eq(m.missing, 0);
    ck_assert_uint_le(m.size, 4 * MIB);
    struct msg_w_pool p = pool(&f);
    ck_assert_uint_eq(p.limit, 4 * MIB);
    ck_assert_uint_eq(p.missing, 0);
    ck_assert_uint_ge(p.spilled, 6 * MIB);
    for (uint64_t b = 1; b <= BUFFERS; b++) {
        room_check(&f, b, 1);
        room_write(&f, b, 2);
        ck_assert_uint_le(pool(&f).size, 4 * MIB);
    }
    ck_assert_int_ne(fake_buffer(&f, 100, 5 * MIB, false), 0); /* it could never be there */
    ask(&f, LIMIT, 0);
    ck_assert_uint_eq(answer(&f).missing, 0);
    for (uint64_t b = 1; b <= BUFFERS; b++) {
        room_check(&f, b, 2);
    }
    ck_assert_uint_eq(pool(&f).used, BUFFERS * ROOM_BYTES);
    fake_stop(&f);
}
END_TEST

/* A refused budget changes nothing. */
START_TEST(budgets_that_cannot_be)
{
    struct fake f;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 1, "one", UINT64_MAX, UINT64_MAX, 6 * MIB);
    room_fill(&f, 1, 1, BUFFERS);
    static const struct {
        uint64_t limit;
        int code;
        const char *says;
    } BAD[] = {{0, ERR_INVALID, "0 bytes"},
               {UINT64_MAX, ERR_LIMIT, "the device has"},
               {6 * MIB - 1, ERR_LIMIT, "guarantee less"}};
    for (unsigned i = 0; i < sizeof BAD / sizeof BAD[0]; i++) {
        char text[512] = "";
        ask(&f, BAD[i].limit, LONG_MS);
        struct msg_w_budget m = answer(&f);
        ck_assert_int_eq((int)m.code, BAD[i].code);
        ck_assert(bytes_to_str(m.text, text, sizeof text));
        ck_assert_ptr_nonnull(strstr(text, BAD[i].says));
        ck_assert_uint_eq(m.limit, LIMIT);
        ck_assert_uint_eq(pool(&f).limit, LIMIT);
        ck_assert_uint_eq(pool(&f).spilled, 0);
    }
    room_check_all(&f, 1, 1, BUFFERS);
    fake_stop(&f);
}
END_TEST

/* Without room on the host nothing can go: the deadline passes, and what is freed goes back. */
START_TEST(what_cannot_go_is_reported)
{
    struct fake f;
    if (!room_start(&f, _i, "0")) {
        return;
    }
    room_fill(&f, 1, 1, BUFFERS);
    ask(&f, 4 * MIB, _i == 0 ? 0 : 30);
    struct msg_w_budget m = answer(&f);
    ck_assert_int_eq((int)m.code, 0);
    ck_assert_uint_ge(m.missing, 6 * MIB);
    ck_assert_uint_eq(pool(&f).missing, m.missing);
    room_check(&f, 1, 1); /* jobs go on with what is there */
    for (uint64_t b = 1; b <= BUFFERS; b++) {
        free_buffer(&f, b);
    }
    while (pool(&f).missing > 0) {
    }
    ck_assert_uint_le(pool(&f).size, 4 * MIB);
    fake_stop(&f);
}
END_TEST

/* The first of two has no end of its own. */
START_TEST(a_recall_replaces_the_one_under_way)
{
    struct fake f;
    if (!room_start(&f, _i, "0")) {
        return;
    }
    room_fill(&f, 1, 1, BUFFERS);
    ask(&f, 4 * MIB, LONG_MS);
    ck_assert_uint_ge(pool(&f).missing, 6 * MIB);
    ask(&f, 8 * MIB, 0);
    struct msg_w_budget m = answer(&f);
    ck_assert_uint_eq(m.limit, 8 * MIB);
    ck_assert_uint_ge(m.missing, 2 * MIB);
    ask(&f, LIMIT, LONG_MS);
    ck_assert_uint_eq(answer(&f).missing, 0);
    room_check_all(&f, 1, 1, BUFFERS);
    fake_stop(&f);
}
END_TEST

/* What is guaranteed to a tenant stays on the device. */
START_TEST(guarantees_hold)
{
    struct fake f;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 1, "one", UINT64_MAX, UINT64_MAX, 4 * MIB);
    room_fill(&f, 1, 1, 4); /* the oldest of all */
    room_fill(&f, 2, 11, 8);
    ask(&f, 6 * MIB, LONG_MS);
    ck_assert_uint_eq(answer(&f).missing, 0);
    ck_assert_uint_eq(room_use(&f, 1)->spilled, 0);
    ck_assert_uint_ge(room_use(&f, 2)->spilled, 6 * MIB);
    room_check_all(&f, 1, 1, 4);
    room_check_all(&f, 2, 11, 8);
    fake_stop(&f);
}
END_TEST

static void may_grow(struct fake *f, uint64_t limit, uint64_t most)
{
    const struct msg_f_budget m = {
        .limit = limit, .deadline_ms = LONG_MS, .stay = UINT64_MAX, .most = most};
    fake_send(f, &schema_msg_f_budget, &m, -1);
}

static void job(struct fake *f, uint64_t id, uint64_t bytes)
{
    struct job_draft d;
    draft_init(&d, id, 0);
    uint64_t temp = draft_temp(&d, bytes);
    draft_fill(&d, ref_temp(temp, bytes), "x", 1);
    d.msg.deadline_ns = UINT64_MAX;
    draft_send(&d, f);
}

/* The end of the job, and the answer to a budget, in any order. */
static int ends(struct fake *f)
{
    struct msg_w_done done = {.code = 1};
    struct err e = ERR_INIT;
    bool answered = false;
    while (!answered || done.code == 1) {
        unsigned kind = fake_next(f);
        answered = answered || kind == FRAME_KIND_W_BUDGET;
        if (kind == FRAME_KIND_W_DONE) {
            ck_assert_int_eq(
                proto_decode(&schema_msg_w_done, bytes_of(f->frame, f->size), &done, &e), 0);
        }
        ck_assert_uint_ne(kind, 0);
    }
    return (int)done.code;
}

/* While its budget may grow a worker asks for more before its buffers go to the host. It hears that
 * there is no more, or gets it. */
START_TEST(jobs_wait_for_more)
{
    struct fake f;
    struct msg_w_waiting waits;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    may_grow(&f, LIMIT, 24 * MIB);
    ck_assert_uint_eq(answer(&f).limit, LIMIT);
    room_fill(&f, 1, 1, BUFFERS);
    job(&f, 900, 8 * MIB);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waits);
    ck_assert(waits.job == 900 && waits.waits == 1);
    ck_assert_uint_ge(waits.bytes, 6 * MIB);
    ck_assert_uint_le(waits.bytes, 8 * MIB);
    ck_assert_uint_eq(pool(&f).spilled, 0);
    may_grow(&f, 22 * MIB, 24 * MIB);
    ck_assert_int_eq(ends(&f), 0);
    ck_assert_uint_eq(pool(&f).spilled, 0);
    may_grow(&f, LIMIT, 24 * MIB);
    ck_assert_uint_eq(answer(&f).missing, 0);
    job(&f, 901, 8 * MIB);
    fake_expect(&f, FRAME_KIND_W_WAITING, &schema_msg_w_waiting, &waits);
    may_grow(&f, LIMIT, LIMIT);
    ck_assert_int_eq(ends(&f), 0);
    ck_assert_uint_gt(pool(&f).spilled, 0);
    job(&f, 902, 13 * MIB); /* it could never have that */
    ck_assert_int_eq(fake_done(&f, 902, NULL), ERR_DEVICE_MEMORY);
    room_check_all(&f, 1, 1, BUFFERS);
    fake_stop(&f);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("the worker's budget");
    TCase *t = tcase_create("budget");
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, less_then_more, 0, ROOMS);
    tcase_add_loop_test(t, budgets_that_cannot_be, 0, ROOMS);
    tcase_add_loop_test(t, what_cannot_go_is_reported, 0, ROOMS);
    tcase_add_loop_test(t, a_recall_replaces_the_one_under_way, 0, ROOMS);
    tcase_add_loop_test(t, guarantees_hold, 0, ROOMS);
    tcase_add_loop_test(t, jobs_wait_for_more, 0, ROOMS);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed == 0 ? 0 : 1;
}
