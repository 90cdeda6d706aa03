/*
 * The one end of every job, whatever its cause: its state, the defined parts of its buffers, its
 * hazards, its answer, its place in the history. Thread: the loop's.
 */
#ifndef FRONT_SCHED_CONCLUDE_H
#define FRONT_SCHED_CONCLUDE_H

#include "daemon/front/model/front.h"

/* Ends the job for good, and calls hooks.job_ended. error NULL: none; the job is done. */
void job_conclude(struct front *f, struct job *j, enum job_state state, const struct err *error);
/* Continues to release jobs that ended before they ran, as far as this turn has units. Such a job
 * blocks the jobs behind it until all readers of its outputs are marked as starved. */
void job_leave_some(struct front *f);
enum strike_reason {
    STRIKE_CRASH, /* the job ended its worker */
    STRIKE_TURN,  /* its turn overran, and its worker was ended */
    STRIKE_LIMIT, /* it passed the settings' time limit, and its worker was ended */
};

/* Adds a strike to each kernel of a user that the job launches, if the job is known not to have
 * ended by a limit alone. Adds one to its tenant if that cost other tenants something: the worker
 * that they share, or their turns. */
void job_strike(struct front *f, const struct job *j, enum strike_reason why);
/* Asks the worker of a job in flight, once, to cancel it. Steps that have begun run on. */
void job_cancel(struct front *f, struct job *j);
/* Ends the worker of a job in flight, which then ends as cancelled. ERR_STATE: the worker is not
 * its tenant's own; nothing is changed. */
int job_kill(struct front *f, struct job *j, struct err *e);
/* Answers the client before the device is done with the job. Until then the job keeps its place,
 * its charge and its hazards; what it writes is undefined, and its end is JOB_FAILED with this
 * error. Steps that have not begun do not begin. */
void job_answer_early(struct front *f, struct job *j, const struct err *error);
/* Answers early with DEADLINE, if the deadline has passed and the client has no answer. */
void job_late(struct front *f, struct job *j, uint64_t now_ns);

#endif
