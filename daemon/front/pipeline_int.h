/* What the files of the pipeline have of each other. Thread: the loop's. */
#ifndef FRONT_PIPELINE_INT_H
#define FRONT_PIPELINE_INT_H

#include "daemon/front/clients/lane.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/pipeline.h"

/* ---- pipeline.c ---- */

extern const struct listener_callbacks pipeline_requests; /* of whoever hears a front's clients */
extern const struct lanes_callbacks pipeline_ring_requests;
void pipeline_init(struct front *f); /* hooks, and the handles of the loop */

/* ---- pipeline_launcher.c ---- */

/* Opens the launcher, starts it if need be, and the compiler; asks which workers run. Blocks. */
int pipeline_start_launcher(struct front *f, struct err *e);
void pipeline_start_anew(struct front *f); /* after the launcher's end, outside its callbacks */

/* ---- pipeline_settings.c ---- */

/* Fills in the limits of requests and of answers that are not read, and nothing else. */
void pipeline_request_limits(const struct config *c, struct listener_options *options);
void pipeline_settings(struct front *f); /* the hook: they were read again */

/* ---- pipeline_end.c ---- */

void pipeline_watch_end(struct front *f, uint64_t now); /* is it time? */

#endif
