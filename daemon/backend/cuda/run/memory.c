#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/backend/cuda/driver/device.h"

/* Whole blocks, for devices without pages (pages.c); managed memory; and registering host
 * memory. */

static void memory_free(struct backend_device *d, struct backend_block *b)
{
    if (!b) {
        return;
    }
    d->cu.MemFree(b->address);
    free(b);
}

/* Adds to the error how much memory there is. */
static int wrap_shortage(struct backend_device *d, uint64_t size, struct err *e)
{
    size_t unused = 0;
    size_t total = 0;
    (void)d->cu.MemGetInfo(&unused, &total);
    return err_wrap(e, "%llu bytes wanted, %zu of %zu free", (unsigned long long)size, unused,
                    total);
}

static int memory_alloc(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                        struct err *e)
{
    if (size == 0) {
        return err_set(e, ERR_INVALID, "a block of 0 bytes");
    }
    if (size > d->info.max_alloc) {
        return err_set(e, ERR_DEVICE_MEMORY, "%llu bytes wanted, the device has %llu",
                       (unsigned long long)size, (unsigned long long)d->info.max_alloc);
    }
    struct backend_block *b = calloc(1, sizeof *b);
    if (!b) {
        return err_set(e, ERR_NOMEM, "no memory for the record of a block of device memory");
    }
    b->size = size;
    int rc = CUDA_CALL(&d->cu, e, MemAlloc, &b->address, size);
    if (rc != 0) {
        free(b);
        (void)(rc == ERR_DEVICE_MEMORY ? wrap_shortage(d, size, e) : 0);
        return rc;
    }
    if (b->address % BACKEND_ALIGN != 0) {
        memory_free(d, b);
        return err_set(e, ERR_INTERNAL, "the driver aligns memory to less than %u bytes",
                       BACKEND_ALIGN);
    }
    *ret_block = b;
    return 0;
}

/* While memory is being registered, returns the last value: the driver holds a lock that the
 * query would wait for. */
static int memory_room(struct backend_device *d, uint64_t *ret_bytes, struct err *e)
{
    size_t room = 0;
    size_t total = 0;
    bool busy = atomic_load_explicit(&d->registering, memory_order_relaxed) > 0;
    int rc = busy ? 0 : CUDA_CALL(&d->cu, e, MemGetInfo, &room, &total);
    d->room = busy || rc != 0 ? d->room : room;
    if (rc == 0) {
        *ret_bytes = d->room;
    }
    return rc;
}

/* Requires concurrent access by the host, because managed memory cannot be prefetched without
 * it. */
static int alloc_managed(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                         struct err *e)
{
    int able = 0;
    CUresult known =
        d->cu.DeviceGetAttribute(&able, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, d->id);
    if (known != CUDA_SUCCESS || able == 0) {
        return err_set(e, ERR_UNSUPPORTED, "the device has no managed memory");
    }
    struct backend_block *b = calloc(1, sizeof *b);
    if (!b) {
        return err_set(e, ERR_NOMEM, "no memory for the record of a block of managed memory");
    }
    b->size = size;
    int rc = CUDA_CALL(&d->cu, e, MemAllocManaged, &b->address, size, CU_MEM_ATTACH_GLOBAL);
    if (rc != 0) {
        free(b);
        return rc;
    }
    *ret_block = b;
    return 0;
}

/* Populates the pages beforehand: while the driver pins memory, it holds a lock that calls of
 * all processes wait for. Some Linux kernels cannot do that; then the driver does. May run in
 * another thread than the rest. */
static int host_prepare(struct backend_device *d, void *data, size_t size, struct err *e)
{
    if (madvise(data, size, MADV_POPULATE_WRITE) != 0) { /* the memory may be mapped read-only */
        (void)madvise(data, size, MADV_POPULATE_READ);
    }
    return CUDA_CALL(&d->cu, e, CtxSetCurrent, d->context);
}

uint64_t cuda_host_piece(const struct backend_device *d, const void *host, uint64_t size)
{
    uint64_t left = d->host_piece - (uintptr_t)host % d->host_piece;
    return left < size ? left : size;
}

/* The size of the registration that begins at byte `at`, in memory of `size` bytes. */
static uint64_t piece_at(const struct backend_device *d, const uint8_t *data, uint64_t at,
                         uint64_t size)
{
    return size <= d->host_piece ? size : cuda_host_piece(d, data + at, size - at);
}

/* Ends the registrations up to byte `end`, which is where a registration begins or the memory
 * ends. */
static void unregister_until(struct backend_device *d, uint8_t *data, uint64_t end, uint64_t size)
{
    for (uint64_t at = 0; at < end; at += piece_at(d, data, at, size)) {
        d->cu.MemHostUnregister(data + at);
    }
}

/* Registers all of the memory or nothing. */
static int register_all(struct backend_device *d, uint8_t *data, uint64_t size, unsigned flags,
                        struct err *e)
{
    uint64_t at = 0;
    int rc = 0;
    atomic_fetch_add_explicit(&d->registering, 1, memory_order_relaxed);
    while (at < size && rc == 0) {
        uint64_t n = piece_at(d, data, at, size);
        rc = CUDA_CALL(&d->cu, e, MemHostRegister, data + at, n, flags);
        at += rc == 0 ? n : 0;
    }
    if (rc != 0) {
        unregister_until(d, data, at, size);
    }
    atomic_fetch_sub_explicit(&d->registering, 1, memory_order_relaxed);
    return rc;
}

/* Kernels reach it, too. Falls back to a read-only registration, for memory that this process may
 * only read. */
static int register_host(struct backend_device *d, void *data, size_t size, bool writes,
                         struct err *e)
{
    int rc = host_prepare(d, data, size, e);
    rc = rc == 0 ? register_all(d, data, size, CU_MEMHOSTREGISTER_DEVICEMAP, e) : rc;
    if (rc != 0 && !writes && d->register_read) {
        rc = register_all(d, data, size, CU_MEMHOSTREGISTER_READ_ONLY, e);
    }
    return rc;
}

/* May run in another thread than the rest. */
static void unregister_host(struct backend_device *d, void *data, size_t size)
{
    (void)d->cu.CtxSetCurrent(d->context);
    unregister_until(d, data, size, size);
}

static uint64_t host_slice(const struct backend_device *d, const void *data, uint64_t size,
                           uint64_t at)
{
    return piece_at(d, data, at, size);
}

/* Kernels reach registered memory over the bus. Pieces are contiguous for them if the addresses are
 * the host's. The driver may give others, although this device could use the host's, if it sees
 * another device that could not. */
static int import_host(struct backend_device *d, void *data, size_t size,
                       struct backend_block **ret_block, uint64_t *ret_align, struct err *e)
{
    struct backend_block *b = calloc(1, sizeof *b);
    if (!b) {
        return err_set(e, ERR_NOMEM, "no memory for a block of host memory");
    }
    b->size = size;
    b->host = true;
    int rc = CUDA_CALL(&d->cu, e, MemHostGetDevicePointer, &b->address, data, 0);
    bool pieces = piece_at(d, data, 0, size) < size;
    if (rc == 0 && pieces && b->address != (CUdeviceptr)(uintptr_t)data) {
        rc = err_set(e, ERR_UNSUPPORTED, "the device has other addresses than the host");
    }
    if (rc != 0) {
        free(b);
        return rc;
    }
    *ret_block = b;
    *ret_align = 16; /* the widest access of a kernel */
    return 0;
}

static void release_host(struct backend_device *d, struct backend_block *b)
{
    (void)d;
    free(b);
}

const struct backend_memory_ops cuda_memory_ops = {
    .alloc = memory_alloc,
    .free = memory_free,
    .room = memory_room,
    .register_host = register_host,
    .unregister_host = unregister_host,
    .host_slice = host_slice,
    .import_host = import_host,
    .release_host = release_host,
    .alloc_managed = alloc_managed,
    .alloc_shared = cuda_alloc_shared,
    .free_shared = cuda_free_shared,
    .share = cuda_share,
};
