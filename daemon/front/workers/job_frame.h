/* A job as it is written to its worker, in one frame. Pure. Thread: the loop's. */
#ifndef FRONT_WORKERS_JOB_FRAME_H
#define FRONT_WORKERS_JOB_FRAME_H

#include "common/seqpacket.h"
#include "daemon/front/model/job.h"
#include "proto/codec.h"

/* Lists of the message lie here. */
struct job_frame {
    struct capbuf refs, steps, temps, after;
};

void job_frame_init(struct job_frame *b, size_t limit); /* bytes of each list */
void job_frame_finish(struct job_frame *b);
/* preds: those directly before it; NULL: more than fit, ERR_STATE. *ret_m lies in *b and in the
 * job.
 */
int job_frame_build(const struct job *j, const struct hazard_preds *preds, struct job_frame *b,
                    struct msg_f_job *ret_m, struct err *e);

/* Does it fit into a frame, wherever its staging memory will lie and whatever it waits for?
 * ERR_LIMIT with size and limit. Not complete: parameters are unbound, so that some steps are not
 * there yet: refused is what is too large already. */
int job_frame_check(const struct job *j, bool complete, struct err *e);

#endif
