#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fakecuda/fake.h"

/* Memory that is allocated and freed in a stream's order. The driver keeps freed addresses until
 * the pool is trimmed; the double frees them at once. */
struct pool {
    struct object object;
    struct device *device;
    bool own; /* a device's default pool, which is never destroyed */
    bool dead;
    uint64_t used, high, live, threshold;
};

static struct pool *pool_new(struct device *d, bool own)
{
    struct pool *p = calloc(1, sizeof *p);
    if (!p) {
        abort();
    }
    object_add(&p->object, KIND_POOL, NULL);
    p->device = d;
    p->own = own;
    return p;
}

struct pool *pool_default(struct device *d)
{
    if (!d->default_pool) {
        d->default_pool = pool_new(d, true);
    }
    return d->default_pool;
}

static CUmemoryPool handle_of(const struct pool *p)
{
    return (CUmemoryPool)(uintptr_t)p->object.handle;
}

static void pool_settle(struct pool *p)
{
    if (p->dead && p->live == 0) {
        free(p);
    }
}

void pool_take_back(struct range *r)
{
    struct pool *p = r->pool;
    p->used -= r->size;
    p->live--;
    p->device->used -= r->size;
    pages_free(r->base, r->mapped);
    range_remove(r);
    pool_settle(p);
}

/* ---- pools ----------------------------------------------------------------------------------- */

static CUresult create(CUmemoryPool *ret, const CUmemPoolProps *props)
{
    struct device *d = device_at(props->location.id);
    if (!d || props->allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
        props->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return d ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    *ret = handle_of(pool_new(d, false));
    return CUDA_SUCCESS;
}

CUresult cuMemPoolCreate(CUmemoryPool *pool, const CUmemPoolProps *props)
{
    CUresult r = call_enter("cuMemPoolCreate", NEED_INIT);
    return call_leave(r ? r : create(pool, props));
}

CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    CUresult r = call_enter("cuMemPoolDestroy", NEED_INIT);
    struct pool *p = r ? NULL : object_get(handle, KIND_POOL);
    if (p && p->own) {
        misuse("cuMemPoolDestroy: the pool is a device's default one");
        p = NULL;
    }
    if (p) {
        object_remove(&p->object);
        if (p->device->pool == p) {
            p->device->pool = NULL;
        }
        p->dead = true;
        pool_settle(p);
    }
    return call_leave(r == CUDA_SUCCESS && !p ? CUDA_ERROR_INVALID_VALUE : r);
}

CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *pool, CUdevice dev)
{
    CUresult r = call_enter_device("cuDeviceGetDefaultMemPool", NEED_INIT, dev);
    if (r == CUDA_SUCCESS) {
        *pool = handle_of(pool_default(device_at(dev)));
    }
    return call_leave(r);
}

static struct pool *pool_current(struct device *d)
{
    return d->pool ? d->pool : pool_default(d);
}

CUresult cuDeviceGetMemPool(CUmemoryPool *pool, CUdevice dev)
{
    CUresult r = call_enter_device("cuDeviceGetMemPool", NEED_INIT, dev);
    if (r == CUDA_SUCCESS) {
        *pool = handle_of(pool_current(device_at(dev)));
    }
    return call_leave(r);
}

CUresult cuDeviceSetMemPool(CUdevice dev, CUmemoryPool handle)
{
    CUresult r = call_enter_device("cuDeviceSetMemPool", NEED_INIT, dev);
    struct pool *p = r ? NULL : object_get(handle, KIND_POOL);
    if (p && p->device == device_at(dev)) {
        p->device->pool = p;
    } else if (r == CUDA_SUCCESS) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r);
}

CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t keep)
{
    CUresult r = call_enter("cuMemPoolTrimTo", NEED_INIT);
    (void)keep; /* nothing is kept */
    if (r == CUDA_SUCCESS && !object_get(handle, KIND_POOL)) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r);
}

static CUresult attribute_get(const struct pool *p, CUmemPool_attribute which, void *value)
{
    switch (which) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        *(cuuint64_t *)value = p->threshold;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        *(cuuint64_t *)value = p->used;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        *(cuuint64_t *)value = p->high;
        return CUDA_SUCCESS;
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        *(int *)value = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void *value)
{
    CUresult r = call_enter("cuMemPoolGetAttribute", NEED_INIT);
    const struct pool *p = r ? NULL : object_get(handle, KIND_POOL);
    if (r == CUDA_SUCCESS) {
        r = p ? attribute_get(p, which, value) : CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r);
}

CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute which, void *value)
{
    CUresult r = call_enter("cuMemPoolSetAttribute", NEED_INIT);
    struct pool *p = r ? NULL : object_get(handle, KIND_POOL);
    if (p && which == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        p->threshold = *(cuuint64_t *)value;
    } else if (p && (which == CU_MEMPOOL_ATTR_USED_MEM_HIGH ||
                     which == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH)) {
        p->high = p->used;
    } else if (r == CUDA_SUCCESS && !p) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r);
}

/* ---- their memory ---------------------------------------------------------------------------- */

static CUresult nothing_run(struct op *op)
{
    (void)op;
    return CUDA_SUCCESS;
}

static CUresult allocate(CUdeviceptr *ret, uint64_t size, struct pool *p, CUstream stream)
{
    CUresult rc = CUDA_SUCCESS;
    struct stream *s = stream_of(stream, &rc);
    if (!s || size == 0) {
        return s ? CUDA_ERROR_INVALID_VALUE : rc;
    }
    struct range r = {.size = size,
                      .kind = RANGE_POOL,
                      .context = s->object.context,
                      .device = p->device,
                      .pool = p};
    rc = device_take(p->device, size);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    r.base = pages_new(size, &r.mapped);
    if (r.base == 0 || !range_add(&r)) {
        pages_free(r.base, r.mapped);
        p->device->used -= size;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    pages_taint(r.base, size, 65536);
    p->used += size;
    p->live++;
    p->high = p->used > p->high ? p->used : p->high;
    op_enqueue(s, op_new(sizeof(struct op), nothing_run));
    *ret = r.base;
    return CUDA_SUCCESS;
}

CUresult cuMemAllocAsync(CUdeviceptr *dptr, size_t size, CUstream stream)
{
    CUresult r = call_enter("cuMemAllocAsync", NEED_CONTEXT);
    struct pool *p = r ? NULL : pool_current(context_current()->device);
    return call_leave(r ? r : allocate(dptr, size, p, stream));
}

CUresult cuMemAllocFromPoolAsync(CUdeviceptr *dptr, size_t size, CUmemoryPool handle,
                                 CUstream stream)
{
    CUresult r = call_enter("cuMemAllocFromPoolAsync", NEED_CONTEXT);
    struct pool *p = r ? NULL : object_get(handle, KIND_POOL);
    if (r == CUDA_SUCCESS) {
        r = p ? allocate(dptr, size, p, stream) : CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r);
}

struct free_op {
    struct op op;
    uint64_t base;
};

static void free_finish(struct op *op, bool done)
{
    struct range *r = range_at(((struct free_op *)op)->base);
    if (done && r && r->freeing) {
        const char *pending = memory_pending(r->base, r->size);
        if (pending) {
            misuse("cuMemFreeAsync: %#llx is used by pending work of another stream (%s)",
                   (unsigned long long)r->base, pending);
        }
        pool_take_back(r);
    }
}

static CUresult give_back(CUdeviceptr address, CUstream stream)
{
    CUresult rc = CUDA_SUCCESS;
    struct stream *s = stream_of(stream, &rc);
    struct range *r = range_at(address);
    if (!s) {
        return rc;
    }
    bool right = r && r->base == address && !r->freeing &&
                 (r->kind == RANGE_POOL || r->kind == RANGE_DEVICE);
    if (!right) {
        misuse("cuMemFreeAsync: %#llx is not allocated, or was freed before",
               (unsigned long long)address);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (r->kind == RANGE_DEVICE) {
        misuse("cuMemFreeAsync: %#llx is of cuMemAlloc", (unsigned long long)address);
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    struct free_op *op = op_new(sizeof *op, nothing_run);
    op->op.finish = free_finish;
    op->base = address;
    r->freeing = true;
    op_enqueue(s, &op->op);
    return CUDA_SUCCESS;
}

CUresult cuMemFreeAsync(CUdeviceptr dptr, CUstream stream)
{
    CUresult r = call_enter("cuMemFreeAsync", NEED_CONTEXT);
    return call_leave(r ? r : give_back(dptr, stream));
}

static void pool_each(struct object *o, void *data)
{
    (void)data;
    if (!((struct pool *)o)->own) {
        leak("memory pool %#llx", (unsigned long long)o->handle);
    }
}

void pool_report(void)
{
    object_each(KIND_POOL, pool_each, NULL);
}
