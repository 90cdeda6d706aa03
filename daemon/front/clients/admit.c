/* Admits a new connection: finds its peer, makes it, gives it a place, and exchanges the first
 * bytes. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/clock.h"
#include "daemon/front/clients/listener_int.h"

static struct peer peer_of(const struct door *door, nng_stream *stream)
{
    struct peer peer = {.tls = door->kind == LISTEN_TLS, .listener = door->number};
    uint64_t uid = 0;
    uint64_t gid = 0;
    uint64_t pid = 0;
    if (door->kind == LISTEN_IPC &&
        nng_stream_get_uint64(stream, NNG_OPT_IPC_PEER_UID, &uid) == 0 &&
        nng_stream_get_uint64(stream, NNG_OPT_IPC_PEER_GID, &gid) == 0 &&
        nng_stream_get_uint64(stream, NNG_OPT_IPC_PEER_PID, &pid) == 0) {
        peer.local = true;
        peer.uid = (uint32_t)uid;
        peer.gid = (uint32_t)gid;
        peer.pid = (int32_t)pid;
    }
    return peer;
}

/* NNG does not know the address after the end. */
static void note_address(struct connection *c)
{
    nng_sockaddr at;
    char host[INET6_ADDRSTRLEN] = "?";
    unsigned port = 0;
    if (nng_stream_get_addr(c->stream, NNG_OPT_REMADDR, &at) == 0) {
        bool six = at.s_family == NNG_AF_INET6;
        const void *bytes = six ? (const void *)at.s_in6.sa_addr : (const void *)&at.s_in.sa_addr;
        (void)inet_ntop(six ? AF_INET6 : AF_INET, bytes, host, sizeof host);
        port = ntohs(six ? at.s_in6.sa_port : at.s_in.sa_port);
    }
    (void)snprintf(c->from, sizeof c->from, "%s port %u", host, port);
}

/* Takes the stream, also on failure. NULL: no memory. */
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
    if (c->peer.tls) {
        note_address(c);
    }
    c->input = malloc(INPUT_BYTES);
    c->output = c->peer.tls ? malloc(OUTPUT_BYTES) : NULL;
    sp_reader_init(&c->reader, door->kind == LISTEN_IPC ? SP_IPC : SP_TCP, SP_REQ,
                   PROTO_MESSAGE_MAX);
    if (c->input == NULL || (c->peer.tls && c->output == NULL) ||
        nng_aio_alloc(&c->recv, reader_received, c) != 0 ||
        nng_aio_alloc(&c->send, writer_sent, c) != 0) {
        connection_finish(c);
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
        connection_finish(c);
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
