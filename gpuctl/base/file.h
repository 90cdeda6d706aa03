/* Reads whole files. May block. */
#ifndef GPUCTL_BASE_FILE_H
#define GPUCTL_BASE_FILE_H

#include <stddef.h>

#include "gpuctl/base/ctl_err.h"

struct file {
    void *data; /* owned, from malloc, not NULL */
    size_t size;
};

/* How much is read, in bytes. */
struct file_limit {
    size_t file;   /* of a file with a known size, which is checked before reading */
    size_t stream; /* of a pipe, a device, a file of /proc: checked while reading */
};

/* Reads a file; "-" is standard input. LIMIT. */
int file_load(const char *path, struct file_limit limit, struct file *ret_file, struct ctl_err *e);
void file_finish(struct file *file); /* a zeroed file is allowed */

#endif
