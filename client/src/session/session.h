/*
 * The session: who we are to the daemon, across connections. Says hello, sends again what was not
 * answered, restores modules, kernels and programs after the daemon has restarted, keeps one WAIT
 * request held for notices and results.
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
/* A message came in. */
int session_message(struct gpud_client *c, struct message *m, struct err *e);
/* The connection is unusable: drops it, plans the next. */
void session_lost(struct gpud_client *c, const struct err *why);
/* Sends a request that is in the table, at once or when the session is ready; a sequenced one not
 * before the daemon would take it, nor before those in front of it. */
void session_send(struct gpud_client *c, struct request *r);
/* Sends what waited for that. Called when answers came, and a millisecond after it had to wait. */
void session_go_on(struct gpud_client *c);
/* Adds a request of this connection and sends it ahead of all that waits for the session. */
int session_ask(struct gpud_client *c, struct request *r, request_fn answered, struct err *e);
/* What went by the ring and was not answered goes over the socket. */
void session_resend_ring(struct gpud_client *c);
/* Withdraws a sequenced one that the daemon does not have, not sent yet or not admitted: a question
 * without effect takes its number when its turn comes. False: the daemon may have it, or there was
 * no memory. It is in the table no more, and was not answered. */
bool session_withdraw(struct gpud_client *c, struct request *r);
/* For restore.c: sends one that is in the table ahead of all that waits for the session. */
void session_send_own(struct gpud_client *c, struct request *r);
/* For restore.c: sends one of those again after a pause, under the same id; 0: as session.c thinks.
 */
void session_send_later(struct gpud_client *c, struct request *r, uint64_t pause_ns);
/* The answers of a stage of restoring are there. */
void session_restored(struct gpud_client *c);
/* Ends every request with an error. */
void session_fail(struct gpud_client *c, const struct err *why);

#endif
