/* Requests about buffers that come again, or come from before. */
#include <string.h>

#include "daemon/front/requests.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static struct capbuf out;

static void begin(void)
{
    k = fake_create();
    idmap_finish(&k->f.buffers);
    idmap_init(&k->f.buffers, 1024, 100); /* this daemon's first generation */
    capbuf_init(&out, 65536);
}

static void end(void)
{
    capbuf_finish(&out);
    fake_destroy(k);
}

static int ask(request_fn handler, uint64_t handle, struct op *o)
{
    struct request r = {.slot = NULL};
    struct err e = ERR_INIT;
    r.msg.buffer_free.handle = handle; /* where all that name a buffer have it */
    struct request_context c = {.f = &k->f, .s = k->session, .o = o, .r = &r, .out = &out};
    capbuf_reset(&out);
    return handler(&c, &e);
}

START_TEST(letting_go_of_what_an_earlier_daemon_gave_out)
{
    begin();
    uint64_t before = UINT64_C(99) << 32 | 7;
    ck_assert_int_eq(ask(request_buffer_free, before, NULL), 0);
    ck_assert_uint_eq(proto_kind(capbuf_view(&out)), MSG_KIND_DONE);
    ck_assert_int_eq(ask(request_buffer_free, UINT64_C(100) << 32 | 7, NULL), ERR_BAD_HANDLE);
    struct buffer *b = fake_buffer(k, 0, 64, true);
    uint64_t freed = b->handle;
    fake_drop(k, b);
    ck_assert_int_eq(ask(request_buffer_free, freed, NULL), ERR_STALE_HANDLE);
    ck_assert_int_eq(ask(request_buffer_info, before, NULL), ERR_STALE_HANDLE);
    end();
}
END_TEST

/* One that another session owns: whoever had opened it by its name has forgotten that. */
START_TEST(letting_go_of_what_was_opened_by_name_before)
{
    begin();
    struct buffer *mine = fake_buffer(k, 0, 64, true);
    ck_assert_int_eq(ask(request_buffer_free, mine->handle, NULL), ERR_PERMISSION);
    struct buffer *old = fake_buffer(k, 0, 64, true);
    (void)idmap_remove(&k->f.buffers, old->handle);
    old->handle = UINT64_C(99) << 32 | 9;
    ck_assert(idmap_restore(&k->f.buffers, old->handle, old));
    ck_assert_int_eq(ask(request_buffer_free, old->handle, NULL), 0);
    ck_assert_ptr_eq(idmap_get(&k->f.buffers, old->handle), old);
    end();
}
END_TEST

START_TEST(sealing_what_is_sealed)
{
    begin();
    struct buffer *b = fake_buffer(k, 0, 64, true);
    struct op *o = op_create(k->session, 1, NULL);
    ck_assert_ptr_nonnull(o);
    b->owner = k->session;
    b->sealed = true;
    for (int i = 0; i < 2; i++) {
        b->state = i == 0 ? BUFFER_LIVE : BUFFER_RESTORING;
        struct msg_buffer m;
        ck_assert_int_eq(ask(request_buffer_seal, b->handle, o), 0);
        ck_assert_int_eq(proto_decode(&schema_msg_buffer, capbuf_view(&out), &m, NULL), 0);
        ck_assert_uint_eq(m.handle, b->handle);
        ck_assert_uint_eq(m.state, 3);
        ck_assert_ptr_null(b->pending);
    }
    b->pending = o;
    ck_assert_int_eq(ask(request_buffer_seal, b->handle, NULL), ERR_STATE);
    ck_assert_ptr_eq(b->pending, o);
    b->pending = NULL;
    b->state = BUFFER_LOST;
    ck_assert_int_eq(ask(request_buffer_seal, b->handle, o), ERR_BUFFER_LOST);
    b->owner = NULL;
    end();
}
END_TEST

SUITE_MAIN("requests", letting_go_of_what_an_earlier_daemon_gave_out,
           letting_go_of_what_was_opened_by_name_before, sealing_what_is_sealed)
