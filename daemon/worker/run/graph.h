/*
 * The steps of a job that cannot be put into its stream at once: some are large copies, which go
 * through the queues of copies, or something that the job waits for is not in a stream yet. From
 * what each step reads and writes follows which earlier ones it waits for, so copies and kernels of
 * one job overlap where they touch different memory:
 * - small steps stay in order in the job's stream; one waits there for the large copies before it
 *   that it meets;
 * - a large copy begins when the steps that it meets are over, as the host sees it: a stream that
 *   waited would hold up other jobs' copies. Copies of one direction keep their order.
 * A step that fails stops what has not begun; what has is waited for. Thread: the loop's.
 */
#ifndef WORKER_RUN_GRAPH_H
#define WORKER_RUN_GRAPH_H

#include <stdbool.h>

#include "daemon/worker/run/steps.h"

#define GRAPH_STEPS_MAX 512u /* of more, each waits for all before it */
#define GRAPH_MARKS_MAX                                                                            \
    30u /* steps that large copies wait for; copies beyond stay in the stream                      \
         */

struct graph;

/* Keeps a copy of the frame. */
int graph_create(const struct job_scope *scope, struct job *j, struct bytes frame,
                 struct graph **ret_graph, struct err *e);
void graph_destroy(struct graph *g); /* NULL is accepted */
/* Begins what may begin. Sets j->enqueued when all is in streams; what goes wrong is kept in j->e.
 * < 0: the device is lost. */
int graph_advance(struct graph *g, struct executor *x, struct job *j, struct err *e);
/* Nothing more is begun; the job ends with `why` when what was begun is over. */
void graph_stop(struct graph *g, struct executor *x, struct job *j, const struct err *why);
/* Has nothing of the job been given to the device? */
bool graph_untouched(const struct graph *g);
/* Has the device something of it that is not known to be over? What it waits for does not count.
 * NULL: nothing. */
bool graph_on_device(const struct graph *g);
/* Are there launches in the stream behind its last mark? They may run, or not have begun. */
bool graph_unmarked(const struct graph *g);
/* Are copies under way? NULL: none. */
bool graph_busy(const struct graph *g);
/* The times of large copy `i`; false: there are no more. *ret_step: the user's. */
bool graph_copy_times(const struct graph *g, unsigned *at, unsigned *ret_step,
                      uint64_t *ret_begin_ns, uint64_t *ret_end_ns);

#endif
