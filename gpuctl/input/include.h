/*
 * A source with the user's own headers put in where it includes them (common/include.h): so the
 * daemon gets one text. May block.
 */
#ifndef GPUCTL_INPUT_INCLUDE_H
#define GPUCTL_INPUT_INCLUDE_H

#include "gpuctl/base/ctl_err.h"
#include "gpuctl/base/file.h"

#define INCLUDE_DIRS 16u

/* Where to look for headers: "name" beside the file that includes it first, then, and <name> only
 * here. */
struct include_dirs {
    const char *path[INCLUDE_DIRS];
    unsigned count;
};

/* Replaces what was read of `path` ("-": beside the working folder) by the whole, at most `limit`
 * bytes. Headers that are not found stay: the compiler may have them. Unchanged on failure. */
int include_files(const char *path, const struct include_dirs *dirs, size_t limit,
                  struct file *file, struct ctl_err *e);

#endif
