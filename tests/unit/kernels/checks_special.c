/* What docs/kernels.md says of NaN, -0, the least integer, bounds of NaN, infinities and arrays
 * that are read and written in one place. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "runner.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* One value through an operation, with the scalars before it, if it takes any. */
static double through(const char *name, int dtype, const double *scalars, double value)
{
    double room[2] = {0, 0}; /* for either type */
    struct operand operands[4];
    unsigned count = 0;
    value_set(dtype, &room[0], 0, value);
    for (; count < 2 && scalars != NULL; count++) {
        operands[count] = op_scalar(dtype, scalars[count]);
    }
    operands[count++] = op_vector(dtype, &room[0], 1);
    operands[count++] = op_vector(dtype, &room[1], 1);
    run_operation(name, operands, count);
    return (double)value_at(dtype, &room[1], 0);
}

static const struct special {
    const char *name;
    double value, result;
} specials[] = {
    {"relu", NAN, 0},
    {"relu", -0.0, 0},
    {"relu", INFINITY, INFINITY},
    {"relu", -INFINITY, 0},
    {"abs", NAN, NAN},
    {"abs", -0.0, 0},
    {"abs", -INFINITY, INFINITY},
    {"neg", NAN, NAN},
    {"neg", 0, -0.0},
    {"neg", -0.0, 0},
    {"square", -INFINITY, INFINITY},
    {"sqrt", -1, NAN},
    {"sqrt", -0.0, -0.0},
    {"log", 0, -INFINITY},
    {"log", -1, NAN},
    {"exp", -INFINITY, 0},
    {"recip", 0, INFINITY},
    {"recip", -0.0, -INFINITY},
    {"recip", -INFINITY, -0.0},
};

static void same_value(const char *name, double value, double got, double want)
{
    bool same = isnan(want) ? isnan(got) : got == want && signbit(got) == signbit(want);
    ck_assert_msg(same, "%s: %s of %g is %g, not %g", runner_target.name, name, value, got, want);
}

START_TEST(test_specials)
{
    const struct special *s = &specials[_i];
    for (int t = 0; t < 2; t++) {
        int dtype = t == 0 ? DTYPE_F32 : DTYPE_F64;
        same_value(s->name, s->value, through(s->name, dtype, NULL, s->value), s->result);
    }
}
END_TEST

static const struct clamped {
    double low, high, value, result;
} clampeds[] = {
    {-1, 1, NAN, NAN},
    {0, 1, -0.0, -0.0}, /* it is not less than 0 */
    {-0.0, 0, 0, 0},
    {1, 1, 7, 1},
    {NAN, 1, -INFINITY, -INFINITY}, /* no bound */
    {0, NAN, INFINITY, INFINITY},
    {-INFINITY, INFINITY, 5, 5},
    {0, 1, INFINITY, 1},
};

START_TEST(test_clamp)
{
    const struct clamped *c = &clampeds[_i];
    const double bounds[] = {c->low, c->high};
    for (int t = 0; t < 2; t++) {
        int dtype = t == 0 ? DTYPE_F32 : DTYPE_F64;
        same_value("clamp", c->value, through("clamp", dtype, bounds, c->value), c->result);
    }
}
END_TEST

/* The least integer has no negative: it stays. */
START_TEST(test_least_integer)
{
    static const char *const names[] = {"neg", "abs"};
    for (unsigned n = 0; n < COUNT(names); n++) {
        int32_t x[3] = {INT32_MIN, INT32_MIN + 1, INT32_MAX}, y[3];
        const struct operand operands[] = {op_vector(DTYPE_I32, x, 3), op_vector(DTYPE_I32, y, 3)};
        run_operation(names[n], operands, 2);
        ck_assert_int_eq(y[0], INT32_MIN);
        ck_assert_int_eq(y[1], INT32_MAX);
        ck_assert_int_eq(y[2], n == 0 ? -INT32_MAX : INT32_MAX);
    }
}
END_TEST

/* NaN counts for nothing wherever it stands among numbers; -0 and 0 are equal. */
START_TEST(test_least_among_nan)
{
    static const uint64_t sizes[] = {2, 300, 5000};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    for (unsigned s = 0; s < COUNT(sizes); s++) {
        uint64_t n = sizes[s];
        void *x = array_new(dtype, n), *r = array_new(dtype, 1);
        const struct operand operands[] = {op_vector(dtype, x, n), op_vector(dtype, r, 1)};
        const uint64_t places[] = {0, n / 2, n - 1};
        for (unsigned p = 0; p < COUNT(places); p++) {
            for (uint64_t i = 0; i < n; i++) {
                value_set(dtype, x, i, (double)NAN);
            }
            value_set(dtype, x, places[p], -3);
            run_operation("reduce_min", operands, 2);
            ck_assert(value_at(dtype, r, 0) == -3);
            run_operation("reduce_max", operands, 2);
            ck_assert(value_at(dtype, r, 0) == -3);
        }
        for (uint64_t i = 0; i < n; i++) {
            value_set(dtype, x, i, i % 2 == 0 ? -0.0 : 0.0);
        }
        run_operation("reduce_min", operands, 2);
        ck_assert(value_at(dtype, r, 0) == 0);
        free(x);
        free(r);
    }
}
END_TEST

/* With beta = 0 nothing of c comes through, as in BLAS; with another one NaN stays NaN. */
START_TEST(test_gemm_beta)
{
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    static const double betas[] = {0, -0.0, 1};
    static const double rubbish[] = {NAN, INFINITY, -INFINITY};
    const uint64_t m = 19, k = 5, n = 17;
    const uint64_t a_dims[] = {m, k}, b_dims[] = {k, n}, c_dims[] = {m, n};
    void *a = array_random(dtype, m * k, -1, 1), *b = array_random(dtype, k * n, -1, 1);
    void *c = array_new(dtype, m * n), *plain = array_new(dtype, m * n);
    for (unsigned v = 0; v < COUNT(betas); v++) {
        for (uint64_t i = 0; i < m * n; i++) {
            value_set(dtype, c, i, rubbish[i % COUNT(rubbish)]);
        }
        const struct operand add[] = {op_scalar(dtype, 1), op_array(dtype, a, 2, a_dims),
                                      op_array(dtype, b, 2, b_dims), op_scalar(dtype, betas[v]),
                                      op_array(dtype, c, 2, c_dims)};
        const struct operand product[] = {add[1], add[2], op_array(dtype, plain, 2, c_dims)};
        run_operation("gemm", product, 3);
        run_operation("gemm_add", add, 5);
        for (uint64_t i = 0; i < m * n; i++) {
            bool finite = isfinite(value_at(dtype, c, i));
            ck_assert(finite == (betas[v] == 0));
            if (finite) {
                check_close("gemm_add", i, value_at(dtype, c, i), value_at(dtype, plain, i),
                            (long double)k * 2 * unit_roundoff(dtype));
            }
        }
    }
    free(a);
    free(b);
    free(c);
    free(plain);
}
END_TEST

/* Halves are rounded up, values just below a half down; a quotient of floats around each half. */
START_TEST(test_to_u8)
{
    float src[3 * 256];
    uint8_t dst[COUNT(src)];
    for (unsigned b = 0; b < 256; b++) {
        float half = (float)b + 0.5f;
        src[3 * b] = nextafterf(half, 0);
        src[3 * b + 1] = half;
        src[3 * b + 2] = nextafterf((float)b, 0);
    }
    const struct operand operands[] = {op_f32(1), op_vector(DTYPE_F32, src, COUNT(src)),
                                       op_vector(DTYPE_U8, dst, COUNT(src))};
    run_operation("to_u8", operands, 3);
    for (unsigned b = 0; b < 256; b++) {
        ck_assert_uint_eq(dst[3 * b], b);
        ck_assert_uint_eq(dst[3 * b + 1], b < 255 ? b + 1 : 255);
        ck_assert_uint_eq(dst[3 * b + 2], b);
    }
}
END_TEST

/* Sums are formed before they are divided: up to FLT_MAX / (2 n) nothing becomes infinite. */
START_TEST(test_ifft_range)
{
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    const uint64_t n = 1024, dims[] = {1024, 2};
    double most = (dtype == DTYPE_F32 ? (double)FLT_MAX : DBL_MAX) / (2 * (double)n);
    void *x = array_random(dtype, 2 * n, most, most), *y = array_new(dtype, 2 * n);
    const struct operand operands[] = {op_array(dtype, x, 2, dims), op_array(dtype, y, 2, dims)};
    run_operation("ifft", operands, 2);
    for (uint64_t i = 0; i < 2 * n; i++) {
        check_close("ifft", i, value_at(dtype, y, i), i < 2 ? (long double)most : 0,
                    24 * 10 * (long double)unit_roundoff(dtype) * 32 * (long double)most);
    }
    free(x);
    free(y);
}
END_TEST

/* ---- in place: alias same, alias any --------------------------------------------------------- */

/* The operation on two arrays, then on one: bit by bit the same, unless a library has other code
 * for each. */
static void check_in_place(const char *name, int dtype, unsigned ndim, const uint64_t *dims)
{
    struct operand o = op_array(dtype, NULL, ndim, dims);
    uint64_t n = shape_count(&o.shape);
    void *x = array_random(dtype, n, 0.5, 9), *y = array_new(dtype, n);
    const struct operand apart[] = {op_array(dtype, x, ndim, dims), op_array(dtype, y, ndim, dims),
                                    op_f32(1.5f)};
    const struct operand one[] = {apart[0], apart[0], apart[2]};
    unsigned count = strcmp(name, "gaussian") == 0 ? 3 : 2;
    run_operation(name, apart, count);
    run_operation(name, one, count);
    long double most = 512 * (long double)unit_roundoff(dtype) * 9 * (long double)n;
    for (uint64_t i = 0; i < n; i++) {
        check_close(name, i, value_at(dtype, x, i), value_at(dtype, y, i),
                    runner_target.library != NULL ? most : 0);
    }
    free(x);
    free(y);
}

START_TEST(test_in_place)
{
    static const char *const maps[] = {
        "neg", "abs",   "square", "sqrt",           "exp",
        "log", "recip", "relu",   "scan_inclusive", "scan_exclusive"};
    static const uint64_t lengths[] = {1, 257, 5000};
    static const uint64_t powers[] = {1, 2, 4, 64, 2048};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    random_seed(71);
    for (unsigned l = 0; l < COUNT(lengths); l++) {
        for (unsigned m = 0; m < COUNT(maps); m++) {
            check_in_place(maps[m], dtype, 1, &lengths[l]);
        }
    }
    for (unsigned p = 0; p < COUNT(powers); p++) {
        const uint64_t flat[] = {powers[p], 2}, many[] = {3, powers[p], 2},
                       plane[] = {powers[p] < 64 ? 4 : 2, powers[p], 2};
        check_in_place("fft", dtype, 2, flat);
        check_in_place("ifft", dtype, 2, flat);
        check_in_place("fft_batched", dtype, 3, many);
        check_in_place("ifft_batched", dtype, 3, many);
        check_in_place("fft_2d", dtype, 3, plane);
        check_in_place("ifft_2d", dtype, 3, plane);
    }
    if (dtype == DTYPE_F32) {
        check_in_place("gaussian", dtype, 2, (const uint64_t[]){31, 45});
    }
}
END_TEST

TCase *checks_special(void)
{
    TCase *t = tcase_create("special");
    tcase_add_loop_test(t, test_specials, 0, COUNT(specials));
    tcase_add_loop_test(t, test_clamp, 0, COUNT(clampeds));
    tcase_add_test(t, test_least_integer);
    tcase_add_loop_test(t, test_least_among_nan, 0, 2);
    tcase_add_loop_test(t, test_gemm_beta, 0, 2);
    tcase_add_test(t, test_to_u8);
    tcase_add_loop_test(t, test_ifft_range, 0, 2);
    tcase_add_loop_test(t, test_in_place, 0, 2);
    return t;
}
