/* A loaded program and its kernels, sorted by name. */
#ifndef BACKEND_OPENCL_MODULE_H
#define BACKEND_OPENCL_MODULE_H

#include "daemon/backend/opencl/opencl.h"

struct backend_module {
    struct backend_device *device;
    cl_program program;
    char *names; /* owned; kernels[].name point into it */
    struct opencl_kernel *kernels;
    unsigned kernel_count;
};

#endif
