/*
 * The ring lane carries a session's requests and answers through shared memory instead of the
 * socket, on the same host (PROTOCOL.md, "Rings"). The client asks for a lane after its first jobs.
 * Without a lane, and for requests that do not fit into a ring, it uses the socket. A request has
 * the same number on both ways, so a request in a ring that broke is sent again over the socket.
 *
 * A waiting thread spins on the ring before it sleeps, if there is a second processor. It spins
 * less often after spins that found no answer. GPUD_SPIN_US in the environment is the longest time,
 * 0 for none.
 *
 * GPUD_LANE in the environment: "auto", "nng" (never), "ring" (gpud_open fails without a lane).
 *
 * Thread: under the client's lock. Nothing blocks. Makes a system call only to wake the daemon.
 */
#ifndef CLIENT_LINK_LANE_H
#define CLIENT_LINK_LANE_H

#include "client/src/base/client.h"

/* ERR_INVALID: GPUD_LANE or GPUD_SPIN_US has an invalid value. */
int lane_init(struct lane *l, struct err *e);
bool lane_is_up(const struct gpud_client *c);
/* Called before a sequenced request is sent: asks for a lane after enough of these. */
void lane_wish(struct gpud_client *c);
/* Asks for a lane now, unless the mode or the state is against it. */
void lane_ask(struct gpud_client *c);
/* Sends the request by the ring; false: the caller sends it over the socket. */
bool lane_send(struct gpud_client *c, struct request *r);
/* Takes the descriptors of a requested lane, if they have arrived. */
void lane_claimed(struct gpud_client *c);
/* Takes all answers in the ring; true: there was at least one. */
bool lane_take(struct gpud_client *c);
/* The same when the bell may have rung. It may have rung for answers that were taken before, and
 * the daemon rings once for each sleep that the client announces, so this announces another. */
void lane_woken(struct gpud_client *c);

#endif
