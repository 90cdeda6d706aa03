/*
 * Puts the user's own headers into a source where it includes them (common/include.h), because the
 * daemon takes one text. May block.
 */
#ifndef GPUCTL_INPUT_INCLUDE_H
#define GPUCTL_INPUT_INCLUDE_H

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/base/file.h"

#define INCLUDE_DIRS 16u

/* Folders of headers. "name" is searched beside the including file first, then here; <name> only
 * here. */
struct include_dirs {
    const char *path[INCLUDE_DIRS];
    unsigned count;
};

/* Replaces the content of `path`, in *file, by the whole text of at most `limit` bytes. For "-" the
 * folder of the including file is the working folder. Lines with headers that are not found remain:
 * the compiler may have them. *file is unchanged on failure. */
int include_files(const char *path, const struct include_dirs *dirs, size_t limit,
                  struct file *file, struct ctl_err *e);

#endif
