/*
 * Offloads work that a client can make last for hours, such as the close of a descriptor that it
 * sent (SO_LINGER). Each job has a thread of its own, so no job waits for another. The caller
 * limits how many there are at once. Threads that are stuck end with the process.
 *
 * Thread: the loop's, but for `work` and `orphaned`.
 */
#ifndef FRONT_CLIENTS_OFFLOAD_H
#define FRONT_CLIENTS_OFFLOAD_H

#include <uv.h>

#include "common/err.h"

struct offload;

struct offload_job {
    struct offload_job *next; /* in the list of done jobs */
    struct offload *offload;
    void (*work)(struct offload_job *job);     /* in its thread */
    void (*done)(struct offload_job *job);     /* on the loop, afterwards */
    void (*orphaned)(struct offload_job *job); /* in its thread instead, after offload_destroy */
};

int offload_create(uv_loop_t *loop, struct offload **ret_offload, struct err *e);
/* Calls `done` of the jobs that have ended; the others are orphaned. `closed` is called in a later
 * turn of the loop, which then does not refer to the struct any more. */
void offload_destroy(struct offload *a, void (*closed)(void *data), void *data);

/* The caller owns the job, which lives until it is done or orphaned. Without memory for a thread
 * `work` runs in this call. */
void offload_run(struct offload *a, struct offload_job *job);

#endif
