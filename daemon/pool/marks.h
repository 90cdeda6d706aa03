/*
 * A set of numbers below a limit, as bitmaps over bitmaps. A few steps find the last member up to
 * any number, or the first from it on. Memory is touched only where numbers were added. Thread: one
 * owner. Nothing blocks.
 */
#ifndef POOL_MARKS_H
#define POOL_MARKS_H

#include <stdint.h>

#include "common/err.h"

#define MARKS_LEVELS 3u
#define MARKS_NONE   UINT64_MAX

struct marks {
    uint64_t *map[MARKS_LEVELS]; /* level 0 has a bit for each number, each higher level one for
                                    each word below; NULL: not initialised */
    uint64_t top;                /* words of the last level */
};

int marks_init(struct marks *m, uint64_t limit, struct err *e);
void marks_finish(struct marks *m); /* a zeroed set is allowed */
void marks_add(struct marks *m, uint64_t number);
void marks_remove(struct marks *m, uint64_t number);
uint64_t marks_last(const struct marks *m,
                    uint64_t number); /* the last member up to `number`, or MARKS_NONE */
uint64_t marks_next(const struct marks *m,
                    uint64_t number); /* the first member from `number` on, or MARKS_NONE */

#endif
