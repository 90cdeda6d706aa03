/* Size classes of objects in slabs: eight to each doubling, all multiples of 256 bytes. Pure. */
#ifndef POOL_CLASS_H
#define POOL_CLASS_H

#include <stdint.h>

#define CLASS_COUNT     416u /* up to 2^62 bytes */
#define CLASS_BYTES_MAX (UINT64_C(1) << 62)

/* The smallest class that fits `size` bytes, 1 … CLASS_BYTES_MAX. */
unsigned class_of(uint64_t size);
uint64_t class_bytes(unsigned class);

#endif
