/* Connections: bytes take their time both ways. The front's side reads them as its readers do. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/client/libsim.h"

/* Bytes on their way. */
struct chunk {
    struct wire *wire;
    const struct sim_request *answers; /* NULL: none */
    size_t head;                       /* bytes before the answer */
    size_t size;
    uint8_t data[];
};

/* Where the answer to a parcel goes. */
struct address_of {
    struct wire *wire;
    uint32_t id;
    bool ring; /* through the ring of the wire's session */
};

static struct {
    struct address_of *of; /* owned; by parcel */
    uint64_t room;
} parcels;

static uint64_t wire_ns(struct sim *s, uint64_t salt)
{
    return NS_PER_US + chance_mix(salt ^ s->course->seed) % (s->p.wire_us * NS_PER_US + 1);
}

static struct chunk *chunk_make(struct wire *w, struct bytes head, struct bytes body)
{
    struct chunk *k = malloc(sizeof *k + head.size + body.size);
    *k = (struct chunk){.wire = w, .head = head.size, .size = head.size + body.size};
    if (head.size > 0) {
        memcpy(k->data, head.data, head.size);
    }
    if (body.size > 0) {
        memcpy(k->data + head.size, body.data, body.size);
    }
    return k;
}

/* In order. */
static uint64_t next_ns(struct sim *s, uint64_t *last_ns, uint64_t salt)
{
    uint64_t at_ns = s->now_ns + wire_ns(s, salt);
    *last_ns = at_ns > *last_ns ? at_ns : *last_ns;
    return *last_ns;
}

/* ---- to libgpud ------------------------------------------------------------------------------ */

static void on_back(struct sim *s, const struct hap *h)
{
    struct chunk *k = h->actor;
    struct wire *w = k->wire;
    (void)s;
    if (w->fd >= 0 && !w->cut && !w->ended) {
        if (k->answers != NULL) {
            seen_arrival(w->user, k->answers, bytes_of(k->data + k->head, k->size - k->head));
        }
        system_arrives(w->fd, bytes_of(k->data, k->size));
    }
    free(k);
}

static void send_back(struct sim *s, struct chunk *k)
{
    sim_at(s, next_ns(s, &k->wire->back_ns, k->size ^ s->agenda.order), on_back, k, 0, 0);
}

static void on_end(struct sim *s, const struct hap *h)
{
    struct wire *w = h->actor;
    (void)s;
    w->ended = true;
    if (w->fd >= 0) {
        system_ends(w->fd, (int)h->a);
    }
}

/* libgpud sees the end of the stream, or an error, after what is on its way. */
static void end_back(struct sim *s, struct wire *w, int error)
{
    sim_at(s, next_ns(s, &w->back_ns, w->pipe), on_end, w, (uint64_t)error, 0);
}

/* ---- the front's side ------------------------------------------------------------------------ */

static void forget_parcels(struct sim *s, const struct wire *w)
{
    for (uint64_t i = s->parcels; i > 0; i--) {
        if (parcels.of[i].wire == w) {
            s->parcel[i].lost = true;
        }
    }
}

static void on_closed(struct sim *s, const struct hap *h)
{
    struct wire *w = h->actor;
    w->served = false;
    if (w->era == s->era && front_alive(s)) {
        front_pipe_closed(s, w->pipe);
    }
}

/* The front will learn that the connection ended. */
static void tell(struct sim *s, struct wire *w, uint64_t at_ns)
{
    if (!w->told) {
        w->told = true;
        forget_parcels(s, w);
        sim_at(s, at_ns, on_closed, w, 0, 0);
    }
}

/* When the front has to know the session still. */
bool client_remembered(const struct sim *s, const struct sim_client *c)
{
    return !s->killed_session && !memory_failed() && c->left_era == s->era &&
           s->now_ns - c->left_ns < s->p.linger_ms * NS_PER_MS;
}

/* The user has no session from now on. */
static void note_down(struct wire *w)
{
    struct user *u = w->user;
    struct sim *s = u->s;
    if (w->pipe == u->c->pipe && u->down_ns == 0) {
        u->down_ns = s->now_ns;
        u->c->left_ns = s->now_ns;
        u->c->left_era = s->era;
    }
}

/* Returns its number. */
static uint64_t parcel_add(struct wire *w, struct bytes message, uint32_t id, bool ring)
{
    struct sim *s = w->user->s;
    if (s->parcels + 1 >= s->parcels_room) {
        s->parcels_room = 2 * s->parcels_room + 1024;
        s->parcel = realloc(s->parcel, s->parcels_room * sizeof *s->parcel);
        parcels.of = realloc(parcels.of, s->parcels_room * sizeof *parcels.of);
    }
    struct sim_request *q = seen_request(w, message);
    uint64_t number = ++s->parcels;
    s->parcel[number] = (struct sim_parcel){
        .request = q, .pipe = w->pipe, .era = s->era, .arrived = !ring, .lost = w->told};
    parcels.of[number] = (struct address_of){.wire = w, .id = id, .ring = ring};
    q->sendings++;
    return number;
}

static void take(struct sim *s, struct wire *w, struct message *m)
{
    front_request(s, parcel_add(w, message_view(m), m->id, false));
}

/* The session's latest connection. */
static struct wire *wire_of_session(struct sim *s, uint64_t session)
{
    for (unsigned i = 0; i < s->clients; i++) {
        for (struct wire *w = user_of(&s->client[i])->wires; w != NULL; w = w->next) {
            if (w->era == s->era && w->session == session) {
                return w;
            }
        }
    }
    sim_fail(s, "ring: no user has session %" PRIu64, session);
}

void wire_take_ring(struct sim *s, uint64_t session, uint32_t id, struct bytes message)
{
    struct wire *w = wire_of_session(s, session);
    sim_log(s, "user %u: by the ring", w->user->index);
    (void)parcel_add(w, message, id, true);
}

/* An answer in a ring has come. */
void wire_answer_ring(struct sim *s, uint64_t session, uint32_t id, struct bytes message)
{
    for (uint64_t i = s->parcels; i > 0 && !s->closing; i--) {
        struct sim_parcel *p = &s->parcel[i];
        const struct address_of *to = &parcels.of[i];
        if (to->ring && to->id == id && to->wire->session == session && p->era == s->era) {
            p->over = true;
            rules_answer(s, p, message);
            seen_answer(s, p, message);
            seen_arrival(to->wire->user, p->request, message);
            return;
        }
    }
}

static void on_there(struct sim *s, const struct hap *h)
{
    struct chunk *k = h->actor;
    struct wire *w = k->wire;
    struct bytes rest = bytes_of(k->data, k->size);
    struct message *m = NULL;
    struct err e = ERR_INIT;
    int rc = 1;
    while (rc == 1 && w->served && !w->cut && w->era == s->era && s->accepts) {
        rc = sp_read(&w->reader, &rest, &m, &e);
        if (rc == 1) {
            take(s, w, m);
            message_unref(m);
        }
    }
    if (rc < 0) {
        sim_fail(s, "bytes: user %u sends what the front cannot read: %s", w->user->index, e.text);
    }
    free(k);
}

void wire_send(struct wire *w, struct bytes data)
{
    struct sim *s = w->user->s;
    if (w->served && !w->told) {
        struct chunk *k = chunk_make(w, data, bytes_str(""));
        sim_at(s, next_ns(s, &w->there_ns, data.size ^ s->agenda.order), on_there, k, 0, 0);
    }
}

/* ---- answers of the front -------------------------------------------------------------------- */

void client_answer(struct sim *s, uint64_t parcel, struct bytes message)
{
    uint8_t head[SP_HEAD_MAX];
    struct sim_parcel *p = &s->parcel[parcel];
    const struct address_of *to = &parcels.of[parcel];
    if (s->closing) {
        return;
    }
    if (p->over) {
        sim_fail(s, "answer: request %" PRIu64 " of user %u is answered twice", p->request->seq,
                 p->request->client->index);
    }
    p->over = true;
    rules_answer(s, p, message);
    seen_answer(s, p, message);
    if (proto_kind(message) == MSG_KIND_WELCOME) {
        to->wire->session = p->request->client->session;
    }
    if (to->wire->told) {
        return; /* its connection has ended */
    }
    size_t size = sp_head(SP_IPC, to->id, message.size, head);
    struct chunk *k = chunk_make(to->wire, bytes_of(head, size), message);
    k->answers = p->request;
    send_back(s, k);
}

/* No answer: the connection lost its session, or the request came again. */
void client_drop(struct sim *s, uint64_t parcel)
{
    struct sim_parcel *p = &s->parcel[parcel];
    const struct sim_request *q = p->request;
    if (s->closing) {
        return;
    }
    if (p->over) {
        sim_fail(s, "answer: request %" PRIu64 " of user %u is answered, and dropped", q->seq,
                 q->client->index);
    }
    bool newer = q->sendings > 1 || q->kind == MSG_KIND_WAIT;
    if (!p->lost && !newer && !q->client->said_bye && !s->killed_session) {
        sim_fail(s, "answer: request %" PRIu64 " of user %u is dropped, and libgpud waits", q->seq,
                 q->client->index);
    }
    p->over = true;
}

/* ---- begin and end --------------------------------------------------------------------------- */

struct wire *wire_open(struct user *u, int fd)
{
    struct sim *s = u->s;
    uint8_t hello[SP_HELLO_BYTES];
    if (!s->accepts || u->dying) {
        return NULL;
    }
    struct wire *w = calloc(1, sizeof *w);
    *w = (struct wire){.user = u,
                       .pipe = ++s->pipes,
                       .fd = fd,
                       .era = s->era,
                       .served = true,
                       .life = u->c->lives,
                       .next = u->wires};
    u->wires = w;
    u->c->pipe = w->pipe;
    sp_reader_init(&w->reader, SP_IPC, SP_REQ, PROTO_MESSAGE_MAX);
    sp_hello(SP_REP, hello);
    send_back(s, chunk_make(w, bytes_of(hello, sizeof hello), bytes_str("")));
    return w;
}

void wire_closed(struct wire *w)
{
    struct sim *s = w->user->s;
    w->fd = -1;
    note_down(w);
    tell(s, w, next_ns(s, &w->there_ns, w->pipe));
}

void wire_break(struct wire *w, bool lost, bool quiet)
{
    struct sim *s = w->user->s;
    uint64_t late = quiet ? chance_mix(w->pipe) % (2 * NS_PER_S) : 0;
    w->cut = w->cut || lost;
    note_down(w);
    end_back(s, w, lost && w->pipe % 2 == 0 ? ECONNRESET : 0);
    tell(s, w, late + next_ns(s, &w->there_ns, w->pipe));
}

/* The front closes a connection. */
void client_closed(struct sim *s, uint32_t pipe)
{
    for (unsigned i = 0; i < s->clients && !s->closing; i++) {
        struct wire *w = user_of(&s->client[i])->wires;
        while (w != NULL && w->pipe != pipe) {
            w = w->next;
        }
        if (w != NULL) {
            w->served = false;
            note_down(w);
            end_back(s, w, 0);
            tell(s, w, next_ns(s, &w->there_ns, w->pipe));
        }
    }
}

/* The front has ended, and its connections with it. What it sent before still comes. */
void client_break(struct sim *s, struct sim_client *c, bool back)
{
    (void)back;
    for (struct wire *w = user_of(c)->wires; w != NULL; w = w->next) {
        if (w->served) {
            w->served = false;
            w->told = true;
            forget_parcels(s, w);
            note_down(w);
            end_back(s, w, w->pipe % 4 == 0 ? ECONNRESET : 0);
        }
    }
}

void wires_free(struct sim *s)
{
    for (unsigned i = 0; i < s->clients; i++) {
        struct user *u = user_of(&s->client[i]);
        while (u->wires != NULL) {
            struct wire *w = u->wires;
            u->wires = w->next;
            sp_reader_finish(&w->reader);
            free(w);
        }
    }
    free(parcels.of);
    memset(&parcels, 0, sizeof parcels);
}
