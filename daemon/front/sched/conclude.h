/*
 * How a job ends, whatever the reason: state, what its buffers hold from now on, hazards, history.
 * Thread: the loop's.
 */
#ifndef FRONT_SCHED_CONCLUDE_H
#define FRONT_SCHED_CONCLUDE_H

#include "daemon/front/model/front.h"

/* Ends the job once and for all and tells it through hooks.job_ended. error NULL: it is done. */
void job_conclude(struct front *f, struct job *j, enum job_state state, const struct err *error);
/* Jobs that ended before they ran stay in the way of those behind them until these have heard of
 * it: does so, as far as this turn has units for. */
void job_leave_some(struct front *f);
/* Counts against each kernel of a user's that it launches. */
void job_strike(const struct job *j);
/* Gives staging memory and the worker's memory of the job back; then it can leave the history. One
 * that was kept beyond that is destroyed. */
void job_release(struct front *f, struct job *j);
/* The client has its answer: it is released, at its end if that is still to come. */
void job_taken(struct front *f, struct job *j);
/* Answers the client before the device is done with the job. Until then the job keeps its place,
 * its charge and its hazards; what it writes is undefined, and its end is JOB_FAILED with this
 * error. Steps that have not begun do not begin. */
void job_answer_early(struct front *f, struct job *j, const struct err *error);
/* The same with DEADLINE, if that has passed and the client has no answer yet. */
void job_late(struct front *f, struct job *j, uint64_t now_ns);
/* Its staging memory only: the worker goes on knowing that it ran. */
void job_free_staging(struct front *f, struct job *j);
/* Those whose answer was not taken leave the history, but are known until it is. */
void job_forget_history(struct front *f, unsigned keep);
/* Ended jobs of tenants without sessions are known no more, whether their answers were taken or
 * not: nobody is there who could ask. */
void job_forget_absent(struct front *f);

#endif
