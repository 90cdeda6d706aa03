/* No job stays ready for an idle stream once the front has looked at what has happened. */
#include "common/clock.h"
#include "daemon/front/sched/queue.h"
#include "daemon/front/workers/worker_frames.h"
#include "proto/codec.h"
#include "proto/frames.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;

static struct job *submit(struct tenant *t, int device, enum job_trust trust)
{
    struct job *j = fake_job(k, device);
    j->tenant = t;
    j->trust = trust;
    (void)fake_submit(k, j);
    return j;
}

static void finish(struct job *j)
{
    fake_done(k, j, 0);
    fake_turn(k);
}

/* While it waits to be alone on one device, it may be alone on another: then the first goes on. */
START_TEST(a_device_goes_on_when_a_job_is_alone_elsewhere)
{
    struct job *before[FAKE_DEVICES];
    k = fake_create();
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].streams = 8;
        before[i] = submit(k->tenant, (int)i, TRUST_SHARED);
    }
    struct job *alone = submit(k->tenant, -1, TRUST_ALONE);
    struct job *after = submit(k->tenant, -1, TRUST_SHARED);
    fake_turn(k);
    ck_assert_int_eq(alone->wait, WAIT_ALONE);
    ck_assert_int_eq(after->state, JOB_QUEUED);
    finish(before[1]);
    ck_assert_ptr_eq(alone->device, &k->device[1]);
    ck_assert_ptr_eq(after->device, &k->device[0]);
    finish(alone);
    finish(after);
    finish(before[0]);
    fake_destroy(k);
}
END_TEST

/* A tenant of whose jobs none has ended leaves a stream to others, if there are others. */
START_TEST(a_tenant_whose_others_are_done_has_all_streams)
{
    for (unsigned order = 0; order < 2; order++) {
        struct job *j[2];
        k = fake_create();
        k->device[0].streams = 2;
        struct tenant *other = tenant_obtain(&k->f.tenants, 1001);
        struct tenant *late = order == 0 ? k->tenant : other;
        struct job *past = submit(order == 0 ? other : k->tenant, 0, TRUST_SHARED);
        fake_turn(k);
        finish(past);
        for (unsigned i = 0; i < 2; i++) {
            j[i] = submit(late, 0, TRUST_SHARED);
            fake_turn(k);
            ck_assert_int_eq(j[i]->state, JOB_DISPATCHED);
        }
        finish(j[0]);
        finish(j[1]);
        fake_destroy(k);
    }
}
END_TEST

/* The other workers of the device have their turns meanwhile. */
START_TEST(others_go_when_a_job_waits_for_memory)
{
    struct frame_fds fds = {.count = 0};
    struct err e = ERR_INIT;
    struct capbuf out;
    k = fake_create();
    struct job *j = submit(k->tenant, 0, TRUST_SHARED);
    fake_turn(k);
    const struct msg_w_waiting m = {.job = j->id, .waits = 1};
    capbuf_init(&out, FRAME_MAX_BYTES);
    ck_assert_int_eq(proto_encode(&schema_msg_w_waiting, &m, &out, &e), 0);
    struct bytes frame = capbuf_view(&out);
    ck_assert(!k->kicked);
    ck_assert_int_eq(worker_frame(&k->f, &k->device[0], proto_kind(frame), frame, &fds, &e), 0);
    ck_assert_int_eq(j->wait, WAIT_MEMORY);
    ck_assert(k->kicked);
    capbuf_finish(&out);
    finish(j);
    fake_destroy(k);
}
END_TEST

/* A job that waits for its module leaves the lines of all devices: those that were asked before are
 * asked again. */
START_TEST(a_parked_job_lets_others_go_on_another_device)
{
    k = fake_create();
    struct tenant *other = tenant_obtain(&k->f.tenants, 1001);
    struct job *past = submit(other, 0, TRUST_SHARED);
    fake_turn(k);
    fake_pass(50 * NS_PER_MS);
    finish(past);
    struct job *unknown = submit(k->tenant, 0, TRUST_SHARED); /* its tenant leaves a stream */
    struct job *known = submit(other, 0, TRUST_SHARED);
    fake_turn(k);
    k->module->loaded = (struct device_set){0};
    struct job *parked = fake_job(k, -1);
    fake_launches(k, parked, "spin");
    (void)fake_submit(k, parked);
    struct job *waits = submit(other, 0, TRUST_SHARED); /* its tenant is ahead */
    fake_turn(k);
    ck_assert_int_eq(parked->wait, WAIT_MODULE);
    ck_assert_int_eq(waits->state, JOB_DISPATCHED);
    device_set_put(&k->module->loaded, 0);
    device_set_put(&k->module->loaded, 1);
    finish(unknown);
    finish(known);
    finish(waits);
    queue_offer(&k->f, parked);
    fake_turn(k);
    finish(parked);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("rest", a_parked_job_lets_others_go_on_another_device,
           a_device_goes_on_when_a_job_is_alone_elsewhere,
           a_tenant_whose_others_are_done_has_all_streams, others_go_when_a_job_waits_for_memory)
