/*
 * A decoded and checked request, with the connection or the ring that it came by. It has one owner
 * at a time, which answers it once. Thread: any, one at a time; a request_context is the loop's.
 */
#ifndef FRONT_MODEL_REQUEST_H
#define FRONT_MODEL_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/messages.h"

struct capbuf;
struct front;
struct listener_slot;
struct message;
struct op;
struct session;

/* The client at the other end of a connection. */
struct peer {
    uint32_t pipe; /* the connection; never 0, and not used again while the daemon runs */
    bool local;    /* ipc: uid, gid and pid are the kernel's word */
    uint32_t uid;
    uint32_t gid;
    int32_t pid;
};

/* Views in `msg` lie in `body`, or behind the struct. */
struct request {
    struct request *next;
    struct listener_slot *slot; /* NULL: it came by a ring */
    struct session *session;    /* session of that ring; NULL: it came over the socket */
    uint32_t ring_id;           /* its id in the ring */
    struct peer peer;
    unsigned kind; /* enum msg_kind, a request */
    union {
#define X(NAME, name, value) struct msg_##name name;
        PROTO_REQUESTS(X)
#undef X
    } msg;
    struct message *body; /* the received message, owned; NULL: its bytes lie behind the struct */
    size_t size;          /* bytes of the message */
};

/* Frees message and struct, not the slot; NULL is accepted. */
void request_destroy(struct request *r);

/* s: of the request. o: the op to answer later; NULL for requests that are answered at once. */
struct request_context {
    struct front *f;
    struct session *s; /* NULL only for PING and QUERY before HELLO */
    struct op *o;
    struct request *r; /* a handler that keeps it sets this to NULL */
    struct capbuf *out;
};

#endif
