/*
 * Work beside the loop that a stranger can make last for hours, as the close of a descriptor that
 * he sent can (SO_LINGER): each piece has a thread of its own, so that none waits for another. Who
 * gives work sees to it that there are few at once. Threads that are stuck end with the process.
 *
 * Thread: the loop's, but for `work`, and for `left` once there is no loop any more.
 */
#ifndef FRONT_CLIENTS_ASIDE_H
#define FRONT_CLIENTS_ASIDE_H

#include <uv.h>

#include "common/err.h"

struct aside;

struct aside_job {
    struct aside_job *next; /* of those that are done */
    struct aside *aside;
    void (*work)(struct aside_job *job); /* in its thread */
    void (*done)(struct aside_job *job); /* on the loop, afterwards */
    void (*left)(struct aside_job *job); /* in its thread instead, after aside_destroy */
};

int aside_create(uv_loop_t *loop, struct aside **ret_aside, struct err *e);
/* Jobs that are done are told of here, the others are left. `closed` is called when the loop has
 * turned: it holds nothing of this any more. */
void aside_destroy(struct aside *a, void (*closed)(void *data), void *data);

/* The job is the caller's and lives until it is done or left. Without a thread it is worked on here
 * and now, and told of as every other. */
void aside_run(struct aside *a, struct aside_job *job);

#endif
