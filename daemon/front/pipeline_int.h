/* Shared by the files of the pipeline. Thread: the loop's. */
#ifndef FRONT_PIPELINE_INT_H
#define FRONT_PIPELINE_INT_H

#include "daemon/front/clients/lane.h"
#include "daemon/front/clients/listener.h"
#include "daemon/front/pipeline.h"

/* ---- pipeline.c ---- */

extern const struct listener_callbacks pipeline_requests; /* of the listener */
extern const struct lanes_callbacks pipeline_ring_requests;
void pipeline_init(struct front *f); /* fills the hooks and starts the loop's handles */
/* The loop's one timer fired: does the periodic work if front.wake_ns has come. */
void pipeline_wake(struct front *f);

/* ---- pipeline_start.c ---- */

/* Until when a front that began to adopt then waits for the reports of workers: times for which it
 * stood still do not count. 0: it waits no more. */
uint64_t pipeline_adopts_until(const struct front *f, uint64_t began_ns);

/* ---- pipeline_launcher.c ---- */

/* Connects to the launcher or starts it, makes the compiler, and asks for the running workers.
 * Blocks. */
int pipeline_start_launcher(struct front *f, struct err *e);
void pipeline_start_anew(struct front *f); /* after the launcher's end; not from its callbacks */

/* ---- pipeline_settings.c ---- */

/* Fills in the limits of unanswered requests and unread answers only. */
void pipeline_request_limits(const struct config *c, struct listener_options *options);
void pipeline_settings(struct front *f); /* the hook: the settings were read again */
/* Gives the listener f->tls, which is used up. No effect if there are no files. */
int pipeline_tls(struct front *f, struct err *e);
/* Opens, changes and removes the sockets of tenants (clients/sockets.h). One that fails is logged,
 * and leaves the others as they should be. */
void pipeline_sockets(struct front *f);
/* Serves metrics as the settings say. A failure is logged, and is a problem of the daemon. */
void pipeline_metrics(struct front *f);
/* Is this address for TLS, and no certificate was good so far? Then it is added after a reload. */
bool pipeline_waits_for_tls(const struct front *f, unsigned listen);

/* ---- pipeline_end.c ---- */

void pipeline_watch_end(struct front *f, uint64_t now); /* ends the loop if it is time to */

#endif
