#include "daemon/pool/class.h"
#include "daemon/pool/pool.h"

#define LINEAR_CLASSES 8u  /* multiples of POOL_ALIGN */
#define LINEAR_BITS    11u /* they end at 2^11 = 8 * 256 */

unsigned class_of(uint64_t size)
{
    uint64_t last = size - 1;
    if (last < POOL_ALIGN * LINEAR_CLASSES) {
        return (unsigned)(last / POOL_ALIGN);
    }
    unsigned bits = 63u - (unsigned)__builtin_clzll(last);
    uint64_t step = (last >> (bits - 3)) & 7;
    return LINEAR_CLASSES + (bits - LINEAR_BITS) * 8 + (unsigned)step;
}

uint64_t class_bytes(unsigned class)
{
    if (class < LINEAR_CLASSES) {
        return (uint64_t)(class + 1) * POOL_ALIGN;
    }
    unsigned above = class - LINEAR_CLASSES;
    unsigned bits = LINEAR_BITS + above / 8;
    return (UINT64_C(1) << bits) + (UINT64_C(1) << (bits - 3)) * (above % 8 + 1);
}
