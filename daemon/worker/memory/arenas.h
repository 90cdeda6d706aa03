/*
 * The arenas that the front handed over, by the front's ids. An arena is memory of a client, mapped
 * once. An arena that is freed while jobs use it is unmapped when the last of them ends.
 *
 * Clients may write to an arena at any time, and punch holes, which read as zeros. The worker
 * therefore only copies the bytes or gives them to kernels, and never interprets them. Reading
 * cannot fail: the front has made sure that the memory cannot shrink and consists of ordinary
 * pages.
 *
 * An arena is registered with the device on arrival, so that kernels can work on it and copies are
 * fast. Where registering pins memory, which takes long, the registrar does it in slices
 * (registrar.h). Until then jobs copy through other registered memory. The registrar unmaps arenas,
 * too, because the last of several users of memory frees its pages.
 *
 * Thread: the loop's. Nothing here blocks.
 */
#ifndef WORKER_MEMORY_ARENAS_H
#define WORKER_MEMORY_ARENAS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/err.h"
#include "common/memfd.h"
#include "daemon/worker/memory/device.h"
#include "daemon/worker/memory/registrar.h"
#include "daemon/worker/memory/releases.h"

#define ARENAS_MAX 65536u

struct arena {
    uint64_t id;
    uint64_t size; /* size that jobs may address; its file may be longer */
    /* owned, and unmapped by the registrar; the descriptor is closed once the file is mapped */
    struct memfd map;
    struct err e;    /* why it could not be mapped; code 0: it is mapped */
    unsigned uses;   /* number of jobs and registrations that use it */
    bool freed;      /* no longer in the table; freed at the last unuse */
    uint64_t tenant; /* the front's key, for turns */
    /* owned: the device's view of its memory, for kernels; NULL: not (yet) registered */
    struct backend_block *block;
    uint64_t align;       /* bytes: alignment that arguments in it need */
    struct arenas *table; /* not owned */
    struct registration registration;
    bool queued; /* it is being registered, or waits for that */
    struct release release;
    UT_hash_handle hh;
};

/* Called when kernels can work on the arena; or when it has an error: the front frees it then
 * and may add it again. */
typedef void (*arena_ready_fn)(void *data, const struct arena *a);

struct arenas {
    struct arena *by_id;
    uint64_t bytes;              /* bytes of all arenas that are mapped */
    struct device *device;       /* not owned */
    struct registrar *registrar; /* not owned */
    arena_ready_fn ready;        /* NULL after arenas_finish */
    struct releases *releases;   /* not owned; NULL: registrations end at once */
    void *data;
};

void arenas_init(struct arenas *t, struct device *device, struct registrar *registrar,
                 arena_ready_fn ready, void *data);
/* Idle. The registrar's work ends when the loop turns. */
void arenas_finish(struct arenas *t);
/* Adds an arena of a tenant. Takes over `fd` in any case; -1: the descriptor was lost on its way.
 * If its memory cannot be mapped, `ready` reports the error within the call, and jobs that name the
 * arena get it. */
int arena_add(struct arenas *t, uint64_t id, uint64_t size, uint64_t tenant, int fd, struct err *e);
/* Checks a range of an arena, and counts one use of the arena. */
int arena_range_use(const struct arenas *t, uint64_t id, uint64_t offset, uint64_t size,
                    struct arena **ret_arena, struct err *e);
/* NULL: unknown, or it could not be mapped; e says which. */
struct arena *arena_find(const struct arenas *t, uint64_t id, struct err *e);
/* Removes the arena from the table. It is unmapped at its last unuse. */
void arena_free(struct arenas *t, struct arena *a);
/* Frees all arenas: a front that connects does not know them. */
void arenas_forget(struct arenas *t);
void arena_use(struct arena *a);
void arena_unuse(struct arenas *t, struct arena *a);

#endif
