/* Events wait here for the user's callback. Thread: under the client's lock. Never blocks. */
#ifndef CLIENT_SESSION_EVENTS_H
#define CLIENT_SESSION_EVENTS_H

#include "client/src/session/client.h"

/* Notes an event for the user's callback. */
void client_event(struct gpud_client *c, int kind, gpud_buffer buffer, const char *text);
/* Sets the descriptors' timer and readiness to what is pending. */
void client_arm(struct gpud_client *c);

#endif
