/*
 * An arena: shared memory (a memfd) through which a session and the workers that run its jobs
 * exchange bytes. The front does not map it and does not trust its content. It passes the
 * descriptor on, and knows sizes and the parts in use.
 *
 * An arena belongs to its session. A freed arena remains until the last job that names it has
 * ended. It outlives workers: the next worker gets the descriptor again. It does not outlive the
 * front: the client gives its descriptor to the next front.
 *
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_ARENA_H
#define FRONT_MODEL_ARENA_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/idmap.h"
#include "daemon/front/model/device_set.h"
#include "daemon/front/model/work.h"

/* Limit for a job: its own parts, and those of unfinished jobs, in all arenas that it names. */
#define ARENA_PARTS_MAX 8192u

struct front;
struct session;
struct tenant;

struct arena {
    uint64_t handle;
    uint64_t bytes;
    struct front *front;                   /* for the callbacks of its ticket (clients/shm.h) */
    struct session *owner;                 /* NULL: freed; unfinished jobs still use it */
    struct arena *owned_prev, *owned_next; /* in owner->own_arenas */
    struct tenant *tenant;
    int fd;                   /* owned; -1: its owner has yet to give it */
    struct device_set known;  /* whose workers have it */
    struct device_set mapped; /* whose kernels use it in place, … */
    uint64_t align;           /* … in arrays that begin at multiples of this, bytes */
    unsigned users;           /* length of `parts` */
    bool counted;             /* hazard_parts.c's, while it counts */
    struct work_arena *parts; /* of unfinished jobs, by prev_part and next_part */
};

/* Makes an arena without a descriptor, in no table and not charged. NULL: no memory. */
struct arena *arena_create(uint64_t bytes);
void arena_destroy(struct arena *a); /* NULL is accepted */
/* Makes its memory: a sealed memfd of its size, without pages yet. ERR_LIMIT: too few descriptors
 * are left. */
int arena_make_memory(struct arena *a, struct err *e);
/* Checks whether a client's descriptor can be its memory. It must be a memfd, writable, sealed
 * against shrinking, large enough, and without huge pages, which may run out when they are touched.
 * ERR_INVALID, ERR_UNSUPPORTED, ERR_LIMIT (too few descriptors are left). */
int arena_check_memory(const struct arena *a, int fd, struct err *e);

/* Finds an arena that the session may use in a job. ERR_BAD_HANDLE, ERR_STALE_HANDLE; ERR_STATE:
 * the client has yet to give its memory. */
int arena_find(const struct idmap *arenas, uint64_t handle, const struct session *s,
               struct arena **ret_arena, struct err *e);

#endif
