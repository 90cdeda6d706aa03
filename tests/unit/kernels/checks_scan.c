/*
 * Prefix sums. Per level a value passes at most 4 serial additions, 8 rounds and 2 additions of
 * offsets; levels shrink by 1024: |error| <= 14 levels u S / (1 - …), S = sum of |x| up to there.
 */
#include <math.h>
#include <stdlib.h>

#include "checks.h"
#include "runner.h"

static const int types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_U32};

static void check_scan(int dtype, const void *x, const void *y, uint64_t n, bool inclusive)
{
    unsigned levels = 0;
    for (uint64_t left = n; left > 0; left = left > 1024 ? (left + 1023) / 1024 : 0) {
        levels++;
    }
    bool real = dtype_is_float(dtype);
    long double d = 14 * levels * (long double)unit_roundoff(dtype);
    long double sum = 0, absolute = 0;
    for (uint64_t i = 0; i < n; i++) {
        long double v = value_at(dtype, x, i);
        long double before = sum;
        sum += v;
        absolute += fabsl(v);
        check_close(inclusive ? "scan_inclusive" : "scan_exclusive", i, value_at(dtype, y, i),
                    inclusive ? sum : before, real ? d * absolute / (1 - d) : 0);
    }
}

START_TEST(test_scan)
{
    int dtype = types[_i];
    bool real = dtype_is_float(dtype);
    random_seed(21);
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        /* sums of integers stay within their type: the reference needs no wrapping */
        void *x = array_random(dtype, n, dtype == DTYPE_U32 ? 0 : -500, real ? 1000 : 700);
        void *y = array_new(dtype, n);
        const struct operand operands[] = {op_vector(dtype, x, n), op_vector(dtype, y, n)};
        run_operation("scan_inclusive", operands, 2);
        check_scan(dtype, x, y, n, true);
        run_operation("scan_exclusive", operands, 2);
        check_scan(dtype, x, y, n, false);
        free(x);
        free(y);
    }
}
END_TEST

TCase *checks_scan(void)
{
    TCase *t = tcase_create("scan");
    tcase_add_loop_test(t, test_scan, 0, 4);
    return t;
}
