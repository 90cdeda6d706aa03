/*
 * Chooses the way of a request: by the ring, over the socket, or later. Sequenced requests go in
 * the order of their numbers, as far ahead of unanswered ones as the daemon allows.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_LINK_ROUTE_H
#define CLIENT_LINK_ROUTE_H

#include "client/src/base/client.h"
#include "common/clock.h"

/* A request that had to wait is tried again after it: the ring may have room without an answer. */
#define ROUTE_UNSENT_NS (1 * NS_PER_MS)

/* Sends a request of the table now, or once the session is ready. A sequenced request waits for
 * those before it, and until the daemon takes its number. */
void session_send(struct gpud_client *c, struct request *r);
/* Sends the requests that waited. Called after answers came, and ROUTE_UNSENT_NS after a request
 * had to wait. */
void session_go_on(struct gpud_client *c);

#endif
