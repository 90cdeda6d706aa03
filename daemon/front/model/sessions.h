/*
 * The sessions of the front: makes, finds, connects and frees them. Thread: the loop's.
 */
#ifndef FRONT_MODEL_SESSIONS_H
#define FRONT_MODEL_SESSIONS_H

#include "daemon/front/model/front.h"

/* Makes a session that lingers for ever (NS_NEVER), in no table. NULL: no memory. */
struct session *session_create(const struct session_key *key, struct tenant *tenant, uint64_t id);
/* Frees the session with its ops, early requests and events. Its slots, buffers and jobs must be
 * released before. NULL is accepted. */
void session_destroy(struct session *s);

/* The session with that connection; NULL: none. */
struct session *sessions_find(struct front *f, uint32_t pipe);
/* Gives a lingering session the connection. A connected session must have this connection already.
 * Sets its timer. False: no memory; it lingers on. */
bool session_connect(struct front *f, struct session *s, uint32_t pipe);
/* Takes the connection from a connected session, which lingers until until_ns. Sets its timer. */
void session_disconnect(struct front *f, struct session *s, uint64_t until_ns);
/* A lingering session's time begins anew: session_linger_ms. Sets its timer. */
void session_linger(struct front *f, struct session *s);
/* Finds the session with that key, or makes it; a new session lingers for session_linger_ms. NULL:
 * no memory, or it would be new and `t` is NULL. */
struct session *sessions_obtain(struct front *f, const struct session_key *key, struct tenant *t);
/* Sets the timer to the end of the session's linger time or of its WAIT, whichever is earlier. */
void session_set_timer(struct front *f, struct session *s);

#endif
