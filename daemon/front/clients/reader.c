/* The receiving side of a connection: bytes become SP messages, and messages become requests for
 * the loop. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/log.h"
#include "daemon/front/clients/listener_int.h"
#include "proto/codec.h"
#include "proto/limits.h"

#define TLS_LOG_NS (10 * NS_PER_S) /* between two lines of the log about failed handshakes */

/* ---- messages to requests -------------------------------------------------------------------- */

static bool is_known(unsigned kind)
{
    switch (kind) {
#define X(NAME, name, value) case MSG_KIND_##NAME:
        PROTO_REQUESTS(X)
#undef X
        return true;
    default:
        return false;
    }
}

/* A request of this version of the protocol, or possibly of a later one. */
static bool is_request(struct bytes message, unsigned kind)
{
    return is_known(kind) ||
           (kind != MSG_KIND_NONE && kind < PROTO_REQUEST_KINDS && proto_well_formed(message));
}

/* Decodes into a new request, which owns the message on success only. */
static int decode(struct message *m, unsigned kind, struct request **ret_r, struct err *e)
{
    if (!is_known(kind)) {
        return err_set(e, ERR_UNSUPPORTED,
                       "requests of kind %u are not known here: this daemon speaks protocol %d.%d",
                       kind, PROTO_MAJOR, PROTO_MINOR);
    }
    struct request *r = malloc(sizeof *r);
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "no memory for a request");
    }
    memset(r, 0, offsetof(struct request, msg));
    int rc = proto_decode(schema_find(kind), message_view(m), &r->msg, e);
    if (rc != 0) {
        free(r);
        return rc;
    }
    r->kind = kind;
    r->body = m;
    r->size = m->size;
    *ret_r = r;
    return 0;
}

/* ---- requests to the loop -------------------------------------------------------------------- */

/* What becomes of a request. */
enum fate {
    FATE_QUEUED,  /* the loop gets it */
    FATE_PARKED,  /* the request waits for a slot */
    FATE_REFUSED, /* its connection has no place */
    FATE_DROPPED, /* its connection ended */
};

/* Locked: steps to the state that follows from the bytes read so far. */
static void settle(struct connection *c)
{
    bool half = !sp_between(&c->reader);
    bool greets = c->state == CONNECTION_GREETING && c->reader.greeted;
    if (greets || c->state == CONNECTION_SILENT || c->state == CONNECTION_SILENT_HALF) {
        (void)connection_step(c, half ? CONNECTION_SILENT_HALF : CONNECTION_SILENT);
    } else if (c->state == CONNECTION_OPEN || c->state == CONNECTION_HALF) {
        (void)connection_step(c, half ? CONNECTION_HALF : CONNECTION_OPEN);
    }
}

/* Locked. */
static void enqueue(struct connection *c, struct listener_slot *slot, struct request *r)
{
    struct listener *l = c->listener;
    c->said_hello = c->said_hello || r->kind == MSG_KIND_HELLO;
    c->active_ns = clock_now_ns();
    r->peer = c->peer;
    r->slot = slot;
    rounds_put(c, r);
    l->stats.requests++;
    l->wake_pending = true;
}

/* Locked. The caller keeps the request if it is refused or dropped. */
static enum fate take(struct connection *c, struct request *r)
{
    struct listener *l = c->listener;
    settle(c);
    if (c->state >= CONNECTION_CLOSING) {
        return FATE_DROPPED;
    }
    if (c->crowded) {
        return FATE_REFUSED;
    }
    if (l->busy >= l->options.requests_max) {
        c->pending = r;
        c->parked = true;
        DL_APPEND2(l->parked, c, parked_prev, parked_next);
        return FATE_PARKED;
    }
    struct listener_slot *slot = slot_take(c, r->body->id, r->kind == MSG_KIND_WAIT);
    if (slot == NULL) { /* without a slot no answer comes, and the client would hang */
        connection_end(c);
        return FATE_DROPPED;
    }
    enqueue(c, slot, r);
    return FATE_QUEUED;
}

/* Answers a request with an error. false: the connection ended. */
static bool refuse(struct connection *c, uint32_t id, const struct err *e)
{
    struct listener *l = c->listener;
    struct listener_slot *slot = NULL;
    uint8_t room[PROTO_ERROR_BYTES];
    listener_lock(l);
    settle(c);
    if (c->state < CONNECTION_CLOSING) {
        slot = slot_take(c, id, false);
    }
    if (slot == NULL) {
        connection_end(c);
    }
    listener_unlock(l);
    if (slot != NULL) {
        writer_post(c, slot, proto_error_put(e, true, room));
    }
    return slot != NULL;
}

/* Takes the request. true: the reader continues. */
static bool hand_over(struct connection *c, struct request *r)
{
    struct listener *l = c->listener;
    struct err e = ERR_INIT;
    uint32_t id = r->body->id;
    listener_lock(l);
    enum fate fate = take(c, r);
    if (fate == FATE_REFUSED) {
        (void)place_refusal(l, &e);
    }
    listener_unlock(l);
    if (fate == FATE_REFUSED || fate == FATE_DROPPED) {
        request_destroy(r);
    }
    return fate == FATE_QUEUED || (fate == FATE_REFUSED && refuse(c, id, &e));
}

/* Ends the connection. broken: because it sent an invalid message. */
static void end(struct connection *c, bool broken)
{
    listener_lock(c->listener);
    c->listener->stats.protocol_errors += broken;
    connection_end(c);
    listener_unlock(c->listener);
}

/* Takes the message. true: the reader continues. */
static bool read_message(struct connection *c, struct message *m)
{
    struct err e = ERR_INIT;
    struct request *r = NULL;
    unsigned kind = proto_kind(message_view(m));
    if (!is_request(message_view(m), kind)) {
        message_unref(m);
        end(c, true);
        return false;
    }
    if (decode(m, kind, &r, &e) == 0) {
        return hand_over(c, r);
    }
    listener_lock(c->listener);
    c->listener->stats.protocol_errors++;
    listener_unlock(c->listener);
    uint32_t id = m->id;
    message_unref(m);
    return refuse(c, id, &e);
}

/* ---- bytes to messages ----------------------------------------------------------------------- */

static void receive(struct connection *c)
{
    nng_iov iov = {.iov_buf = c->input, .iov_len = INPUT_BYTES};
    size_t room = 0;
    uint8_t *direct = sp_direct(&c->reader, &room);
    if (direct != NULL && room >= INPUT_BYTES) {
        iov = (nng_iov){.iov_buf = direct, .iov_len = room};
    }
    (void)nng_aio_set_iov(c->recv, 1, &iov); /* fails only for too many buffers */
    nng_stream_recv(c->stream, c->recv);
}

/* Reads the bytes that were received, then receives more. */
static void read_on(struct connection *c)
{
    struct message *m = NULL;
    struct err e = ERR_INIT;
    int rc;
    while ((rc = sp_read(&c->reader, &c->rest, &m, &e)) == 1) {
        if (!read_message(c, m)) {
            return;
        }
    }
    if (rc < 0) {
        end(c, true);
        return;
    }
    listener_lock(c->listener);
    settle(c);
    bool goes_on = c->state < CONNECTION_CLOSING;
    listener_unlock(c->listener);
    if (goes_on) {
        receive(c);
    }
}

void reader_start(struct connection *c)
{
    receive(c);
}

/* The bytes are the rest of a long message, received in place. */
static void received_direct(struct connection *c, size_t size)
{
    struct message *m = NULL;
    struct err e = ERR_INIT;
    int rc = sp_direct_done(&c->reader, size, &m, &e);
    if (rc < 0) {
        end(c, false);
    } else if (rc == 0 || read_message(c, m)) {
        read_on(c);
    }
}

/* Counts and logs the failed handshake of a connection, if NNG's result says that it was one. */
static void note_tls(struct connection *c, int rc)
{
    struct listener *l = c->listener;
    bool failed = rc == NNG_ECRYPTO || rc == NNG_EPEERAUTH || rc == NNG_EPROTO;
    if (!c->peer.tls || !failed) {
        return;
    }
    listener_lock(l);
    uint64_t now = clock_now_ns();
    bool log = l->tls_logged_ns == 0 || now - l->tls_logged_ns >= TLS_LOG_NS;
    l->stats.tls_errors++;
    l->tls_logged_ns = log ? now : l->tls_logged_ns;
    uint64_t count = l->stats.tls_errors;
    listener_unlock(l);
    if (log) {
        log_say(
            LOG_CLIENT_REFUSED,
            "TLS with %s failed: %s: it speaks no TLS 1.2, refuses the certificate, or has none "
            "that tls_client_ca signed (%llu so far)",
            c->from, nng_strerror(rc), (unsigned long long)count);
    }
}

void reader_received(void *connection)
{
    struct connection *c = connection;
    size_t size = nng_aio_count(c->recv);
    if (nng_aio_result(c->recv) != 0) {
        note_tls(c, nng_aio_result(c->recv));
        end(c, false);
        return;
    }
    size_t room = 0;
    if (sp_direct(&c->reader, &room) != NULL && room >= INPUT_BYTES) {
        received_direct(c, size);
    } else {
        c->rest = bytes_of(c->input, size);
        read_on(c);
    }
}

void readers_resume(struct listener *l)
{
    listener_lock(l);
    while (l->parked != NULL && l->busy < l->options.requests_max) {
        struct connection *c = l->parked;
        DL_DELETE2(l->parked, c, parked_prev, parked_next);
        c->parked = false;
        connection_visit(c);
        listener_unlock(l);
        struct request *r = c->pending;
        c->pending = NULL;
        if (hand_over(c, r)) {
            read_on(c);
        }
        listener_lock(l);
        connection_leave(c);
    }
    listener_unlock(l);
}
