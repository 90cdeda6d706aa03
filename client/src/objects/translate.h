/*
 * Replaces a daemon's old handles in encoded requests and programs by the pending handles that
 * another daemon has given.
 *
 * Thread: under the client's lock. Never blocks.
 */
#ifndef CLIENT_OBJECTS_TRANSLATE_H
#define CLIENT_OBJECTS_TRANSLATE_H

#include "client/src/objects/objects.h"

/*
 * What is done with a handle that the daemon does not have.
 *
 *   known    the request fails, with the reason why the object could not be restored, or with
 *            BUFFER_LOST. Requests that free are translated in any case
 *   all      the handle stays: a later daemon may get the object
 */
enum translate { TRANSLATE_KNOWN, TRANSLATE_ALL };

/* Translates an encoded request of that kind. Untouched on failure. */
int translate_request(struct gpud_client *c, unsigned kind, enum translate how,
                      struct capbuf *io_msg, struct err *e);
/* Translates the steps of programs under construction, which name kernels and arenas. */
void translate_programs(struct gpud_client *c);

#endif
