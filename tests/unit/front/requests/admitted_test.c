/* Which requests take their number and which do not. The test is the listener (front_io) and counts
 * what it is asked for. calloc, which is libc's, is linked with --wrap. */
#include <stdlib.h>

#include "daemon/front/clients/reply.h"
#include "daemon/front/model/early.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/request.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/intake.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/requests/sweep.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

#define PIPE 11u

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);

static struct fake *k;
static struct session *s;
static char slot;
static unsigned replies;
static unsigned drops; /* slots that are free again without an answer */
static unsigned kind;
static struct msg_error last; /* the last answer, if it was an ERROR */
static unsigned deadlines;    /* so many were DEADLINE */
static bool fails;            /* the next allocation */

void *__wrap_calloc(size_t count, size_t size)
{
    bool now = fails;
    fails = false;
    return now ? NULL : __real_calloc(count, size);
}

static void on_reply(struct listener *l, struct listener_slot *to, struct bytes message)
{
    (void)l;
    (void)to;
    replies++;
    kind = proto_kind(message);
    if (kind == MSG_KIND_ERROR) {
        ck_assert_int_eq(proto_decode(&schema_msg_error, message, &last, NULL), 0);
        deadlines += (int)last.code == ERR_DEADLINE;
        last.text = last.log = (struct bytes){0};
    }
}

static void on_drop(struct listener *l, struct listener_slot *to)
{
    (void)l;
    (void)to;
    drops++;
}

static struct session *greet(uint32_t pipe)
{
    const uint8_t id[PROTO_CLIENT_ID_BYTES] = {(uint8_t)pipe};
    struct request hello = {.peer = {.pipe = pipe, .local = true, .uid = 1000},
                            .kind = MSG_KIND_HELLO};
    struct session *made = NULL;
    struct capbuf out;
    struct err e = ERR_INIT;
    hello.msg.hello =
        (struct msg_hello){.major = PROTO_MAJOR, .client_id = bytes_of(id, sizeof id), .resume = 1};
    capbuf_init(&out, 4096);
    ck_assert_int_eq(session_hello(&k->f, &hello, &out, &made, &e), 0);
    capbuf_finish(&out);
    return made;
}

static void setup(void)
{
    k = fake_create();
    k->f.io.reply = on_reply;
    k->f.io.drop = on_drop;
    k->f.config.keep_results_bytes = 1 << 20;
    k->f.config.staging_input_bytes = EARLY_BYTES;
    s = greet(PIPE);
    replies = kind = 0;
    fails = false;
}

static void teardown(void)
{
    session_end(&k->f, s);
    fake_destroy(k);
}

/* Asks for a buffer's shape by the session's ring. */
static void ask_by_ring(uint64_t seq)
{
    struct request *r = __real_calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.session = s, .kind = MSG_KIND_BUFFER_INFO, .ring_id = 7};
    r->msg.ping.seq = seq;
    intake_ring(&k->f, s, r);
}

/* Asks under a number; `ack` as given. */
static void ask(unsigned what, uint64_t seq, uint64_t ack, size_t size)
{
    struct request *r = __real_calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.peer = {.pipe = PIPE},
                          .kind = what,
                          .slot = (struct listener_slot *)(void *)&slot,
                          .size = size};
    r->msg.ping.seq = seq;
    r->msg.ping.ack = ack;
    intake_request(&k->f, r);
}

static void submit(uint64_t seq, uint64_t flags)
{
    struct request *r = __real_calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.peer = {.pipe = PIPE},
                          .kind = MSG_KIND_SUBMIT,
                          .slot = (struct listener_slot *)(void *)&slot};
    r->msg.submit.seq = seq;
    r->msg.submit.flags = flags;
    intake_request(&k->f, r);
}

/* One that waits for room so long. */
static void submit_sized(uint32_t pipe, uint64_t seq, size_t size, uint64_t deadline_ns)
{
    struct request *r = __real_calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.peer = {.pipe = pipe},
                          .kind = MSG_KIND_SUBMIT,
                          .slot = (struct listener_slot *)(void *)&slot,
                          .size = size};
    r->msg.submit =
        (struct msg_submit){.seq = seq, .flags = SUBMIT_BLOCK, .deadline_ns = deadline_ns};
    intake_request(&k->f, r);
}

static void submit_by(uint32_t pipe, uint64_t seq, uint64_t deadline_ns)
{
    submit_sized(pipe, seq, 1, deadline_ns);
}

static void submit_until(uint64_t seq, uint64_t deadline_ns)
{
    submit_by(PIPE, seq, deadline_ns);
}

static void submit_from(uint32_t pipe, uint64_t seq)
{
    submit_by(pipe, seq, 0);
}

static void submit_large(uint64_t seq)
{
    submit_until(seq, 0);
}

static void is_open(int code)
{
    ck_assert_uint_eq(kind, MSG_KIND_ERROR);
    ck_assert_int_eq((int)last.code, code);
    ck_assert_uint_eq(last.open, 1);
    ck_assert_uint_gt(last.retry_after_ns, 0);
}

/* An answer, which took the number. */
static void is_taken(int code)
{
    ck_assert_uint_eq(kind, MSG_KIND_ERROR);
    ck_assert_int_eq((int)last.code, code);
    ck_assert_uint_eq(last.open, 0);
}

/* The next front goes on behind it, although the worker never got the job. */
START_TEST(the_id_of_an_admitted_job_is_used_up)
{
    setup();
    submit(1, SUBMIT_ASYNC);
    ck_assert_uint_eq(kind, MSG_KIND_ACCEPTED);
    ck_assert_uint_eq(record_last(k->device[0].record, RECORD_JOB), k->f.next_job - 1);
    teardown();
}
END_TEST

START_TEST(without_memory_the_number_stays_open)
{
    setup();
    fails = true;
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    is_open(ERR_NOMEM);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 0); /* waits for it */
    ck_assert_uint_eq(replies, 1);
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    ck_assert_uint_eq(replies, 3);
    is_taken(ERR_BAD_HANDLE);
    ck_assert_uint_eq(s->order.expect, 3);
    teardown();
}
END_TEST

static bool channel_is_full(const struct link *l)
{
    (void)l;
    return true;
}

static bool channel_has_room(const struct link *l)
{
    (void)l;
    return false;
}

/* Jobs wait in the front, so they are taken all the same. */
START_TEST(a_full_channel_is_waited_for)
{
    setup();
    k->f.io.pressed = channel_is_full;
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    is_open(ERR_BUSY);
    ck_assert_uint_ne(k->f.wake_ns, NS_NEVER); /* the channel is looked at again */
    k->f.io.pressed = channel_has_room;
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    is_taken(ERR_BAD_HANDLE);
    k->f.io.pressed = channel_is_full;
    submit(2, 0);
    ck_assert_uint_eq(s->order.expect, 3);
    teardown();
}
END_TEST

START_TEST(without_acknowledgement_the_number_stays_open)
{
    setup();
    for (uint64_t seq = 1; seq <= OPS_MAX; seq++) {
        ask(MSG_KIND_BUFFER_INFO, seq, 0, 0);
        is_taken(ERR_BAD_HANDLE);
    }
    ask(MSG_KIND_BUFFER_INFO, OPS_MAX + 1, 0, 0);
    is_open(ERR_BUSY);
    ck_assert_uint_eq(s->order.expect, OPS_MAX + 1);
    ask(MSG_KIND_BUFFER_INFO, OPS_MAX + 1, 1, 0);
    is_taken(ERR_BAD_HANDLE);
    teardown();
}
END_TEST

/* Too far ahead, or too much of it. */
START_TEST(what_comes_too_early_may_come_again)
{
    setup();
    ask(MSG_KIND_BUFFER_INFO, REORDER_MAX + 2, 0, 0);
    is_open(ERR_BUSY);
    ask(MSG_KIND_BUFFER_INFO, 3, 0, EARLY_BYTES);
    ck_assert_uint_eq(replies, 1);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 1);
    ck_assert_uint_eq(replies, 2);
    is_open(ERR_BUSY);
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 1);
    ck_assert_uint_eq(replies, 5);
    ck_assert_uint_eq(s->order.expect, 4);
    teardown();
}
END_TEST

/* FAULT 27: client that does not acknowledge its answers
 * required: refused every further request, except requests that release something
 * defence: `front/requests/intake.c`: check_kept, admit
 * also: `front_admitted_test`: results_that_are_not_taken_are_bounded,
 *   without_acknowledgement_the_number_stays_open
 * mutants: kept-bytes */
/* Whatever is asked for, but what gives something back. */
START_TEST(answers_that_are_not_taken_are_bounded)
{
    setup();
    s->ops.kept_bytes = (1 << 20) + 1;
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    is_open(ERR_BUSY);
    ask(MSG_KIND_MODULE_LOAD, 1, 0, 0);
    is_open(ERR_BUSY);
    ask(MSG_KIND_BUFFER_FREE, 1, 0, 0);
    is_taken(ERR_BAD_HANDLE);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 0);
    is_open(ERR_BUSY);
    ask(MSG_KIND_BUFFER_INFO, 3, 0, 0); /* waits for it */
    s->ops.kept_bytes -= (1 << 20) + 1;
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 0);
    is_taken(ERR_BAD_HANDLE);
    ck_assert_uint_eq(s->order.expect, 4);
    teardown();
}
END_TEST

/* All sessions of a tenant together. */
START_TEST(messages_of_a_tenant_are_bounded)
{
    setup();
    struct session_key key = {.uid = 1000};
    struct session *other = session_create(&key, s->tenant, 77);
    ck_assert_ptr_nonnull(other);
    session_keep(other, &other->events.result_bytes, (1 << 20) + 1);
    k->f.config.tenant_message_bytes = 1 << 20;
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    is_open(ERR_BUSY);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 8); /* nor does it wait for its turn */
    is_open(ERR_BUSY);
    ask(MSG_KIND_BUFFER_FREE, 1, 0, 0);
    is_taken(ERR_BAD_HANDLE);
    session_destroy(other);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 0);
    is_taken(ERR_BAD_HANDLE);
    ck_assert_uint_eq(s->tenant->message_bytes, s->ops.kept_bytes + s->early.bytes +
                                                    s->events.result_bytes + s->program_bytes);
    teardown();
}
END_TEST

/* A job that waits for room is before all that comes behind it, and comes once. */
START_TEST(who_waits_for_room_keeps_its_place)
{
    setup();
    k->f.config.queue_max = 0;
    submit(1, 0);
    is_taken(ERR_BUSY);
    submit(2, SUBMIT_BLOCK);
    ck_assert_uint_eq(s->order.expect, 2);
    ck_assert_uint_eq(s->ops.count, 1);
    ask(MSG_KIND_BUFFER_INFO, 3, 0, 0);
    submit(4, SUBMIT_BLOCK);
    intake_room(&k->f);
    ck_assert_uint_eq(replies, 1);
    ck_assert_uint_eq(s->early.count, 3);
    submit(2, SUBMIT_BLOCK); /* by another way: of two one gets no answer */
    ck_assert_uint_eq(drops, 1);
    ck_assert_uint_eq(s->early.count, 3);
    ck_assert_uint_eq(s->order.expect, 2);
    ck_assert_uint_eq(k->f.count.refused, 1); /* who waits is not refused */
    k->f.life = FRONT_DRAINING;
    intake_room(&k->f);
    is_taken(ERR_DRAINING); /* of 4, behind it */
    ck_assert_uint_eq(replies, 4);
    ck_assert_uint_eq(s->order.expect, 5);
    ck_assert_ptr_null(k->f.parked.first);
    teardown();
}
END_TEST

/* There is room, but not for this one: it does not keep the loop busy, nor is it counted again. */
START_TEST(who_finds_no_room_is_tried_once_in_a_turn)
{
    setup();
    k->f.config.queue_max = 1;
    k->f.config.session_inflight_max = 0;
    submit(1, SUBMIT_BLOCK);
    intake_room(&k->f);
    intake_room(&k->f);
    ck_assert_uint_eq(replies, 0);
    ck_assert_uint_eq(k->f.count.refused, 0);
    ck_assert_uint_ne(k->f.wake_ns, NS_NEVER);
    k->f.config.session_inflight_max = 1;
    intake_room(&k->f);
    ck_assert_ptr_null(k->f.parked.first);
    ck_assert_uint_eq(s->order.expect, 2);
    teardown();
}
END_TEST

/* Whoever comes new while others wait for what all share waits behind them, or is refused. */
START_TEST(who_waits_for_room_is_first)
{
    setup();
    struct session *first = s;
    struct session *second = greet(PIPE + 1);
    k->f.config.queue_max = 0;
    submit_from(PIPE, 1);
    submit_from(PIPE, 2);
    k->f.config.queue_max = 1; /* as if a job had ended just now */
    submit_from(PIPE + 1, 1);
    ck_assert_uint_eq(replies, 0);
    ck_assert_uint_eq(second->order.expect, 1);
    ck_assert_uint_eq(k->f.parked.common, 2);
    ck_assert_ptr_eq(k->f.parked.first, first);
    submit_from(PIPE, 1); /* once more, by another way: that does not change its place */
    ck_assert_uint_eq(k->f.parked.common, 2);
    ck_assert_ptr_eq(k->f.parked.first, first);
    intake_room(&k->f);
    ck_assert_uint_eq(first->order.expect, 2);
    ck_assert_uint_eq(second->order.expect, 1);
    ck_assert_ptr_eq(k->f.parked.first, second); /* what is behind the first one's waits anew */
    k->f.config.queue_max = 2;
    intake_room(&k->f);
    ck_assert_uint_eq(first->order.expect, 2);
    ck_assert_uint_eq(second->order.expect, 2);
    ck_assert_ptr_eq(k->f.parked.first, first);
    k->f.config.queue_max = 3;
    intake_room(&k->f);
    ck_assert_uint_eq(first->order.expect, 3);
    ck_assert_uint_eq(k->f.parked.common, 0);
    ck_assert_ptr_null(k->f.parked.first);
    ck_assert_uint_eq(replies, 0);
    session_end(&k->f, second);
    teardown();
}
END_TEST

/* That it was tried in vain does not put it behind others, nor do those find room before it. */
START_TEST(who_waits_for_bytes_stays_first)
{
    setup();
    struct session *first = s;
    struct session *second = greet(PIPE + 1);
    k->f.config.queue_max = 8;
    k->f.config.staging_input_bytes = 10;
    k->f.input_bytes = 10; /* of others */
    submit_from(PIPE, 1);
    submit_from(PIPE + 1, 1);
    for (unsigned i = 0; i < 3; i++) {
        intake_room(&k->f);
        ck_assert_uint_eq(k->f.parked.common, 2);
        ck_assert_ptr_eq(k->f.parked.first, first);
    }
    k->f.input_bytes = 8;
    intake_room(&k->f);
    ck_assert_uint_eq(k->f.input_bytes, 10);
    ck_assert_uint_eq(first->order.expect + second->order.expect, 4);
    ck_assert_ptr_null(k->f.parked.first);
    session_end(&k->f, second);
    teardown();
}
END_TEST

/* While one waits for more bytes than there are, what is small goes on, also if it waits behind;
 * what is not waits, though it would fit. */
START_TEST(who_waits_for_bytes_holds_up_nothing_small)
{
    setup();
    struct session *first = s;
    struct session *second = greet(PIPE + 1);
    struct session *third = greet(PIPE + 2);
    struct session *fourth = greet(PIPE + 3);
    k->f.config.queue_max = 8;
    k->f.config.staging_input_bytes = 1000;
    k->f.input_bytes = 600; /* of others */
    submit_sized(PIPE, 1, 500, 0);
    k->f.config.queue_max = 0;
    submit_from(PIPE + 1, 1);
    ck_assert_uint_eq(k->f.parked.common, 2);
    k->f.config.queue_max = 8;
    submit_from(PIPE + 2, 1);
    ck_assert_uint_eq(third->order.expect, 2);
    submit_sized(PIPE + 3, 1, 100, 0);
    ck_assert_uint_eq(fourth->order.expect, 1);
    intake_room(&k->f);
    ck_assert_uint_eq(second->order.expect, 2);
    ck_assert_uint_eq(first->order.expect, 1);
    ck_assert_ptr_eq(k->f.parked.first, first);
    k->f.input_bytes -= 600;
    intake_room(&k->f);
    ck_assert_uint_eq(first->order.expect + fourth->order.expect, 4);
    ck_assert_ptr_null(k->f.parked.first);
    session_end(&k->f, second);
    session_end(&k->f, third);
    session_end(&k->f, fourth);
    teardown();
}
END_TEST

/* Of the bytes those who wait keep what they need, and no more: who fits beside that is not refused
 * because others wait for a place in the queue. */
START_TEST(who_fits_beside_those_that_wait_is_taken)
{
    setup();
    struct session *second = greet(PIPE + 1);
    struct session *third = greet(PIPE + 2);
    k->f.config.staging_input_bytes = 1000;
    k->f.input_bytes = 600; /* of others */
    k->f.config.queue_max = 0;
    submit_sized(PIPE, 1, 200, 0);
    ck_assert_uint_eq(k->f.parked.common_bytes, 200);
    k->f.config.queue_max = 8;
    submit_sized(PIPE + 1, 1, 200, 0);
    ck_assert_uint_eq(second->order.expect, 2);
    submit_sized(PIPE + 2, 1, 100, 0);
    ck_assert_uint_eq(third->order.expect, 1);
    ck_assert_uint_eq(k->f.parked.common_bytes, 300);
    intake_room(&k->f);
    ck_assert_uint_eq(s->order.expect, 2);
    k->f.input_bytes -= 600;
    intake_room(&k->f);
    ck_assert_uint_eq(third->order.expect, 2);
    ck_assert_uint_eq(k->f.parked.common_bytes, 0);
    session_end(&k->f, second);
    session_end(&k->f, third);
    teardown();
}
END_TEST

/* However many wait for a limit of their own, each is tried after an end, and who waits behind them
 * for what all share is not forgotten. */
START_TEST(all_that_wait_are_tried)
{
    enum { OTHERS = 11 };
    struct session *other[OTHERS];
    setup();
    k->f.config.queue_max = 64;
    k->f.config.session_inflight_max = 0;
    for (unsigned i = 0; i < OTHERS; i++) {
        other[i] = greet(PIPE + 1 + i);
        submit_from(PIPE + 1 + i, 1);
    }
    k->f.config.queue_max = 0;
    k->f.config.session_inflight_max = 1;
    submit_from(PIPE, 1);
    for (unsigned i = 0; i < OTHERS; i++) {
        other[i]->jobs = 1; /* each has one under way */
    }
    k->f.config.queue_max = 64;
    k->f.parked.ended = true;
    unsigned turns = 0;
    do {
        intake_room(&k->f);
        turns++;
    } while (k->f.parked.next != NULL && turns < 2 * OTHERS);
    ck_assert_uint_lt(turns, 2 * OTHERS);
    ck_assert_uint_eq(s->order.expect, 2);
    ck_assert_ptr_eq(k->f.parked.first, other[0]);
    for (unsigned i = 0; i < OTHERS; i++) {
        other[i]->jobs = 0;
        session_end(&k->f, other[i]);
    }
    teardown();
}
END_TEST

/* Nor does whoever waits for an end of its own hold up others. */
START_TEST(who_waits_for_its_own_holds_up_nobody)
{
    setup();
    struct session *first = s;
    struct session *second = greet(PIPE + 1);
    k->f.config.queue_max = 8;
    k->f.config.session_inflight_max = 1;
    submit_from(PIPE, 1);
    submit_from(PIPE, 2);
    ck_assert_ptr_eq(k->f.parked.first, first);
    ck_assert_uint_eq(k->f.parked.common, 0);
    submit_from(PIPE + 1, 1);
    ck_assert_uint_eq(second->order.expect, 2);
    submit_from(PIPE + 1, 2);
    ck_assert_ptr_eq(k->f.parked.first, first);
    intake_room(&k->f);
    ck_assert_uint_eq(first->order.expect + second->order.expect, 4);
    session_end(&k->f, second);
    teardown();
}
END_TEST

/* Its deadline counts from when it came. */
START_TEST(who_waits_too_long_is_told)
{
    setup();
    k->f.config.queue_max = 0;
    submit_until(1, 50 * NS_PER_MS);
    fake_pass(50 * NS_PER_MS - 1);
    intake_room(&k->f);
    ck_assert_uint_eq(replies, 0);
    fake_pass(1);
    intake_room(&k->f);
    is_taken(ERR_DEADLINE);
    ck_assert_uint_eq(s->order.expect, 2);
    ck_assert_ptr_null(k->f.parked.first);
    teardown();
}
END_TEST

/* Over the bytes that a session's early requests may have its client sends it again. */
START_TEST(what_cannot_wait_here_comes_again)
{
    setup();
    k->f.config.queue_max = 0;
    ask(MSG_KIND_BUFFER_INFO, 2, 0, EARLY_BYTES);
    submit_large(1);
    is_open(ERR_BUSY);
    ck_assert_ptr_null(k->f.parked.first);
    teardown();
    ck_assert_uint_eq(drops, 1);
}
END_TEST

/* Nor has it more time for that. */
START_TEST(what_comes_again_waits_no_longer)
{
    setup();
    k->f.config.queue_max = 0;
    ask(MSG_KIND_BUFFER_INFO, 2, 0, EARLY_BYTES);
    submit_until(1, 50 * NS_PER_MS);
    is_open(ERR_BUSY);
    fake_pass(50 * NS_PER_MS);
    submit_until(1, 50 * NS_PER_MS);
    ck_assert_uint_eq(s->order.expect, 3);
    ck_assert_uint_eq(k->f.count.refused, 2);
    ck_assert_uint_eq(deadlines, 1);
    teardown();
}
END_TEST

/* Nor may those of all sessions be more than inputs may. */
START_TEST(what_waits_is_bounded_for_all_together)
{
    setup();
    k->f.config.queue_max = 0;
    k->f.config.staging_input_bytes = 100;
    k->f.parked.bytes = 100; /* of others */
    submit_large(1);
    is_open(ERR_BUSY);
    ck_assert_ptr_null(k->f.parked.first);
    k->f.parked.bytes = 99;
    submit_large(1);
    ck_assert_ptr_eq(k->f.parked.first, s);
    ck_assert_uint_eq(k->f.parked.bytes, 100);
    k->f.life = FRONT_DRAINING;
    intake_room(&k->f);
    is_taken(ERR_DRAINING);
    ck_assert_uint_eq(k->f.parked.bytes, 99);
    teardown();
}
END_TEST

static void cancel(uint64_t number)
{
    struct request *r = __real_calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.peer = {.pipe = PIPE},
                          .kind = MSG_KIND_CANCEL,
                          .slot = (struct listener_slot *)(void *)&slot};
    r->msg.cancel.number = number;
    intake_request(&k->f, r);
}

/* By the number of its SUBMIT: it is answered, and what is behind it has its turn. */
START_TEST(who_waits_for_its_turn_is_cancelled)
{
    setup();
    k->f.config.queue_max = 0;
    cancel(1);
    is_taken(ERR_NOT_FOUND);
    submit(1, SUBMIT_BLOCK);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 0);
    submit(3, SUBMIT_BLOCK);
    cancel(2);
    is_taken(ERR_NOT_FOUND);
    cancel(3);
    ck_assert_uint_eq(kind, MSG_KIND_DONE);
    ck_assert_int_eq((int)last.code, ERR_CANCELLED);
    ck_assert_uint_eq(s->early.count, 2);
    intake_acked(&k->f, op_find(s, 3)); /* its number is there until it is passed */
    cancel(1);
    ck_assert_uint_eq(kind, MSG_KIND_DONE);
    ck_assert_int_eq((int)last.code, ERR_BAD_HANDLE); /* of 2 */
    ck_assert_uint_eq(s->order.expect, 4);
    ck_assert_ptr_null(k->f.parked.first);
    ck_assert_uint_eq(replies, 7);
    cancel(3); /* once more: it has ended */
    ck_assert_uint_eq(kind, MSG_KIND_DONE);
    teardown();
}
END_TEST

/* With as many early ones as there may be, and the one that waits for room: what is asked to be
 * cancelled and cannot be stays where it is. */
START_TEST(what_cannot_be_cancelled_keeps_its_turn)
{
    setup();
    k->f.config.queue_max = 0;
    for (uint64_t seq = 2; seq <= REORDER_MAX + 1; seq++) {
        if (seq == 7) {
            submit(seq, 0);
        } else {
            ask(MSG_KIND_BUFFER_INFO, seq, 0, 0);
        }
    }
    submit(1, SUBMIT_BLOCK);
    ck_assert_ptr_eq(k->f.parked.first, s);
    ck_assert_uint_eq(s->early.count, REORDER_MAX + 1);
    cancel(6);
    is_taken(ERR_NOT_FOUND);
    s->ops.freelist = NULL; /* the next one needs memory */
    fails = true;
    cancel(7);
    is_taken(ERR_NOMEM);
    ck_assert_uint_eq(s->early.count, REORDER_MAX + 1);
    k->f.life = FRONT_DRAINING;
    intake_room(&k->f);
    ck_assert_uint_eq(s->early.count, 0);
    ck_assert_uint_eq(s->order.expect, REORDER_MAX + 2);
    ck_assert_uint_eq(replies, REORDER_MAX + 3);
    teardown();
}
END_TEST

/* What acknowledges the answer of the SUBMIT is the request that asks for it. */
START_TEST(a_job_is_cancelled_whose_answer_was_acknowledged)
{
    setup();
    struct job j = {.id = 77, .tenant = s->tenant, .seq = 1, .state = JOB_DISPATCHED};
    job_join(&j, s);
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    ask(MSG_KIND_BUFFER_INFO, 2, 1, 0);
    ck_assert_ptr_null(op_find(s, 1));
    HASH_ADD_BYHASHVALUE(hh, k->f.jobs, id, sizeof j.id, hash_number(j.id), &j);
    cancel(2);
    ck_assert(!j.cancelled);
    cancel(1);
    ck_assert_uint_eq(kind, MSG_KIND_DONE);
    ck_assert(j.cancelled);
    job_part(&j);
    HASH_DEL(k->f.jobs, &j);
    teardown();
}
END_TEST

/* Many small results that nobody waits for are as much as a few large ones. */
START_TEST(results_that_are_not_taken_are_bounded)
{
    unsigned count = 0;
    setup();
    while (s->events.result_bytes <= 1 << 20) {
        ck_assert(session_result(s, ++count, bytes_of("", 1)));
        ck_assert_uint_lt(count, 1 << 17);
    }
    ask(MSG_KIND_SUBMIT, 1, 0, 0);
    is_open(ERR_BUSY);
    ck_assert_uint_eq(k->f.count.refused, 1);
    teardown();
}
END_TEST

/* Slots are few, and others' as well. */
START_TEST(who_ends_leaves_no_slot_behind)
{
    setup();
    drops = 0;
    ask(MSG_KIND_BUFFER_INFO, 3, 0, 8);
    ask(MSG_KIND_BUFFER_INFO, 5, 0, 8);
    ask_by_ring(7);
    ck_assert_uint_eq(s->early.count, 3);
    ck_assert_uint_eq(drops, 0);
    teardown();
    ck_assert_uint_eq(drops, 2);
}
END_TEST

/* What lay in a ring that its client has given up is read after it came over the socket. */
START_TEST(a_ring_takes_no_answer_from_the_socket)
{
    setup();
    struct op *o = op_create(s, 1, (struct listener_slot *)(void *)&slot);
    ck_assert_ptr_nonnull(o);
    s->order.expect = 2;
    ask_by_ring(1);
    reply_answer(&k->f, o, bytes_str("done"));
    ck_assert_uint_eq(replies, 1);
    ask(MSG_KIND_BUFFER_INFO, 3, 0, 8); /* the same for one that waits for its turn */
    ask_by_ring(3);
    ck_assert_uint_eq(s->early.count, 1);
    ck_assert_uint_eq(s->early.bytes, 8);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 0);
    ck_assert_uint_eq(replies, 3);
    ck_assert_uint_eq(s->order.expect, 4);
    ck_assert_uint_eq(k->f.count.deduplicated, 2);
    teardown();
}
END_TEST

/* The usual way: from the ring to the socket. */
START_TEST(the_socket_takes_an_answer_from_a_ring)
{
    setup();
    struct op *o = op_create(s, 1, NULL);
    ck_assert_ptr_nonnull(o);
    o->ring_id = 7;
    s->order.expect = 2;
    ask(MSG_KIND_BUFFER_INFO, 1, 0, 0);
    reply_answer(&k->f, o, bytes_str("done"));
    ck_assert_uint_eq(replies, 1);
    ask_by_ring(3);
    ask(MSG_KIND_BUFFER_INFO, 3, 0, 0);
    ask(MSG_KIND_BUFFER_INFO, 2, 0, 0);
    ck_assert_uint_eq(replies, 3);
    teardown();
}
END_TEST

/* Answers behind one that is awaited are forgotten, and nothing that the client cannot have. */
START_TEST(answers_behind_an_awaited_one_are_forgotten)
{
    const struct proto_span spans[] = {{.first = 1, .count = 3}, {.first = 4, .count = UINT32_MAX}};
    struct capbuf list;
    setup();
    ck_assert_ptr_nonnull(op_create(s, 1, NULL));
    ck_assert(op_answer(op_create(s, 9, NULL), bytes_str("of a worker before its turn")));
    s->order.expect = 2;
    for (uint64_t seq = 2; seq < 6; seq++) {
        ask(MSG_KIND_BUFFER_INFO, seq, 0, 0);
    }
    ck_assert_uint_eq(s->ops.count, 6);
    capbuf_init(&list, 256);
    for (unsigned i = 0; i < 2; i++) {
        ck_assert_int_eq(proto_list_add(&schema_span, &spans[i], &list, NULL), 0);
    }
    struct request *r = __real_calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    *r = (struct request){.peer = {.pipe = PIPE},
                          .kind = MSG_KIND_TAKEN,
                          .slot = (struct listener_slot *)(void *)&slot};
    r->msg.taken.taken = proto_list_of(&list, 2);
    k->f.work.budget = 2; /* it takes three turns, and another answer comes meanwhile */
    unsigned before = replies;
    intake_request(&k->f, r);
    ask(MSG_KIND_BUFFER_INFO, 6, 0, 0);
    unsigned turns = 0;
    for (; k->f.sweeping != NULL; turns++) {
        ck_assert_uint_eq(replies, before + 1);
        k->f.work.done = 0;
        sweep_some(&k->f);
        ck_assert_uint_le(k->f.work.done, 3);
    }
    ck_assert_uint_gt(turns, 2);
    ck_assert_uint_eq(replies, before + 2);
    k->f.work.budget = 0;
    capbuf_finish(&list);
    ck_assert_uint_eq(kind, MSG_KIND_DONE);
    ck_assert_uint_eq(s->ops.count, 3);
    ck_assert_ptr_nonnull(op_find(s, 6));
    ck_assert(op_find(s, 1) != NULL && op_find(s, 9) != NULL);
    ask(MSG_KIND_BUFFER_INFO, 3, 0, 0);
    is_taken(ERR_STATE);
    ck_assert_uint_eq(s->order.expect, 7);
    teardown();
}
END_TEST

/* The units of a turn are for the tries, however many wait. */
START_TEST(all_that_wait_leave_units_for_a_try)
{
    enum { OTHERS = 11 };
    struct session *other[OTHERS];
    setup();
    k->f.config.queue_max = 0;
    submit_from(PIPE, 1);
    for (unsigned i = 0; i < OTHERS; i++) {
        other[i] = greet(PIPE + 1 + i);
        submit_by(PIPE + 1 + i, 1, i % 2 == 0 ? 0 : NS_PER_S * 1000);
    }
    ck_assert_ptr_eq(k->f.parked.first, s);
    k->f.config.queue_max = 64;
    turn_allow(&k->f, OTHERS / 2);
    intake_room(&k->f);
    ck_assert_uint_eq(s->order.expect, 2);
    ck_assert_ptr_ne(k->f.parked.first, s);
    k->f.work.budget = 0;
    for (unsigned i = 0; i < OTHERS; i++) {
        session_end(&k->f, other[i]);
    }
    ck_assert_ptr_null(k->f.parked.deadlines.heap.first);
    teardown();
}
END_TEST

SUITE_MAIN("admitted", the_id_of_an_admitted_job_is_used_up,
           who_fits_beside_those_that_wait_is_taken, who_waits_for_bytes_holds_up_nothing_small,
           all_that_wait_are_tried, who_waits_for_bytes_stays_first,
           who_waits_for_its_own_holds_up_nobody, who_waits_for_room_is_first,
           what_comes_again_waits_no_longer, who_waits_too_long_is_told,
           what_waits_is_bounded_for_all_together, a_job_is_cancelled_whose_answer_was_acknowledged,
           who_finds_no_room_is_tried_once_in_a_turn, what_cannot_wait_here_comes_again,
           who_waits_for_its_turn_is_cancelled, what_cannot_be_cancelled_keeps_its_turn,
           answers_behind_an_awaited_one_are_forgotten, who_waits_for_room_keeps_its_place,
           a_ring_takes_no_answer_from_the_socket, the_socket_takes_an_answer_from_a_ring,
           results_that_are_not_taken_are_bounded, without_memory_the_number_stays_open,
           a_full_channel_is_waited_for, without_acknowledgement_the_number_stays_open,
           what_comes_too_early_may_come_again, who_ends_leaves_no_slot_behind,
           all_that_wait_leave_units_for_a_try, answers_that_are_not_taken_are_bounded,
           messages_of_a_tenant_are_bounded)
