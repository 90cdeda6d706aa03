/* Operations whose results are exact: histogram and sort. */
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "runner.h"

static const int types[] = {DTYPE_U32, DTYPE_I32, DTYPE_U8};
static const uint64_t bin_counts[] = {1, 10, 256, 1024, 1025, 5000};

static void check_histogram(int dtype, uint64_t n, uint64_t bins)
{
    /* some values have no bin: beyond the last, and negative ones */
    void *x = array_random(dtype, n, dtype == DTYPE_I32 ? -20 : 0,
                           dtype == DTYPE_U8 ? 256 : (double)bins * 1.1 + 1);
    uint32_t *counts = array_new(DTYPE_U32, bins);
    uint32_t *expected = calloc(bins, sizeof(*expected));
    const struct operand operands[] = {op_vector(dtype, x, n), op_vector(DTYPE_U32, counts, bins)};
    ck_assert_ptr_nonnull(expected);
    for (uint64_t i = 0; i < n; i++) {
        long double v = value_at(dtype, x, i);
        if (v >= 0 && v < (long double)bins) {
            expected[(uint64_t)v]++;
        }
    }
    run_operation("histogram", operands, 2);
    for (uint64_t b = 0; b < bins; b++) {
        ck_assert_uint_eq(counts[b], expected[b]);
    }
    free(x);
    free(counts);
    free(expected);
}

START_TEST(test_histogram)
{
    random_seed(31);
    for (unsigned s = 0; s < size_count(); s++) {
        for (unsigned b = 0; b < 6; b++) {
            check_histogram(types[_i], size_at(s), bin_counts[b]);
        }
    }
}
END_TEST

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

enum { KEYS_RANDOM, KEYS_FEW, KEYS_DESCENDING, KEYS_ENDS, KEYS_KINDS };

static uint32_t key_of(int kind, uint64_t i)
{
    switch (kind) {
    case KEYS_FEW:
        return (uint32_t)(random_u64() % 3) << 30;
    case KEYS_DESCENDING:
        return UINT32_MAX - (uint32_t)i;
    case KEYS_ENDS:
        return random_u64() % 2 == 0 ? 0 : UINT32_MAX;
    default:
        return (uint32_t)random_u64();
    }
}

START_TEST(test_sort)
{
    random_seed(32);
    for (unsigned s = 0; s < size_count(); s++) {
        uint64_t n = size_at(s);
        if (n > 100000 && _i != KEYS_RANDOM) {
            continue;
        }
        uint32_t *keys = array_new(DTYPE_U32, n), *expected = array_new(DTYPE_U32, n);
        for (uint64_t i = 0; i < n; i++) {
            keys[i] = expected[i] = key_of(_i, i);
        }
        const struct operand operands[] = {op_vector(DTYPE_U32, keys, n)};
        qsort(expected, n, sizeof(*expected), compare);
        run_operation("sort", operands, 1);
        ck_assert_msg(memcmp(keys, expected, n * sizeof(*keys)) == 0, "%s: %llu keys unsorted",
                      runner_target.name, (unsigned long long)n);
        free(keys);
        free(expected);
    }
}
END_TEST

TCase *checks_integer(void)
{
    TCase *t = tcase_create("integer");
    tcase_add_loop_test(t, test_histogram, 0, 3);
    tcase_add_loop_test(t, test_sort, 0, KEYS_KINDS);
    return t;
}
