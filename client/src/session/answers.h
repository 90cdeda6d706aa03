/*
 * Answers on their way to the requests that they are for. A request that was not admitted is sent
 * again, or ends with its number filled. Tells the daemon of answers that it need not keep.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_ANSWERS_H
#define CLIENT_SESSION_ANSWERS_H

#include "client/src/session/client.h"

/* A message came in. */
int session_message(struct gpud_client *c, struct message *m, struct err *e);

#endif
