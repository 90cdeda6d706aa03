/*
 * Reads a kernel's mangled C++ name (Itanium ABI, as NVRTC and nvcc write it): its name as users
 * write it, and the types of its parameters. Forms that do not occur with kernels are not
 * supported. Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_NAME_H
#define BACKEND_CUDA_SOURCE_NAME_H

#include "daemon/backend/cuda/source/param.h"

#define NAME_PARAMS_MAX BACKEND_ARGS_MAX

struct name_info {
    char name[128]; /* "space::f<float,3>"; "" if it was not understood */
    char plain[64]; /* the last part only: "f" */
    bool typed;     /* the parameters were understood */
    /* for a template with a function type as argument: the parameters of that type */
    unsigned param_count;
    struct param_type param[NAME_PARAMS_MAX];
};

/* Returns false if it is not a mangled name; name and plain are then the entry itself. */
bool name_read(const char *entry, struct name_info *ret_info);

#endif
