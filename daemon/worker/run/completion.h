/*
 * The running jobs: polls their marks, finds out how each job ended, and writes its W_DONE. Never
 * blocks. Thread: the loop's.
 */
#ifndef WORKER_RUN_COMPLETION_H
#define WORKER_RUN_COMPLETION_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/executor.h"

struct completion_callbacks {
    /* The job's end is reported: j->done holds the encoded frame. The job remains in the ledger. */
    void (*done)(void *data, struct job *j);
    /* The job has run for a while (j->watch.reported_running), or has paused for a while. */
    void (*turned)(void *data, struct job *j);
    /* The job's deadline passed while the job waits on the device. */
    void (*late)(void *data, struct job *j);
};

struct completion {
    struct executor *x; /* not owned */
    struct job *first;  /* running jobs, in the order of arrival */
    unsigned count;     /* running jobs */
    uint64_t arrivals;  /* count of jobs started so far */
    struct completion_callbacks callbacks;
    void *data;
};

void completion_init(struct completion *c, struct executor *x,
                     struct completion_callbacks callbacks, void *data);
/* Adds a job to the running ones: JOB_STARTED. */
void completion_add(struct completion *c, struct job *j);
/* Finishes the jobs that are over. A job that comes after another finishes after it. now: a time
 * before the last copies_poll, so that a copy which that did not see begin had not begun by then.
 */
void completion_poll(struct completion *c, uint64_t now);
/* Another front: jobs that wait on the device are reported as late again. */
void completion_renew(struct completion *c);
/* Finishes a job of which the device has nothing, and calls done. False: a job that it comes
 * after is not over, and nothing happened. */
bool completion_at_once(struct completion *c, struct job *j);
/* Gives up a started job of which the device has nothing: JOB_GIVEN_UP. It finishes when the
 * jobs that it comes after have ended. */
void completion_give_up(struct completion *c, struct job *j, const struct err *why);
/* As completion_give_up, but calls done at once: JOB_REPORTED. Returns true if the jobs that it
 * comes after have ended, so that it is finished. */
bool completion_cancel(struct completion *c, struct job *j, const struct err *why);
/* Will the end of a running job free memory, unless a waiting job must begin first? tenant: only
 * that tenant's memory counts; NULL: all memory. Walks the running jobs. */
bool completion_frees(struct completion *c, const uint64_t *tenant);
/* The oldest job of which the device has something; NULL: none. A job that is given up, or that
 * has not begun because it comes after one that waits for memory, does not count: it may last. */
const struct job *completion_oldest(const struct completion *c);
/* Ends a job with j->e, whatever its marks say, because the device is lost. Calls done. */
void completion_fail(struct completion *c, struct job *j);

#endif
