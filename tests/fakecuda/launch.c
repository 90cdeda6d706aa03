#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

#define SM_THREADS   2048u
#define SM_BLOCKS    32u
#define SM_SHARED    233472u
#define SM_REGISTERS 65536u
#define BLOCK_OWN    1024u /* bytes that the device takes for each block */
#define STATIC_MAX   49152u

/* ---- occupancy ------------------------------------------------------------------------------- */

static unsigned least(unsigned a, unsigned b)
{
    return a < b ? a : b;
}

static unsigned blocks_at_once(const struct entry *e, unsigned block, size_t dynamic)
{
    if (block == 0 || block > e->max_threads || dynamic > e->max_dynamic) {
        return 0;
    }
    unsigned warps = (block + 31) / 32;
    unsigned registers = (e->registers + 7) / 8 * 8 * 32 * warps;
    uint64_t shared = dynamic + e->shared + BLOCK_OWN;
    unsigned n = least(SM_BLOCKS, SM_THREADS / (warps * 32));
    n = registers ? least(n, SM_REGISTERS / registers) : n;
    return least(n, (unsigned)(SM_SHARED / shared));
}

static CUresult active_blocks(int *ret, CUfunction handle, int block, size_t dynamic)
{
    const struct entry *e = entry_of(handle);
    if (!e || block <= 0) {
        return e ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    *ret = (int)blocks_at_once(e, (unsigned)block, dynamic);
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, CUfunction func, int block,
                                                     size_t dynamic)
{
    CUresult r = call_enter("cuOccupancyMaxActiveBlocksPerMultiprocessor", NEED_CONTEXT);
    return call_leave(r ? r : active_blocks(blocks, func, block, dynamic));
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, CUfunction func,
                                                              int block, size_t dynamic,
                                                              unsigned int flags)
{
    CUresult r = call_enter("cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags", NEED_CONTEXT);
    (void)flags;
    return call_leave(r ? r : active_blocks(blocks, func, block, dynamic));
}

static CUresult potential(int *min_grid, int *ret_block, CUfunction handle,
                          CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit)
{
    const struct entry *e = entry_of(handle);
    unsigned best = 0, best_block = 0, best_blocks = 0;
    if (!e) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    unsigned most = least(e->max_threads, limit > 0 ? (unsigned)limit : 1024);
    for (unsigned block = (most + 31) / 32 * 32; block >= 32; block -= 32) {
        unsigned threads = least(block, most);
        size_t shared = dynamic_of ? dynamic_of((int)threads) : dynamic;
        unsigned n = blocks_at_once(e, threads, shared);
        if (n * threads > best) {
            best = n * threads;
            best_block = threads;
            best_blocks = n;
        }
    }
    *min_grid = (int)(best_blocks * 132);
    *ret_block = (int)best_block;
    return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxPotentialBlockSize(int *min_grid, int *block, CUfunction func,
                                          CUoccupancyB2DSize dynamic_of, size_t dynamic, int limit)
{
    CUresult r = call_enter("cuOccupancyMaxPotentialBlockSize", NEED_CONTEXT);
    return call_leave(r ? r : potential(min_grid, block, func, dynamic_of, dynamic, limit));
}

CUresult cuOccupancyMaxPotentialBlockSizeWithFlags(int *min_grid, int *block, CUfunction func,
                                                   CUoccupancyB2DSize dynamic_of, size_t dynamic,
                                                   int limit, unsigned int flags)
{
    CUresult r = call_enter("cuOccupancyMaxPotentialBlockSizeWithFlags", NEED_CONTEXT);
    (void)flags;
    return call_leave(r ? r : potential(min_grid, block, func, dynamic_of, dynamic, limit));
}

CUresult cuOccupancyAvailableDynamicSMemPerBlock(size_t *size, CUfunction func, int blocks,
                                                 int block)
{
    CUresult r = call_enter("cuOccupancyAvailableDynamicSMemPerBlock", NEED_CONTEXT);
    const struct entry *e = r ? NULL : entry_of(func);
    if (e && blocks > 0 && block > 0) {
        size_t each = SM_SHARED / (unsigned)blocks;
        *size = each > e->shared + BLOCK_OWN ? each - e->shared - BLOCK_OWN : 0;
    } else if (r == CUDA_SUCCESS) {
        r = e ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE;
    }
    return call_leave(r);
}

/* ---- launches -------------------------------------------------------------------------------- */

struct launch_op {
    struct op op;
    struct grid grid;
    struct entry *entry; /* its module is not unloaded before the launch is done */
    kernel_fn run;
    char *name;
    unsigned count;
    void *params[PARAMS_MAX];
    uint8_t blob[];
};

static CUresult launch_run(struct op *op)
{
    struct launch_op *l = (struct launch_op *)op;
    return l->run ? l->run(l->name, &l->grid, l->params, l->count) : CUDA_SUCCESS;
}

static void launch_finish(struct op *op, bool done)
{
    struct launch_op *l = (struct launch_op *)op;
    (void)done;
    l->entry->running--;
    free(l->name);
}

struct request {
    struct grid grid;
    size_t dynamic;
    CUstream stream;
    void **params, **extra;
};

static CUresult grid_check(const struct entry *e, const struct request *q)
{
    static const unsigned most_block[3] = {1024, 1024, 64};
    static const unsigned most_grid[3] = {2147483647, 65535, 65535};
    uint64_t threads = 1;
    for (int i = 0; i < 3; i++) {
        unsigned b = q->grid.block[i], g = q->grid.grid[i];
        if (b == 0 || b > most_block[i] || g == 0 || g > most_grid[i]) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        threads *= b;
    }
    if (threads > 1024) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (threads > e->max_threads) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t registers = threads * e->registers;
    if (registers > SM_REGISTERS) {
        return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    }
    return q->dynamic > e->max_dynamic ||
                   (e->max_dynamic <= STATIC_MAX && q->dynamic + e->shared > STATIC_MAX)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}

/* The buffer of `extra`; NULL: none. */
static const uint8_t *extra_buffer(void **extra, size_t *ret_size)
{
    const uint8_t *buffer = NULL;
    for (; extra && *extra != CU_LAUNCH_PARAM_END; extra += 2) {
        if (extra[0] == CU_LAUNCH_PARAM_BUFFER_POINTER) {
            buffer = extra[1];
        } else if (extra[0] == CU_LAUNCH_PARAM_BUFFER_SIZE) {
            *ret_size = *(const size_t *)extra[1];
        }
    }
    return buffer;
}

static CUresult params_copy(struct launch_op *l, const struct entry *e, const struct request *q)
{
    size_t size = 0;
    const uint8_t *buffer = q->params ? NULL : extra_buffer(q->extra, &size);
    if (e->param_count > 0 && !q->params && (!buffer || size < e->param_bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (unsigned i = 0; i < e->param_count; i++) {
        struct param p = e->param[i];
        if (q->params && !q->params[i]) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        memcpy(l->blob + p.offset, q->params ? q->params[i] : buffer + p.offset, p.size);
        l->params[i] = l->blob + p.offset;
    }
    l->count = e->param_count;
    return CUDA_SUCCESS;
}

/* The memory that the parameters point at. A pointer to no memory is found when the kernel runs, as
 * on a device. */
static void spans_add(struct launch_op *l, const struct entry *e)
{
    uint64_t pointers = kernel_pointers(e->name);
    for (unsigned i = 0; i < e->param_count; i++) {
        uint64_t value = 0;
        bool known = pointers != ~UINT64_C(0);
        if (e->param[i].size != sizeof value || (known && (pointers >> i & 1u) == 0)) {
            continue;
        }
        memcpy(&value, l->params[i], sizeof value);
        const struct range *r = value ? range_at(value) : NULL;
        if (r) {
            op_span(&l->op, r->base, r->size, false, false);
        } else if (known && value) {
            op_span(&l->op, value, 1, false, false);
        }
    }
}

/* Rules for one kernel have precedence over those for the call. */
static CUresult entry_script(const char *name, const struct context *c)
{
    char call[NAME_SIZE];
    size_t size = strlen(name);
    if (size > sizeof call - 8) {
        return CUDA_SUCCESS;
    }
    memcpy(call, "entry.", 6);
    memcpy(call + 6, name, size + 1);
    struct action a = script_next(call, c->device->index);
    if (a.act == ACT_CODE) {
        return a.code;
    }
    if (a.act == ACT_BLOCK) {
        block_forever();
    }
    if (a.act == ACT_LOST) {
        device_lose(c->device);
        return CUDA_ERROR_UNKNOWN;
    }
    if (a.act != ACT_NONE) {
        call_set_action(a);
    }
    return CUDA_SUCCESS;
}

static CUresult prepare(struct entry *e, const struct request *q, struct launch_op **ret)
{
    CUresult r = grid_check(e, q);
    r = r ? r : entry_script(e->name, context_current());
    kernel_fn run = kernel_find(e->name, e->param_count);
    if (r == CUDA_SUCCESS && !run && !fake.script.noop) {
        note("kernel %s is none that the double can run", e->name);
        r = CUDA_ERROR_NOT_SUPPORTED;
    }
    if (r != CUDA_SUCCESS) {
        return r;
    }
    struct launch_op *l = op_new(sizeof *l + e->param_bytes, launch_run);
    r = params_copy(l, e, q);
    if (r != CUDA_SUCCESS) {
        free(l);
        return r;
    }
    l->op.finish = launch_finish;
    l->op.kernel = true;
    l->grid = q->grid;
    l->entry = e;
    l->run = run;
    l->name = strdup(e->name);
    if (!l->name) {
        abort();
    }
    spans_add(l, e);
    *ret = l;
    return CUDA_SUCCESS;
}

static CUresult launch(CUfunction handle, const struct request *q)
{
    CUresult r = CUDA_SUCCESS;
    kernels_put_out();
    struct entry *e = entry_of(handle);
    struct stream *s = e ? stream_of(q->stream, &r) : NULL;
    struct launch_op *l = NULL;
    if (!e || !s) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!e->module->library && e->module->object.context != s->object.context) {
        misuse("%s: kernel %s is of another context than the stream", call_name(), e->name);
        return CUDA_ERROR_INVALID_HANDLE;
    }
    r = prepare(e, q, &l);
    if (r == CUDA_SUCCESS) {
        e->running++;
        op_enqueue(s, &l->op);
    }
    return r;
}

CUresult cuLaunchKernel(CUfunction f, unsigned int gx, unsigned int gy, unsigned int gz,
                        unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
                        CUstream stream, void **params, void **extra)
{
    const struct request q = {.grid = {{gx, gy, gz}, {bx, by, bz}},
                              .dynamic = shared,
                              .stream = stream,
                              .params = params,
                              .extra = extra};
    CUresult r = call_enter("cuLaunchKernel", NEED_CONTEXT);
    return call_leave(r ? r : launch(f, &q));
}

CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction f, void **params, void **extra)
{
    CUresult r = call_enter("cuLaunchKernelEx", NEED_CONTEXT);
    if (r == CUDA_SUCCESS && !c) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    if (r != CUDA_SUCCESS) {
        return call_leave(r);
    }
    const struct request q = {.grid = {{c->gridDimX, c->gridDimY, c->gridDimZ},
                                       {c->blockDimX, c->blockDimY, c->blockDimZ}},
                              .dynamic = c->sharedMemBytes,
                              .stream = c->hStream,
                              .params = params,
                              .extra = extra};
    return call_leave(launch(f, &q));
}
