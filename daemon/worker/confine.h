/*
 * What a worker gives up, because kernels of users run in it: on CPU devices as native code. Its
 * drivers' threads would escape Landlock, so files come before the device is opened, and system
 * calls, which a filter takes from all threads, come after. `GPUD_CONFINE=off` leaves everything as
 * it is, for a debugger. GPUD_CONFINE_READ and GPUD_CONFINE_WRITE, lists of paths, add files.
 */
#ifndef WORKER_CONFINE_H
#define WORKER_CONFINE_H

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
/* To be called when the device is open, before the first kernel of a user. ERR_INTERNAL. */
int confine_calls(struct confine *c, struct err *e);
/* Adds what is missing to a note that has `size` bytes of room. */
void confine_note(const struct confine *c, char *note, size_t size);

#endif
