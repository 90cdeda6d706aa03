/* The device of a job whose buffers are on several. */
#include <stdio.h>
#include <string.h>

#include "daemon/front/sched/conclude.h"
#include "daemon/front/sched/placing.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static struct buffer *small, *large; /* on devices 0 and 1 */
static struct job *j;
static struct err e;

static void begin(void)
{
    k = fake_create();
    small = fake_buffer(k, 0, 64, true);
    large = fake_buffer(k, 1, 128, true);
    large->shown = 1;
    j = fake_job(k, -1);
    fake_reads(j, small, 0, 64);
    fake_reads(j, large, 0, 64);
    err_init(&e);
}

static void end(void)
{
    job_destroy(j);
    fake_destroy(k);
}

static int place(uint64_t wish)
{
    int at = -1;
    err_init(&e);
    int rc = placing_of(&k->f, k->tenant, j, wish, &at, &e);
    return rc != 0 ? rc : at;
}

START_TEST(most_of_the_bytes_stay)
{
    begin();
    ck_assert_int_eq(place(0), 1);
    small->bytes = 256;
    ck_assert_int_eq(place(0), 0);
    end();
}
END_TEST

START_TEST(a_named_device_gets_it)
{
    begin();
    ck_assert_int_eq(place(1), 0);
    ck_assert_int_eq(place(2), 1);
    end();
}
END_TEST

/* _i: why it cannot move. */
START_TEST(what_cannot_move_stays_where_it_is)
{
    begin();
    struct buffer *const of[] = {small, large};
    for (unsigned i = 0; i < 2; i++) {
        struct buffer *b = of[i];
        b->flags |= _i == 0 ? BUFFER_FLAG_EXPORT : _i == 1 ? BUFFER_FLAG_VARIABLE : 0;
        if (_i == 2) {
            ck_assert(buffer_rename(b, i == 0 ? "small" : "large"));
        }
        if (i == 0) {
            ck_assert_int_eq(place(0), 0);
            ck_assert_int_eq(place(2), ERR_STATE);
        }
    }
    ck_assert_int_eq(place(0), ERR_STATE);
    ck_assert_ptr_nonnull(strstr(e.text, "live on devices 0 and 1"));
    ck_assert_ptr_nonnull(strstr(e.text, "cannot move"));
    end();
}
END_TEST

START_TEST(devices_that_take_no_jobs_do_not_count)
{
    begin();
    device_set_drain(&k->device[1], DRAIN_HOLDS);
    ck_assert_int_eq(place(0), 0);
    device_set_drain(&k->device[0], DRAIN_HOLDS);
    ck_assert_int_eq(place(0), ERR_STATE);
    end();
}
END_TEST

START_TEST(nor_do_those_without_room_for_the_tenant)
{
    begin();
    k->tenant->limits.hard.bytes = 128;
    k->tenant->device_bytes[0] = 64;
    k->tenant->device_bytes[1] = 128;
    ck_assert_int_eq(place(0), ERR_STATE);
    k->tenant->limits.hard.bytes = 192;
    ck_assert_int_eq(place(0), 1);
    k->tenant->device_bytes[0] = k->tenant->device_bytes[1] = 0;
    end();
}
END_TEST

/* What its kernels only read was found out for one architecture. */
START_TEST(own_kernels_stay_with_their_architecture)
{
    begin();
    fake_launches(k, j, "kernel");
    ck_assert_int_eq(place(0), 1);
    strcpy(k->device[1].arch, "other");
    ck_assert_int_eq(place(0), ERR_STATE);
    end();
}
END_TEST

START_TEST(a_copy_moves_nothing)
{
    begin();
    ck_assert_ptr_nonnull(work_add_step(&j->work, OP_COPY, 0, &e));
    ck_assert_int_eq(place(0), ERR_STATE);
    ck_assert_int_eq(place(1), ERR_STATE);
    ck_assert_ptr_nonnull(work_add_step(&j->work, OP_FILL, 1, &e));
    ck_assert_int_eq(place(0), 1);
    end();
}
END_TEST

/* A buffer will be where the last job before needs it. */
START_TEST(it_follows_the_jobs_before)
{
    begin();
    struct job *before = fake_job(k, 0);
    fake_reads(before, large, 0, 64);
    (void)fake_submit(k, before);
    ck_assert_uint_eq(large->device, 1);
    ck_assert_int_eq(place(0), 0);
    struct job *last = fake_job(k, 1);
    fake_reads(last, large, 0, 64);
    (void)fake_submit(k, last);
    ck_assert_int_eq(place(0), 1);
    const struct err cancelled = {.code = ERR_CANCELLED};
    job_conclude(&k->f, before, JOB_CANCELLED, &cancelled);
    job_conclude(&k->f, last, JOB_CANCELLED, &cancelled);
    end();
}
END_TEST

/* The tenant has a worker of its own on device 0 only. It gets one on the device that it names, and
 * its buffers move there, if such a worker may have so much. */
START_TEST(a_tenant_apart_gets_a_worker_where_it_names_one)
{
    begin();
    struct device own = k->device[0];
    own.index = FAKE_DEVICES;
    own.base = &k->device[0];
    own.owner = k->tenant;
    k->device[0].domains = k->f.device[own.index] = &own;
    k->tenant->apart = true;
    small->device = large->device = own.index;
    large->shown = 0;
    k->device[1].memory = k->device[1].pool_limit = k->device[1].pool_default = 4 << 20;
    ck_assert_int_eq(place(0), (int)own.index);
    ck_assert_int_eq(place(2), 1);
    large->bytes = 4 << 20;
    ck_assert_int_eq(place(2), ERR_DEVICE_MEMORY);
    ck_assert_ptr_nonnull(strstr(e.text, "split the job"));
    large->bytes = 128;
    k->tenant->apart = false;
    k->device[0].domains = k->f.device[own.index] = NULL;
    end();
}
END_TEST

START_TEST(without_buffers_any_device_will_do)
{
    begin();
    job_destroy(j);
    j = fake_job(k, -1);
    ck_assert_int_eq(place(0), -1);
    end();
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("placing");
    TCase *tc = tcase_create("placing");
    tcase_add_test(tc, most_of_the_bytes_stay);
    tcase_add_test(tc, a_named_device_gets_it);
    tcase_add_loop_test(tc, what_cannot_move_stays_where_it_is, 0, 3);
    tcase_add_test(tc, devices_that_take_no_jobs_do_not_count);
    tcase_add_test(tc, nor_do_those_without_room_for_the_tenant);
    tcase_add_test(tc, own_kernels_stay_with_their_architecture);
    tcase_add_test(tc, a_copy_moves_nothing);
    tcase_add_test(tc, it_follows_the_jobs_before);
    tcase_add_test(tc, a_tenant_apart_gets_a_worker_where_it_names_one);
    tcase_add_test(tc, without_buffers_any_device_will_do);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
