/*
 * Reads the settings again while the daemon runs. A thread of libuv's reads files and looks up the
 * names of users and groups, so a name service that does not answer delays only the requests for
 * it. One reading is under way at a time; requests that come meanwhile are answered by the next
 * one. Thread: the loop's.
 */
#ifndef FRONT_REQUESTS_RELOAD_H
#define FRONT_REQUESTS_RELOAD_H

#include "daemon/front/model/front.h"

#define RELOAD_ASKED_MAX 16u /* requests that wait for an answer */

/* Starts a reading. Settings that can change are applied, and the log names those that need a
 * restart. On failure, whose error names file and line, all settings are as before. request: is
 * answered at the end, and taken; NULL: none. ERR_BUSY with too many waiting requests: the caller
 * keeps the request. */
int reload_settings(struct front *f, struct request *request, struct err *e);
bool reload_under_way(const struct front *f);
/* The loop has ended, and no reading is under way. */
void reload_finish(struct front *f);

#endif
