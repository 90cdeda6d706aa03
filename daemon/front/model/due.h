/*
 * When the front must look at its clock again. There is no tick: whoever sets a time that something
 * is due at says so here, and pipeline.c arms one timer for the earliest. What was said may be out
 * of date (a job ended before its limit): then the look finds nothing, and each watcher says again
 * what it still waits for. Thread: the loop's.
 */
#ifndef FRONT_MODEL_DUE_H
#define FRONT_MODEL_DUE_H

#include "daemon/front/model/front.h"

/* at_ns: absolute, NS_NEVER is fine. Costs nothing. */
void due_at(struct front *f, uint64_t at_ns);
/* Something that is looked at once a second while it changes: statistics of a device's pool. */
void due_pool(struct front *f, struct device *d);
/* A job was queued: it ends at its deadline, if it has one and has not been given to a worker. */
void due_job(struct front *f, struct job *j);

#endif
