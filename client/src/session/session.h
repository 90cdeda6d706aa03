/*
 * The session across connections: connects, sends HELLO, fails its requests after a time without a
 * connection. ready.h and restore.h have the steps after WELCOME.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_SESSION_H
#define CLIENT_SESSION_SESSION_H

#include "client/src/base/client.h"

int session_init(struct session *s, const char *name, const void *token, size_t token_size,
                 struct err *e);
void session_finish(struct gpud_client *c);

/* Does what is timed: connects, sends again, gives up. Returns the time of the next call, NS_NEVER
 * for none. */
uint64_t session_tick(struct gpud_client *c, uint64_t now_ns);
/* While opening: no more attempts follow; `failure` has the reason. */
bool session_gave_up(const struct gpud_client *c);

#endif
