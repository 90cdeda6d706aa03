/*
 * The intake of requests: puts each into the order of its session, answers repeated ones, and calls
 * the handlers. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_INTAKE_H
#define FRONT_REQUESTS_INTAKE_H

#include "daemon/front/model/front.h"

/* Takes a request that came over the socket. Its slot is answered or dropped once. */
void intake_request(struct front *f, struct request *r);
/* Takes a request that came by the session's ring. */
void intake_ring(struct front *f, struct session *s, struct request *r);
/* The client has taken the op's answer out of its ring, which acknowledges it. */
void intake_acked(struct front *f, struct op *o);

/* Admits requests that came before their turn and have it now, as far as this turn has room. */
void intake_go_on(struct front *f);
/* Tries parked jobs (SUBMIT with BLOCK) again, because there may be room for them. */
void intake_room(struct front *f);

#endif
