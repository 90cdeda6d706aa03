/*
 * WAIT and EVENTS: reports results of asynchronous jobs, and notices. A WAIT is answered with
 * EVENTS when there is an event or its time is over. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_EVENTS_H
#define FRONT_REQUESTS_EVENTS_H

#include "daemon/front/model/front.h"

/* WAIT: acknowledges the EVENTS that it names, and waits for the next. A newer WAIT replaces an
 * older one. Takes the request. */
void session_wait(struct front *f, struct session *s, struct request *r);
/* Answers the session's WAIT if there is an event, or if its time is over. */
void session_send_events(struct front *f, struct session *s, uint64_t now_ns);
void sessions_send_events(struct front *f); /* the same for each session */

#endif
