/* Which parts of a buffer have been written: sorted, disjoint byte ranges in fixed memory. Where
 * more ranges would be needed than fit, the smallest is forgotten: content is then called undefined
 * though it is not, never the other way round. Pure. */
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
