/* Sums and differences of sizes that stop at the limits of their type instead of wrapping. */
#ifndef COMMON_SATURATE_H
#define COMMON_SATURATE_H

#include <stdint.h>

static inline uint64_t sat_add(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static inline uint64_t sat_sub(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

#endif
