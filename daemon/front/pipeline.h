/*
 * The order of the stages, top to bottom: a request comes in, is put in its session's order,
 * handled, becomes a job, waits, is given to a worker, ends, and is answered. Only pipeline.c knows
 * all stages; what starts and ends the daemon lies beside it. Thread: the loop's.
 */
#ifndef FRONT_PIPELINE_H
#define FRONT_PIPELINE_H

#include "daemon/front/model/front.h"

/* Fills the hooks and starts: launcher, workers, then the sockets. */
int pipeline_start(struct front *f, struct err *e);
void pipeline_drain(struct front *f); /* no new jobs; ends the loop when all have ended, or at once
                                       when asked again */
/* Ends, and leaves launcher and workers to the next front: to clients it is as if this one had
 * crashed. They connect again and ask it for what was not answered. At once but for drain_orphans;
 * asked again, without these. */
void pipeline_hand_over(struct front *f);
void pipeline_stop(struct front *f);   /* ends now: the loop runs empty */
void pipeline_finish(struct front *f); /* after the loop: frees everything */

#endif
