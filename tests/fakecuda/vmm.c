#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/fakecuda/fake.h"

/* A reserved stretch of addresses: pages without access until something is mapped. */
struct reservation {
    struct reservation *next;
    uint64_t base, size;
};

/* Physical memory. It lives as long as its handle or a mapping of it does. */
struct handle {
    struct object object;
    int fd;
    uint64_t size;
    CUmemAllocationProp prop;
    struct device *device; /* NULL: imported, or of the host */
    unsigned maps;
    unsigned refs; /* of the handle: retained ones are counted */
};

static struct reservation *reservations;

static void *at(uint64_t address)
{
    return (void *)(uintptr_t)address;
}

/* ---- addresses ------------------------------------------------------------------------------- */

static CUresult reserve(CUdeviceptr *ret, uint64_t size, uint64_t alignment, uint64_t flags)
{
    if (size == 0 || size % GRANULARITY != 0 || flags != 0 || (alignment & (alignment - 1)) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (size > fake.script.addresses) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t align = alignment > GRANULARITY ? alignment : GRANULARITY;
    struct reservation *v = calloc(1, sizeof *v);
    uint8_t *p =
        mmap(NULL, size + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (!v || p == MAP_FAILED) {
        free(v);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t first = (uint64_t)(uintptr_t)p;
    v->base = (first + align - 1) / align * align;
    v->size = size;
    if (v->base > first) {
        munmap(p, v->base - first);
    }
    munmap(at(v->base + size), first + size + align - (v->base + size));
    v->next = reservations;
    reservations = v;
    *ret = v->base;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size, size_t alignment, CUdeviceptr addr,
                             unsigned long long flags)
{
    CUresult r = call_enter("cuMemAddressReserve", NEED_INIT);
    (void)addr; /* a wish */
    return call_leave(r ? r : reserve(ptr, size, alignment, flags));
}

static CUresult reservation_free(uint64_t base, uint64_t size)
{
    struct reservation **link = &reservations;
    while (*link && (*link)->base != base) {
        link = &(*link)->next;
    }
    struct reservation *v = *link;
    if (!v || v->size != size) {
        misuse("cuMemAddressFree: %#llx, %llu bytes, is no reservation", (unsigned long long)base,
               (unsigned long long)size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (range_overlap(base, size)) {
        misuse("cuMemAddressFree: something is mapped in %#llx", (unsigned long long)base);
        return CUDA_ERROR_INVALID_VALUE;
    }
    *link = v->next;
    munmap(at(base), size);
    free(v);
    return CUDA_SUCCESS;
}

CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size)
{
    CUresult r = call_enter("cuMemAddressFree", NEED_INIT);
    return call_leave(r ? r : reservation_free(ptr, size));
}

static bool reserved(uint64_t base, uint64_t size)
{
    for (const struct reservation *v = reservations; v; v = v->next) {
        if (base >= v->base && size <= v->size && base - v->base <= v->size - size) {
            return true;
        }
    }
    return false;
}

/* cuda.h calls these "possibly synchronizing". `waits`: the call may do so without remap_us. */
static CUresult remap_wait(bool waits)
{
    struct context *c = context_current();
    uint64_t us = fake.script.remap_us;
    if (us > 0) {
        return context_linger(us * NS_PER_US);
    }
    return waits && fake.script.remap_waits && c ? context_wait(c) : CUDA_SUCCESS;
}

/* ---- physical memory ------------------------------------------------------------------------- */

static CUresult prop_check(const CUmemAllocationProp *p, struct device **ret_device)
{
    struct device *d = device_at(p->location.id);
    if (p->type != CU_MEM_ALLOCATION_TYPE_PINNED || !d ||
        p->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return d ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    }
    *ret_device = d;
    if (p->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE &&
        p->requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return d->lost;
}

CUresult cuMemGetAllocationGranularity(size_t *granularity, const CUmemAllocationProp *prop,
                                       CUmemAllocationGranularity_flags option)
{
    CUresult r = call_enter("cuMemGetAllocationGranularity", NEED_INIT);
    struct device *d = NULL;
    (void)option;
    r = r ? r : prop_check(prop, &d);
    if (r == CUDA_SUCCESS) {
        *granularity = GRANULARITY;
    }
    return call_leave(r);
}

static struct handle *handle_new(int fd, uint64_t size, struct device *d)
{
    struct handle *h = calloc(1, sizeof *h);
    if (!h) {
        abort();
    }
    object_add(&h->object, KIND_HANDLE, NULL);
    h->fd = fd;
    h->size = size;
    h->device = d;
    h->refs = 1;
    return h;
}

/* Of what others can map all, of the many pages a little. */
static bool taint(int fd, uint64_t size, bool exported)
{
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) {
        return false;
    }
    pages_taint((uint64_t)(uintptr_t)p, size, exported ? GRANULARITY : 4096);
    (void)munmap(p, size);
    return true;
}

static CUresult handle_create(CUmemGenericAllocationHandle *ret, uint64_t size,
                              const CUmemAllocationProp *prop, uint64_t flags)
{
    struct device *d = NULL;
    CUresult r = prop_check(prop, &d);
    if (r == CUDA_SUCCESS && (size == 0 || size % GRANULARITY != 0 || flags != 0)) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    r = r ? r : device_take(d, size);
    if (r != CUDA_SUCCESS) {
        return r;
    }
    int fd = memfd_create("device-memory", MFD_CLOEXEC);
    if (fd < 0 || ftruncate(fd, (off_t)size) != 0 ||
        !taint(fd, size, prop->requestedHandleTypes != CU_MEM_HANDLE_TYPE_NONE)) {
        d->used -= size;
        if (fd >= 0) {
            close(fd);
        }
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct handle *h = handle_new(fd, size, d);
    h->prop = *prop;
    *ret = h->object.handle;
    return CUDA_SUCCESS;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle *handle, size_t size,
                     const CUmemAllocationProp *prop, unsigned long long flags)
{
    CUresult r = call_enter_device("cuMemCreate", NEED_INIT, prop->location.id);
    r = r ? r : remap_wait(false);
    return call_leave(r ? r : handle_create(handle, size, prop, flags));
}

static void handle_settle(struct handle *h)
{
    if (h->refs > 0 || h->maps > 0) {
        return;
    }
    if (h->device) {
        h->device->used -= h->size;
    }
    close(h->fd);
    free(h);
}

CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    CUresult r = call_enter("cuMemRelease", NEED_INIT);
    r = r ? r : remap_wait(false);
    struct handle *h = r ? NULL : object_get(at(handle), KIND_HANDLE);
    if (h && --h->refs == 0) {
        object_remove(&h->object);
        handle_settle(h);
    } else if (!h && r == CUDA_SUCCESS) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    return call_leave(r);
}

CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *addr)
{
    CUresult r = call_enter("cuMemRetainAllocationHandle", NEED_INIT);
    const struct range *range = r ? NULL : range_at((uint64_t)(uintptr_t)addr);
    if (r == CUDA_SUCCESS && (!range || range->kind != RANGE_MAPPED || range->handle->refs == 0)) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS) {
        range->handle->refs++;
        *handle = range->handle->object.handle;
    }
    return call_leave(r);
}

CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp *prop,
                                                CUmemGenericAllocationHandle handle)
{
    CUresult r = call_enter("cuMemGetAllocationPropertiesFromHandle", NEED_INIT);
    const struct handle *h = r ? NULL : object_get(at(handle), KIND_HANDLE);
    if (h) {
        *prop = h->prop;
    }
    return call_leave(r == CUDA_SUCCESS && !h ? CUDA_ERROR_INVALID_VALUE : r);
}

/* ---- between processes ----------------------------------------------------------------------- */

static CUresult export(int *ret_fd, uint64_t handle, CUmemAllocationHandleType type, uint64_t flags)
{
    const struct handle *h = object_get(at(handle), KIND_HANDLE);
    if (!h || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (h->prop.requestedHandleTypes != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) {
        misuse("cuMemExportToShareableHandle: the memory was not created exportable");
        return CUDA_ERROR_INVALID_VALUE;
    }
    int fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    *ret_fd = fd;
    return CUDA_SUCCESS;
}

CUresult cuMemExportToShareableHandle(void *ret, CUmemGenericAllocationHandle handle,
                                      CUmemAllocationHandleType type, unsigned long long flags)
{
    CUresult r = call_enter("cuMemExportToShareableHandle", NEED_INIT);
    return call_leave(r ? r : export(ret, handle, type, flags));
}

static CUresult import(CUmemGenericAllocationHandle *ret, int fd, CUmemAllocationHandleType type)
{
    struct stat st;
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fstat(fd, &st) != 0 ||
        st.st_size <= 0 || (uint64_t)st.st_size % GRANULARITY != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (own < 0) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    struct handle *h = handle_new(own, (uint64_t)st.st_size, NULL);
    h->prop =
        (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                              .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                              .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    *ret = h->object.handle;
    return CUDA_SUCCESS;
}

CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os_handle,
                                        CUmemAllocationHandleType type)
{
    CUresult r = call_enter("cuMemImportFromShareableHandle", NEED_INIT);
    return call_leave(r ? r : import(handle, (int)(intptr_t)os_handle, type));
}

/* ---- mapping --------------------------------------------------------------------------------- */

static CUresult map_check(uint64_t ptr, uint64_t size, uint64_t offset, const struct handle *h,
                          uint64_t flags)
{
    const char *wrong = NULL;
    if (size == 0 || ptr % GRANULARITY != 0 || size % GRANULARITY != 0) {
        wrong = "address or size is no multiple of the granularity";
    } else if (offset != 0) {
        wrong = "an offset into the handle";
    } else if (size != h->size) {
        wrong = "the size is not the handle's";
    } else if (!reserved(ptr, size)) {
        wrong = "the addresses are not reserved";
    } else if (range_overlap(ptr, size)) {
        wrong = "something is mapped there";
    } else if (flags != 0) {
        wrong = "flags";
    }
    if (wrong) {
        misuse("cuMemMap: %#llx: %s", (unsigned long long)ptr, wrong);
        return CUDA_ERROR_INVALID_VALUE;
    }
    return CUDA_SUCCESS;
}

static CUresult map(uint64_t ptr, uint64_t size, uint64_t offset, uint64_t handle, uint64_t flags)
{
    struct handle *h = object_get(at(handle), KIND_HANDLE);
    if (!h) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = map_check(ptr, size, offset, h, flags);
    if (rc != CUDA_SUCCESS) {
        return rc;
    }
    struct range r = {.base = ptr,
                      .size = size,
                      .kind = RANGE_MAPPED,
                      .device = h->device ? h->device : device_at(0),
                      .handle = h};
    if (mmap(at(ptr), size, PROT_NONE, MAP_SHARED | MAP_FIXED, h->fd, 0) == MAP_FAILED ||
        !range_add(&r)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    h->maps++;
    return CUDA_SUCCESS;
}

CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags)
{
    CUresult r = call_enter("cuMemMap", NEED_INIT);
    r = r ? r : remap_wait(false);
    return call_leave(r ? r : map(ptr, size, offset, handle, flags));
}

/* Whether [ptr, ptr + size) is made of whole mappings without a gap. */
static bool whole_mappings(uint64_t ptr, uint64_t size)
{
    const uint64_t end = ptr + size;
    while (ptr < end) {
        const struct range *r = range_at(ptr);
        if (!r || r->kind != RANGE_MAPPED || r->base != ptr || r->base + r->size > end) {
            return false;
        }
        ptr += r->size;
    }
    return size > 0;
}

static CUresult unmap(uint64_t ptr, uint64_t size)
{
    if (!whole_mappings(ptr, size)) {
        misuse("cuMemUnmap: %#llx, %llu bytes: nothing is mapped there, or a part of it",
               (unsigned long long)ptr, (unsigned long long)size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    const char *pending = memory_pending(ptr, size);
    if (pending) { /* it is not stream-ordered: what runs now will fault */
        misuse("cuMemUnmap: %#llx is used by pending work (%s)", (unsigned long long)ptr, pending);
    }
    if (mmap(at(ptr), size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
             0) == MAP_FAILED) {
        return CUDA_ERROR_OPERATING_SYSTEM;
    }
    for (uint64_t end = ptr + size; ptr < end;) {
        struct range *r = range_at(ptr);
        struct handle *h = r->handle;
        ptr += r->size;
        range_remove(r);
        h->maps--;
        handle_settle(h);
    }
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr ptr, size_t size)
{
    CUresult r = call_enter("cuMemUnmap", NEED_INIT);
    r = r ? r : remap_wait(true);
    return call_leave(r ? r : unmap(ptr, size));
}

static CUresult access_set(struct range *r, const CUmemAccessDesc *desc)
{
    uint64_t bit = UINT64_C(1) << desc->location.id;
    r->readable &= ~bit;
    r->writable &= ~bit;
    r->readable |= (desc->flags & CU_MEM_ACCESS_FLAGS_PROT_READ) != 0 ? bit : 0;
    r->writable |= desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE ? bit : 0;
    int prot = (r->readable ? PROT_READ : 0) | (r->writable ? PROT_WRITE : 0);
    return mprotect(at(r->base), r->size, prot) == 0 ? CUDA_SUCCESS : CUDA_ERROR_OPERATING_SYSTEM;
}

static CUresult access_all(uint64_t ptr, uint64_t size, const CUmemAccessDesc *desc, size_t count)
{
    if (!whole_mappings(ptr, size)) {
        misuse("cuMemSetAccess: %#llx, %llu bytes: nothing is mapped there, or a part of it",
               (unsigned long long)ptr, (unsigned long long)size);
        return CUDA_ERROR_INVALID_VALUE;
    }
    CUresult rc = count > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && rc == CUDA_SUCCESS; i++) {
        if (desc[i].location.type != CU_MEM_LOCATION_TYPE_DEVICE ||
            !device_at(desc[i].location.id)) {
            return CUDA_ERROR_INVALID_DEVICE;
        }
        for (uint64_t p = ptr; p < ptr + size && rc == CUDA_SUCCESS;) {
            struct range *r = range_at(p);
            rc = access_set(r, &desc[i]);
            p += r->size;
        }
    }
    return rc;
}

CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const CUmemAccessDesc *desc, size_t count)
{
    CUresult r = call_enter("cuMemSetAccess", NEED_INIT);
    r = r ? r : remap_wait(true);
    return call_leave(r ? r : access_all(ptr, size, desc, count));
}

CUresult cuMemGetAccess(unsigned long long *flags, const CUmemLocation *location, CUdeviceptr ptr)
{
    CUresult r = call_enter("cuMemGetAccess", NEED_INIT);
    const struct range *range = r ? NULL : range_at(ptr);
    if (r == CUDA_SUCCESS && (!range || range->kind != RANGE_MAPPED || !device_at(location->id))) {
        r = CUDA_ERROR_INVALID_VALUE;
    }
    if (r == CUDA_SUCCESS) {
        bool read = (range->readable >> location->id & 1u) != 0;
        bool write = (range->writable >> location->id & 1u) != 0;
        *flags = write  ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                 : read ? CU_MEM_ACCESS_FLAGS_PROT_READ
                        : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    }
    return call_leave(r);
}

static void handle_report(struct object *o, void *data)
{
    const struct handle *h = (const struct handle *)o;
    (void)data;
    leak("memory handle of %llu bytes", (unsigned long long)h->size);
}

void vmm_report(void)
{
    object_each(KIND_HANDLE, handle_report, NULL);
    for (const struct reservation *v = reservations; v; v = v->next) {
        leak("reserved addresses %#llx, %llu bytes", (unsigned long long)v->base,
             (unsigned long long)v->size);
    }
}
