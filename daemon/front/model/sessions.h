/*
 * The front's sessions: how they are made, found, connected and freed. Thread: the loop's.
 */
#ifndef FRONT_MODEL_SESSIONS_H
#define FRONT_MODEL_SESSIONS_H

#include "daemon/front/model/front.h"

/* A session that lingers without an end, in no table. NULL: no memory. */
struct session *session_create(const struct session_key *key, struct tenant *tenant, uint64_t id);
/* Frees the session with its ops, early requests and events; its slots, buffers and jobs must be
 * released before. NULL is accepted. */
void session_destroy(struct session *s);

/* The session with that connection; NULL: none. */
struct session *sessions_find(struct front *f, uint32_t pipe);
/* A lingering session gets a connection, or its connected session one that is already its own. */
void session_connect(struct front *f, struct session *s, uint32_t pipe);
/* A connected session has no connection any more; it lingers until until_ns. */
void session_disconnect(struct front *f, struct session *s, uint64_t until_ns);
/* The session with that key; made if there is none, and then it lingers. NULL: no tenant, or no
 * memory. */
struct session *sessions_obtain(struct front *f, const struct session_key *key, struct tenant *t);
/* Sets the timer to the end of the session's linger time, or of its WAIT. */
void session_set_timer(struct front *f, struct session *s);

#endif
