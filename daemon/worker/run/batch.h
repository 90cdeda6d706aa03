/*
 * Jobs that came together. Those that are expected to be brief go into one stream where a device
 * gains by it, start at once with one call, and one wake-up tells of the end of all: the point
 * behind the last of them. Each keeps its own marks, and so its own times, its own end and its own
 * failure. What is not brief is started with them and told of by itself. Thread: the loop's.
 */
#ifndef WORKER_RUN_BATCH_H
#define WORKER_RUN_BATCH_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/worker/run/job.h"
#include "daemon/worker/run/ledger.h"

/* Jobs of up to this many steps that are expected to take no longer are brief. */
#define BATCH_STEPS    8u
#define BATCH_BRIEF_NS UINT64_C(50000)
/* Behind kernels that take longer, or that never ran, no job is put into a stream: it would not
 * begin before them, and could not be taken back. */
#define BATCH_SLOW_NS UINT64_C(5000000)

struct msg_w_pool;

struct batch {
    struct device *device;       /* not owned */
    const struct ledger *ledger; /* not owned */
    bool open;                   /* more of what came together is still to come */
    unsigned jobs;               /* brief ones since it was opened */
    unsigned held;               /* of these, those that are to be started */
    bool mixed;                  /* others came as well: nothing is to wait */
    bool waited;                 /* for more of them */
    int line[2];                 /* the stream of brief jobs, usual and urgent ones; -1: none yet */
    bool unstarted[DEVICE_STREAMS_MAX];
    /* the last job there, of whose end nothing tells yet */
    struct job *quiet[DEVICE_STREAMS_MAX];
    unsigned lasting[DEVICE_STREAMS_MAX];  /* jobs there that are not brief and not over */
    unsigned slow[DEVICE_STREAMS_MAX];     /* jobs that are in it, see BATCH_SLOW_NS */
    uint64_t ahead_ns[DEVICE_STREAMS_MAX]; /* of what is in it, about; what is unknown is slow */
    uint64_t serial;                       /* counts batches that were opened */
    uint64_t batches, batched;             /* of at least two brief jobs, and these jobs */
    uint64_t waits;                        /* batches that waited for more */
};

void batch_init(struct batch *b, struct device *device, const struct ledger *ledger);
/* What comes until batch_start belongs together; opening an open one changes nothing. */
void batch_open(struct batch *b);
/* A job that was checked and has no memory yet: sees whether it is brief, and then may choose
 * another stream for it. */
void batch_join(struct batch *b, struct job *j);
/* It has memory and is given to the device, or waits for other jobs; and its end. */
void batch_enter(struct batch *b, const struct job *j);
void batch_leave(struct batch *b, const struct job *j);
/* All of its commands are in its stream. */
void batch_enqueued(struct batch *b, struct job *j);
/* Is there something that takes long in the stream? */
bool batch_slow(const struct batch *b, unsigned stream);
/* Would it begin there before its deadline, by what the jobs before it took last time? */
bool batch_in_time(const struct batch *b, const struct job *j);
/* The marker behind the last command of a job. Where more is to come, batch_start starts it. */
int batch_mark(struct batch *b, struct job *j, struct backend_marker **ret_marker, struct err *e);
/* Starts what came together; the batch is closed. */
int batch_start(struct batch *b, struct err *e);
/* What is in it starts as soon as it may: one came that is not to wait. */
void batch_hurry(struct batch *b);
/* Brief jobs that may wait on for others; 0: none, or something came that may not. */
unsigned batch_held(const struct batch *b);
void batch_waits(struct batch *b); /* they do: it is counted once */
/* Is it one of those that are to be started? */
bool batch_has(const struct batch *b, const struct job *j);
void batch_stats(const struct batch *b, struct msg_w_pool *stats); /* sets its own fields */

#endif
