/*
 * A set of numbers below a limit: bitmaps over bitmaps, so that the last number up to, and the
 * first from, any other is found in a few steps. Memory is touched only where numbers were added.
 * Thread: one owner. Nothing blocks.
 */
#ifndef POOL_MARKS_H
#define POOL_MARKS_H

#include <stdint.h>

#include "common/err.h"

#define MARKS_LEVELS 3u
#define MARKS_NONE   UINT64_MAX

struct marks {
    uint64_t *map[MARKS_LEVELS]; /* level 0 has a bit for each number, the next one for each word;
                                    NULL: none */
    uint64_t top;                /* words of the last level */
};

int marks_init(struct marks *m, uint64_t limit, struct err *e);
void marks_finish(struct marks *m); /* a zeroed set is fine */
void marks_add(struct marks *m, uint64_t number);
void marks_remove(struct marks *m, uint64_t number);
uint64_t marks_last(const struct marks *m,
                    uint64_t number); /* the last one up to `number`; MARKS_NONE */
uint64_t marks_next(const struct marks *m,
                    uint64_t number); /* the first one from `number` on; MARKS_NONE */

#endif
