/* Translates each CUresult to its ERR_*, by one table. Thread: any. */
#ifndef BACKEND_CUDA_DRIVER_ERROR_H
#define BACKEND_CUDA_DRIVER_ERROR_H

#include <cuda.h>

#include "common/err.h"

/* "CUDA_ERROR_ASSERT"; "unknown to gpud" if the table does not have it. */
const char *cuda_error_name(CUresult rc);
/* Sets "call: CUDA_ERROR_X (n)" with the ERR_* for the result, and returns it. rc must not be
 * CUDA_SUCCESS. ERR_KERNEL_FAULT: the context is unusable; ERR_DEVICE_LOST: the device is. */
int cuda_error(CUresult rc, const char *call, struct err *e);

/* Returns 0 for CUDA_SUCCESS, else as cuda_error. */
static inline int cuda_check(CUresult rc, const char *call, struct err *e)
{
    return rc == CUDA_SUCCESS ? 0 : cuda_error(rc, call, e);
}

/* CUDA_CALL(driver, e, MemFree, address): calls a function by its name in driver.h, and checks
 * it. */
#define CUDA_CALL(driver, e, name, ...) cuda_check((driver)->name(__VA_ARGS__), "cu" #name, e)

#endif
