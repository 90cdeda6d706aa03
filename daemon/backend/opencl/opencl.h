/*
 * Declarations that the files of the OpenCL back end share. Only this folder includes it. Thread:
 * as backend.h says, except for the event callback, which runs on threads of the driver and uses
 * only struct opencl_wake.
 */
#ifndef BACKEND_OPENCL_OPENCL_H
#define BACKEND_OPENCL_OPENCL_H

#define CL_TARGET_OPENCL_VERSION 200
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS
#include <CL/cl.h>
#include <pthread.h>
#include <stdatomic.h>

#include "daemon/backend/backend.h"

/* Entry points of every driver (OpenCL 1.2). */
#define OPENCL_ENTRIES(X)                                                                          \
    X(GetPlatformIDs)                                                                              \
    X(GetPlatformInfo)                                                                             \
    X(GetDeviceIDs)                                                                                \
    X(GetDeviceInfo)                                                                               \
    X(CreateContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(CreateCommandQueue)                                                                          \
    X(ReleaseCommandQueue)                                                                         \
    X(CreateBuffer)                                                                                \
    X(CreateSubBuffer)                                                                             \
    X(ReleaseMemObject)                                                                            \
    X(CreateProgramWithSource)                                                                     \
    X(CreateProgramWithBinary)                                                                     \
    X(BuildProgram)                                                                                \
    X(ReleaseProgram)                                                                              \
    X(GetProgramInfo)                                                                              \
    X(GetProgramBuildInfo)                                                                         \
    X(CreateKernel)                                                                                \
    X(ReleaseKernel)                                                                               \
    X(SetKernelArg)                                                                                \
    X(GetKernelInfo)                                                                               \
    X(GetKernelArgInfo)                                                                            \
    X(GetKernelWorkGroupInfo)                                                                      \
    X(EnqueueWriteBuffer)                                                                          \
    X(EnqueueReadBuffer)                                                                           \
    X(EnqueueCopyBuffer)                                                                           \
    X(EnqueueFillBuffer)                                                                           \
    X(EnqueueNDRangeKernel)                                                                        \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(EnqueueBarrierWithWaitList)                                                                  \
    X(Flush)                                                                                       \
    X(Finish)                                                                                      \
    X(GetEventInfo)                                                                                \
    X(GetEventProfilingInfo)                                                                       \
    X(SetEventCallback)                                                                            \
    X(CreateUserEvent)                                                                             \
    X(SetUserEventStatus)                                                                          \
    X(WaitForEvents)                                                                               \
    X(ReleaseEvent)

/* Entry points of shared virtual memory (OpenCL 2.0); NULL if the loader is older. */
#define OPENCL_SVM_ENTRIES(X)                                                                      \
    X(SVMAlloc)                                                                                    \
    X(SVMFree)                                                                                     \
    X(SetKernelArgSVMPointer)                                                                      \
    X(EnqueueSVMMemcpy)                                                                            \
    X(EnqueueSVMMemFill)

struct opencl_api {
#define X(name) __typeof__(&cl##name) name;
    OPENCL_ENTRIES(X) OPENCL_SVM_ENTRIES(X)
#undef X
};

#define OPENCL_NO_DEVICE                                                                           \
    "no OpenCL device: install pocl-opencl-icd (CPU) or the vendor's OpenCL driver"

/* If PoCL's folder of kernels is on a full disk or not writable, chooses another folder for the
 * whole process, and reports that in ret_note ("": not needed). opencl_load calls it before a
 * driver is loaded; later calls give the same result. A folder named by the environment is kept.
 * ERR_NO_DEVICE: no folder has room. Blocks on files. */
int opencl_cache_choose(char *ret_note, size_t size, struct err *e);
/* The slot `folder` of struct backend. */
int opencl_cache_folder(char *ret_path, size_t size, struct err *e);
/* Loads the ICD loader, which remains loaded until the process ends, because drivers have
 * threads. */
int opencl_load(struct opencl_api *ret_api, struct err *e);

/* ---- errors -------------------------------------------------------------------------------- */

const char *opencl_error_name(cl_int rc); /* "CL_OUT_OF_RESOURCES"; "unknown" */
/* The error of a command that failed on the device: ERR_KERNEL_FAULT, or ERR_DEVICE_MEMORY. */
int opencl_command_error(cl_int status, struct err *e);
/* Sets "clFoo: CL_BAR (-5)" with the ERR_* for that code, and returns it. rc must not be
 * CL_SUCCESS. */
int opencl_error(cl_int rc, const char *call, struct err *e);

/* ---- device -------------------------------------------------------------------------------- */

/* Lives until the last callback has come, longer than the device. */
struct opencl_wake {
    pthread_mutex_t lock;
    pthread_cond_t idle;
    backend_wake_fn wake; /* NULL after close */
    void *data;
    atomic_uint pending; /* count of callbacks to come */
};

struct opencl_choice {
    cl_platform_id platform;
    cl_device_id device;
};

#define OPENCL_DEVICES_MAX 64
#define OPENCL_HUGE_PAGE                                                                           \
    ((size_t)2 << 20) /* bytes; blocks of at least this size begin at a multiple of it */

struct backend_device {
    struct opencl_api cl;
    struct opencl_choice id;
    cl_context context;
    struct backend_info info;
    bool svm;             /* blocks are shared virtual memory: any offset can be an argument */
    bool huge_pages;      /* blocks ask the system for huge pages: only with svm on a processor */
    uint64_t base_align;  /* bytes: offsets of sub-buffers are multiples of it */
    uint64_t limit;       /* bytes; enforced here because drivers over-commit */
    uint64_t used;        /* bytes in use */
    int64_t clock_offset; /* ns: host clock minus device clock */
    uint64_t clock_end;   /* ns on the device's clock: the latest end that was reported */
    struct opencl_wake *wake;
};

/* Lists the devices of all platforms whose name contains the option "platform", GPUs first. */
int opencl_devices(const struct opencl_api *cl, const char *options,
                   struct opencl_choice ret_choice[OPENCL_DEVICES_MAX], unsigned *ret_count,
                   struct err *e);
void opencl_describe(const struct opencl_api *cl, struct opencl_choice id,
                     struct backend_info *ret_info);
/* A property of a device of 4 or 8 bytes; 0 if the driver does not know it. */
uint64_t opencl_device_number(const struct opencl_api *cl, cl_device_id id, cl_device_info what);

/* ---- memory -------------------------------------------------------------------------------- */

struct backend_block {
    uint64_t size;
    uint8_t *base; /* result of clSVMAlloc; NULL: no svm */
    uint8_t *svm;  /* the first aligned byte of it; NULL: no svm */
    cl_mem mem;    /* used if svm is NULL */
    uint8_t *host; /* not owned: imported memory, which mem stands for; else NULL */
};

/* Makes a sub-buffer of exactly that piece of a block without svm. The caller releases it,
 * perhaps while commands that use it still run. ERR_UNSUPPORTED: the device does not accept this
 * offset. */
int opencl_sub_buffer(struct backend_device *d, const struct backend_block *b, uint64_t offset,
                      uint64_t size, cl_mem *ret_mem, struct err *e);

/* ---- module -------------------------------------------------------------------------------- */

#define OPENCL_ARGS_MAX BACKEND_ARGS_MAX

enum opencl_arg_kind {
    OPENCL_ARG_ANY,
    OPENCL_ARG_MEMORY,
    OPENCL_ARG_VALUE,
    OPENCL_ARG_LOCAL,
    OPENCL_ARG_OTHER
};

struct opencl_kernel {
    const char *name;  /* owned by the module */
    cl_kernel kernel;  /* made at first use */
    cl_uint arg_count; /* above OPENCL_ARGS_MAX the kernel cannot be launched */
    /* enum opencl_arg_kind; with a wrong kind a driver may follow a number as an address */
    uint8_t kind[OPENCL_ARGS_MAX];
    size_t required_local[3]; /* 0: any */
    size_t max_group;         /* limit of work items in a group, as the kernel's resources allow */
};

int opencl_kernel_find(struct backend_module *m, const char *entry,
                       struct opencl_kernel **ret_kernel, struct err *e);

/* Sets the arguments and enqueues the launch. The caller owns *ret_event. */
int opencl_launch(struct backend_device *d, cl_command_queue queue, struct backend_module *m,
                  const char *entry, const struct backend_launch *launch, cl_event *ret_event,
                  struct err *e);

/* ---- compiling ----------------------------------------------------------------------------- */

/* A binary as gpud keeps it: a header with checksum and arch, then the driver's bytes
 * (wrapped.h). */
int opencl_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                       struct err *e);
int opencl_binary_unwrap(const char *arch, struct bytes binary, struct bytes *ret_payload,
                         struct err *e);

/* Precedes each source and makes inline assembly an error, because it could read files
 * (".incbin"). Assembly in branches that the preprocessor skips is no error. */
extern const char opencl_source_head[];
/* Refuses sources that include files by any directive, and macros that would undo
 * opencl_source_head. Error texts are "file:line: …". */
int opencl_source_check(struct bytes text, const char *file, struct err *e);
/* Refuses all options except -D, -cl-*, -w, -Werror. */
int opencl_options_check(const char *options, struct err *e);

int opencl_compile(unsigned index, const struct backend_source *source,
                   struct backend_compiled *ret_compiled, struct err *e);

extern const struct backend backend_opencl;
extern const struct backend_memory_ops opencl_memory_ops;
extern const struct backend_stream_ops opencl_stream_ops;
extern const struct backend_marker_ops opencl_marker_ops;
extern const struct backend_module_ops opencl_module_ops;

#endif
