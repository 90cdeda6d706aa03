/* Encodes a job into the one frame that its worker gets. Pure. Thread: the loop's. */
#ifndef FRONT_WORKERS_JOB_FRAME_H
#define FRONT_WORKERS_JOB_FRAME_H

#include "common/seqpacket.h"
#include "daemon/front/model/job.h"
#include "proto/codec.h"

/* The lists of the message. */
struct job_frame {
    struct capbuf refs, steps, temps, after;
};

void job_frame_init(struct job_frame *b, size_t limit); /* bytes of each list */
void job_frame_finish(struct job_frame *b);
/* preds: its direct predecessors; NULL: more than fit, which is ERR_STATE. *ret_m points into *b
 * and into the job. */
int job_frame_build(const struct job *j, const struct hazard_preds *preds, struct job_frame *b,
                    struct msg_f_job *ret_m, struct err *e);

/* Checks that the job fits into a frame with any place of its staging memory and any predecessors.
 * ERR_LIMIT names size and limit. complete: false if parameters are unbound and some steps are
 * still missing; then only a job that is too large already is refused. */
int job_frame_check(const struct job *j, bool complete, struct err *e);

#endif
