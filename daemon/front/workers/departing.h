/*
 * Workers of a former front that this front ends because it cannot adopt them. Their devices get no
 * other worker before they have ended: two workers of one device would hold its memory twice.
 * Thread: the loop's.
 */
#ifndef FRONT_WORKERS_DEPARTING_H
#define FRONT_WORKERS_DEPARTING_H

#include "daemon/front/model/front.h"

/* The launcher was asked to end the worker. owner: the key of the tenant whose domain it was; 0: it
 * was shared. */
void departing_add(struct front *f, uint64_t worker, const char *backend, unsigned number,
                   uint64_t owner);
/* Has the device such a worker? */
bool departing_has(const struct front *f, const struct device *d);
/* The launcher reports the end of a worker, whose device may start another one then. false: it is
 * none of them. */
bool departing_ended(struct front *f, uint64_t worker);
/* The launcher ended, and its workers with it. */
void departing_orphaned(struct front *f);

#endif
