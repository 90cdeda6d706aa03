/* The ERR_* of each CUresult: one table. Thread: any. */
#ifndef BACKEND_CUDA_DRIVER_ERROR_H
#define BACKEND_CUDA_DRIVER_ERROR_H

#include <cuda.h>

#include "common/err.h"

/* "CUDA_ERROR_ASSERT"; "unknown to gpud" for what the table does not list. */
const char *cuda_error_name(CUresult rc);
/* "call: CUDA_ERROR_X (n)" as the ERR_* that suits it; returns that. rc is not CUDA_SUCCESS.
 * ERR_KERNEL_FAULT: the context is poisoned; ERR_DEVICE_LOST: the device is lost. */
int cuda_error(CUresult rc, const char *call, struct err *e);

/* 0, or as cuda_error. */
static inline int cuda_check(CUresult rc, const char *call, struct err *e)
{
    return rc == CUDA_SUCCESS ? 0 : cuda_error(rc, call, e);
}

/* CUDA_CALL(driver, e, MemFree, address): a call by its name in driver.h. */
#define CUDA_CALL(driver, e, name, ...) cuda_check((driver)->name(__VA_ARGS__), "cu" #name, e)

#endif
