/*
 * Which jobs are ready: those whose predecessors allow them to run. shares.h says which of them
 * runs next. Thread: the loop's.
 */
#ifndef FRONT_SCHED_QUEUE_H
#define FRONT_SCHED_QUEUE_H

#include "daemon/front/model/front.h"

/* Makes a job in state JOB_QUEUED ready if hazards allow it; else the job waits for
 * its predecessors. Does nothing if it is there already, or in another state. */
void queue_offer(struct front *f, struct job *j);
void queue_remove(struct front *f, struct job *j); /* not ready: nothing happens */
/* The job is not ready: it waits for a module that is being built or loaded (WAIT_MODULE), or for
 * the content of a buffer that is being restored (WAIT_RESTORE). */
void queue_await(struct front *f, struct job *j, enum job_wait why);
void queue_leave_awaiting(struct front *f, struct job *j); /* not waiting: nothing happens */
/* A module or a buffer's content may have come: queue_awaiting_turn offers all jobs that wait for
 * one. false: no job waits. */
bool queue_offer_awaiting(struct front *f);
void queue_awaiting_turn(struct front *f); /* as far as this turn has units for */
/* Offers jobs that the limits of their tenants held back, and let go now. */
void queue_gates_turn(struct front *f);
/* `j` was dispatched, or queued again: checks the jobs behind it, which may be ready now, or no
 * longer. */
void queue_moved(struct front *f, struct job *j);
/* Checks jobs whose predecessors or successors changed, as many as this turn has units for. */
void queue_turn(struct front *f);
/* Number of ready jobs of its tenant before it, at most 1000. *ret_more: there are more. */
unsigned queue_ahead(struct front *f, const struct job *j, bool *ret_more);
/* Makes the jobs that `j` waits for as urgent as `j`: those with a later rank get its rank. */
void queue_raise(struct front *f, struct job *j);
/* Puts the job, and the jobs that it waits for, before all others. */
void queue_first(struct front *f, struct job *j);

#endif
