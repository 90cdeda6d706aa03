/*
 * The defined parts of a buffer: sorted, disjoint byte ranges in fixed memory. When more than
 * SPANS_MAX ranges are needed, the smallest is forgotten. So defined content may count as
 * undefined, never the other way round. Pure.
 */
#ifndef FRONT_MODEL_SPANS_H
#define FRONT_MODEL_SPANS_H

#include <stdbool.h>
#include <stdint.h>

#define SPANS_MAX 16

struct span {
    uint64_t begin; /* bytes */
    uint64_t end;   /* bytes, exclusive */
};

struct spans {
    struct span at[SPANS_MAX];
    unsigned count;
};

void spans_add(struct spans *s, uint64_t begin, uint64_t end);
void spans_remove(struct spans *s, uint64_t begin, uint64_t end);
bool spans_cover(const struct spans *s, uint64_t begin, uint64_t end);

#endif
