/* What the session sends, and with which numbers. No connection is there: what would go out is
 * noted (linked with --wrap). */
#include "client/src/session/session.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client/src/base/client.h"
#include "client/src/link/answers.h"
#include "client/src/link/fillers.h"
#include "client/src/link/lost.h"
#include "client/src/link/route.h"
#include "client/src/link/send.h"
#include "client/src/objects/handles.h"
#include "client/src/objects/job.h"
#include "client/src/objects/objects.h"
#include "client/src/session/restore.h"
#include "client/src/session/wait.h"
#include "common/clock.h"
#include "tests/unit/common/suite.h"

#define SENT_MAX 512u

int __wrap_conn_send(struct conn *conn, struct out *out, struct err *e);
int __wrap_conn_start(struct conn *conn, struct err *e);

/* What was sent. */
struct sent {
    unsigned kind;
    uint64_t seq, ack;       /* 0: it has none */
    struct proto_span taken; /* the first of TAKEN */
    uint64_t taken_count;
};

static struct gpud_client c;
static struct request r[4];
static struct sent sent[SENT_MAX];
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
    const struct bytes message = bytes_of(room, head + out->body.size);
    struct sent *it = &sent[count++];
    *it = (struct sent){.kind = proto_kind(message)};
    if (it->kind == MSG_KIND_BUFFER_INFO) {
        struct msg_buffer_info m;
        ck_assert_int_eq(proto_decode(&schema_msg_buffer_info, message, &m, NULL), 0);
        it->seq = m.seq;
        it->ack = m.ack;
    } else if (it->kind == MSG_KIND_TAKEN) {
        struct msg_taken m;
        ck_assert_int_eq(
            proto_decode_first(&schema_msg_taken, message, &m, &schema_span, &it->taken, NULL), 0);
        it->taken_count = m.taken.count;
    }
    return 0;
}

int __wrap_conn_start(struct conn *conn, struct err *e)
{
    (void)e;
    conn->state = CONN_UP;
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

static void say(uint32_t id, const struct schema *schema, const void *m)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(schema, m, &out, NULL), 0);
    struct message *message = message_create(out.size);
    ck_assert_ptr_nonnull(message);
    memcpy(message->data, out.data, out.size);
    message->id = id;
    ck_assert_int_eq(session_message(&c, message, &e), 0);
    message_unref(message);
    capbuf_finish(&out);
}

static void say_error(uint32_t id, int code, bool open)
{
    struct err e = ERR_INIT;
    struct msg_error m;
    (void)err_set(&e, code, "said");
    proto_error_from(&e, &m);
    m.open = open;
    m.retry_after_ns = 1;
    say(id, &schema_msg_error, &m);
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

/* Nothing else may happen on this connection: without a time for it, the request would go again
 * when the daemon next answers WAIT, after 30 s. */
START_TEST(a_refusal_found_in_passing_has_its_time)
{
    static struct lane_shared shared;
    static _Alignas(RING_LINE) uint8_t data[1024];
    uint8_t room[PROTO_ERROR_BYTES];
    struct ring_producer daemon;
    struct err e = ERR_INIT;
    setup();
    ask(0);
    r[0].by_ring = true;
    memset(&shared, 0, sizeof shared);
    ring_producer_init(&daemon, &shared.complete, data, sizeof data);
    ring_consumer_init(&c.lane.in, &shared.complete, data, sizeof data);
    c.lane.memory.data = (uint8_t *)&shared;
    c.lane.state = LANE_UP;
    c.lane.daemon_bell = -1;
    c.conn.timer_ns = NS_NEVER;
    c.session.wait_ns = c.session.attempt_ns = NS_NEVER;
    (void)err_set(&e, ERR_BUSY, "the queue is full");
    e.retry_after_ns = 7 * NS_PER_MS;
    const struct bytes refusal = proto_error_put(&e, true, room);
    ck_assert_int_eq(ring_put(&daemon, r[0].id, refusal, bytes_of(NULL, 0), &e), 1);
    (void)ring_publish(&daemon);
    client_glance(&c);
    ck_assert_uint_ne(r[0].again_ns, 0);
    ck_assert_uint_eq(c.conn.timer_ns, r[0].again_ns);
    ck_assert_uint_eq(count, 1);
    (void)session_tick(&c, r[0].again_ns);
    ck_assert_uint_eq(count, 2);
    c.lane.state = LANE_OFF;
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

/* A job that runs for long holds no answers of others back, as long as the next daemon can be told
 * of all the numbers behind it: one of minor 2 only of so many. */
START_TEST(what_is_accepted_holds_no_answers_back)
{
    setup();
    c.requests.ahead_max = 8192;
    ask(1);
    ask(3);
    requests_accepted(&c.requests, &r[3]);
    ask(2);
    ck_assert_uint_eq(sent[2].ack, 0);
    requests_accepted(&c.requests, &r[1]);
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    ask(2);
    ck_assert_uint_eq(sent[3].seq, 4);
    ck_assert_uint_eq(sent[3].ack, 3);
    ck_assert_uint_eq(requests_lowest(&c.requests), 1); /* so it is told to another daemon */
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    c.requests.next_seq = 9000; /* as if others had been answered */
    ask(2);
    ck_assert_uint_eq(sent[4].ack, 8192);
    requests_end(&c.requests, &r[1]);
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    requests_forget_accepted(&c.requests);
    ask(2);
    ck_assert_uint_eq(sent[5].ack, 1);
    requests_end(&c.requests, &r[3]);
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    ask(2);
    ck_assert_uint_eq(sent[6].ack, 9001);
    teardown();
}
END_TEST

/* Answers behind one that does not come are told as ranges. */
START_TEST(answers_behind_one_that_is_awaited_are_told)
{
    setup();
    c.session.minor = PROTO_MINOR;
    c.session.max_kept = 1 << 20;
    ask(1);
    ask(2);
    ask(3);
    c.session.unreported = 1023; /* as if others had been answered */
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    ck_assert_uint_eq(count, 4);
    ck_assert_uint_eq(sent[3].kind, MSG_KIND_TAKEN);
    ck_assert_uint_eq(sent[3].taken_count, 1);
    ck_assert_uint_eq(sent[3].taken.first, 2);
    ck_assert_uint_eq(sent[3].taken.count, 1);
    c.session.unreported_bytes = 1 << 20;
    say_error(r[3].id, ERR_BAD_HANDLE, false); /* not before that is answered */
    ck_assert_uint_eq(count, 4);
    struct msg_done done = {0};
    say(c.session.taken_request.id, &schema_msg_done, &done);
    ask(2);
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    ck_assert_uint_eq(count, 6);
    ck_assert_uint_eq(sent[5].kind, MSG_KIND_TAKEN);
    ck_assert_uint_eq(sent[5].taken.count, 3);
    say(c.session.taken_request.id, &schema_msg_done, &done);
    say_error(r[1].id, ERR_BAD_HANDLE, false); /* nothing is behind one any more */
    c.session.unreported = 1023;
    ask(2);
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    ck_assert_uint_eq(count, 7);
    session_finish(&c);
    teardown();
}
END_TEST

/* A question takes its number, and is sent when it would have been. */
START_TEST(what_was_not_admitted_is_withdrawn)
{
    setup();
    ask(1);
    ask(2);
    ck_assert(!session_withdraw(&c, &r[1])); /* the daemon may have it */
    say_error(r[1].id, ERR_BUSY, true);
    ck_assert(session_withdraw(&c, &r[1]));
    ck_assert_uint_eq(r[1].id, 0);
    ck_assert_uint_eq(answers, 0);
    const struct request *filler = c.requests.sequenced.first;
    ck_assert_uint_eq(filler->seq, 1);
    ck_assert_ptr_eq(c.requests.open, filler);
    ck_assert_uint_eq(count, 2);
    (void)session_tick(&c, ns_add(clock_now_ns(), NS_PER_S));
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(sent[2].seq, 1);
    say_error(r[2].id, ERR_BAD_HANDLE, false);
    say_error(filler->id, ERR_BAD_HANDLE, false);
    ck_assert_uint_eq(requests_lowest(&c.requests), 3);
    teardown();
}
END_TEST

START_TEST(what_was_not_sent_is_withdrawn)
{
    static struct request many[GAPS_MAX - 1];
    setup();
    for (unsigned i = 0; i < GAPS_MAX - 1; i++) {
        many[i].answered = answered;
        ck_assert_int_eq(requests_add(&c.requests, &many[i], true, NULL), 0);
    }
    ask(1);
    ck_assert_ptr_eq(c.requests.mark, &r[1]);
    c.requests.next_seq = GAPS_MAX + FAR_MAX + 1; /* as if others had been answered */
    ask(2);
    ask(3);
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_eq(c.requests.unsent, &r[2]);
    ck_assert(!session_withdraw(&c, &r[1]));
    ck_assert(session_withdraw(&c, &r[2]));
    const struct request *filler = c.requests.unsent;
    ck_assert_ptr_ne(filler, &r[2]);
    ck_assert_uint_eq(filler->seq, GAPS_MAX + FAR_MAX + 1);
    ck_assert_ptr_eq(filler->next, &r[3]);
    ck_assert_ptr_eq(c.requests.mark, &r[1]);
    ck_assert_uint_eq(c.requests.waiting, GAPS_MAX + 2);
    for (unsigned i = 0; i < GAPS_MAX - 1; i++) {
        requests_end(&c.requests, &many[i]);
    }
    ck_assert_ptr_null(c.requests.mark);
    session_go_on(&c);
    ck_assert_uint_eq(count, 3);
    ck_assert_uint_eq(sent[1].seq, GAPS_MAX + FAR_MAX + 1);
    say_error(filler->id, ERR_BAD_HANDLE, false);
    ck_assert_uint_eq(c.requests.waiting, 2);
    teardown();
}
END_TEST

/* Whatever minor the daemon has: one that answers it when it comes would wait for the number. */
START_TEST(a_job_is_asked_for_without_a_number)
{
    static struct gpud_job job;
    setup();
    c.session.minor = 2;
    job = (struct gpud_job){.client = &c, .quiet = true};
    ck_assert_int_eq(requests_add(&c.requests, &job.req, true, NULL), 0);
    ck_assert_int_eq(job_find(&c, &job, NULL), 0);
    ck_assert_uint_eq(count, 1);
    ck_assert_uint_eq(sent[0].kind, MSG_KIND_JOB_FIND);
    ck_assert_uint_eq(c.requests.next_seq, 2);
    const struct msg_accepted told = {.job = 9};
    say(c.requests.plain.first->id, &schema_msg_accepted, &told);
    ck_assert_uint_eq(job.id, 9);
    requests_end(&c.requests, &job.req);
    teardown();
}
END_TEST

/* More of them than the next daemon can be told of hold back what is far ahead, and let it go. */
START_TEST(numbers_run_only_so_far_ahead_of_many_that_are_awaited)
{
    static struct request many[GAPS_MAX];
    setup();
    for (unsigned i = 0; i < GAPS_MAX; i++) {
        many[i].answered = answered;
        ck_assert_int_eq(requests_add(&c.requests, &many[i], true, NULL), 0);
    }
    c.requests.next_seq = GAPS_MAX + FAR_MAX; /* as if others had been answered */
    ask(1);
    ck_assert_uint_eq(count, 1);
    c.conn.timer_ns = NS_NEVER;
    ask(2);
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_eq(c.requests.unsent, &r[2]);
    ck_assert_uint_le(c.conn.timer_ns, ns_add(clock_now_ns(), ROUTE_UNSENT_NS));
    requests_end(&c.requests, &many[GAPS_MAX / 2]); /* that many again, with r[1] */
    session_go_on(&c);
    ck_assert_uint_eq(count, 2);
    requests_end(&c.requests, &r[1]);
    ck_assert_ptr_eq(c.requests.mark, &r[2]);
    requests_end(&c.requests, &many[0]);
    ck_assert_ptr_null(c.requests.mark);
    for (unsigned i = 0; i < GAPS_MAX; i++) {
        requests_end(&c.requests, &many[i]);
    }
    ck_assert_uint_eq(c.requests.waiting, 1);
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

/* ---- restoring ------------------------------------------------------------------------------ */

#define MODULES 2u

static struct object modules[MODULES];

static void lose(void)
{
    struct err why = ERR_INIT;
    (void)err_set(&why, ERR_CONNECT, "lost");
    session_lost(&c, &why);
}

/* A client that a daemon has welcomed before, with modules, and no connection. */
static void setup_modules(void)
{
    const struct msg_module_load m = {.source = bytes_str("source")};
    setup();
    c.conn.fd = -1;
    c.session.known = true;
    c.reconnect_ns = NS_NEVER;
    lose();
    for (unsigned i = 0; i < MODULES; i++) {
        modules[i] = (struct object){
            .kind = OBJECT_MODULE, .daemon = 100 + i, .recipe_kind = MSG_KIND_MODULE_LOAD};
        capbuf_init(&modules[i].recipe, 4096);
        ck_assert_int_eq(proto_encode(&schema_msg_module_load, &m, &modules[i].recipe, NULL), 0);
        object_link(&c, &modules[i]);
    }
}

static void teardown_modules(void)
{
    lose();
    for (unsigned i = 0; i < MODULES; i++) {
        capbuf_finish(&modules[i].recipe);
    }
    session_finish(&c);
    teardown();
}

/* Connects, and is welcomed by that daemon. */
static uint64_t minor;   /* of the daemon */
static uint64_t session; /* its number in the daemon */

static void welcome(uint8_t daemon, bool resumed)
{
    const uint8_t id[PROTO_CLIENT_ID_BYTES] = {daemon};
    const struct msg_welcome w = {.minor = minor,
                                  .daemon_id = bytes_of(id, sizeof id),
                                  .resumed = resumed,
                                  .session = session};
    unsigned before = count;
    (void)session_tick(&c, ns_add(clock_now_ns(), 2 * NS_PER_S));
    ck_assert_uint_eq(count, before + 1);
    ck_assert_uint_eq(sent[before].kind, MSG_KIND_HELLO);
    say(c.session.hello.id, &schema_msg_welcome, &w);
}

static unsigned loads_since(unsigned from)
{
    unsigned loads = 0;
    for (unsigned i = from; i < count; i++) {
        loads += sent[i].kind == MSG_KIND_MODULE_LOAD;
    }
    return loads;
}

/* Its first load that is not answered. */
static uint32_t load_id(void)
{
    ck_assert_ptr_nonnull(c.requests.plain.first);
    return c.requests.plain.first->id;
}

/* Compilers take their time. */
START_TEST(restoring_has_no_end_but_the_connections)
{
    setup_modules();
    welcome(1, false);
    ck_assert_uint_eq(loads_since(0), MODULES);
    (void)session_tick(&c, ns_add(clock_now_ns(), 3600 * NS_PER_S));
    ck_assert_int_eq(c.session.state, SESSION_RESTORE);
    for (unsigned i = 0; i < MODULES; i++) {
        say(load_id(), &schema_msg_module, &(const struct msg_module){.module = 7 + i});
    }
    ck_assert_int_eq(c.session.state, SESSION_READY);
    ck_assert_uint_eq(modules[0].daemon + modules[1].daemon, 7 + 8);
    ck_assert_uint_eq(loads_since(0), MODULES);
    teardown_modules();
}
END_TEST

/* What is not answered ends when nobody is found for as long as was asked for: since the last
 * daemon was lost, not since the first. */
START_TEST(each_lost_connection_has_its_time)
{
    setup_modules();
    c.reconnect_ns = 60 * NS_PER_S;
    const uint64_t first = c.session.lost_ns;
    ask(1);
    ck_assert_uint_eq(count, 0);
    welcome(1, false);
    while (clock_now_ns() == first) {
    }
    lose();
    (void)session_tick(&c, ns_add(first, c.reconnect_ns));
    ck_assert_uint_eq(answers, 0);
    lose();
    (void)session_tick(&c, ns_add(clock_now_ns(), c.reconnect_ns));
    ck_assert_uint_eq(answers, 1);
    teardown_modules();
}
END_TEST

/* gpud_open has a limit of its own: until then nothing but the next attempt is due. */
START_TEST(opening_waits_for_the_next_attempt)
{
    setup();
    const uint64_t now = clock_now_ns();
    c.conn.state = CONN_DOWN;
    c.reconnect_ns = NS_PER_MS;
    c.session.opening = true;
    c.session.lost_ns = now;
    c.session.retry_ns = now + NS_PER_S;
    ck_assert_uint_eq(session_tick(&c, now + 2 * NS_PER_MS), c.session.retry_ns);
    teardown();
}
END_TEST

/* Loses the connection for a system's error until the daemon has been away for a second at least.
 * Returns the longest pause that the client had then, against that time, in percent. */
static uint64_t pauses_of(int error)
{
    struct err why = ERR_INIT;
    uint64_t away = 0; /* each pause is at least half of the backoff */
    setup();
    c.conn.fd = -1;
    while (away < NS_PER_S) {
        errno = error;
        (void)err_errno(&why, ERR_CONNECT, "connecting");
        session_lost(&c, &why);
        away += c.session.backoff_ns / 2;
    }
    uint64_t part = c.session.backoff_ns * 100 / away;
    teardown();
    return part;
}

/* A daemon that comes back after a second is found within a part of that. One that is there, and
 * refuses, is asked less and less. */
START_TEST(where_nobody_listens_is_asked_often)
{
    ck_assert_uint_lt(pauses_of(ECONNREFUSED), 50);
    ck_assert_uint_lt(pauses_of(ENOENT), 50);
    ck_assert_uint_ge(pauses_of(ECONNRESET), 75);
    ck_assert_uint_ge(pauses_of(EAGAIN), 75);
}
END_TEST

static unsigned fillers_since(unsigned from)
{
    unsigned fillers = 0;
    for (unsigned i = from; i < count; i++) {
        fillers += sent[i].kind == MSG_KIND_BUFFER_INFO && sent[i].seq > 1;
    }
    return fillers;
}

static void meet_another(uint64_t its_minor, unsigned fillers, uint64_t ahead)
{
    setup();
    c.conn.fd = -1;
    c.session.known = true;
    c.reconnect_ns = NS_NEVER;
    ask(1);
    c.requests.next_seq = 16384 + 5; /* as if others had been answered */
    lose();
    const unsigned before = count;
    minor = its_minor;
    welcome(2, false);
    minor = 0;
    ck_assert_uint_eq(fillers_since(before), fillers);
    ck_assert_uint_eq(c.requests.ahead_max, ahead);
    lose();
    session_finish(&c);
    teardown();
}

/* A daemon of minor 3 and more is told of every number at once; one before believes 16384 of them,
 * and what it does not believe is filled. */
START_TEST(an_older_daemon_believes_less)
{
    meet_another(MINOR_RANGES, 0, UINT64_MAX);
    meet_another(MINOR_RANGES - 1, 4, 8192);
}
END_TEST

/* The session ended, and the WELCOME of the next one was lost: the daemon knows a session, but the
 * client does not. */
START_TEST(a_session_of_another_number_is_a_new_one)
{
    setup_modules();
    session = 1;
    welcome(1, false);
    say(load_id(), &schema_msg_module, &(const struct msg_module){.module = 7});
    say(load_id(), &schema_msg_module, &(const struct msg_module){.module = 8});
    ck_assert_int_eq(c.session.state, SESSION_READY);
    lose();
    unsigned before = count;
    session = 2;
    welcome(1, true);
    session = 0;
    ck_assert_uint_eq(loads_since(before), MODULES);
    teardown_modules();
}
END_TEST

/* The same daemon has it still. */
/* A job is sent, the connection breaks, and the session goes on or is new; then it is refused. */
static int effects_after(bool resumed)
{
    struct msg_submit m = {.program = 0};
    struct gpud_job *job = NULL;
    setup();
    c.conn.fd = -1;
    c.session.known = true;
    c.reconnect_ns = NS_NEVER;
    lose();
    welcome(1, false);
    ck_assert_int_eq(job_start(&c, &m, NULL, 0, NULL, NULL, &job, NULL), 0);
    lose();
    welcome(1, resumed);
    say_error(job->req.id, ERR_STALE_HANDLE, false);
    ck_assert_int_eq(job->state, JOB_ENDED);
    int effects = job->error.effects;
    job_release(&c, job);
    lose();
    session_finish(&c);
    teardown();
    return effects;
}

START_TEST(a_new_session_does_not_know_what_another_ran)
{
    ck_assert_int_eq(effects_after(true), ERR_EFFECTS_NONE);
    ck_assert_int_eq(effects_after(false), ERR_EFFECTS_MAYBE);
}
END_TEST

START_TEST(what_was_restored_stays_when_the_connection_breaks)
{
    setup_modules();
    welcome(1, false);
    say(load_id(), &schema_msg_module, &(const struct msg_module){.module = 7});
    lose();
    ck_assert_uint_eq(c.session.restores, 0);
    unsigned before = count;
    welcome(1, true);
    ck_assert_uint_eq(loads_since(before), MODULES - 1);
    say(load_id(), &schema_msg_module, &(const struct msg_module){.module = 8});
    ck_assert_int_eq(c.session.state, SESSION_READY);
    ck_assert_uint_eq(modules[0].daemon + modules[1].daemon, 7 + 8);
    lose();
    before = count;
    welcome(1, true); /* all is there */
    ck_assert_uint_eq(loads_since(before), 0);
    ck_assert_int_eq(c.session.state, SESSION_READY);
    teardown_modules();
}
END_TEST

/* Be it another daemon, or one that has forgotten the session. */
START_TEST(what_was_restored_goes_with_its_daemon)
{
    for (unsigned i = 0; i < 2; i++) {
        setup_modules();
        welcome(1, false);
        say(load_id(), &schema_msg_module, &(const struct msg_module){.module = 7});
        lose();
        unsigned before = count;
        welcome(i == 0 ? 2 : 1, i == 0);
        ck_assert_uint_eq(loads_since(before), MODULES);
        teardown_modules();
    }
}
END_TEST

/* Many come back at once, and only so many sources may wait for the compiler. */
START_TEST(what_may_be_restored_later_is)
{
    setup_modules();
    welcome(1, false);
    say_error(load_id(), ERR_BUSY, false);
    ck_assert_uint_eq(loads_since(0), MODULES);
    ck_assert_uint_eq(c.session.restores, MODULES);
    (void)session_tick(&c, ns_add(clock_now_ns(), 2 * NS_PER_S));
    ck_assert_uint_eq(loads_since(0), MODULES + 1);
    say(load_id(), &schema_msg_module, &(const struct msg_module){.module = 7});
    say_error(load_id(), ERR_COMPILE, false); /* that is final */
    ck_assert_int_eq(c.session.state, SESSION_READY);
    (void)session_tick(&c, ns_add(clock_now_ns(), 2 * NS_PER_S));
    ck_assert_uint_eq(loads_since(0), MODULES + 1);
    teardown_modules();
}
END_TEST

#define BUFFERS 100u
#define AT_ONCE 64u

static unsigned inquiries_since(unsigned from)
{
    unsigned inquiries = 0;
    for (unsigned i = from; i < count; i++) {
        inquiries += sent[i].kind == MSG_KIND_BUFFER_INFO;
    }
    return inquiries;
}

static void answer_inquiries(unsigned number)
{
    for (unsigned i = 0; i < number; i++) {
        say(c.requests.plain.first->id, &schema_msg_buffer, &(const struct msg_buffer){.state = 1});
    }
}

static void on_event(gpud_client *client, const gpud_event *event, void *user)
{
    (void)client;
    (void)event;
    (void)user;
}

/* Another daemon is asked for each buffer, so many at once, before anything is restored. The client
 * hears once of each lost buffer, though the connection breaks and all others are asked again. */
START_TEST(buffers_that_another_daemon_does_not_have_are_told)
{
    static struct buffer buffers[BUFFERS];
    setup_modules();
    handles_init(&c, 1);
    c.event_cb = on_event;
    for (unsigned i = 0; i < BUFFERS; i++) {
        buffers[i] = (struct buffer){.daemon = 1000 + i};
        buffers[i].id = idmap_add(&c.buffers, &buffers[i]);
        ck_assert_uint_ne(buffers[i].id, 0);
    }
    welcome(1, true);
    ck_assert_uint_eq(inquiries_since(0), AT_ONCE);
    ck_assert_uint_eq(loads_since(0), 0);
    say_error(c.requests.plain.first->id, ERR_BUFFER_LOST, false);
    say_error(c.requests.plain.first->id, ERR_BUSY, false); /* nobody knows */
    ck_assert_uint_eq(inquiries_since(0), AT_ONCE + 2);
    ck_assert(buffers[0].lost && !buffers[1].lost);
    ck_assert_ptr_nonnull(c.event_first);
    ck_assert_int_eq(c.event_first->kind, GPUD_EVENT_BUFFER_LOST);
    ck_assert_uint_eq(c.event_first->buffer.id, buffers[0].id);
    ck_assert_ptr_null(c.event_first->next);
    lose();
    ck_assert_uint_eq(c.session.restores, 0);
    unsigned before = count;
    welcome(1, true);
    answer_inquiries(BUFFERS - 1 - MODULES);
    ck_assert_uint_eq(loads_since(0), 0);
    answer_inquiries(MODULES);
    ck_assert_uint_eq(inquiries_since(before), BUFFERS - 1);
    ck_assert_uint_eq(loads_since(0), MODULES);
    ck_assert_ptr_null(c.event_first->next);
    free(c.event_first);
    c.event_first = c.event_last = NULL;
    idmap_finish(&c.buffers);
    teardown_modules();
}
END_TEST

static unsigned destroyed;

static void on_destroy(struct object *o)
{
    (void)o;
    destroyed++;
}

/* Answers come much more often than objects go: these are walked only when one does. */
START_TEST(objects_go_with_the_answer_to_what_gave_them_up)
{
    struct object o[4] = {{.destroy = on_destroy},
                          {.destroy = on_destroy},
                          {.destroy = on_destroy},
                          {.freed_seq = 1, .destroy = on_destroy}}; /* seen if they are walked */
    setup();
    destroyed = 0;
    for (unsigned i = 0; i < 4; i++) {
        object_link(&c, &o[i]);
    }
    c.requests.next_seq = 3;
    objects_reap(&c);
    ck_assert_uint_eq(destroyed, 0);
    object_give_up(&c, &o[0], 7);
    object_give_up(&c, &o[1], 5);
    object_give_up(&c, &o[2], 5);
    c.requests.next_seq = 5;
    objects_reap(&c);
    ck_assert_uint_eq(destroyed, 0);
    c.requests.next_seq = 6;
    objects_reap(&c);
    ck_assert_uint_eq(destroyed, 3);
    ck_assert_ptr_eq(c.objects, &o[0]);
    c.requests.next_seq = 8;
    objects_reap(&c);
    ck_assert_uint_eq(destroyed, 4);
    ck_assert_ptr_null(c.objects);
    teardown();
}
END_TEST

SUITE_MAIN("session", objects_go_with_the_answer_to_what_gave_them_up,
           a_job_is_asked_for_without_a_number, what_was_not_admitted_is_withdrawn,
           what_was_not_sent_is_withdrawn, answers_behind_one_that_is_awaited_are_told,
           numbers_run_only_so_far_ahead_of_many_that_are_awaited, an_older_daemon_believes_less,
           restoring_has_no_end_but_the_connections, each_lost_connection_has_its_time,
           opening_waits_for_the_next_attempt, where_nobody_listens_is_asked_often,
           a_new_session_does_not_know_what_another_ran, a_session_of_another_number_is_a_new_one,
           what_was_restored_stays_when_the_connection_breaks,
           what_was_restored_goes_with_its_daemon, what_may_be_restored_later_is,
           a_refusal_found_in_passing_has_its_time, what_was_not_admitted_goes_once_after_its_ring,
           what_goes_again_went_over_the_socket, a_number_that_is_open_is_not_acknowledged,
           what_is_accepted_holds_no_answers_back, fillers_keep_their_order,
           buffers_that_another_daemon_does_not_have_are_told)
