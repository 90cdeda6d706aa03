/* A private directory for a compiler's temporary files and cache. Each owner locks its directory,
 * and the next process removes directories without a lock, whose owners were killed. Thread: one.
 */
#ifndef COMPILE_SCRATCH_H
#define COMPILE_SCRATCH_H

#include <limits.h>

#include "common/err.h"

struct scratch {
    char path[PATH_MAX];
    int lock_fd;
};

/* Makes one under $TMPDIR (/tmp) and enters it. */
int scratch_enter(struct scratch *s, struct err *e);
void scratch_remove(struct scratch *s);

#endif
