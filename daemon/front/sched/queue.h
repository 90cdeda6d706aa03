/*
 * The ready queues: jobs whose predecessors allow them to run, by rank and then in order of
 * admission. A rank is a priority that is bounded by the time of waiting (job_rank). Each device
 * has a queue of the jobs that are bound to it; one more queue has the jobs that any device may
 * run. Thread: the loop's.
 */
#ifndef FRONT_SCHED_QUEUE_H
#define FRONT_SCHED_QUEUE_H

#include "daemon/front/model/front.h"

/* Puts a queued job into its queue if hazards allow it; else the job waits for its predecessors. */
void queue_offer(struct front *f, struct job *j);
void queue_remove(struct front *f, struct job *j); /* not in one: nothing happens */
/* The job waits for a kernel that is being built or loaded, in no ready queue. */
void queue_await_module(struct front *f, struct job *j);
void queue_leave_module(struct front *f, struct job *j); /* does not wait: nothing happens */
/* Kernels may have become ready: queue_modules_turn offers the jobs that wait for one. false: no
 * job waits. */
bool queue_offer_modules(struct front *f);
void queue_modules_turn(struct front *f); /* as far as this turn has units for */
/* `j` was dispatched, or is queued again: the jobs behind it may be ready now, or no longer. */
void queue_moved(struct front *f, struct job *j);
/* Checks jobs for which something changed, as many as this turn has units for. */
void queue_turn(struct front *f);
/* Number of ready jobs before it in its queue. *ret_more: there are others that are not counted. */
unsigned queue_ahead(struct front *f, const struct job *j, bool *ret_more);
/* The jobs that `j` waits for are as urgent as itself: those with a later rank get its rank. */
void queue_raise(struct front *f, struct job *j);
/* The job, and the jobs that it waits for, go before all others. */
void queue_first(struct front *f, struct job *j);
/* The first job that `d` may run: the earlier of the two queues' heads. NULL: none. */
struct job *queue_head(const struct front *f, const struct device *d);

#endif
