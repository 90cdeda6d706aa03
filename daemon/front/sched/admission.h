/*
 * SUBMIT: a job is made of a program and its values, checked against all limits, and put into the
 * queue, or refused with what helps. Thread: the loop's; nothing blocks.
 */
#ifndef FRONT_SCHED_ADMISSION_H
#define FRONT_SCHED_ADMISSION_H

#include "common/err.h"
#include "daemon/front/model/request.h"

/* A handler of requests (requests/requests.h). ERR_BUSY: there is no room now; the error says when
 * to ask again. */
int request_submit(struct request_context *c, struct err *e);

#endif
