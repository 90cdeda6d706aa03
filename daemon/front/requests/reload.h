/*
 * Reads the settings again while the daemon runs. A thread of libuv reads the files and looks up
 * the names of users and groups, so a name service that does not answer delays only the requests to
 * reload. One reading is under way at a time. Requests that come meanwhile are answered after the
 * next reading. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_RELOAD_H
#define FRONT_REQUESTS_RELOAD_H

#include "daemon/front/model/front.h"

#define RELOAD_ASKED_MAX 16u /* requests that may wait for one reading */

/* Starts a reading, or another one after the reading under way. At its end, settings that can
 * change at run time are applied, and the log names those that need a restart. A failed reading
 * leaves all settings as they were; its error names file and line. request: answered at the end,
 * and owned from here on; NULL: none. ERR_BUSY: too many requests wait. ERR_NOMEM. On failure the
 * caller keeps the request. */
int reload_settings(struct front *f, struct request *request, struct err *e);
bool reload_under_way(const struct front *f);
/* Frees everything. The loop has ended, and no reading is under way. */
void reload_finish(struct front *f);

#endif
