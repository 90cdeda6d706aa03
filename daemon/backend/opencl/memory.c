#include <stdlib.h>
#include <sys/mman.h>

#include "daemon/backend/opencl/opencl.h"

static size_t block_align(const struct backend_device *d, uint64_t size)
{
    return d->huge_pages && size >= OPENCL_HUGE_PAGE ? OPENCL_HUGE_PAGE : BACKEND_ALIGN;
}

/* Shared virtual memory is a plain pointer, so arguments can have any offset. Drivers align it
 * to less than the contract requires. On a processor it is the host's memory, and kernels that
 * stream through much of it wait for the page table. Huge pages avoid most of that. The memory
 * also works without them, so a failure of madvise does not matter. */
static int block_fill(struct backend_device *d, struct backend_block *b, struct err *e)
{
    if (d->svm) {
        size_t align = block_align(d, b->size);
        b->base = d->cl.SVMAlloc(d->context, CL_MEM_READ_WRITE, b->size + align, 0);
        if (!b->base) {
            return err_set(e, ERR_DEVICE_MEMORY, "clSVMAlloc: no room for %llu bytes",
                           (unsigned long long)b->size);
        }
        b->svm = b->base + (-(uintptr_t)b->base & (align - 1));
        /* without the odd end, whose page may contain other data */
        if (align == OPENCL_HUGE_PAGE) {
            (void)madvise(b->svm, b->size & ~(uint64_t)(align - 1), MADV_HUGEPAGE);
        }
        return 0;
    }
    cl_int rc = CL_SUCCESS;
    b->mem = d->cl.CreateBuffer(d->context, CL_MEM_READ_WRITE, b->size, NULL, &rc);
    return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clCreateBuffer", e);
}

static int memory_alloc(struct backend_device *d, uint64_t size, struct backend_block **ret_block,
                        struct err *e)
{
    if (size == 0) {
        return err_set(e, ERR_INVALID, "a block of 0 bytes");
    }
    if (size > d->info.max_alloc || size > d->limit - d->used) {
        return err_set(e, ERR_DEVICE_MEMORY,
                       "%llu bytes wanted, %llu free, %llu at most in one block",
                       (unsigned long long)size, (unsigned long long)(d->limit - d->used),
                       (unsigned long long)d->info.max_alloc);
    }
    struct backend_block *b = calloc(1, sizeof *b);
    if (!b) {
        return err_set(e, ERR_NOMEM, "no memory for the record of a block of device memory");
    }
    b->size = size;
    int rc = block_fill(d, b, e);
    if (rc != 0) {
        free(b);
        return rc;
    }
    d->used += size;
    *ret_block = b;
    return 0;
}

static void memory_free(struct backend_device *d, struct backend_block *b)
{
    if (!b) {
        return;
    }
    if (b->svm) {
        d->cl.SVMFree(d->context, b->base);
    } else {
        d->cl.ReleaseMemObject(b->mem);
    }
    d->used -= b->size;
    free(b);
}

int opencl_sub_buffer(struct backend_device *d, const struct backend_block *b, uint64_t offset,
                      uint64_t size, cl_mem *ret_mem, struct err *e)
{
    const cl_buffer_region region = {offset, size};
    cl_int rc = CL_SUCCESS;
    if (offset % d->base_align != 0) {
        return err_set(e, ERR_UNSUPPORTED,
                       "offset %llu: arguments on this device start at multiples of %llu bytes",
                       (unsigned long long)offset, (unsigned long long)d->base_align);
    }
    cl_mem mem = d->cl.CreateSubBuffer(b->mem, CL_MEM_READ_WRITE, CL_BUFFER_CREATE_TYPE_REGION,
                                       &region, &rc);
    if (rc != CL_SUCCESS) {
        return opencl_error(rc, "clCreateSubBuffer", e);
    }
    *ret_mem = mem;
    return 0;
}

/* On a processor, a buffer over the host's memory is that memory. On other devices the driver
 * keeps a copy, which the host would have to map. */
static int import_host(struct backend_device *d, void *data, size_t size,
                       struct backend_block **ret_block, uint64_t *ret_align, struct err *e)
{
    if (!d->info.cpu) {
        return err_set(e, ERR_UNSUPPORTED, "the device keeps copies of host memory");
    }
    struct backend_block *b = calloc(1, sizeof *b);
    if (!b) {
        return err_set(e, ERR_NOMEM, "no memory for a block of host memory");
    }
    cl_int rc = CL_SUCCESS;
    b->size = size;
    b->host = data;
    b->mem =
        d->cl.CreateBuffer(d->context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, size, data, &rc);
    if (rc != CL_SUCCESS) {
        free(b);
        return opencl_error(rc, "clCreateBuffer", e);
    }
    *ret_block = b;
    *ret_align = d->base_align;
    return 0;
}

static void release_host(struct backend_device *d, struct backend_block *b)
{
    if (b) {
        d->cl.ReleaseMemObject(b->mem);
        free(b);
    }
}

/* There is no registration: devices with shared virtual memory copy any host memory at full
 * speed. */
const struct backend_memory_ops opencl_memory_ops = {
    .alloc = memory_alloc,
    .free = memory_free,
    .import_host = import_host,
    .release_host = release_host,
};
