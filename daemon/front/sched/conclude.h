/*
 * The end of a job, whatever its cause: its state, what its buffers have defined from now on, its
 * hazards, its answer, its place in the history. Thread: the loop's.
 */
#ifndef FRONT_SCHED_CONCLUDE_H
#define FRONT_SCHED_CONCLUDE_H

#include "daemon/front/model/front.h"

/* Ends the job for good, and calls hooks.job_ended. error NULL: it is done. */
void job_conclude(struct front *f, struct job *j, enum job_state state, const struct err *error);
/* Jobs that ended before they ran block the jobs behind them until all readers of their outputs are
 * marked as starved. Goes on with that, as far as this turn has units for. */
void job_leave_some(struct front *f);
/* Adds a strike to each kernel of a user that the job launches. */
void job_strike(const struct job *j);
/* Asks the worker of a job in flight to end it if it has not begun; once. */
void job_cancel(struct front *f, struct job *j);
/* Answers the client before the device is done with the job. Until then the job keeps its place,
 * its charge and its hazards; what it writes is undefined, and its end is JOB_FAILED with this
 * error. Steps that have not begun do not begin. */
void job_answer_early(struct front *f, struct job *j, const struct err *error);
/* Does so with DEADLINE, if the deadline has passed and the client has no answer. */
void job_late(struct front *f, struct job *j, uint64_t now_ns);

#endif
