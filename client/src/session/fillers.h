/*
 * Fillers: questions without effect, for numbers that nobody waits for any more but the daemon
 * does.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_SESSION_FILLERS_H
#define CLIENT_SESSION_FILLERS_H

#include "client/src/session/client.h"

/* Makes one, which is in the table then but not sent. It takes the place of `old`; NULL: it comes
 * beside what is asked for, with the number `seq`. NOMEM, LIMIT. */
int filler_make(struct gpud_client *c, uint64_t seq, struct request *old,
                struct request **ret_filler, struct err *e);
/* Makes one for the number and sends it. */
int filler_send(struct gpud_client *c, uint64_t seq, struct err *e);
bool filler_is(const struct request *r);

/* Withdraws a sequenced one that the daemon does not have, not sent yet or not admitted: a question
 * without effect takes its number when its turn comes. False: the daemon may have it, or there was
 * no memory. It is in the table no more, and was not answered. */
bool session_withdraw(struct gpud_client *c, struct request *r);

#endif
