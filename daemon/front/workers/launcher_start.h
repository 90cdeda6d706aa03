/* Starts gpud-launcher so that it outlives the caller. */
#ifndef FRONT_WORKERS_LAUNCHER_START_H
#define FRONT_WORKERS_LAUNCHER_START_H

#include "common/err.h"

/* program NULL: gpud-launcher where it is installed, or beside the calling program, as in a build
 * directory. Returns when the launcher's program runs, or an error. Safe while other threads
 * run. */
int launcher_start(const char *program, const char *runtime_dir, struct err *e);

#endif
