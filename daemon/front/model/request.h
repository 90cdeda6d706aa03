/*
 * A request as the loop takes it: a message that was decoded and checked, with the connection or
 * the ring that it came by. It has one owner at a time, which answers it once. Thread: any, one at
 * a time; a request_context is the loop's.
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

/* Who is at the other end of a connection. */
struct peer {
    uint32_t pipe; /* the connection; never 0, not used again while the daemon runs */
    bool local;    /* ipc: uid, gid and pid are the kernel's word */
    uint32_t uid;
    uint32_t gid;
    int32_t pid;
};

/* A request as the loop takes it. Views in `msg` lie in `body`, or behind the struct. */
struct request {
    struct request *next;
    struct listener_slot *slot; /* NULL: it came by a ring */
    struct session *session;    /* whose ring that was, else NULL */
    uint32_t ring_id;           /* its id there */
    struct peer peer;
    unsigned kind; /* enum msg_kind, a request */
    union {
#define X(NAME, name, value) struct msg_##name name;
        PROTO_REQUESTS(X)
#undef X
    } msg;
    struct message *body; /* as it was received, owned; NULL: the struct has the bytes behind it */
    size_t size;          /* of it, bytes */
};

/* Frees message and struct, not the slot; NULL is accepted. */
void request_destroy(struct request *r);

/* s: who asks. o: the op to answer later; NULL for requests that are answered at once. */
struct request_context {
    struct front *f;
    struct session *s; /* NULL only for PING and QUERY before HELLO */
    struct op *o;
    struct request *r; /* a handler that keeps it sets this to NULL */
    struct capbuf *out;
};

#endif
