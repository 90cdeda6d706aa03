#include <complex.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "runner.h"

struct bodies {
    int dtype;
    uint64_t n;
    void *pos, *vel, *before, *next;
};

static void bodies_init(struct bodies *b, int dtype, uint64_t n)
{
    *b = (struct bodies){.dtype = dtype, .n = n};
    b->pos = array_random(dtype, 4 * n, 0.125, 1);
    b->vel = array_random(dtype, 4 * n, -1, 1);
    b->before = array_new(dtype, 4 * n);
    b->next = array_new(dtype, 4 * n);
    memcpy(b->before, b->vel, (size_t)(4 * n) * dtype_size(dtype));
}

static void bodies_finish(struct bodies *b)
{
    free(b->pos);
    free(b->vel);
    free(b->before);
    free(b->next);
}

static long double pull_of(const struct bodies *b, uint64_t i, uint64_t o, unsigned axis)
{
    long double square = 0.0625L * 0.0625L, d[3];
    for (unsigned c = 0; c < 3; c++) {
        d[c] = value_at(b->dtype, b->pos, 4 * o + c) - value_at(b->dtype, b->pos, 4 * i + c);
        square += d[c] * d[c];
    }
    return value_at(b->dtype, b->pos, 4 * o + 3) * d[axis] / (square * sqrtl(square));
}

/* A term has at most 20 u relative error (difference, squares to the power 3/2, sqrt of 3 ulp,
 * division of 2.5 ulp); n of them are added: (n + 20) u sum |term|. dt scales it, and velocity and
 * position each add two roundings. */
static void bodies_check(const struct bodies *b, long double dt)
{
    long double u = unit_roundoff(b->dtype);
    for (uint64_t i = 0; i < b->n; i++) {
        for (unsigned axis = 0; axis < 3; axis++) {
            long double sum = 0, absolute = 0;
            for (uint64_t o = 0; o < b->n; o++) {
                long double term = pull_of(b, i, o, axis);
                sum += term;
                absolute += fabsl(term);
            }
            long double own = value_at(b->dtype, b->before, 4 * i + axis);
            long double at = value_at(b->dtype, b->pos, 4 * i + axis);
            long double vel = own + dt * sum, next = at + dt * vel;
            long double bound =
                dt * (long double)(b->n + 20) * u * absolute + 2 * u * (fabsl(own) + dt * absolute);
            check_close("nbody vel", 4 * i + axis, value_at(b->dtype, b->vel, 4 * i + axis), vel,
                        bound);
            check_close("nbody next", 4 * i + axis, value_at(b->dtype, b->next, 4 * i + axis), next,
                        dt * bound + 2 * u * (fabsl(at) + fabsl(dt * vel)));
        }
        ck_assert(value_at(b->dtype, b->next, 4 * i + 3) == value_at(b->dtype, b->pos, 4 * i + 3));
        ck_assert(value_at(b->dtype, b->vel, 4 * i + 3) ==
                  value_at(b->dtype, b->before, 4 * i + 3));
    }
}

START_TEST(test_nbody)
{
    static const uint64_t counts[] = {0, 1, 2, 63, 64, 65, 127, 331};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    random_seed(61);
    for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        struct bodies b;
        bodies_init(&b, dtype, counts[c]);
        const uint64_t dims[] = {b.n, 4};
        const struct operand operands[] = {
            op_scalar(dtype, 0.03125), op_scalar(dtype, 0.0625), op_array(dtype, b.pos, 2, dims),
            op_array(dtype, b.vel, 2, dims), op_array(dtype, b.next, 2, dims)};
        run_operation("nbody", operands, 5);
        bodies_check(&b, 0.03125L);
        bodies_finish(&b);
    }
}
END_TEST

/* A reference that shares nothing with the kernel's order: recursion by even and odd. */
static void reference_fft(double complex *x, double complex *room, uint64_t n, double sign)
{
    if (n < 2) {
        return;
    }
    for (uint64_t i = 0; i < n / 2; i++) {
        room[i] = x[2 * i];
        room[n / 2 + i] = x[2 * i + 1];
    }
    reference_fft(room, x, n / 2, sign);
    reference_fft(room + n / 2, x + n / 2, n / 2, sign);
    for (uint64_t i = 0; i < n / 2; i++) {
        double complex turn = cexp(sign * 2 * M_PI * I * (double)i / (double)n);
        x[i] = room[i] + turn * room[n / 2 + i];
        x[n / 2 + i] = room[i] - turn * room[n / 2 + i];
    }
}

/* And the definition itself, to check that reference. */
START_TEST(test_reference)
{
    double complex x[32], y[32], room[32];
    random_seed(62);
    for (unsigned i = 0; i < 32; i++) {
        x[i] = y[i] = random_in(-1, 1) + I * random_in(-1, 1);
    }
    reference_fft(y, room, 32, -1);
    for (unsigned f = 0; f < 32; f++) {
        double complex sum = 0;
        for (unsigned i = 0; i < 32; i++) {
            sum += x[i] * cexp(-2 * M_PI * I * (double)(i * f % 32) / 32);
        }
        check_close("reference", f, (long double)cabs(sum - y[f]), 0, 1e-13L);
    }
}
END_TEST

/* Per pass a twiddle's angle is off by at most 3 u pi, its sine and cosine by 4 ulp more, and the
 * butterfly rounds 4 times: below 24 u of the norm. Passes add up (Higham, 24.1), also in the
 * reference where the type is f64. */
static void fft_check(int dtype, const void *actual, const double complex *expected, uint64_t n)
{
    unsigned passes = 1;
    long double error = 0, norm = 0;
    while ((UINT64_C(1) << passes) < n) {
        passes++;
    }
    for (uint64_t i = 0; i < n; i++) {
        long double re = value_at(dtype, actual, 2 * i) - (long double)creal(expected[i]);
        long double im = value_at(dtype, actual, 2 * i + 1) - (long double)cimag(expected[i]);
        error += re * re + im * im;
        norm += (long double)(creal(expected[i]) * creal(expected[i]) +
                              cimag(expected[i]) * cimag(expected[i]));
    }
    check_close("fft", n, sqrtl(error), 0,
                24 * passes * (long double)unit_roundoff(dtype) * sqrtl(norm));
}

static void check_fft(int dtype, uint64_t n)
{
    void *x = array_random(dtype, 2 * n, -1, 1), *y = array_new(dtype, 2 * n);
    void *back = array_new(dtype, 2 * n);
    double complex *reference = calloc(n + 1, sizeof(*reference));
    double complex *room = calloc(n + 1, sizeof(*room));
    const uint64_t dims[] = {n, 2};
    const struct operand forward[] = {op_array(dtype, x, 2, dims), op_array(dtype, y, 2, dims)};
    const struct operand inverse[] = {op_array(dtype, y, 2, dims), op_array(dtype, back, 2, dims)};
    ck_assert(reference != NULL && room != NULL);
    for (uint64_t i = 0; i < n; i++) {
        reference[i] =
            (double)value_at(dtype, x, 2 * i) + I * (double)value_at(dtype, x, 2 * i + 1);
    }
    reference_fft(reference, room, n, -1);
    run_operation("fft", forward, 2);
    fft_check(dtype, y, reference, n);
    for (uint64_t i = 0; i < n; i++) {
        reference[i] =
            (double)value_at(dtype, y, 2 * i) + I * (double)value_at(dtype, y, 2 * i + 1);
    }
    reference_fft(reference, room, n, 1);
    for (uint64_t i = 0; i < n; i++) {
        reference[i] /= (double)n;
    }
    run_operation("ifft", inverse, 2);
    fft_check(dtype, back, reference, n);
    free(x);
    free(y);
    free(back);
    free(reference);
    free(room);
}

START_TEST(test_fft)
{
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    random_seed(63);
    for (uint64_t n = 1; n <= 8192; n *= 2) {
        check_fft(dtype, n);
    }
    check_fft(dtype, 0);
    if (runner_target.size_max > 1000000) {
        check_fft(dtype, 1u << 20);
    }
}
END_TEST

/* Transforms of n numbers of a larger array, `step` apart, by the reference. */
static void reference_strided(double complex *x, uint64_t n, uint64_t step, double sign)
{
    double complex *line = calloc(n, sizeof(*line)), *room = calloc(n, sizeof(*room));
    ck_assert(line != NULL && room != NULL);
    for (uint64_t i = 0; i < n; i++) {
        line[i] = x[i * step];
    }
    reference_fft(line, room, n, sign);
    for (uint64_t i = 0; i < n; i++) {
        x[i * step] = line[i];
    }
    free(line);
    free(room);
}

/* m rows of n numbers; over the columns too if it is 2-dimensional. */
static void check_rows(int dtype, uint64_t m, uint64_t n, bool plane)
{
    void *x = array_random(dtype, 2 * m * n, -1, 1), *y = array_new(dtype, 2 * m * n);
    void *back = array_new(dtype, 2 * m * n);
    double complex *reference = calloc(m * n, sizeof(*reference));
    const uint64_t dims[] = {m, n, 2};
    const struct operand forward[] = {op_array(dtype, x, 3, dims), op_array(dtype, y, 3, dims)};
    const struct operand inverse[] = {op_array(dtype, y, 3, dims), op_array(dtype, back, 3, dims)};
    ck_assert_ptr_nonnull(reference);
    for (uint64_t i = 0; i < m * n; i++) {
        reference[i] =
            (double)value_at(dtype, x, 2 * i) + I * (double)value_at(dtype, x, 2 * i + 1);
    }
    for (uint64_t r = 0; r < m; r++) {
        reference_strided(reference + r * n, n, 1, -1);
    }
    for (uint64_t c = 0; plane && c < n; c++) {
        reference_strided(reference + c, m, n, -1);
    }
    run_operation(plane ? "fft_2d" : "fft_batched", forward, 2);
    fft_check(dtype, y, reference, m * n);
    run_operation(plane ? "ifft_2d" : "ifft_batched", inverse, 2);
    for (uint64_t i = 0; i < 2 * m * n; i++) { /* there and back */
        check_close("ifft", i, value_at(dtype, back, i), value_at(dtype, x, i),
                    2000 * (long double)unit_roundoff(dtype));
    }
    free(x);
    free(y);
    free(back);
    free(reference);
}

START_TEST(test_fft_rows)
{
    static const uint64_t sizes[][2] = {{1, 1},  {1, 8},  {8, 1},    {3, 2},
                                        {5, 64}, {7, 16}, {1000, 4}, {3, 1024}};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    random_seed(64);
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        check_rows(dtype, sizes[s][0], sizes[s][1], false);
    }
}
END_TEST

START_TEST(test_fft_plane)
{
    static const uint64_t sizes[][2] = {{1, 1},  {1, 16}, {16, 1}, {2, 2},
                                        {4, 32}, {64, 8}, {64, 64}};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    random_seed(65);
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        check_rows(dtype, sizes[s][0], sizes[s][1], true);
    }
}
END_TEST

TCase *checks_physics(void)
{
    TCase *t = tcase_create("physics");
    tcase_add_loop_test(t, test_nbody, 0, 2);
    tcase_add_test(t, test_reference);
    tcase_add_loop_test(t, test_fft, 0, 2);
    tcase_add_loop_test(t, test_fft_rows, 0, 2);
    tcase_add_loop_test(t, test_fft_plane, 0, 2);
    return t;
}
