/*
 * Waits for room among the jobs in flight, or for the end of a job.
 *
 * Thread: under the client's lock, which both give up meanwhile.
 */
#ifndef CLIENT_SESSION_JOB_WAIT_H
#define CLIENT_SESSION_JOB_WAIT_H

#include "client/src/objects/job.h"

/* With GPUD_SUBMIT_BLOCK, waits for room among the jobs in flight; without it, BUSY if there is
 * none. Called before handles are used, because they may change while it waits. */
int job_room(struct gpud_client *c, const gpud_submit_options *options, uint64_t deadline_ns,
             struct err *e);
/* Waits for the job's end and returns the job's error. TIMEOUT. */
int job_wait(struct gpud_client *c, struct gpud_job *job, uint64_t deadline_ns, struct err *e);

/* Waits before a job that was refused for that reason is sent again: a pause that grows with each
 * try and varies. false: it is not to be sent again, because it was not refused as busy, until_ns
 * is NS_NEVER or would pass meanwhile, or the client has ended. Blocks. */
bool job_again(struct gpud_client *c, unsigned tries, uint64_t until_ns, const struct err *why);

#endif
