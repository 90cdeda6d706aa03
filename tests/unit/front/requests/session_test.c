/* A session from HELLO to its end. The test is the listener (front_io) and
 * counts what it is asked for. */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "daemon/front/clients/processes.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/devices/adopt.h"
#include "daemon/front/model/early.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/session_events.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/intake.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/requests/sweep.h"
#include "daemon/front/sched/completion.h"
#include "daemon/front/sched/conclude.h"
#include "daemon/front/tenants/forget.h"
#include "proto/codec.h"
#include "tests/unit/common/suite.h"
#include "tests/unit/front/fake_front.h"

static struct fake *k;
static unsigned replies;
static unsigned drops;
static uint32_t closed_pipe;
static struct capbuf last; /* the last reply */

static void on_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    (void)l;
    ck_assert_ptr_nonnull(slot);
    replies++;
    capbuf_reset(&last);
    ck_assert(capbuf_append(&last, message.data, message.size));
}

static void on_drop(struct listener *l, struct listener_slot *slot)
{
    (void)l;
    ck_assert_ptr_nonnull(slot);
    drops++;
}

static void on_close_pipe(struct listener *l, uint32_t pipe)
{
    (void)l;
    closed_pipe = pipe;
}

static struct listener_slot *slot_at(unsigned n)
{
    static char slots[16];
    return (struct listener_slot *)&slots[n];
}

static void setup(void)
{
    k = fake_create();
    k->f.io.reply = on_reply;
    k->f.io.drop = on_drop;
    k->f.io.close_pipe = on_close_pipe;
    k->f.config.session_linger_ms = 1000;
    capbuf_init(&last, PROTO_MESSAGE_MAX);
    replies = drops = 0;
}

static void teardown(void)
{
    while (k->f.sessions != NULL) {
        session_end(&k->f, k->f.sessions);
    }
    ck_assert_uint_eq(k->f.session_count, 0);
    ck_assert_uint_eq(k->tenant->sessions, 0);
    capbuf_finish(&last);
    fake_destroy(k);
}

struct caller {
    uint8_t id;
    uint32_t pipe;
    uint32_t uid; /* 0: the fake's tenant */
    bool root;
    pid_t pid;
    uint64_t resume;
    uint64_t major; /* added to what the daemon speaks */
    size_t missing; /* bytes of the id */
    struct proto_span taken[4];
};

/* Neither root nor the user who runs this. */
static uint32_t stranger(void)
{
    return (uint32_t)geteuid() + 7001;
}

static int try_hello(const struct caller *c, struct msg_welcome *ret_welcome,
                     struct session **ret_session, struct err *e)
{
    uint8_t id[PROTO_CLIENT_ID_BYTES] = {c->id};
    struct capbuf spans;
    struct capbuf out;
    uint64_t count = 0;
    capbuf_init(&spans, 4096);
    capbuf_init(&out, 4096);
    while (count < 4 && c->taken[count].count > 0) {
        ck_assert_int_eq(proto_list_add(&schema_span, &c->taken[count], &spans, NULL), 0);
        count++;
    }
    struct request r = {.peer = {.pipe = c->pipe,
                                 .local = true,
                                 .uid = c->uid > 0 || c->root ? c->uid : 1000,
                                 .pid = c->pid},
                        .kind = MSG_KIND_HELLO};
    r.msg.hello = (struct msg_hello){.major = PROTO_MAJOR + c->major,
                                     .client_id = bytes_of(id, sizeof id - c->missing),
                                     .resume = c->resume,
                                     .name = bytes_str("caller"),
                                     .taken = proto_list_of(&spans, count)};
    int rc = session_hello(&k->f, &r, &out, ret_session, e);
    if (rc == 0) {
        ck_assert_int_eq(proto_decode(&schema_msg_welcome, capbuf_view(&out), ret_welcome, e), 0);
        ret_welcome->build = ret_welcome->tenant = ret_welcome->daemon_id = (struct bytes){0};
    }
    capbuf_finish(&spans);
    capbuf_finish(&out);
    return rc;
}

static struct session *hello(struct caller c, struct msg_welcome *ret_welcome)
{
    struct session *s = NULL;
    struct err e = ERR_INIT;
    struct msg_welcome w;
    int rc = try_hello(&c, ret_welcome != NULL ? ret_welcome : &w, &s, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    return s;
}

static struct request *early(uint64_t seq, struct listener_slot *slot)
{
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->slot = slot;
    r->msg.ping.seq = seq;
    return r;
}

START_TEST(a_session_is_made_once_and_found_again)
{
    struct msg_welcome w;
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, &w);
    ck_assert_uint_eq(w.resumed, 0);
    ck_assert_uint_eq(w.expect, 1);
    ck_assert_uint_eq(w.session, s->id);
    ck_assert_str_eq(s->name, "caller");
    ck_assert_ptr_eq(s->tenant, k->tenant);
    ck_assert_ptr_eq(sessions_find(&k->f, 11), s);
    s->order.expect = 7;
    s->order.fresh = false;
    session_disconnected(&k->f, 11);
    ck_assert_ptr_null(sessions_find(&k->f, 11));
    ck_assert_ptr_eq(hello((struct caller){.id = 1, .pipe = 12, .resume = 3}, &w), s);
    ck_assert_uint_eq(w.resumed, 1);
    ck_assert_uint_eq(w.expect, 7); /* the daemon knows better */
    ck_assert_int_eq(s->state, SESSION_CONNECTED);
    ck_assert_uint_eq(agenda_next_ns(&k->f.session_timers), NS_NEVER);
    ck_assert_ptr_ne(hello((struct caller){.id = 1, .pipe = 13, .uid = 1001}, &w), s);
    ck_assert_uint_eq(k->f.session_count, 2);
}
END_TEST

/* As WELCOME tells, so MODULE_LOAD is taken; others of the tenant may come with another group. */
START_TEST(who_may_load_kernels_is_told)
{
    struct msg_welcome w;
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, &w);
    ck_assert_uint_eq(w.may_load, 0);
    ck_assert(!s->tenant->may_load);
    struct request r = {.msg.module_load = {.source = bytes_str("x")}};
    struct err e = ERR_INIT;
    struct request_context c = {.f = &k->f, .s = s, .r = &r};
    ck_assert_int_eq(request_module_load(&c, &e), ERR_PERMISSION);
    ck_assert_ptr_nonnull(strstr(e.text, "load_group"));
    k->f.rights.loaders.uid[0] = s->key.uid;
    k->f.rights.loaders.count = 1;
    s = hello((struct caller){.id = 2, .pipe = 12}, &w);
    ck_assert_uint_eq(w.may_load, 1);
    ck_assert(s->tenant->may_load);
    k->f.listed = true;
    for (unsigned i = 0; i < FAKE_DEVICES; i++) {
        k->device[i].state = DEVICE_ABSENT; /* the next reason to refuse */
    }
    ck_assert_int_eq(request_module_load(&c, &e), ERR_NO_DEVICE);
}
END_TEST

static void ask_info(struct session *s, uint64_t seq)
{
    struct request *r = early(seq, slot_at(1));
    r->kind = MSG_KIND_BUFFER_INFO;
    r->peer.pipe = s->pipe;
    intake_request(&k->f, r);
}

START_TEST(a_daemon_that_does_not_know_skips_what_was_taken)
{
    struct msg_welcome w;
    struct session *s =
        hello((struct caller){.id = 1, .pipe = 11, .resume = 5, .taken = {{6, 2}, {9, 1}}}, &w);
    ck_assert_uint_eq(w.expect, 5);
    ck_assert_uint_eq(s->order.acked, 4);
    ck_assert(session_acked_before(s, 6) && session_acked_before(s, 7) &&
              session_acked_before(s, 9));
    ck_assert(!session_acked_before(s, 5) && !session_acked_before(s, 8) &&
              !session_acked_before(s, 10));
    (void)hello((struct caller){.id = 2, .pipe = 12, .resume = 5, .taken = {{5, 2}, {8, 1}}}, &w);
    ck_assert_uint_eq(w.expect, 7);
    s = hello((struct caller){.id = 3,
                              .pipe = 13,
                              .resume = 5,
                              .taken = {{0, UINT64_MAX}, {UINT64_MAX - 1, UINT64_MAX}}},
              &w);
    ck_assert_uint_eq(w.expect, 5); /* what nobody can have asked for is not believed */
    ck_assert_uint_eq(s->ops.count, 0);
}
END_TEST

/* However many they are: they cost nothing, neither to learn of nor to go past. */
START_TEST(ranges_of_any_size_are_skipped)
{
    const uint64_t many = UINT64_C(1) << 60;
    struct msg_welcome w;
    struct session *s = hello(
        (struct caller){
            .id = 1, .pipe = 11, .resume = 5, .taken = {{6, many}, {7, 1}, {many + 8, 2}}},
        &w);
    ck_assert_uint_eq(w.expect, 5);
    ck_assert_uint_eq(s->ops.count, 0);
    ck_assert(session_acked_before(s, 6) && session_acked_before(s, many + 5) &&
              session_acked_before(s, many + 9));
    ck_assert(!session_acked_before(s, many + 6) && !session_acked_before(s, many + 10));
    ask_info(s, 5);
    ck_assert_uint_eq(s->order.expect, many + 6);
    ask_info(s, many + 6);
    ask_info(s, many + 7);
    ck_assert_uint_eq(s->order.expect, many + 10);
    ck_assert_ptr_null(s->order.before.ranges);
    ck_assert_uint_eq(s->ops.count, 3);
    sweep_ack(&k->f, s, many + 7);
    sweep_some(&k->f);
    ck_assert_uint_eq(s->ops.count, 0);
}
END_TEST

/* ---- after another front ------------------------------------------------------------------ */

static struct session *left_by(uint8_t id)
{
    struct session_key key;
    memset(&key, 0, sizeof key);
    key.client_id[0] = id;
    key.uid = 1000;
    struct session *s = sessions_obtain(&k->f, &key, tenant_obtain(&k->f.tenants, 1000));
    ck_assert_ptr_nonnull(s);
    return s;
}

static struct job *held(struct session *s, uint64_t id, uint64_t seq, bool async)
{
    struct msg_record_job m = {.client_id = bytes_of(s->key.client_id, sizeof s->key.client_id),
                               .uid = s->key.uid,
                               .seq = seq,
                               .async = async,
                               .limit_ns = NS_PER_S,
                               .tenant = bytes_str(s->tenant->name)};
    struct capbuf out;
    struct err e = ERR_INIT;
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_encode(&schema_msg_record_job, &m, &out, &e), 0);
    fake_given(k, 0, RECORD_JOB, id, capbuf_view(&out));
    struct msg_w_inventory_job h = {.job = id};
    (void)adopt_job(&k->f, &k->device[0], &h, &e);
    capbuf_finish(&out);
    return fake_find(k, id);
}

START_TEST(a_job_is_taken_over_once_and_in_its_time)
{
    struct session *s = left_by(1);
    ck_assert_ptr_null(held(s, 1, 6, false)); /* the device serves: it is too late */
    k->device[0].state = DEVICE_ADOPTING;
    k->device[0].killed_ns = 1;
    ck_assert_ptr_null(held(s, 1, 6, false));
    k->device[0].killed_ns = 0;
    struct job *first = held(s, 1, 6, false);
    struct job *second = held(s, 2, 6, false);
    struct job *third = held(s, 3, 6, true);
    ck_assert_ptr_eq(first->op, op_find(s, 6));
    ck_assert_ptr_null(second->op);
    ck_assert_ptr_null(second->session);
    ck_assert_ptr_null(third->session);
    ck_assert_uint_eq(op_find(s, 6)->job, 1);
    ck_assert_uint_eq(s->jobs, 1);
    fake_done(k, third, 0);
    fake_done(k, second, 0);
    fake_done(k, first, 0);
    ck_assert_uint_eq(s->jobs, 0);
}
END_TEST

/* The worker tells that it did not begin; who asked for that knew the front before.
 * _i: what it may have done. */
START_TEST(a_job_that_was_cancelled_before_is_cancelled)
{
    struct session *s = left_by(1);
    k->device[0].state = DEVICE_ADOPTING;
    struct job *j = held(s, 1, 6, false);
    struct msg_w_done m = {.job = 1, .code = ERR_CANCELLED, .step = -1, .arg = -1};
    m.effects = _i == 0 ? ERR_EFFECTS_NONE : ERR_EFFECTS_MAYBE;
    completion_done(&k->f, j->device, &m);
    ck_assert_int_eq(k->state[1], _i == 0 ? JOB_CANCELLED : JOB_FAILED);
    ck_assert_int_eq(k->error[1].code, ERR_CANCELLED);
}
END_TEST

/* _i 0: `taken` names it; 1: it lies below `resume`. */
START_TEST(a_job_whose_answer_was_taken_has_nobody_to_answer)
{
    struct session *s = left_by(1);
    k->device[0].state = DEVICE_ADOPTING;
    struct job *j = held(s, 1, 6, false);
    struct caller c = {.id = 1, .pipe = 11, .resume = 6, .taken = {{6, 1}}};
    c.resume += (uint64_t)_i;
    ck_assert_ptr_eq(hello(c, NULL), s);
    ck_assert_uint_eq(s->order.expect, 7);
    ck_assert_ptr_null(j->op);
    ck_assert_uint_eq(s->jobs, 0);
    sweep_ack(&k->f, s, 6);
    fake_done(k, j, 0);
    ck_assert_uint_eq(k->ends[1], 1);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_RETIRE], 1);
}
END_TEST

START_TEST(answers_below_the_first_open_number_are_not_kept)
{
    struct session *s = left_by(1);
    for (uint64_t seq = 1; seq <= 3; seq++) {
        ck_assert(op_answer(op_create(s, seq, NULL), bytes_str("an answer")));
    }
    (void)hello((struct caller){.id = 1, .pipe = 11, .resume = 3}, NULL);
    ck_assert_uint_eq(s->ops.count, 1);
    ck_assert_uint_eq(s->ops.kept_bytes, 9);
    ck_assert_ptr_nonnull(op_find(s, 3));
}
END_TEST

START_TEST(an_answer_that_an_ack_passed_is_not_kept)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct op *o = op_create(s, 1, slot_at(1));
    s->order.expect = 3;
    sweep_ack(&k->f, s, 1);
    reply_answer(&k->f, o, bytes_str("late"));
    ck_assert_uint_eq(replies, 1);
    ck_assert_uint_eq(s->ops.count, 0);
    ck_assert_uint_eq(s->ops.kept_bytes, 0);
}
END_TEST

START_TEST(what_was_taken_is_not_waited_for_again)
{
    struct session *s =
        hello((struct caller){.id = 1, .pipe = 11, .resume = 5, .taken = {{6, 1}}}, NULL);
    ask_info(s, 6);
    struct msg_error m;
    ck_assert_uint_eq(replies, 1);
    ck_assert_int_eq(proto_decode(&schema_msg_error, capbuf_view(&last), &m, NULL), 0);
    ck_assert_int_eq((int)m.code, ERR_STATE);
    ck_assert_ptr_null(op_find(s, 6));
}
END_TEST

/* The first HELLO's answer did not come, and meanwhile more was given up. */
START_TEST(hello_may_be_said_again_until_something_was_asked)
{
    struct msg_welcome w;
    (void)hello((struct caller){.id = 1, .pipe = 11, .resume = 5, .taken = {{6, 1}}}, &w);
    (void)hello((struct caller){.id = 1, .pipe = 12, .resume = 5, .taken = {{5, 3}}}, &w);
    ck_assert_uint_eq(w.resumed, 1);
    ck_assert_uint_eq(w.expect, 8);
}
END_TEST

START_TEST(an_ended_session_drops_what_it_restored)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct module *m = calloc(1, sizeof *m);
    module_own(m, s);
    m->id = idmap_add(&k->f.modules, m);
    m->pending = op_create_unnumbered(s, slot_at(1));
    session_end(&k->f, s);
    ck_assert_uint_eq(drops, 1);
}
END_TEST

START_TEST(hello_is_checked)
{
    struct session *s = NULL;
    struct msg_welcome w;
    struct err e = ERR_INIT;
    ck_assert_int_eq(try_hello(&(struct caller){.id = 1, .pipe = 1, .major = 1}, &w, &s, &e),
                     ERR_VERSION);
    ck_assert_int_eq(try_hello(&(struct caller){.id = 1, .pipe = 1, .missing = 1}, &w, &s, &e),
                     ERR_PROTOCOL);
    k->f.config.sessions_max = 1;
    uint32_t uid = stranger();
    (void)hello((struct caller){.id = 1, .pipe = 1, .uid = uid}, &w);
    ck_assert_int_eq(try_hello(&(struct caller){.id = 2, .pipe = 2, .uid = uid}, &w, &s, &e),
                     ERR_BUSY);
    ck_assert_uint_gt(e.retry_after_ns, 0);
    ck_assert_ptr_null(s);
    session_disconnected(&k->f, 1);
    (void)hello((struct caller){.id = 1, .pipe = 3, .uid = uid}, &w); /* it may come back */
    ck_assert_uint_eq(w.resumed, 1);
}
END_TEST

/* Three quarters are the most for one user, unless the settings say otherwise. */
START_TEST(a_user_leaves_room_for_others)
{
    struct session *s = NULL;
    struct msg_welcome w;
    struct err e = ERR_INIT;
    const uint32_t uid = stranger();
    const struct caller fourth = {.id = 4, .pipe = 4, .uid = uid};
    const struct caller fifth = {.id = 5, .pipe = 5, .uid = uid};
    k->f.config.sessions_max = 4;
    for (uint32_t i = 1; i <= 3; i++) {
        (void)hello((struct caller){.id = (uint8_t)i, .pipe = i, .uid = uid}, &w);
    }
    ck_assert_int_eq(try_hello(&fourth, &w, &s, &e), ERR_BUSY);
    ck_assert_ptr_nonnull(strstr(e.text, "user_sessions_max"));
    ck_assert_uint_gt(e.retry_after_ns, 0);
    (void)hello((struct caller){.id = 4, .pipe = 4, .uid = uid + 1}, &w);
    k->f.config.sessions_max = 8;
    k->f.config.user_sessions_max = 3;
    ck_assert_int_eq(try_hello(&fifth, &w, &s, &e), ERR_BUSY);
    k->f.config.user_sessions_max = 4;
    (void)hello(fifth, &w);
}
END_TEST

/* Some places are for who looks after the daemon; _i: root, an administrator. */
START_TEST(administrators_find_a_place_when_all_are_taken)
{
    struct session *s = NULL;
    struct msg_welcome w;
    struct err e = ERR_INIT;
    const uint32_t uid = stranger();
    struct caller c = {.root = _i == 0, .uid = _i == 0 ? 0 : uid + 1};
    k->f.rights.admins.uid[0] = uid + 1;
    k->f.rights.admins.count = 1;
    k->f.config.sessions_max = 1;
    (void)hello((struct caller){.id = 1, .pipe = 1, .uid = uid}, &w);
    ck_assert_int_eq(try_hello(&(struct caller){.id = 2, .pipe = 2, .uid = uid}, &w, &s, &e),
                     ERR_BUSY);
    for (uint32_t i = 0; i < KEEPERS_RESERVE; i++) {
        c.id = (uint8_t)(i + 3);
        c.pipe = i + 3;
        (void)hello(c, &w);
    }
    c.id++;
    c.pipe++;
    ck_assert_int_eq(try_hello(&c, &w, &s, &e), ERR_BUSY);
}
END_TEST

/* Requests find their session by the connection, whichever comes and goes. */
START_TEST(sessions_are_found_by_their_connection)
{
    struct session *a = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct session *b = hello((struct caller){.id = 2, .pipe = 12}, NULL);
    ck_assert_ptr_eq(sessions_find(&k->f, 11), a);
    ck_assert_ptr_eq(sessions_find(&k->f, 12), b);
    ck_assert_ptr_null(sessions_find(&k->f, 13));
    session_disconnected(&k->f, 11);
    ck_assert_ptr_null(sessions_find(&k->f, 11));
    ck_assert_ptr_eq(hello((struct caller){.id = 1, .pipe = 13}, NULL), a);
    ck_assert_ptr_eq(sessions_find(&k->f, 13), a);
    ck_assert_ptr_eq(hello((struct caller){.id = 1, .pipe = 14}, NULL), a); /* before 13's end */
    ck_assert_ptr_null(sessions_find(&k->f, 13));
    ck_assert_ptr_eq(sessions_find(&k->f, 14), a);
    session_end(&k->f, b);
    ck_assert_ptr_null(sessions_find(&k->f, 12));
}
END_TEST

/* What the broken connection left unanswered is dropped: the client sends it again.
 * _i 0: the end of the old connection is told first; 1: the client is back before it. */
START_TEST(a_broken_connection_leaves_nothing_in_the_way)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct err e = ERR_INIT;
    struct request *older = NULL;
    ck_assert_int_eq(early_put(s, early(3, slot_at(1)), 3, 8, &older, &e), 0);
    struct op *o = op_create(s, 1, slot_at(2));
    s->order.expect = 2;
    s->events.wait = slot_at(3);
    if (_i == 0) {
        session_disconnected(&k->f, 11);
        session_disconnected(&k->f, 11);
        ck_assert_uint_eq(drops, 3);
        ck_assert_int_eq(s->state, SESSION_LINGERING);
        ck_assert_uint_ne(s->lingers_until_ns, NS_NEVER);
    }
    ck_assert_ptr_eq(hello((struct caller){.id = 1, .pipe = 12}, NULL), s);
    session_disconnected(&k->f, 11); /* late, and about nothing */
    ck_assert_uint_eq(s->pipe, 12);
    ck_assert_uint_eq(drops, 3);
    ck_assert_ptr_null(o->slot);
    ck_assert_ptr_null(s->events.wait);
    struct request *again = early(3, slot_at(4));
    int rc = early_put(s, again, 3, 8, &older, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
}
END_TEST

START_TEST(a_connection_with_a_new_client_leaves_the_old_session)
{
    struct session *first = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct session *second = hello((struct caller){.id = 2, .pipe = 11}, NULL);
    ck_assert_ptr_ne(first, second);
    ck_assert_uint_eq(first->pipe, 0);
    ck_assert_ptr_eq(sessions_find(&k->f, 11), second);
}
END_TEST

START_TEST(a_session_lingers_for_its_time)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    sessions_watch(&k->f, UINT64_MAX - 1); /* connected: as long as it likes */
    ck_assert_uint_eq(k->f.session_count, 1);
    session_disconnected(&k->f, 11);
    uint64_t until = s->lingers_until_ns;
    sessions_watch(&k->f, until - 1);
    ck_assert_uint_eq(k->f.session_count, 1);
    sessions_watch(&k->f, until);
    ck_assert_uint_eq(k->f.session_count, 0);
}
END_TEST

START_TEST(an_ended_process_does_not_linger)
{
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    (void)hello((struct caller){.id = 1, .pipe = 11, .pid = pid}, NULL);
    session_disconnected(&k->f, 11);
    sessions_watch(&k->f, fake_now());
    ck_assert_uint_eq(k->f.session_count, 1);
    (void)hello((struct caller){.id = 1, .pipe = 12, .pid = pid}, NULL);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
    session_disconnected(&k->f, 12);
    sessions_watch(&k->f, 0);
    ck_assert_uint_eq(k->f.session_count, 0);
}
END_TEST

static void on_ended(void *data, void *who)
{
    session_process_ended(data, who);
}

/* A child that it forked may hold its connection still. */
START_TEST(an_ended_process_leaves_its_connection_to_nobody)
{
    uv_loop_t loop;
    struct err e = ERR_INIT;
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(processes_create(&loop, on_ended, &k->f, &k->f.processes, &e), 0);
    pid_t pid = fork();
    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        (void)pause();
        _exit(0);
    }
    struct session *s = hello((struct caller){.id = 1, .pipe = 11, .pid = pid}, NULL);
    (void)hello((struct caller){.id = 2, .pipe = 12, .pid = pid}, NULL);
    (void)hello((struct caller){.id = 3, .pipe = 13, .pid = getpid()}, NULL);
    (void)hello((struct caller){.id = 1, .pipe = 14, .pid = pid}, NULL); /* it came back */
    ck_assert_uint_eq(s->pipe, 14);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(k->f.session_count, 3);
    ck_assert_int_eq(kill(pid, SIGKILL), 0);
    siginfo_t info;
    ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED), 0);
    (void)uv_run(&loop, UV_RUN_NOWAIT);
    ck_assert_uint_eq(k->f.session_count, 1);
    ck_assert_ptr_nonnull(sessions_find(&k->f, 13));
    ck_assert(closed_pipe == 12 || closed_pipe == 14);
    session_end(&k->f, k->f.sessions);
    processes_destroy(k->f.processes);
    k->f.processes = NULL;
    (void)uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
}
END_TEST

/* ---- the end ------------------------------------------------------------------------------ */

static struct buffer *buffer_of(struct session *s)
{
    struct buffer *b = fake_buffer(k, 0, 64, true);
    buffer_own(b, s);
    s->buffers++;
    k->device[0].buffer_bytes += b->bytes;
    k->tenant->buffer_bytes += b->bytes;
    return b;
}

static uint64_t submit_for(struct session *s, struct buffer *b)
{
    struct job *j = fake_job(k, 0);
    j->session = s;
    fake_reads(j, b, 0, b->bytes);
    return fake_submit(k, j);
}

START_TEST(an_ended_session_leaves_nothing_but_what_runs)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct buffer *b = buffer_of(s);
    uint64_t handle = b->handle;
    struct program *p = NULL;
    struct proto_list none = {.count = 0};
    ck_assert_int_eq(program_create(none, none, none, &p, NULL), 0);
    program_own(p, s);
    p->handle = idmap_add(&k->f.programs, p);
    struct module *m = calloc(1, sizeof *m);
    module_own(m, s);
    m->id = idmap_add(&k->f.modules, m);
    k->f.config.window = 1;
    uint64_t runs = submit_for(s, b);
    uint64_t waits = submit_for(s, b);
    fake_turn(k);
    session_end(&k->f, s);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_CANCEL],
                      1); /* what has not begun of the one that runs does not */
    ck_assert(fake_find(k, runs)->cancelled);
    ck_assert_uint_eq(drops, 0);
    ck_assert_uint_eq(k->f.programs.live, 0);
    ck_assert_uint_eq(k->f.modules.live, 0);
    ck_assert_int_eq(buffer_find(&k->f.buffers, handle, k->tenant, &b, NULL), ERR_STALE_HANDLE);
    ck_assert_int_eq(k->state[waits], JOB_CANCELLED);
    ck_assert_int_eq(k->error[waits].code, ERR_CANCELLED);
    ck_assert_uint_eq(k->ends[runs], 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 0); /* it is being read */
    fake_turn(k);
    fake_done(k, fake_find(k, runs), 0);
    ck_assert_uint_eq(k->ends[runs], 1);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    ck_assert_ptr_null(idmap_get(&k->f.buffers, handle));
    ck_assert_uint_eq(k->tenant->buffer_bytes, 0);
    ck_assert_uint_eq(k->device[0].buffer_bytes, 0);
}
END_TEST

/* _i 0: the session ends; 1: it is killed. */
START_TEST(detached_jobs_outlive_their_session_unless_it_is_killed)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct buffer *b = buffer_of(s);
    uint64_t id[2];
    k->f.config.window = 1;
    for (unsigned i = 0; i < 2; i++) {
        id[i] = submit_for(s, b);
        fake_find(k, id[i])->detached = true;
        k->tenant->detached++;
    }
    fake_find(k, id[1])->seq = 5;
    fake_turn(k);
    (_i == 0 ? session_end : session_kill)(&k->f, s);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_CANCEL], (unsigned)_i);
    ck_assert_uint_eq(k->f.session_count, 0);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 0);
    fake_done(k, fake_find(k, id[0]), 0);
    fake_turn(k);
    if (_i == 0) {
        struct job *second = fake_find(k, id[1]);
        ck_assert_int_eq(second->state, JOB_DISPATCHED);
        ck_assert_ptr_null(second->session);
        ck_assert_uint_eq(second->seq, 0); /* no later front takes it for an answer to somebody */
        ck_assert_uint_eq(k->tenant->detached, 1);
        fake_done(k, second, 0);
    } else {
        ck_assert_int_eq(k->state[id[1]], JOB_CANCELLED);
        ck_assert_uint_eq(closed_pipe, 11);
    }
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    ck_assert_uint_eq(k->tenant->detached, 0);
}
END_TEST

/* Of one that came with its worker nobody knows whether it was to outlive its session. */
START_TEST(an_adopted_job_is_called_back_when_its_session_is_killed)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct job *j = fake_find(k, submit_for(s, buffer_of(s)));
    fake_turn(k);
    j->origin = ORIGIN_ADOPTED;
    (_i == 0 ? session_end : session_kill)(&k->f, s);
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_CANCEL], (unsigned)_i);
    fake_done(k, j, 0);
}
END_TEST

START_TEST(a_published_buffer_outlives_its_maker)
{
    struct session *maker = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    struct session *reader = hello((struct caller){.id = 2, .pipe = 12}, NULL);
    struct buffer *b = buffer_of(maker);
    struct buffer *lonely = buffer_of(maker);
    uint64_t handle = b->handle;
    buffer_rename(b, "shared");
    buffer_rename(lonely, "lonely"); /* nobody holds it, and it has no time to linger */
    b->linger_ns = NS_PER_S;
    ck_assert(buffer_opener_add(b, reader, 7));
    session_end(&k->f, maker);
    ck_assert(fake_recorded(k, b).left); /* for the next front: it goes on alone */
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 1);
    ck_assert_ptr_eq(idmap_get(&k->f.buffers, handle), b);
    sessions_watch(&k->f, UINT64_MAX - 1); /* held */
    ck_assert_ptr_eq(idmap_get(&k->f.buffers, handle), b);
    session_end(&k->f, reader);
    uint64_t until = b->linger_until_ns;
    ck_assert_uint_ne(until, NS_NEVER);
    sessions_watch(&k->f, until - 1);
    ck_assert_ptr_eq(idmap_get(&k->f.buffers, handle), b);
    sessions_watch(&k->f, until);
    ck_assert_ptr_null(idmap_get(&k->f.buffers, handle));
    ck_assert_uint_eq(k->frames[FRAME_KIND_F_BUFFER_FREE], 2);
}
END_TEST

/* ---- WAIT --------------------------------------------------------------------------------- */

static void wait_for(struct session *s, unsigned slot, uint64_t timeout_ns, uint64_t taken)
{
    struct request *r = calloc(1, sizeof *r);
    ck_assert_ptr_nonnull(r);
    r->slot = slot_at(slot);
    r->msg.wait = (struct msg_wait){.timeout_ns = timeout_ns, .taken = taken};
    session_wait(&k->f, s, r);
}

static void expect_events(uint64_t number, uint64_t results, uint64_t notices)
{
    struct msg_events m;
    struct err e = ERR_INIT;
    int rc = proto_decode(&schema_msg_events, capbuf_view(&last), &m, &e);
    ck_assert_msg(rc == 0, "%s", e.text);
    ck_assert_uint_eq(m.number, number);
    ck_assert_uint_eq(m.results.count, results);
    ck_assert_uint_eq(m.notices.count, notices);
}

static void add_result(struct session *s)
{
    struct capbuf out;
    struct proto_result r = {.job = 4, .step = -1, .arg = -1};
    capbuf_init(&out, 4096);
    ck_assert_int_eq(proto_list_add(&schema_result, &r, &out, NULL), 0);
    ck_assert(session_result(s, 4, capbuf_view(&out)));
    capbuf_finish(&out);
}

START_TEST(events_are_told_until_they_are_taken)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    wait_for(s, 1, NS_PER_S, 0);
    ck_assert_uint_eq(replies, 0);
    ck_assert(session_notice(s, 1, NOTICE_BUFFER_LOST, 9));
    add_result(s);
    session_send_events(&k->f, s, fake_now());
    ck_assert_uint_eq(replies, 1);
    expect_events(1, 1, 1);
    add_result(s);
    wait_for(s, 2, NS_PER_S, 0); /* it did not come: the same again */
    ck_assert_uint_eq(replies, 2);
    expect_events(1, 1, 1);
    wait_for(s, 3, NS_PER_S, 1);
    ck_assert_uint_eq(replies, 3);
    expect_events(2, 1, 0);
    wait_for(s, 4, NS_PER_S, 2);
    ck_assert_uint_eq(replies, 3); /* nothing more */
    wait_for(s, 5, NS_PER_S, 2);   /* one is held */
    ck_assert_uint_eq(drops, 1);
    sessions_watch(&k->f, s->events.wait_until_ns - 1);
    ck_assert_uint_eq(replies, 3);
    sessions_watch(&k->f, s->events.wait_until_ns);
    ck_assert_uint_eq(replies, 4);
    expect_events(3, 0, 0);
    ck_assert_ptr_null(s->events.wait);
}
END_TEST

START_TEST(many_events_come_in_portions)
{
    struct session *s = hello((struct caller){.id = 1, .pipe = 11}, NULL);
    for (unsigned i = 0; i <= PROTO_EVENTS_MAX; i++) {
        add_result(s);
    }
    wait_for(s, 1, 0, 0);
    expect_events(1, PROTO_EVENTS_MAX, 0);
    wait_for(s, 1, 0, 1);
    expect_events(2, 1, 0);
}
END_TEST

/* It is not memory that is out: another one has to go, and that may be soon. */
START_TEST(without_room_for_a_tenant_its_client_is_to_come_again)
{
    struct err e = ERR_INIT;
    struct msg_welcome w;
    struct session *s = NULL;
    const struct caller c = {.id = 1, .pipe = 11, .uid = 9999999};
    for (uint32_t i = 0; HASH_COUNT(k->f.tenants) < TENANTS_MAX; i++) {
        struct tenant *t = tenant_obtain(&k->f.tenants, 1000000 + i);
        ck_assert_ptr_nonnull(t);
        t->sessions++;
    }
    k->tenant->sessions++;
    ck_assert_int_eq(try_hello(&c, &w, &s, &e), ERR_BUSY);
    ck_assert_uint_gt(e.retry_after_ns, 0);
    ck_assert_msg(strstr(e.text, "4096 tenants") != NULL && strstr(e.text, "uid:9999999") != NULL,
                  "%s", e.text);
    ck_assert_int_eq(try_hello(&c, &w, &s, NULL), ERR_BUSY);
    k->tenant->sessions--;
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_session_is_made_once_and_found_again,
                                  a_daemon_that_does_not_know_skips_what_was_taken,
                                  ranges_of_any_size_are_skipped,
                                  hello_is_checked,
                                  a_user_leaves_room_for_others,
                                  sessions_are_found_by_their_connection,
                                  a_connection_with_a_new_client_leaves_the_old_session,
                                  a_session_lingers_for_its_time,
                                  an_ended_process_does_not_linger,
                                  an_ended_process_leaves_its_connection_to_nobody,
                                  an_ended_session_leaves_nothing_but_what_runs,
                                  a_published_buffer_outlives_its_maker,
                                  events_are_told_until_they_are_taken,
                                  many_events_come_in_portions,
                                  who_may_load_kernels_is_told,
                                  a_job_is_taken_over_once_and_in_its_time,
                                  answers_below_the_first_open_number_are_not_kept,
                                  an_answer_that_an_ack_passed_is_not_kept,
                                  what_was_taken_is_not_waited_for_again,
                                  hello_may_be_said_again_until_something_was_asked,
                                  an_ended_session_drops_what_it_restored,
                                  without_room_for_a_tenant_its_client_is_to_come_again};
    Suite *suite = suite_create("session");
    TCase *tcase = tcase_create("session");
    tcase_set_timeout(tcase, 60);
    tcase_add_checked_fixture(tcase, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
        tcase_add_test(tcase, tests[i]);
    }
    tcase_add_loop_test(tcase, a_broken_connection_leaves_nothing_in_the_way, 0, 2);
    tcase_add_loop_test(tcase, a_job_that_was_cancelled_before_is_cancelled, 0, 2);
    tcase_add_loop_test(tcase, administrators_find_a_place_when_all_are_taken, 0, 2);
    tcase_add_loop_test(tcase, detached_jobs_outlive_their_session_unless_it_is_killed, 0, 2);
    tcase_add_loop_test(tcase, an_adopted_job_is_called_back_when_its_session_is_killed, 0, 2);
    tcase_add_loop_test(tcase, a_job_whose_answer_was_taken_has_nobody_to_answer, 0, 2);
    suite_add_tcase(suite, tcase);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
