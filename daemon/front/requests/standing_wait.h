/*
 * WAIT: a client's request for events, held until there is something to tell. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_STANDING_WAIT_H
#define FRONT_REQUESTS_STANDING_WAIT_H

#include "daemon/front/model/front.h"

/* WAIT: held until something is to be told. */
void standing_wait(struct front *f, struct session *s, struct request *r);
/* Answers the session's WAIT if there is something to tell, or if it was held long enough. */
void standing_tell(struct front *f, struct session *s, uint64_t now_ns);
void standing_tell_all(struct front *f); /* the same for each session */

#endif
