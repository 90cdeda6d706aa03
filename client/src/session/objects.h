/*
 * What the daemon forgets when it restarts and libgpud puts back: arenas, modules, kernels,
 * programs. Each object keeps the message that makes it; the daemon's handle changes, the public
 * one does not. An object that was given up stays while an unanswered request may name it.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_OBJECTS_H
#define CLIENT_SESSION_OBJECTS_H

#include "client/src/session/client.h"

enum object_kind { OBJECT_ARENA, OBJECT_MODULE, OBJECT_KERNEL, OBJECT_PROGRAM, OBJECT_KINDS };

/* First member of what is restored. */
struct object {
    struct object *next;
    struct object *prev;
    enum object_kind kind;
    uint64_t handle;      /* public; 0 for programs */
    uint64_t daemon;      /* the daemon's handle, 0: none */
    uint64_t pending;     /* the one a restarted daemon has given, until all are there */
    uint64_t freed_seq;   /* ≠ 0: given up by this request; goes when that is answered */
    struct capbuf recipe; /* owned; the request that makes the object again */
    unsigned recipe_kind; /* its kind */
    void (*destroy)(struct object *o);
};

void object_link(struct gpud_client *c, struct object *o);
void object_unlink(struct gpud_client *c, struct object *o);
/* It goes when `seq`, which gives it up, is answered. */
void object_give_up(struct gpud_client *c, struct object *o, uint64_t seq);
/* Frees what was given up and is not named by an unanswered request any more. */
void objects_reap(struct gpud_client *c);

#endif
