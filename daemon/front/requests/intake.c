#include "daemon/front/requests/intake.h"

#include <utlist.h>

#include "common/clock.h"
#include "daemon/front/clients/reply.h"
#include "daemon/front/model/domain.h"
#include "daemon/front/model/early.h"
#include "daemon/front/model/op.h"
#include "daemon/front/model/parking.h"
#include "daemon/front/model/sessions.h"
#include "daemon/front/model/wake.h"
#include "daemon/front/requests/events.h"
#include "daemon/front/requests/hello.h"
#include "daemon/front/requests/requests.h"
#include "daemon/front/requests/session_end.h"
#include "daemon/front/requests/sweep.h"
#include "daemon/front/sched/admission.h"
#include "daemon/front/sched/charge.h"
#include "daemon/front/views/snapshot.h"
#include "daemon/front/views/table_query.h"
#include "proto/codec.h"

#define RETRY_NS      (5 * NS_PER_MS) /* until a refused request may come again */
#define KEPT_RETRY_NS (20 * NS_PER_MS)
#define PARKED_NS     (200 * NS_PER_MS) /* between tries, besides those after a job left */
#define PARKED_TRIES  4u                /* failed tries in a turn */
#define ANSWER_ROOM   512u              /* bytes; most answers are shorter */

struct route {
    request_fn handler;
    bool sequenced;
    bool restores; /* may come without a number when a client restores its resources */
    bool anybody;  /* also admitted before HELLO */
    bool relieves; /* releases resources: admitted however many bytes are kept */
};

void intake_acked(struct front *f, struct op *o)
{
    if (o->seq >=
        o->session->order
            .expect) { /* answered before its turn: the op stays until `expect` passes its number */
        op_leave_ring(o);
        return;
    }
    sweep_op(f, o);
}

static int request_taken(struct request_context *c, struct err *e)
{
    int rc = sweep_taken(c->f, c->s, c->r, e);
    c->r = rc == 0 ? NULL : c->r;
    return rc;
}

static int request_cancel_any(struct request_context *c, struct err *e);

static const struct route routes[] = {
    [MSG_KIND_PING] = {request_ping, .anybody = true},
    [MSG_KIND_BUFFER_CREATE] = {request_buffer_create, .sequenced = true},
    [MSG_KIND_BUFFER_FREE] = {request_buffer_free, .sequenced = true, .relieves = true},
    [MSG_KIND_BUFFER_INFO] = {request_buffer_info, .sequenced = true, .restores = true},
    [MSG_KIND_BUFFER_SEAL] = {request_buffer_seal, .sequenced = true},
    [MSG_KIND_BUFFER_PUBLISH] = {request_buffer_publish, .sequenced = true},
    [MSG_KIND_BUFFER_OPEN] = {request_buffer_open, .sequenced = true},
    [MSG_KIND_BUFFER_EXPORT] = {request_buffer_export, .sequenced = true},
    [MSG_KIND_ARENA_CREATE] = {request_arena_create, .sequenced = true, .restores = true},
    [MSG_KIND_ARENA_FREE] = {request_arena_free, .sequenced = true, .relieves = true},
    [MSG_KIND_MODULE_LOAD] = {request_module_load, .sequenced = true, .restores = true},
    [MSG_KIND_MODULE_UNLOAD] = {request_module_unload, .sequenced = true, .relieves = true},
    [MSG_KIND_KERNEL_FIND] = {request_kernel_find, .sequenced = true, .restores = true},
    [MSG_KIND_PROGRAM_CREATE] = {request_program_create, .sequenced = true, .restores = true},
    [MSG_KIND_PROGRAM_FREE] = {request_program_free, .sequenced = true, .relieves = true},
    [MSG_KIND_SUBMIT] = {request_submit, .sequenced = true},
    [MSG_KIND_JOB_FIND] = {request_job_find},
    [MSG_KIND_TAKEN] = {request_taken},
    [MSG_KIND_RING_OPEN] = {request_ring_open},
    [MSG_KIND_CANCEL] = {request_cancel_any},
    [MSG_KIND_JOB_INFO] = {request_job_info},
    [MSG_KIND_EXPLAIN] = {request_explain},
    [MSG_KIND_QUERY] = {request_query, .anybody = true},
    [MSG_KIND_CONTROL] = {request_control},
    [MSG_KIND_POOL_READ] = {request_pool_read},
};

static const struct route *route_of(unsigned kind)
{
    bool known = kind < sizeof routes / sizeof routes[0] && routes[kind].handler != NULL;
    return known ? &routes[kind] : NULL;
}

/* Refuses requests of a session that keeps too many answers, until its client acknowledges some. */
static int check_kept(struct front *f, struct session *s, unsigned kind, struct err *e)
{
    uint64_t kept = s->ops.kept_bytes + s->events.result_bytes;
    if (s->ops.count >= OPS_MAX || kept > f->config.keep_results_bytes) {
        sweep_for_room(f, s);
        kept = s->ops.kept_bytes + s->events.result_bytes;
    }
    if (s->ops.count >= OPS_MAX) {
        (void)err_set(e, ERR_BUSY, "this session has %u unacknowledged answers", s->ops.count);
        e->retry_after_ns = RETRY_NS;
        return e->code;
    }
    if (route_of(kind)->relieves ||
        (kept <= f->config.keep_results_bytes &&
         tenant_check_messages(s->tenant, 0, f->config.tenant_message_bytes, e) == 0)) {
        return 0;
    }
    if (kept > f->config.keep_results_bytes) {
        (void)err_set(e, ERR_BUSY,
                      "this session has %llu bytes of unacknowledged answers (keep_results_bytes)",
                      (unsigned long long)kept);
    }
    e->retry_after_ns = KEPT_RETRY_NS;
    f->count.refused += kind == MSG_KIND_SUBMIT;
    return e->code;
}

/* Whether a failed SUBMIT waits for room. It keeps its number, and so its place before later
 * requests. */
static bool keeps_place(const struct request *r, const struct err *e)
{
    return r != NULL && r->kind == MSG_KIND_SUBMIT && e->code == ERR_BUSY &&
           (r->msg.submit.flags & SUBMIT_BLOCK) != 0;
}

static uint64_t deadline_of(struct front *f, const struct session *s, const struct request *r)
{
    const struct msg_submit *m = &r->msg.submit;
    return m->deadline_ns > 0 ? ns_add(session_first_try_ns(s, m->seq, turn_now(f)), m->deadline_ns)
                              : NS_NEVER;
}

/* Parks the request, as if it had not had its turn: it is tried again when there may be room. A
 * request that cannot be kept is refused, and its client sends it again. */
static void leave_open(struct front *f, struct op *o, struct request *r, struct err *e)
{
    struct session *s = o->session;
    struct request *other = NULL;
    uint64_t seq = o->seq;
    bool again = parking_in_turn(&f->parked, s, seq);
    /* the first try counts, even if the client has to send the request again */
    s->parked.since_ns = session_first_try_ns(s, seq, turn_now(f));
    s->parked.seq = seq;
    s->order.expect = seq;
    op_destroy(o);
    if (f->parked.bytes + r->size > f->config.staging_input_bytes ||
        early_put(s, r, seq, REORDER_MAX + 1, &other, NULL) != 0) {
        e->retry_after_ns = e->retry_after_ns > 0 ? e->retry_after_ns : RETRY_NS;
        reply_open(f, r, e);
        return;
    }
    parking_add(&f->parked, s, r->size, deadline_of(f, s, r), again);
    wake_at(f, ns_add(front_now(f), PARKED_NS));
}

/* Runs the handler of a request that has an op; takes the request. */
static void handle_with_op(struct front *f, struct session *s, struct op *o, struct request *r)
{
    uint8_t room[ANSWER_ROOM];
    struct capbuf out;
    struct err e;
    struct err why = ERR_INIT;
    err_init(&e);
    capbuf_init_in(&out, PROTO_MESSAGE_MAX, room, sizeof room);
    struct request_context c = {.f = f, .s = s, .o = o, .r = r, .out = &out};
    s->requests++;
    uint64_t refused = f->count.refused;
    int rc = route_of(r->kind)->handler(&c, &e);
    bool waits = rc != 0 && keeps_place(c.r, &e);
    if (waits && turn_now(f) >= deadline_of(f, s, c.r)) {
        (void)err_set(&why, ERR_DEADLINE, "its deadline passed while it waited for room: %s",
                      e.text);
        charge_refused(f, s->tenant, why.code);
        reply_answer_error(f, o, &why, (struct bytes){0});
    } else if (waits) {
        leave_open(f, o, c.r, &e);
        c.r = NULL;
        /* a parked request counts neither as refused nor as admitted */
        f->count.refused = s->parked.waits ? refused : f->count.refused;
        s->requests -= s->parked.waits;
    } else if (rc != 0) {
        if (r->kind == MSG_KIND_SUBMIT) {
            charge_refused(f, s->tenant, e.code);
        }
        reply_answer_error(f, o, &e, (struct bytes){0});
    } else if (out.size > 0) {
        reply_answer(f, o, capbuf_view(&out));
    }
    capbuf_finish(&out);
    request_destroy(c.r);
}

/* Runs the handler of a request without an op. It is answered at once, or by the handler that keeps
 * it. */
static void handle_plain(struct front *f, struct session *s, struct request *r)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    capbuf_init(&out, PROTO_MESSAGE_MAX);
    struct request_context c = {.f = f, .s = s, .r = r, .out = &out};
    int rc = route_of(r->kind)->handler(&c, &e);
    if (rc == 0 && c.r != NULL) {
        f->io.reply(f->listener, r->slot, capbuf_view(&out));
        request_destroy(r);
    } else if (rc != 0) {
        reply_error(f, r, &e);
    }
    capbuf_finish(&out);
}

/* Jobs can wait in the front. All other requests may send frames to any worker at once, so they are
 * refused while a channel is full. A tenant that is apart uses its own channels. */
static int check_pressed(struct front *f, const struct session *s, unsigned kind, struct err *e)
{
    for (unsigned i = 0; kind != MSG_KIND_SUBMIT && i < f->device_count; i++) {
        const struct device *d = domain_of(s->tenant, f->device[i]);
        if (d != NULL && front_pressed(f, d->index)) {
            (void)err_set(e, ERR_BUSY, "the worker of device %u is behind with requests: try again",
                          i);
            e->retry_after_ns = PRESSED_NS;
            return e->code;
        }
    }
    return 0;
}

static void admit(struct front *f, struct session *s, struct request *r)
{
    uint64_t seq = r->msg.ping.seq;
    struct err e;
    err_init(&e);
    if (check_kept(f, s, r->kind, &e) != 0 || check_pressed(f, s, r->kind, &e) != 0) {
        reply_open(f, r, &e);
        return;
    }
    struct op *o = op_create(s, seq, r->slot);
    if (o == NULL) {
        (void)err_set(&e, ERR_NOMEM, "no memory for a request");
        e.retry_after_ns = RETRY_NS;
        reply_open(f, r, &e);
        return;
    }
    o->ring_id = r->ring_id;
    s->order.expect = seq + 1;
    handle_with_op(f, s, o, r);
}

/* A request whose number has an op was sent again: it gets the same answer, now or when there is
 * one. */
static void again(struct front *f, struct op *o, struct request *r)
{
    f->count.deduplicated++;
    if (op_answered(o) && o->reply == NULL) {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_STATE, "request %llu was answered and its answer was not kept",
                      (unsigned long long)o->seq);
        reply_error(f, r, &e);
        return;
    }
    if (op_answered(o)) {
        reply_plain(f, r, bytes_of(o->reply, o->reply_size));
    } else if (r->slot != NULL || o->slot == NULL) {
        reply_redirect(f, o, r);
    } /* else it is a stale record of a ring, and the client has sent it again over the socket */
    request_destroy(r);
}

/* Skips numbers that have an op, then admits early requests whose turn has come, as far as this
 * turn of the loop has room: a request that was missing may be followed by REORDER_MAX others. */
static void go_on(struct front *f, struct session *s)
{
    while (!s->parked.waits) {
        turn_count(f, session_skip(s, false) - 1);
        if (early_find(s, s->order.expect) == NULL) {
            return;
        }
        if (!turn_has_room(f)) {
            early_due_add(&f->early_due, s);
            f->hooks.kick(f);
            return;
        }
        turn_count(f, 1);
        admit(f, s, early_take(s, s->order.expect));
    }
}

void intake_go_on(struct front *f)
{
    for (struct session *s; (s = f->early_due) != NULL && turn_has_room(f);) {
        early_due_remove(&f->early_due, s);
        go_on(f, s);
    }
    if (f->early_due != NULL) {
        f->hooks.kick(f);
    }
}

/* Keeps a request until its turn. Of two requests with the same number, one gets no answer. */
static void early(struct front *f, struct session *s, struct request *r)
{
    struct err e = ERR_INIT;
    struct request *other = NULL;
    if (tenant_check_messages(s->tenant, r->size, f->config.tenant_message_bytes, &e) != 0 ||
        early_put(s, r, r->msg.ping.seq, REORDER_MAX, &other, &e) != 0) {
        e.retry_after_ns = RETRY_NS;
        reply_open(f, r, &e);
    } else if (other != NULL) {
        f->count.deduplicated++;
        reply_none(f, other);
    }
}

static void sequenced(struct front *f, struct session *s, struct request *r)
{
    uint64_t seq = r->msg.ping.seq;
    struct err e;
    err_init(&e);
    struct op *o = op_find(s, seq);
    s->order.fresh = false;
    if (o != NULL) {
        again(f, o, r);
        go_on(f, s);
    } else if (seq < s->order.expect || session_acked_before(s, seq)) {
        (void)err_set(&e, ERR_STATE, "request %llu was answered and its answer acknowledged",
                      (unsigned long long)seq);
        reply_error(f, r, &e);
    } else if (seq != s->order.expect || s->parked.waits || s->early.due) {
        early(f, s, r);
    } else {
        admit(f, s, r);
        go_on(f, s);
    }
}

/* Cancels a SUBMIT before its turn, and answers it. The op is made first: without memory for it the
 * request has to stay, and a full window might not take the request back. */
static int withdraw(struct front *f, struct session *s, uint64_t seq, struct err *e)
{
    struct request *r = early_find(s, seq);
    struct err why = ERR_INIT;
    if (r == NULL || r->kind != MSG_KIND_SUBMIT) {
        return err_set(e, ERR_NOT_FOUND, "request %llu has not arrived, or is no job",
                       (unsigned long long)seq);
    }
    struct op *o = op_create(s, seq, r->slot);
    if (o == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a request");
    }
    o->ring_id = r->ring_id;
    (void)err_set(&why, ERR_CANCELLED, "cancelled before it was admitted");
    charge_refused(f, s->tenant, why.code);
    reply_answer_error(f, o, &why, (struct bytes){0});
    request_destroy(early_take(s, seq));
    if (seq == s->order.expect) {
        parking_remove(&f->parked, s);
        go_on(f, s);
    }
    return 0;
}

/* CANCEL names the job's id, or the number of its SUBMIT, which may not have had its turn. */
static int request_cancel_any(struct request_context *c, struct err *e)
{
    struct msg_cancel *m = &c->r->msg.cancel;
    const struct op *o = m->job == 0 ? op_find(c->s, m->number) : NULL;
    struct msg_done done = {0};
    if (o != NULL && o->job != 0) {
        m->job = o->job;
    } else if (m->job == 0 && o == NULL && m->number > 0 && m->number < c->s->order.expect) {
        /* its answer was acknowledged while CANCEL was on its way */
        const struct job *j = job_of_request(c->s, m->number);
        m->job = j != NULL ? j->id : 0;
    }
    if (m->job != 0 || m->number == 0) {
        return request_cancel(c, e);
    }
    if (o == NULL && m->number >= c->s->order.expect && !session_acked_before(c->s, m->number)) {
        int rc = withdraw(c->f, c->s, m->number, e);
        if (rc != 0) {
            return rc;
        }
        done.value = 1;
    }
    return proto_encode(&schema_msg_done, &done, c->out, e);
}

/* Tries a parked request, then later requests of its session. false: it is parked again. */
static bool try_parked(struct front *f, struct session *s)
{
    uint64_t seq = s->parked.seq;
    f->parked.behind = s->parked.next;
    parking_remove(&f->parked, s);
    f->parked.turn = s;
    go_on(f, s);
    f->parked.turn = NULL;
    return !s->parked.waits || s->parked.seq != seq;
}

/* Tries parked jobs whose deadlines have passed, whether there may be room or not: without room
 * they end with DEADLINE. */
static void expire(struct front *f)
{
    struct session *s;
    uint64_t now = turn_now(f);
    while ((s = agenda_due(&f->parked.deadlines, now)) != NULL && turn_take(f, 1)) {
        (void)try_parked(f, s); /* if it parks again, it has time left */
    }
}

static bool has_room(const struct front *f)
{
    return f->job_count < f->config.queue_max || front_life_refuses_jobs(f->life);
}

/* Every parked session keeps its place. A session that waits for a limit of its own, or for many
 * bytes, does not block the sessions behind it. Failed tries are limited per turn; the rest follow
 * in later turns. */
void intake_room(struct front *f)
{
    struct parking *p = &f->parked;
    p->next = p->ended || p->next == NULL ? p->first : p->next;
    p->ended = false;
    expire(f);
    for (unsigned failed = 0;
         p->next != NULL && failed < PARKED_TRIES && has_room(f) && turn_has_room(f);) {
        struct session *s = p->next;
        p->next = s->parked.next;
        failed += !try_parked(f, s);
    }
    if (!has_room(f)) {
        p->next = NULL;
    } else if (p->next != NULL) {
        f->hooks.kick(f);
    }
    if (p->first != NULL) {
        wake_at(f, ns_add(front_now(f), PARKED_NS));
    }
}

static void restore(struct front *f, struct session *s, struct request *r)
{
    struct op *o = op_create_unnumbered(s, r->slot);
    if (o == NULL) {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_NOMEM, "no memory for a request");
        reply_error(f, r, &e);
        return;
    }
    handle_with_op(f, s, o, r);
}

static void hello(struct front *f, struct request *r)
{
    struct err e = ERR_INIT;
    struct capbuf out;
    struct session *s = NULL;
    capbuf_init(&out, 4096);
    if (session_hello(f, r, &out, &s, &e) != 0) {
        reply_error(f, r, &e);
    } else {
        f->io.identified(f->listener, r->peer.pipe);
        f->io.reply(f->listener, r->slot, capbuf_view(&out));
        request_destroy(r);
    }
    capbuf_finish(&out);
}

static void bye(struct front *f, struct session *s, struct request *r)
{
    struct capbuf out;
    uint8_t room[64]; /* without memory its client would wait for ever */
    struct msg_done done = {0};
    capbuf_init_in(&out, sizeof room, room, sizeof room);
    if (proto_encode(&schema_msg_done, &done, &out, NULL) == 0) {
        f->io.reply(f->listener, r->slot, capbuf_view(&out));
    }
    capbuf_finish(&out);
    request_destroy(r);
    session_end(f, s);
}

/* Takes the request's ack. A number that was not admitted has no answer yet: a client that
 * acknowledges it has miscounted, and would lose the answer. false: the request was refused. */
static bool take_ack(struct front *f, struct session *s, struct request *r)
{
    uint64_t ack = r->msg.ping.ack; /* every request begins with its number and its ack */
    if (ack < s->order.expect) {
        sweep_ack(f, s, ack);
        return true;
    }
    struct err e;
    err_init(&e);
    (void)err_set(&e, ERR_PROTOCOL, "ack %llu: no number from %llu on was admitted yet",
                  (unsigned long long)ack, (unsigned long long)s->order.expect);
    reply_open(f, r, &e);
    return false;
}

static void of_session(struct front *f, struct session *s, const struct route *route,
                       struct request *r)
{
    uint64_t seq = r->msg.ping.seq;
    if (!route->sequenced) {
        handle_plain(f, s, r);
    } else if (seq > 0) {
        sequenced(f, s, r);
    } else if (route->restores) {
        restore(f, s, r);
    } else {
        struct err e = ERR_INIT;
        (void)err_set(&e, ERR_PROTOCOL, "a request of kind %u needs a sequence number", r->kind);
        reply_error(f, r, &e);
    }
}

void intake_ring(struct front *f, struct session *s, struct request *r)
{
    const struct route *route = route_of(r->kind);
    turn_count(f, 1);
    if (route != NULL && route->sequenced && r->msg.ping.seq > 0) {
        if (take_ack(f, s, r)) {
            sequenced(f, s, r);
        }
        return;
    }
    struct err e;
    err_init(&e);
    (void)err_set(&e, ERR_UNSUPPORTED, "a ring accepts only requests with a sequence number");
    reply_error(f, r, &e);
}

void intake_request(struct front *f, struct request *r)
{
    struct err e = ERR_INIT;
    turn_count(f, 1);
    if (r->kind == MSG_KIND_HELLO) {
        hello(f, r);
        return;
    }
    struct session *s = sessions_find(f, r->peer.pipe);
    const struct route *route = route_of(r->kind);
    /* strangers of the network learn nothing */
    if (s == NULL && (route == NULL || !route->anybody || r->peer.tls)) {
        (void)err_set(&e, ERR_STATE, "the first message of a connection must be HELLO");
        reply_error(f, r, &e);
    } else if (s == NULL) {
        handle_plain(f, NULL, r);
    } else if (!take_ack(f, s, r)) {
        return;
    } else if (r->kind == MSG_KIND_WAIT) {
        session_wait(f, s, r);
    } else if (r->kind == MSG_KIND_POOL_TAKE) {
        snapshot_take(f, s, r);
    } else if (r->kind == MSG_KIND_BYE) {
        bye(f, s, r);
    } else if (route == NULL) {
        (void)err_set(&e, ERR_UNSUPPORTED, "requests of kind %u are not known", r->kind);
        reply_open(f, r, &e);
    } else {
        of_session(f, s, route, r);
    }
}
