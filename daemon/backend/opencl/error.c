#include "daemon/backend/opencl/opencl.h"

/* The ERR_* for each vendor code; all other codes are ERR_INTERNAL. */
#define OPENCL_ERRORS(X)                                                                           \
    X(CL_DEVICE_NOT_FOUND, NO_DEVICE)                                                              \
    X(CL_DEVICE_NOT_AVAILABLE, DEVICE_LOST)                                                        \
    X(CL_COMPILER_NOT_AVAILABLE, UNSUPPORTED)                                                      \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, DEVICE_MEMORY)                                             \
    X(CL_OUT_OF_RESOURCES, DEVICE_MEMORY)                                                          \
    X(CL_OUT_OF_HOST_MEMORY, NOMEM)                                                                \
    X(CL_PROFILING_INFO_NOT_AVAILABLE, INTERNAL)                                                   \
    X(CL_MEM_COPY_OVERLAP, INVALID)                                                                \
    X(CL_BUILD_PROGRAM_FAILURE, COMPILE)                                                           \
    X(CL_MISALIGNED_SUB_BUFFER_OFFSET, UNSUPPORTED)                                                \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, KERNEL_FAULT)                                  \
    X(CL_COMPILE_PROGRAM_FAILURE, COMPILE)                                                         \
    X(CL_LINKER_NOT_AVAILABLE, UNSUPPORTED)                                                        \
    X(CL_LINK_PROGRAM_FAILURE, COMPILE)                                                            \
    X(CL_KERNEL_ARG_INFO_NOT_AVAILABLE, UNSUPPORTED)                                               \
    X(CL_INVALID_VALUE, INVALID)                                                                   \
    X(CL_INVALID_PLATFORM, NO_DEVICE)                                                              \
    X(CL_INVALID_DEVICE, NO_DEVICE)                                                                \
    X(CL_INVALID_CONTEXT, DEVICE_LOST)                                                             \
    X(CL_INVALID_QUEUE_PROPERTIES, UNSUPPORTED)                                                    \
    X(CL_INVALID_COMMAND_QUEUE, DEVICE_LOST)                                                       \
    X(CL_INVALID_MEM_OBJECT, ARG_TYPE)                                                             \
    X(CL_INVALID_BINARY, INVALID)                                                                  \
    X(CL_INVALID_BUILD_OPTIONS, INVALID)                                                           \
    X(CL_INVALID_PROGRAM, INVALID)                                                                 \
    X(CL_INVALID_PROGRAM_EXECUTABLE, INVALID)                                                      \
    X(CL_INVALID_KERNEL_NAME, NOT_FOUND)                                                           \
    X(CL_INVALID_KERNEL, INVALID)                                                                  \
    X(CL_INVALID_ARG_INDEX, ARG_COUNT)                                                             \
    X(CL_INVALID_ARG_VALUE, ARG_TYPE)                                                              \
    X(CL_INVALID_ARG_SIZE, ARG_TYPE)                                                               \
    X(CL_INVALID_KERNEL_ARGS, ARG_COUNT)                                                           \
    X(CL_INVALID_WORK_DIMENSION, LAUNCH)                                                           \
    X(CL_INVALID_WORK_GROUP_SIZE, LAUNCH)                                                          \
    X(CL_INVALID_WORK_ITEM_SIZE, LAUNCH)                                                           \
    X(CL_INVALID_GLOBAL_OFFSET, LAUNCH)                                                            \
    X(CL_INVALID_GLOBAL_WORK_SIZE, LAUNCH)                                                         \
    X(CL_INVALID_EVENT_WAIT_LIST, INTERNAL)                                                        \
    X(CL_INVALID_EVENT, INTERNAL)                                                                  \
    X(CL_INVALID_OPERATION, UNSUPPORTED)                                                           \
    X(CL_INVALID_BUFFER_SIZE, DEVICE_MEMORY)

static const struct {
    cl_int rc;
    int code;
    const char *name;
} errors[] = {
#define X(rc, code) {rc, ERR_##code, #rc},
    OPENCL_ERRORS(X)
#undef X
    /* comes from the ICD loader when no driver is registered */
    {-1001, ERR_NO_DEVICE, "CL_PLATFORM_NOT_FOUND_KHR"},
};

static int error_index(cl_int rc)
{
    for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        if (errors[i].rc == rc) {
            return (int)i;
        }
    }
    return -1;
}

const char *opencl_error_name(cl_int rc)
{
    int i = error_index(rc);
    return i < 0 ? "unknown" : errors[i].name;
}

int opencl_error(cl_int rc, const char *call, struct err *e)
{
    int i = error_index(rc);
    return err_set_vendor(e, i < 0 ? ERR_INTERNAL : errors[i].code, rc, "%s: %s (%d)", call,
                          opencl_error_name(rc), rc);
}

int opencl_command_error(cl_int status, struct err *e)
{
    /* drivers report an illegal access by various codes, often CL_OUT_OF_RESOURCES */
    int code = status == CL_MEM_OBJECT_ALLOCATION_FAILURE ? ERR_DEVICE_MEMORY : ERR_KERNEL_FAULT;
    return err_set_vendor(e, code, status, "a command failed on the device: %s (%d)",
                          opencl_error_name(status), status);
}
