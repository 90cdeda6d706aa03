/* Checks that all back ends make before they enqueue a command. Error texts begin with the
 * command's name. Pure. Thread: any. */
#ifndef BACKEND_RANGES_H
#define BACKEND_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A range of a block, in bytes. */
struct backend_range {
    const void *block; /* identity only, never dereferenced */
    uint64_t block_size;
    uint64_t offset;
    uint64_t size;
};

/* ERR_RANGE unless size > 0 and the range lies inside its block. The text begins with `what`. */
int backend_range_check(const char *what, struct backend_range r, struct err *e);
/* Both ranges must lie inside their blocks. ERR_INVALID if they overlap. */
int backend_copy_check(struct backend_range dst, struct backend_range src, struct err *e);
/* The range must lie inside its block. ERR_INVALID unless the pattern has 1, 2, 4, 8 or 16 bytes
 * and divides size and offset. */
int backend_fill_check(struct backend_range dst, size_t pattern_size, struct err *e);

#endif
