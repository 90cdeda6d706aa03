/* Sorting, prefix sums and reductions by CUB, from a library of gpud's own that is built if
 * there is an nvcc (kernels/cub.cu). */
#include <stddef.h>
#include <string.h>

#include "common/shape.h"
#include "daemon/backend/cuda/library/library_call.h"
#include "kernels/cub.h"

struct cub {
    int (*run)(const struct gpud_cub_call *call, void *workspace, size_t *bytes, void *stream);
};

static const struct toolkit_entry entries[] = {{"gpud_cub_run", offsetof(struct cub, run)}};
static const char *const files[] = {"libgpud-cub.so", NULL};
static struct cub cub;

static const char *const operations[] = {[GPUD_CUB_SORT] = "sort",
                                         [GPUD_CUB_SUM] = "reduce_sum",
                                         [GPUD_CUB_MIN] = "reduce_min",
                                         [GPUD_CUB_MAX] = "reduce_max",
                                         [GPUD_CUB_SCAN_INCLUSIVE] = "scan_inclusive",
                                         [GPUD_CUB_SCAN_EXCLUSIVE] = "scan_exclusive",
                                         NULL};
#define OPERATIONS (sizeof operations / sizeof operations[0] - 1)

/* The signatures are sort(inout keys[n]), and (in x[n], out y) for the others. */
static struct gpud_cub_call call_of(const struct backend_call *c)
{
    struct gpud_cub_call call = {.dtype = c->dtype};
    /* the operation is in the table */
    while (strcmp(operations[call.operation], c->operation) != 0) {
        call.operation++;
    }
    bool sort = call.operation == GPUD_CUB_SORT;
    call.dtype = sort ? DTYPE_U32 : c->dtype;
    call.in = cuda_call_address(c, 0);
    call.out = cuda_call_address(c, sort ? 0 : 1);
    call.count = cuda_call_u64(c, sort ? 1 : 2);
    return call;
}

/* Could the result vary? CUB adds the results of groups in the order in which they are ready, so
 * a prefix sum with rounding may differ from run to run. A job that runs twice must give the
 * same result. */
static bool varies(const struct gpud_cub_call *call)
{
    bool scan =
        call->operation == GPUD_CUB_SCAN_INCLUSIVE || call->operation == GPUD_CUB_SCAN_EXCLUSIVE;
    return scan && (call->dtype == DTYPE_F32 || call->dtype == DTYPE_F64);
}

static int workspace(struct backend_stream *s, const struct backend_call *c, uint64_t *ret_bytes,
                     struct err *e)
{
    struct gpud_cub_call call = call_of(c);
    size_t bytes = 0;
    if (varies(&call)) {
        return err_set(e, ERR_UNSUPPORTED, "%s by CUB is for integers", c->operation);
    }
    if (call.count == 0) {
        return err_set(e, ERR_UNSUPPORTED, "nothing to do");
    }
    int rc =
        cuda_library_check(&cuda_cub, cub.run(&call, NULL, &bytes, s->stream), c->operation, e);
    if (rc == 0) {
        *ret_bytes = bytes;
    }
    return rc;
}

static int run(struct backend_stream *s, const struct backend_call *c, CUdeviceptr workspace_at,
               uint64_t bytes, struct err *e)
{
    struct gpud_cub_call call = call_of(c);
    size_t size = (size_t)bytes;
    int status = cub.run(&call, (void *)(uintptr_t)workspace_at, &size, s->stream);
    return cuda_library_check(&cuda_cub, status, c->operation, e);
}

/* Runs an operation for a type and a count. Few elements need one group, many need other
 * kernels. Scratch contains input, output and workspace. */
static int first_call(struct backend_device *d, int operation, int dtype, uint64_t count)
{
    struct gpud_cub_call call = {.operation = operation, .dtype = dtype, .count = count};
    size_t bytes = 0;
    call.in = (void *)(uintptr_t)d->scratch;
    call.out = (void *)(uintptr_t)(d->scratch + CUDA_LIBRARY_SCRATCH / 2);
    if (varies(&call)) {
        return 0;
    }
    int status = cub.run(&call, NULL, &bytes, d->prepare_stream);
    return status == 0 && bytes <= CUDA_LIBRARY_SCRATCH
               ? cub.run(&call, (void *)(uintptr_t)(d->scratch + CUDA_LIBRARY_SCRATCH), &bytes,
                         d->prepare_stream)
               : status;
}

static int prepare(struct backend_device *d, struct err *e)
{
    enum { FEW = 256, MANY = 1 << 16 }; /* many f64 fill half of the scratch */
    static const int types[] = {DTYPE_U32, DTYPE_I32, DTYPE_F32, DTYPE_F64};
    int status = 0;
    for (size_t i = 0; i < 4 * OPERATIONS && status == 0; i++) {
        status = first_call(d, (int)(i / 4), types[i % 4], FEW);
        status = status == 0 ? first_call(d, (int)(i / 4), types[i % 4], MANY) : status;
    }
    return cuda_library_check(&cuda_cub, status, "a first call", e);
}

static const char *const kernels[] = {"sort_count", "reduce_sum_part_f32",
                                      "scan_block_inclusive_f32", NULL};
struct cuda_library cuda_cub = {.name = "cub",
                                .files = files,
                                .advice = "build gpud with nvcc and GPUD_CUDA_ARCHS=all",
                                .entries = entries,
                                .entry_count = sizeof entries / sizeof entries[0],
                                .table = &cub,
                                .kernels = kernels,
                                .operations = operations,
                                .workspace = workspace,
                                .run = run,
                                .prepare = prepare};
