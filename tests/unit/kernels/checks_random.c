/* Random numbers: the generator's published answers, then the distributions made of its words. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "runner.h"

#define COUNT 100003u

enum stream { UNIFORM, NORMAL };

/* Philox 4x32-10 by its definition, with a counter of 64 bits and the stream above it. */
static void philox(uint64_t counter, enum stream stream, uint64_t key, uint32_t out[4])
{
    uint32_t c[4] = {(uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream, 0};
    uint32_t k[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    for (int round = 0; round < 10; round++) {
        uint64_t left = UINT64_C(0xD2511F53) * c[0], right = UINT64_C(0xCD9E8D57) * c[2];
        uint32_t next[4] = {(uint32_t)(right >> 32) ^ c[1] ^ k[0], (uint32_t)right,
                            (uint32_t)(left >> 32) ^ c[3] ^ k[1], (uint32_t)left};
        for (int i = 0; i < 4; i++) {
            c[i] = next[i];
        }
        k[0] += UINT32_C(0x9E3779B9);
        k[1] += UINT32_C(0xBB67AE85);
    }
    for (int i = 0; i < 4; i++) {
        out[i] = c[i];
    }
}

/* The first of the known answers that come with the generator's paper. */
START_TEST(test_philox_reference)
{
    uint32_t out[4];
    philox(0, UNIFORM, 0, out);
    ck_assert_uint_eq(out[0], UINT32_C(0x6627e8d5));
    ck_assert_uint_eq(out[1], UINT32_C(0xe169c58d));
    ck_assert_uint_eq(out[2], UINT32_C(0xbc57ac4c));
    ck_assert_uint_eq(out[3], UINT32_C(0x9b00dbd8));
}
END_TEST

/* The two words of element i. */
static void words_of(uint64_t i, enum stream stream, uint64_t seed, uint32_t word[2])
{
    uint32_t block[4];
    philox(i / 2, stream, seed, block);
    word[0] = block[i % 2 * 2];
    word[1] = block[i % 2 * 2 + 1];
}

static long double uniform_of(int dtype, uint64_t i, enum stream stream, uint64_t seed)
{
    uint32_t word[2];
    words_of(i, stream, seed, word);
    uint64_t bits = (uint64_t)word[0] << 32 | word[1];
    return dtype == DTYPE_F32 ? ldexpl(word[0] >> 8, -24) : ldexpl((long double)(bits >> 11), -53);
}

static void draw(const char *name, int dtype, uint64_t seed, void *x, uint64_t n)
{
    const struct operand uniform[] = {{.dtype = DTYPE_U64, .bits = seed}, op_vector(dtype, x, n)};
    const struct operand normal[] = {uniform[0], op_scalar(dtype, 3), op_scalar(dtype, 0.5),
                                     uniform[1]};
    bool is_uniform = name[7] == 'u';
    run_operation(name, is_uniform ? uniform : normal, is_uniform ? 2 : 4);
}

START_TEST(test_uniform)
{
    static const uint64_t counts[] = {0, 1, 2, 3, 4, 5, 1023, COUNT};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    uint64_t seed = UINT64_C(0x123456789abcdef0);
    for (unsigned c = 0; c < sizeof(counts) / sizeof(counts[0]); c++) {
        void *x = array_new(dtype, counts[c]);
        draw("random_uniform", dtype, seed, x, counts[c]);
        for (uint64_t i = 0; i < counts[c]; i++) {
            check_close("random_uniform", i, value_at(dtype, x, i),
                        uniform_of(dtype, i, UNIFORM, seed), 0);
        }
        free(x);
    }
}
END_TEST

/* sqrt and log of 3 ulp, cos and sin of 4 ulp and of an angle that is off by 2 u 2 pi. */
START_TEST(test_normal)
{
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    long double u = unit_roundoff(dtype);
    void *x = array_new(dtype, COUNT);
    draw("random_normal", dtype, 7, x, COUNT);
    for (uint64_t i = 0; i < COUNT; i++) {
        long double length = sqrtl(-2 * logl(1 - uniform_of(dtype, i / 2 * 2, NORMAL, 7)));
        long double angle = 2 * (long double)M_PI * uniform_of(dtype, i / 2 * 2 + 1, NORMAL, 7);
        long double want = 3 + 0.5L * length * (i % 2 == 0 ? cosl(angle) : sinl(angle));
        check_close("random_normal", i, value_at(dtype, x, i), want, 60 * u * (3 + length));
    }
    free(x);
}
END_TEST

/* ---- properties, in any implementation ------------------------------------------------------ */

#define EVEN 131072u /* a library makes normal numbers in pairs */

/* The promised properties of a distribution. */
struct moments {
    const char *name;
    double mean, variance;
    double fourth;    /* the central moment, of which the variance's own spread follows */
    double low, high; /* low <= x < high; of the normal ones none is 12 deviations away */
};

static const struct moments promised[] = {
    {"random_uniform", 0.5, 1.0 / 12, 1.0 / 80, 0, 1},
    {"random_normal", 3, 0.25, 3 * 0.25 * 0.25, -3, 9},
};

/* Range, mean, variance and that neighbours know nothing of each other: within six deviations. */
START_TEST(test_moments)
{
    const struct moments *m = &promised[_i / 2];
    int dtype = _i % 2 == 0 ? DTYPE_F32 : DTYPE_F64;
    void *x = array_new(dtype, EVEN);
    long double sum = 0, squares = 0, pairs = 0, before = 0;
    draw(m->name, dtype, 11, x, EVEN);
    for (uint64_t i = 0; i < EVEN; i++) {
        long double v = value_at(dtype, x, i);
        if (!(v >= m->low && v < m->high)) {
            ck_abort_msg("%s: element %llu is %Lg", m->name, (unsigned long long)i, v);
        }
        v -= m->mean;
        sum += v;
        squares += v * v;
        pairs += v * before;
        before = v;
    }
    long double root = sqrtl(EVEN);
    check_close("mean", 0, sum / EVEN, 0, 6 * sqrtl(m->variance) / root);
    check_close("variance", 0, squares / EVEN, m->variance,
                6 * sqrtl(m->fourth - m->variance * m->variance) / root);
    check_close("covariance", 0, pairs / EVEN, 0, 6 * m->variance / root);
    free(x);
}
END_TEST

/* Numbers of one seed are unrelated across operations: the length of a pair of normal ones would
 * follow from a uniform one if both were made of the same words. Both have mean 1, deviation 1. */
START_TEST(test_streams)
{
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    void *uniform = array_new(dtype, EVEN), *normal = array_new(dtype, EVEN);
    long double sum = 0;
    draw("random_uniform", dtype, 13, uniform, EVEN);
    draw("random_normal", dtype, 13, normal, EVEN);
    for (uint64_t i = 0; i < EVEN; i += 2) {
        long double a = (value_at(dtype, normal, i) - 3) / 0.5L;
        long double b = (value_at(dtype, normal, i + 1) - 3) / 0.5L;
        sum += ((a * a + b * b) / 2 - 1) * (-logl(1 - value_at(dtype, uniform, i)) - 1);
    }
    const long double pairs = 0.5L * EVEN;
    check_close("correlation", 0, sum / pairs, 0, 6 / sqrtl(pairs));
    free(uniform);
    free(normal);
}
END_TEST

/* A seed gives the same numbers each time, another one others. */
START_TEST(test_seeds)
{
    const char *name = promised[_i / 2].name;
    int dtype = _i % 2 == 0 ? DTYPE_F32 : DTYPE_F64;
    size_t size = 1024 * dtype_size(dtype);
    void *x[3];
    for (unsigned i = 0; i < 3; i++) {
        x[i] = array_new(dtype, 1024);
        draw(name, dtype, i == 1 ? 8 : 7, x[i], 1024);
    }
    ck_assert_msg(memcmp(x[0], x[2], size) == 0, "%s: not the same twice", name);
    ck_assert_msg(memcmp(x[0], x[1], size) != 0, "%s: the seed does not matter", name);
    for (unsigned i = 0; i < 3; i++) {
        free(x[i]);
    }
}
END_TEST

TCase *checks_random(void)
{
    TCase *t = tcase_create("random");
    tcase_add_test(t, test_philox_reference);
    tcase_add_loop_test(t, test_moments, 0, 4);
    tcase_add_loop_test(t, test_seeds, 0, 4);
    tcase_add_loop_test(t, test_streams, 0, 2);
    if (runner_target.library == NULL) { /* a library has numbers of its own */
        tcase_add_loop_test(t, test_uniform, 0, 2);
        tcase_add_loop_test(t, test_normal, 0, 2);
    }
    return t;
}
