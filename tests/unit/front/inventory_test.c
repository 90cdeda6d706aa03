/* What a worker from before tells of itself, to a front that may not be the first to ask. */
#include "daemon/front/worker_frames.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static unsigned ends;

static void on_end(struct front *f, struct device *d)
{
    (void)f;
    (void)d;
    ends++;
}

static void say_end(struct fake *k, uint64_t nonce)
{
    const struct msg_w_held_end end = {.nonce = nonce};
    struct frame_fds fds = {.count = 0};
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, 64);
    ck_assert_int_eq(proto_encode(&schema_msg_w_held_end, &end, &out, &e), 0);
    ck_assert_int_eq(
        worker_frame(&k->f, &k->device[0], FRAME_KIND_W_HELD_END, capbuf_view(&out), &fds, &e), 0);
    capbuf_finish(&out);
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

SUITE_MAIN("inventory", the_end_of_an_older_inventory_is_none)
