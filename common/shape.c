#include "common/shape.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

struct dtype_row {
    const char *name;
    uint32_t bytes;
};

static const struct dtype_row rows[] = {
    [DTYPE_I8] = {"i8", 1},   [DTYPE_U8] = {"u8", 1},   [DTYPE_I16] = {"i16", 2},
    [DTYPE_U16] = {"u16", 2}, [DTYPE_I32] = {"i32", 4}, [DTYPE_U32] = {"u32", 4},
    [DTYPE_I64] = {"i64", 8}, [DTYPE_U64] = {"u64", 8}, [DTYPE_F16] = {"f16", 2},
    [DTYPE_F32] = {"f32", 4}, [DTYPE_F64] = {"f64", 8},
};
#define X(name, value, size) _Static_assert((value) < sizeof rows / sizeof rows[0], #name);
DTYPES(X)
#undef X

static bool known(int dtype)
{
    return dtype > 0 && (size_t)dtype < sizeof rows / sizeof rows[0] && rows[dtype].bytes > 0;
}

uint32_t dtype_size(int dtype)
{
    return known(dtype) ? rows[dtype].bytes : 0;
}

const char *dtype_name(int dtype)
{
    return known(dtype) ? rows[dtype].name : "none";
}

int dtype_from_name(const char *name)
{
    for (int i = 1; known(i); i++) {
        if (strcmp(rows[i].name, name) == 0) {
            return i;
        }
    }
    return DTYPE_NONE;
}

bool dtype_is_float(int dtype)
{
    return dtype == DTYPE_F16 || dtype == DTYPE_F32 || dtype == DTYPE_F64;
}

bool dtype_is_signed(int dtype)
{
    return dtype_is_float(dtype) || dtype == DTYPE_I8 || dtype == DTYPE_I16 || dtype == DTYPE_I32 ||
           dtype == DTYPE_I64;
}

int shape_make(int dtype, unsigned ndim, const uint64_t *dims, struct shape *ret_shape,
               struct err *e)
{
    if (!known(dtype)) {
        return err_set(e, ERR_ARG_TYPE, "element type %d is unknown", dtype);
    }
    if (ndim < 1 || ndim > SHAPE_MAX_DIMS) {
        return err_set(e, ERR_ARG_SHAPE, "%u dimensions, 1 to %d are possible", ndim,
                       SHAPE_MAX_DIMS);
    }
    struct shape s = {.dtype = (uint8_t)dtype, .ndim = (uint8_t)ndim};
    /* The product of the non-zero dimensions must fit. Then no partial product can overflow later,
     * in any order, even if another dimension is 0. */
    uint64_t room = (uint64_t)INT64_MAX / dtype_size(dtype);
    for (unsigned i = 0; i < ndim; i++) {
        s.dim[i] = dims[i];
        if (dims[i] > 0) {
            if (dims[i] > room) {
                return err_set(e, ERR_ARG_SHAPE,
                               "dimension %u of %llu makes it larger than 2^63 bytes", i,
                               (unsigned long long)dims[i]);
            }
            room /= dims[i];
        }
    }
    *ret_shape = s;
    return 0;
}

uint64_t shape_count(const struct shape *s)
{
    uint64_t n = s->ndim > 0 ? 1 : 0;
    for (unsigned i = 0; i < s->ndim; i++) {
        n *= s->dim[i];
    }
    return n;
}

uint64_t shape_bytes(const struct shape *s)
{
    return shape_count(s) * dtype_size(s->dtype);
}

bool shape_equal(const struct shape *a, const struct shape *b)
{
    return a->dtype == b->dtype && a->ndim == b->ndim &&
           memcmp(a->dim, b->dim, a->ndim * sizeof a->dim[0]) == 0;
}

const char *shape_text(const struct shape *s, char *out, unsigned size)
{
    size_t used = (size_t)snprintf(out, size, "%s ", dtype_name(s->dtype));
    for (unsigned i = 0; i < s->ndim && used < size; i++) {
        used += (size_t)snprintf(out + used, size - used, "%s%llu", i > 0 ? "x" : "",
                                 (unsigned long long)s->dim[i]);
    }
    return out;
}

const char *access_name(int access)
{
    static const char *const names[] = {"none", "in", "out", "inout"};
    return access >= 0 && access <= ACCESS_INOUT ? names[access] : "none";
}
