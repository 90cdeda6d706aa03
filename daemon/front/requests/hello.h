/*
 * HELLO: a connection names its client, and gets the client's session. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_HELLO_H
#define FRONT_REQUESTS_HELLO_H

#include "daemon/front/model/front.h"

/* How many sessions, and how many connections, administrators may have beyond the general
 * limits. */
#define KEEPERS_RESERVE 16u

/* HELLO: finds or makes the session, and gives it the request's connection. WELCOME is written into
 * `out`. Fails with ERR_VERSION, ERR_PROTOCOL, ERR_PERMISSION, ERR_BUSY and ERR_NOMEM. */
int session_hello(struct front *f, const struct request *r, struct capbuf *out,
                  struct session **ret_session, struct err *e);

/* New rules are in force: closes connections whose tokens are no longer valid, or whose tenant has
 * no socket of its own any more. Their sessions linger, and their clients come back with a valid
 * token or are refused. */
void session_rules_changed(struct front *f);

#endif
