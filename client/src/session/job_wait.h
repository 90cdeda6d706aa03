/*
 * Waiting for jobs: for room among them, for the end of one.
 *
 * Thread: under the client's lock, which both give up meanwhile.
 */
#ifndef CLIENT_SESSION_JOB_WAIT_H
#define CLIENT_SESSION_JOB_WAIT_H

#include "client/src/objects/job.h"

/* Waits for room among the jobs in flight with GPUD_SUBMIT_BLOCK, else BUSY. Comes first, since
 * handles may change while it waits. */
int job_room(struct gpud_client *c, const gpud_submit_options *options, uint64_t deadline_ns,
             struct err *e);
/* Waits for its end; its error. */
int job_wait(struct gpud_client *c, struct gpud_job *job, uint64_t deadline_ns, struct err *e);

#endif
