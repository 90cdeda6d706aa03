/*
 * The arenas that the front handed over, by the front's ids. An arena is memory of a client, mapped
 * once. An arena that is freed while jobs use it is unmapped at the end of the last one.
 *
 * Clients write to an arena at any time, and punch holes, which read as zeros. The bytes are
 * therefore only copied or given to kernels, never interpreted here. Reading cannot fail: the front
 * has made sure that the memory cannot shrink and consists of ordinary pages.
 *
 * An arena is registered with the device when it comes, so that kernels can work on it and copies
 * are fast. Where that takes long (memory that has to be pinned), a thread of libuv's does it for
 * one arena after the other, so that the other threads are there for copies. Meanwhile jobs copy
 * through other registered memory.
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
    uint64_t size;               /* bytes that jobs may name; its file may be longer */
    struct memfd map;            /* owned; the descriptor is closed once it is mapped */
    struct err e;                /* why it has no memory; code 0: it has */
    unsigned uses;               /* number of jobs that use it */
    bool freed;                  /* it is no longer in the table, and freed at the last unuse */
    struct backend_block *block; /* owned: its memory for kernels; NULL: none (yet) */
    struct backend_block *found; /* owned: `block` to be, made by the thread */
    uint64_t align;              /* bytes: alignment of arguments in it */
    struct arenas *table;        /* set while it is to be registered, in use or to be released */
    struct release release;
    uv_work_t work;
    struct arena *prev, *next; /* links of `unknown` */
    UT_hash_handle hh;
};

/* Kernels can work on the arena from now on; or it has an error, and is to be freed and added
 * again. */
typedef void (*arena_ready_fn)(void *data, const struct arena *a);

struct arenas {
    struct arena *by_id;
    struct arena *unknown; /* arenas to be registered, in the order of arrival; the thread has the
                              first one */
    uint64_t bytes;        /* bytes of all arenas that are mapped */
    struct device *device; /* not owned */
    uv_loop_t *loop;
    arena_ready_fn ready;      /* NULL after arenas_finish */
    struct releases *releases; /* not owned; NULL: memory is released at once */
    void *data;
};

void arenas_init(struct arenas *t, struct device *device, uv_loop_t *loop, arena_ready_fn ready,
                 void *data);
/* Idle. The thread's work ends when the loop turns. */
void arenas_finish(struct arenas *t);
/* Takes `fd` in any case; -1: the descriptor was lost on its way. A failure to map its memory is
 * reported to the jobs that name it, and by `ready` within the call. */
int arena_add(struct arenas *t, uint64_t id, uint64_t size, int fd, struct err *e);
/* Checks a range of an arena, and counts a use of it. */
int arena_range_use(const struct arenas *t, uint64_t id, uint64_t offset, uint64_t size,
                    struct arena **ret_arena, struct err *e);
/* NULL: unknown, or it could not be mapped. */
struct arena *arena_find(const struct arenas *t, uint64_t id, struct err *e);
/* Takes it out of the table; it is unmapped at its last unuse. */
void arena_free(struct arenas *t, struct arena *a);
/* Frees all arenas: a front that connects does not know them. */
void arenas_forget(struct arenas *t);
void arena_use(struct arena *a);
void arena_unuse(struct arenas *t, struct arena *a);

#endif
