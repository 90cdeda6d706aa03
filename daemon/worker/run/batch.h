/*
 * A batch: jobs that came together, in one packet or within one window (coalesce.h). Its brief jobs
 * go into one stream where the device gains by it, and all start with one call. One wake-up, the
 * one behind the last brief job of a stream, reports the ends of all before it. Each job keeps its
 * own marks, and so its own times, its own end and its own failure. Other jobs of the batch start
 * together with the brief ones, but each has a wake-up of its own. Thread: the loop's.
 */
#ifndef WORKER_RUN_BATCH_H
#define WORKER_RUN_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/job.h"
#include "daemon/worker/run/ledger.h"

/* A job is brief if it has at most this many steps, which are expected to take at most this
 * long. */
#define BATCH_STEPS    8u
#define BATCH_BRIEF_NS UINT64_C(50000)
/* No job is put into a stream behind kernels that are expected to take longer than this, or that
 * never ran: it would not begin before they end, and could not be withdrawn. */
#define BATCH_SLOW_NS UINT64_C(5000000)

struct msg_w_pool;

struct batch {
    struct device *device;       /* not owned */
    const struct ledger *ledger; /* not owned */
    bool open;                   /* from batch_open to batch_start */
    unsigned jobs;               /* brief jobs since batch_open */
    unsigned pending;            /* of these, jobs that are to be started */
    bool mixed;  /* the batch must not wait, because of a job that is not brief or cannot wait */
    bool waited; /* it has waited for more jobs */
    int line[2]; /* index of the stream of brief jobs, usual and urgent; -1: none */
    bool unstarted[DEVICE_STREAMS_MAX]; /* streams with commands that are to be started */
    /* last job of a stream whose end causes no call (JOB_END_QUIET); NULL: none */
    struct job *quiet[DEVICE_STREAMS_MAX];
    unsigned lasting[DEVICE_STREAMS_MAX]; /* running jobs in a stream that are not brief */
    unsigned slow[DEVICE_STREAMS_MAX]; /* jobs in a stream with slow kernels, see BATCH_SLOW_NS */
    /* sum of the expected times of the jobs in a stream, where known */
    uint64_t ahead_ns[DEVICE_STREAMS_MAX];
    uint64_t serial;           /* number of the batch */
    uint64_t batches, batched; /* count of batches of at least two brief jobs, and of these jobs */
    uint64_t waits;            /* count of batches that waited for more */
};

void batch_init(struct batch *b, struct device *device, const struct ledger *ledger);
/* Opens a batch: it has the jobs from now to batch_start. Does nothing if it is open. */
void batch_open(struct batch *b);
/* For a job that is checked but has no memory yet: decides whether it is brief, and may move it
 * to another stream. */
void batch_join(struct batch *b, struct job *j);
/* To be called when a job was started, and at its end. */
void batch_enter(struct batch *b, const struct job *j);
void batch_leave(struct batch *b, const struct job *j);
/* To be called when all commands of the job are in its stream. */
void batch_enqueued(struct batch *b, struct job *j);
/* Has the stream a job with slow kernels (BATCH_SLOW_NS)? */
bool batch_slow(const struct batch *b, unsigned stream);
/* Would the job begin in its stream before its deadline, if the jobs ahead take as long as
 * expected? */
bool batch_in_time(const struct batch *b, const struct job *j);
/* Enqueues the mark behind the last command of a job. In an open batch, batch_start starts the
 * stream. */
int batch_mark(struct batch *b, struct job *j, struct backend_marker **ret_marker, struct err *e);
/* Starts all jobs of the batch and closes it. */
int batch_start(struct batch *b, struct err *e);
/* A job came that must not wait: the batch starts without waiting for more. */
void batch_hurry(struct batch *b);
/* Number of brief jobs that may wait for more; 0 also if the batch must not wait. */
unsigned batch_pending(const struct batch *b);
void batch_waits(struct batch *b); /* counts a batch that waits, once */
/* Is the job a brief one of the open batch? */
bool batch_has(const struct batch *b, const struct job *j);
void batch_stats(const struct batch *b, struct msg_w_pool *stats); /* fills in its own fields */

#endif
