/*
 * What the daemon forgets when it restarts and libgpud puts back: arenas, modules, kernels,
 * programs. Buffers stay with their workers, or are lost with them. Each object keeps the message
 * that makes it; the daemon's handle changes, the public one does not.
 *
 * Thread: under the client's lock.
 */
#ifndef CLIENT_SESSION_RESTORE_H
#define CLIENT_SESSION_RESTORE_H

#include "client/src/wire/request.h"

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

/* Asks which of the buffers are still there, some at a time, and tells of those that are not;
 * false: all were answered. It comes before the stages. */
bool restore_buffers(struct gpud_client *c);
/* Sends the requests of one stage for what is not restored yet; false if there are none. Stages
 * follow object_kind. */
bool restore_begin(struct gpud_client *c, int stage);
/* Another daemon: what one before it has restored is to be restored again. */
void restore_forget(struct gpud_client *c);
/* All stages are through: the new handles count, unanswered requests name them. */
void restore_commit(struct gpud_client *c);

/* Names objects by their pending handles in an encoded request of that kind. */
int restore_translate(struct gpud_client *c, unsigned kind, struct capbuf *io_msg, struct err *e);

#endif
