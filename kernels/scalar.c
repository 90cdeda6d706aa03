#include <math.h>
#include <stdio.h>
#include <string.h>

#include "kernels/signature_int.h"

/* The exact value of any scalar: an integer as sign and magnitude, or a double. */
struct number {
    bool real;
    bool negative;
    uint64_t magnitude;
    double value;
};

static double half_value(uint16_t h)
{
    int exponent = (h >> 10) & 31;
    int fraction = h & 1023;
    double sign = (h & 0x8000) != 0 ? -1.0 : 1.0;
    if (exponent == 31) {
        return fraction != 0 ? (double)NAN : sign * (double)INFINITY;
    }
    return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

static struct number number_signed(int64_t v)
{
    return (struct number){.negative = v < 0, .magnitude = v < 0 ? 0 - (uint64_t)v : (uint64_t)v};
}

static struct number number_unsigned(uint64_t v)
{
    return (struct number){.magnitude = v};
}

static struct number number_real(double v)
{
    return (struct number){.real = true, .value = v};
}

static bool number_load(int dtype, uint64_t bits, struct number *ret_number)
{
    float f = 0;
    double d = 0;
    uint32_t low = (uint32_t)bits;
    memcpy(&f, &low, sizeof(f));
    memcpy(&d, &bits, sizeof(d));
    switch (dtype) {
    case DTYPE_I8:
        *ret_number = number_signed((int8_t)bits);
        return true;
    case DTYPE_I16:
        *ret_number = number_signed((int16_t)bits);
        return true;
    case DTYPE_I32:
        *ret_number = number_signed((int32_t)bits);
        return true;
    case DTYPE_I64:
        *ret_number = number_signed((int64_t)bits);
        return true;
    case DTYPE_U8:
        *ret_number = number_unsigned((uint8_t)bits);
        return true;
    case DTYPE_U16:
        *ret_number = number_unsigned((uint16_t)bits);
        return true;
    case DTYPE_U32:
        *ret_number = number_unsigned((uint32_t)bits);
        return true;
    case DTYPE_U64:
        *ret_number = number_unsigned(bits);
        return true;
    case DTYPE_F16:
        *ret_number = number_real(half_value((uint16_t)bits));
        return true;
    case DTYPE_F32:
        *ret_number = number_real((double)f);
        return true;
    case DTYPE_F64:
        *ret_number = number_real(d);
        return true;
    default:
        return false;
    }
}

static int store_integer(const struct number *n, int to, uint64_t *ret_bits, struct err *e)
{
    struct number v = *n;
    const unsigned width = dtype_size(to) * 8;
    if (n->real) {
        if (!(fabs(n->value) < 18446744073709551616.0) || n->value != trunc(n->value)) {
            return err_set(e, ERR_RANGE, "%g is no %s", n->value, dtype_name(to));
        }
        v.negative = n->value < 0;
        v.magnitude = (uint64_t)fabs(n->value);
    }
    uint64_t top = dtype_is_signed(to) ? UINT64_C(1) << (width - 1) : 0;
    uint64_t max = UINT64_MAX >> (64 - width);
    bool fits = v.negative ? v.magnitude <= top : v.magnitude <= (top != 0 ? top - 1 : max);
    if (!fits) {
        return err_set(e, ERR_RANGE, "%s%llu does not fit %s", v.negative ? "-" : "",
                       (unsigned long long)v.magnitude, dtype_name(to));
    }
    *ret_bits = (v.negative ? 0 - v.magnitude : v.magnitude) & max;
    return 0;
}

static bool integer_is_exact(uint64_t magnitude, unsigned digits)
{
    while (magnitude != 0 && (magnitude & 1) == 0) {
        magnitude >>= 1;
    }
    return magnitude >> digits == 0;
}

static int store_real(const struct number *n, int to, uint64_t *ret_bits, struct err *e)
{
    double v = n->value;
    if (!n->real) {
        if (!integer_is_exact(n->magnitude, to == DTYPE_F32 ? 24 : 53)) {
            return err_set(e, ERR_RANGE, "%s%llu is not exact in %s", n->negative ? "-" : "",
                           (unsigned long long)n->magnitude, dtype_name(to));
        }
        v = n->negative ? -(double)n->magnitude : (double)n->magnitude;
    }
    uint64_t bits = 0;
    if (to == DTYPE_F64) {
        memcpy(&bits, &v, sizeof(v));
        *ret_bits = bits;
        return 0;
    }
    float f = (float)v;
    if (isinf(f) && !isinf(v)) {
        return err_set(e, ERR_RANGE, "%g does not fit f32", v);
    }
    memcpy(&bits, &f, sizeof(f));
    *ret_bits = bits;
    return 0;
}

int scalar_convert(int from, uint64_t bits, int to, uint64_t *ret_bits, struct err *e)
{
    struct number n;
    if (!number_load(from, bits, &n)) {
        return err_set(e, ERR_ARG_TYPE, "scalar of unknown type %d", from);
    }
    if (to == DTYPE_F32 || to == DTYPE_F64) {
        return store_real(&n, to, ret_bits, e);
    }
    if (dtype_size(to) == 0 || to == DTYPE_F16) {
        return err_set(e, ERR_ARG_TYPE, "no scalar can become %s", dtype_name(to));
    }
    return store_integer(&n, to, ret_bits, e);
}

bool scalar_less(int dtype, uint64_t a, uint64_t b)
{
    struct number x, y;
    if (!number_load(dtype, a, &x) || !number_load(dtype, b, &y)) {
        return false;
    }
    if (x.real) {
        return x.value < y.value;
    }
    if (x.negative != y.negative) {
        return x.negative;
    }
    return x.negative ? x.magnitude > y.magnitude : x.magnitude < y.magnitude;
}

const char *scalar_text(int dtype, uint64_t bits, char *out, size_t size)
{
    struct number n;
    if (!number_load(dtype, bits, &n)) {
        snprintf(out, size, "?");
    } else if (n.real) {
        snprintf(out, size, "%.9g", n.value);
    } else {
        snprintf(out, size, "%s%llu", n.negative ? "-" : "", (unsigned long long)n.magnitude);
    }
    return out;
}
