/*
 * Reads a kernel's mangled C++ name (Itanium ABI, as NVRTC and nvcc write it): its name as users
 * write it, and the types of its parameters. Forms that kernels do not have are not understood.
 * Pure. Thread: any.
 */
#ifndef BACKEND_CUDA_SOURCE_NAME_H
#define BACKEND_CUDA_SOURCE_NAME_H

#include "daemon/backend/cuda/source/param.h"

#define NAME_PARAMS_MAX BACKEND_ARGS_MAX

struct name_info {
    char name[128];       /* "space::f<float,3>"; "" if not understood */
    char plain[64];       /* the last part alone: "f" */
    bool typed;           /* the parameters were understood */
    unsigned param_count; /* of a template of a function type those of that function */
    struct param_type param[NAME_PARAMS_MAX];
};

/* false: not a mangled name; then name and plain are the entry itself. */
bool name_read(const char *entry, struct name_info *ret_info);

#endif
