/*
 * Jobs that came together, in one packet or within one window (coalesce.h). Brief ones go into one
 * stream where the device gains by it, start with one call, and one wake-up reports the ends of
 * all of them: the one behind the last. Each job keeps its own marks, and so its own times, its own
 * end and its own failure. Other jobs of the batch start with it, and each has a wake-up of its
 * own. Thread: the loop's.
 */
#ifndef WORKER_RUN_BATCH_H
#define WORKER_RUN_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/job.h"
#include "daemon/worker/run/ledger.h"

/* A job is brief with up to this many steps that are expected to take no longer than this. */
#define BATCH_STEPS    8u
#define BATCH_BRIEF_NS UINT64_C(50000)
/* No job is put into a stream behind kernels that take longer, or that never ran: it would not
 * begin before they end, and could not be taken back. */
#define BATCH_SLOW_NS UINT64_C(5000000)

struct msg_w_pool;

struct batch {
    struct device *device;       /* not owned */
    const struct ledger *ledger; /* not owned */
    bool open;                   /* between batch_open and batch_start */
    unsigned jobs;               /* brief jobs since it was opened */
    unsigned pending;            /* of these, jobs that are to be started */
    bool mixed;                  /* other jobs came as well: no job waits for more */
    bool waited;                 /* its jobs waited for more */
    int line[2];                 /* index of the stream of brief jobs, usual and urgent; -1: none */
    bool unstarted[DEVICE_STREAMS_MAX];    /* streams with commands that are to be started */
    struct job *quiet[DEVICE_STREAMS_MAX]; /* last job of a stream, with a JOB_END_QUIET; NULL */
    unsigned lasting[DEVICE_STREAMS_MAX];  /* jobs in a stream that are not brief, nor over */
    unsigned slow[DEVICE_STREAMS_MAX];     /* jobs in a stream with slow kernels, BATCH_SLOW_NS */
    uint64_t ahead_ns[DEVICE_STREAMS_MAX]; /* expected time of the jobs in a stream that have one */
    uint64_t serial;                       /* counts batches that were opened */
    uint64_t batches, batched;             /* batches of at least two brief jobs, and these jobs */
    uint64_t waits;                        /* batches that waited for more */
};

void batch_init(struct batch *b, struct device *device, const struct ledger *ledger);
/* Jobs until batch_start belong together. It may be open already. */
void batch_open(struct batch *b);
/* For a job that was checked and has no memory yet: finds whether it is brief, and may choose
 * another stream for it. */
void batch_join(struct batch *b, struct job *j);
/* For a job that was started, and for its end. */
void batch_enter(struct batch *b, const struct job *j);
void batch_leave(struct batch *b, const struct job *j);
/* All commands of the job are in its stream. */
void batch_enqueued(struct batch *b, struct job *j);
/* Is there a slow job in the stream? */
bool batch_slow(const struct batch *b, unsigned stream);
/* Would the job begin in its stream before its deadline, if the jobs ahead take as long as last
 * time? */
bool batch_in_time(const struct batch *b, const struct job *j);
/* Enqueues the mark behind the last command of a job. In an open batch, batch_start starts it. */
int batch_mark(struct batch *b, struct job *j, struct backend_marker **ret_marker, struct err *e);
/* Starts all jobs of the batch, which is closed then. */
int batch_start(struct batch *b, struct err *e);
/* A job came that must not wait: the batch waits for no more. */
void batch_hurry(struct batch *b);
/* Number of brief jobs that may wait for more. 0: there are none, or the batch must not wait. */
unsigned batch_pending(const struct batch *b);
void batch_waits(struct batch *b); /* counts that they wait, once a batch */
/* Is the job one of an open batch? */
bool batch_has(const struct batch *b, const struct job *j);
void batch_stats(const struct batch *b, struct msg_w_pool *stats); /* fills in its own fields */

#endif
