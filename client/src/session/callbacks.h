/* The user's callbacks: done callbacks of jobs, events. Thread: under the client's lock. */
#ifndef CLIENT_SESSION_CALLBACKS_H
#define CLIENT_SESSION_CALLBACKS_H

#include "client/src/base/client.h"

/* Runs the pending callbacks; releases the lock while they run. */
void client_callbacks(struct gpud_client *c);

#endif
