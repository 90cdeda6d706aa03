/* The checks of all back ends before a command is enqueued. Texts begin with `what`. Pure.
 * Thread: any. */
#ifndef BACKEND_RANGES_H
#define BACKEND_RANGES_H

#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A piece of a block, in bytes. */
struct backend_range {
    const void *block; /* only compared */
    uint64_t block_size;
    uint64_t offset;
    uint64_t size;
};

/* ERR_RANGE unless size > 0 and the piece lies inside of its block. */
int backend_range_check(const char *what, struct backend_range r, struct err *e);
/* Both inside, of one size; ERR_INVALID if they overlap. */
int backend_copy_check(struct backend_range dst, struct backend_range src, struct err *e);
/* Inside; ERR_INVALID unless the pattern has 1, 2, 4, 8 or 16 bytes and divides size and offset. */
int backend_fill_check(struct backend_range dst, size_t pattern_size, struct err *e);

#endif
