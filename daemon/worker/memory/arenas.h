/*
 * The arenas that the front handed over, by its ids: memory of clients, mapped once. An arena that
 * is freed while jobs use it goes when the last of them ends.
 *
 * Clients write there whenever they like, and punch holes, which read as zeros. So what lies in an
 * arena is copied or given to a kernel, and nothing here looks at it. Reading cannot fail: the
 * front has seen to it that the memory cannot shrink and is of ordinary pages.
 *
 * An arena is made known to the device when it comes, so that kernels can work on it as it is and
 * copies are fast. Where that takes long (memory that has to be pinned) a thread of libuv's does
 * it, for one arena after the other, so that the other threads are there for copies; and jobs copy
 * meanwhile as well as they can.
 *
 * Thread: the loop's.
 */
#ifndef WORKER_MEMORY_ARENAS_H
#define WORKER_MEMORY_ARENAS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>
#include <uv.h>

#include "common/err.h"
#include "common/memfd.h"
#include "daemon/worker/memory/device.h"
#include "daemon/worker/memory/releases.h"

#define ARENAS_MAX 65536u

struct arena {
    uint64_t id;
    uint64_t size;               /* bytes that jobs may name; its file may have more */
    struct memfd map;            /* owned; the descriptor is closed once it is mapped */
    struct err e;                /* why there is no memory; code 0: there is */
    unsigned uses;               /* jobs that name it */
    bool freed;                  /* no longer in the table */
    struct backend_block *block; /* owned: what kernels work on, NULL: nothing (yet) */
    struct backend_block *found; /* what a thread made of it, before it is `block` */
    uint64_t align;              /* bytes: where arguments in it may begin */
    struct arenas *table;        /* while a thread is to make it known, in use, or it is to go */
    struct release release;
    uv_work_t work;
    struct arena *prev, *next; /* to be made known */
    UT_hash_handle hh;
};

/* Kernels can work on it from now on; or, where it has an error, it is of no use and is to be freed
 * and added again. */
typedef void (*arena_ready_fn)(void *data, const struct arena *a);

struct arenas {
    struct arena *by_id;
    struct arena *unknown; /* to be made known, in the order of their coming; a thread is at the
                              first one */
    uint64_t bytes;        /* of all that are mapped */
    struct device *device; /* not owned */
    uv_loop_t *loop;
    arena_ready_fn ready;      /* NULL: nobody is to be told any more */
    struct releases *releases; /* not owned; NULL: what goes does so at once */
    void *data;
};

void arenas_init(struct arenas *t, struct device *device, uv_loop_t *loop, arena_ready_fn ready,
                 void *data);
/* Idle. What a thread is at ends when the loop turns. */
void arenas_finish(struct arenas *t);
/* Takes `fd` in any case; -1: it was lost on its way. What goes wrong with its memory is told to
 * the jobs that name it, and by `ready`, in the call. */
int arena_add(struct arenas *t, uint64_t id, uint64_t size, int fd, struct err *e);
/* Checks a range of one and uses it. */
int arena_range_use(const struct arenas *t, uint64_t id, uint64_t offset, uint64_t size,
                    struct arena **ret_arena, struct err *e);
/* NULL: unknown, or it could not be mapped. */
struct arena *arena_find(const struct arenas *t, uint64_t id, struct err *e);
/* Takes it out of the table; memory goes with the last use. */
void arena_free(struct arenas *t, struct arena *a);
/* All of them: another front does not know them. */
void arenas_forget(struct arenas *t);
void arena_use(struct arena *a);
void arena_unuse(struct arenas *t, struct arena *a);

#endif
