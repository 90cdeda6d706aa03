/*
 * SUBMIT: makes a job of a program and its values, checks it against all limits, and queues it. A
 * refusal names the limit, and the time of the next try. Thread: the loop's; nothing blocks.
 */
#ifndef FRONT_SCHED_ADMISSION_H
#define FRONT_SCHED_ADMISSION_H

#include "common/err.h"
#include "daemon/front/model/request.h"

/* A handler of requests (requests/requests.h). ERR_BUSY: there is no room now; the error has the
 * time of the next try. session->parked.common says whether the missing room is shared by all
 * sessions. */
int request_submit(struct request_context *c, struct err *e);

#endif
