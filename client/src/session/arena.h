/*
 * Memory shared with the daemon: arenas, and what is handed out of them. Three uses: memory that
 * the user asked for, a memfd of the user's own, and staging, through which large host arrays
 * travel instead of through the socket.
 *
 * An arena keeps its descriptor: a restarted daemon knows nothing of it and gets it again. One that
 * this did not work for (`object.daemon` 0) is plain memory from then on, of which nothing more is
 * handed out; so is what the user asked for where the daemon shares none (tcp).
 *
 * Thread: under the client's lock. Never blocks, but for arena_restored. Arenas are made in
 * arena_make.h.
 */
#ifndef CLIENT_SESSION_ARENA_H
#define CLIENT_SESSION_ARENA_H

#include "client/src/session/client.h"
#include "client/src/session/objects.h"
#include "client/src/wire/heap.h"

#define STAGE_MIN (64u * 1024u) /* bytes: arrays from here on go through staging memory */

enum arena_kind { ARENA_USER, ARENA_IMPORTED, ARENA_STAGING };

struct arena {
    struct object object; /* first */
    enum arena_kind kind;
    uint8_t *base; /* owned: the mapping */
    size_t bytes;
    int fd;           /* owned; -1: plain memory */
    struct heap heap; /* of user memory and staging */
    bool doomed;      /* staging: the daemon may still write there for a job that was given up */
};

#define HOST_USE_NO_ARG UINT32_MAX

/* A job's use of a piece of an arena. */
struct host_use {
    struct arena *arena;
    uint64_t offset;
    uint64_t bytes;
    uint32_t arg;  /* the argument's index; HOST_USE_NO_ARG: its program's */
    bool staged;   /* the piece is the job's own, to be freed at its end */
    void *copy_to; /* staged: where the bytes go when the job succeeded; NULL: nowhere */
};

/* What the arguments of one job use, and the steps of its program. */
struct host_uses {
    struct host_use use[PROTO_PARAMS_MAX + PROTO_STEPS_MAX];
    unsigned count;
};

/* One without memory that is in no table yet, NULL: no memory for it. */
struct arena *arena_new(enum arena_kind kind, size_t bytes);
void arena_destroy(struct object *o);
/* Notes the request that another daemon is asked with. NOMEM. */
int arena_recipe_make(struct arena *a, struct err *e);
/* Into the table of arenas; false: no memory for it. */
bool arena_table_add(struct gpud_client *c, struct arena *a);
/* Its memory is there, and the daemon has nothing of it: it did not take it after a restart. */
bool arena_is_dead(const struct arena *a);
/* Posts that the daemon may forget it. *ret_seq: that request's number; untouched if it failed. */
void arena_tell_free(struct gpud_client *c, uint64_t daemon, uint64_t *ret_seq);
/* The memory is gone at once; the daemon's name for it stays until requests that have it ended. */
void arena_give_up(struct gpud_client *c, struct arena *a);

/* The arena that all of [data, data + bytes) lies in, whether the daemon knows it or not; else
 * NULL. */
struct arena *arena_find(const struct gpud_client *c, const void *data, uint64_t bytes);
/* The arena that all of [data, data + bytes) lies in and that the daemon knows, else NULL. */
struct arena *arena_at(const struct gpud_client *c, const void *data, uint64_t bytes);
/* Notes that an argument lies there. false: no room, let it travel with the job. */
bool arena_use_add(struct host_uses *uses, struct arena *a, const void *data, uint64_t bytes,
                   uint32_t arg);
/* A piece of staging memory for an argument, if there is any now: `in` is copied there, `out` will
 * be copied back. false: let it travel with the job. */
bool arena_stage(struct gpud_client *c, struct host_uses *uses, void *data, uint64_t bytes,
                 uint32_t access, uint32_t arg);
/* The offset of a piece of staging memory in *ret_arena, HEAP_NONE: there is none. */
uint64_t arena_staging_alloc(struct gpud_client *c, uint64_t bytes, struct arena **ret_arena);
bool arena_has_staging(const struct gpud_client *c);
/* The end of a job, or of one that was never sent. `ok`: what it wrote is there. `unsure`: the
 * daemon may still be at it. */
void arena_uses_end(struct gpud_client *c, const struct host_use *uses, unsigned count, bool ok,
                    bool unsure);

/* Is there memory to be brought to another daemon? */
bool arena_restorable(const struct object *o);
/* Another daemon's answer to the recipe: gives it the memory. Blocks for an instant: the daemon
 * answers at once. The new handle, 0: it did not work. */
uint64_t arena_restored(struct gpud_client *c, struct object *o, const struct msg_arena *told,
                        struct err *e);
void arenas_finish(struct gpud_client *c); /* before handles_finish */

#endif
