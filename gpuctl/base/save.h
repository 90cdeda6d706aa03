/*
 * A file that comes into being as a whole: readers see the old one or the new one. It is begun
 * before the work whose result it takes, so that what cannot be saved is not computed. May block.
 */
#ifndef GPUCTL_BASE_SAVE_H
#define GPUCTL_BASE_SAVE_H

#include <stdbool.h>
#include <stddef.h>

#include "gpuctl/base/ctl_err.h"

struct save {
    char *path;   /* owned: the file, links followed; NULL: not begun */
    char *beside; /* owned: the unfinished file beside it; NULL: it has no name yet */
    int fd;
    bool in_place; /* standard output: there is nothing to put in its place */
};

struct save_part {
    const void *data;
    size_t size;
};

/* Makes an unfinished file where `path` will be. Refuses what is there and no regular file. */
int save_begin(const char *path, struct save *ret_save, struct ctl_err *e);
/* The same for standard output, which takes the parts when they are there. */
int save_begin_stdout(struct save *ret_save, struct ctl_err *e);
/* Writes the parts and puts the file in its place. On failure nothing of it stays; standard output
 * has what went out until then. Begun no more either way. */
int save_commit(struct save *save, const struct save_part *parts, unsigned count,
                struct ctl_err *e);
/* Gives it up; a zeroed or committed one is allowed. */
void save_finish(struct save *save);

#endif
