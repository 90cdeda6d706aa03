/*
 * When a job will begin and end, also one that waits for others: it begins after the last of them,
 * and after what others get of the device meanwhile (predict.h). The jobs that it waits for are
 * walked, to OUTLOOK_JOBS_MAX of them.
 * Thread: the loop's. O(jobs that it waits for, directly or not); only requests and jobs with
 * deadlines pay for it.
 */
#ifndef FRONT_SCHED_OUTLOOK_H
#define FRONT_SCHED_OUTLOOK_H

#include "daemon/front/sched/predict.h"

#define OUTLOOK_JOBS_MAX 1024u

/* Unknown for a job that waits for kernels or memory, for a worker that does not serve, behind more
 * than HAZARD_AFTER_MAX jobs at once or OUTLOOK_JOBS_MAX in all, or behind one of which it is
 * unknown; also without memory. Its place (shares_reserve) is there. */
struct prediction outlook_of(struct front *f, const struct job *j);
/* Whether a job with a deadline can begin in time: predict_admit; but one that waits for others is
 * refused only if their ends are known. Those get its place: they must leave the deadlines of
 * others of its tenant as they can be kept, too. ERR_DEADLINE has the times in its text. */
int outlook_admit(struct front *f, const struct job *j, struct err *e);

#endif
