/*
 * Requests whose caller blocks for the answer.
 *
 * Thread: under the client's lock, which these functions give up while they wait.
 */
#ifndef CLIENT_SESSION_CALL_H
#define CLIENT_SESSION_CALL_H

#include "client/src/objects/post.h"

/* The deadline of a blocking call that starts now. A public function that blocks in several places
 * uses one deadline for all. */
uint64_t client_deadline(const struct gpud_client *c);
/* `patience_ns` from now, but not after the deadline. */
uint64_t client_sooner(uint64_t deadline_ns, uint64_t patience_ns);

/* Sends a request and waits for its answer. ret_reply: decoded as `reply`, points into
 * *ret_message, which the caller unrefs; both untouched on failure. An ERROR reply is the error. */
int client_call(struct gpud_client *c, const struct schema *request, void *msg,
                enum call_flag flags, const struct schema *reply, void *ret_reply,
                struct message **ret_message, struct err *e);
/* The same with a deadline. */
int client_call_until(struct gpud_client *c, uint64_t deadline_ns, const struct schema *request,
                      void *msg, enum call_flag flags, const struct schema *reply, void *ret_reply,
                      struct message **ret_message, struct err *e);
/* UNSUPPORTED: the daemon does not know CANCEL with `kill`, and would only cancel. */
int client_may_kill(const struct gpud_client *c, struct err *e);
/* The same for a caller that needs no fields of the answer. reply: DONE or BUFFER. */
int client_call_done(struct gpud_client *c, const struct schema *request, void *msg,
                     enum call_flag flags, const struct schema *reply, struct err *e);
/* The same with the undecoded answer, which may be an ERROR. */
int client_exchange(struct gpud_client *c, const struct schema *request, void *msg,
                    enum call_flag flags, struct message **ret_message, struct err *e);

#endif
