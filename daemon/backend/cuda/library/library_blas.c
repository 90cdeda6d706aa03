/* Products of matrices by cuBLAS. cuBLAS stores matrices by columns, so our c = a b is its c' =
 * b' a': the factors change places, and nothing is transposed. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/library/library_call.h"

#define NO_TRANSPOSE 0
#define WORKSPACE    (UINT64_C(4) << 20)
#define WORKSPACE_HOPPER                                                                           \
    (UINT64_C(32) << 20) /* what cuBLAS recommends from compute capability 9.0 on */

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

/* A value of the call, which may not be aligned. */
static union number number_at(const struct backend_call *c, unsigned arg)
{
    union number n = {.f64 = 0};
    memcpy(&n, cuda_call_value(c, arg), dtype_size(c->dtype));
    return n;
}

/* cublasDgemm (13.0) reads c, and its NaNs, when beta is -0. */
static union number without_sign_of_zero(int dtype, union number n)
{
    return dtype == DTYPE_F64 ? (union number){.f64 = n.f64 + 0.0}
                              : (union number){.f32 = n.f32 + 0.0f};
}

/* first_size: index of the first of the sizes m, k, n. */
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
        p.beta = without_sign_of_zero(c->dtype, number_at(c, 3));
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
    if (p.count == 0 || p.m == 0 || p.k == 0 || p.n == 0) {
        return err_set(e, ERR_UNSUPPORTED, "nothing to do");
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

/* One handle serves all streams, because all calls come from one thread. Setting its stream
 * resets its workspace, so the workspace is set afterwards. */
static int place(void *handle, CUstream stream, CUdeviceptr workspace_at, uint64_t bytes,
                 struct err *e)
{
    int rc =
        cuda_library_check(&cuda_blas, blas.SetStream_v2(handle, stream), "cublasSetStream", e);
    if (rc != 0) {
        return rc;
    }
    int status = blas.SetWorkspace_v2(handle, (void *)(uintptr_t)workspace_at, bytes);
    return cuda_library_check(&cuda_blas, status, "cublasSetWorkspace", e);
}

static int run(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace_at,
               uint64_t bytes, struct err *e)
{
    void *handle = s->device->blas;
    struct product p = product_read(c);
    int rc = place(handle, s->stream, workspace_at, bytes, e);
    if (rc != 0) {
        return rc;
    }
    int status = c->dtype == DTYPE_F64 ? multiply_f64(handle, &p) : multiply_f32(handle, &p);
    return cuda_library_check(&cuda_blas, status, c->operation, e);
}

/* One product for each type, with sizes that no special case serves. */
static int first_products(struct backend_device *d, struct err *e)
{
    enum { SIDE = 64, BYTES = SIDE * SIDE * sizeof(double) };
    void *at[3];
    for (size_t i = 0; i < 3; i++) {
        at[i] = (void *)(uintptr_t)(d->scratch + i * BYTES);
    }
    struct product p = {
        .a = at[0], .b = at[1], .c = at[2], .count = 1, .m = SIDE, .k = SIDE, .n = SIDE};
    int rc = place(d->blas, d->prepare_stream, d->scratch + CUDA_LIBRARY_SCRATCH,
                   CUDA_LIBRARY_SCRATCH, e);
    if (rc != 0) {
        return rc;
    }
    p.alpha = number_of(DTYPE_F32, 1);
    int status = multiply_f32(d->blas, &p);
    p.alpha = number_of(DTYPE_F64, 1);
    status = status == 0 ? multiply_f64(d->blas, &p) : status;
    return cuda_library_check(&cuda_blas, status, "a first product", e);
}

static int prepare(struct backend_device *d, struct err *e)
{
    void *handle = d->blas; /* set if only the products failed before */
    int rc =
        handle ? 0 : cuda_library_check(&cuda_blas, blas.Create_v2(&handle), "cublasCreate", e);
    if (rc != 0) {
        return rc;
    }
    d->blas = handle;
    return first_products(d, e);
}

static void close_device(struct backend_device *d)
{
    if (d->blas) {
        blas.Destroy_v2(d->blas);
    }
}

static const char *const kernels[] = {"gemm_f32", NULL};
static const char *const operations[] = {"gemm", "gemm_add", "gemm_batched", NULL};
struct cuda_library cuda_blas = {.name = "cublas",
                                 .files = files,
                                 .advice = "install cuBLAS (Debian: libcublas12)",
                                 .entries = entries,
                                 .entry_count = sizeof entries / sizeof entries[0],
                                 .table = &blas,
                                 .kernels = kernels,
                                 .operations = operations,
                                 .workspace = workspace,
                                 .run = run,
                                 .prepare = prepare,
                                 .close = close_device};
