/*
 * Snapshots of the devices' memory pools. The front asks every worker and answers the client when
 * all have sent theirs, or after a time limit; the answer names the missing ones. The snapshot is
 * kept for a while, so that the client can read its pieces and events in parts.
 *
 * A client sees the pieces and events of its tenant, or all of them (rights.h). Adjacent pieces of
 * other tenants appear as one piece without a name. Thread: the loop's.
 */
#ifndef FRONT_VIEWS_SNAPSHOT_H
#define FRONT_VIEWS_SNAPSHOT_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"

#define SNAPSHOTS_MAX        64u /* sets of snapshots at once */
#define SNAPSHOTS_TENANT_MAX 8u  /* sets of one tenant; a further one displaces the oldest */
#define SNAPSHOT_ASKED_MAX   4u  /* unanswered requests to one worker */

/* POOL_TAKE: owns the request and answers it later. */
void snapshot_take(struct front *f, struct session *s, struct request *r);
/* POOL_READ */
int request_pool_read(struct request_context *c, struct err *e);
/* A worker has answered. Takes the descriptor (-1: none). */
void snapshot_received(struct front *f, struct device *d, const struct msg_w_snapshot *m, int fd);
void snapshot_device_lost(struct front *f, struct device *d);
/* The domain is about to be freed: snapshots of it name its device. */
void snapshot_device_removed(struct front *f, struct device *d);
/* Checks sets whose time is over: answers pending requests, drops answered sets. Sets the timer for
 * the next one. */
void snapshot_watch(struct front *f, uint64_t now_ns);
void snapshot_finish_all(struct front *f);

#endif
