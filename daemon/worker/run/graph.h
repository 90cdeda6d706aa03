/*
 * The steps of a job that cannot go into its stream at once: some are large copies, which go
 * through the copy queues, or the job comes after something that is in no stream yet. Each step
 * waits for the earlier steps whose memory it shares, so copies and kernels of one job overlap
 * where they use different memory:
 * - Small steps keep their order in the job's stream. A small step waits there for the earlier
 *   large copies that it shares memory with.
 * - A large copy begins when the host sees that such steps are over. A stream that waited for them
 *   would hold up other jobs' copies. Copies of one direction keep their order.
 * A step that fails stops the steps that have not begun. The job ends when the others are over.
 * Thread: the loop's.
 */
#ifndef WORKER_RUN_GRAPH_H
#define WORKER_RUN_GRAPH_H

#include <stdbool.h>

#include "daemon/worker/run/steps.h"

#define GRAPH_STEPS_MAX 512u /* in a larger job each step waits for all before it */
#define GRAPH_MARKS_MAX 30u  /* steps that large copies wait for; more copies stay in the stream */

struct graph;

/* Keeps a copy of the frame. */
int graph_create(const struct job_scope *scope, struct job *j, struct bytes frame,
                 struct graph **ret_graph, struct err *e);
void graph_destroy(struct graph *g); /* NULL is accepted */
/* Begins the steps that may begin. JOB_ENQUEUED when all are in streams. A failure is kept in j->e.
 * < 0: the device is lost. */
int graph_advance(struct graph *g, struct executor *x, struct job *j, struct err *e);
/* No further step begins. The job ends with `why` when the steps that have begun are over. */
void graph_stop(struct graph *g, struct executor *x, struct job *j, const struct err *why);
/* Was nothing of the job given to the device? */
bool graph_untouched(const struct graph *g);
/* Has the device commands of the job that are not known to be over? NULL: no. */
bool graph_on_device(const struct graph *g);
/* Are there launches in the stream behind its last mark? Whether they run is not known. */
bool graph_unmarked(const struct graph *g);
/* Are large copies under way? NULL: no. */
bool graph_busy(const struct graph *g);
/* The times of the next large copy from index *at on; false: there are no more. *ret_step: index of
 * the user's step. */
bool graph_copy_times(const struct graph *g, unsigned *at, unsigned *ret_step,
                      uint64_t *ret_begin_ns, uint64_t *ret_end_ns);

#endif
