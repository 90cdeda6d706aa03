/* The sizes of arguments by value whose types only the source knows: structs, enums. */
#ifndef BACKEND_OPENCL_SIZES_H
#define BACKEND_OPENCL_SIZES_H

#include "daemon/backend/opencl/opencl.h"

/* A source that compiled, and how. */
struct opencl_text {
    struct bytes source;
    const char *line; /* a #line directive, in front of it */
    const char *options;
};

/*
 * Fills in arg.bytes where it is 0 of a value. OpenCL names an argument's type but not its size,
 * and drivers take values of any size for a struct; so the source is compiled once more with an
 * empty kernel for each type, whose required group size is the type's size. Costs nothing where no
 * size is missing. What cannot be learned stays 0 (unknown): that is no error.
 */
void opencl_sizes_learn(const struct opencl_api *cl, cl_context context, cl_device_id device,
                        const struct opencl_text *text, struct backend_compiled *compiled);

#endif
