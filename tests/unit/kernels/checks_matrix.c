#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "checks.h"
#include "runner.h"

static const int all_types[] = {DTYPE_F32, DTYPE_F64, DTYPE_I32, DTYPE_U32};

static void check_transpose(int dtype, uint64_t h, uint64_t w)
{
    void *src = array_random(dtype, h * w, 0, 1e9), *dst = array_new(dtype, h * w);
    const uint64_t from[] = {h, w}, to[] = {w, h};
    const struct operand operands[] = {op_array(dtype, src, 2, from), op_array(dtype, dst, 2, to)};
    run_operation("transpose", operands, 2);
    for (uint64_t y = 0; y < h; y++) {
        for (uint64_t x = 0; x < w; x++) {
            check_close("transpose", y * w + x, value_at(dtype, dst, x * h + y),
                        value_at(dtype, src, y * w + x), 0);
        }
    }
    free(src);
    free(dst);
}

START_TEST(test_transpose)
{
    static const uint64_t sizes[][2] = {{0, 5},   {5, 0},   {1, 1},   {1, 100}, {100, 1},
                                        {15, 17}, {16, 16}, {17, 15}, {31, 97}, {257, 131}};
    int dtype = all_types[_i];
    random_seed(41);
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        check_transpose(dtype, sizes[s][0], sizes[s][1]);
    }
    check_transpose(dtype, 251, runner_target.size_max / 251);
}
END_TEST

struct product {
    int dtype;
    uint64_t m, k, n;
    void *a, *b, *c;
};

static void product_init(struct product *p, int dtype, const uint64_t size[3])
{
    *p = (struct product){.dtype = dtype, .m = size[0], .k = size[1], .n = size[2]};
    p->a = array_random(dtype, p->m * p->k, -1, 1);
    p->b = array_random(dtype, p->k * p->n, -1, 1);
    p->c = array_random(dtype, p->m * p->n, -1, 1);
}

static void product_finish(struct product *p)
{
    free(p->a);
    free(p->b);
    free(p->c);
}

/* k products and k - 1 additions one after the other: gamma_k sum |a b| (Higham, 3.5); three more
 * roundings where the result is scaled and added. */
static void product_check(const struct product *p, long double alpha, long double beta,
                          const void *before)
{
    long double u = unit_roundoff(p->dtype), gamma = (long double)p->k * u;
    gamma /= 1 - gamma;
    for (uint64_t y = 0; y < p->m; y++) {
        for (uint64_t x = 0; x < p->n; x++) {
            long double sum = 0, absolute = 0;
            for (uint64_t e = 0; e < p->k; e++) {
                long double v =
                    value_at(p->dtype, p->a, y * p->k + e) * value_at(p->dtype, p->b, e * p->n + x);
                sum += v;
                absolute += fabsl(v);
            }
            long double own = before != NULL ? value_at(p->dtype, before, y * p->n + x) : 0;
            long double bound =
                (gamma + 3 * u) * absolute * fabsl(alpha) + 3 * u * fabsl(beta * own);
            check_close("gemm", y * p->n + x, value_at(p->dtype, p->c, y * p->n + x),
                        alpha * sum + beta * own, bound);
        }
    }
}

static void check_gemm(int dtype, const uint64_t size[3])
{
    struct product p;
    product_init(&p, dtype, size);
    const uint64_t a[] = {p.m, p.k}, b[] = {p.k, p.n}, c[] = {p.m, p.n};
    const struct operand update[] = {op_scalar(dtype, 1.5), op_array(dtype, p.a, 2, a),
                                     op_array(dtype, p.b, 2, b), op_scalar(dtype, -0.75),
                                     op_array(dtype, p.c, 2, c)};
    const struct operand plain[] = {update[1], update[2], update[4]};
    void *before = array_new(dtype, p.m * p.n);
    memcpy(before, p.c, (size_t)(p.m * p.n) * dtype_size(dtype));
    run_operation("gemm_add", update, 5);
    product_check(&p, 1.5L, -0.75L, before);
    run_operation("gemm", plain, 3);
    product_check(&p, 1, 0, NULL);
    free(before);
    product_finish(&p);
}

START_TEST(test_gemm)
{
    static const uint64_t sizes[][3] = {{0, 3, 4},    {4, 3, 0},    {3, 0, 4},     {1, 1, 1},
                                        {16, 16, 16}, {15, 17, 16}, {17, 15, 31},  {1, 64, 1},
                                        {64, 1, 64},  {67, 53, 71}, {97, 101, 103}};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    random_seed(42);
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        check_gemm(dtype, sizes[s]);
    }
    if (runner_target.size_max > 1000000) {
        check_gemm(dtype, (const uint64_t[]){257, 311, 263});
    }
}
END_TEST

/* Each product is what gemm makes of its part. */
static void check_gemm_batched(int dtype, uint64_t l, const uint64_t size[3])
{
    struct product all;
    product_init(&all, dtype, (const uint64_t[]){l * size[0], size[1], size[2]});
    void *b = array_random(dtype, l * size[1] * size[2], -1, 1);
    const uint64_t a_dims[] = {l, size[0], size[1]}, b_dims[] = {l, size[1], size[2]},
                   c_dims[] = {l, size[0], size[2]};
    const struct operand operands[] = {op_array(dtype, all.a, 3, a_dims),
                                       op_array(dtype, b, 3, b_dims),
                                       op_array(dtype, all.c, 3, c_dims)};
    run_operation("gemm_batched", operands, 3);
    size_t element = dtype_size(dtype);
    for (uint64_t i = 0; i < l; i++) {
        struct product part = {.dtype = dtype, .m = size[0], .k = size[1], .n = size[2]};
        part.a = (char *)all.a + i * size[0] * size[1] * element;
        part.b = (char *)b + i * size[1] * size[2] * element;
        part.c = (char *)all.c + i * size[0] * size[2] * element;
        product_check(&part, 1, 0, NULL);
    }
    free(b);
    product_finish(&all);
}

START_TEST(test_gemm_batched)
{
    static const uint64_t sizes[][3] = {{0, 3, 4}, {3, 0, 4},    {1, 1, 1},
                                        {5, 7, 3}, {16, 16, 16}, {17, 33, 19}};
    int dtype = _i == 0 ? DTYPE_F32 : DTYPE_F64;
    random_seed(43);
    for (unsigned s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        for (uint64_t l = 0; l < 6; l += l + 1) {
            check_gemm_batched(dtype, l, sizes[s]);
        }
    }
}
END_TEST

TCase *checks_matrix(void)
{
    TCase *t = tcase_create("matrix");
    tcase_add_loop_test(t, test_transpose, 0, 4);
    tcase_add_loop_test(t, test_gemm, 0, 2);
    tcase_add_loop_test(t, test_gemm_batched, 0, 2);
    return t;
}
