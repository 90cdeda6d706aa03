/* Clients: connections, sessions, and requests on their way. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/front/model/request.h"
#include "tests/sim/front/sim_gather.h"
#include "tests/sim/front/sim_roles.h"

#define LET_GO_NS (20 * NS_PER_MS) /* less than the pause of a front */
#define RETRY_NS  (50 * NS_PER_MS)
#define BACK_NS   (20 * NS_PER_MS)
#define AHEAD_MAX 250u /* numbers; a client sends no request further ahead of the lowest one */

static uint64_t wire_ns(struct sim *s, uint64_t salt)
{
    return NS_PER_US + chance_mix(salt ^ s->course->seed) % (s->p.wire_us * NS_PER_US + 1);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void on_arrive(struct sim *s, const struct hap *h)
{
    struct sim_parcel *p = &s->parcel[h->a];
    if (p->era != s->era || !s->accepts || p->over || p->request->client->pipe != p->pipe) {
        return; /* its connection broke */
    }
    front_request(s, h->a);
}

/* Every message carries the newest ack. */
static void renew_ack(struct sim *s, struct sim_request *r)
{
    struct err e = ERR_INIT;
    const struct schema *schema = schema_find(r->kind);
    struct msg_ping *msg = calloc(1, schema->size);
    struct capbuf bytes;
    uint64_t ack = client_acked(s, r->client);
    capbuf_init(&bytes, PROTO_MESSAGE_MAX);
    if (proto_decode(schema, bytes_of(r->data, r->size), msg, &e) != 0) {
        sim_fail(s, "client: %s: %s", schema->name, e.text);
    }
    if (r->kind != MSG_KIND_HELLO && msg->ack != ack) {
        msg->ack = ack;
        if (proto_encode(schema, msg, &bytes, &e) != 0) {
            sim_fail(s, "client: %s: %s", schema->name, e.text);
        }
        free(r->data);
        r->data = bytes.data;
        r->size = bytes.size;
    }
    free(msg);
}

/* In order on one connection, unless the request overtakes: NNG may do that, too. */
static void send_parcel(struct sim *s, struct sim_request *r)
{
    struct sim_client *c = r->client;
    if (c->pipe == 0) {
        return;
    }
    r->held = r->seq > 0 && c->open_count > 0 && r->seq >= c->open[0]->seq + AHEAD_MAX;
    if (r->held) {
        return;
    }
    if (s->parcels + 1 >= s->parcels_room) {
        s->parcels_room = 2 * s->parcels_room + 1024;
        s->parcel = realloc(s->parcel, s->parcels_room * sizeof *s->parcel);
    }
    renew_ack(s, r);
    uint64_t number = ++s->parcels;
    s->parcel[number] = (struct sim_parcel){.request = r, .pipe = c->pipe, .era = s->era};
    r->sendings++;
    uint64_t at_ns = s->now_ns + wire_ns(s, number);
    bool overtakes = chance_mix(number ^ s->course->seed) % 16 == 0;
    if (!overtakes) {
        at_ns = at_ns > c->arrives_ns ? at_ns : c->arrives_ns;
        c->arrives_ns = at_ns;
    }
    sim_at(s, at_ns, on_arrive, NULL, number, 0);
}

static struct sim_request *request_make(struct sim *s, struct sim_client *c,
                                        const struct schema *schema, const void *msg)
{
    struct err e = ERR_INIT;
    struct capbuf bytes;
    capbuf_init(&bytes, PROTO_MESSAGE_MAX);
    if (proto_encode(schema, msg, &bytes, &e) != 0) {
        sim_fail(s, "client: %s: %s", schema->name, e.text);
    }
    struct sim_request *r = calloc(1, sizeof *r);
    r->client = c;
    r->kind = schema->kind;
    r->seq = schema == &schema_msg_hello ? 0 : ((const struct msg_ping *)msg)->seq;
    r->data = bytes.data;
    r->size = bytes.size;
    r->sent_era = s->era;
    r->next = s->requests;
    s->requests = r;
    return r;
}

struct sim_request *client_send(struct sim *s, struct sim_client *c, const struct schema *schema,
                                void *msg)
{
    struct sim_request *r = request_make(s, c, schema, msg);
    sim_log(s, "client %u: request %" PRIu64 " is %s", c->index, r->seq, schema->name);
    if (r->seq > 0) {
        if (c->open_count == sizeof c->open / sizeof c->open[0]) {
            sim_fail(s, "client: too many requests");
        }
        c->open[c->open_count++] = r; /* numbers grow */
    }
    if (c->state == CLIENT_ON || schema == &schema_msg_hello) {
        send_parcel(s, r);
    }
    return r;
}

void client_resend(struct sim *s, struct sim_request *r)
{
    if (r->client->state == CLIENT_ON && !r->answered && !r->dropped) {
        send_parcel(s, r);
    }
}

uint64_t client_acked(const struct sim *s, const struct sim_client *c)
{
    uint64_t ack = c->open_count > 0 ? c->open[0]->seq - 1 : c->next - 1;
    bool takes = s->settling || (s->p.reads != 0 && !c->mute);
    return c->hasty ? 0 : takes || ack < c->mute_ack ? ack : c->mute_ack;
}

bool client_idle(const struct sim_client *c)
{
    return c->open_count == 0 && c->jobs == 0;
}

void client_forget(struct sim_client *c, struct sim_buffer *b)
{
    for (unsigned i = 0; i < c->buffers; i++) {
        if (c->buffer[i] == b) {
            c->buffer[i--] = c->buffer[--c->buffers];
        }
    }
}

/* ---- connections ----------------------------------------------------------------------------- */

static bool awaits(const struct sim_client *c, uint64_t seq)
{
    for (unsigned i = 0; i < c->open_count; i++) {
        if (c->open[i]->seq == seq) {
            return true;
        }
    }
    for (unsigned i = 0; i < c->jobs; i++) {
        if (c->job[i]->request->seq == seq) {
            return true;
        }
    }
    return false;
}

/* The answered numbers above `resume`. Asynchronous jobs without a result are not among them. */
static uint64_t list_taken(struct sim *s, const struct sim_client *c, uint64_t resume,
                           struct capbuf *out)
{
    uint64_t count = 0;
    struct err e = ERR_INIT;
    struct proto_span span = {.count = 0};
    for (uint64_t seq = resume + 1; seq <= c->next && count < 1024; seq++) {
        bool taken = seq < c->next && !awaits(c, seq);
        if (taken && span.count == 0) {
            span.first = seq;
        }
        span.count += taken;
        if (!taken && span.count > 0) {
            if (proto_list_add(&schema_span, &span, out, &e) != 0) {
                sim_fail(s, "client: %s", e.text);
            }
            count++;
            span.count = 0;
        }
    }
    return count;
}

/* Another front runs, which may not know asynchronous jobs without a result: they are sent again.
 */
void client_reopen(struct sim_client *c)
{
    for (unsigned i = 0; i < c->jobs; i++) {
        struct sim_request *r = c->job[i]->request;
        unsigned at = c->open_count;
        if (!r->answered) {
            continue;
        }
        r->answered = false;
        for (; at > 0 && c->open[at - 1]->seq > r->seq; at--) {
            c->open[at] = c->open[at - 1];
        }
        c->open[at] = r;
        c->open_count++;
    }
}

void client_connect(struct sim *s, struct sim_client *c)
{
    struct capbuf spans;
    if (c->state == CLIENT_GONE || !s->accepts) {
        return;
    }
    capbuf_init(&spans, 65536);
    c->pipe = ++s->pipes;
    c->state = CLIENT_GREETS;
    c->waits = false;
    c->arrives_ns = 0;
    uint64_t resume = c->open_count > 0 ? c->open[0]->seq : c->next;
    uint64_t async = resume; /* the lowest number of a job without a result */
    for (unsigned i = 0; i < c->jobs; i++) {
        uint64_t seq = c->job[i]->request->seq;
        async = seq < async ? seq : async;
    }
    /* only another daemon looks at these: it awaits such jobs again */
    uint64_t taken = list_taken(s, c, async, &spans);
    resume = async;
    struct msg_hello m = {.major = PROTO_MAJOR,
                          .minor = PROTO_MINOR,
                          .client_id = bytes_of(c->id, sizeof c->id),
                          .resume = resume,
                          .name = bytes_str("sim"),
                          .taken = proto_list_of(&spans, taken)};
    char token[SIM_TOKEN];
    if (client_far(c)) {
        far_early(s, c);
        far_hello(s, c, &m, token);
    }
    far_sent(c, client_send(s, c, &schema_msg_hello, &m));
    capbuf_finish(&spans);
}

static void on_back(struct sim *s, const struct hap *h)
{
    struct sim_client *c = h->actor;
    if (c->pipe != 0 || c->state == CLIENT_GONE || c->lives != h->a) {
        return;
    }
    if (!s->accepts) {
        sim_at(s, s->now_ns + RETRY_NS, on_back, c, c->lives, 0);
        return;
    }
    client_connect(s, c);
}

void client_come_back(struct sim *s, struct sim_client *c, uint64_t in_ns)
{
    sim_at(s, s->now_ns + in_ns, on_back, c, c->lives, 0);
}

static void on_closed(struct sim *s, const struct hap *h)
{
    if (h->b == s->era && front_alive(s)) {
        front_pipe_closed(s, (uint32_t)h->a);
    }
}

bool client_is_arrival(const struct hap *h)
{
    return h->run == (void (*)(void))on_arrive || h->run == (void (*)(void))on_closed;
}

/* When the front has to know the session still. The times for which it stood still do not count. */
bool client_remembered(const struct sim *s, const struct sim_client *c)
{
    return !s->killed_session && !memory_failed() && c->left_era == s->era &&
           stall_passed_ns(s, c->left_ns) < s->p.linger_ms * NS_PER_MS;
}

static void forget_parcels(struct sim *s, uint32_t pipe)
{
    for (uint64_t i = s->parcels; i > 0; i--) {
        if (s->parcel[i].pipe == pipe) {
            s->parcel[i].lost = true;
        }
        if (s->parcel[i].pipe + 64 < pipe) {
            return; /* connections are numbered as they come */
        }
    }
}

/* One in four stays away for long: it is stopped, or its pauses have grown. */
static uint64_t away_ns(const struct sim *s, const struct sim_client *c)
{
    uint64_t mix = chance_mix(s->pipes + c->index);
    bool long_away = mix % 4 == 0 && s->p.linger_ms > 0;
    return BACK_NS + mix / 4 % (long_away ? s->p.linger_ms * NS_PER_MS : 200 * NS_PER_MS);
}

/* The front learns of it a little later. */
void client_break(struct sim *s, struct sim_client *c, bool back)
{
    uint32_t pipe = c->pipe;
    if (c->state == CLIENT_ON) { /* a HELLO on its way prolongs no session */
        c->left_ns = s->now_ns;
        c->left_era = s->era;
    }
    if (pipe != 0) {
        forget_parcels(s, pipe);
        sim_at(s, s->now_ns + wire_ns(s, pipe), on_closed, NULL, pipe, s->era);
    }
    c->pipe = 0;
    c->waits = false;
    c->state = CLIENT_AWAY;
    if (back) {
        client_come_back(s, c, away_ns(s, c));
    }
}

void client_closed(struct sim *s, uint32_t pipe)
{
    for (unsigned i = 0; i < s->clients && !s->closing; i++) {
        if (s->client[i].pipe == pipe) {
            client_break(s, &s->client[i], true);
        }
    }
}

/* The client comes back before the front notices that its connection broke. */
static void move(struct sim *s, struct sim_client *c)
{
    if (c->pipe == 0 || !s->accepts) {
        return;
    }
    client_break(s, c, false);
    client_connect(s, c);
}

/* ---- sessions -------------------------------------------------------------------------------- */

/* What the client has of a session that does not exist any more. */
static void drop_session(struct sim_client *c)
{
    for (unsigned i = 0; i < c->open_count; i++) {
        c->open[i]->dropped = true;
        if (c->open[i]->job != NULL) {
            c->open[i]->job->outcome = OUTCOME_UNKNOWN;
            model_doubt(c->open[i]->job);
        }
    }
    for (unsigned i = 0; i < c->jobs; i++) {
        c->job[i]->outcome = OUTCOME_UNKNOWN;
        model_doubt(c->job[i]);
    }
    for (unsigned i = 0; i < c->buffers; i++) {
        c->buffer[i]->freed = c->buffer[i]->freed || c->buffer[i]->maker == c;
    }
    strays_drop(c);
    c->open_count = c->jobs = c->buffers = 0;
    c->programs = c->modules = c->arenas = c->kernels = 0;
    c->axpy = c->bulk = c->bulk_module = 0;
}

static void begin_life(struct sim *s, struct sim_client *c)
{
    unsigned of = client_twin(c) ? c->index & ~1u : c->index;
    uint64_t half[2] = {chance_mix(of + 1), chance_mix(++c->lives + s->course->seed)};
    memcpy(c->id, half, sizeof c->id);
    c->next = 1;
    c->events = 0;
    c->state = CLIENT_AWAY;
    c->leaving = c->said_bye = c->mute = false;
    c->mute_ack = 0;
    c->left_era = 0;
    memset(c->daemon_id, 0, sizeof c->daemon_id);
}

static void leave(struct sim *s, struct sim_client *c, bool another)
{
    client_break(s, c, false);
    drop_session(c);
    begin_life(s, c);
    if (another && !s->settling) {
        client_come_back(s, c, c->holiday_ns > 0 ? c->holiday_ns : NS_PER_S);
        c->holiday_ns = 0;
    } else {
        c->state = CLIENT_GONE;
    }
}

/* Its session is over: it was said so, or the front does not know it any more. */
void client_over(struct sim *s, struct sim_client *c)
{
    leave(s, c, true);
}

void client_return(struct sim *s, struct sim_client *c)
{
    begin_life(s, c);
    client_come_back(s, c, NS_PER_MS);
}

static void name_user(const struct sim *s, struct sim_client *c)
{
    unsigned i = c->index;
    c->uid = i == 0 ? 0 : i == 7 ? SIM_STRANGER : 1000 + i % (unsigned)s->p.tenants;
    c->tenant = c->uid;
    if (s->p.sockets != 0 && i > 1 && i / 2 != 7 / 2) {
        c->uid = 1000 + i / 2 % (unsigned)s->p.tenants;
        c->tenant = SIM_TWINS + i % 2;
    } else if (s->p.tokens != 0 && i > 1 && i != 7) {
        c->uid = 0; /* which proves nothing */
        c->tenant = SIM_FARS + i % SIM_FAR_TENANTS;
    }
    roles_user(s, c);
}

void clients_begin(struct sim *s)
{
    s->clients = (unsigned)s->p.clients;
    s->client = calloc(s->clients, sizeof *s->client);
    tokens_begin(s);
    for (unsigned i = 0; i < s->clients; i++) {
        struct sim_client *c = &s->client[i];
        c->index = i;
        name_user(s, c);
        c->token = 1;
        begin_life(s, c);
        client_come_back(s, c, NS_PER_MS * (i % 64));
    }
    gather_begin(s);
}

void clients_end(struct sim *s)
{
    for (unsigned i = 0; i < s->clients; i++) {
        strays_drop(&s->client[i]);
    }
    free(s->client);
    while (s->requests != NULL) {
        struct sim_request *r = s->requests;
        s->requests = r->next;
        free(r->data);
        free(r);
    }
    free(s->parcel);
}

/* ---- answers --------------------------------------------------------------------------------- */

static void retry(struct sim *s, const struct hap *h)
{
    client_resend(s, h->actor);
}

struct answer {
    uint64_t parcel;
    size_t size;
    uint8_t data[];
};

/* A number whose request was not admitted stays open. */
static bool stays_open(struct sim *s, struct sim_request *r, struct bytes message)
{
    struct msg_error m;
    if (proto_kind(message) != MSG_KIND_ERROR ||
        proto_decode(&schema_msg_error, message, &m, NULL) != 0 || m.open == 0) {
        return false;
    }
    if (m.code != ERR_BUSY && m.code != ERR_NOMEM) {
        sim_fail(s, "open: request %" PRIu64 " of client %u is not admitted: %s, %.*s", r->seq,
                 r->client->index, err_name((int)m.code), (int)m.text.size,
                 (const char *)m.text.data);
    }
    sim_log(s, "client %u: request %" PRIu64 " stays open: %s %.*s", r->client->index, r->seq,
            err_name((int)m.code), (int)m.text.size, (const char *)m.text.data);
    uint64_t pause = m.retry_after_ns > 0 ? m.retry_after_ns : RETRY_NS;
    pause *= 1 + r->sendings / 4;
    sim_at(s, s->now_ns + pause, retry, r, 0, 0);
    return true;
}

/* What was too far ahead. */
static void send_held(struct sim *s, struct sim_client *c)
{
    for (unsigned i = 0; i < c->open_count && c->open[i]->seq < c->open[0]->seq + AHEAD_MAX; i++) {
        if (c->open[i]->held) {
            client_resend(s, c->open[i]);
        }
    }
}

static void close_request(struct sim_client *c, const struct sim_request *r)
{
    for (unsigned i = 0; i < c->open_count; i++) {
        if (c->open[i] == r) {
            memmove(&c->open[i], &c->open[i + 1], (c->open_count - i - 1) * sizeof c->open[0]);
            c->open_count--;
            return;
        }
    }
}

/* One number has one answer of one front. */
static void check_same(struct sim *s, struct sim_request *r, struct bytes message)
{
    struct hash h = hash_of(message.data, message.size);
    bool other = r->seq > 0 && r->answered && r->answer_era == s->era && !hash_equal(h, r->answer);
    if (other && !memory_failed()) {
        struct msg_error m;
        bool gone = proto_decode(&schema_msg_error, message, &m, NULL) == 0 && m.code == ERR_STATE;
        if (!gone) { /* it has acknowledged the answer meanwhile */
            sim_fail(s, "answer: request %" PRIu64 " of client %u has two answers", r->seq,
                     r->client->index);
        }
        return;
    }
    r->answer = h;
    r->answer_era = s->era;
}

static void on_answer(struct sim *s, const struct hap *h)
{
    struct answer *a = h->actor;
    struct sim_parcel *p = &s->parcel[a->parcel];
    struct sim_request *r = p->request;
    struct bytes message = bytes_of(a->data, a->size);
    bool there = r->client->pipe == p->pipe && p->era == s->era;
    if (there && !r->dropped) {
        bool open = stays_open(s, r, message);
        if (!open) {
            check_same(s, r, message);
        }
        if (!open && !r->answered) {
            r->answered = true;
            close_request(r->client, r);
            send_held(s, r->client);
            answer_take(s, r, message);
        }
    }
    free(a);
}

/* What a front answers while it leaves may still reach the client: the next front would have served
 * a module. */
static void check_leaving(struct sim *s, const struct sim_request *r, struct bytes message)
{
    if (s->f->life == FRONT_LEAVING && r->kind == MSG_KIND_MODULE_LOAD &&
        proto_kind(message) == MSG_KIND_ERROR) {
        sim_fail(s, "leaving: request %" PRIu64 " of client %u is refused by a front that leaves",
                 r->seq, r->client->index);
    }
}

void client_answer(struct sim *s, uint64_t parcel, struct bytes message)
{
    struct sim_parcel *p = &s->parcel[parcel];
    if (s->closing) {
        check_leaving(s, p->request, message);
        return;
    }
    if (p->over) {
        sim_fail(s, "answer: request %" PRIu64 " of client %u is answered twice", p->request->seq,
                 p->request->client->index);
    }
    p->over = true;
    rules_answer(s, p, message);
    struct answer *a = malloc(sizeof *a + message.size);
    a->parcel = parcel;
    a->size = message.size;
    memcpy(a->data, message.data, message.size);
    sim_at(s, s->now_ns + wire_ns(s, parcel + 7), on_answer, a, 0, 0);
}

/* Has the front got a BYE by this connection? A client says that when all has an answer, but ours
 * does not wait for those without a number. */
static bool said_bye(const struct sim *s, const struct sim_parcel *p)
{
    const struct sim_parcel *q = &s->parcel[s->parcels];
    while (q != p && (q->request->kind != MSG_KIND_BYE || q->pipe != p->pipe || !q->arrived)) {
        q--;
    }
    return q != p;
}

/* No answer: the connection lost its session, or the request came again. */
void client_drop(struct sim *s, uint64_t parcel)
{
    if (s->closing) {
        return;
    }
    struct sim_parcel *p = &s->parcel[parcel];
    if (p->over) {
        sim_fail(s, "answer: request %" PRIu64 " of client %u is answered, and dropped",
                 p->request->seq, p->request->client->index);
    }
    bool lost = p->lost || p->request->client->pipe != p->pipe;
    bool newer = p->request->sendings > 1 || p->request->kind == MSG_KIND_WAIT;
    bool ended = p->request->client->state == CLIENT_GONE || s->killed_session ||
                 (p->request->seq == 0 && said_bye(s, p));
    if (!lost && !newer && !ended) {
        sim_fail(s, "answer: request %" PRIu64 " of client %u is dropped, and its client waits",
                 p->request->seq, p->request->client->index);
    }
    p->over = true;
}

/* ---- what a course does ---------------------------------------------------------------------- */

static void repeat(struct sim *s, struct sim_client *c, struct chance *r)
{
    if (c->open_count > 0) {
        client_resend(s, c->open[chance_below(r, c->open_count)]);
    }
}

/* Of one that has a session. */
static void event_on(struct sim *s, struct sim_client *c, enum course_kind kind, struct chance *r)
{
    switch (kind) {
    case COURSE_ASK:
        ask_something(s, c, r);
        break;
    case COURSE_INQUIRE:
        ask_unnumbered(s, c, r);
        break;
    case COURSE_AGAIN:
        repeat(s, c, r);
        break;
    case COURSE_MOVE:
        move(s, c);
        break;
    case COURSE_BYE:
        c->leaving = true;
        break;
    case COURSE_CROWD:
        ask_crowd(s, c, r);
        break;
    case COURSE_GUILT:
        ask_guilt(s, c, r);
        break;
    case COURSE_MEDDLE:
        meddle(s, c, r);
        break;
    case COURSE_MUTE:
        c->mute_ack = client_acked(s, c);
        c->mute = true;
        break;
    default:
        special_event(s, c, kind, r);
        break;
    }
}

static bool of_far(enum course_kind kind)
{
    return kind == COURSE_ROTATE || kind == COURSE_REMOVE || kind == COURSE_TRICK;
}

void client_event(struct sim *s, const struct course_event *e, struct chance *r)
{
    struct sim_client *c = &s->client[e->actor % s->clients];
    if (s->p.special == WORLD_HOSTILE && s->clients > 2) {
        c = &s->client[e->kind == COURSE_HONEST ? 2 : 1];
    }
    if (of_far(e->kind)) {
        far_event(s, c, e->kind, r);
    } else if (e->kind == COURSE_CONTROL) {
        if (s->client[0].state == CLIENT_ON) {
            ask_control(s, &s->client[0], r);
        }
    } else if (e->kind == COURSE_BREAK && c->pipe != 0) {
        client_break(s, c, false);
        client_come_back(s, c, chance_spread(r, NS_PER_MS, 2 * s->p.linger_ms * NS_PER_MS));
    } else if (e->kind == COURSE_LEAVE && c->pipe != 0) {
        leave(s, c, chance_percent(r, 70));
    } else if (c->state == CLIENT_ON && !c->leaving && !c->said_bye) {
        event_on(s, c, e->kind, r);
    }
}

static void let_go(struct sim *s, const struct hap *h)
{
    struct sim_buffer *b = model_find(s, h->a);
    struct sim_client *c = b != NULL && !b->freed ? b->maker : NULL;
    unsigned i = 0;
    while (c != NULL && i < c->buffers && c->buffer[i] != b) {
        i++;
    }
    if (c != NULL && i < c->buffers && c->state == CLIENT_ON && !c->leaving && !c->said_bye) {
        ask_free(s, c, b);
    }
}

void client_lets_go(struct sim *s, uint64_t handle)
{
    sim_at(s, s->now_ns + LET_GO_NS, let_go, NULL, handle, 0);
}

static void want(struct sim *s, const struct hap *h)
{
    struct sim_client *c = h->actor;
    if (c->state == CLIENT_ON && !c->leaving && !c->said_bye && !s->settling && ask_room(c)) {
        ask_new(s, c, 1 + h->a % 16, true, h->b);
    }
}

void clients_want(struct sim *s, unsigned device, uint64_t within_ns)
{
    for (unsigned i = 0; i < s->clients; i++) {
        uint64_t r = chance_mix(s->now_ns + i);
        sim_at(s, s->now_ns + r % within_ns, want, &s->client[i], i, 1 + device);
    }
}

void client_wants(struct sim *s, uint64_t handle)
{
    const struct sim_buffer *b = model_find(s, handle);
    if (s->p.aim != 0 && b != NULL && handle % 3 == 0) {
        sim_at(s, s->now_ns + (1 + handle % 5) * NS_PER_MS, want, b->maker, handle, 0);
    }
}

/* No client here has a ring. */
void client_ring_request(struct sim *s, uint64_t session, const struct request *r)
{
    sim_fail(s, "ring: session %" PRIu64 " has a request of kind %u", session, r->kind);
}
