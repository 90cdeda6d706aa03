/*
 * Waiting without a thread of the library's own, and taking what arrives.
 *
 * Thread: under the client's lock. Callbacks of the user do not run here: see callbacks.h.
 */
#ifndef CLIENT_SESSION_WAIT_H
#define CLIENT_SESSION_WAIT_H

#include "client/src/session/client.h"

/*
 * Blocks until ready(arg) or the deadline (ERR_TIMEOUT). Gives the lock up while it waits. Answers
 * are taken by whichever thread watches the connection.
 */
int client_wait(struct gpud_client *c, bool (*ready)(void *arg), void *arg, uint64_t deadline_ns,
                struct err *e);
/* Takes what has arrived, without blocking; from the socket only if it is ready. */
void client_process(struct gpud_client *c, bool socket);
/* The same, and wakes those whose wait is over by it. */
void client_poll(struct gpud_client *c);
/* The same for one who is about to wait: at times only what costs no system call. */
void client_glance(struct gpud_client *c);
/* Before a request that nobody waits for: takes answers if many are due. They would fill the way
 * back, and the daemon closes connections that let its answers lie. */
void client_make_room(struct gpud_client *c);

#endif
