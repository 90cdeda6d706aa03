/* Free objects of slabs are charged, and neither refuse a job nor count as what is guaranteed. On
 * simulated devices and on OpenCL. */
#include <check.h>
#include <stdlib.h>

#include "tests/unit/worker/rooms.h"

/* Objects that buffers of all sizes left free in slabs are no reason to refuse a job. */
START_TEST(free_objects_are_no_reason_to_refuse_a_job)
{
    struct fake f;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 2, "hard", 12 * ROOM_BYTES, UINT64_MAX, 0);
    f.tenant = 2;
    uint64_t step = 256;
    uint64_t id = 0;
    for (uint64_t size = step; size <= 65536; size += step) { /* of each class of objects one */
        const struct msg_f_buffer_free msg = {.id = ++id};
        ck_assert_int_eq(fake_buffer(&f, msg.id, size, true), 0);
        fake_send(&f, &schema_msg_f_buffer_free, &msg, -1);
        step *= size == 16 * step ? 2 : 1;
    }
    ck_assert_uint_ge(room_use(&f, 2)->mapped, 8 * ROOM_BYTES);
    ck_assert_int_eq(room_temporaries(&f, 2, 100, 8 * ROOM_BYTES, NULL), 0);
    fake_stop(&f);
}
END_TEST

/* Free objects do not count as guaranteed: buffers stay though slabs are charged beside them. */
START_TEST(free_objects_are_not_what_is_guaranteed)
{
    struct fake f;
    uint64_t id = 100;
    if (!room_start(&f, _i, "33554432")) {
        return;
    }
    room_quota(&f, 1, "sure", UINT64_MAX, UINT64_MAX, 4 * ROOM_BYTES);
    room_fill(&f, 1, 1, 3);
    for (uint64_t size = 18432; size <= 65536; size += size < 32768 ? 2048 : 4096) {
        ck_assert_int_eq(fake_buffer(&f, ++id, size, true), 0); /* a slab of its own */
    }
    ck_assert_uint_ge(room_use(&f, 1)->mapped, 6 * ROOM_BYTES);
    room_fill(&f, 3, 11, 12);
    ck_assert_uint_eq(room_use(&f, 1)->spilled, 0);
    ck_assert_uint_gt(room_use(&f, 3)->spilled, 0);
    room_check_all(&f, 1, 1, 3);
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
