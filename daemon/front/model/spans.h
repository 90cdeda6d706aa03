/*
 * Sorted, disjoint byte ranges in fixed memory: the defined parts of a buffer, and what a job
 * writes. When more ranges are needed than there is memory for, the smallest is forgotten. So
 * defined content may count as undefined, never the other way round. Pure.
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

/* With memory for `max` ranges at `at`, of which there are *count. */
void span_add(struct span *at, unsigned *count, unsigned max, uint64_t begin, uint64_t end);
bool span_cover(const struct span *at, unsigned count, uint64_t begin, uint64_t end);

static inline void spans_add(struct spans *s, uint64_t begin, uint64_t end)
{
    span_add(s->at, &s->count, SPANS_MAX, begin, end);
}

static inline bool spans_cover(const struct spans *s, uint64_t begin, uint64_t end)
{
    return span_cover(s->at, s->count, begin, end);
}

void spans_remove(struct spans *s, uint64_t begin, uint64_t end);

#endif
