/*
 * What the client is told of a job that ended: the answer to its request, or a result for EVENTS.
 * Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_JOB_ANSWER_H
#define FRONT_REQUESTS_JOB_ANSWER_H

#include "daemon/front/model/front.h"

/* Of a job with a session, whose request waits for the answer, or that is asynchronous. */
void job_answer(struct front *f, struct job *j);

#endif
