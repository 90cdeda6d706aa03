/*
 * Element types and shapes. A shape has 1 to 4 dimensions, the last one varies fastest (C order).
 * A dimension may be 0; the product of dimensions and element size never overflows 2^63-1 bytes in
 * a shape that shape_make accepted.
 */
#ifndef COMMON_SHAPE_H
#define COMMON_SHAPE_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define SHAPE_MAX_DIMS 4

/* DTYPE(name, value, bytes): the values are part of the protocol and of the ABI. */
#define DTYPES(DTYPE)                                                                              \
    DTYPE(I8, 1, 1)                                                                                \
    DTYPE(U8, 2, 1)                                                                                \
    DTYPE(I16, 3, 2)                                                                               \
    DTYPE(U16, 4, 2)                                                                               \
    DTYPE(I32, 5, 4)                                                                               \
    DTYPE(U32, 6, 4)                                                                               \
    DTYPE(I64, 7, 8)                                                                               \
    DTYPE(U64, 8, 8)                                                                               \
    DTYPE(F16, 9, 2)                                                                               \
    DTYPE(F32, 10, 4)                                                                              \
    DTYPE(F64, 11, 8)

enum dtype {
    DTYPE_NONE = 0,
#define X(name, value, bytes) DTYPE_##name = (value),
    DTYPES(X)
#undef X
};

struct shape {
    uint8_t dtype; /* enum dtype */
    uint8_t ndim;  /* 1 … 4 */
    uint64_t dim[SHAPE_MAX_DIMS];
};

uint32_t dtype_size(int dtype);        /* bytes of one element; 0 if unknown */
const char *dtype_name(int dtype);     /* "f32"; "none" if unknown; static */
int dtype_from_name(const char *name); /* DTYPE_NONE if unknown */
bool dtype_is_float(int dtype);
bool dtype_is_signed(int dtype);

/* Checks type, number of dimensions and overflow. ret_shape untouched on failure. */
int shape_make(int dtype, unsigned ndim, const uint64_t *dims, struct shape *ret_shape,
               struct err *e);
uint64_t shape_count(const struct shape *s); /* elements */
uint64_t shape_bytes(const struct shape *s);
bool shape_equal(const struct shape *a, const struct shape *b);
/* "f32 1024x16" into out; always terminated. Returns out. */
const char *shape_text(const struct shape *s, char *out, unsigned size);

/* Access that an argument declares. The values are part of the protocol. */
enum access { ACCESS_NONE = 0, ACCESS_IN = 1, ACCESS_OUT = 2, ACCESS_INOUT = 3 };
const char *access_name(int access); /* "in"; static */

#endif
