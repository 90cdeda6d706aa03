/*
 * Answers that a client has taken are forgotten: a few at once, many in slices, as far as turns of
 * the loop have units for. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_SWEEP_H
#define FRONT_REQUESTS_SWEEP_H

#include "daemon/front/model/front.h"

/* Its answer was taken: forgets it, and what its worker keeps for it. A job that still runs for it
 * runs on, for nobody. */
void sweep_op(struct front *f, struct op *o);
/* The client has taken all answers up to `ack`, which was admitted. */
void sweep_ack(struct front *f, struct session *s, uint64_t ack);
/* TAKEN: answers behind one that is still awaited, which no ack can pass. Takes the request, and
 * answers it when all of it was done. ERR_BUSY: one before it is not done; the request stays the
 * caller's, as on every failure. */
int sweep_taken(struct front *f, struct session *s, struct request *r, struct err *e);
/* A session has too many answers: goes on with its own, a little. */
void sweep_for_room(struct front *f, struct session *s);
/* HELLO has said what its client has: forgets answers that a front before this one gave, and leaves
 * the jobs of those that were not given. */
void sweep_left(struct front *f, struct session *s);
/* Goes on with all, as far as this turn has units for. */
void sweep_some(struct front *f);
/* The session ends. */
void sweep_stop(struct front *f, struct session *s);

#endif
