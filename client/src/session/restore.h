/*
 * Puts back what the daemon forgot when it restarted: see objects.h. Buffers stay with their
 * workers, or are lost with them.
 *
 * Thread: under the client's lock. An arena's memory may block for an instant: see arena_restored.
 */
#ifndef CLIENT_SESSION_RESTORE_H
#define CLIENT_SESSION_RESTORE_H

#include "client/src/session/objects.h"

/* Goes on by itself as answers come, and ends with session_ready.
 * going_on: the daemon keeps what was restored before the connection broke. Compiling takes its
 * time: as long as there is the connection, there is a daemon that will answer. */
void restore_start(struct gpud_client *c, bool going_on);

#endif
