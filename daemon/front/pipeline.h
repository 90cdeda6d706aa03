/*
 * The order of the stages: a request arrives, is put in its session's order and handled, becomes a
 * job, waits, goes to a worker, ends, and is answered. Only pipeline.c knows all stages. The files
 * beside it start and end the daemon. Thread: the loop's.
 */
#ifndef FRONT_PIPELINE_H
#define FRONT_PIPELINE_H

#include "daemon/front/model/front.h"

/* Connects the front to the system: the real clock, sockets, processes and compiler. The first call
 * for a new front. */
void pipeline_io(struct front *f);
/* Fills the hooks and starts the launcher, the workers, then the sockets. */
int pipeline_start(struct front *f, struct err *e);
/* Refuses new jobs, and ends the loop when all jobs have ended. A second call ends it at once. */
void pipeline_drain(struct front *f);
/* Ends and leaves launcher and workers to the next front. Clients see it like a crash: they connect
 * to the next front and ask it for missing answers. It waits for drain_orphans only; a second call
 * does not. */
void pipeline_hand_over(struct front *f);
void pipeline_stop(struct front *f);   /* ends the loop now */
void pipeline_finish(struct front *f); /* frees everything, after the loop */

#endif
