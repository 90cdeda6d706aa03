/*
 * The ring lane: a session's requests and answers through shared memory instead of the socket, on
 * the same host (PROTOCOL.md, "Rings"). It is asked for by itself, once jobs are submitted; where
 * there is none, or what does not fit, goes over the socket. A request has one number wherever it
 * goes, so one that was sent by a ring that broke is simply sent again by the socket.
 *
 * Who waits looks at the ring for a while before it sleeps, where there is a second processor;
 * while that does not pay it is done ever more rarely. GPUD_SPIN_US in the environment: how long at
 * most, 0: not at all.
 *
 * GPUD_LANE in the environment: "auto", "nng" (never), "ring" (gpud_open fails where there is
 * none).
 *
 * Thread: under the client's lock. Nothing blocks. Makes a system call only to wake the daemon.
 */
#ifndef CLIENT_SESSION_LANE_H
#define CLIENT_SESSION_LANE_H

#include "client/src/session/client.h"

/* ERR_INVALID: GPUD_LANE is nonsense. */
int lane_init(struct lane *l, struct err *e);
bool lane_is_up(const struct gpud_client *c);
/* A sequenced request is about to be sent: asks for a lane if it is time to. */
void lane_wish(struct gpud_client *c);
void lane_ask(struct gpud_client *c);
/* Sends the request; false: it has to go over the socket. */
bool lane_send(struct gpud_client *c, struct request *r);
/* The descriptors may be there. */
void lane_claimed(struct gpud_client *c);
/* Takes every answer that is there; true: there was one. */
bool lane_take(struct gpud_client *c);

#endif
