/*
 * Puts back what the daemon forgot when it restarted: see objects.h. Buffers stay with their
 * workers, or are lost with them.
 *
 * Thread: under the client's lock.
 */
#ifndef CLIENT_SESSION_RESTORE_H
#define CLIENT_SESSION_RESTORE_H

#include "client/src/session/objects.h"

/* Asks which of the buffers are still there, some at a time, and tells of those that are not;
 * false: all were answered. It comes before the stages. */
bool restore_buffers(struct gpud_client *c);
/* Sends the requests of one stage for what is not restored yet; false if there are none. Stages
 * follow object_kind. */
bool restore_begin(struct gpud_client *c, int stage);
/* Another daemon: what one before it has restored is to be restored again. */
void restore_forget(struct gpud_client *c);
/* All stages are through: the new handles count, unanswered requests name them. */
void restore_commit(struct gpud_client *c);

/* Names objects by their pending handles in an encoded request of that kind. */
int restore_translate(struct gpud_client *c, unsigned kind, struct capbuf *io_msg, struct err *e);

#endif
