/*
 * Makes the calls of the driver that map memory on a thread of its own, because each of them may
 * wait for what the device runs. The loop appends calls to a log and goes on. The thread makes them
 * in their order, and reports how far it is and what failed.
 *
 * Calls have numbers, from 1 on. The log grows with the calls that wait; the pool's limit bounds
 * those. A handle's name is given when its creation is appended, before the driver has made it.
 *
 * Thread: the loop's. Nothing here blocks except mapper_destroy. The thread calls the page table of
 * the back end and `wake`, and nothing else.
 */
#ifndef WORKER_MEMORY_MAPPER_H
#define WORKER_MEMORY_MAPPER_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "daemon/backend/backend.h"

struct mapper;

enum mapper_kind {
    MAPPER_DONE,   /* all calls up to `number` are complete */
    MAPPER_FAILED, /* create, map or access of [at, at + bytes) failed */
    MAPPER_STUCK,  /* the same, because what was mapped there before could not be unmapped */
    MAPPER_LOST,   /* [at, at + bytes) could not be unmapped */
    MAPPER_DIRTY,  /* [at, at + bytes) was not cleared, because a part of it failed */
    MAPPER_CLEAR,  /* now [at, at + bytes) can be cleared; the thread waits for mapper_go_on() */
};

struct mapper_report {
    enum mapper_kind kind;
    uint64_t number;
    uint64_t at, bytes;
    struct err why; /* FAILED, STUCK, LOST */
};

/* `wake` is called by the thread when the log is empty, when a call that was marked by mapper_watch
 * is complete, and before it waits. */
int mapper_create(const struct backend *b, struct backend_device *d, backend_wake_fn wake,
                  void *wake_data, struct mapper **ret_mapper, struct err *e);
/* Makes all calls that wait, and ends the thread: blocks. NULL is allowed. */
void mapper_destroy(struct mapper *m);

/* Append a call. ERR_NOMEM: there is no memory for the entry, and nothing happened. */
int mapper_take(struct mapper *m, uint64_t bytes, uint64_t *ret_handle, struct err *e);
int mapper_map(struct mapper *m, struct backend_block *range, uint64_t at, uint64_t handle,
               uint64_t bytes, struct err *e);
int mapper_unmap(struct mapper *m, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e);
int mapper_access(struct mapper *m, struct backend_block *range, uint64_t at, uint64_t bytes,
                  struct err *e);
int mapper_clear(struct mapper *m, uint64_t at, uint64_t bytes, struct err *e);
void mapper_give(struct mapper *m, uint64_t handle); /* not mapped; needs no memory */

/* The range whose addresses the calls name, which is one; `pages` of its smallest handles. */
int mapper_range(struct mapper *m, uint64_t page_bytes, uint64_t pages, struct err *e);
/* Did all of its mappings end? Otherwise the range must remain. After mapper_drain. */
bool mapper_empty(const struct mapper *m);

uint64_t mapper_issued(const struct mapper *m);  /* number of the last call */
bool mapper_busy(const struct mapper *m);        /* are there calls that are not complete? */
uint64_t mapper_waiting(const struct mapper *m); /* how many */
void mapper_watch(struct mapper *m);             /* the last call appended wakes the loop */
/* The next report, in their order; the failures of a call come before it is complete. */
bool mapper_poll(struct mapper *m, struct mapper_report *ret_report);
void mapper_go_on(struct mapper *m); /* after a MAPPER_CLEAR, once */
/* Blocks until all calls are complete. Calls that clear are passed over. */
void mapper_drain(struct mapper *m);

#endif
