/* Functions of values alone: shapes, types and arguments. None needs a client. */
#include <string.h>

#include "client/src/base/client.h"
#include "common/shape.h"
#include "proto/messages.h"

#define STRINGIFY(x) #x
#define TEXT(x)      STRINGIFY(x)

const char *gpud_version(void)
{
    return TEXT(GPUD_VERSION_MAJOR) "." TEXT(GPUD_VERSION_MINOR) "." TEXT(GPUD_VERSION_PATCH);
}

size_t gpud_dtype_size(int dtype)
{
    return dtype_size(dtype);
}

const char *gpud_dtype_name(int dtype)
{
    return dtype_name(dtype);
}

int gpud_dtype_from_name(const char *name)
{
    return name != NULL ? dtype_from_name(name) : DTYPE_NONE;
}

static gpud_shape shape_of(int dtype, uint32_t ndim, uint64_t d0, uint64_t d1, uint64_t d2,
                           uint64_t d3)
{
    return (gpud_shape){.dtype = (uint32_t)dtype, .ndim = ndim, .dim = {d0, d1, d2, d3}};
}

gpud_shape gpud_shape_1d(int dtype, uint64_t n)
{
    return shape_of(dtype, 1, n, 0, 0, 0);
}

gpud_shape gpud_shape_2d(int dtype, uint64_t rows, uint64_t columns)
{
    return shape_of(dtype, 2, rows, columns, 0, 0);
}

gpud_shape gpud_shape_3d(int dtype, uint64_t d0, uint64_t d1, uint64_t d2)
{
    return shape_of(dtype, 3, d0, d1, d2, 0);
}

gpud_shape gpud_shape_4d(int dtype, uint64_t d0, uint64_t d1, uint64_t d2, uint64_t d3)
{
    return shape_of(dtype, 4, d0, d1, d2, d3);
}

static bool shape_valid(gpud_shape shape, struct shape *ret_shape)
{
    return shape.dtype <= INT8_MAX &&
           shape_make((int)shape.dtype, shape.ndim, shape.dim, ret_shape, NULL) == 0;
}

uint64_t gpud_shape_count(gpud_shape shape)
{
    struct shape s;
    return shape_valid(shape, &s) ? shape_count(&s) : 0;
}

uint64_t gpud_shape_bytes(gpud_shape shape)
{
    struct shape s;
    return shape_valid(shape, &s) ? shape_bytes(&s) : 0;
}

/* ---- arguments ----------------------------------------------------------------------------- */

static gpud_arg buffer_arg(gpud_buffer buffer, uint32_t access)
{
    return (gpud_arg){
        .kind = ARG_BUFFER, .access = access, .handle = buffer.id, .count = GPUD_REST};
}

gpud_arg gpud_in(gpud_buffer buffer)
{
    return buffer_arg(buffer, GPUD_IN);
}

gpud_arg gpud_out(gpud_buffer buffer)
{
    return buffer_arg(buffer, GPUD_OUT);
}

gpud_arg gpud_inout(gpud_buffer buffer)
{
    return buffer_arg(buffer, GPUD_INOUT);
}

gpud_arg gpud_slice(gpud_buffer buffer, uint64_t first, uint64_t count)
{
    return gpud_arg_slice(buffer_arg(buffer, GPUD_AS_KERNEL), first, count);
}

gpud_arg gpud_arg_slice(gpud_arg arg, uint64_t first, uint64_t count)
{
    bool outside = first > UINT64_MAX - arg.first;
    if (count == GPUD_REST && arg.count != GPUD_REST) { /* of a slice: to its end */
        outside = outside || first > arg.count;
        count = arg.count - first;
    }
    arg.first = outside ? UINT64_MAX : arg.first + first; /* beyond every buffer: RANGE when used */
    arg.count = outside ? GPUD_REST : count;
    return arg;
}

gpud_arg gpud_arg_with(gpud_arg arg, int access)
{
    arg.access = (uint32_t)access;
    return arg;
}

gpud_arg gpud_arg_as(gpud_arg arg, int dtype)
{
    arg.view = dtype >= 0 && dtype <= UINT8_MAX ? (uint64_t)dtype : UINT8_MAX; /* then ARG_TYPE */
    return arg;
}

gpud_arg gpud_host_shaped(void *data, gpud_shape shape, int access)
{
    gpud_arg arg = {
        .kind = ARG_INLINE,
        .access = (uint32_t)access,
        .dtype = shape.dtype,
        .ndim = shape.ndim,
        .data = data,
        .bytes = gpud_shape_bytes(shape),
    };
    memcpy(arg.dim, shape.dim, sizeof arg.dim);
    return arg;
}

gpud_arg gpud_host(void *data, uint64_t n, int dtype)
{
    return gpud_host_shaped(data, gpud_shape_1d(dtype, n), GPUD_AS_KERNEL);
}

gpud_arg gpud_arg_direct(gpud_arg arg)
{
    if (arg.kind == ARG_INLINE) {
        arg.bits = ARENA_DIRECT;
    }
    return arg;
}

gpud_arg gpud_host_in(const void *data, uint64_t n, int dtype)
{
    return gpud_host_shaped((void *)(uintptr_t)data, gpud_shape_1d(dtype, n), GPUD_IN);
}

gpud_arg gpud_host_out(void *data, uint64_t n, int dtype)
{
    return gpud_host_shaped(data, gpud_shape_1d(dtype, n), GPUD_OUT);
}

gpud_arg gpud_host_inout(void *data, uint64_t n, int dtype)
{
    return gpud_host_shaped(data, gpud_shape_1d(dtype, n), GPUD_INOUT);
}

static gpud_arg scalar(int dtype, uint64_t bits)
{
    return (gpud_arg){.kind = ARG_SCALAR, .dtype = (uint32_t)dtype, .bits = bits};
}

gpud_arg gpud_i8(int8_t value)
{
    return scalar(GPUD_I8, (uint8_t)value);
}

gpud_arg gpud_u8(uint8_t value)
{
    return scalar(GPUD_U8, value);
}

gpud_arg gpud_i16(int16_t value)
{
    return scalar(GPUD_I16, (uint16_t)value);
}

gpud_arg gpud_u16(uint16_t value)
{
    return scalar(GPUD_U16, value);
}

gpud_arg gpud_i32(int32_t value)
{
    return scalar(GPUD_I32, (uint32_t)value);
}

gpud_arg gpud_u32(uint32_t value)
{
    return scalar(GPUD_U32, value);
}

gpud_arg gpud_i64(int64_t value)
{
    return scalar(GPUD_I64, (uint64_t)value);
}

gpud_arg gpud_u64(uint64_t value)
{
    return scalar(GPUD_U64, value);
}

gpud_arg gpud_f16(uint16_t bits)
{
    return scalar(GPUD_F16, bits);
}

gpud_arg gpud_f32(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return scalar(GPUD_F32, bits);
}

gpud_arg gpud_f64(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return scalar(GPUD_F64, bits);
}

gpud_arg gpud_bytes(const void *data, size_t bytes)
{
    return (gpud_arg){.kind = ARG_STRUCT, .data = (void *)(uintptr_t)data, .bytes = bytes};
}

gpud_arg gpud_local(uint64_t bytes)
{
    return (gpud_arg){.kind = ARG_LOCAL, .count = bytes};
}
