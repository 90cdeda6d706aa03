/*
 * The arenas that the front handed over, by its ids: memory of clients, mapped once. An arena that
 * is freed while jobs use it goes when the last of them ends.
 *
 * Clients write there whenever they like, and punch holes, which read as zeros. So what lies in an
 * arena is copied or given to a kernel, and nothing here looks at it. Reading cannot fail: the
 * front has seen to it that the memory cannot shrink and is of ordinary pages.
 *
 * Thread: the loop's.
 */
#ifndef WORKER_ARENAS_H
#define WORKER_ARENAS_H

#include <stdbool.h>
#include <stdint.h>
#include <uthash.h>

#include "common/err.h"
#include "common/memfd.h"

#define ARENAS_MAX 65536u

struct arena {
    uint64_t id;
    uint64_t size;    /* bytes that jobs may name; its file may have more */
    struct memfd map; /* owned; the descriptor is closed once it is mapped */
    struct err e;     /* why there is no memory; code 0: there is */
    unsigned uses;    /* jobs that name it */
    bool freed;       /* no longer in the table */
    UT_hash_handle hh;
};

struct arenas {
    struct arena *by_id;
};

void arenas_init(struct arenas *t);
void arenas_finish(struct arenas *t); /* idle */
/* Takes `fd` in any case. What goes wrong is told to the jobs that name it. */
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
