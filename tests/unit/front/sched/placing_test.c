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
    int rc = placing_of(&k->f, j, wish, &at, &e);
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

/* ---- elsewhere, as that is sooner ------------------------------------------------------------ */

#define WAY_NS (4 * NS_PER_MS) /* there and back, while nothing is known of moves */

static void busy(unsigned device, uint64_t ns)
{
    k->device[device].line.until_ns = fake_now() + ns;
}

static void move(struct buffer *b, unsigned device)
{
    b->device = b->shown = device;
    b->losses = &k->device[device].losses;
    buffer_set_state(b, BUFFER_LIVE);
}

/* Both buffers are on device 0, which is busy for 100 ms. */
static void begin_busy(void)
{
    begin();
    fake_launches(k, j, "kernel");
    move(small, 0);
    move(large, 0);
    busy(0, 100 * NS_PER_MS);
}

/* A job before it is to take one of its buffers to device 1, and may end before that. Then nothing
 * but the job itself takes buffers there. */
START_TEST(a_job_behind_a_move_may_go_back)
{
    begin();
    ck_assert_int_eq(place(0), 1);
    ck_assert(!j->strays); /* its buffers are on two devices */
    move(large, 0);
    struct job *before = fake_job(k, 1);
    fake_reads(before, large, 0, 64);
    (void)fake_submit(k, before);
    ck_assert_uint_eq(large->device, 0);
    ck_assert_int_eq(place(0), 1);
    ck_assert(j->strays);
    small->bytes = 256;
    ck_assert_int_eq(place(0), 0); /* they are there */
    ck_assert(!j->strays);
    const struct err cancelled = {.code = ERR_CANCELLED};
    job_conclude(&k->f, before, JOB_CANCELLED, &cancelled);
    end();
}
END_TEST

START_TEST(a_job_leaves_a_busy_device)
{
    begin_busy();
    ck_assert_int_eq(place(0), 1);
    ck_assert(j->strays);
    busy(0, NS_PER_MS);
    ck_assert_int_eq(place(0), 0);
    ck_assert(!j->strays);
    busy(0, 100 * NS_PER_MS);
    ck_assert_int_eq(place(1), 0); /* it names the device */
    k->device[0].recovery = 1;     /* nothing may leave it */
    ck_assert_int_eq(place(0), 0);
    k->device[0].recovery = 0;
    end();
}
END_TEST

/* The way there and back of both counts. */
START_TEST(not_for_less_than_the_way_takes)
{
    begin_busy();
    busy(0, 2 * WAY_NS - NS_PER_MS);
    ck_assert_int_eq(place(0), 0);
    busy(0, 2 * WAY_NS + NS_PER_MS);
    ck_assert_int_eq(place(0), 1);
    busy(1, 2 * NS_PER_MS); /* there is work, too */
    ck_assert_int_eq(place(0), 0);
    busy(0, 2 * WAY_NS + 3 * NS_PER_MS);
    ck_assert_int_eq(place(0), 1);
    end();
}
END_TEST

/* _i: where a job runs of which nothing is known. */
START_TEST(not_if_a_time_is_unknown)
{
    begin_busy();
    struct line *l = &k->device[_i].line;
    l->unsure = 1;
    ck_assert_int_eq(place(0), 0);
    l->unsure = 0;
    l->ready[job_rank_class(j)].unsure = 1;
    ck_assert_int_eq(place(0), 0);
    l->ready[job_rank_class(j)].unsure = 0;
    k->device[_i].inflight_count = 1; /* an earlier front sent it */
    ck_assert_int_eq(place(0), 0);
    uint64_t until_ns = l->until_ns;
    l->flying[job_rank_class(j)] = 1; /* this one did, and it takes longer than expected */
    l->until_ns = fake_now();
    ck_assert_int_eq(place(0), 0);
    l->until_ns = until_ns;
    l->flying[job_rank_class(j)] = 0;
    k->device[_i].inflight_count = 0;
    ck_assert_int_eq(place(0), 1);
    end();
}
END_TEST

START_TEST(buffers_that_something_uses_stay)
{
    begin_busy();
    large->users = 1; /* a job that waits for others */
    ck_assert_int_eq(place(0), 0);
    large->users = 0;
    ck_assert_int_eq(place(0), 1);
    k->f.moving = 1; /* the other device only seems idle */
    ck_assert_int_eq(place(0), 0);
    k->f.moving = 0;
    end();
}
END_TEST

START_TEST(so_do_those_that_are_to_stay)
{
    static const uint64_t flags[] = {BUFFER_FLAG_EXPORT, BUFFER_FLAG_VARIABLE, BUFFER_FLAG_STAY};
    begin_busy();
    large->flags |= flags[_i];
    ck_assert_int_eq(place(0), 0);
    large->flags = 0;
    ck_assert_int_eq(place(0), 1);
    end();
}
END_TEST

/* _i: why the other device will not do. */
START_TEST(not_every_device_will_do)
{
    begin_busy();
    struct device *to = &k->device[1];
    switch (_i) {
    case 0:
        strcpy(to->arch, "other");
        break;
    case 1:
        device_set_drain(to, DRAIN_HOLDS);
        break;
    case 2:
        to->exclusive = true;
        break;
    case 3:
        to->pool_limit = 256; /* half of it remains */
        break;
    case 4:
        k->tenant->limits.hard.bytes = 128;
        break;
    case 5:
        to->recovery = 1;
        break;
    default: /* the kernels have yet to be loaded there */
        memset(&k->module->loaded, 0, sizeof k->module->loaded);
        busy(0, 50 * NS_PER_MS);
        ck_assert_int_eq(place(0), 0);
        busy(0, 100 * NS_PER_MS);
        ck_assert_int_eq(place(0), 1);
        busy(0, 0);
        break;
    }
    ck_assert_int_eq(place(0), 0);
    end();
}
END_TEST

/* Reads and writes would only take the way twice. */
START_TEST(a_job_without_kernels_stays)
{
    begin();
    move(small, 0);
    move(large, 0);
    busy(0, 100 * NS_PER_MS);
    ck_assert_ptr_nonnull(work_add_step(&j->work, OP_READ, 1, &e));
    ck_assert_int_eq(place(0), 0);
    fake_launches(k, j, "kernel");
    ck_assert_int_eq(place(0), 1);
    end();
}
END_TEST

/* Such jobs are known to take longer there. */
START_TEST(a_slow_device_counts_as_later)
{
    begin_busy();
    j->sched.kind = 1;
    for (unsigned i = 0; i < 2; i++) {
        k->device[i].forecast_id = 1 + i;
        for (unsigned n = 0; n < 2 * FORECAST_SURE; n++) {
            forecast_learn(&k->tenant->forecast, forecast_key(1, 1 + i),
                           (i == 0 ? 1 : 95) * NS_PER_MS);
        }
    }
    ck_assert_int_eq(place(0), 0);
    busy(0, 200 * NS_PER_MS);
    ck_assert_int_eq(place(0), 1);
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
    tcase_add_test(tc, a_job_behind_a_move_may_go_back);
    tcase_add_test(tc, a_job_leaves_a_busy_device);
    tcase_add_test(tc, not_for_less_than_the_way_takes);
    tcase_add_loop_test(tc, not_if_a_time_is_unknown, 0, 2);
    tcase_add_test(tc, buffers_that_something_uses_stay);
    tcase_add_loop_test(tc, so_do_those_that_are_to_stay, 0, 3);
    tcase_add_loop_test(tc, not_every_device_will_do, 0, 7);
    tcase_add_test(tc, a_job_without_kernels_stays);
    tcase_add_test(tc, a_slow_device_counts_as_later);
    tcase_add_test(tc, without_buffers_any_device_will_do);
    suite_add_tcase(suite, tc);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
