/* Runs other programs of gpud as child processes. Thread: one. */
#ifndef GPUCTL_BASE_CHILD_H
#define GPUCTL_BASE_CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "gpuctl/base/ctl_err.h"

#define CHILD_FILE 3 /* the descriptor under which a child has `file` */

/* What to run; owns nothing. */
struct child {
    const char *path;        /* searched in PATH if it has no slash */
    const char *const *argv; /* ends with NULL */
    int file;                /* an open descriptor for the child; -1: none */
    /* Receives standard output, terminated and without its last newline; what does not fit is
     * dropped. NULL: the child writes to gpuctl's own. */
    char *output;
    size_t output_size; /* bytes */
    bool output_errors; /* standard error goes there as well */
    uint64_t limit_ms;  /* with `output`: the child is killed after this time; 0: no limit */
};

/* Writes the path of a program to out. folder: relative to gpuctl's own folder; "": that folder.
 * NOT_FOUND if no program is there. */
int child_find(const char *folder, const char *name, char *out, size_t size, struct ctl_err *e);

/* Runs the child to its end; *ret_status is its exit status. INTERNAL if a signal ended it. TIMEOUT
 * beyond limit_ms; a child that then hangs in the kernel is left alone. Blocks. */
int child_run(const struct child *child, int *ret_status, struct ctl_err *e);

#endif
