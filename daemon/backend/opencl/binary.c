#include "daemon/backend/opencl/opencl.h"
#include "daemon/backend/wrapped.h"

#define MAGIC "gpudcl1"

int opencl_binary_wrap(const char *arch, struct bytes payload, struct backend_compiled *ret,
                       struct err *e)
{
    return backend_wrap(MAGIC, arch, payload, (struct bytes){0}, ret, e);
}

int opencl_binary_unwrap(const char *arch, struct bytes binary, struct bytes *ret_payload,
                         struct err *e)
{
    return backend_unwrap(MAGIC, "OpenCL", arch, binary, ret_payload, e);
}
