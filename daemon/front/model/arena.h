/*
 * An arena: a memfd that a session shares with the workers that run its jobs. The front does not
 * map it. It passes the descriptor on, and knows sizes and the parts in use. Its content is not
 * trusted.
 *
 * An arena belongs to its session. A freed one remains until the last job that names it has ended.
 * It outlives workers: the next worker gets the descriptor again. It does not outlive the front:
 * the client brings its descriptor to the next one.
 *
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_ARENA_H
#define FRONT_MODEL_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/idmap.h"
#include "daemon/front/model/work.h"

/* Parts in use of all arenas that one job names, its own included. */
#define ARENA_PARTS_MAX 8192u

struct front;
struct session;
struct tenant;

struct arena {
    uint64_t handle;
    uint64_t bytes;
    struct front *front;                   /* used by its ticket */
    struct session *owner;                 /* NULL: freed, and used by jobs only */
    struct arena *owned_prev, *owned_next; /* in owner->own_arenas */
    struct tenant *tenant;
    int fd;                   /* owned; -1: its owner has not brought it yet */
    uint64_t known;           /* bit for each device whose worker has it */
    uint64_t mapped;          /* and for those whose kernels can work on it, … */
    uint64_t align;           /* … on arrays that begin at multiples of so many bytes */
    unsigned users;           /* parts of it that unfinished jobs name */
    bool counted;             /* hazard_parts.c's, while it counts */
    struct work_arena *parts; /* these parts, by prev_part and next_part */
};

/* Makes an arena without a descriptor, in no table and not charged. NULL: no memory. */
struct arena *arena_create(uint64_t bytes);
void arena_destroy(struct arena *a); /* NULL is accepted */
/* Makes a sealed memfd of its size, without pages. ERR_LIMIT without descriptors to spare. */
int arena_make_memory(struct arena *a, struct err *e);
/* Can a client's descriptor be its memory? It must be a memfd, writable, sealed against shrinking,
 * large enough, and without huge pages, which could be missing when they are touched. */
int arena_check_memory(const struct arena *a, int fd, struct err *e);

/* Finds an arena that the session may use in a job; typed errors otherwise. */
int arena_find(const struct idmap *arenas, uint64_t handle, const struct session *s,
               struct arena **ret_arena, struct err *e);

#endif
