/*
 * Waiting for answers, and taking them, without a thread of the library.
 *
 * Thread: under the client's lock. Callbacks of the user run in callbacks.h only.
 */
#ifndef CLIENT_SESSION_WAIT_H
#define CLIENT_SESSION_WAIT_H

#include "client/src/base/client.h"

/*
 * Blocks until ready(arg) or the deadline (ERR_TIMEOUT). Releases the lock while it waits. One
 * waiting thread watches the connection and takes the answers of all.
 */
int client_wait(struct gpud_client *c, bool (*ready)(void *arg), void *arg, uint64_t deadline_ns,
                struct err *e);
/* Takes the messages that have arrived, without blocking. socket: the socket is ready. */
void client_process(struct gpud_client *c, bool socket);
/* The same with a check of the socket. Wakes the threads whose wait is over. */
void client_poll(struct gpud_client *c);
/* The same for a caller that is about to wait. Most calls check the ring only, without a system
 * call. */
void client_glance(struct gpud_client *c);
/* Called before a request without a waiting caller: takes answers if many requests are unanswered.
 * The daemon closes connections whose client does not read its answers. */
void client_make_room(struct gpud_client *c);

#endif
