/*
 * What the daemon tells by itself: results of asynchronous jobs, and notices. The session keeps one
 * WAIT held for them.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_NOTICES_H
#define CLIENT_SESSION_NOTICES_H

#include "client/src/session/client.h"

/* Sends WAIT, unless one is held. One that cannot be sent, or is refused, is due at
 * session.wait_ns. */
void session_listen(struct gpud_client *c);

#endif
