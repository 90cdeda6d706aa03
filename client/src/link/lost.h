/*
 * The end of a connection. Requests that belong to the connection end with it; all others remain
 * for the next connection. Callbacks of requests run in these functions, so a caller's pointers to
 * requests may be invalid afterwards.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_LINK_LOST_H
#define CLIENT_LINK_LOST_H

#include "client/src/base/client.h"

/* Drops an unusable connection and sets the time of the next attempt. */
void session_lost(struct gpud_client *c, const struct err *why);
/* Ends every request with an error. */
void session_fail(struct gpud_client *c, const struct err *why);

#endif
