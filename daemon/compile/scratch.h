/* A private directory for a compiler's temporary files and cache. The owner keeps it locked; the
 * next process removes directories that are not locked, whose owners were killed. Thread: one. */
#ifndef COMPILE_SCRATCH_H
#define COMPILE_SCRATCH_H

#include <limits.h>

#include "common/err.h"

struct scratch {
    char path[PATH_MAX];
    int lock_fd;
};

/* Makes a directory under $TMPDIR (default /tmp) and enters it. */
int scratch_enter(struct scratch *s, struct err *e);
void scratch_remove(struct scratch *s);

#endif
