/*
 * The steps of a job that cannot all go into its stream at once: some are large copies, which go
 * through the copy queues, or the job comes after work that is in no stream yet. Each step waits
 * for the earlier steps whose memory it shares, so copies and kernels of one job overlap where they
 * use different memory:
 * - Small steps keep their order in the job's stream. There, a small step waits for the earlier
 *   large copies that it shares memory with.
 * - A large copy begins when the host sees that the earlier steps it shares memory with are over.
 *   If the queue's stream waited for them instead, it would hold up other jobs' copies. Copies of
 *   one direction keep their order.
 *
 * When a step fails, no further step begins, and the job ends when those that have begun are over.
 * Thread: the loop's.
 */
#ifndef WORKER_RUN_GRAPH_H
#define WORKER_RUN_GRAPH_H

#include <stdbool.h>

#include "daemon/worker/run/steps.h"

/* in a job with more steps, each large copy orders itself with all steps */
#define GRAPH_STEPS_MAX 512u
/* marks that large copies wait for; further such copies go into the stream */
#define GRAPH_MARKS_MAX 30u

struct graph;

/* Copies the frame. */
int graph_create(const struct job_scope *scope, struct job *j, struct bytes frame,
                 struct graph **ret_graph, struct err *e);
void graph_destroy(struct graph *g); /* NULL is accepted */
/* Begins the steps that may begin; JOB_ENQUEUED when all are in streams. A failure is kept in
 * j->e. < 0: the device is lost. */
int graph_advance(struct graph *g, struct executor *x, struct job *j, struct err *e);
/* Begins no further step. The job ends with `why` when the steps that have begun are over. */
void graph_stop(struct graph *g, struct executor *x, struct job *j, const struct err *why);
/* Did the device get nothing of the job so far? */
bool graph_untouched(const struct graph *g);
/* Has the device got a step? Zeros in temporaries, and copies that wait in their queue, are none.
 */
bool graph_begun(const struct graph *g);
/* Has the device got a step, and begun no copy? Whether it has begun a small step, the first mark
 * behind one tells. */
bool graph_waits(const struct graph *g);
/* Has the device commands of the job that are not known to be over? g may be NULL: no. */
bool graph_on_device(const struct graph *g);
/* Are there launches in the stream behind the last mark? Whether they run cannot be seen. */
bool graph_unmarked(const struct graph *g);
/* Are large copies under way? g may be NULL: no. */
bool graph_busy(const struct graph *g);
/* Iterates over the times of the large copies: *at is the index to go on from, 0 at first.
 * Returns false when there are no more. *ret_step: index of the user's step. */
bool graph_copy_times(const struct graph *g, unsigned *at, unsigned *ret_step,
                      uint64_t *ret_begin_ns, uint64_t *ret_end_ns);

#endif
