/* What the session sends, and with which numbers. No connection is there: what would go out is
 * noted (linked with --wrap). */
#include "client/src/session.h"

#include <stdlib.h>
#include <string.h>

#include "client/src/client.h"
#include "common/clock.h"
#include "tests/unit/common/suite.h"

#define SENT_MAX 16u

int __wrap_conn_send(struct conn *conn, struct out *out, struct err *e);

static struct gpud_client c;
static struct request r[4];
static struct msg_buffer_info sent[SENT_MAX];
static unsigned count;
static unsigned answers;

int __wrap_conn_send(struct conn *conn, struct out *out, struct err *e)
{
    uint8_t room[256];
    uint8_t prefix[CONN_HEAD_MAX];
    size_t skip = sp_head(c.address.transport, SP_ID_BIT, 1, prefix);
    size_t head = out->head_size - skip;
    (void)conn;
    (void)e;
    ck_assert_uint_lt(count, SENT_MAX);
    ck_assert_uint_le(head + out->body.size, sizeof room);
    memcpy(room, out->head + skip, head);
    memcpy(room + head, out->body.data, out->body.size);
    ck_assert_int_eq(proto_decode(&schema_msg_buffer_info, bytes_of(room, head + out->body.size),
                                  &sent[count++], NULL),
                     0);
    return 0;
}

/* Ends the request, as all do; the first one goes on with another. */
static void answered(struct gpud_client *client, struct request *request, struct message *m,
                     const struct err *e);

static void ask(unsigned i)
{
    struct msg_buffer_info m = {.handle = 1};
    ck_assert_int_eq(request_encode(&r[i], &schema_msg_buffer_info, &m, NULL), 0);
    r[i].answered = answered;
    ck_assert_int_eq(requests_add(&c.requests, &r[i], true, NULL), 0);
    session_send(&c, &r[i]);
}

static void answered(struct gpud_client *client, struct request *request, struct message *m,
                     const struct err *e)
{
    (void)m;
    (void)e;
    answers++;
    requests_end(&client->requests, request);
    request_finish(request);
    if (request == &r[0]) {
        ask(2);
    }
}

static void setup(void)
{
    memset(&c, 0, sizeof c);
    memset(r, 0, sizeof r);
    count = answers = 0;
    ck_assert_int_eq(session_init(&c.session, "test", NULL, 0, NULL), 0);
    requests_init(&c.requests);
    c.address.transport = SP_IPC;
    c.conn.state = CONN_UP;
    c.session.state = SESSION_READY;
    c.lane.mode = LANE_NEVER;
}

static void teardown(void)
{
    for (unsigned i = 0; i < sizeof r / sizeof r[0]; i++) {
        requests_end(&c.requests, &r[i]);
        request_finish(&r[i]);
    }
    requests_finish(&c.requests);
}

static void say_error(uint32_t id, int code, bool open)
{
    struct err e = ERR_INIT;
    struct msg_error m;
    struct capbuf out;
    (void)err_set(&e, code, "said");
    proto_error_from(&e, &m);
    m.open = open;
    m.retry_after_ns = 1;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_error, &m, &out, NULL), 0);
    struct message *message = message_create(out.size);
    ck_assert_ptr_nonnull(message);
    memcpy(message->data, out.data, out.size);
    message->id = id;
    ck_assert_int_eq(session_message(&c, message, &e), 0);
    message_unref(message);
    capbuf_finish(&out);
}

/* It was to be sent again, and its ring was given up before that. */
START_TEST(what_was_not_admitted_goes_once_after_its_ring)
{
    setup();
    ask(0);
    r[0].by_ring = true;
    say_error(r[0].id, ERR_BUSY, true);
    ck_assert_uint_eq(count, 1);
    session_resend_ring(&c);
    ck_assert_uint_eq(count, 2);
    (void)session_tick(&c, ns_add(clock_now_ns(), NS_PER_S));
    ck_assert_uint_eq(count, 2);
    say_error(r[0].id, ERR_BUSY, true); /* it may come again as often as it takes */
    (void)session_tick(&c, ns_add(clock_now_ns(), NS_PER_S));
    ck_assert_uint_eq(count, 3);
    teardown();
}
END_TEST

/* Others that would go by the ring have to wait for it as for all that went over the socket. */
START_TEST(what_goes_again_went_over_the_socket)
{
    setup();
    ask(0);
    r[0].by_ring = true;
    c.requests.went[WAY_RING] = 1;
    c.requests.went[WAY_SOCKET] = 0;
    say_error(r[0].id, ERR_BUSY, true);
    (void)session_tick(&c, ns_add(clock_now_ns(), NS_PER_S));
    ck_assert_uint_eq(count, 2);
    ck_assert_uint_eq(c.requests.went[WAY_SOCKET], 1);
    ck_assert(!r[0].by_ring);
    teardown();
}
END_TEST

/* Neither by the question that fills it, nor by what is sent before that. */
START_TEST(a_number_that_is_open_is_not_acknowledged)
{
    setup();
    ask(0);
    ask(1);
    say_error(r[0].id, ERR_UNSUPPORTED, true);
    ck_assert_uint_eq(answers, 1);
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_eq(sent[2].seq, 3);
    ck_assert_uint_eq(sent[2].ack, 0);
    ck_assert_uint_eq(sent[3].seq, 1);
    ck_assert_uint_eq(sent[3].ack, 0);
    struct request *filler = c.requests.fillers.first;
    ck_assert_ptr_nonnull(filler);
    say_error(filler->id, ERR_BUSY, true);
    (void)session_tick(&c, ns_add(clock_now_ns(), NS_PER_S));
    ck_assert_uint_eq(count, 5);
    ck_assert_uint_eq(sent[4].seq, 1);
    ck_assert_uint_eq(sent[4].ack, 0);
    say_error(filler->id, ERR_BAD_HANDLE, false);
    ck_assert_uint_eq(requests_lowest(&c.requests), 2);
    say_error(r[1].id, ERR_BAD_HANDLE, false);
    ask(3);
    ck_assert_uint_eq(sent[5].ack, 2);
    teardown();
}
END_TEST

/* They are acknowledged in their order, in which they do not come. */
START_TEST(fillers_keep_their_order)
{
    struct request f[3] = {0};
    static const uint64_t seq[] = {5, 2, 4};
    setup();
    c.requests.next_seq = 9;
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(requests_add_filler(&c.requests, &f[i], seq[i], NULL), 0);
    }
    ck_assert_uint_eq(requests_lowest(&c.requests), 2);
    requests_end(&c.requests, &f[1]);
    ck_assert_uint_eq(requests_lowest(&c.requests), 4);
    requests_end(&c.requests, &f[0]);
    ck_assert_uint_eq(requests_lowest(&c.requests), 4);
    requests_end(&c.requests, &f[2]);
    ck_assert_uint_eq(requests_lowest(&c.requests), 9);
    teardown();
}
END_TEST

SUITE_MAIN("session", what_was_not_admitted_goes_once_after_its_ring,
           what_goes_again_went_over_the_socket, a_number_that_is_open_is_not_acknowledged,
           fillers_keep_their_order)
