/*
 * Inserts the user's own headers into a source where it includes them (common/include.h), because
 * the daemon reads no files. May block.
 */
#ifndef GPUCTL_INPUT_INCLUDE_H
#define GPUCTL_INPUT_INCLUDE_H

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/base/file.h"

#define INCLUDE_DIRS 16u

/* Folders of headers. "name" is searched in the including file's folder first, then here; <name>
 * only here. */
struct include_dirs {
    const char *path[INCLUDE_DIRS];
    unsigned count;
};

/* Expands the headers in *file, the content of `path`. The result has at most `limit` bytes. The
 * folder of "-" is the working folder. Includes that are not found remain: the compiler may have
 * the headers. *file is unchanged on failure. */
int include_files(const char *path, const struct include_dirs *dirs, size_t limit,
                  struct file *file, struct ctl_err *e);

#endif
