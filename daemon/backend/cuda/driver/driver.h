/*
 * The CUDA driver as a table of functions, resolved at run time: nothing of CUDA is linked.
 *
 * An entry's number is the ABI that is asked of cuGetProcAddress and the suffix of its type in
 * cudaTypedefs.h, so that prototype and function always belong together, whatever the headers'
 * own default is. A driver without a REQUIRED entry is no driver; an OPTIONAL one may be NULL, and
 * its caller handles that.
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

/* The first branch of the driver that serves this CUDA's major version, with what is REQUIRED. */
#define CUDA_DRIVER_NEEDED (CUDA_VERSION >= 13000 ? 580 : 550)

/* Entries that the oldest headers lack. */
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

/* Whether a driver that reports CUDA `version` (13000: 13.0) runs code built with `built`. Minor
 * versions of one major version are compatible, so 13.1 runs on the driver of 13.0; the error for a
 * missing function names it. */
bool cuda_driver_serves(int version, int built);

/* Opens libcuda.so.1, which stays open until the process ends, resolves the table and initialises
 * the driver. ERR_NO_DEVICE with the reason and what to install where there is none, where its
 * major version is older than the toolkit's this was built with, or where it has no device. Blocks.
 */
int cuda_driver_load(struct cuda_driver *ret_driver, struct err *e);
/* The same with one device: an instance of MIG ("MIG-<UUID>"), of which a process sees no other
 * one, or a GPU ("GPU-<UUID>") that it may not see for instances beside it. It sets
 * CUDA_VISIBLE_DEVICES, so it counts only where the process has not initialised the driver before.
 * ERR_NO_DEVICE where there is no such device. */
int cuda_driver_load_named(const char *name, struct cuda_driver *ret_driver, struct err *e);

#endif
