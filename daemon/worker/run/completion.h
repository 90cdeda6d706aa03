/*
 * The jobs that run: asks their markers, works out how each ended, and writes its W_DONE.
 * Thread: the loop's. Never blocks.
 */
#ifndef WORKER_RUN_COMPLETION_H
#define WORKER_RUN_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/executor.h"

struct completion_callbacks {
    /* j->done holds the frame; the job stays in the ledger */
    void (*done)(void *data, struct job *j);
    /* it has been running for a while (j->told_runs), or it was, and none of it has for a while */
    void (*turned)(void *data, struct job *j);
    /* its deadline has passed, and it waits in its stream */
    void (*late)(void *data, struct job *j);
};

struct completion {
    struct executor *x; /* not owned */
    struct job *first;  /* running, in the order of arrival */
    unsigned count;
    uint64_t arrivals; /* jobs so far */
    struct completion_callbacks callbacks;
    void *data;
};

void completion_init(struct completion *c, struct executor *x,
                     struct completion_callbacks callbacks, void *data);
void completion_add(struct completion *c, struct job *j);
/* Finishes what is over, in the order of arrival where one waited for another. */
void completion_poll(struct completion *c, uint64_t now);
/* Ends a job that was added and has nothing to do, unless one that it waits for is not over: false.
 * The device is not asked. Calls done. */
bool completion_at_once(struct completion *c, struct job *j);
/* A job that was added and of which the device has nothing is not to run: what it holds is free. It
 * ends when those before it have. */
void completion_give_up(struct completion *c, struct job *j, const struct err *why);
/* The same, and done is called at once. For those that come after it it stays until those before it
 * are over. Are they, and is it gone from the list? */
bool completion_cancel(struct completion *c, struct job *j, const struct err *why);
/* Will one of them free memory when it ends, though no job that waits for memory begins? tenant:
 * its own memory alone counts; NULL: anybody's. Walks them. */
bool completion_frees(struct completion *c, const uint64_t *tenant);
/* The oldest of which the device has something; NULL: there is none. Those that were given up, or
 * have not begun, behind one that waits for memory are nothing to the device, and may be for long.
 */
const struct job *completion_oldest(const struct completion *c);
/* Ends a job by its j->e, whatever its markers say; for the device's end. Calls done. */
void completion_fail(struct completion *c, struct job *j);

#endif
