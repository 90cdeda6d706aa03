/*
 * Restores the objects that the daemon forgot when it restarted (objects.h). Buffers remain in
 * their workers, or are lost with them.
 *
 * Thread: under the client's lock. Passing an arena's memory may block briefly: see arena_restored.
 */
#ifndef CLIENT_SESSION_RESTORE_H
#define CLIENT_SESSION_RESTORE_H

#include "client/src/objects/objects.h"

/* Starts restoring, which continues as answers come and ends with session_ready. There is no time
 * limit while the connection lasts, because compiling takes time. going_on: the daemon has the
 * objects that were restored before the connection broke. */
void restore_start(struct gpud_client *c, bool going_on);

#endif
