/*
 * The CUDA driver as a table of functions, resolved at run time: nothing of CUDA is linked.
 *
 * An entry's number is the ABI that cuGetProcAddress is asked for and the suffix of its type in
 * cudaTypedefs.h. Prototype and function therefore match, whatever the default of the headers is. A
 * driver that lacks a REQUIRED entry is not used; an OPTIONAL entry may be NULL, which its caller
 * handles.
 */
#ifndef BACKEND_CUDA_DRIVER_DRIVER_H
#define BACKEND_CUDA_DRIVER_DRIVER_H

#include <cuda.h>
#include <cudaTypedefs.h>
#include <stdbool.h>

#include "common/err.h"

#if CUDA_VERSION < 12040
#error "the CUDA back end needs the headers of CUDA 12.4 or later"
#endif

/* The first branch of the driver that serves this major version of CUDA with all REQUIRED
 * entries. */
#define CUDA_DRIVER_NEEDED (CUDA_VERSION >= 13000 ? 580 : 550)

/* Entries that the oldest supported headers lack. */
#if CUDA_VERSION >= 12080
#define CUDA_ENTRIES_YOUNG(X) X(MemcpyBatchAsync, 12080, OPTIONAL)
#else
#define CUDA_ENTRIES_YOUNG(X)
#endif

#define CUDA_ENTRIES(X)                                                                            \
    X(Init, 2000, REQUIRED)                                                                        \
    X(DriverGetVersion, 2020, REQUIRED)                                                            \
    X(DeviceGetCount, 2000, REQUIRED)                                                              \
    X(DeviceGet, 2000, REQUIRED)                                                                   \
    X(DeviceGetName, 2000, REQUIRED)                                                               \
    X(DeviceGetUuid, 11040, REQUIRED)                                                              \
    X(DeviceTotalMem, 3020, REQUIRED)                                                              \
    X(DeviceGetAttribute, 2000, REQUIRED)                                                          \
    X(DevicePrimaryCtxRetain, 7000, REQUIRED)                                                      \
    X(DevicePrimaryCtxRelease, 11000, REQUIRED)                                                    \
    X(CtxSetCurrent, 4000, REQUIRED)                                                               \
    X(CtxGetStreamPriorityRange, 5050, REQUIRED)                                                   \
    X(StreamCreateWithPriority, 5050, REQUIRED)                                                    \
    X(StreamDestroy, 4000, REQUIRED)                                                               \
    X(StreamWaitEvent, 3020, REQUIRED)                                                             \
    X(StreamSynchronize, 2000, REQUIRED)                                                           \
    X(EventCreate, 2000, REQUIRED)                                                                 \
    X(EventRecord, 2000, REQUIRED)                                                                 \
    X(EventQuery, 2000, REQUIRED)                                                                  \
    X(EventSynchronize, 2000, REQUIRED)                                                            \
    X(EventElapsedTime, 2000, REQUIRED)                                                            \
    X(EventDestroy, 4000, REQUIRED)                                                                \
    X(LaunchHostFunc, 10000, OPTIONAL)                                                             \
    X(MemGetInfo, 3020, REQUIRED)                                                                  \
    X(MemAlloc, 3020, REQUIRED)                                                                    \
    X(MemAllocManaged, 6000, REQUIRED)                                                             \
    X(MemPrefetchAsync, 12020, REQUIRED)                                                           \
    X(MemFree, 3020, REQUIRED)                                                                     \
    X(MemGetAllocationGranularity, 10020, REQUIRED)                                                \
    X(MemAddressReserve, 10020, REQUIRED)                                                          \
    X(MemAddressFree, 10020, REQUIRED)                                                             \
    X(MemCreate, 10020, REQUIRED)                                                                  \
    X(MemRelease, 10020, REQUIRED)                                                                 \
    X(MemMap, 10020, REQUIRED)                                                                     \
    X(MemUnmap, 10020, REQUIRED)                                                                   \
    X(MemSetAccess, 10020, REQUIRED)                                                               \
    X(MemExportToShareableHandle, 10020, REQUIRED)                                                 \
    X(MemHostRegister, 6050, REQUIRED)                                                             \
    X(MemHostUnregister, 4000, REQUIRED)                                                           \
    X(MemHostGetDevicePointer, 3020, REQUIRED)                                                     \
    X(MemcpyHtoDAsync, 3020, REQUIRED)                                                             \
    X(MemcpyDtoHAsync, 3020, REQUIRED)                                                             \
    X(MemcpyDtoDAsync, 3020, REQUIRED)                                                             \
    X(MemsetD8Async, 3020, REQUIRED)                                                               \
    X(MemsetD16Async, 3020, REQUIRED)                                                              \
    X(MemsetD32Async, 3020, REQUIRED)                                                              \
    X(MemsetD2D32Async, 3020, REQUIRED)                                                            \
    X(ModuleLoadDataEx, 2010, REQUIRED)                                                            \
    X(ModuleUnload, 2000, REQUIRED)                                                                \
    X(ModuleGetFunctionCount, 12040, REQUIRED)                                                     \
    X(ModuleEnumerateFunctions, 12040, REQUIRED)                                                   \
    X(ModuleGetGlobal, 3020, REQUIRED)                                                             \
    X(FuncLoad, 12040, REQUIRED)                                                                   \
    X(FuncGetName, 12030, REQUIRED)                                                                \
    X(FuncGetAttribute, 2020, REQUIRED)                                                            \
    X(FuncSetAttribute, 9000, REQUIRED)                                                            \
    X(FuncGetParamInfo, 12040, REQUIRED)                                                           \
    X(OccupancyMaxPotentialBlockSize, 6050, REQUIRED)                                              \
    X(OccupancyMaxActiveBlocksPerMultiprocessor, 6050, REQUIRED)                                   \
    X(LaunchKernel, 4000, REQUIRED)                                                                \
    CUDA_ENTRIES_YOUNG(X)

struct cuda_driver {
#define X(name, abi, need) PFN_cu##name##_v##abi name;
    CUDA_ENTRIES(X)
#undef X
};

/* Can a driver that reports CUDA `version` (13000: 13.0) run code built with `built`? Minor
 * versions of a major version are compatible, so 13.1 runs on the driver of 13.0. If a function
 * is missing, the error names it. */
bool cuda_driver_serves(int version, int built);

/* Opens libcuda.so.1, resolves the table and initialises the driver, which remains loaded until
 * the process ends. ERR_NO_DEVICE, with the reason and what to install, if there is no driver,
 * its major version is older than that of the toolkit of this build, or it has no device.
 * Blocks. */
int cuda_driver_load(struct cuda_driver *ret_driver, struct err *e);
/* Like cuda_driver_load, but shows one device only: an instance of MIG ("MIG-<UUID>"), of which
 * a process sees only one, or a GPU ("GPU-<UUID>") that instances beside it may hide. Sets
 * CUDA_VISIBLE_DEVICES, which has an effect only before the process initialises the driver.
 * ERR_NO_DEVICE if there is no such device. */
int cuda_driver_load_named(const char *name, struct cuda_driver *ret_driver, struct err *e);

#endif
