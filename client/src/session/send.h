/*
 * Sends requests over the socket, now or again after a pause. A connection that breaks meanwhile is
 * dropped (lost.h): the caller looks at session.state before it uses a request again.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_SEND_H
#define CLIENT_SESSION_SEND_H

#include "client/src/session/client.h"

/* Sends one that is in the table ahead of all that waits for the session. Without a connection
 * nothing happens: it is sent again on the next. */
void session_send_now(struct gpud_client *c, struct request *r);
/* Adds a request of this connection and sends it ahead of all that waits for the session. */
int session_ask(struct gpud_client *c, struct request *r, request_fn answered, struct err *e);
/* What went by the ring and was not answered goes over the socket. */
void session_resend_ring(struct gpud_client *c);
/* Sends one that was not admitted again after a pause, under the same id; 0: after AGAIN_NS. */
void session_send_later(struct gpud_client *c, struct request *r, uint64_t pause_ns);
/* Sends those whose pause is over. */
void session_send_again(struct gpud_client *c, uint64_t now_ns);

#endif
