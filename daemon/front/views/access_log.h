/*
 * The access log: a line for each job of a tenant that has ended ([log] access). The loop puts
 * lines into memory of a fixed size, and a thread writes them, so a disk that is slow or full costs
 * lines and nothing else. Lines that find no room, or that cannot be written, are counted; the next
 * line that can be written says how many are missing, and the daemon's log says why.
 *
 * Thread: the loop's, but for the writing one.
 */
#ifndef FRONT_VIEWS_ACCESS_LOG_H
#define FRONT_VIEWS_ACCESS_LOG_H

#include <stdint.h>

#include "daemon/front/model/front.h"

#define ACCESS_ROOM (1024u * 1024u) /* bytes of lines that wait to be written */
#define ACCESS_LINE 2048u           /* bytes of a line */

struct access_log;

/* It writes nothing before access_log_set. ERR_NOMEM. */
int access_log_create(struct access_log **ret_log, struct err *e);
/* Writes what waits, then ends the thread. Blocks as long as the disk does. NULL is accepted. */
void access_log_destroy(struct access_log *l);
/* The setting: "off", "journal" or a path. A file is opened anew each time, which is how it is
 * rotated. Does not block. */
void access_log_set(struct access_log *l, const char *access);
/* The job has ended, and its steps are still there. Nothing happens if the log is off. */
void access_log_job(struct access_log *l, const struct job *j);
/* Lines that are missing so far. */
uint64_t access_log_lost(struct access_log *l);

#endif
