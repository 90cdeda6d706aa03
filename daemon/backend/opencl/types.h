/* Finds the types of arguments that only the source knows: typedefs, enums, structs. */
#ifndef BACKEND_OPENCL_TYPES_H
#define BACKEND_OPENCL_TYPES_H

#include "daemon/backend/opencl/opencl.h"

/* A source that compiled, and how it was compiled. */
struct opencl_text {
    struct bytes source;
    const char *head; /* text that precedes it */
    const char *options;
};

/*
 * Fills in dtype and bytes of values, and dtype of arrays, whose type names are not the language's
 * own. OpenCL reports only the name of an argument's type in the source ("DATA_TYPE*"), and drivers
 * accept values of any size for a struct. The source is therefore compiled once more, with an empty
 * kernel for each such name. The kernel's required group size encodes the type: its bytes, then 1 +
 * a code of its element type and vector width.
 *
 * Costs nothing if no type is missing. A type that cannot be found remains unknown (dtype
 * DTYPE_NONE, bytes 0), which is no error. Blocks like a compiler.
 */
void opencl_types_learn(const struct opencl_api *cl, cl_context context, cl_device_id device,
                        const struct opencl_text *text, struct backend_compiled *compiled);

#endif
