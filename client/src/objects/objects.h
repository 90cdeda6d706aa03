/*
 * Objects that libgpud restores after a restart of the daemon: arenas, modules, kernels, programs.
 * Each keeps the request that makes it. The daemon's handle changes, the public handle does not. A
 * freed object remains while an unanswered request may name it.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_OBJECTS_OBJECTS_H
#define CLIENT_OBJECTS_OBJECTS_H

#include "client/src/base/client.h"

enum object_kind { OBJECT_ARENA, OBJECT_MODULE, OBJECT_KERNEL, OBJECT_PROGRAM, OBJECT_KINDS };

/* First member of each such struct. */
struct object {
    struct object *next;
    struct object *prev;
    enum object_kind kind;
    uint64_t handle;        /* public; 0 for programs */
    uint64_t daemon;        /* the daemon's handle, 0: none */
    uint64_t pending;       /* the handle of a restarted daemon, until all objects have one */
    uint64_t freed_seq;     /* number of the request that frees it; 0: it is not freed */
    struct capbuf recipe;   /* owned; the request that makes the object again */
    unsigned recipe_kind;   /* kind of that request */
    struct err *unrestored; /* owned; why a restarted daemon does not have it; NULL: it has, or
                               memory was out */
    void (*destroy)(struct object *o);
};

/* The object could not be restored: keeps the reason. NULL: it was restored. */
void object_set_unrestored(struct object *o, const struct err *e);
/* Refuses what names an object that the daemon does not have, with the reason. */
int object_refuse(const struct object *o, struct err *e);
/* The same if it could not be restored. */
int object_check(const struct object *o, struct err *e);
/* Frees what all objects have. */
void object_finish(struct object *o);

void object_link(struct gpud_client *c, struct object *o);
void object_unlink(struct gpud_client *c, struct object *o);
/* Destroys the object once the request `seq`, which frees it at the daemon, is answered. */
void object_give_up(struct gpud_client *c, struct object *o, uint64_t seq);
/* Destroys freed objects that no unanswered request may name. */
void objects_reap(struct gpud_client *c);

#endif
