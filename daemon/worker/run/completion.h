/*
 * The jobs that run: asks their marks, finds how each job ended, and writes its W_DONE. Thread: the
 * loop's. Never blocks.
 */
#ifndef WORKER_RUN_COMPLETION_H
#define WORKER_RUN_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/executor.h"

struct completion_callbacks {
    /* The job's end is reported: j->done holds the frame. The job stays in the ledger. */
    void (*done)(void *data, struct job *j);
    /* The job has run for a while (j->watch.reported_running), or has paused for a while. */
    void (*turned)(void *data, struct job *j);
    /* The job's deadline passed while it waits in its stream. */
    void (*late)(void *data, struct job *j);
};

struct completion {
    struct executor *x; /* not owned */
    struct job *first;  /* running jobs, in the order of arrival */
    unsigned count;     /* running jobs */
    uint64_t arrivals;  /* jobs that were started so far */
    struct completion_callbacks callbacks;
    void *data;
};

void completion_init(struct completion *c, struct executor *x,
                     struct completion_callbacks callbacks, void *data);
/* Starts a job: JOB_STARTED. */
void completion_add(struct completion *c, struct job *j);
/* Finishes the jobs that are over, in the order of arrival where one comes after another. */
void completion_poll(struct completion *c, uint64_t now);
/* Finishes a job that the device has nothing of, and calls done. False: a job that it comes after
 * is not over, and nothing happened. */
bool completion_at_once(struct completion *c, struct job *j);
/* A started job that the device has nothing of does not run: JOB_GIVEN_UP. It ends when the jobs
 * that it comes after have ended. */
void completion_give_up(struct completion *c, struct job *j, const struct err *why);
/* As completion_give_up, and done is called at once: JOB_REPORTED. True: no job that it comes after
 * is left, and it is finished. */
bool completion_cancel(struct completion *c, struct job *j, const struct err *why);
/* Will a running job free memory at its end, without a waiting job beginning first? tenant: only
 * that tenant's memory counts; NULL: all memory. Walks the running jobs. */
bool completion_frees(struct completion *c, const uint64_t *tenant);
/* The oldest job that the device has something of; NULL: none. A job that is given up, or that has
 * not begun behind one that waits for memory, may be there for long and does not count. */
const struct job *completion_oldest(const struct completion *c);
/* Ends a job by its j->e, whatever its marks say, as the device is lost. Calls done. */
void completion_fail(struct completion *c, struct job *j);

#endif
