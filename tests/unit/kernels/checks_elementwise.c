/*
 * One operation per element. `ulps` is what OpenCL allows for the function (2.5 for a division, 3
 * for sqrt, exp and log, 4 for sin and cos); 0.5 is correct rounding. One ulp of y is at most
 * 2 u |y|, u the unit roundoff. Integers are exact, modulo 2^32.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "runner.h"

typedef long double (*reference_fn)(long double x, long double y);

struct elementwise {
    const char *name;
    unsigned arrays; /* inputs */
    reference_fn reference;
    double ulps;
    double low, high;
    int types[5];
};

static long double ref_add(long double x, long double y)
{
    return x + y;
}
static long double ref_mul(long double x, long double y)
{
    return x * y;
}
static long double ref_neg(long double x, long double y)
{
    (void)y;
    return -x;
}
static long double ref_abs(long double x, long double y)
{
    (void)y;
    return fabsl(x);
}
static long double ref_square(long double x, long double y)
{
    (void)y;
    return x * x;
}
static long double ref_sqrt(long double x, long double y)
{
    (void)y;
    return sqrtl(x);
}
static long double ref_exp(long double x, long double y)
{
    (void)y;
    return expl(x);
}
static long double ref_log(long double x, long double y)
{
    (void)y;
    return logl(x);
}
static long double ref_sin(long double x, long double y)
{
    (void)y;
    return sinl(x);
}
static long double ref_cos(long double x, long double y)
{
    (void)y;
    return cosl(x);
}
static long double ref_recip(long double x, long double y)
{
    (void)y;
    return 1 / x;
}
static long double ref_relu(long double x, long double y)
{
    (void)y;
    return x > 0 ? x : 0;
}

#define REAL_TYPES                                                                                 \
    {                                                                                              \
        DTYPE_F32, DTYPE_F64                                                                       \
    }
#define SIGNED_TYPES                                                                               \
    {                                                                                              \
        DTYPE_F32, DTYPE_F64, DTYPE_I32                                                            \
    }
#define ALL_TYPES                                                                                  \
    {                                                                                              \
        DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_U32                                                 \
    }

static const struct elementwise rows[] = {
    {"add", 2, ref_add, 0.5, -2e9, 2e9, SIGNED_TYPES},
    {"add", 2, ref_add, 0.5, 0, 4e9, {DTYPE_U32}},
    {"mul", 2, ref_mul, 0.5, -2e9, 2e9, SIGNED_TYPES},
    {"mul", 2, ref_mul, 0.5, 0, 4e9, {DTYPE_U32}},
    {"neg", 1, ref_neg, 0, -2e9, 2e9, SIGNED_TYPES},
    {"abs", 1, ref_abs, 0, -2e9, 2e9, SIGNED_TYPES},
    {"square", 1, ref_square, 0.5, 0, 2e9, ALL_TYPES},
    {"sqrt", 1, ref_sqrt, 3, 0, 1e6, REAL_TYPES},
    {"exp", 1, ref_exp, 3, -80, 80, REAL_TYPES},
    {"log", 1, ref_log, 3, 1e-6, 1e6, REAL_TYPES},
    {"sin", 1, ref_sin, 4, -100, 100, REAL_TYPES},
    {"cos", 1, ref_cos, 4, -100, 100, REAL_TYPES},
    {"recip", 1, ref_recip, 2.5, 0.001, 1e6, REAL_TYPES},
    {"relu", 1, ref_relu, 0, -2e9, 2e9, SIGNED_TYPES},
};

/* What an integer type keeps of an exact result. */
static long double wrapped(int dtype, long double v)
{
    uint64_t bits = v < 0 ? 0 - (uint64_t)-v : (uint64_t)v;
    if (dtype == DTYPE_I32) {
        return (int32_t)(uint32_t)bits;
    }
    return dtype == DTYPE_U32 ? (long double)(uint32_t)bits : v;
}

static void check_row(const struct elementwise *row, int dtype, uint64_t n)
{
    void *x = array_random(dtype, n, row->low, row->high);
    void *y = array_random(dtype, n, row->low, row->high);
    void *z = array_new(dtype, n);
    struct operand operands[3] = {op_vector(dtype, x, n), op_vector(dtype, y, n)};
    operands[row->arrays] = op_vector(dtype, z, n);
    run_operation(row->name, operands, row->arrays + 1);
    for (uint64_t i = 0; i < n; i++) {
        long double expected = row->reference(value_at(dtype, x, i), value_at(dtype, y, i));
        long double bound = row->ulps * 2 * unit_roundoff(dtype) * fabsl(expected);
        if (!dtype_is_float(dtype)) {
            expected = wrapped(dtype, expected);
            bound = 0;
        }
        check_close(row->name, i, value_at(dtype, z, i), expected, bound);
    }
    free(x);
    free(y);
    free(z);
}

START_TEST(test_rows)
{
    const struct elementwise *row = &rows[_i];
    random_seed((uint64_t)_i);
    for (unsigned t = 0; t < 5 && row->types[t] != DTYPE_NONE; t++) {
        for (unsigned s = 0; s < size_count(); s++) {
            check_row(row, row->types[t], size_at(s));
        }
    }
}
END_TEST

static const int fill_types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_U32, DTYPE_U8};

START_TEST(test_fill)
{
    int dtype = fill_types[_i];
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        void *x = array_new(dtype, n);
        const struct operand operands[] = {op_scalar(dtype, 7), op_vector(dtype, x, n)};
        run_operation("fill", operands, 2);
        for (uint64_t i = 0; i < n; i++) {
            check_close("fill", i, value_at(dtype, x, i), 7, 0);
        }
        free(x);
    }
}
END_TEST

/* Product and sum may be rounded once together or each: u (|a x| + |a x + y|) holds for both, with
 * a little for the product's rounding inside the second term. */
START_TEST(test_axpy)
{
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    long double u = unit_roundoff(dtype), a = -1.625L;
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        void *x = array_random(dtype, n, -10, 10), *y = array_random(dtype, n, -10, 10);
        void *before = array_new(dtype, n);
        memcpy(before, y, (size_t)n * dtype_size(dtype));
        const struct operand operands[] = {op_scalar(dtype, (double)a), op_vector(dtype, x, n),
                                           op_vector(dtype, y, n)};
        run_operation("axpy", operands, 3);
        for (uint64_t i = 0; i < n; i++) {
            long double product = a * value_at(dtype, x, i);
            long double expected = product + value_at(dtype, before, i);
            check_close("axpy", i, value_at(dtype, y, i), expected,
                        u * (fabsl(product) * (1 + u) + fabsl(expected)));
        }
        free(x);
        free(y);
        free(before);
    }
}
END_TEST

static const int all_types[] = ALL_TYPES;

START_TEST(test_scale)
{
    int dtype = all_types[_i];
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        void *x = array_random(dtype, n, 0, 2e9), *y = array_new(dtype, n);
        const struct operand operands[] = {op_scalar(dtype, 3), op_vector(dtype, x, n),
                                           op_vector(dtype, y, n)};
        run_operation("scale", operands, 3);
        for (uint64_t i = 0; i < n; i++) {
            long double expected = 3 * value_at(dtype, x, i);
            bool real = dtype_is_float(dtype);
            check_close("scale", i, value_at(dtype, y, i),
                        real ? expected : wrapped(dtype, expected),
                        real ? unit_roundoff(dtype) * expected : 0);
        }
        free(x);
        free(y);
    }
}
END_TEST

START_TEST(test_clamp)
{
    int dtype = all_types[_i];
    double low = dtype == DTYPE_U32 ? 100 : -100, high = 5000;
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        void *x = array_random(dtype, n, low < 0 ? -9000 : 0, 9000), *y = array_new(dtype, n);
        const struct operand operands[] = {op_scalar(dtype, low), op_scalar(dtype, high),
                                           op_vector(dtype, x, n), op_vector(dtype, y, n)};
        run_operation("clamp", operands, 4);
        for (uint64_t i = 0; i < n; i++) {
            long double v = value_at(dtype, x, i);
            check_close("clamp", i, value_at(dtype, y, i),
                        v < low    ? (long double)low
                        : v > high ? (long double)high
                                   : v,
                        0);
        }
        free(x);
        free(y);
    }
}
END_TEST

TCase *checks_elementwise(void)
{
    TCase *t = tcase_create("elementwise");
    tcase_add_loop_test(t, test_rows, 0, sizeof(rows) / sizeof(rows[0]));
    tcase_add_loop_test(t, test_fill, 0, 5);
    tcase_add_loop_test(t, test_axpy, 0, 2);
    tcase_add_loop_test(t, test_scale, 0, 4);
    tcase_add_loop_test(t, test_clamp, 0, 4);
    return t;
}
