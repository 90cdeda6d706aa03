#include "daemon/backend/cuda/driver/error.h"

#include <stddef.h>

/*
 * X(result, value, error, advice). The values are numbers, so that codes that the headers lack are
 * known as well.
 *
 * KERNEL_FAULT: a kernel has made the context unusable, and every later call returns the same code;
 * only a new process helps. DEVICE_LOST: the device itself needs help. Both end the worker.
 */
#define CUDA_ERRORS(X)                                                                             \
    X(INVALID_VALUE, 1, INVALID, "")                                                               \
    X(OUT_OF_MEMORY, 2, DEVICE_MEMORY, "")                                                         \
    X(NOT_INITIALIZED, 3, INTERNAL, "")                                                            \
    X(DEINITIALIZED, 4, INTERNAL, "")                                                              \
    X(STUB_LIBRARY, 34, NO_DEVICE, "libcuda.so.1 is the toolkit's stub: install the driver")       \
    X(CALL_REQUIRES_NEWER_DRIVER, 36, UNSUPPORTED, "install a newer driver")                       \
    X(DEVICE_UNAVAILABLE, 46, NO_DEVICE, "another process has the GPU in exclusive mode")          \
    X(NO_DEVICE, 100, NO_DEVICE, "the driver sees no GPU (see nvidia-smi, CUDA_VISIBLE_DEVICES)")  \
    X(INVALID_DEVICE, 101, NO_DEVICE, "")                                                          \
    X(DEVICE_NOT_LICENSED, 102, NO_DEVICE, "the virtual GPU has no licence")                       \
    X(INVALID_IMAGE, 200, INVALID, "the module is not one of CUDA, or damaged")                    \
    X(INVALID_CONTEXT, 201, DEVICE_LOST, "")                                                       \
    X(MAP_FAILED, 205, DEVICE_MEMORY, "")                                                          \
    X(UNMAP_FAILED, 206, INTERNAL, "")                                                             \
    X(NO_BINARY_FOR_GPU, 209, UNSUPPORTED, "the module has no code for this GPU: rebuild it")      \
    X(ECC_UNCORRECTABLE, 214, DEVICE_LOST, "memory of the GPU failed")                             \
    X(UNSUPPORTED_LIMIT, 215, UNSUPPORTED, "")                                                     \
    X(CONTEXT_ALREADY_IN_USE, 216, STATE, "")                                                      \
    X(PEER_ACCESS_UNSUPPORTED, 217, UNSUPPORTED, "")                                               \
    X(INVALID_PTX, 218, COMPILE, "")                                                               \
    X(NVLINK_UNCORRECTABLE, 220, DEVICE_LOST, "")                                                  \
    X(JIT_COMPILER_NOT_FOUND, 221, UNSUPPORTED, "the driver lacks its PTX compiler: give a cubin") \
    X(UNSUPPORTED_PTX_VERSION, 222, UNSUPPORTED, "the PTX is newer than the driver")               \
    X(JIT_COMPILATION_DISABLED, 223, UNSUPPORTED, "the driver may not compile PTX: give a cubin")  \
    X(UNSUPPORTED_EXEC_AFFINITY, 224, UNSUPPORTED, "")                                             \
    X(UNSUPPORTED_DEVSIDE_SYNC, 225, UNSUPPORTED, "kernels cannot wait for kernels they started")  \
    X(CONTAINED, 226, KERNEL_FAULT, "an error of memory, contained to this process")               \
    X(INVALID_SOURCE, 300, COMPILE, "")                                                            \
    X(FILE_NOT_FOUND, 301, NOT_FOUND, "")                                                          \
    X(SHARED_OBJECT_SYMBOL_NOT_FOUND, 302, NOT_FOUND, "")                                          \
    X(SHARED_OBJECT_INIT_FAILED, 303, INTERNAL, "")                                                \
    X(OPERATING_SYSTEM, 304, INTERNAL, "")                                                         \
    X(INVALID_HANDLE, 400, INTERNAL, "")                                                           \
    X(ILLEGAL_STATE, 401, STATE, "")                                                               \
    X(NOT_FOUND, 500, NOT_FOUND, "")                                                               \
    X(NOT_READY, 600, STATE, "")                                                                   \
    X(ILLEGAL_ADDRESS, 700, KERNEL_FAULT, "a kernel reached outside of its memory")                \
    X(LAUNCH_OUT_OF_RESOURCES, 701, LAUNCH, "a group needs fewer work items or registers")         \
    X(LAUNCH_TIMEOUT, 702, KERNEL_FAULT, "a kernel ran longer than the driver allows")             \
    X(PRIMARY_CONTEXT_ACTIVE, 708, STATE, "")                                                      \
    X(CONTEXT_IS_DESTROYED, 709, DEVICE_LOST, "")                                                  \
    X(ASSERT, 710, KERNEL_FAULT, "an assertion in a kernel failed")                                \
    X(HOST_MEMORY_ALREADY_REGISTERED, 712, EXISTS, "")                                             \
    X(HOST_MEMORY_NOT_REGISTERED, 713, NOT_FOUND, "")                                              \
    X(HARDWARE_STACK_ERROR, 714, KERNEL_FAULT, "a kernel's stack overflowed or was damaged")       \
    X(ILLEGAL_INSTRUCTION, 715, KERNEL_FAULT, "")                                                  \
    X(MISALIGNED_ADDRESS, 716, KERNEL_FAULT, "a kernel used an address that is not aligned")       \
    X(INVALID_ADDRESS_SPACE, 717, KERNEL_FAULT, "")                                                \
    X(INVALID_PC, 718, KERNEL_FAULT, "")                                                           \
    X(LAUNCH_FAILED, 719, KERNEL_FAULT, "a kernel ended in a fault")                               \
    X(COOPERATIVE_LAUNCH_TOO_LARGE, 720, LAUNCH, "")                                               \
    X(TENSOR_MEMORY_LEAK, 721, KERNEL_FAULT, "a kernel ended without freeing its tensor memory")   \
    X(NOT_PERMITTED, 800, PERMISSION, "")                                                          \
    X(NOT_SUPPORTED, 801, UNSUPPORTED, "")                                                         \
    X(SYSTEM_NOT_READY, 802, NO_DEVICE, "a service of the driver is not started (fabric manager)") \
    X(SYSTEM_DRIVER_MISMATCH, 803, NO_DEVICE, "libcuda and the kernel's module differ: reboot")    \
    X(COMPAT_NOT_SUPPORTED_ON_DEVICE, 804, NO_DEVICE, "this GPU takes no compatibility package")   \
    X(MPS_CONNECTION_FAILED, 805, NO_DEVICE, "is the MPS daemon running?")                         \
    X(MPS_RPC_FAILURE, 806, DEVICE_LOST, "")                                                       \
    X(MPS_SERVER_NOT_READY, 807, NO_DEVICE, "")                                                    \
    X(MPS_MAX_CLIENTS_REACHED, 808, NO_DEVICE, "")                                                 \
    X(MPS_MAX_CONNECTIONS_REACHED, 809, NO_DEVICE, "")                                             \
    X(MPS_CLIENT_TERMINATED, 810, DEVICE_LOST, "")                                                 \
    X(TIMEOUT, 909, TIMEOUT, "")                                                                   \
    X(EXTERNAL_DEVICE, 911, DEVICE_LOST, "")                                                       \
    X(INVALID_CLUSTER_SIZE, 912, LAUNCH, "")                                                       \
    X(FUNCTION_NOT_LOADED, 913, INTERNAL, "")                                                      \
    X(UNKNOWN, 999, DEVICE_LOST, "the driver's log (dmesg, NVRM) says more")

static const struct {
    int rc;
    int code;
    const char *name;
    const char *advice;
} errors[] = {
#define X(name, rc, code, advice) {rc, ERR_##code, "CUDA_ERROR_" #name, advice},
    CUDA_ERRORS(X)
#undef X
};

static int error_index(CUresult rc)
{
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].rc == (int)rc) {
            return (int)i;
        }
    }
    return -1;
}

const char *cuda_error_name(CUresult rc)
{
    int i = error_index(rc);
    return i < 0 ? "unknown to gpud" : errors[i].name;
}

int cuda_error(CUresult rc, const char *call, struct err *e)
{
    int i = error_index(rc);
    const char *advice = i < 0 ? "" : errors[i].advice;
    return err_set_vendor(e, i < 0 ? ERR_INTERNAL : errors[i].code, (int)rc, "%s: %s (%d)%s%s",
                          call, cuda_error_name(rc), (int)rc, advice[0] ? ": " : "", advice);
}
