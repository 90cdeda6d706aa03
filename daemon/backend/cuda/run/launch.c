#include <stdio.h>

#include "daemon/backend/cuda/run/binary.h"
#include "daemon/backend/cuda/run/module.h"
#include "daemon/backend/cuda/run/stream.h"

/* ---- arguments ------------------------------------------------------------------------------- */

static int arg_check(const struct cuda_kernel *k, unsigned i, const struct backend_arg *arg,
                     struct err *e)
{
    char kind = i < k->kinds.size ? (char)k->kinds.data[i] : CUDA_KIND_ANY;
    size_t size = arg->kind == BACKEND_ARG_MEMORY ? sizeof(CUdeviceptr) : arg->size;
    if (arg->kind == BACKEND_ARG_LOCAL) {
        return err_set(e, ERR_ARG_TYPE,
                       "local memory is no argument on CUDA: give the launch shared bytes");
    }
    if (kind == CUDA_KIND_MEMORY && arg->kind != BACKEND_ARG_MEMORY) {
        return err_set(e, ERR_ARG_TYPE, "the kernel takes memory, not a value");
    }
    if (kind == CUDA_KIND_VALUE && arg->kind != BACKEND_ARG_VALUE) {
        return err_set(e, ERR_ARG_TYPE, "the kernel takes a value, not memory");
    }
    if (size != k->param_size[i]) {
        return err_set(e, ERR_ARG_TYPE, "%zu bytes given, the kernel takes %u", size,
                       k->param_size[i]);
    }
    return 0;
}

static int address_set(struct backend_ref ref, CUdeviceptr *ret_address, struct err *e)
{
    if (ref.block && ref.offset >= ref.block->size) {
        return err_set(e, ERR_RANGE, "offset %llu in a block of %llu bytes",
                       (unsigned long long)ref.offset, (unsigned long long)ref.block->size);
    }
    *ret_address = ref.block ? ref.block->address + ref.offset : 0;
    return 0;
}

/* Fills `param` with pointers to the values, which the driver reads during the launch. */
static int args_set(const struct cuda_kernel *k, const struct backend_launch *launch,
                    CUdeviceptr address[CUDA_PARAMS_MAX], void *param[CUDA_PARAMS_MAX],
                    struct err *e)
{
    if (launch->arg_count != k->param_count) {
        return err_set(e, ERR_ARG_COUNT, "%u arguments given, %u taken", launch->arg_count,
                       k->param_count);
    }
    for (unsigned i = 0; i < launch->arg_count; i++) {
        const struct backend_arg *arg = &launch->args[i];
        int rc = arg_check(k, i, arg, e);
        if (rc == 0 && arg->kind == BACKEND_ARG_MEMORY) {
            rc = address_set(arg->memory, &address[i], e);
            param[i] = &address[i];
        } else {
            param[i] = (void *)(uintptr_t)arg->value;
        }
        if (rc != 0) {
            err_wrap(e, "argument %u", i);
            if (e) {
                e->arg = (int)i;
            }
            return rc;
        }
    }
    return 0;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* The largest divisor of `global` within the limit, preferably a multiple of a warp. */
static uint64_t divisor(uint64_t global, uint64_t limit, uint64_t warp)
{
    uint64_t best = 1;
    for (uint64_t n = limit; n > 1; n--) {
        if (global % n == 0) {
            best = best > 1 ? best : n;
            if (n % warp == 0) {
                return n;
            }
        }
    }
    return best;
}

/* Chooses a group that divides the global size, so kernels need not check for excess work items. */
static int group_choose(const struct backend_device *d, struct cuda_kernel *k,
                        const struct backend_launch *launch, uint64_t group[3], struct err *e)
{
    uint64_t left = 0;
    int rc = cuda_kernel_group(d, k, launch->shared, &left, e);
    if (rc != 0) {
        return rc;
    }
    for (unsigned i = 0; i < 3; i++) {
        uint64_t most = left < d->info.max_local[i] ? left : d->info.max_local[i];
        group[i] = divisor(launch->global[i], most, i == 0 ? d->warp : 1);
        left /= group[i];
    }
    return 0;
}

static int group_check(const struct backend_device *d, const struct cuda_kernel *k,
                       const uint64_t group[3], struct err *e)
{
    uint64_t items = 1;
    for (unsigned i = 0; i < 3; i++) {
        if (group[i] > d->info.max_local[i]) {
            return err_set(
                e, ERR_LAUNCH, "a group of %llu work items in dimension %u, %llu at most",
                (unsigned long long)group[i], i, (unsigned long long)d->info.max_local[i]);
        }
        items *= group[i];
    }
    if (items > k->max_group) {
        return err_set(e, ERR_LAUNCH,
                       "a group of %llu work items, this kernel's registers and shared memory "
                       "allow %llu: make it smaller",
                       (unsigned long long)items, (unsigned long long)k->max_group);
    }
    return 0;
}

static int grid_of(const struct backend_device *d, const struct backend_launch *launch,
                   const uint64_t group[3], unsigned grid[3], struct err *e)
{
    for (unsigned i = 0; i < 3; i++) {
        uint64_t global = launch->global[i];
        if (global % group[i] != 0) {
            return err_set(e, ERR_LAUNCH,
                           "%llu work items in dimension %u are no multiple of the group's %llu: "
                           "round up, and let the kernel return where its index is too large",
                           (unsigned long long)global, i, (unsigned long long)group[i]);
        }
        if (global / group[i] > d->max_grid[i]) {
            return err_set(e, ERR_LAUNCH,
                           "%llu groups in dimension %u, the device takes %llu: let each work item "
                           "do more, or use dimension 0",
                           (unsigned long long)(global / group[i]), i,
                           (unsigned long long)d->max_grid[i]);
        }
        grid[i] = (unsigned)(global / group[i]);
    }
    return 0;
}

static int sizes_set(const struct backend_device *d, struct cuda_kernel *k,
                     const struct backend_launch *launch, unsigned grid[3], uint64_t group[3],
                     struct err *e)
{
    bool given = launch->local[0] != 0 || launch->local[1] != 0 || launch->local[2] != 0;
    for (unsigned i = 0; i < 3; i++) {
        if (launch->global[i] == 0) {
            return err_set(e, ERR_LAUNCH, "no work items in dimension %u", i);
        }
        group[i] = launch->local[i] != 0 ? launch->local[i] : 1;
    }
    int rc = given ? 0 : group_choose(d, k, launch, group, e);
    rc = rc == 0 ? group_check(d, k, group, e) : rc;
    return rc == 0 ? grid_of(d, launch, group, grid, e) : rc;
}

/* A kernel that needs more than the default has to request it; it then gets all that there is. */
static int shared_allow(const struct backend_device *d, struct cuda_kernel *k, uint64_t shared,
                        struct err *e)
{
    if (shared > d->info.local_bytes || k->shared > d->info.local_bytes - shared) {
        return err_set(e, ERR_LAUNCH,
                       "%llu bytes of shared memory beside the kernel's own %llu, the device has "
                       "%llu for a group",
                       (unsigned long long)shared, (unsigned long long)k->shared,
                       (unsigned long long)d->info.local_bytes);
    }
    if (shared <= k->shared_allowed) {
        return 0;
    }
    uint64_t most = d->info.local_bytes - k->shared;
    int rc = CUDA_CALL(&d->cu, e, FuncSetAttribute, k->function,
                       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, (int)most);
    if (rc == 0) {
        k->shared_allowed = most;
    }
    return rc;
}

/* ---- the launch ------------------------------------------------------------------------------ */

static int enqueue(struct backend_stream *s, struct cuda_kernel *k,
                   const struct backend_launch *launch, struct err *e)
{
    CUdeviceptr address[CUDA_PARAMS_MAX];
    void *param[CUDA_PARAMS_MAX];
    uint64_t group[3];
    unsigned grid[3];
    int rc = args_set(k, launch, address, param, e);
    rc = rc == 0 ? shared_allow(s->device, k, launch->shared, e) : rc;
    rc = rc == 0 ? sizes_set(s->device, k, launch, grid, group, e) : rc;
    rc = rc == 0 ? cuda_stream_begin(s, e) : rc;
    if (rc != 0) {
        return rc;
    }
    CUresult cu = s->device->cu.LaunchKernel(
        k->function, grid[0], grid[1], grid[2], (unsigned)group[0], (unsigned)group[1],
        (unsigned)group[2], (unsigned)launch->shared, s->stream, param, NULL);
    rc = cuda_check(cu, "cuLaunchKernel", e);
    if (rc == ERR_INVALID) { /* for a launch this covers whatever the device did not accept */
        rc = ERR_LAUNCH;
        if (e) {
            e->code = rc;
        }
    }
    return rc;
}

int cuda_launch(struct backend_stream *s, struct backend_module *m, const char *entry,
                const struct backend_launch *launch, struct err *e)
{
    struct cuda_kernel *k = NULL;
    int rc = cuda_kernel_find(m, entry, &k, e);
    if (rc == 0) {
        rc = enqueue(s, k, launch, e);
        (void)(rc != 0 && rc != ERR_KERNEL_FAULT ? err_wrap(e, "kernel %s", k->name) : 0);
    }
    if (rc != 0) { /* a fault is not this kernel's, which did not start */
        return cuda_blame(s->blamed, rc, e);
    }
    s->device->launched = true;
    (void)snprintf(s->blamed, sizeof s->blamed, "%s", k->name);
    return 0;
}
