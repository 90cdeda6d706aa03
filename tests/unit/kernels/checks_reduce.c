/*
 * Reductions. A value passes at most 16 serial additions and 8 levels of the tree per pass, and
 * passes shrink by 4096: |error| <= d u S / (1 - d u) with d = 24 passes roundings and S = sum |x|
 * (Higham, section 4.2). A product adds one rounding. Integers are exact modulo 2^32.
 */
#include <math.h>
#include <stdlib.h>

#include "checks.h"
#include "runner.h"

static const int types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_U32};

static long double sum_bound(int dtype, uint64_t n, long double absolute)
{
    unsigned roundings = 1;
    for (uint64_t left = n; left > 0; left = left > 4096 ? (left + 4095) / 4096 : 0) {
        roundings += 24;
    }
    long double d = roundings * (long double)unit_roundoff(dtype);
    return dtype_is_float(dtype) ? d * absolute / (1 - d) : 0;
}

static void *operand_of(int dtype, uint64_t n)
{
    bool is_unsigned = dtype == DTYPE_U32;
    return array_random(dtype, n, is_unsigned ? 0 : -1e9, is_unsigned ? 4e9 : 1e9);
}

static long double as_integer(int dtype, uint64_t bits)
{
    return dtype == DTYPE_I32 ? (long double)(int32_t)(uint32_t)bits : (long double)(uint32_t)bits;
}

static uint64_t integer_at(int dtype, const void *x, uint64_t i)
{
    return dtype == DTYPE_I32 ? (uint64_t)((const int32_t *)x)[i] : ((const uint32_t *)x)[i];
}

static void check_sum(int dtype, const void *x, const void *y, uint64_t n, const void *result)
{
    long double sum = 0, absolute = 0;
    uint64_t bits = 0;
    bool real = dtype_is_float(dtype);
    for (uint64_t i = 0; i < n; i++) {
        long double v = value_at(dtype, x, i) * (y == NULL ? 1 : value_at(dtype, y, i));
        sum += v;
        absolute += fabsl(v);
        if (!real) {
            bits += integer_at(dtype, x, i) * (y == NULL ? 1 : integer_at(dtype, y, i));
        }
    }
    check_close(y == NULL ? "reduce_sum" : "dot", n, value_at(dtype, result, 0),
                real ? sum : as_integer(dtype, bits), sum_bound(dtype, n, absolute));
}

START_TEST(test_sum_and_dot)
{
    int dtype = types[_i];
    random_seed(11);
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        void *x = operand_of(dtype, n), *y = operand_of(dtype, n), *r = array_new(dtype, 1);
        const struct operand sum[] = {op_vector(dtype, x, n), op_vector(dtype, r, 1)};
        const struct operand dot[] = {op_vector(dtype, x, n), op_vector(dtype, y, n),
                                      op_vector(dtype, r, 1)};
        run_operation("reduce_sum", sum, 2);
        check_sum(dtype, x, NULL, n, r);
        run_operation("dot", dot, 3);
        check_sum(dtype, x, y, n, r);
        free(x);
        free(y);
        free(r);
    }
}
END_TEST

static long double identity(int dtype, bool least)
{
    switch (dtype) {
    case DTYPE_I32:
        return least ? INT32_MAX : INT32_MIN;
    case DTYPE_U32:
        return least ? UINT32_MAX : 0;
    default:
        return least ? (long double)INFINITY : -(long double)INFINITY;
    }
}

START_TEST(test_min_and_max)
{
    int dtype = types[_i];
    random_seed(12);
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        void *x = operand_of(dtype, n), *r = array_new(dtype, 1);
        const struct operand operands[] = {op_vector(dtype, x, n), op_vector(dtype, r, 1)};
        long double least = identity(dtype, true), most = identity(dtype, false);
        for (uint64_t i = 0; i < n; i++) {
            least = fminl(least, value_at(dtype, x, i));
            most = fmaxl(most, value_at(dtype, x, i));
        }
        run_operation("reduce_min", operands, 2);
        ck_assert(value_at(dtype, r, 0) == least);
        run_operation("reduce_max", operands, 2);
        ck_assert(value_at(dtype, r, 0) == most);
        free(x);
        free(r);
    }
}
END_TEST

static void array_all(int dtype, void *x, uint64_t n, double value)
{
    for (uint64_t i = 0; i < n; i++) {
        if (dtype == DTYPE_F32) {
            ((float *)x)[i] = (float)value;
        } else {
            ((double *)x)[i] = value;
        }
    }
}

/* The minimum of infinities is an infinity, whichever code serves: not the largest finite number.
 * NaNs are ignored. */
START_TEST(test_min_and_max_of_what_is_not_finite)
{
    const double values[] = {INFINITY, -INFINITY, NAN};
    int dtype = types[_i];
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        void *x = array_new(dtype, n), *r = array_new(dtype, 1);
        const struct operand operands[] = {op_vector(dtype, x, n), op_vector(dtype, r, 1)};
        for (unsigned i = 0; i < 3; i++) {
            array_all(dtype, x, n, values[i]);
            run_operation("reduce_min", operands, 2);
            ck_assert(value_at(dtype, r, 0) == (i < 2 && n > 0 ? values[i] : INFINITY));
            run_operation("reduce_max", operands, 2);
            ck_assert(value_at(dtype, r, 0) == (i < 2 && n > 0 ? values[i] : -INFINITY));
        }
        free(x);
        free(r);
    }
}
END_TEST

TCase *checks_reduce(void)
{
    TCase *t = tcase_create("reduce");
    tcase_add_loop_test(t, test_sum_and_dot, 0, 4);
    tcase_add_loop_test(t, test_min_and_max, 0, 4);
    tcase_add_loop_test(t, test_min_and_max_of_what_is_not_finite, 0, 2);
    return t;
}
