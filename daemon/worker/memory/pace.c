#include "daemon/worker/memory/pace.h"

/* A longer time moves the estimate by 1/SLOW of the difference. On a busy processor most times
 * are too long; yet a time that is 100 times longer has an effect at once. */
#define SLOW 64u

static unsigned size_of(uint64_t items)
{
    return items == 0 ? 0 : (63u - (unsigned)__builtin_clzll(items)) / 4;
}

uint64_t pace_expect(const struct pace *p, uint64_t items)
{
    unsigned size = size_of(items);
    for (unsigned i = size; i < PACE_SIZES; i++) {
        if (p->ns[i] != 0) {
            return p->ns[i];
        }
    }
    for (unsigned i = size; i-- > 0;) {
        unsigned shift = 4 * (size - i);
        if (p->ns[i] != 0) {
            return p->ns[i] <= (PACE_UNKNOWN - 1) >> shift ? p->ns[i] << shift : PACE_UNKNOWN - 1;
        }
    }
    return PACE_UNKNOWN;
}

void pace_note(struct pace *p, uint64_t ns, uint64_t items)
{
    uint64_t *at = &p->ns[size_of(items)];
    uint64_t seen = ns > 0 ? ns : 1;
    *at = *at == 0 || seen < *at ? seen : *at + (seen - *at) / SLOW;
}
