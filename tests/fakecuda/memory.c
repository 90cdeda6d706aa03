#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/fakecuda/fake.h"

#define UNIT  512u
#define PITCH 512u
#define HOST_ALL                                                                                   \
    (CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED)
#define REGISTER_ALL                                                                               \
    (CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_IOMEMORY |    \
     CU_MEMHOSTREGISTER_READ_ONLY)

static uint64_t accounted(uint64_t size)
{
    return (size + UNIT - 1) / UNIT * UNIT;
}

/* ---- device memory --------------------------------------------------------------------------- */

static CUresult memory_new(enum range_kind kind, uint64_t size, unsigned flags, bool counted,
                           CUdeviceptr *ret)
{
    struct context *c = context_current();
    struct range r = {
        .size = size, .kind = kind, .flags = flags, .context = c, .device = c->device};
    if (size == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = counted ? device_take(c->device, accounted(size)) : CUDA_SUCCESS;
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    r.base = pages_new(size, &r.mapped);
    if (r.base == 0 || !range_add(&r)) {
        pages_free(r.base, r.mapped);
        c->device->used -= counted ? accounted(size) : 0;
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (kind != RANGE_HOST) {
        pages_taint(r.base, size, 65536);
    }
    *ret = r.base;
    return CUDA_SUCCESS;
}

static void memory_delete(struct range *r)
{
    if (r->kind == RANGE_DEVICE || r->kind == RANGE_MANAGED || r->kind == RANGE_GLOBAL) {
        r->device->used -= accounted(r->size);
    }
    pages_free(r->base, r->mapped);
    range_remove(r);
}

CUresult cuMemAlloc(CUdeviceptr *dptr, size_t bytesize)
{
    CUresult r = call_enter("cuMemAlloc", NEED_CONTEXT);
    return call_leave(r ? r : memory_new(RANGE_DEVICE, bytesize, 0, true, dptr));
}

static CUresult pitched(CUdeviceptr *dptr, size_t *pitch, size_t width, size_t height,
                        unsigned element)
{
    if (element != 4 && element != 8 && element != 16) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    size_t row = (width + PITCH - 1) / PITCH * PITCH;
    CUresult r = memory_new(RANGE_DEVICE, row * height, 0, true, dptr);
    if (r == CUDA_SUCCESS) {
        *pitch = row;
    }
    return r;
}

CUresult cuMemAllocPitch(CUdeviceptr *dptr, size_t *pPitch, size_t width, size_t height,
                         unsigned int element)
{
    CUresult r = call_enter("cuMemAllocPitch", NEED_CONTEXT);
    return call_leave(r ? r : pitched(dptr, pPitch, width, height, element));
}

CUresult cuMemAllocManaged(CUdeviceptr *dptr, size_t bytesize, unsigned int flags)
{
    CUresult r = call_enter("cuMemAllocManaged", NEED_CONTEXT);
    if (r == CUDA_SUCCESS && flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r ? r : memory_new(RANGE_MANAGED, bytesize, flags, true, dptr));
}

/* The base of an allocation of one of these kinds; NULL: none, and the misuse is recorded. */
static struct range *range_owned(uint64_t address, unsigned kinds)
{
    struct range *r = range_at(address);
    if (!r) {
        misuse("%s: %#llx is no memory, or was freed before", call_name(),
               (unsigned long long)address);
    } else if (r->base != address) {
        misuse("%s: %#llx lies inside of memory that begins at %#llx", call_name(),
               (unsigned long long)address, (unsigned long long)r->base);
    } else if ((kinds >> r->kind & 1u) == 0) {
        misuse("%s: %#llx is %s memory", call_name(), (unsigned long long)address,
               range_name(r->kind));
    } else {
        return r;
    }
    return NULL;
}

/* The driver waits for the work that uses it, and for all other work of the context. Relying on
 * that is a fault of the caller all the same, since the work may be meant for a buffer that is
 * gone. */
static CUresult settle(const struct range *r)
{
    const char *pending = memory_pending(r->base, r->size);
    if (!pending) {
        return CUDA_SUCCESS;
    }
    misuse("%s: %#llx is used by pending work (%s)", call_name(), (unsigned long long)r->base,
           pending);
    return memory_wait(r->base, r->size);
}

static CUresult memory_free(uint64_t address, unsigned kinds)
{
    if (address == 0) {
        return CUDA_SUCCESS;
    }
    struct range *r = range_owned(address, kinds);
    if (!r) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    bool pool = r->kind == RANGE_POOL; /* which waits for none */
    CUresult rc = settle(r);
    rc = rc == CUDA_SUCCESS && !pool ? context_wait(context_current()) : rc;
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    r = range_owned(address, kinds); /* the wait released the lock: it may be freed by now */
    if (!r) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (pool) {
        pool_take_back(r);
    } else {
        memory_delete(r);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemFree(CUdeviceptr dptr)
{
    CUresult r = call_enter("cuMemFree", NEED_CONTEXT);
    unsigned kinds = 1u << RANGE_DEVICE | 1u << RANGE_MANAGED | 1u << RANGE_POOL;
    return call_leave(r ? r : memory_free(dptr, kinds));
}

CUresult cuMemGetInfo(size_t *free_bytes, size_t *total)
{
    CUresult r = call_enter("cuMemGetInfo", NEED_CONTEXT);
    if (r == CUDA_SUCCESS) {
        *total = fake.script.memory;
        *free_bytes = fake.script.memory - context_current()->device->used;
    }
    return call_leave(r);
}

CUresult cuMemGetAddressRange(CUdeviceptr *pbase, size_t *psize, CUdeviceptr dptr)
{
    CUresult r = call_enter("cuMemGetAddressRange", NEED_CONTEXT);
    const struct range *range = r ? NULL : range_at(dptr);
    if (range && pbase) {
        *pbase = range->base;
    }
    if (range && psize) {
        *psize = range->size;
    }
    return call_leave(r == CUDA_SUCCESS && !range ? CUDA_ERROR_NOT_FOUND : r);
}

/* ---- host memory ----------------------------------------------------------------------------- */

static CUresult host_new(void **pp, size_t size, unsigned flags)
{
    CUdeviceptr p = 0;
    if ((flags & ~(unsigned)HOST_ALL) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult r = memory_new(RANGE_HOST, size, flags, false, &p);
    if (r == CUDA_SUCCESS) {
        *pp = (void *)(uintptr_t)p;
    }
    return r;
}

CUresult cuMemHostAlloc(void **pp, size_t bytesize, unsigned int Flags)
{
    CUresult r = call_enter("cuMemHostAlloc", NEED_CONTEXT);
    return call_leave(r ? r : host_new(pp, bytesize, Flags));
}

CUresult cuMemAllocHost(void **pp, size_t bytesize)
{
    CUresult r = call_enter("cuMemAllocHost", NEED_CONTEXT);
    return call_leave(r ? r : host_new(pp, bytesize, 0));
}

CUresult cuMemFreeHost(void *p)
{
    CUresult r = call_enter("cuMemFreeHost", NEED_CONTEXT);
    return call_leave(r ? r : memory_free((uint64_t)(uintptr_t)p, 1u << RANGE_HOST));
}

/* Whether the process may read (write) all of these pages. */
static bool host_allows(uint64_t base, uint64_t size, bool write)
{
    char line[512];
    uint64_t at = base;
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && at < base + size && fgets(line, sizeof line, maps)) {
        unsigned long long from = 0, to = 0;
        char prot[5] = "";
        bool read = sscanf(line, "%llx-%llx %4s", &from, &to, prot) == 3;
        if (read && from <= at && at < to && prot[0] == 'r' && (!write || prot[1] == 'w')) {
            at = to;
        }
    }
    if (maps) {
        (void)fclose(maps);
    }
    return at >= base + size;
}

static CUresult host_register(uint64_t base, uint64_t size, unsigned flags)
{
    struct context *c = context_current();
    struct range r = {.base = base,
                      .size = size,
                      .kind = RANGE_REGISTERED,
                      .flags = flags,
                      .context = c,
                      .device = c->device};
    if (base == 0 || size == 0 || (flags & ~(unsigned)REGISTER_ALL) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (fake.script.register_most != 0 && size > fake.script.register_most) {
        note("cuMemHostRegister: %llu bytes are too many", (unsigned long long)size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (range_overlap(base, size)) {
        misuse("cuMemHostRegister: %#llx is known to the driver already", (unsigned long long)base);
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    if (!host_allows(base, size, (flags & CU_MEMHOSTREGISTER_READ_ONLY) == 0)) {
        note("cuMemHostRegister: %#llx is not mapped, or only to be read",
             (unsigned long long)base);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return range_add(&r) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult host_linger(uint64_t size)
{
    const uint64_t mib = UINT64_C(1) << 20;
    return context_linger((size + mib - 1) / mib * fake.script.host_us * NS_PER_US);
}

CUresult cuMemHostRegister(void *p, size_t bytesize, unsigned int Flags)
{
    CUresult r = call_enter("cuMemHostRegister", NEED_CONTEXT);
    r = r ? r : host_linger(bytesize);
    return call_leave(r ? r : host_register((uint64_t)(uintptr_t)p, bytesize, Flags));
}

/* Waits for all that the context does, as the driver may. */
static CUresult host_unregister(uint64_t address)
{
    struct range *r = range_owned(address, 1u << RANGE_REGISTERED);
    if (!r) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    CUresult rc = host_linger(r->size);
    r = rc == CUDA_SUCCESS ? range_owned(address, 1u << RANGE_REGISTERED) : NULL;
    rc = r ? settle(r) : rc;
    rc = rc == CUDA_SUCCESS ? context_wait(context_current()) : rc;
    r = rc == CUDA_SUCCESS ? range_owned(address, 1u << RANGE_REGISTERED) : NULL; /* still */
    if (r) {
        range_remove(r);
    }
    return rc == CUDA_SUCCESS && !r ? CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED : rc;
}

CUresult cuMemHostUnregister(void *p)
{
    CUresult r = call_enter("cuMemHostUnregister", NEED_CONTEXT);
    return call_leave(r ? r : host_unregister((uint64_t)(uintptr_t)p));
}

CUresult cuMemHostGetDevicePointer(CUdeviceptr *pdptr, void *p, unsigned int Flags)
{
    CUresult r = call_enter("cuMemHostGetDevicePointer", NEED_CONTEXT);
    const struct range *range = r ? NULL : range_at((uint64_t)(uintptr_t)p);
    if (r == CUDA_SUCCESS && (Flags != 0 || !range || range_is_device(range))) {
        misuse("cuMemHostGetDevicePointer: %p is no pinned host memory", p);
        r = CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS) {
        *pdptr = (CUdeviceptr)(uintptr_t)p;
    }
    return call_leave(r);
}

CUresult cuMemHostGetFlags(unsigned int *pFlags, void *p)
{
    CUresult r = call_enter("cuMemHostGetFlags", NEED_CONTEXT);
    const struct range *range = r ? NULL : range_at((uint64_t)(uintptr_t)p);
    if (r == CUDA_SUCCESS && (!range || range_is_device(range))) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS) {
        *pFlags = range->flags;
    }
    return call_leave(r);
}

/* ---- with its context ------------------------------------------------------------------------ */

static struct range *range_of_context(const struct context *c)
{
    for (struct range *r = range_next(NULL); r; r = range_next(r)) {
        if (r->context == c) {
            return r;
        }
    }
    return NULL;
}

void memory_drop_context(struct context *c)
{
    for (struct range *r = range_of_context(c); r; r = range_of_context(c)) {
        if (r->kind == RANGE_MAPPED || r->kind == RANGE_POOL) {
            r->context = NULL; /* not the context's: it outlives it */
            continue;
        }
        if (r->kind != RANGE_GLOBAL && c->poison == CUDA_SUCCESS) {
            leak("%s memory %#llx, %llu bytes, left in a context that was destroyed",
                 range_name(r->kind), (unsigned long long)r->base, (unsigned long long)r->size);
        }
        memory_delete(r);
    }
}

/* ---- managed memory -------------------------------------------------------------------------- */

static bool managed_holds(CUdeviceptr base, size_t size)
{
    const struct range *r = range_at(base);
    return size > 0 && r && (r->kind == RANGE_MANAGED || fake.script.ats) &&
           base + size <= r->base + r->size;
}

static CUresult managed_check(CUdeviceptr base, size_t size, int device)
{
    if (device != CU_DEVICE_CPU && !device_at(device)) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    if (!managed_holds(base, size)) {
        misuse("%s: %#llx is no managed memory of %zu bytes", call_name(), (unsigned long long)base,
               size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult prefetch_run(struct op *op)
{
    (void)op;
    return CUDA_SUCCESS;
}

static CUresult prefetch(CUdeviceptr base, size_t size, int device, CUstream stream)
{
    CUresult r = managed_check(base, size, device);
    struct stream *s = r ? NULL : stream_of(stream, &r);
    if (s) {
        struct op *op = op_new(sizeof *op, prefetch_run);
        op->cost_bytes = size;
        op_span(op, base, size, false, false);
        op_enqueue(s, op);
    }
    return r;
}

#undef cuMemPrefetchAsync
#undef cuMemAdvise
#define OLD_ABI __attribute__((visibility("default")))
CUresult cuMemPrefetchAsync(CUdeviceptr base, size_t count, CUdevice device, CUstream stream);
CUresult cuMemAdvise(CUdeviceptr base, size_t count, CUmem_advise advice, CUdevice device);

OLD_ABI CUresult cuMemPrefetchAsync(CUdeviceptr base, size_t count, CUdevice device,
                                    CUstream stream)
{
    CUresult r = call_enter("cuMemPrefetchAsync", NEED_CONTEXT);
    return call_leave(r ? r : prefetch(base, count, device, stream));
}

OLD_ABI CUresult cuMemAdvise(CUdeviceptr base, size_t count, CUmem_advise advice, CUdevice device)
{
    CUresult r = call_enter("cuMemAdvise", NEED_CONTEXT);
    (void)advice;
    return call_leave(r ? r : managed_check(base, count, device));
}

static int location_device(CUmemLocation l)
{
    return l.type == CU_MEM_LOCATION_TYPE_DEVICE ? l.id : CU_DEVICE_CPU;
}

CUresult cuMemPrefetchAsync_v2(CUdeviceptr base, size_t count, CUmemLocation location,
                               unsigned int flags, CUstream stream)
{
    CUresult r = call_enter("cuMemPrefetchAsync", NEED_CONTEXT);
    if (r == CUDA_SUCCESS && flags != 0) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r ? r : prefetch(base, count, location_device(location), stream));
}

CUresult cuMemAdvise_v2(CUdeviceptr base, size_t count, CUmem_advise advice, CUmemLocation location)
{
    CUresult r = call_enter("cuMemAdvise", NEED_CONTEXT);
    (void)advice;
    return call_leave(r ? r : managed_check(base, count, location_device(location)));
}

/* ---- what an address is ---------------------------------------------------------------------- */

static CUresult attribute(const struct range *r, CUpointer_attribute which, void *data)
{
    switch (which) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        *(unsigned *)data = range_is_device(r) ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
        *(int *)data = r->device->index;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        *(unsigned *)data = r->kind == RANGE_MANAGED;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        *(CUdeviceptr *)data = r->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
        *(size_t *)data = r->size;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
        *(unsigned long long *)data = r->id;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
        *(CUdeviceptr *)data = r->base;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *(CUcontext *)data = r->context ? (CUcontext)(uintptr_t)r->context->object.handle : NULL;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED:
        *(int *)data = 1;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_NOT_SUPPORTED;
    }
}

CUresult cuPointerGetAttribute(void *data, CUpointer_attribute which, CUdeviceptr ptr)
{
    CUresult r = call_enter("cuPointerGetAttribute", NEED_INIT);
    const struct range *range = r ? NULL : range_at(ptr);
    if (r == CUDA_SUCCESS) {
        r = range ? attribute(range, which, data) : CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r);
}
