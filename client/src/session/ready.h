/*
 * A session that becomes ready on a new connection: sends the unanswered requests again.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_READY_H
#define CLIENT_SESSION_READY_H

#include "client/src/base/client.h"

/* Called once the daemon knows all objects that requests name. Numbers from `fill` on without a
 * request get fillers. event: for the user's callback, 0: none. A connection that breaks here is
 * dropped. */
void session_ready(struct gpud_client *c, uint64_t fill, int event);

#endif
