/* Requests that came before their turn are admitted in as many turns of the loop as they need. The
 * test is the listener (front_io) and counts what it is asked for. */
#include <stdlib.h>

#include "daemon/front/model/early.h"
#include "daemon/front/model/request.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/intake.h"
#include "daemon/front/requests/session_end.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define PIPE 11u

static struct fake *k;
static struct session *s;
static char slot;
static unsigned replies;
static unsigned drops; /* slots that are free again without an answer */

static void on_reply(struct listener *l, struct listener_slot *to, struct bytes message)
{
    (void)l;
    (void)to;
    (void)message;
    replies++;
}

static void on_drop(struct listener *l, struct listener_slot *to)
{
    (void)l;
    (void)to;
    drops++;
}

static void setup(void)
{
    const uint8_t id[PROTO_CLIENT_ID_BYTES] = {PIPE};
    struct request hello = {.peer = {.pipe = PIPE, .local = true, .uid = 1000},
                            .kind = MSG_KIND_HELLO};
    struct capbuf out;
    struct err e = ERR_INIT;
    k = fake_create();
    k->f.io.reply = on_reply;
    k->f.io.drop = on_drop;
    k->f.config.keep_results_bytes = 1 << 20;
    hello.msg.hello =
        (struct msg_hello){.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id), .resume = 1};
    capbuf_init(&out, 4096);
    ck_assert_int_eq(session_hello(&k->f, &hello, &out, &s, &e), 0);
    capbuf_finish(&out);
    replies = drops = 0;
}

/* Asks for a buffer's shape. */
static void ask(uint64_t seq)
{
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.peer = {.pipe = PIPE},
                          .kind = MSG_KIND_BUFFER_INFO,
                          .slot = (struct listener_slot *)(void *)&slot};
    r->msg.ping.seq = seq;
    intake_request(&k->f, r);
}

/* The requests behind a missing one have their turn when it comes, in as many turns of the loop as
 * they need, and in their order. */
START_TEST(what_came_too_early_takes_several_turns)
{
    enum { EARLY = 100, UNITS = 10 };
    setup();
    for (uint64_t seq = EARLY; seq > 1; seq--) {
        ask(seq);
    }
    ck_assert_uint_eq(s->early.count, EARLY - 1);
    turn_allow(&k->f, UNITS);
    ask(1);
    ck_assert_uint_ge(s->order.expect, 3);
    ck_assert_uint_le(s->order.expect, UNITS + 2);
    uint64_t next = s->order.expect;
    ask(next); /* sent again: it stays one request, in its place */
    ck_assert_uint_eq(s->order.expect, next);
    for (unsigned turns = 0; s->early.count > 0; turns++) {
        ck_assert_uint_lt(turns, EARLY);
        turn_allow(&k->f, UNITS);
        uint64_t before = s->order.expect;
        intake_go_on(&k->f);
        ck_assert_uint_gt(s->order.expect, before);
        ck_assert_uint_le(s->order.expect, before + UNITS + 1);
    }
    ck_assert_uint_eq(s->order.expect, EARLY + 1);
    ck_assert_uint_eq(replies, EARLY);
    ck_assert_uint_eq(drops, 1);
    ck_assert_ptr_null(k->f.early_due);
    k->f.work.budget = 0;
    session_end(&k->f, s);
    fake_destroy(k);
}
END_TEST

/* A session may end before that. */
START_TEST(what_came_too_early_goes_with_its_session)
{
    setup();
    for (uint64_t seq = 10; seq > 1; seq--) {
        ask(seq);
    }
    turn_allow(&k->f, 1);
    ask(1);
    ck_assert_ptr_eq(k->f.early_due, s);
    k->f.work.budget = 0;
    session_end(&k->f, s);
    ck_assert_ptr_null(k->f.early_due);
    intake_go_on(&k->f);
    fake_destroy(k);
}
END_TEST

SUITE_MAIN("early", what_came_too_early_takes_several_turns,
           what_came_too_early_goes_with_its_session)
