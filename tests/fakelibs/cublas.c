#include <stdbool.h>
#include <stdint.h>

#include "tests/fakelibs/fakelibs.h"

struct handle {
    CUstream stream;
    void *workspace;
    size_t bytes;
};

struct product {
    bool wide;
    int64_t m, n, k, lda, ldb, ldc, count;
    long long step_a, step_b, step_c;
    double alpha, beta;
    const void *a, *b;
    void *c;
};

static double get(const struct product *p, const void *at, int64_t i)
{
    return p->wide ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

/* Columns first, as cuBLAS has it. */
static void element(const struct product *p, int64_t l, int64_t row, int64_t column)
{
    double sum = 0;
    int64_t at = l * p->step_c + column * p->ldc + row;
    for (int64_t e = p->k; e-- > 0;) {
        sum += get(p, p->a, l * p->step_a + e * p->lda + row) *
               get(p, p->b, l * p->step_b + column * p->ldb + e);
    }
    sum = p->alpha * sum + (p->beta == 0 ? 0 : p->beta * get(p, p->c, at));
    if (p->wide) {
        ((double *)p->c)[at] = sum;
    } else {
        ((float *)p->c)[at] = (float)sum;
    }
}

static void multiply(const void *work)
{
    const struct product *p = work;
    for (int64_t l = 0; l < p->count; l++) {
        for (int64_t column = 0; column < p->n; column++) {
            for (int64_t row = 0; row < p->m; row++) {
                element(p, l, row, column);
            }
        }
    }
}

EXPORT int cublasCreate_v2(struct handle **handle);
int cublasCreate_v2(struct handle **handle)
{
    int code = scripted("cublas");
    if (code == 0) {
        *handle = calloc(1, sizeof **handle);
    }
    return code;
}

EXPORT int cublasDestroy_v2(struct handle *handle);
int cublasDestroy_v2(struct handle *handle)
{
    free(handle);
    return 0;
}

EXPORT int cublasSetStream_v2(struct handle *handle, CUstream stream);
int cublasSetStream_v2(struct handle *handle, CUstream stream)
{
    handle->stream = stream;
    handle->workspace = NULL; /* it has that of the new stream from now on, which is not ours */
    handle->bytes = 0;
    return 0;
}

EXPORT int cublasSetWorkspace_v2(struct handle *handle, void *memory, size_t bytes);
int cublasSetWorkspace_v2(struct handle *handle, void *memory, size_t bytes)
{
    handle->workspace = memory;
    handle->bytes = bytes;
    return memory && (uintptr_t)memory % 256 == 0 && bytes >= 1 << 20 ? 0 : 7;
}

static int enqueue(const struct handle *h, const struct product *p)
{
    return h->workspace ? on_stream(h->stream, multiply, p, sizeof *p) : 7;
}

#define GEMM(NAME, T, WIDE)                                                                        \
    EXPORT int NAME(struct handle *h, int ta, int tb, int64_t m, int64_t n, int64_t k,             \
                    const T *alpha, const T *a, int64_t lda, const T *b, int64_t ldb,              \
                    const T *beta, T *c, int64_t ldc);                                             \
    int NAME(struct handle *h, int ta, int tb, int64_t m, int64_t n, int64_t k, const T *alpha,    \
             const T *a, int64_t lda, const T *b, int64_t ldb, const T *beta, T *c, int64_t ldc)   \
    {                                                                                              \
        struct product p = {WIDE,          m, n, k, lda, ldb, ldc, 1, 0, 0, 0, (double)*alpha,     \
                            (double)*beta, a, b, c};                                               \
        return ta == 0 && tb == 0 ? enqueue(h, &p) : 7;                                            \
    }
#define GEMM_BATCHED(NAME, T, WIDE)                                                                \
    EXPORT int NAME(struct handle *h, int ta, int tb, int64_t m, int64_t n, int64_t k,             \
                    const T *alpha, const T *a, int64_t lda, long long step_a, const T *b,         \
                    int64_t ldb, long long step_b, const T *beta, T *c, int64_t ldc,               \
                    long long step_c, int64_t count);                                              \
    int NAME(struct handle *h, int ta, int tb, int64_t m, int64_t n, int64_t k, const T *alpha,    \
             const T *a, int64_t lda, long long step_a, const T *b, int64_t ldb, long long step_b, \
             const T *beta, T *c, int64_t ldc, long long step_c, int64_t count)                    \
    {                                                                                              \
        struct product p = {WIDE,          m,     n,      k,      lda,    ldb,                     \
                            ldc,           count, step_a, step_b, step_c, (double)*alpha,          \
                            (double)*beta, a,     b,      c};                                      \
        return ta == 0 && tb == 0 ? enqueue(h, &p) : 7;                                            \
    }

GEMM(cublasSgemm_v2_64, float, false)
GEMM(cublasDgemm_v2_64, double, true)
GEMM_BATCHED(cublasSgemmStridedBatched_64, float, false)
GEMM_BATCHED(cublasDgemmStridedBatched_64, double, true)
