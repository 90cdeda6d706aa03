/* The back ends of this build. BACKEND_WITH_CUDA and BACKEND_WITH_OPENCL are set by
 * CMakeLists.txt. */
#ifndef BACKEND_BUILT_H
#define BACKEND_BUILT_H

#include "daemon/backend/backend.h"

extern const struct backend backend_cuda;
extern const struct backend backend_opencl;
extern const struct backend backend_sim;

#endif
