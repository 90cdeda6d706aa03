/* The begin and end of every public function: checks its client and takes the client's lock. */
#ifndef CLIENT_BASE_ENTER_H
#define CLIENT_BASE_ENTER_H

#include "client/src/base/client.h"

/* Checks the client (INVALID, FORKED, CLOSED) and takes its lock. No lock is held on failure. */
int client_enter(struct gpud_client *c, struct err *e);
/* The same, also while the client closes and its callbacks run; for calls that need no daemon. */
int client_enter_closing(struct gpud_client *c, struct err *e);
void client_leave(struct gpud_client *c);

#endif
