/*
 * Sends requests over the socket, now or again after a pause. A connection that breaks in these
 * functions is dropped (lost.h), so the caller checks session.state before it uses a request again.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_LINK_SEND_H
#define CLIENT_LINK_SEND_H

#include "client/src/base/client.h"

/* Sends a request of the table before all that wait for the session. Without a connection it does
 * nothing: the next connection sends the request. */
void session_send_now(struct gpud_client *c, struct request *r);
/* Adds a request that belongs to this connection and sends it before all that wait for the session.
 */
int session_ask(struct gpud_client *c, struct request *r, request_fn answered, struct err *e);
/* Sends the unanswered requests of the ring over the socket. */
void session_resend_ring(struct gpud_client *c);
/* Sends a request that was not admitted again after a pause, under the same id. pause_ns 0:
 * AGAIN_NS. */
void session_send_later(struct gpud_client *c, struct request *r, uint64_t pause_ns);
/* Sends the requests whose pause is over. */
void session_send_again(struct gpud_client *c, uint64_t now_ns);

#endif
