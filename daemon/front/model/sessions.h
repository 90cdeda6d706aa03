/*
 * The front's sessions: found by key or by connection, made, and looked at when their time comes.
 * Thread: the loop's.
 */
#ifndef FRONT_MODEL_SESSIONS_H
#define FRONT_MODEL_SESSIONS_H

#include "daemon/front/model/front.h"

/* The one with that connection; NULL: none. */
struct session *sessions_find(struct front *f, uint32_t pipe);
/* The session gets another connection, 0: none. */
void sessions_set_pipe(struct front *f, struct session *s, uint32_t pipe);
/* The one with that key; made if there is none, without a connection. NULL: no tenant, or no
 * memory. */
struct session *sessions_obtain(struct front *f, const struct session_key *key, struct tenant *t);
/* Its connection, its WAIT or its time changed: it is looked at when that is due. */
void sessions_due(struct front *f, struct session *s);

#endif
