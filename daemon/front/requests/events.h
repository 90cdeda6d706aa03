/*
 * WAIT and EVENTS: results of asynchronous jobs, and notices. A WAIT is held until there is an
 * event or its time is over. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_EVENTS_H
#define FRONT_REQUESTS_EVENTS_H

#include "daemon/front/model/front.h"

/* WAIT: acknowledges the EVENTS before it, and is held. A newer WAIT replaces the older one. Takes
 * the request. */
void session_wait(struct front *f, struct session *s, struct request *r);
/* Answers the session's WAIT if there is an event, or if its time is over. */
void session_send_events(struct front *f, struct session *s, uint64_t now_ns);
void sessions_send_events(struct front *f); /* the same for each session */

#endif
