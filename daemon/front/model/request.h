/*
 * A decoded and checked request, with the connection or the ring that it came by. It has one owner
 * at a time, and is answered once. Thread: any, one at a time; a request_context is the loop's.
 */
#ifndef FRONT_MODEL_REQUEST_H
#define FRONT_MODEL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "proto/messages.h"
#include "proto/sp.h"

struct capbuf;
struct front;
struct listener_slot;
struct op;
struct session;

/* The client at the other end of a connection. */
struct peer {
    uint32_t pipe;     /* the connection; never 0, and not used again while the daemon runs */
    bool local;        /* over ipc: the kernel vouches for uid, gid and pid */
    bool tls;          /* over tls+tcp, perhaps from another host: only a token identifies it */
    uint32_t listener; /* number of the tenant's socket (settings/tenant_socket.h); 0: for all */
    uint32_t uid;
    uint32_t gid;
    int32_t pid;
};

/* Byte views in `msg` point into `body`, or behind the struct. */
struct request {
    struct request *next;
    struct listener_slot *slot; /* NULL: it came by a ring */
    struct session *session;    /* whose ring it came by; NULL: it came over the socket */
    uint32_t ring_id;           /* its id in the ring */
    struct peer peer;
    unsigned kind; /* enum msg_kind, a request */
    union {
#define X(NAME, name, value) struct msg_##name name;
        PROTO_REQUESTS(X)
#undef X
    } msg;
    struct message *body; /* the received message, owned; NULL: its bytes follow the struct */
    size_t size;          /* bytes of the message */
};

/* Frees the request and its message, not its slot. NULL is accepted. */
static inline void request_destroy(struct request *r)
{
    if (r != NULL) {
        message_unref(r->body);
        free(r);
    }
}

/* What a handler works on (requests/requests.h). `o`: the op of the request, for an answer now or
 * later; NULL: the request has none. */
struct request_context {
    struct front *f;
    struct session *s; /* NULL only for PING and QUERY before HELLO */
    struct op *o;
    struct request *r; /* a handler that keeps it sets this to NULL */
    struct capbuf *out;
};

#endif
