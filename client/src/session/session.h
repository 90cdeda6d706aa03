/*
 * The session across connections: connects, says hello, gives up after a time. What follows a
 * WELCOME is in ready.h and restore.h.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_SESSION_H
#define CLIENT_SESSION_SESSION_H

#include "client/src/session/client.h"

int session_init(struct session *s, const char *name, const void *token, size_t token_size,
                 struct err *e);
void session_finish(struct gpud_client *c);

/* Goes on as time has passed: connects, gives up. Returns when it wants to be called again. */
uint64_t session_tick(struct gpud_client *c, uint64_t now_ns);
/* While opening: nothing more will be tried, `failure` says why. */
bool session_gave_up(const struct gpud_client *c);

#endif
