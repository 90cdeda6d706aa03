/*
 * New handles in what was made with old ones: objects that have a pending handle are named by it.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_TRANSLATE_H
#define CLIENT_SESSION_TRANSLATE_H

#include "client/src/session/objects.h"

/* In an encoded request of that kind. Untouched on failure. */
int translate_request(struct gpud_client *c, unsigned kind, struct capbuf *io_msg, struct err *e);
/* In the programs under construction, whose steps name kernels and arenas already. */
void translate_programs(struct gpud_client *c);

#endif
