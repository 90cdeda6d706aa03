/*
 * The ready queues: jobs whose predecessors allow them to run, by rank (that is by priority,
 * bounded by how long somebody waits: see job_rank) and then in order of admission; one queue for
 * each device (jobs bound to it) and one for jobs that any device may take. Thread: the loop's.
 */
#ifndef FRONT_SCHED_QUEUE_H
#define FRONT_SCHED_QUEUE_H

#include "daemon/front/model/front.h"

/* A queued job goes to its queue if hazards allow it, else it waits for its predecessors. */
void queue_offer(struct front *f, struct job *j);
void queue_remove(struct front *f, struct job *j); /* not in one: nothing happens */
/* It waits for a kernel that is being built or loaded. */
void queue_await_module(struct front *f, struct job *j);
void queue_leave_module(struct front *f, struct job *j); /* it ended; or nothing happens */
/* Kernels may be there: those that wait now are offered again, in queue_modules_turn. Are there
 * any? */
bool queue_offer_modules(struct front *f);
void queue_modules_turn(struct front *f); /* as far as this turn has units for */
/* After `j` was dispatched or came back: those behind it may be ready now, or no more. */
void queue_moved(struct front *f, struct job *j);
/* Looks at jobs for which something changed, as many as this turn has units for. */
void queue_turn(struct front *f);
/* So many jobs are ready before it, of those in its queue. *ret_more: and others that were not
 * counted. */
unsigned queue_ahead(struct front *f, const struct job *j, bool *ret_more);
/* What `j` waits for is as urgent as itself: queued jobs before it get its rank where theirs is
 * behind. */
void queue_raise(struct front *f, struct job *j);
/* Before all that have a priority, and so is what it waits for. */
void queue_first(struct front *f, struct job *j);
/* The first job that `d` may take: the one of the two heads that is before the other. NULL: none.
 */
struct job *queue_head(const struct front *f, const struct device *d);

#endif
