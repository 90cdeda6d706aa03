/*
 * Metrics: what jobs add to them, the numbers of a scrape, and the server ([metrics] listen). The
 * loop does a bounded piece of a collection in each of its turns, and nothing without a request.
 * Thread: the loop's.
 */
#ifndef FRONT_METRICS_METRICS_H
#define FRONT_METRICS_METRICS_H

#include <stdbool.h>

#include "daemon/front/model/front.h"

/* It serves nothing before metrics_serve. ERR_NOMEM. */
int metrics_create(struct front *f, struct metrics **ret_metrics, struct err *e);
/* Stops the server. To be called before the loop's last turn; the rest goes with metrics_free. NULL
 * is accepted, here and below. */
void metrics_stop(struct metrics *m);
void metrics_free(struct metrics *m);
/* The setting: addresses, or "". Serves there and no longer elsewhere. Addresses that stay have an
 * interruption if others change. On failure metrics are not served, and the next call tries again.
 * gid: for unix sockets (server.h). Blocks for some milliseconds. */
int metrics_serve(struct metrics *m, const char *addresses, uint32_t gid, struct err *e);
/* The job has ended, and its steps are still there. */
void metrics_job(struct metrics *m, const struct job *j);
/* Goes on with a collection, as far as the turn has room. */
void metrics_turn(struct metrics *m);
/* The entry, perhaps a tenant, leaves its table; `next` is the one behind it. */
void metrics_skip(struct metrics *m, const void *entry, const void *next);

#endif
