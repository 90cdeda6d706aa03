/*
 * What a worker gives up, because kernels of users run in it: on CPU devices as native code. Its
 * drivers' threads would escape Landlock, so files come before the device is opened, and system
 * calls, which a filter takes from all threads, come after. `GPUD_CONFINE=off` leaves everything as
 * it is, for a debugger; `strict` has refused calls named in the log on GPUs, too.
 * GPUD_CONFINE_READ and GPUD_CONFINE_WRITE, lists of paths, add files.
 */
#ifndef WORKER_CONFINE_H
#define WORKER_CONFINE_H

#include <stdbool.h>
#include <stddef.h>

#include "common/err.h"
#include "daemon/backend/backend.h"

struct confine {
    const struct backend *backend; /* NULL: not built in; the worker ends soon */
    const char *options;           /* of the back end */
    const char *cache;             /* the worker's own folder; "": none */
    char missing[160];             /* what the process is not confined by, for operators; "" */
};

/* The cache folder becomes the home of drivers. Other processes of the same user can no longer look
 * into this one. To be called before there are other threads. Blocks on files. ERR_INTERNAL. */
int confine_files(struct confine *c, struct err *e);
/* To be called when the device is open, before the first kernel of a user. native: kernels are code
 * of this process, whose refused calls are named. A GPU's kernels make none: there a refused call
 * is the driver's, whose threads may block the signal that names it, and it goes to the kernel's
 * log. ERR_INTERNAL. */
int confine_calls(struct confine *c, bool native, struct err *e);
/* Adds what is missing to a note that has `size` bytes of room. */
void confine_note(const struct confine *c, char *note, size_t size);

#endif
