/*
 * The driver itself, used as a program does that has a GPU for itself: the reference for gpud.
 * Nothing of CUDA is linked. A function that cannot continue ends the program with the failed
 * call's name on stderr; the process that started the program then records the item as failed.
 * Blocks. Thread: one.
 */
#ifndef GPU_DIRECT_H
#define GPU_DIRECT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/backend/cuda/driver/driver.h"

/* What the back end has no use for; the number as in driver.h. */
#define DIRECT_ENTRIES(X)                                                                          \
    X(CtxSynchronize, 2000)                                                                        \
    X(MemHostAlloc, 2020)                                                                          \
    X(MemFreeHost, 2000)                                                                           \
    X(ModuleGetFunction, 2000)                                                                     \
    X(DeviceGetDefaultMemPool, 11020)                                                              \
    X(MemPoolSetAttribute, 11020)                                                                  \
    X(MemPoolTrimTo, 11020)                                                                        \
    X(MemAllocAsync, 11020)                                                                        \
    X(MemFreeAsync, 11020)

struct direct {
    struct cuda_driver cu;
    CUdevice device;
    CUcontext context; /* the primary one, current */
    CUstream stream;
    CUmodule module; /* the suite's kernels */
#define X(name, abi) PFN_cu##name##_v##abi name;
    DIRECT_ENTRIES(X)
#undef X
};

#define must(call)                                                                                 \
    do {                                                                                           \
        CUresult must_rc = (call);                                                                 \
        if (must_rc != CUDA_SUCCESS) {                                                             \
            direct_die(#call, (int)must_rc);                                                       \
        }                                                                                          \
    } while (0)

_Noreturn void direct_die(const char *call, int code);

/* The first device by place on the bus, a context, a stream and the kernels. */
void direct_open(struct direct *d);
void direct_close(struct direct *d);
CUfunction direct_kernel(const struct direct *d, const char *name);
/* One thread, or `groups` of 128, with one u64 as argument (ignored by kernels without
 * arguments). */
void direct_launch(const struct direct *d, CUfunction kernel, unsigned groups, uint64_t value);
void direct_wait(const struct direct *d);

/* The suite's kernels as nvcc made them: kernels.fatbin beside the program, or GPU_KERNELS. The
 * caller frees. */
void *direct_fatbin(size_t *ret_size);

#endif
