/*
 * Which way a request goes: by the ring, over the socket, or later. Sequenced requests go in the
 * order of their numbers, as far ahead as the daemon takes them.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_ROUTE_H
#define CLIENT_SESSION_ROUTE_H

#include "client/src/session/client.h"

/* Sends a request that is in the table, at once or when the session is ready; a sequenced one not
 * before the daemon would take it, nor before those in front of it. */
void session_send(struct gpud_client *c, struct request *r);
/* Sends what waited for that. Called when answers came, and a millisecond after it had to wait. */
void session_go_on(struct gpud_client *c);

#endif
