/*
 * Passes answers to their requests. A request that was not admitted is sent again, or ends and a
 * filler takes its number. Reports received answers to the daemon (TAKEN), which then forgets them.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_LINK_ANSWERS_H
#define CLIENT_LINK_ANSWERS_H

#include "client/src/base/client.h"

/* Handles a message of the daemon. An error makes the connection unusable. */
int session_message(struct gpud_client *c, struct message *m, struct err *e);

#endif
