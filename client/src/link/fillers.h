/*
 * Fillers: requests without effect, for numbers whose request was withdrawn here. The daemon takes
 * numbers in order and waits for each.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_LINK_FILLERS_H
#define CLIENT_LINK_FILLERS_H

#include "client/src/base/client.h"

/* Adds a filler to the table without sending it: in the place and with the number of `old`, or with
 * the number `seq` if `old` is NULL. NOMEM, LIMIT. */
int filler_make(struct gpud_client *c, uint64_t seq, struct request *old,
                struct request **ret_filler, struct err *e);
/* Adds a filler for the number and sends it. */
int filler_send(struct gpud_client *c, uint64_t seq, struct err *e);
bool filler_is(const struct request *r);

/* Withdraws a sequenced request that the daemon does not have, because it was not sent or not
 * admitted. A filler takes its number. The request leaves the table without an answer. false: the
 * daemon may have the request, or memory is out. */
bool session_withdraw(struct gpud_client *c, struct request *r);

#endif
