/* What pipeline.c, pipeline_start.c and pipeline_end.c have of each other. Thread: the loop's. */
#ifndef FRONT_PIPELINE_INT_H
#define FRONT_PIPELINE_INT_H

#include "daemon/front/clients/lane.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/pipeline.h"

/* ---- pipeline.c ---- */

extern const struct listener_callbacks pipeline_requests; /* of whoever hears a front's clients */
extern const struct lanes_callbacks pipeline_ring_requests;
void pipeline_init(struct front *f); /* hooks, and the handles of the loop */

/* ---- pipeline_start.c ---- */

void pipeline_start_anew(struct front *f); /* after the launcher's end, outside its callbacks */
void pipeline_settings(struct front *f);   /* the hook: they were read again */

/* ---- pipeline_end.c ---- */

void pipeline_watch_end(struct front *f, uint64_t now); /* is it time? */

#endif
