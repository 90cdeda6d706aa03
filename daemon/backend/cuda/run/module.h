/* A loaded module and its kernels, sorted by name. */
#ifndef BACKEND_CUDA_RUN_MODULE_H
#define BACKEND_CUDA_RUN_MODULE_H

#include "daemon/backend/cuda/driver/device.h"

#define CUDA_PARAMS_MAX BACKEND_ARGS_MAX

struct cuda_kernel {
    const char *name; /* the driver's string; valid while the module is loaded */
    CUfunction function;
    struct bytes kinds;   /* kinds of its parameters, see binary.h; the module owns them */
    bool described;       /* the members below were queried, which happens at first use */
    unsigned param_count; /* above CUDA_PARAMS_MAX the kernel cannot be launched */
    uint32_t param_size[CUDA_PARAMS_MAX]; /* bytes */
    uint64_t max_group;  /* limit of work items in a group, as the kernel's resources allow */
    uint64_t shared;     /* bytes of shared memory that it declares */
    uint64_t best_group; /* work items, for launches without shared memory; 0: not queried yet */
    uint64_t shared_allowed; /* bytes of dynamic shared memory that are allowed now */
};

struct cuda_variable {
    struct backend_block block;
    struct cuda_variable *next;
    char name[]; /* NUL-terminated */
};

struct backend_module {
    struct backend_device *device;
    CUmodule module;
    struct cuda_variable *variables; /* owned: the variables that were asked for */
    uint8_t *kinds;                  /* owned; kernels[].kinds point into it */
    struct cuda_kernel *kernels;     /* owned */
    unsigned kernel_count;
};

/* Finds a kernel and queries its properties. ERR_NOT_FOUND; ERR_LIMIT if it has too many
 * parameters. */
int cuda_kernel_find(struct backend_module *m, const char *entry, struct cuda_kernel **ret_kernel,
                     struct err *e);
/* Is there a kernel of that name? */
bool cuda_module_has(const struct backend_module *m, const char *entry);
/* Work items of the best group for the kernel. For launches without dynamic shared memory, which
 * are most, the driver is queried once. */
int cuda_kernel_group(const struct backend_device *d, struct cuda_kernel *k, uint64_t shared,
                      uint64_t *ret_items, struct err *e);

#endif
