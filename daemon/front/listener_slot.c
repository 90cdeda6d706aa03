/* One REP context: receive, decode, hand over, answer, receive again. */
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "daemon/front/listener_int.h"
#include "proto/codec.h"

void slot_receive(struct listener_slot *slot)
{
    slot->pipe = 0;
    atomic_store(&slot->state, SLOT_RECEIVING);
    nng_ctx_recv(slot->ctx, slot->aio);
}

void slot_release(struct listener_slot *slot)
{
    connection_answered(slot);
    slot_receive(slot);
}

void slot_send(struct listener_slot *slot, struct bytes message)
{
    nng_msg *msg = NULL;
    if (nng_msg_alloc(&msg, message.size) != 0) {
        /* an answer that never comes would hang its client */
        connection_close(slot->listener, slot->pipe);
        slot_release(slot);
        return;
    }
    if (message.size > 0) {
        memcpy(nng_msg_body(msg), message.data, message.size);
    }
    nng_aio_set_msg(slot->aio, msg);
    atomic_store(&slot->state, SLOT_SENDING);
    nng_ctx_send(slot->ctx, slot->aio);
}

static void count_protocol_error(struct listener *l)
{
    pthread_mutex_lock(&l->lock);
    l->stats.protocol_errors++;
    pthread_mutex_unlock(&l->lock);
}

/* Tells the client what was wrong with its request. */
static void refuse(struct listener_slot *slot, const struct err *e)
{
    if (!connection_take(slot, NULL)) {
        slot_receive(slot);
        return;
    }
    uint8_t room[PROTO_ERROR_BYTES];
    slot_send(slot, proto_error_put(e, true, room));
}

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

/* A request that a later version of the protocol may have. */
static bool is_newer(nng_msg *msg, unsigned kind)
{
    return kind != MSG_KIND_NONE && kind < PROTO_REQUEST_KINDS &&
           proto_well_formed(bytes_of(nng_msg_body(msg), nng_msg_len(msg)));
}

/* Decodes into a new request; the message is the request's on success only. */
static int decode(nng_msg *msg, unsigned kind, struct request **ret_r, struct err *e)
{
    if (!is_known(kind)) {
        return err_set(e, ERR_UNSUPPORTED,
                       "requests of kind %u are not known here: this daemon speaks protocol %d.%d",
                       kind, PROTO_MAJOR, PROTO_MINOR);
    }
    struct request *r = malloc(sizeof *r);
    if (r == NULL) {
        return err_set(e, ERR_NOMEM, "a request's memory");
    }
    memset(r, 0, offsetof(struct request, msg));
    int rc =
        proto_decode(schema_find(kind), bytes_of(nng_msg_body(msg), nng_msg_len(msg)), &r->msg, e);
    if (rc != 0) {
        free(r);
        return rc;
    }
    r->kind = kind;
    r->body = msg;
    r->size = nng_msg_len(msg);
    *ret_r = r;
    return 0;
}

static void received(struct listener_slot *slot)
{
    struct listener *l = slot->listener;
    nng_msg *msg = nng_aio_get_msg(slot->aio);
    nng_aio_set_msg(slot->aio, NULL);
    slot->pipe = (uint32_t)nng_pipe_id(nng_msg_get_pipe(msg));
    unsigned kind = proto_kind(bytes_of(nng_msg_body(msg), nng_msg_len(msg)));
    struct err e = ERR_INIT;
    struct request *r = NULL;
    if (!is_known(kind) && !is_newer(msg, kind)) {
        nng_msg_free(msg);
        count_protocol_error(l);
        connection_close(slot->listener, slot->pipe);
        slot_receive(slot);
        return;
    }
    if (decode(msg, kind, &r, &e) != 0) {
        nng_msg_free(msg);
        count_protocol_error(l);
        refuse(slot, &e);
        return;
    }
    r->slot = slot;
    atomic_store(&slot->state, SLOT_HELD);
    if (connection_take(slot, r)) {
        return;
    }
    request_destroy(r);
    if (connection_crowded(slot, &e) != 0) {
        refuse(slot, &e);
    } else {
        slot_receive(slot);
    }
}

static void completed(void *data)
{
    struct listener_slot *slot = data;
    int rc = nng_aio_result(slot->aio);
    if (atomic_load(&slot->state) == SLOT_SENDING) {
        if (rc != 0) {
            nng_msg_free(nng_aio_get_msg(slot->aio));
            nng_aio_set_msg(slot->aio, NULL);
        }
        if (rc == NNG_ECLOSED || rc == NNG_ECANCELED) {
            atomic_store(&slot->state, SLOT_DEAD);
            return;
        }
        slot_release(slot);
        return;
    }
    if (rc != 0) { /* only a closed socket ends a receive */
        atomic_store(&slot->state, SLOT_DEAD);
        return;
    }
    received(slot);
}

int slot_init(struct listener_slot *slot, struct listener *l, struct err *e)
{
    slot->listener = l;
    atomic_init(&slot->state, SLOT_DEAD);
    int rc = nng_aio_alloc(&slot->aio, completed, slot);
    if (rc == 0) {
        rc = nng_ctx_open(&slot->ctx, l->socket);
        if (rc != 0) {
            nng_aio_free(slot->aio);
        }
    }
    return rc == 0 ? 0 : err_set(e, ERR_NOMEM, "a context: %s", nng_strerror(rc));
}

void request_destroy(struct request *r)
{
    if (r != NULL) {
        if (r->body != NULL) {
            nng_msg_free(r->body);
        }
        free(r);
    }
}
