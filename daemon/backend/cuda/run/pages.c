#include <stdlib.h>

#include "daemon/backend/cuda/driver/device.h"

/*
 * A handle is mapped and unmapped as a whole: a mapping cannot be unmapped in part, and no offset
 * into a handle can be mapped. It is kept while its memory lives, so that the memory can move.
 */

#define HANDLE_MAX (UINT64_C(1) << 30)

static uint64_t page_bytes(struct backend_device *d)
{
    return d->page;
}

/* A granularity above HANDLE_MAX leaves one size. */
static uint64_t handle_max(struct backend_device *d)
{
    return d->page > HANDLE_MAX ? d->page : HANDLE_MAX;
}

static int reserve(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e)
{
    struct backend_block *b = calloc(1, sizeof *b);
    if (!b) {
        return err_set(e, ERR_NOMEM, "no memory for a range of addresses");
    }
    b->size = bytes;
    int rc = CUDA_CALL(&d->cu, e, MemAddressReserve, &b->address, bytes, 0, 0, 0);
    if (rc != 0) {
        free(b);
        return err_wrap(e, "%llu bytes of addresses", (unsigned long long)bytes);
    }
    *ret_range = b;
    return 0;
}

static void release(struct backend_device *d, struct backend_block *range)
{
    d->cu.MemAddressFree(range->address, range->size);
    free(range);
}

/* The driver chooses the handles, and nothing says that 0 is not a handle. */
static uint64_t name_of(CUmemGenericAllocationHandle handle)
{
    return handle + 1;
}

static int create(struct backend_device *d, uint64_t bytes, uint64_t *ret_handle, struct err *e)
{
    CUmemGenericAllocationHandle handle = 0;
    int rc = CUDA_CALL(&d->cu, e, MemCreate, &handle, bytes, &d->page_prop, 0);
    if (rc == 0) {
        *ret_handle = name_of(handle);
    }
    return rc;
}

static void destroy(struct backend_device *d, uint64_t handle, uint64_t bytes)
{
    (void)bytes;
    d->cu.MemRelease(handle - 1);
}

static int map(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t handle,
               uint64_t bytes, struct err *e)
{
    return CUDA_CALL(&d->cu, e, MemMap, range->address + at, bytes, 0, handle - 1, 0);
}

static int unmap(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    return CUDA_CALL(&d->cu, e, MemUnmap, range->address + at, bytes);
}

static int allow(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    const CUmemAccessDesc access = {.location = d->page_prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return CUDA_CALL(&d->cu, e, MemSetAccess, range->address + at, bytes, &access, 1);
}

static int enter(struct backend_device *d, struct err *e)
{
    return CUDA_CALL(&d->cu, e, CtxSetCurrent, d->context);
}

/* ---- memory that other processes map --------------------------------------------------------- */

/* The block has one handle, created exportable: another process needs only its descriptor. The
 * memory lives until this process and all others have released it. */
int cuda_alloc_shared(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                      struct err *e)
{
    CUmemAllocationProp prop = d->page_prop;
    struct backend_block *b = NULL;
    if (d->page == 0 || !d->exports) {
        return err_set(e, ERR_UNSUPPORTED, "only pages can be exported, and %s",
                       d->page == 0 ? "vmm=off or the device has none"
                                    : "the device gives no descriptors of them");
    }
    if (size > d->info.max_alloc) {
        return err_set(e, ERR_DEVICE_MEMORY, "%llu bytes of device memory, the device has %llu",
                       (unsigned long long)size, (unsigned long long)d->info.max_alloc);
    }
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    int rc = reserve(d, (size + d->page - 1) / d->page * d->page, &b, e);
    if (rc != 0) {
        return rc;
    }
    rc = CUDA_CALL(&d->cu, e, MemCreate, &b->shared, b->size, &prop, 0);
    bool made = rc == 0;
    rc = made ? CUDA_CALL(&d->cu, e, MemMap, b->address, b->size, 0, b->shared, 0) : rc;
    bool mapped = rc == 0;
    rc = mapped ? allow(d, b, 0, b->size, e) : rc;
    if (rc == 0) {
        *ret_block = b;
        return 0;
    }
    if (mapped) {
        d->cu.MemUnmap(b->address, b->size);
    }
    if (made) {
        d->cu.MemRelease(b->shared);
    }
    release(d, b);
    return rc;
}

void cuda_free_shared(struct backend_device *d, struct backend_block *b)
{
    d->cu.MemUnmap(b->address, b->size);
    d->cu.MemRelease(b->shared);
    release(d, b);
}

int cuda_share(struct backend_device *d, struct backend_block *b, int *ret_fd, uint64_t *ret_bytes,
               struct err *e)
{
    int fd = -1;
    int rc = CUDA_CALL(&d->cu, e, MemExportToShareableHandle, &fd, b->shared,
                       CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
    if (rc == 0) {
        *ret_fd = fd;
        *ret_bytes = b->size;
    }
    return rc;
}

const struct backend_page_ops cuda_page_ops = {
    .page_bytes = page_bytes,
    .handle_max = handle_max,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .unmap = unmap,
    .access = allow,
    .enter = enter,
};
