/*
 * The report of a job's end to its client: the answer to its request, or a result for EVENTS.
 * Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_JOB_ANSWER_H
#define FRONT_REQUESTS_JOB_ANSWER_H

#include "daemon/front/model/front.h"

/* The job must have a session, and either an op or `async`. */
void job_answer(struct front *f, struct job *j);

#endif
