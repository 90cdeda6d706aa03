/* Normally distributed numbers by cuRAND's Philox generator. Each call restarts the sequence, so
 * that a seed always gives the same numbers; they are not those of the portable kernels.
 *
 * Uniform numbers come from the portable kernel: cuRAND's have another range, 0 < x <= 1, and 1
 * - x would round to 1 as well in f32. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/library/library_call.h"

#define PHILOX 161
#define ALIGN  16u /* bytes: a store may cover several numbers, but a slice begins anywhere */

#define ENTRIES(X)                                                                                 \
    X(CreateGenerator, (void **generator, int kind))                                               \
    X(DestroyGenerator, (void *generator))                                                         \
    X(SetStream, (void *generator, CUstream stream))                                               \
    X(SetPseudoRandomGeneratorSeed, (void *generator, unsigned long long seed))                    \
    X(SetGeneratorOffset, (void *generator, unsigned long long offset))                            \
    X(GenerateNormal, (void *generator, float *x, size_t n, float mean, float deviation))          \
    X(GenerateNormalDouble, (void *generator, double *x, size_t n, double mean, double deviation))

struct random {
#define X(name, parameters) int(*name) parameters;
    ENTRIES(X)
#undef X
};

static const struct toolkit_entry entries[] = {
#define X(name, parameters) {"curand" #name, offsetof(struct random, name)},
    ENTRIES(X)
#undef X
};
static const char *const files[] = {"libcurand.so.10", NULL};
static struct random curand;

/* Makes the generator of a stream, whose state is on the device. */
static int generator_make(CUstream stream, void **ret_generator, struct err *e)
{
    void *generator = NULL;
    int rc = cuda_library_check(&cuda_rand, curand.CreateGenerator(&generator, PHILOX),
                                "curandCreateGenerator", e);
    if (rc != 0) {
        return rc;
    }
    rc = cuda_library_check(&cuda_rand, curand.SetStream(generator, stream), "curandSetStream", e);
    if (rc != 0) {
        curand.DestroyGenerator(generator);
        return rc;
    }
    *ret_generator = generator;
    return 0;
}

/* random_normal(u64 seed, T mean, T deviation, out T x[n]), then n */
enum { SEED, MEAN, DEVIATION, ARRAY, COUNT, ARGS };

/* cuRAND makes numbers in pairs, so it serves only even counts. */
static int workspace(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e)
{
    uint64_t n = c->arg_count == ARGS ? cuda_call_u64(c, COUNT) : 0;
    if (n == 0 || n % 2 != 0) {
        return err_set(e, ERR_UNSUPPORTED, "cuRAND is not for this number of elements");
    }
    *ret_bytes = 0;
    int rc = s->random ? 0 : generator_make(s->stream, &s->random, e);
    if (rc != 0) {
        cuda_library_later(&cuda_rand); /* otherwise each job would try again */
    }
    return rc;
}

static int draw_f32(void *g, const struct backend_call *c, float *x, size_t n)
{
    float mean;
    float deviation;
    memcpy(&mean, cuda_call_value(c, MEAN), sizeof mean);
    memcpy(&deviation, cuda_call_value(c, DEVIATION), sizeof deviation);
    return curand.GenerateNormal(g, x, n, mean, deviation);
}

static int draw_f64(void *g, const struct backend_call *c, double *x, size_t n)
{
    double mean;
    double deviation;
    memcpy(&mean, cuda_call_value(c, MEAN), sizeof mean);
    memcpy(&deviation, cuda_call_value(c, DEVIATION), sizeof deviation);
    return curand.GenerateNormalDouble(g, x, n, mean, deviation);
}

/* random_uniform uses Philox, too, and counts from 0 as well. The same seed must give another
 * key here, because otherwise the numbers of both operations would come from the same words. */
#define KEY UINT64_C(0x6a09e667f3bcc909)

static int run(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace_at,
               uint64_t bytes, struct err *e)
{
    void *x = cuda_call_address(c, ARRAY);
    size_t n = (size_t)cuda_call_u64(c, COUNT);
    (void)workspace_at;
    (void)bytes;
    if ((uintptr_t)x % ALIGN != 0) {
        return err_set(e, ERR_UNSUPPORTED, "cuRAND does not support an array at this address");
    }
    int status = curand.SetPseudoRandomGeneratorSeed(s->random, cuda_call_u64(c, SEED) ^ KEY);
    status = status == 0 ? curand.SetGeneratorOffset(s->random, 0) : status;
    if (status == 0) {
        status =
            c->dtype == DTYPE_F64 ? draw_f64(s->random, c, x, n) : draw_f32(s->random, c, x, n);
    }
    return cuda_library_check(&cuda_rand, status, c->operation, e);
}

/* The first numbers of each type make the library load their kernels. */
static int prepare(struct backend_device *d, struct err *e)
{
    void *generator = NULL;
    void *x = (void *)(uintptr_t)d->scratch;
    int rc = generator_make(d->prepare_stream, &generator, e);
    if (rc != 0) {
        return rc;
    }
    int status = curand.GenerateNormal(generator, x, 256, 0, 1);
    status = status == 0 ? curand.GenerateNormalDouble(generator, x, 256, 0, 1) : status;
    curand.DestroyGenerator(generator); /* waits for its kernels */
    return cuda_library_check(&cuda_rand, status, "first numbers", e);
}

static void finish(struct backend_stream *s)
{
    if (s->random) {
        curand.DestroyGenerator(s->random);
    }
}

static const char *const kernels[] = {"random_normal_f32", NULL};
static const char *const operations[] = {"random_normal", NULL};
struct cuda_library cuda_rand = {.name = "curand",
                                 .files = files,
                                 .advice = "install cuRAND (Debian: libcurand10)",
                                 .entries = entries,
                                 .entry_count = sizeof entries / sizeof entries[0],
                                 .table = &curand,
                                 .kernels = kernels,
                                 .operations = operations,
                                 .workspace = workspace,
                                 .run = run,
                                 .prepare = prepare,
                                 .finish = finish};
