/*
 * The built-in kernels as C functions, generated from the same sources at build time. Simulated
 * devices and test doubles of drivers execute them. One call runs a whole launch, work item by work
 * item; items of a group that meet at barriers run as coroutines. Slow and exact; not for
 * production work.
 * Thread: any; allocates one group's stacks per call.
 */
#ifndef KERNELS_HOST_H
#define KERNELS_HOST_H

#include "common/err.h"

/* args[i]: the address of an array or of a scalar's value. The user's arguments come first, then
 * the named sizes (uint64_t each), as in compiled code. */
typedef int (*host_kernel_fn)(const uint64_t global[3], const uint64_t local[3], void *const *args,
                              unsigned arg_count, struct err *e);

struct host_kernel {
    const char *entry; /* "axpy_f32" */
    unsigned arg_count;
    host_kernel_fn run;
};

const struct host_kernel *host_kernel_find(const char *entry); /* NULL if none */
unsigned host_kernel_count(void);
const struct host_kernel *host_kernel_at(unsigned index);

#endif
