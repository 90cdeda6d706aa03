/*
 * Results of asynchronous jobs and notices, which the daemon sends as the answer to WAIT. The
 * session keeps one WAIT unanswered for them.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_NOTICES_H
#define CLIENT_SESSION_NOTICES_H

#include "client/src/base/client.h"

/* Sends WAIT, unless one is unanswered. A WAIT that cannot be sent, or is refused, is sent again at
 * session.wait_ns. */
void session_listen(struct gpud_client *c);

#endif
