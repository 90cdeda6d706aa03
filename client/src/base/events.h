/* Events that wait for the user's callback. Thread: under the client's lock. Never blocks. */
#ifndef CLIENT_BASE_EVENTS_H
#define CLIENT_BASE_EVENTS_H

#include "client/src/base/client.h"

/* Queues an event for the user's callback. */
void client_event(struct gpud_client *c, int kind, gpud_buffer buffer, const char *text);
/* Sets the timer and the readiness of the client's descriptors to the pending callbacks. */
void client_arm(struct gpud_client *c);

#endif
