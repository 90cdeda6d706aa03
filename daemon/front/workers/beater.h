/*
 * The state of the thread that writes a worker's heartbeat, read from /proc by a descriptor that
 * the worker has sent: the front's own /proc may hide processes of other users. The worker is not
 * believed: the descriptor must be that of a thread of its process, and reading it never blocks.
 * Thread: the loop's.
 */
#ifndef FRONT_WORKERS_BEATER_H
#define FRONT_WORKERS_BEATER_H

#include <stdbool.h>
#include <sys/types.h>

#include "daemon/front/workers/silence.h"

struct beater;

/* Takes the descriptor, which may be -1, also on failure. NULL: it is not a thread of the process
 * `pid`, or there is no memory. */
struct beater *beater_create(int fd, pid_t pid);
void beater_destroy(struct beater *b); /* NULL is accepted */
/* The device's beater. false: it has none, or its thread has ended. */
bool beater_look(const struct device *d, struct thread_look *ret_look);

/* The state in a line of /proc/PID/task/TID/stat. tick_ns: its unit of time. false: it is none. */
bool beater_parse(const char *line, uint64_t tick_ns, struct thread_look *ret_look);

#endif
