/*
 * QUERY: a table that can be long is made in slices, as far as turns of the loop have units for;
 * one at a time, in the order in which they were asked for. What comes and goes meanwhile may or
 * may not be in it. Thread: the loop's.
 */
#ifndef FRONT_VIEWS_LOOK_H
#define FRONT_VIEWS_LOOK_H

#include "daemon/front/model/front.h"
#include "daemon/front/model/request.h"

/* QUERY, a handler of requests (requests/requests.h). */
int request_query(struct request_context *c, struct err *e);
/* Goes on with those that were begun. */
void look_some(struct front *f);
/* A job, session or tenant leaves its table; `next`: what follows it in the way that looks go. */
void look_gone(struct front *f, const void *what, const void *next);
/* The session ends, and nobody reads its tables. NULL: all end. */
void look_stop(struct front *f, const struct session *s);

#endif
