/* Whole files in and out. May block. */
#ifndef GPUCTL_FILE_H
#define GPUCTL_FILE_H

#include <stddef.h>

#include "gpuctl/ctl_err.h"

struct file {
    void *data; /* not NULL */
    size_t size;
    void *owned; /* to be freed, NULL if mapped */
};

/* Maps or reads a file of at most `limit` bytes; "-" is standard input. */
int file_load(const char *path, size_t limit, struct file *ret_file, struct ctl_err *e);
void file_finish(struct file *file); /* a zeroed file is allowed */

struct file_part {
    const void *data;
    size_t size;
};

/* Writes the parts to a temporary file beside `path` and renames it: readers see the old file or
 * the whole new one. */
int file_save(const char *path, const struct file_part *parts, unsigned count, struct ctl_err *e);
/* Could file_save work? Told before a long job rather than after it. */
int file_can_save(const char *path, struct ctl_err *e);

#endif
