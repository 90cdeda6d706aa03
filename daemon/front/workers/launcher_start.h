/* Starts gpud-launcher so that it outlives the caller. */
#ifndef FRONT_WORKERS_LAUNCHER_START_H
#define FRONT_WORKERS_LAUNCHER_START_H

#include "common/err.h"

/* program NULL: gpud-launcher where it is installed, or in the folder of the calling program, as in
 * a build directory. Returns once it was executed (or could not be). Safe while other threads run:
 * the child does nothing but execute. */
int launcher_start(const char *program, const char *runtime_dir, struct err *e);

#endif
