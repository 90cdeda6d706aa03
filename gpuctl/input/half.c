#include "gpuctl/input/half.h"

#include <math.h>

double half_to_double(uint16_t bits)
{
    int exponent = bits >> 10 & 0x1f;
    int fraction = bits & 0x3ff;
    double value;
    if (exponent == 31) {
        value = fraction != 0 ? NAN : INFINITY;
    } else if (exponent == 0) {
        value = ldexp(fraction, -24);
    } else {
        value = ldexp(1024 + fraction, exponent - 25);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

uint16_t half_from_double(double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    double size = fabs(value);
    if (isnan(value)) {
        return (uint16_t)(sign | 0x7e00);
    }
    if (size >= 65520) { /* from halfway between the largest number and 2^16 on: infinity */
        return (uint16_t)(sign | 0x7c00);
    }
    if (size < 0x1p-14) {
        /* A result of 1024 units is already the encoding of the smallest normal number. */
        return (uint16_t)(sign | (uint16_t)nearbyint(ldexp(size, 24)));
    }
    int exponent;
    double part = frexp(size, &exponent);                  /* 0.5 … 1 */
    unsigned units = (unsigned)nearbyint(ldexp(part, 11)); /* 1024 … 2048 */
    /* 2048 units carry into the exponent. */
    return (uint16_t)(sign | (uint16_t)(((unsigned)(exponent + 13) << 10) + units));
}
