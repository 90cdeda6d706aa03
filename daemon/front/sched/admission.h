/*
 * SUBMIT: makes a job of a program and its values, checks it against all limits, and queues it, or
 * refuses it with the limit and the time of the next try. Thread: the loop's; nothing blocks.
 */
#ifndef FRONT_SCHED_ADMISSION_H
#define FRONT_SCHED_ADMISSION_H

#include "common/err.h"
#include "daemon/front/model/request.h"

/* A handler of requests (requests/requests.h). ERR_BUSY: there is no room now; the error has the
 * time of the next try. */
int request_submit(struct request_context *c, struct err *e);

#endif
