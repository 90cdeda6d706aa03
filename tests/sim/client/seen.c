/* What passes between libgpud and the front, and what must hold for it. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client/libsim.h"

static void must_decode(struct sim *s, const struct schema *schema, struct bytes message, void *msg)
{
    struct err e = ERR_INIT;
    if (proto_decode(schema, message, msg, &e) != 0) {
        sim_fail(s, "bytes: %s", e.text);
    }
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct sim_request *request_make(struct user *u, unsigned kind, uint64_t seq)
{
    struct sim *s = u->s;
    struct sim_request *q = calloc(1, sizeof *q);
    q->client = u->c;
    q->kind = kind;
    q->seq = seq;
    q->sent_era = s->era;
    q->next = s->requests;
    s->requests = q;
    return q;
}

static void request_fill(struct sim_request *q, struct bytes message)
{
    free(q->data);
    q->data = malloc(message.size);
    q->size = message.size;
    memcpy(q->data, message.data, message.size);
}

static struct number *number_of(struct user *u, uint64_t seq)
{
    if (seq >= u->numbers) {
        uint64_t room = seq + 256;
        u->number = realloc(u->number, room * sizeof *u->number);
        memset(u->number + u->numbers, 0, (room - u->numbers) * sizeof *u->number);
        u->numbers = room;
    }
    return &u->number[seq];
}

void seen_forget(struct user *u)
{
    free(u->number);
    u->number = NULL;
    u->numbers = 0;
    u->acked = 0;
    u->gave_up = false;
}

/* Another session cannot have the request: it names what ended, or fills the number of such a
 * request. */
static bool gives_up(const struct user *u, const struct sim_request *q)
{
    bool gone = q->kind == MSG_KIND_BUFFER_INFO || (q->job != NULL && job_names_gone(q->job));
    return u->gave_up || u->lacks || (u->misses && gone);
}

/* libgpud acknowledges only answers that it has got, unless it gave their requests up. */
static void check_ack(struct user *u, uint64_t ack)
{
    for (uint64_t n = u->acked + 1; n <= ack; n++) {
        const struct number *x = number_of(u, n);
        if (x->q != NULL && !x->got && !gives_up(u, x->q) && !u->c->starved) {
            sim_fail(u->s,
                     "ack: user %u acknowledges the answer to request %" PRIu64
                     " of kind %u, which it has not got",
                     u->index, n, x->q->kind);
        }
    }
    u->acked = ack > u->acked ? ack : u->acked;
}

/* A request that comes again to one front is the same. */
static void check_same(struct user *u, const struct schema *schema, void *msg, struct number *x)
{
    struct sim *s = u->s;
    struct err e = ERR_INIT;
    struct capbuf bytes;
    struct msg_ping *head = msg;
    uint64_t ack = head->ack;
    head->ack = 0;
    capbuf_init(&bytes, PROTO_MESSAGE_MAX);
    if (proto_encode(schema, msg, &bytes, &e) != 0) {
        sim_fail(s, "bytes: %s", e.text);
    }
    struct hash content = hash_of(bytes.data, bytes.size);
    if (x->content_era == s->era && !hash_equal(content, x->content)) {
        sim_fail(s, "again: user %u sends request %" PRIu64 " again, and it is another", u->index,
                 head->seq);
    }
    x->content = content;
    x->content_era = s->era;
    head->ack = ack;
    capbuf_finish(&bytes);
}

/* Another request with the number is a filler, for one that the front does not have. */
static void check_filler(struct user *u, unsigned kind, const void *msg, const struct number *x)
{
    struct sim *s = u->s;
    const struct msg_buffer_info *m = msg;
    if (kind != MSG_KIND_BUFFER_INFO || m->handle != 0) {
        sim_fail(s,
                 "again: user %u sends request %" PRIu64 " of kind %u again, and it is of kind %u",
                 u->index, m->seq, x->q->kind, kind);
    }
    if (x->has_era == s->era) {
        sim_fail(s, "filler: user %u fills number %" PRIu64 ", and the front has its request",
                 u->index, m->seq);
    }
}

static void connect_request(struct user *u, struct sim_request *q, const void *msg)
{
    struct sim *s = u->s;
    if (q->kind == MSG_KIND_SUBMIT) {
        job_bind(u, q, msg);
    } else if (q->kind == MSG_KIND_BUFFER_CREATE) {
        const struct msg_buffer_create *m = msg;
        char label[16] = "";
        (void)bytes_to_str(m->label, label, sizeof label);
        unsigned number = (unsigned)strtoul(label + 1, NULL, 10);
        q->buffer = label[0] == 'b' && number < s->buffers ? s->buffer[number] : NULL;
    }
}

static struct sim_request *numbered(struct user *u, const struct schema *schema, void *msg)
{
    uint64_t seq = ((const struct msg_ping *)msg)->seq;
    struct number *x = number_of(u, seq);
    if (x->q != NULL && x->q->kind != schema->kind) {
        check_filler(u, schema->kind, msg, x);
        x->q = NULL;
        x->content_era = 0;
    }
    check_same(u, schema, msg, x);
    if (x->q == NULL) {
        x->q = request_make(u, schema->kind, seq);
        connect_request(u, x->q, msg);
    }
    x->has_era = u->s->era;
    return x->q;
}

struct sim_request *seen_request(struct wire *w, struct bytes message)
{
    struct user *u = w->user;
    const struct schema *schema = schema_find(proto_kind(message));
    if (schema == NULL) {
        sim_fail(u->s, "bytes: user %u sends a message of no kind", u->index);
    }
    struct sim_request *q = NULL;
    struct msg_ping *msg = calloc(1, schema->size);
    must_decode(u->s, schema, message, msg);
    bool now = w->life == u->c->lives; /* else the client of another life sent it */
    if (schema->kind != MSG_KIND_HELLO && now) {
        check_ack(u, msg->ack);
    }
    u->c->said_bye = u->c->said_bye || (now && schema->kind == MSG_KIND_BYE);
    sim_log(u->s, "user %u: request %" PRIu64 " of kind %u comes, ack %" PRIu64, u->index, msg->seq,
            schema->kind, msg->ack);
    q = msg->seq > 0 && schema->kind != MSG_KIND_HELLO && now
            ? numbered(u, schema, msg)
            : request_make(u, schema->kind, schema->kind == MSG_KIND_HELLO ? 0 : msg->seq);
    request_fill(q, message);
    free(msg);
    return q;
}

/* ---- answers --------------------------------------------------------------------------------- */

static bool stays_open(struct bytes message)
{
    struct msg_error m;
    return proto_kind(message) == MSG_KIND_ERROR &&
           proto_decode(&schema_msg_error, message, &m, NULL) == 0 && m.open != 0;
}

/* One number has one answer of one front. */
static void check_once(struct sim *s, struct sim_request *q, struct bytes message)
{
    struct hash h = hash_of(message.data, message.size);
    bool other = q->seq > 0 && q->answered && q->answer_era == s->era && !hash_equal(h, q->answer);
    if (other && !memory_failed() && proto_kind(message) != MSG_KIND_ERROR) {
        sim_fail(s, "answer: request %" PRIu64 " of user %u has two answers", q->seq,
                 q->client->index);
    }
    q->answered = true;
    q->answer = h;
    q->answer_era = s->era;
}

/* The session is new: what was sent before is translated, and the buffers ended with the old one.
 */
static void begin_anew(struct user *u)
{
    u->misses = true;
    for (uint64_t n = 0; n < u->numbers; n++) {
        u->number[n].has_era = u->number[n].content_era = 0;
        if (u->number[n].q != NULL) {
            u->number[n].q->answered = false;
        }
    }
    for (struct lib_job *x = u->jobs; x != NULL; x = x->next) {
        x->began_before = x->began_before || x->j->begun > 0;
        x->renewed = true;
    }
    for (unsigned i = 0; i < u->c->buffers; i++) {
        u->c->buffer[i]->lied = true;
    }
}

static void see_welcome(struct sim *s, struct sim_client *c, struct bytes message)
{
    static const uint8_t none[PROTO_CLIENT_ID_BYTES];
    struct msg_welcome m;
    must_decode(s, &schema_msg_welcome, message, &m);
    if (c->uid == SIM_STRANGER) {
        sim_fail(s, "stranger: user %u is of the workers' user, and gets a session", c->index);
    }
    bool first = memcmp(c->daemon_id, none, sizeof none) == 0;
    bool same = memcmp(c->daemon_id, m.daemon_id.data, sizeof none) == 0;
    if (!first && !same) {
        rules_resumed(s, c, m.resumed != 0);
    } else if (!first && m.resumed == 0 && !c->said_bye && client_remembered(s, c)) {
        sim_fail(s, "session: user %u is back in time, and its session is gone", c->index);
    }
    if (!first && m.resumed == 0) {
        begin_anew(user_of(c));
    }
    memcpy(c->daemon_id, m.daemon_id.data, sizeof none);
    c->session = m.session;
    sim_log(s, "user %u: session %" PRIu64 " %s, expects %" PRIu64, c->index, m.session,
            m.resumed != 0 ? "goes on" : "is new", m.expect);
}

static void see_buffer(struct sim *s, const struct sim_request *q, struct bytes message)
{
    struct msg_buffer m;
    struct sim_buffer *b = q->buffer;
    must_decode(s, &schema_msg_buffer, message, &m);
    bool lost = q->seq == 0 && m.state == GPUD_BUFFER_LOST;
    user_of(q->client)->misses = user_of(q->client)->misses || lost;
    if (q->kind != MSG_KIND_BUFFER_CREATE || b == NULL) {
        return;
    }
    struct sim_buffer *other = model_find(s, m.handle);
    if (other != NULL && other != b) {
        sim_fail(s, "handle: buffer %#" PRIx64 " was given twice", m.handle);
    }
    model_name(s, b, m.handle);
    b->era = s->era;
    buffer_find_worker(s, b);
}

static void see_result(struct user *u, struct lib_job *x, const struct proto_result *r)
{
    if (x == NULL) {
        return;
    }
    x->j->id = r->job;
    x->j->id_era = u->s->era;
    x->j->replays = (unsigned)r->replays;
    job_said(x, (int)r->code, (unsigned)r->effects);
}

static void see_results(struct user *u, const struct sim_request *q, struct bytes message)
{
    struct msg_results m;
    struct proto_result r;
    must_decode(u->s, &schema_msg_results, message, &m);
    struct proto_iter it = proto_iter_of(m.results);
    while (proto_list_next(&it, &schema_result, &r)) {
        see_result(u, job_by_request(u, q), &r);
    }
}

static void see_events(struct user *u, struct bytes message)
{
    struct msg_events m;
    struct proto_result r;
    must_decode(u->s, &schema_msg_events, message, &m);
    struct proto_iter it = proto_iter_of(m.results);
    while (proto_list_next(&it, &schema_result, &r)) {
        see_result(u, job_by_id(u, r.job), &r);
    }
    struct proto_notice n;
    it = proto_iter_of(m.notices);
    while (proto_list_next(&it, &schema_notice, &n)) {
        u->misses = u->misses || n.kind == NOTICE_BUFFER_LOST;
    }
}

static void see_accepted(struct user *u, const struct sim_request *q, struct bytes message)
{
    struct sim *s = u->s;
    struct msg_accepted m;
    struct lib_job *x = job_by_request(u, q);
    must_decode(s, &schema_msg_accepted, message, &m);
    if (q->kind != MSG_KIND_SUBMIT || x == NULL) {
        return;
    }
    rules_job_id(s, x->j, m.job);
    x->j->id = m.job;
    x->j->id_era = s->era;
    sim_log(s, "user %u: request %" PRIu64 " is job %" PRIu64, u->index, q->seq, m.job);
}

static bool may_not_be(int code)
{
    return code == ERR_PROTOCOL || code == ERR_INTERNAL || code == ERR_VERSION;
}

/* libgpud restores an object without a number. */
static bool restores(const struct sim_request *q)
{
    return q->seq == 0 && (q->kind == MSG_KIND_MODULE_LOAD || q->kind == MSG_KIND_KERNEL_FIND ||
                           q->kind == MSG_KIND_PROGRAM_CREATE || q->kind == MSG_KIND_ARENA_CREATE);
}

static void see_error(struct user *u, const struct sim_request *q, struct bytes message)
{
    struct sim *s = u->s;
    struct msg_error m;
    struct lib_job *x = q->kind == MSG_KIND_SUBMIT ? job_by_request(u, q) : NULL;
    must_decode(s, &schema_msg_error, message, &m);
    sim_log(s, "user %u: request %" PRIu64 " of kind %u: %s %.*s", u->index, q->seq, q->kind,
            err_name((int)m.code), (int)m.text.size, (const char *)m.text.data);
    u->lacks = u->lacks || restores(q);
    u->misses = u->misses || (q->seq == 0 && q->kind == MSG_KIND_BUFFER_INFO);
    if (may_not_be((int)m.code) && !s->lies && !memory_failed()) {
        sim_fail(s, "error: request %" PRIu64 " of kind %u of user %u is answered by %s: %.*s",
                 q->seq, q->kind, u->index, err_name((int)m.code), (int)m.text.size,
                 (const char *)m.text.data);
    }
    if (x != NULL) {
        job_said(x, (int)m.code, (unsigned)m.effects);
    }
}

void seen_answer(struct sim *s, struct sim_parcel *p, struct bytes message)
{
    struct sim_request *q = p->request;
    struct user *u = user_of(q->client);
    if (stays_open(message)) {
        if (q->seq > 0 && q->seq < u->numbers && u->number[q->seq].q == q) {
            u->number[q->seq].has_era = 0;
        }
        return;
    }
    if (!p->lost) {
        check_once(s, q, message);
    }
    switch (proto_kind(message)) {
    case MSG_KIND_ERROR:
        see_error(u, q, message);
        break;
    case MSG_KIND_WELCOME:
        see_welcome(s, q->client, message);
        break;
    case MSG_KIND_BUFFER:
        see_buffer(s, q, message);
        break;
    case MSG_KIND_RESULTS:
        see_results(u, q, message);
        break;
    case MSG_KIND_EVENTS:
        see_events(u, message);
        break;
    case MSG_KIND_ACCEPTED:
        see_accepted(u, q, message);
        break;
    default:
        break;
    }
}

void seen_arrival(struct user *u, const struct sim_request *q, struct bytes message)
{
    if (proto_kind(message) == MSG_KIND_WELCOME) {
        uint64_t patience = u->reconnect_ns > 0 ? u->reconnect_ns : 30 * NS_PER_S;
        bool long_ago = u->down_ns != 0 && u->s->now_ns - u->down_ns >= patience / 2;
        u->gave_up = u->gave_up || long_ago;
        u->down_ns = 0;
    }
    if (q->seq > 0 && !stays_open(message) && q->seq < u->numbers && u->number[q->seq].q == q) {
        u->number[q->seq].got = true;
    }
}
