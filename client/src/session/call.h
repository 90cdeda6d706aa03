/*
 * Requests that their caller blocks for.
 *
 * Thread: under the client's lock, which these functions give up while they wait.
 */
#ifndef CLIENT_SESSION_CALL_H
#define CLIENT_SESSION_CALL_H

#include "client/src/session/post.h"

/* The deadline of a blocking call that starts now: a function of the user's that blocks in several
 * places takes one for all of them. */
uint64_t client_deadline(const struct gpud_client *c);
/* In `patience_ns` from now, but not behind the deadline. */
uint64_t client_sooner(uint64_t deadline_ns, uint64_t patience_ns);

/* A request that its caller waits for. ret_reply: decoded as `reply`, lies in *ret_message, which
 * the caller unrefs (both untouched on failure). An ERROR reply is the error. */
int client_call(struct gpud_client *c, const struct schema *request, void *msg,
                enum call_flag flags, const struct schema *reply, void *ret_reply,
                struct message **ret_message, struct err *e);
/* The same with the deadline of a function that has blocked before. */
int client_call_until(struct gpud_client *c, uint64_t deadline_ns, const struct schema *request,
                      void *msg, enum call_flag flags, const struct schema *reply, void *ret_reply,
                      struct message **ret_message, struct err *e);
/* For a caller that needs nothing but success. reply: DONE or BUFFER. */
int client_call_done(struct gpud_client *c, const struct schema *request, void *msg,
                     enum call_flag flags, const struct schema *reply, struct err *e);
/* The same with the answer as it came, which may be an ERROR. */
int client_exchange(struct gpud_client *c, const struct schema *request, void *msg,
                    enum call_flag flags, struct message **ret_message, struct err *e);

#endif
