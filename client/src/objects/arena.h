/*
 * Arenas are memory shared with the daemon. There are three kinds: memory of gpud_host_alloc, a
 * memfd of the user, and staging memory, through which large host arrays travel instead of through
 * the socket.
 *
 * An arena keeps its descriptor, which a restarted daemon gets again. If that fails
 * (`object.daemon` 0), the arena is plain memory from then on, and no more pieces of it are
 * allocated. Where the daemon shares no memory (tcp), user memory is plain from the start.
 *
 * Thread: under the client's lock. Never blocks, but for arena_restored. Arenas are made in
 * arena_make.h.
 */
#ifndef CLIENT_OBJECTS_ARENA_H
#define CLIENT_OBJECTS_ARENA_H

#include "client/src/base/client.h"
#include "client/src/objects/objects.h"
#include "client/src/wire/heap.h"

#define ARENA_TRIES 10u /* to pass the memory to another daemon that does not answer in time */
#define STAGE_MIN   (64u * 1024u) /* bytes: arrays from here on go through staging memory */

enum arena_kind { ARENA_USER, ARENA_IMPORTED, ARENA_STAGING };

struct arena {
    struct object object; /* first */
    enum arena_kind kind;
    uint8_t *base; /* owned: the mapping */
    size_t bytes;
    int fd;           /* owned; -1: plain memory */
    struct heap heap; /* of user memory and staging */
    bool doomed;      /* the daemon may still write to it for a job that has ended here */
    /* handles that the daemon gave for it in vain: it may have the memory under each of them */
    uint64_t vain[ARENA_TRIES];
    unsigned vain_count;
};

#define HOST_USE_NO_ARG UINT32_MAX

/* A job's use of a piece of an arena. */
struct host_use {
    struct arena *arena;
    uint64_t offset;
    uint64_t bytes;
    uint32_t arg;  /* the argument's index; HOST_USE_NO_ARG: its program's */
    int access;    /* of the job: gpud_access */
    bool staged;   /* the piece belongs to the job and is freed at its end */
    void *copy_to; /* staged: destination of the bytes if the job succeeds; NULL: none */
};

/* The pieces that the arguments of one job and the steps of its program use. */
struct host_uses {
    struct host_use use[PROTO_PARAMS_MAX + PROTO_STEPS_MAX];
    unsigned count;
};

/* An arena without memory, which is in no table yet. NULL: memory is out. */
struct arena *arena_new(enum arena_kind kind, size_t bytes);
void arena_destroy(struct object *o);
/* Makes the request by which another daemon gets the arena. NOMEM. */
int arena_recipe_make(struct arena *a, struct err *e);
/* Adds the arena to the table; false: memory is out. */
bool arena_table_add(struct gpud_client *c, struct arena *a);
/* Is the arena's memory unknown to the daemon, because a restarted daemon did not take it? */
bool arena_is_dead(const struct arena *a);
/* Are no more pieces of it allocated? It is given up when its last piece is freed. */
bool arena_is_closed(const struct arena *a);
/* Sends ARENA_FREE without waiting. *ret_seq: the request's number; untouched on failure. */
void arena_post_free(struct gpud_client *c, uint64_t daemon, uint64_t *ret_seq);
/* Unmaps the memory now; the daemon's handle remains until the requests that name it have ended. */
void arena_give_up(struct gpud_client *c, struct arena *a);

/* The arena that contains [data, data + bytes), whether the daemon knows it or not; NULL: none. */
struct arena *arena_find(const struct gpud_client *c, const void *data, uint64_t bytes);
/* The same for arenas that the daemon knows. */
struct arena *arena_at(const struct gpud_client *c, const void *data, uint64_t bytes);
/* Adds an argument's bytes in an arena. false: no room; the argument travels with the job. */
bool arena_use_add(struct host_uses *uses, struct arena *a, const void *data, uint64_t bytes,
                   int access, uint32_t arg);
/* Whether a job with these uses writes bytes that it also reads, so that it must not run twice. */
bool arena_uses_change(const struct host_use *uses, unsigned count);
/* Allocates staging memory for an argument: `in` is copied to it, `out` will be copied back. false:
 * no staging memory is free; the argument travels with the job. */
bool arena_stage(struct gpud_client *c, struct host_uses *uses, void *data, uint64_t bytes,
                 uint32_t access, uint32_t arg);
/* Allocates staging memory: its offset in *ret_arena; HEAP_NONE: none is free. */
uint64_t arena_staging_alloc(struct gpud_client *c, uint64_t bytes, struct arena **ret_arena);
bool arena_has_staging(const struct gpud_client *c);
/* Ends a job's uses, also of a job that was never sent. `ok`: its outputs are copied back.
 * `unsure`: the daemon may still write, so no piece of the arenas is used again. */
void arena_uses_end(struct gpud_client *c, const struct host_use *uses, unsigned count, bool ok,
                    bool unsure);

/* Must another daemon get the arena's memory? */
bool arena_restorable(const struct object *o);
/* Passes the memory to another daemon after its answer to the recipe. Returns the new handle; 0: it
 * failed. Blocks until the daemon answers, which it does at once, at most 250 ms. */
uint64_t arena_restored(struct gpud_client *c, struct object *o, const struct msg_arena *reply,
                        struct err *e);
/* May the recipe be sent again after this failure? The daemon was too slow, stood still, or had no
 * descriptor. */
bool arena_comes_again(const struct object *o, const struct err *failed);
/* Another daemon knows no handle of the former one. */
void arena_forget_vain(struct object *o);
/* After restoring: tells the daemon which handles it gave in vain. */
void arenas_free_vain(struct gpud_client *c);
void arenas_finish(struct gpud_client *c); /* before handles_finish */

#endif
