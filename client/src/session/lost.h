/*
 * The end of a connection. Requests of that connection alone end with it; the others stay for the
 * next one. Request callbacks run meanwhile, and the requests that a caller holds may be gone
 * afterwards.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_LOST_H
#define CLIENT_SESSION_LOST_H

#include "client/src/session/client.h"

/* The connection is unusable: drops it, plans the next. */
void session_lost(struct gpud_client *c, const struct err *why);
/* Ends every request with an error. */
void session_fail(struct gpud_client *c, const struct err *why);

#endif
