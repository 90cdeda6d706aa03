/* What a worker from before tells of itself, to a front that may not be the first to ask. */
#include "common/clock.h"
#include "daemon/front/adopt.h"
#include "daemon/front/worker_frames.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static unsigned ends;

static void on_end(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
    ends++;
}

static void say(struct fake *k, const struct schema *schema, const void *msg)
{
    struct frame_fds fds = {.count = 0};
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(schema, msg, &out, &e), 0);
    struct bytes frame = capbuf_view(&out);
    ck_assert_int_eq(worker_frame(&k->f, &k->device[0], proto_kind(frame), frame, &fds, &e), 0);
    capbuf_finish(&out);
}

static void say_end(struct fake *k, uint64_t nonce)
{
    const struct msg_w_held_end end = {.nonce = nonce};
    say(k, &schema_msg_w_held_end, &end);
}

/* Nobody awaits its answer. */
static struct job *say_job(struct fake *k, uint64_t id, uint64_t limit_ns)
{
    const struct msg_meta_job meta = {.limit_ns = limit_ns};
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_meta_job, &meta, &out, NULL), 0);
    const struct msg_w_held_job held = {.job = id, .meta = capbuf_view(&out)};
    say(k, &schema_msg_w_held_job, &held);
    capbuf_finish(&out);
    struct job *j = fake_find(k, id);
    ck_assert_ptr_nonnull(j);
    return j;
}

static void say_started(struct fake *k, uint64_t id)
{
    const struct msg_w_started started = {.job = id};
    say(k, &schema_msg_w_started, &started);
}

/* Half of it went to a front that died: it is not all that the worker holds. */
START_TEST(the_end_of_an_older_inventory_is_none)
{
    struct fake *k = fake_create();
    k->f.hooks.held_end = on_end;
    k->device[0].inventory = 17;
    say_end(k, 16);
    ck_assert_uint_eq(ends, 0);
    say_end(k, 17);
    ck_assert_uint_eq(ends, 1);
    fake_destroy(k);
}
END_TEST

/* Who runs behind one that the front before was told of is not to blame for that one's time. */
START_TEST(what_ran_before_has_its_time_and_its_place)
{
    struct fake *k = fake_create();
    k->f.hooks.held_job = adopt_job;
    k->device[0].state = DEVICE_ADOPTING;
    struct job *first = say_job(k, 1, 30 * NS_PER_S);
    say_started(k, 1);
    struct job *second = say_job(k, 2, 5 * NS_PER_S);
    ck_assert_int_eq(first->state, JOB_RUNNING);
    ck_assert_uint_eq(job_overdue_ns(first), first->started_ns + 30 * NS_PER_S);
    say_started(k, 2);
    ck_assert_uint_eq(job_overdue_ns(second), NS_NEVER);
    fake_done(k, first, 0);
    ck_assert_uint_ge(job_overdue_ns(second), second->started_ns + 5 * NS_PER_S);
    ck_assert_uint_ne(job_overdue_ns(second), NS_NEVER);
    fake_done(k, second, 0);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("inventory", the_end_of_an_older_inventory_is_none,
           what_ran_before_has_its_time_and_its_place)
