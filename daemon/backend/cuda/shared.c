#include <stdlib.h>

#include "daemon/backend/cuda/device.h"

/*
 * One handle for a block, created exportable: its descriptor is all that another process needs. The
 * memory lives until this process and all others have let go of it.
 */

static int usable(struct backend_device *d, struct err *e)
{
    int posix = 0;
    if (d->page == 0) {
        return err_set(e, ERR_UNSUPPORTED,
                       "only pages can be exported, and vmm=off or the device "
                       "has none");
    }
    CUresult rc = d->cu.DeviceGetAttribute(
        &posix, CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, d->id);
    return rc == CUDA_SUCCESS && posix != 0
               ? 0
               : err_set(e, ERR_UNSUPPORTED, "the device exports no memory as a descriptor");
}

static int map(struct backend_device *d, struct backend_block *b, struct err *e)
{
    const CUmemAccessDesc access = {.location = d->page_prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    int rc = CUDA_CALL(&d->cu, e, MemAddressReserve, &b->address, b->size, 0, 0, 0);
    if (rc != 0) {
        return rc;
    }
    rc = CUDA_CALL(&d->cu, e, MemMap, b->address, b->size, 0, b->shared, 0);
    if (rc == 0) {
        rc = CUDA_CALL(&d->cu, e, MemSetAccess, b->address, b->size, &access, 1);
        if (rc != 0) {
            d->cu.MemUnmap(b->address, b->size);
        }
    }
    if (rc != 0) {
        d->cu.MemAddressFree(b->address, b->size);
    }
    return rc;
}

int cuda_alloc_shared(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                      struct err *e)
{
    CUmemAllocationProp prop = d->page_prop;
    prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    int rc = usable(d, e);
    if (rc == 0 && size > d->info.max_alloc) {
        rc = err_set(e, ERR_DEVICE_MEMORY, "%llu bytes of device memory, the device has %llu",
                     (unsigned long long)size, (unsigned long long)d->info.max_alloc);
    }
    struct backend_block *b = rc == 0 ? calloc(1, sizeof *b) : NULL;
    if (!b) {
        return rc != 0 ? rc : err_set(e, ERR_NOMEM, "a block of device memory");
    }
    b->size = (size + d->page - 1) / d->page * d->page;
    rc = CUDA_CALL(&d->cu, e, MemCreate, &b->shared, b->size, &prop, 0);
    if (rc == 0) {
        rc = map(d, b, e);
        if (rc != 0) {
            d->cu.MemRelease(b->shared);
        }
    }
    if (rc != 0) {
        free(b);
        return rc;
    }
    *ret_block = b;
    return 0;
}

void cuda_free_shared(struct backend_device *d, struct backend_block *b)
{
    d->cu.MemUnmap(b->address, b->size);
    d->cu.MemAddressFree(b->address, b->size);
    d->cu.MemRelease(b->shared);
    free(b);
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
