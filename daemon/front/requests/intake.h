/*
 * Where requests come in: each is put into its session's order, told apart from one that was seen,
 * and handed to what it asks for. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_INTAKE_H
#define FRONT_REQUESTS_INTAKE_H

#include "daemon/front/model/front.h"

/* Takes the request; sees to it that its slot is answered or dropped once. */
void intake_request(struct front *f, struct request *r);
/* The same for one that the session's ring brought. */
void intake_ring(struct front *f, struct session *s, struct request *r);
/* The client has taken the op's answer out of its ring: it is forgotten. */
void intake_taken(struct front *f, struct op *o);

/* There may be room for jobs that wait for it (SUBMIT with BLOCK). */
void intake_room(struct front *f);

#endif
