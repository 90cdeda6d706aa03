/*
 * The sending side of a connection. The loop sends an answer at once, as far as the system takes
 * it. The rest, and later answers, wait in a queue that NNG's callback sends. So an answer usually
 * needs no other thread of the daemon.
 */
#include <stdlib.h>
#include <string.h>

#include "common/log.h"
#include "daemon/front/clients/listener_int.h"

#define GATHER_MAX 8u /* answers of one send; NNG's limit */

static nng_iov iov_of(const void *data, size_t size)
{
    return (nng_iov){.iov_buf = (void *)(uintptr_t)data, .iov_len = size}; /* NNG only reads it */
}

/* ---- the queue; all locked ------------------------------------------------------------------- */

static struct answer *answer_make(struct listener_slot *slot, struct bytes head,
                                  struct bytes message)
{
    struct answer *a = malloc(sizeof *a + head.size + message.size);
    if (a != NULL) {
        *a = (struct answer){.slot = slot, .size = head.size + message.size};
        if (head.size > 0) {
            memcpy(a->data, head.data, head.size);
        }
        if (message.size > 0) {
            memcpy(a->data + head.size, message.data, message.size);
        }
    }
    return a;
}

static void answer_end(struct listener *l, struct answer *a)
{
    if (a->slot != NULL) {
        slot_free(l, a->slot);
    }
    free(a);
}

/* Takes the slot. Without memory the connection ends, because its client would wait for the answer
 * for ever. It ends as well when its unread answers exceed the limit. */
static void queue(struct connection *c, struct listener_slot *slot, struct bytes head,
                  struct bytes message)
{
    struct listener *l = c->listener;
    struct answer *a = answer_make(slot, head, message);
    if (a == NULL) {
        connection_end(c);
        if (slot != NULL) {
            slot_free(l, slot);
        }
        return;
    }
    *c->last = a;
    c->last = &a->next;
    c->unread += a->size;
    if (c->unread > l->options.unread_max && c->state < CONNECTION_CLOSING) {
        l->stats.unread++;
        log_say(LOG_CLIENT_ENDED,
                "a connection of user %u is closed: it left %zu bytes of answers unread, at most "
                "%llu",
                c->user->uid, c->unread, (unsigned long long)l->options.unread_max);
        connection_end(c);
    }
}

static void sent(struct connection *c, size_t size)
{
    while (size > 0 && c->first != NULL) {
        struct answer *a = c->first;
        size_t part = a->size - a->sent < size ? a->size - a->sent : size;
        a->sent += part;
        c->unread -= part;
        size -= part;
        if (a->sent == a->size) {
            c->first = a->next;
            c->last = c->first == NULL ? &c->first : c->last;
            answer_end(c->listener, a);
        }
    }
}

void writer_drop(struct connection *c)
{
    while (c->first != NULL) {
        struct answer *a = c->first;
        c->first = a->next;
        answer_end(c->listener, a);
    }
    c->last = &c->first;
    c->unread = 0;
}

/* NNG makes a TLS record of the first part of a send and leaves the others to the next one, so
 * answers that wait go into one. A long answer goes from where it is. */
static nng_iov pack(struct connection *c)
{
    size_t size = 0;
    for (const struct answer *a = c->first; a != NULL; a = a->next) {
        size_t part = a->size - a->sent;
        if (part > OUTPUT_BYTES - size) {
            break;
        }
        memcpy(c->output + size, a->data + a->sent, part);
        size += part;
    }
    return size > 0 ? iov_of(c->output, size)
                    : iov_of(c->first->data + c->first->sent, c->first->size - c->first->sent);
}

/* Gathers what is to be sent. false: nothing, and the caller is not the writing thread any more. */
static bool gather(struct connection *c, nng_iov iov[GATHER_MAX], unsigned *ret_count)
{
    unsigned count = 0;
    if (c->state < CONNECTION_CLOSING && c->output != NULL && c->first != NULL) {
        iov[count++] = pack(c);
    } else if (c->state < CONNECTION_CLOSING) {
        for (struct answer *a = c->first; a != NULL && count < GATHER_MAX; a = a->next) {
            iov[count++] = iov_of(a->data + a->sent, a->size - a->sent);
        }
    }
    c->writing = count > 0;
    *ret_count = count;
    return count > 0;
}

/* ---- sending --------------------------------------------------------------------------------- */

static void send_all(struct connection *c, const nng_iov *iov, unsigned count)
{
    (void)nng_aio_set_iov(c->send, count, iov);
    nng_stream_send(c->stream, c->send);
}

void writer_sent(void *connection)
{
    struct connection *c = connection;
    nng_iov iov[GATHER_MAX];
    unsigned count = 0;
    listener_lock(c->listener);
    if (nng_aio_result(c->send) != 0) {
        connection_end(c);
    } else {
        sent(c, nng_aio_count(c->send));
    }
    bool more = gather(c, iov, &count);
    listener_unlock(c->listener);
    if (more) {
        send_all(c, iov, count);
    }
}

static struct bytes head_of(const struct connection *c, const struct listener_slot *slot,
                            size_t size, uint8_t room[SP_HEAD_MAX])
{
    return bytes_of(room, slot == NULL ? 0 : sp_head(c->reader.transport, slot->id, size, room));
}

void writer_post(struct connection *c, struct listener_slot *slot, struct bytes message)
{
    nng_iov iov[GATHER_MAX];
    unsigned count = 0;
    uint8_t room[SP_HEAD_MAX];
    struct bytes head = head_of(c, slot, message.size, room);
    listener_lock(c->listener);
    queue(c, slot, head, message);
    bool begins = !c->writing && gather(c, iov, &count);
    listener_unlock(c->listener);
    if (begins) {
        send_all(c, iov, count);
    }
}

/* Sends what the system takes now. Returns the number of bytes; negative: the connection broke. An
 * aio without a callback ends in this thread, and an aborted one ends at once. */
static ptrdiff_t send_now(struct listener *l, nng_stream *stream, struct bytes head,
                          struct bytes message)
{
    const nng_iov iov[] = {iov_of(head.data, head.size), iov_of(message.data, message.size)};
    (void)nng_aio_set_iov(l->reply, message.size > 0 ? 2 : 1, iov);
    nng_stream_send(stream, l->reply);
    nng_aio_abort(l->reply, NNG_ECANCELED);
    nng_aio_wait(l->reply);
    int rc = nng_aio_result(l->reply);
    return rc == 0 ? (ptrdiff_t)nng_aio_count(l->reply) : rc == NNG_ECANCELED ? 0 : -1;
}

static struct bytes behind(struct bytes b, size_t skipped)
{
    return skipped < b.size ? bytes_of(b.data + skipped, b.size - skipped) : (struct bytes){0};
}

/* The caller holds a visit and is the writing thread. Over TLS all bytes go through the queue: NNG
 * closes such a stream when a send is aborted. */
static void reply_now(struct connection *c, struct listener_slot *slot, struct bytes head,
                      struct bytes message)
{
    struct listener *l = c->listener;
    nng_iov iov[GATHER_MAX];
    unsigned count = 0;
    ptrdiff_t n = c->peer.tls ? 0 : send_now(l, c->stream, head, message);
    listener_lock(l);
    if (n == (ptrdiff_t)(head.size + message.size) || n < 0) {
        slot_free(l, slot);
    } else {
        size_t skipped = (size_t)n > head.size ? (size_t)n - head.size : 0;
        queue(c, slot, behind(head, (size_t)n), behind(message, skipped));
    }
    if (n < 0) {
        connection_end(c);
    }
    bool more = gather(c, iov, &count);
    if (!more) {
        connection_leave(c);
    }
    listener_unlock(l);
    if (more) {
        send_all(c, iov, count);
        listener_lock(l);
        connection_leave(c);
        listener_unlock(l);
    }
}

void writer_reply(struct listener *l, struct listener_slot *slot, struct bytes message)
{
    uint8_t room[SP_HEAD_MAX];
    struct connection *c = slot->connection;
    struct bytes head = head_of(c, slot, message.size, room);
    bool now = false;
    listener_lock(l);
    if (c->state >= CONNECTION_CLOSING) {
        slot_free(l, slot);
    } else if (c->writing) {
        queue(c, slot, head, message);
    } else {
        now = true;
        c->writing = true;
        connection_visit(c);
    }
    listener_unlock(l);
    if (now) {
        reply_now(c, slot, head, message);
    }
}
