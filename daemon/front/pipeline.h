/*
 * The order of the stages: a request arrives, gets its turn in its session and is handled. If it is
 * a job, it waits, goes to a worker, ends, and is answered. Only pipeline.c knows all stages. The
 * files pipeline_* start and end the daemon. Thread: the loop's.
 */
#ifndef FRONT_PIPELINE_H
#define FRONT_PIPELINE_H

#include "daemon/front/model/front.h"

/* Connects the front to the system: the real clock, sockets, processes and compiler (model/io.h).
 * The first call for a new front. */
void pipeline_io(struct front *f);
/* Fills the hooks, connects to the launcher or starts it, adopts and starts workers, then opens the
 * sockets. Blocks until adopted workers have reported, for at most 5 s, in which the loop runs.
 * After a failure the caller calls pipeline_stop. */
int pipeline_start(struct front *f, struct err *e);
/* Refuses new jobs, and ends the loop when all jobs have ended. A second call ends it at once. */
void pipeline_drain(struct front *f);
/* Ends the front, and leaves launcher and workers to the next front. To clients this looks like a
 * crash: they connect to the next front and ask it for missing answers. Waits only for the jobs of
 * drain_orphans; a second call does not wait. */
void pipeline_hand_over(struct front *f);
void pipeline_stop(struct front *f);   /* ends the loop now */
void pipeline_finish(struct front *f); /* frees everything, after the loop */

#endif
