/*
 * Reading the settings again while the daemon runs. Files are read, and the names of users and
 * groups looked up, in a thread of libuv's: a name service that does not answer holds up nobody but
 * who asked. One reading is under way at a time; who asks meanwhile is answered by the next one.
 * Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_RELOAD_H
#define FRONT_REQUESTS_RELOAD_H

#include "daemon/front/model/front.h"

#define RELOAD_ASKED_MAX 16u /* requests that wait for an answer */

/* What may change is changed then; what needs a restart is logged. On failure, which names file and
 * line, all settings are as before. request: of who is to be told, taken; NULL: nobody. ERR_BUSY
 * when too many wait: the request is the caller's still. */
int reload_settings(struct front *f, struct request *request, struct err *e);
bool reload_under_way(const struct front *f);
/* The loop has ended, and no reading is under way. */
void reload_finish(struct front *f);

#endif
