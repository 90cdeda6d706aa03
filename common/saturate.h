/* Arithmetic of sizes that does not wrap: results stop at the limits of their type. */
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

static inline uint64_t sat_mul(uint64_t a, uint64_t b)
{
    uint64_t product = 0;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

/* Rounded down; percent <= 100. */
static inline uint64_t percent_of(uint64_t all, uint64_t percent)
{
    return all / 100 * percent + all % 100 * percent / 100;
}

#endif
