/*
 * Forgets acknowledged answers: a few at once, many in slices over several turns of the loop.
 * Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_SWEEP_H
#define FRONT_REQUESTS_SWEEP_H

#include "daemon/front/model/front.h"

/* Forgets an op whose answer is acknowledged, and its entry in the worker's ledger. A job that is
 * unfinished runs on without an answer. */
void sweep_op(struct front *f, struct op *o);
/* The client has all answers up to `ack`, which is an admitted number. */
void sweep_ack(struct front *f, struct session *s, uint64_t ack);
/* TAKEN: acknowledges answers beyond an unanswered number, which no ack can pass. Owns the request
 * from here on, and answers it at the end of the walk. ERR_BUSY: another TAKEN of the session is
 * under way. ERR_NOMEM. On failure the caller keeps the request. */
int sweep_taken(struct front *f, struct session *s, struct request *r, struct err *e);
/* A session has too many answers: continues its walk, if it has one, by at most 256 ops. */
void sweep_for_room(struct front *f, struct session *s);
/* HELLO has said which answers the client has: starts a walk that forgets their ops. */
void sweep_left(struct front *f, struct session *s);
/* Continues all walks, as far as this turn has units. */
void sweep_some(struct front *f);
/* The session ends: stops its walk. */
void sweep_stop(struct front *f, struct session *s);

#endif
