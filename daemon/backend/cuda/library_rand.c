/* Random numbers by cuRAND's Philox generator. Each call begins its sequence anew, so that a seed
 * gives the same numbers each time; they are not those of the portable kernels. */
#include <stddef.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/library.h"

#define PHILOX 161

#define ENTRIES(X)                                                                                 \
    X(CreateGenerator, (void **generator, int kind))                                               \
    X(DestroyGenerator, (void *generator))                                                         \
    X(SetStream, (void *generator, CUstream stream))                                               \
    X(SetPseudoRandomGeneratorSeed, (void *generator, unsigned long long seed))                    \
    X(SetGeneratorOffset, (void *generator, unsigned long long offset))                            \
    X(GenerateUniform, (void *generator, float *x, size_t n))                                      \
    X(GenerateUniformDouble, (void *generator, double *x, size_t n))                               \
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
static struct cuda_library library = {
    .name = "curand", .files = files, .advice = "install cuRAND (Debian: libcurand10)"};

static int generator_make(struct backend_stream *s, struct err *e)
{
    void *generator = NULL;
    int rc = cuda_library_check(&library, curand.CreateGenerator(&generator, PHILOX),
                                "curandCreateGenerator", e);
    if (rc != 0) {
        return rc;
    }
    rc = cuda_library_check(&library, curand.SetStream(generator, s->stream), "curandSetStream", e);
    if (rc != 0) {
        curand.DestroyGenerator(generator);
        return rc;
    }
    s->random = generator;
    return 0;
}

/* The array is the last argument; the number of its elements follows. */
static unsigned array_of(const struct backend_call *c)
{
    return c->arg_count - 2;
}

/* Normal numbers come in pairs. */
static int workspace(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e)
{
    uint64_t n = c->arg_count > 2 ? cuda_call_u64(c, array_of(c) + 1) : 0;
    if (n == 0 || (n % 2 != 0 && strcmp(c->operation, "random_normal") == 0) ||
        !cuda_library_open(&library, entries, sizeof entries / sizeof entries[0], &curand)) {
        return err_set(e, ERR_UNSUPPORTED, "no cuRAND, or not for this number of elements");
    }
    *ret_bytes = 0;
    return s->random ? 0 : generator_make(s, e);
}

static int draw_f32(void *g, const struct backend_call *c, float *x, size_t n)
{
    float mean;
    float deviation;
    if (array_of(c) == 1) {
        return curand.GenerateUniform(g, x, n);
    }
    memcpy(&mean, cuda_call_value(c, 1), sizeof mean);
    memcpy(&deviation, cuda_call_value(c, 2), sizeof deviation);
    return curand.GenerateNormal(g, x, n, mean, deviation);
}

static int draw_f64(void *g, const struct backend_call *c, double *x, size_t n)
{
    double mean;
    double deviation;
    if (array_of(c) == 1) {
        return curand.GenerateUniformDouble(g, x, n);
    }
    memcpy(&mean, cuda_call_value(c, 1), sizeof mean);
    memcpy(&deviation, cuda_call_value(c, 2), sizeof deviation);
    return curand.GenerateNormalDouble(g, x, n, mean, deviation);
}

static int run(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace_at,
               uint64_t bytes, struct err *e)
{
    void *x = cuda_call_address(c, array_of(c));
    size_t n = (size_t)cuda_call_u64(c, array_of(c) + 1);
    (void)workspace_at;
    (void)bytes;
    int status = curand.SetPseudoRandomGeneratorSeed(s->random, cuda_call_u64(c, 0));
    status = status == 0 ? curand.SetGeneratorOffset(s->random, 0) : status;
    if (status == 0) {
        status =
            c->dtype == DTYPE_F64 ? draw_f64(s->random, c, x, n) : draw_f32(s->random, c, x, n);
    }
    return cuda_library_check(&library, status, c->operation, e);
}

static void finish(struct backend_stream *s)
{
    if (s->random) {
        curand.DestroyGenerator(s->random);
    }
}

static const struct cuda_served served[] = {
    {"random_uniform", workspace, run}, {"random_normal", workspace, run}, {NULL, NULL, NULL}};
const struct cuda_library_part cuda_rand = {.by = "curand", .served = served, .finish = finish};
