#include <stdlib.h>
#include <string.h>

#include "tests/fakecuda/fake.h"

#define STAGED_AT_ONCE 65536u /* bytes of a pageable source: no more are set aside in the call */

struct piece {
    uint64_t dst, src, size;
};

/* One copy of one or several pieces. */
struct copy_op {
    struct op op;
    void *staged; /* pageable source, read before the call returned */
    bool nowhere; /* a source is no address of the device's */
    unsigned count;
    struct piece piece[];
};

static CUresult copy_run(struct op *op)
{
    const struct copy_op *c = (const struct copy_op *)op;
    if (c->nowhere) {
        return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    for (unsigned i = c->count; i-- > 0;) {
        memmove((void *)(uintptr_t)c->piece[i].dst, (const void *)(uintptr_t)c->piece[i].src,
                c->piece[i].size);
    }
    return CUDA_SUCCESS;
}

static void copy_finish(struct op *op, bool done)
{
    (void)done;
    free(((struct copy_op *)op)->staged);
}

/* ---- checks ---------------------------------------------------------------------------------- */

enum side { SIDE_DEVICE, SIDE_HOST, SIDE_ANY };

/* What the driver sees when a copy is enqueued. `ret_pageable`: it knows nothing of the memory. */
static CUresult side_check(uint64_t base, uint64_t size, bool write, enum side side,
                           bool *ret_pageable)
{
    const struct range *r = range_overlap(base, size);
    *ret_pageable = !r;
    if (!r && side != SIDE_DEVICE && base != 0) {
        return CUDA_SUCCESS;
    }
    if (!r || base < r->base) {
        misuse("%s: %#llx is no device memory", call_name(), (unsigned long long)base);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (r->kind == RANGE_REGISTERED && size > r->base + r->size - base) {
        misuse("%s: %llu bytes at %#llx reach over the end of a registration", call_name(),
               (unsigned long long)size, (unsigned long long)base);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (base + size < base || !memory_usable(NULL, base, size, write)) {
        misuse("%s: %llu bytes at %#llx are not all memory that may be %s", call_name(),
               (unsigned long long)size, (unsigned long long)base, write ? "written" : "read");
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

struct request {
    enum side to, from;
    bool wait; /* not one of the Async calls */
};

/* For a pageable source, which the call itself sets aside: a large one when all that came before it
 * in the stream is over. */
static CUresult staging_wait(struct stream *s, uint64_t size)
{
    if (size <= STAGED_AT_ONCE && !fake.script.pageable_waits) {
        return CUDA_SUCCESS;
    }
    note("%s: the source is not pinned, so the call waits", call_name());
    return stream_wait(s, s->enqueued);
}

static CUresult copy(const struct piece *p, struct request q, CUstream stream)
{
    CUresult r = CUDA_SUCCESS;
    bool loose_dst = false, loose_src = false;
    struct stream *s = stream_of(stream, &r);
    if (!s || p->size == 0) {
        return r;
    }
    r = side_check(p->dst, p->size, true, q.to, &loose_dst);
    r = r ? r : side_check(p->src, p->size, false, q.from, &loose_src);
    r = r || !loose_src || q.wait ? r : staging_wait(s, p->size);
    if (r != CUDA_SUCCESS) {
        return r;
    }
    struct copy_op *c = op_new(sizeof *c + sizeof *p, copy_run);
    c->op.finish = copy_finish;
    c->op.copy = true;
    c->op.cost_bytes = p->size;
    c->count = 1;
    c->piece[0] = *p;
    if (loose_src && !q.wait) { /* the driver stages it: the source may change after the call */
        c->staged = malloc(p->size);
        if (!c->staged) {
            abort();
        }
        memcpy(c->staged, (const void *)(uintptr_t)p->src, p->size);
        c->piece[0].src = (uint64_t)(uintptr_t)c->staged;
    } else {
        op_span(&c->op, p->src, p->size, false, loose_src);
    }
    op_span(&c->op, p->dst, p->size, true, loose_dst);
    op_enqueue(s, &c->op);
    if (loose_dst && !q.wait) {
        note("%s: the destination is not pinned, so the call waits", call_name());
    }
    return loose_dst || q.wait ? stream_wait(s, s->enqueued) : CUDA_SUCCESS;
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const struct request h2d = {SIDE_DEVICE, SIDE_HOST, false};
static const struct request d2h = {SIDE_HOST, SIDE_DEVICE, false};
static const struct request d2d = {SIDE_DEVICE, SIDE_DEVICE, false};
static const struct request any = {SIDE_ANY, SIDE_ANY, false};

static CUresult call(const char *name, uint64_t dst, uint64_t src, uint64_t size, struct request q,
                     CUstream stream)
{
    const struct piece p = {dst, src, size};
    CUresult r = call_enter(name, NEED_CONTEXT);
    return call_leave(r ? r : copy(&p, q, stream));
}

static struct request waiting(struct request q)
{
    q.wait = true;
    return q;
}

static uint64_t address(const void *p)
{
    return (uint64_t)(uintptr_t)p;
}

CUresult cuMemcpyHtoDAsync(CUdeviceptr dst, const void *src, size_t size, CUstream stream)
{
    return call("cuMemcpyHtoDAsync", dst, address(src), size, h2d, stream);
}

CUresult cuMemcpyDtoHAsync(void *dst, CUdeviceptr src, size_t size, CUstream stream)
{
    return call("cuMemcpyDtoHAsync", address(dst), src, size, d2h, stream);
}

CUresult cuMemcpyDtoDAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    return call("cuMemcpyDtoDAsync", dst, src, size, d2d, stream);
}

CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t size, CUstream stream)
{
    return call("cuMemcpyAsync", dst, src, size, any, stream);
}

CUresult cuMemcpyHtoD(CUdeviceptr dst, const void *src, size_t size)
{
    return call("cuMemcpyHtoD", dst, address(src), size, waiting(h2d), NULL);
}

CUresult cuMemcpyDtoH(void *dst, CUdeviceptr src, size_t size)
{
    return call("cuMemcpyDtoH", address(dst), src, size, waiting(d2h), NULL);
}

CUresult cuMemcpyDtoD(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
    return call("cuMemcpyDtoD", dst, src, size, d2d, NULL);
}

CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t size)
{
    return call("cuMemcpy", dst, src, size, waiting(any), NULL);
}

static CUresult peer(const char *name, const struct piece *p, CUcontext to, CUcontext from,
                     bool wait, CUstream stream)
{
    CUresult r = call_enter(name, NEED_CONTEXT);
    if (r == CUDA_SUCCESS && (!object_get(to, KIND_CONTEXT) || !object_get(from, KIND_CONTEXT))) {
        r = CUDA_ERROR_INVALID_CONTEXT;
    }
    return call_leave(r ? r : copy(p, wait ? waiting(d2d) : d2d, stream));
}

CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from,
                           size_t size, CUstream stream)
{
    const struct piece p = {dst, src, size};
    return peer("cuMemcpyPeerAsync", &p, to, from, false, stream);
}

CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext to, CUdeviceptr src, CUcontext from, size_t size)
{
    const struct piece p = {dst, src, size};
    return peer("cuMemcpyPeer", &p, to, from, true, NULL);
}

/* ---- several at once ------------------------------------------------------------------------- */

/* A source of a batch that the device cannot reach when the stream comes to it: what happens then
 * is the worst that may. Pageable memory is for the orders that let the driver read it before. */
static bool unreachable(uint64_t src, bool pageable, bool in_order)
{
    const struct range *from = range_at(src);
    if (!fake.script.host_pointers && from && from->kind == RANGE_REGISTERED) {
        misuse("%s: %#llx is the host's address, the device has another for it", call_name(),
               (unsigned long long)src);
        return true;
    }
    if (pageable && in_order && !fake.script.ats) {
        misuse("%s: %#llx is pageable and to be read in the stream's order", call_name(),
               (unsigned long long)src);
        return true;
    }
    return false;
}

/* Sources are read in the stream's order, whatever the attributes allow: that order is right for
 * every attribute. The copies of a batch are unordered among themselves: the last one is done
 * first, so that a caller that relies on an order sees it. in_order: they must be read in order. */
static CUresult batch(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                      bool in_order, CUstream stream)
{
    CUresult r = CUDA_SUCCESS;
    bool loose = false;
    struct stream *s = stream_of(stream, &r);
    if (!s || count == 0 || count > UINT32_MAX || stream == NULL) {
        return s ? CUDA_ERROR_INVALID_VALUE : r;
    }
    struct copy_op *c = op_new(sizeof *c + count * sizeof(struct piece), copy_run);
    c->op.copy = true;
    c->count = (unsigned)count;
    for (size_t i = 0; i < count && r == CUDA_SUCCESS; i++) {
        c->piece[i] = (struct piece){dsts[i], srcs[i], sizes[i]};
        c->op.cost_bytes += sizes[i];
        r = sizes[i] > 0 ? side_check(dsts[i], sizes[i], true, SIDE_ANY, &loose)
                         : CUDA_ERROR_INVALID_VALUE;
        op_span(&c->op, dsts[i], sizes[i], true, loose);
        r = r ? r : side_check(srcs[i], sizes[i], false, SIDE_ANY, &loose);
        op_span(&c->op, srcs[i], sizes[i], false, loose);
        c->nowhere = (r == CUDA_SUCCESS && unreachable(srcs[i], loose, in_order)) || c->nowhere;
    }
    if (r != CUDA_SUCCESS) {
        free(c->op.spans);
        free(c);
        return r;
    }
    op_enqueue(s, &c->op);
    return CUDA_SUCCESS;
}

#undef cuMemcpyBatchAsync
#if CUDA_VERSION >= 12080
typedef CUmemcpyAttributes attributes;

static bool any_in_order(const attributes *attrs, size_t num)
{
    bool in_order = false;
    for (size_t i = 0; i < num; i++) {
        in_order = in_order || attrs[i].srcAccessOrder == CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
    }
    return in_order;
}

CUresult cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                            attributes *attrs, size_t *idxs, size_t num, size_t *fail,
                            CUstream stream);
__attribute__((visibility("default"))) CUresult
cuMemcpyBatchAsync(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                   attributes *attrs, size_t *idxs, size_t num, size_t *fail, CUstream stream)
{
    CUresult r = call_enter("cuMemcpyBatchAsync", NEED_CONTEXT);
    if (fail) {
        *fail = SIZE_MAX;
    }
    bool described = attrs && idxs && num > 0 && num <= count;
    r = r || described ? r : CUDA_ERROR_INVALID_VALUE;
    return call_leave(r ? r : batch(dsts, srcs, sizes, count, any_in_order(attrs, num), stream));
}
#endif

#if CUDA_VERSION >= 13000
CUresult cuMemcpyBatchAsync_v2(CUdeviceptr *dsts, CUdeviceptr *srcs, size_t *sizes, size_t count,
                               attributes *attrs, size_t *idxs, size_t num, CUstream stream)
{
    CUresult r = call_enter("cuMemcpyBatchAsync", NEED_CONTEXT);
    bool described = attrs && idxs && num > 0 && num <= count;
    r = r || described ? r : CUDA_ERROR_INVALID_VALUE;
    return call_leave(r ? r : batch(dsts, srcs, sizes, count, any_in_order(attrs, num), stream));
}
#endif

/* ---- filling --------------------------------------------------------------------------------- */

struct fill {
    uint64_t dst;
    uint64_t pitch; /* bytes from row to row */
    uint64_t width, height;
    unsigned size; /* of an element: 1, 2, 4 */
    uint32_t value;
};

struct fill_op {
    struct op op;
    struct fill fill;
};

static CUresult fill_run(struct op *op)
{
    const struct fill *f = &((const struct fill_op *)op)->fill;
    for (uint64_t y = 0; y < f->height; y++) {
        uint8_t *row = (uint8_t *)(uintptr_t)(f->dst + y * f->pitch);
        for (uint64_t x = 0; x < f->width; x++) {
            memcpy(row + x * f->size, &f->value, f->size);
        }
    }
    return CUDA_SUCCESS;
}

static CUresult fill(const struct fill *f, bool wait, CUstream stream)
{
    CUresult r = CUDA_SUCCESS;
    bool loose = false;
    struct stream *s = stream_of(stream, &r);
    if (!s || f->width == 0 || f->height == 0) {
        return r;
    }
    if (f->dst % f->size != 0 || f->pitch % f->size != 0) {
        misuse("%s: %#llx is not aligned to %u", call_name(), (unsigned long long)f->dst, f->size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    uint64_t bytes = (f->height - 1) * f->pitch + f->width * f->size;
    r = side_check(f->dst, bytes, true, SIDE_DEVICE, &loose);
    if (r != CUDA_SUCCESS) {
        return r;
    }
    struct fill_op *op = op_new(sizeof *op, fill_run);
    op->fill = *f;
    op->op.cost_bytes = f->width * f->height * f->size;
    op->op.set = true;
    op_span(&op->op, f->dst, bytes, true, false);
    op_enqueue(s, &op->op);
    return wait ? stream_wait(s, s->enqueued) : CUDA_SUCCESS;
}

static CUresult fill_call(const char *name, struct fill f, bool wait, CUstream stream)
{
    CUresult r = call_enter(name, NEED_CONTEXT);
    return call_leave(r ? r : fill(&f, wait, stream));
}

static struct fill linear(CUdeviceptr dst, uint32_t value, unsigned size, size_t n)
{
    return (struct fill){.dst = dst, .width = n, .height = n > 0, .size = size, .value = value};
}

CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t n, CUstream stream)
{
    return fill_call("cuMemsetD8Async", linear(dst, value, 1, n), false, stream);
}

CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t n, CUstream stream)
{
    return fill_call("cuMemsetD16Async", linear(dst, value, 2, n), false, stream);
}

CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned int value, size_t n, CUstream stream)
{
    return fill_call("cuMemsetD32Async", linear(dst, value, 4, n), false, stream);
}

CUresult cuMemsetD8(CUdeviceptr dst, unsigned char value, size_t n)
{
    return fill_call("cuMemsetD8", linear(dst, value, 1, n), false, NULL);
}

CUresult cuMemsetD16(CUdeviceptr dst, unsigned short value, size_t n)
{
    return fill_call("cuMemsetD16", linear(dst, value, 2, n), false, NULL);
}

CUresult cuMemsetD32(CUdeviceptr dst, unsigned int value, size_t n)
{
    return fill_call("cuMemsetD32", linear(dst, value, 4, n), false, NULL);
}

static struct fill rows(CUdeviceptr dst, size_t pitch, uint32_t value, unsigned size, size_t width,
                        size_t height)
{
    return (struct fill){
        .dst = dst, .pitch = pitch, .width = width, .height = height, .size = size, .value = value};
}

CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                           size_t height, CUstream stream)
{
    return fill_call("cuMemsetD2D8Async", rows(dst, pitch, value, 1, width, height), false, stream);
}

CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value, size_t width,
                            size_t height, CUstream stream)
{
    return fill_call("cuMemsetD2D16Async", rows(dst, pitch, value, 2, width, height), false,
                     stream);
}

CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned int value, size_t width,
                            size_t height, CUstream stream)
{
    return fill_call("cuMemsetD2D32Async", rows(dst, pitch, value, 4, width, height), false,
                     stream);
}
