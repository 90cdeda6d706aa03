/*
 * Replaces a file atomically: readers see the old file or the new one. A command begins the file
 * before it computes the content, so that a path that cannot be written fails early. May block.
 */
#ifndef GPUCTL_BASE_SAVE_H
#define GPUCTL_BASE_SAVE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuctl/base/ctl_err.h"

struct save {
    char *path;   /* owned: the file, links followed; NULL: not begun */
    char *beside; /* owned: path of the unfinished file; NULL: it has no name yet */
    int fd;
    bool in_place; /* standard output, which is not renamed */
};

struct save_part {
    const void *data;
    size_t size;
};

/* Makes an unfinished file in the folder of `path`. Refuses a path that exists and is no regular
 * file. */
int save_begin(const char *path, struct save *ret_save, struct ctl_err *e);
/* The same for standard output, to which save_commit writes. */
int save_begin_stdout(struct save *ret_save, struct ctl_err *e);
/* Writes the parts, then renames the file to its path. A failure leaves no file; standard output
 * keeps the bytes written so far. Ends `save` in both cases. */
int save_commit(struct save *save, const struct save_part *parts, unsigned count,
                struct ctl_err *e);
/* Removes the unfinished file; a zeroed or committed `save` is allowed. */
void save_finish(struct save *save);

#endif
