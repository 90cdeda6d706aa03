/*
 * A session that begins to work, on a new connection: sends again what was not answered.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_READY_H
#define CLIENT_SESSION_READY_H

#include "client/src/session/client.h"

/* The daemon knows all that requests name. Numbers from `fill` on that no request has are filled.
 * event: for the callback of the user, 0: none. A connection that breaks meanwhile is dropped.
 */
void session_ready(struct gpud_client *c, uint64_t fill, int event);

#endif
