/* Products of matrices by cuBLAS. It counts columns first, and c = a b there is c' = b' a' here: so
 * the factors change places and nothing is transposed. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/library.h"

#define NO_TRANSPOSE 0
#define WORKSPACE    (UINT64_C(4) << 20)
#define WORKSPACE_HOPPER                                                                           \
    (UINT64_C(32) << 20) /* what cuBLAS asks for from compute capability 9.0 on */

#define GEMM(T)                                                                                    \
    (void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const T *alpha, const T *a,    \
     int64_t lda, const T *b, int64_t ldb, const T *beta, T *c, int64_t ldc)
#define GEMM_BATCHED(T)                                                                            \
    (void *handle, int ta, int tb, int64_t m, int64_t n, int64_t k, const T *alpha, const T *a,    \
     int64_t lda, long long step_a, const T *b, int64_t ldb, long long step_b, const T *beta,      \
     T *c, int64_t ldc, long long step_c, int64_t count)

#define ENTRIES(X)                                                                                 \
    X(Create_v2, (void **handle))                                                                  \
    X(Destroy_v2, (void *handle))                                                                  \
    X(SetStream_v2, (void *handle, CUstream stream))                                               \
    X(SetWorkspace_v2, (void *handle, void *memory, size_t bytes))                                 \
    X(Sgemm_v2_64, GEMM(float))                                                                    \
    X(Dgemm_v2_64, GEMM(double))                                                                   \
    X(SgemmStridedBatched_64, GEMM_BATCHED(float))                                                 \
    X(DgemmStridedBatched_64, GEMM_BATCHED(double))

struct blas {
#define X(name, parameters) int(*name) parameters;
    ENTRIES(X)
#undef X
};

static const struct toolkit_entry entries[] = {
#define X(name, parameters) {"cublas" #name, offsetof(struct blas, name)},
    ENTRIES(X)
#undef X
};
static const char *const files[] = {"libcublas.so.13", "libcublas.so.12", NULL};
static struct blas blas;
static struct cuda_library library = {
    .name = "cublas", .files = files, .advice = "install cuBLAS (Debian: libcublas12)"};

struct product {
    void *a, *b, *c;
    uint64_t count, m, k, n;
    union number {
        float f32;
        double f64;
    } alpha, beta; /* of the call's type */
};

static union number number_of(int dtype, double value)
{
    return dtype == DTYPE_F64 ? (union number){.f64 = value} : (union number){.f32 = (float)value};
}

/* A value of the call, wherever it lies. */
static union number number_at(const struct backend_call *c, unsigned arg)
{
    union number n = {.f64 = 0};
    memcpy(&n, cuda_call_value(c, arg), dtype_size(c->dtype));
    return n;
}

/* first_size: where the sizes begin, m first. */
static struct product product_of(const struct backend_call *c, unsigned first_array,
                                 unsigned step_c, unsigned first_size)
{
    return (struct product){.a = cuda_call_address(c, first_array),
                            .b = cuda_call_address(c, first_array + 1),
                            .c = cuda_call_address(c, first_array + step_c),
                            .count = 1,
                            .m = cuda_call_u64(c, first_size),
                            .k = cuda_call_u64(c, first_size + 1),
                            .n = cuda_call_u64(c, first_size + 2),
                            .alpha = number_of(c->dtype, 1),
                            .beta = number_of(c->dtype, 0)};
}

static struct product product_read(const struct backend_call *c)
{
    if (strcmp(c->operation, "gemm_add") == 0) {
        struct product p = product_of(c, 1, 3, 5);
        p.alpha = number_at(c, 0);
        p.beta = number_at(c, 3);
        return p;
    }
    bool batched = strcmp(c->operation, "gemm_batched") == 0;
    struct product p = product_of(c, 0, 2, batched ? 4 : 3);
    p.count = batched ? cuda_call_u64(c, 3) : 1;
    return p;
}

static int workspace(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e)
{
    struct product p = product_read(c);
    if (p.count == 0 || p.m == 0 || p.k == 0 || p.n == 0 ||
        !cuda_library_open(&library, entries, sizeof entries / sizeof entries[0], &blas)) {
        return err_set(e, ERR_UNSUPPORTED, "no cuBLAS, or nothing to do");
    }
    if (!s->blas) {
        void *handle = NULL;
        int rc = cuda_library_check(&library, blas.Create_v2(&handle), "cublasCreate", e);
        rc = rc == 0 ? cuda_library_check(&library, blas.SetStream_v2(handle, s->stream),
                                          "cublasSetStream", e)
                     : rc;
        if (rc != 0) {
            return rc;
        }
        s->blas = handle;
    }
    *ret_bytes = s->device->major >= 9 ? WORKSPACE_HOPPER : WORKSPACE;
    return 0;
}

static int multiply_f32(void *h, const struct product *p)
{
    int64_t m = (int64_t)p->m, k = (int64_t)p->k, n = (int64_t)p->n;
    if (p->count == 1) {
        return blas.Sgemm_v2_64(h, NO_TRANSPOSE, NO_TRANSPOSE, n, m, k, &p->alpha.f32, p->b, n,
                                p->a, k, &p->beta.f32, p->c, n);
    }
    return blas.SgemmStridedBatched_64(h, NO_TRANSPOSE, NO_TRANSPOSE, n, m, k, &p->alpha.f32, p->b,
                                       n, k * n, p->a, k, m * k, &p->beta.f32, p->c, n, m * n,
                                       (int64_t)p->count);
}

static int multiply_f64(void *h, const struct product *p)
{
    int64_t m = (int64_t)p->m, k = (int64_t)p->k, n = (int64_t)p->n;
    if (p->count == 1) {
        return blas.Dgemm_v2_64(h, NO_TRANSPOSE, NO_TRANSPOSE, n, m, k, &p->alpha.f64, p->b, n,
                                p->a, k, &p->beta.f64, p->c, n);
    }
    return blas.DgemmStridedBatched_64(h, NO_TRANSPOSE, NO_TRANSPOSE, n, m, k, &p->alpha.f64, p->b,
                                       n, k * n, p->a, k, m * k, &p->beta.f64, p->c, n, m * n,
                                       (int64_t)p->count);
}

static int run(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace_at,
               uint64_t bytes, struct err *e)
{
    struct product p = product_read(c);
    int status = blas.SetWorkspace_v2(s->blas, (void *)(uintptr_t)workspace_at, bytes);
    int rc = cuda_library_check(&library, status, "cublasSetWorkspace", e);
    if (rc != 0) {
        return rc;
    }
    status = c->dtype == DTYPE_F64 ? multiply_f64(s->blas, &p) : multiply_f32(s->blas, &p);
    return cuda_library_check(&library, status, c->operation, e);
}

static void finish(struct backend_stream *s)
{
    if (s->blas) {
        blas.Destroy_v2(s->blas);
    }
}

static const struct cuda_served served[] = {{"gemm", workspace, run},
                                            {"gemm_add", workspace, run},
                                            {"gemm_batched", workspace, run},
                                            {NULL, NULL, NULL}};
const struct cuda_library_part cuda_blas = {.by = "cublas", .served = served, .finish = finish};
