#include "daemon/backend/opencl/opencl.h"

#define GROUP_CHOSEN 256u /* work items of a group if the launch does not give a size */
#define GROUP_SMALL  8u   /* below this size the driver chooses */

/*
 * The sub-buffers of one launch, if there is no shared virtual memory. Each is exactly the piece of
 * its argument, because the specification leaves undefined what happens when overlapping
 * sub-buffers are in use at once. They are released when the launch is enqueued; the launch itself
 * keeps them.
 */
struct subs {
    struct {
        const struct backend_block *block;
        uint64_t offset;
        uint64_t size;
        cl_mem mem;
    } item[OPENCL_ARGS_MAX];
    unsigned count;
};

static void subs_release(struct backend_device *d, struct subs *subs)
{
    while (subs->count > 0) {
        d->cl.ReleaseMemObject(subs->item[--subs->count].mem);
    }
}

/* Finds or makes a sub-buffer. Arguments with the same piece share one. */
static int subs_find(struct backend_device *d, struct subs *subs, struct backend_ref ref,
                     uint64_t size, cl_mem *ret_mem, struct err *e)
{
    for (unsigned i = 0; i < subs->count; i++) {
        if (subs->item[i].block == ref.block && subs->item[i].offset == ref.offset &&
            subs->item[i].size == size) {
            *ret_mem = subs->item[i].mem;
            return 0;
        }
    }
    int rc = opencl_sub_buffer(d, ref.block, ref.offset, size, ret_mem, e);
    if (rc == 0) {
        subs->item[subs->count].block = ref.block;
        subs->item[subs->count].offset = ref.offset;
        subs->item[subs->count].size = size;
        subs->item[subs->count++].mem = *ret_mem;
    }
    return rc;
}

static int memory_set(struct backend_device *d, cl_kernel kernel, cl_uint index,
                      const struct backend_arg *arg, struct subs *subs, struct err *e)
{
    struct backend_ref ref = arg->memory;
    if (!ref.block) {
        cl_int rc = d->cl.SetKernelArg(kernel, index, sizeof(cl_mem), NULL);
        return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clSetKernelArg", e);
    }
    if (ref.offset >= ref.block->size || arg->size > ref.block->size - ref.offset) {
        return err_set(e, ERR_RANGE, "%zu bytes at %llu of a block of %llu bytes", arg->size,
                       (unsigned long long)ref.offset, (unsigned long long)ref.block->size);
    }
    if (ref.block->svm) {
        cl_int rc = d->cl.SetKernelArgSVMPointer(kernel, index, ref.block->svm + ref.offset);
        return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clSetKernelArgSVMPointer", e);
    }
    cl_mem mem = ref.block->mem;
    uint64_t size = arg->size != 0 ? arg->size : ref.block->size - ref.offset;
    int rc = size == ref.block->size ? 0 : subs_find(d, subs, ref, size, &mem, e);
    if (rc != 0) {
        return rc;
    }
    cl_int status = d->cl.SetKernelArg(kernel, index, sizeof mem, &mem);
    return status == CL_SUCCESS ? 0 : opencl_error(status, "clSetKernelArg", e);
}

/* Does the argument's kind match the kernel? If not, a driver may use the bytes of a value as
 * the address of a buffer's handle, and crash. */
static bool kind_fits(uint8_t kind, const struct backend_arg *arg)
{
    switch (kind) {
    case OPENCL_ARG_MEMORY:
        return arg->kind == BACKEND_ARG_MEMORY;
    case OPENCL_ARG_VALUE:
        return arg->kind == BACKEND_ARG_VALUE;
    case OPENCL_ARG_LOCAL:
        return arg->kind == BACKEND_ARG_LOCAL;
    default:
        return kind == OPENCL_ARG_ANY;
    }
}

static int arg_set(struct backend_device *d, const struct opencl_kernel *k, cl_uint index,
                   const struct backend_arg *arg, struct subs *subs, struct err *e)
{
    static const char *const names[] = {"memory", "a value", "local memory"};
    if (!kind_fits(k->kind[index], arg)) {
        return err_set(e, ERR_ARG_TYPE, "the kernel takes something else than %s",
                       names[arg->kind]);
    }
    if (arg->kind == BACKEND_ARG_MEMORY) {
        return memory_set(d, k->kernel, index, arg, subs, e);
    }
    cl_int rc = d->cl.SetKernelArg(k->kernel, index, arg->size,
                                   arg->kind == BACKEND_ARG_VALUE ? arg->value : NULL);
    return rc == CL_SUCCESS ? 0 : opencl_error(rc, "clSetKernelArg", e);
}

static int args_set(struct backend_device *d, const struct opencl_kernel *k,
                    const struct backend_launch *launch, struct subs *subs, struct err *e)
{
    if (launch->arg_count != k->arg_count) {
        return err_set(e, ERR_ARG_COUNT, "kernel %s: %u arguments given, %u taken", k->name,
                       launch->arg_count, k->arg_count);
    }
    for (unsigned i = 0; i < launch->arg_count; i++) {
        int rc = arg_set(d, k, i, &launch->args[i], subs, e);
        if (rc != 0) {
            err_wrap(e, "kernel %s: argument %u", k->name, i);
            if (e) {
                e->arg = (int)i;
            }
            return rc;
        }
    }
    return 0;
}

static size_t divisor(uint64_t global, size_t limit)
{
    size_t n = 1;
    while (n * 2 <= limit && global % (n * 2) == 0) {
        n *= 2;
    }
    return n;
}

/*
 * Chooses a local size. Drivers compile a kernel anew for each local size, so few sizes are used:
 * powers of two that divide the global size. Returns false if the driver should choose.
 */
static bool local_choose(const struct backend_device *d, const struct opencl_kernel *k,
                         const struct backend_launch *launch, unsigned dims, size_t ret_local[3])
{
    size_t left = GROUP_CHOSEN < k->max_group ? GROUP_CHOSEN : k->max_group;
    size_t total = 1;
    for (unsigned i = 0; i < 3; i++) {
        size_t limit = dims > 1 && i == 0 && left > 16 ? left / 16 : left;
        limit = limit < d->info.max_local[i] ? limit : d->info.max_local[i];
        ret_local[i] = i < dims ? divisor(launch->global[i], limit) : 1;
        left /= ret_local[i];
        total *= ret_local[i];
    }
    return total >= GROUP_SMALL;
}

/* The local size to pass; NULL: the driver chooses. */
static const size_t *local_size(const struct backend_device *d, const struct opencl_kernel *k,
                                const struct backend_launch *launch, unsigned dims, size_t local[3])
{
    if (launch->local[0] || launch->local[1] || launch->local[2]) {
        for (unsigned i = 0; i < 3; i++) {
            local[i] = launch->local[i] ? launch->local[i] : 1;
        }
        return local;
    }
    if (k->required_local[0]) {
        return k->required_local;
    }
    return local_choose(d, k, launch, dims, local) ? local : NULL;
}

static unsigned dims_of(const struct backend_launch *launch)
{
    return launch->global[2] > 1 ? 3 : launch->global[1] > 1 ? 2 : 1;
}

/* For a launch, lack of resources means registers or local memory. */
static int launch_error(cl_int status, const char *entry, struct err *e)
{
    int code = opencl_error(status, "clEnqueueNDRangeKernel", e);
    if (status == CL_OUT_OF_RESOURCES) {
        code = ERR_LAUNCH;
    }
    if (e) {
        e->code = code;
    }
    err_wrap(e, "kernel %s", entry);
    return code;
}

static int enqueue(struct backend_device *d, cl_command_queue queue, const struct opencl_kernel *k,
                   const struct backend_launch *launch, cl_event *ret_event, struct err *e)
{
    size_t global[3];
    size_t local[3];
    for (unsigned i = 0; i < 3; i++) {
        if (launch->global[i] == 0) {
            return err_set(e, ERR_LAUNCH, "kernel %s: no work items in dimension %u", k->name, i);
        }
        global[i] = launch->global[i];
    }
    unsigned dims = dims_of(launch);
    const size_t *chosen = local_size(d, k, launch, dims, local);
    /* the driver refuses a group that is larger than 1 in a dimension that is not passed */
    dims = chosen && (chosen[1] > 1 || chosen[2] > 1) ? 3 : dims;
    cl_int status = d->cl.EnqueueNDRangeKernel(queue, k->kernel, dims, NULL, global, chosen, 0,
                                               NULL, ret_event);
    return status == CL_SUCCESS ? 0 : launch_error(status, k->name, e);
}

int opencl_launch(struct backend_device *d, cl_command_queue queue, struct backend_module *m,
                  const char *entry, const struct backend_launch *launch, cl_event *ret_event,
                  struct err *e)
{
    struct opencl_kernel *k = NULL;
    struct subs subs = {.count = 0};
    int rc = opencl_kernel_find(m, entry, &k, e);
    if (rc != 0) {
        return rc;
    }
    rc = args_set(d, k, launch, &subs, e);
    rc = rc == 0 ? enqueue(d, queue, k, launch, ret_event, e) : rc;
    subs_release(d, &subs);
    return rc;
}
