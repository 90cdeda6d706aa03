#include <stdlib.h>

#include "daemon/backend/cuda/device.h"

/*
 * Each page is a handle of its own: a mapping cannot be taken away in part, and no offset into a
 * handle can be mapped. The handle is kept while the page lives, so that it can move.
 */

static uint64_t page_bytes(struct backend_device *d)
{
    return d->page;
}

static int reserve(struct backend_device *d, uint64_t bytes, struct backend_block **ret_range,
                   struct err *e)
{
    struct backend_block *b = calloc(1, sizeof *b);
    if (!b) {
        return err_set(e, ERR_NOMEM, "a range of addresses");
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

/* The names of handles are the driver's: nothing says that 0 is none of them. */
static uint64_t name_of(CUmemGenericAllocationHandle handle)
{
    return handle + 1;
}

static int create(struct backend_device *d, uint64_t *ret_page, struct err *e)
{
    CUmemGenericAllocationHandle handle = 0;
    int rc = CUDA_CALL(&d->cu, e, MemCreate, &handle, d->page, &d->page_prop, 0);
    if (rc == 0) {
        *ret_page = name_of(handle);
    }
    return rc;
}

static void destroy(struct backend_device *d, uint64_t page)
{
    d->cu.MemRelease(page - 1);
}

static int map(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t page,
               struct err *e)
{
    return CUDA_CALL(&d->cu, e, MemMap, range->address + at, d->page, 0, page - 1, 0);
}

static int unmap(struct backend_device *d, struct backend_block *range, uint64_t at, struct err *e)
{
    return CUDA_CALL(&d->cu, e, MemUnmap, range->address + at, d->page);
}

static int allow(struct backend_device *d, struct backend_block *range, uint64_t at, uint64_t bytes,
                 struct err *e)
{
    const CUmemAccessDesc access = {.location = d->page_prop.location,
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    return CUDA_CALL(&d->cu, e, MemSetAccess, range->address + at, bytes, &access, 1);
}

const struct backend_page_ops cuda_page_ops = {
    .page_bytes = page_bytes,
    .reserve = reserve,
    .release = release,
    .create = create,
    .destroy = destroy,
    .map = map,
    .unmap = unmap,
    .access = allow,
    .aliases = true,
};
