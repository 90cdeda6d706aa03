/* A connection's life: from its stream to the moment when nothing of it is left. */
#include "daemon/front/clients/listener_int.h"

#include <stdlib.h>

#include "common/clock.h"
#include "daemon/front/model/request.h"

#define TO(state) (1u << (state))

/* The steps that there are. */
static const unsigned steps[CONNECTION_STATES] = {
    [CONNECTION_NEW] = TO(CONNECTION_GREETING),
    [CONNECTION_GREETING] = TO(CONNECTION_SILENT) | TO(CONNECTION_CLOSING),
    [CONNECTION_SILENT] = TO(CONNECTION_OPEN) | TO(CONNECTION_HALF) | TO(CONNECTION_CLOSING),
    [CONNECTION_OPEN] = TO(CONNECTION_HALF) | TO(CONNECTION_CLOSING),
    [CONNECTION_HALF] = TO(CONNECTION_HALF) | TO(CONNECTION_OPEN) | TO(CONNECTION_CLOSING),
    [CONNECTION_CLOSING] = TO(CONNECTION_ENDED),
    [CONNECTION_ENDED] = 0,
};

/* Where connections of a state are listed, if they are. */
static struct connection **list_of(struct listener *l, enum connection_state state)
{
    switch (state) {
    case CONNECTION_GREETING:
    case CONNECTION_SILENT:
        return &l->slow;
    case CONNECTION_HALF:
        return &l->half;
    case CONNECTION_ENDED:
        return &l->ended_list;
    default:
        return NULL;
    }
}

static uint64_t time_of(const struct listener *l, enum connection_state state)
{
    return state == CONNECTION_HALF       ? ns_add(clock_now_ns(), l->options.stall_ns)
           : state == CONNECTION_GREETING ? ns_add(clock_now_ns(), l->options.handshake_ns)
                                          : NS_NEVER;
}

bool connection_step(struct connection *c, enum connection_state to)
{
    struct listener *l = c->listener;
    if ((steps[c->state] & TO(to)) == 0) {
        return false;
    }
    struct connection **from = list_of(l, c->state);
    struct connection **into = list_of(l, to);
    bool moves = from != into || to == CONNECTION_HALF;
    if (moves && from != NULL) {
        DL_DELETE(*from, c);
    }
    if (moves && into != NULL) {
        /* The loop's timer, or its news. The old timer finds a deadline that moved back. */
        l->wake_due = l->wake_due || (from != into && *into == NULL);
        c->deadline_ns = time_of(l, to);
        DL_APPEND(*into, c);
    }
    c->state = to;
    return true;
}

/* ---- its end --------------------------------------------------------------------------------- */

static void hand_to_closer(struct connection *c)
{
    DL_APPEND(c->listener->closing_list, c);
    (void)pthread_cond_signal(&c->listener->to_close);
}

void connection_end(struct connection *c)
{
    struct listener *l = c->listener;
    if (!connection_step(c, CONNECTION_CLOSING)) {
        return;
    }
    place_release(l, c);
    if (c->parked) {
        c->parked = false;
        DL_DELETE2(l->parked, c, parked_prev, parked_next);
    }
    if (c->visits == 0) {
        hand_to_closer(c);
    }
}

void connection_visit(struct connection *c)
{
    c->visits++;
}

void connection_leave(struct connection *c)
{
    if (--c->visits == 0 && c->state == CONNECTION_CLOSING) {
        hand_to_closer(c);
    }
}

/* Blocks until no callback of it runs; frees all but the struct. */
static void finish(struct connection *c)
{
    nng_stream_close(c->stream);
    nng_aio_stop(c->recv);
    nng_aio_stop(c->send);
    nng_stream_free(c->stream);
    nng_aio_free(c->recv);
    nng_aio_free(c->send);
    sp_reader_finish(&c->reader);
    request_destroy(c->pending);
    c->pending = NULL;
    free(c->input);
    c->input = NULL;
}

static void close_one(struct listener *l)
{
    struct connection *c = l->closing_list;
    DL_DELETE(l->closing_list, c);
    listener_unlock(l);
    finish(c);
    listener_lock(l);
    writer_drop(c);
    (void)connection_step(c, CONNECTION_ENDED);
    l->alive--;
    (void)pthread_cond_signal(&l->ended);
}

/* NNG's own threads cannot: they would wait for themselves. The loop must not wait. */
void *connections_closer(void *listener)
{
    struct listener *l = listener;
    listener_lock(l);
    while (l->closer_runs) {
        if (l->closing_list != NULL) {
            close_one(l);
            listener_unlock(l); /* wakes the loop */
            listener_lock(l);
        } else {
            (void)pthread_cond_wait(&l->to_close, &l->lock);
        }
    }
    listener_unlock(l);
    return NULL;
}

void connection_told(struct connection *c)
{
    struct listener *l = c->listener;
    HASH_DELETE(hh, l->connections, c);
    c->user->connections--;
    c->told = true;
    user_release(l, c->user);
    if (c->outstanding == 0) {
        connection_free(c);
    }
}

void connection_free(struct connection *c)
{
    free(c);
}

/* ---- its begin ------------------------------------------------------------------------------- */

static struct peer peer_of(const struct door *door, nng_stream *stream)
{
    struct peer peer = {0};
    uint64_t uid = 0;
    uint64_t gid = 0;
    uint64_t pid = 0;
    if (door->ipc && nng_stream_get_uint64(stream, NNG_OPT_IPC_PEER_UID, &uid) == 0 &&
        nng_stream_get_uint64(stream, NNG_OPT_IPC_PEER_GID, &gid) == 0 &&
        nng_stream_get_uint64(stream, NNG_OPT_IPC_PEER_PID, &pid) == 0) {
        peer.local = true;
        peer.uid = (uint32_t)uid;
        peer.gid = (uint32_t)gid;
        peer.pid = (int32_t)pid;
    }
    return peer;
}

/* Takes the stream; NULL: no memory. */
static struct connection *make(struct door *door, nng_stream *stream)
{
    struct connection *c = calloc(1, sizeof *c);
    if (c == NULL) {
        nng_stream_free(stream);
        return NULL;
    }
    c->listener = door->listener;
    c->stream = stream;
    c->last = &c->first;
    c->peer = peer_of(door, stream);
    c->input = malloc(INPUT_BYTES);
    sp_reader_init(&c->reader, door->ipc ? SP_IPC : SP_TCP, SP_REQ, PROTO_MESSAGE_MAX);
    if (c->input == NULL || nng_aio_alloc(&c->recv, reader_received, c) != 0 ||
        nng_aio_alloc(&c->send, writer_sent, c) != 0) {
        finish(c);
        connection_free(c);
        return NULL;
    }
    return c;
}

void connection_admit(struct door *door, nng_stream *stream)
{
    struct listener *l = door->listener;
    struct connection *c = make(door, stream);
    if (c == NULL) {
        return;
    }
    listener_lock(l);
    bool in = place_take(l, c);
    if (in) {
        l->alive++;
        c->active_ns = clock_now_ns();
        (void)connection_step(c, CONNECTION_GREETING);
        connection_visit(c);
    }
    listener_unlock(l);
    if (!in) {
        finish(c);
        connection_free(c);
        return;
    }
    uint8_t hello[SP_HELLO_BYTES];
    sp_hello(SP_REP, hello);
    writer_post(c, NULL, bytes_of(hello, sizeof hello));
    reader_start(c);
    listener_lock(l);
    connection_leave(c);
    listener_unlock(l);
}

struct connection *connection_find(struct listener *l, uint32_t pipe)
{
    struct connection *c = NULL;
    HASH_FIND(hh, l->connections, &pipe, sizeof pipe, c);
    return c;
}
